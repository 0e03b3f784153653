"""The folder that ``rtx export`` writes: graph, tokenizer, record, script and card, checked before it is kept."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer
from torch import nn
from transformers import PreTrainedTokenizerFast

from rtx.export import bert, beside, check, quantize, standalone
from rtx.export.card import card
from rtx.export.held_out import HeldOut
from rtx.export.onnx_model import OUTPUT, any_depth, to_onnx
from rtx.export.opened import CARD, MODEL, RECORD, SCRIPT, TOKENIZER
from rtxlib import checksums
from rtxlib.atomic import replacing_folder
from rtxlib.data import clean
from rtxlib.data.batching import collate
from rtxlib.data.datasets import from_record
from rtxlib.data.rows import spread
from rtxlib.data.tokenization import LONGEST_TEXT, add_ends, pretrained_tokenizer
from rtxlib.errors import InputError
from rtxlib.models import pretrained
from rtxlib.models.config import ModelConfig
from rtxlib.runs import trained
from rtxlib.runs.store import Run

CALIBRATION = 256  # texts


@dataclass(frozen=True)
class Source:
    """What is exported."""

    model: nn.Module
    tokenizer: PreTrainedTokenizerFast
    name: str
    labels: list[str]  # none: sentence embeddings
    pairs: bool
    switches: Mapping[str, bool]  # of the cleaning
    max_length: int
    origin: str = ""  # of a run, see rtx.export.beside
    longest: int = LONGEST_TEXT  # characters of a text that are read

    @property
    def config(self) -> ModelConfig:
        return self.model.config


def of_run(run: Run) -> Source:
    """The network of a run. Raises InputError as :func:`rtxlib.runs.trained.open_run`."""
    model, tokenizer = trained.open_run(run)
    spec = from_record(run.spec["data"])
    name = f"{run.metrics['model']}, run {run.key}"
    names, origin = run.spec["label_names"], beside.origin(run)
    longest, switches = run.spec.get("longest", LONGEST_TEXT), clean.switches(spec)
    return Source(model.to("cpu"), tokenizer, name, names, run.pairs, switches, spec.max_length, origin, longest)


def of_encoder(name: str, report: Callable[[str], None]) -> Source:
    """The sentence embeddings of a pretrained or converted encoder, a Hub id or a folder. Raises InputError as ``load``."""
    encoder, tokenizer = pretrained.load(name), pretrained_tokenizer(pretrained.find(name))
    report(f"{name}: {encoder.loaded}")
    length = encoder.config.max_seq_length or encoder.config.max_position_embeddings
    return Source(encoder, tokenizer, Path(name).name, [], False, {}, length)


def export(
    source: Source, held: HeldOut, out: Path, eight: bool, report: Callable[[str], None] = lambda line: None
) -> dict[str, Any]:
    """Write the folder ``out`` and return its record.

    held: its validation texts calibrate and its test texts check. eight: with eight-bit weights.

    Raises InputError if the folder exists, or if the float32 graph differs from the model on a text.
    """
    if out.exists():
        raise InputError(f"{out} exists already; name a new folder.")
    model = source.model.eval()
    texts = held.test
    tokens = check.tokens_of(texts, source.tokenizer, source.max_length, source.pairs)
    with replacing_folder(out, new=True) as aside:
        record = _record(source, len(texts))
        (aside / TOKENIZER).write_text(_tokenizer(source).to_str(), encoding="utf-8")
        (aside / RECORD).write_text(json.dumps(record), encoding="utf-8")
        shutil.copyfile(standalone.__file__, aside / SCRIPT)
        record["size_float32"] = _write_graph(aside, source, None)
        answers = check.model_answers(model, tokens, source.tokenizer.pad_token_id)
        graph_answers = standalone.Exported(aside, 1)(texts)
        record["difference"] = check.require_agreement(answers, graph_answers, bool(source.labels))
        if record["any_depth"] and source.labels:
            _check_depths(aside, source, texts[:64])
        report(f"the float32 graph agrees with the model on {len(texts):,} texts")
        record["size"] = record["size_float32"]
        if eight:
            validation = [held.validation[row] for row in spread(len(held.validation), CALIBRATION)]
            calibration = _calibrated(aside, source, validation)
            record |= {"n_calibration": len(validation), "towards_weights": calibration.towards_weights}
            record["size"] = _write_graph(aside, source, calibration)
            record["loss"] = check.loss(answers, standalone.Exported(aside, 1)(texts), held.labels, bool(source.labels))
        record["precision"] = "int8" if eight else "fp32"
        record["texts"] = held.what
        (aside / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        shaped = bool(source.labels) and bert.architecture(source.config) is not None
        (aside / CARD).write_text(card(record, shaped), encoding="utf-8")
        checksums.write(aside)
    return record


def _record(source: Source, n_test: int) -> dict[str, Any]:
    """What the script needs to know, before anything is measured."""
    config, types = source.config, source.pairs and source.config.type_vocab_size > 1
    return {
        "format": 1,
        "model": source.name,
        "origin": source.origin,
        "labels": source.labels,
        "pairs": source.pairs,
        "cleaning": cleaning_rules(source.switches),
        "longest": source.longest,
        "max_length": source.max_length,
        "width": len(source.labels) or config.hidden_size,
        "passes": config.recurrent_depth,
        "any_depth": any_depth(config),
        "pooling": config.pooling,
        "normalized": not source.labels and config.normalize,
        "inputs": ["input_ids", "attention_mask", *["token_type_ids"] * types, *["passes"] * any_depth(config)],
        "output": OUTPUT[bool(source.labels)],
        "n_test": n_test,
    }


def cleaning_rules(switches: Mapping[str, bool]) -> list[list[str]]:
    """The steps of :mod:`rtxlib.data.clean` that are on, as (kind, pattern, replacement) for the script."""

    def replaced(pattern: Any, new: str) -> list[str]:
        flags = "".join(letter for letter, flag in (("i", 2), ("s", 16)) if pattern.flags & flag)
        return ["replace", f"(?{flags}){pattern.pattern}" if flags else pattern.pattern, new]

    rules = {
        "strip_html": [
            ["entities", clean._ENTITY.pattern, ""],
            *(replaced(p, new) for p, new in ((clean._UNSEEN, " "), (clean._INLINE_TAG, ""), (clean._BLOCK_TAG, " "))),
        ],
        "strip_urls": [replaced(clean._URL, "")],
        "lowercase": [["lower", "", ""]],
        "squeeze_whitespace": [["squeeze", "", ""]],
        "uniform": [
            *(replaced(p, new) for p, new in ((clean._BRACKET, " "), (clean._CLITIC, ""), (clean._APOSTROPHE, ""))),
            replaced(clean._NOT_A_LETTER, " "),
            ["lower", "", ""],
            ["middle", str(clean.UNIFORM_WORDS), ""],
        ],
    }
    return [rule for switch in clean.STEPS if switches.get(switch) for rule in rules[switch]]


def _tokenizer(source: Source) -> Tokenizer:
    """The tokenizer with its own cutting, padding, [CLS] and [SEP], so that the script needs to know none of them."""
    theirs = source.tokenizer
    tokenizer = Tokenizer.from_str(theirs.backend_tokenizer.to_str())
    add_ends(tokenizer, theirs.cls_token, theirs.sep_token)
    tokenizer.enable_truncation(source.max_length)
    tokenizer.enable_padding(pad_id=theirs.pad_token_id, pad_token=theirs.pad_token)
    return tokenizer


def _write_graph(folder: Path, source: Source, calibration: quantize.Calibration | None) -> int:
    """Write the graph, and return its bytes."""
    content = to_onnx(source.model, source.pairs, calibration).SerializeToString()
    (folder / MODEL).write_bytes(content)
    return len(content)


def _calibrated(folder: Path, source: Source, texts: list[Any]) -> quantize.Calibration:
    """The calibration whose graph is nearest to the model on these validation texts. It leaves some graph in the folder."""
    tokens, pad_id = check.tokens_of(texts, source.tokenizer, source.max_length, source.pairs), source.tokenizer.pad_token_id
    batches = (collate(tokens, np.array([i]), pad_id) for i in range(len(tokens)))  # one by one, so without padding
    inputs = ({name: x for name, x in batch.items() if name != "labels" and x is not None} for batch in batches)
    largest = quantize.largest_inputs(source.model, inputs)
    answers, errors = check.model_answers(source.model, tokens, pad_id), {}
    for towards in quantize.TOWARDS_WEIGHTS:
        _write_graph(folder, source, quantize.Calibration(largest, towards))
        errors[towards] = float(np.square(standalone.Exported(folder, 1)(texts) - answers).mean())
    return quantize.Calibration(largest, min(errors, key=errors.get))


def _check_depths(folder: Path, source: Source, texts: list[Any]) -> None:
    """Compare graph and model with one pass, and with one more than in training."""
    tokens = check.tokens_of(texts, source.tokenizer, source.max_length, source.pairs)
    for passes in (1, source.config.recurrent_depth + 1):
        answers = check.model_answers(source.model, tokens, source.tokenizer.pad_token_id, passes)
        check.require_agreement(answers, standalone.Exported(folder, 1)(texts, passes), True)
