"""The folder of a classifier that is no network, or holds several: counted words, word vectors, an embedder, a cascade.

Each part has a folder with ``part.json`` (its kind and settings) and arrays of NumPy; encoders are graphs as those of
:mod:`rtx.export.folder`. :mod:`rtx.export.standalone_classifier` opens it.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import softmax
from tokenizers import Tokenizer

from rtx import use
from rtx.classifiers.encoders import STATIC_TOKENS, Frozen, Static
from rtx.classifiers.folder import Classifier
from rtx.classifiers.linear import Linear
from rtx.classifiers.network import Network
from rtx.classifiers.simple import Cascade, Majority
from rtx.classifiers.words import WORD, WordCounts
from rtx.export import beside, check, folder, quantize, standalone, standalone_classifier
from rtx.export.card import classifier_card
from rtx.export.held_out import HeldOut
from rtx.export.opened import CARD, RECORD, SCRIPT, TOKENIZER
from rtxlib import checksums
from rtxlib.atomic import replacing_folder
from rtxlib.data import clean
from rtxlib.data.datasets import from_record
from rtxlib.data.tokenization import LONGEST_TEXT
from rtxlib.errors import InputError
from rtxlib.runs.store import Run

GRAPH_SCRIPT = "graph.py"
_eight_bits = functools.partial(quantize.rounded, most=127)


def _write_linear(linear: Linear, out: Path, eight: bool, **more: np.ndarray) -> None:
    """Write ``weights`` (features, labels), ``scale`` (1, labels), ``bias`` and more arrays."""
    values = linear.weights
    weights, scale = _eight_bits(values, 0) if eight else (values, np.ones((1, values.shape[1]), np.float32))
    np.savez(out / "arrays.npz", weights=weights, scale=scale, bias=linear.bias, **more)


def _part(classifier: Classifier, out: Path, eight: bool, run: _Run) -> None:
    """Write one part into an empty folder."""
    settings: dict[str, Any] = {}
    match classifier:
        case Majority():
            settings = {"kind": "majority", "shares": list(classifier.shares)}
        case WordCounts():
            settings = {"kind": "words", "word": WORD}
            names = [list(vocabulary.terms) for vocabulary in classifier.vocabularies]
            (out / "terms.json").write_text(json.dumps(names, ensure_ascii=False), encoding="utf-8")
            idf = classifier.idf.astype(np.float16 if eight else np.float32)
            _write_linear(classifier.linear, out, eight, idf=idf)
        case Static():
            settings = {"kind": "static", "most": STATIC_TOKENS - 2}
            table = classifier.table
            rows, scale = _eight_bits(table, 1) if eight else (table.astype(np.float16), np.ones((len(table), 1), np.float32))
            np.savez(out / "table.npz", rows=rows, scale=scale)
            tokenizer = Tokenizer.from_str(classifier.tokenizer.backend_tokenizer.to_str())
            tokenizer.no_padding()
            tokenizer.no_truncation()
            (out / TOKENIZER).write_text(tokenizer.to_str(), encoding="utf-8")
            _write_linear(classifier.linear, out, eight)
        case Frozen():
            settings = {"kind": "frozen"}
            source = folder.Source(
                classifier.encoder, classifier.tokenizer, run.name, [], False, {}, classifier.max_length
            )
            folder.export(source, run.texts.single(), out / "encoder", eight)
            _write_linear(classifier.linear, out, False)
        case Network():
            settings = {"kind": "network"}
            source = folder.Source(
                classifier.model.to("cpu"), classifier.tokenizer, run.name, run.labels, run.pairs, {}, classifier.max_length
            )
            folder.export(source, run.texts, out / "graph", eight)
        case Cascade():
            settings = {"kind": "cascade", "threshold": classifier.threshold}
            for name in ("first", "second"):
                (out / name).mkdir()
                _part(getattr(classifier, name), out / name, eight, run)
    (out / "part.json").write_text(json.dumps(settings), encoding="utf-8")


@dataclasses.dataclass(frozen=True)
class _Run:
    """What the parts need to know of the run that is exported."""

    name: str
    labels: list[str]
    pairs: bool
    texts: HeldOut


def export(
    run: Run, texts: HeldOut, out: Path, eight: bool, report: Callable[[str], None] = lambda line: None
) -> dict[str, Any]:
    """Write the folder ``out`` of a run that holds a classifier, and return its record.

    texts: calibrate and check. eight: with eight-bit weights, tables and graphs.

    Raises InputError if the folder exists, or if the files without rounding answer otherwise than the classifier on a text.
    """
    if out.exists():
        raise InputError(f"{out} exists already; name a new folder.")
    classifier, spec = use.classifier_of(run), from_record(run.spec["data"])
    labels = run.spec["label_names"]
    name = f"{run.metrics['model']}, run {run.key}"
    described = _Run(name, labels, run.pairs, texts)
    answers = _exact(classifier).probabilities(texts.test)
    record = {
        "format": 1,
        "model": name,
        "origin": beside.origin(run),
        "labels": labels,
        "pairs": described.pairs,
        "cleaning": folder.cleaning_rules(clean.switches(spec)),
        "longest": run.spec.get("longest", LONGEST_TEXT),
        "width": len(labels),
        "passes": 1,
        "any_depth": False,
        "n_test": len(texts.test),
        "texts": texts.what,
    }
    with replacing_folder(out, new=True) as aside:
        (aside / RECORD).write_text(json.dumps(record), encoding="utf-8")
        shutil.copyfile(standalone_classifier.__file__, aside / SCRIPT)
        shutil.copyfile(standalone.__file__, aside / GRAPH_SCRIPT)
        _part(classifier, aside, False, described)
        record["size_float32"] = record["size"] = _size(aside)
        again = _probabilities(aside, texts.test)
        record["difference"] = check.require_agreement(answers, again, True)
        report(f"the exported files agree with the model on {len(texts.test):,} texts")
        if eight:
            for entry in [path for path in aside.iterdir() if path.name not in (RECORD, SCRIPT, GRAPH_SCRIPT)]:
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
            _part(classifier, aside, True, described)
            record["size"] = _size(aside)
            record["loss"] = check.loss(answers, _probabilities(aside, texts.test), texts.labels, True)
        record["precision"] = "int8" if eight else "fp32"
        (aside / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        (aside / CARD).write_text(classifier_card(record), encoding="utf-8")
        checksums.write(aside)
    return record


def _exact(classifier: Classifier) -> Classifier:
    """The classifier with all its products in float32, as its graphs compute them."""
    match classifier:
        case Network() | Frozen():
            return dataclasses.replace(classifier, precision="fp32")
        case Cascade():
            first, second = _exact(classifier.first), _exact(classifier.second)
            return dataclasses.replace(classifier, first=first, second=second)
    return classifier


def _size(out: Path) -> int:
    """Bytes of what the classifier is made of."""
    return sum(path.stat().st_size for path in out.rglob("*") if path.suffix in (".npz", ".json", ".onnx"))


def _probabilities(out: Path, texts: list) -> np.ndarray:
    return softmax(standalone_classifier.Exported(out, 1)(texts), axis=1)
