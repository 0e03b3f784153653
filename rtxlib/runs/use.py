"""Use a trained run: labels and probabilities of new texts, and scores on other data."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import softmax
from transformers import PreTrainedTokenizerBase

from rtxlib import checksums
from rtxlib.classifiers import folder as classifiers
from rtxlib.data.batching import Tokens
from rtxlib.data.clean import STEPS as CLEANING
from rtxlib.data.clean import clean_texts
from rtxlib.data.prepared import Prepared
from rtxlib.data.rows import PAIR, Text, texts_of
from rtxlib.data.sources import has_pairs
from rtxlib.data.spec import DataSpec
from rtxlib.data.tokenization import cut_texts, encode, load_tokenizer
from rtxlib.errors import InputError, fact, few, shown
from rtxlib.models.heads import EncoderForSequenceClassification
from rtxlib.models.pretrained import load_trained
from rtxlib.runs import drift, seen, store
from rtxlib.runs.metrics import classification_report
from rtxlib.runs.spec import data_label
from rtxlib.runs.store import Run
from rtxlib.training.device import pick_device, pick_precision
from rtxlib.training.predict import predict_logits


def open_run(run: Run) -> tuple[EncoderForSequenceClassification, PreTrainedTokenizerBase]:
    """The model (in evaluation mode, on the GPU if there is one) and the tokenizer of a run.

    Raises InputError as :func:`open_model`, when its record gives texts no length, or when its tokenizer cannot be read or has
    words that the model has not.
    """
    _require_here(run)
    with checksums.unchanged(run.path):
        model = open_model(run)
        length = run.spec["data"]["max_length"]
        if type(length) is not int or length < 2:
            raise store.damaged(run.key, run.path, f"spec.json has the max_length {shown(length)}")
        try:
            tokenizer = load_tokenizer(run.path)
            if tokenizer.pad_token_id is None:
                raise ValueError("tokenizer_config.json is missing or names no special tokens")
            if (words := max(tokenizer.get_vocab().values()) + 1) > model.config.vocab_size:
                raise ValueError(f"it has {words:,} words and the model's configuration {model.config.vocab_size:,}")
        except Exception as error:
            raise _unreadable(run, "tokenizer", error) from error
    return model.to(pick_device()), tokenizer


def _require_here(run: Run) -> None:
    if run.path is None:
        raise InputError(f"Only the record of run {run.key} is here, not its weights; train it again to use it.")


def open_model(run: Run) -> EncoderForSequenceClassification:
    """The model of a run, in evaluation mode, on the CPU.

    The checksums of its files are compared, then every tensor is accounted for (:func:`load_trained`). Raises InputError when
    only the run's record is here, when a file is not as it was written or cannot be read, or when the labels of spec.json are not
    those of config.json. Somebody may have edited a file and its checksum.
    """
    _require_here(run)
    if is_classifier(run):
        raise InputError(f"{run.path} holds {run.metrics['model']}, no network; `rtx predict` and `rtx evaluate` open it.")
    for path in (run.path, *run.path.glob("*")):  # safetensors reports an unreadable file as missing
        if not os.access(path, os.R_OK):
            raise InputError(f"Run {run.key} cannot be read; ask its owner for permission to read {path}.")
    checksums.check_kinds(run.path)
    with checksums.unchanged(run.path):
        store.verify(run, checksums.opened)
        try:
            model = load_trained(run.path)
        except Exception as error:
            raise _unreadable(run, "weights", error) from error
    ours, theirs = run.spec["label_names"], [name for _, name in sorted(model.config.id2label.items())]
    if ours != theirs:
        what = f"spec.json has the {len(ours)} labels {shown(ours)}, and config.json has the {len(theirs)} labels {shown(theirs)}"
        raise store.damaged(run.key, run.path, what)
    return model


def _unreadable(run: Run, part: str, error: Exception) -> InputError:
    return InputError(f"The {part} of run {run.key} cannot be read ({fact(error)}); delete {run.path} and train it again.")


def reads_pairs(run: Run) -> bool:
    """Whether a run was trained on pairs of texts."""
    return has_pairs(DataSpec(**run.spec["data"]))


def probabilities(run: Run, texts: Sequence[Text], **way: Any) -> np.ndarray:
    """Probabilities (texts, labels) of texts, which are cleaned and cut as the run's training texts were.

    A run on pairs takes pairs of texts. Standard error says how many texts are too long to be tokenised whole.

    way: ``recurrent_depth`` or ``early_exit``, see :meth:`EncoderForSequenceClassification.forward`.
    """
    return _probabilities(run, _cleaned(run, texts), **way)


def is_classifier(run: Run) -> bool:
    """Whether a run's folder holds a classifier that is no network (:mod:`rtxlib.classifiers`), as `rtx compare` leaves it."""
    return run.path is not None and (run.path / classifiers.FILE).is_file()


def _probabilities(run: Run, cleaned: list[Text], **way: Any) -> np.ndarray:
    return _answerer(run)(cleaned, **way)


def opened(run: Run) -> Callable[..., np.ndarray]:
    """The function :func:`probabilities` of a run that is opened once, to be called many times with ``texts`` and ``way``."""
    answer = _answerer(run)
    return lambda texts, **way: answer(_cleaned(run, texts), **way)


def _answerer(run: Run) -> Callable[..., np.ndarray]:
    """The probabilities (texts, labels) of cleaned texts, as a function that holds the model."""
    if is_classifier(run):
        with checksums.unchanged(run.path):
            store.verify(run, lambda name: name != store.CARD)
            classifier = classifiers.load(run.path)
        if classifier.labels != (named := len(run.spec["label_names"])):
            what = f"spec.json has {named} labels, and the classifier tells {classifier.labels} apart"
            raise store.damaged(run.key, run.path, what)
        return classifier.probabilities
    model, tokenizer = open_run(run)
    device = pick_device()
    precision = pick_precision(run.spec["recipe"]["precision"], device)
    separator = tokenizer.sep_token_id if reads_pairs(run) else None

    def answer(cleaned: list[Text], **way: Any) -> np.ndarray:
        if cut := cut_texts(cleaned):
            print(cut, file=sys.stderr)
        ids, offsets = encode(cleaned, tokenizer, run.spec["data"]["max_length"])
        tokens = Tokens(ids, offsets, np.zeros(len(cleaned), dtype=np.int64), separator)
        logits = predict_logits(model, tokens, tokenizer.pad_token_id, device, precision, **way)
        if not np.isfinite(logits).all():
            raise InputError(
                f"Run {run.key} answers with numbers that are not finite, so its weights are damaged: delete {run.path} and "
                "train it again."
            )
        return softmax(logits, axis=1)

    return answer


def _cleaned(run: Run, texts: Sequence[Text]) -> list[Text]:
    """Texts, cleaned as the run's training texts were."""
    of_data = run.spec["data"]  # of an earlier version, it lacks later steps
    return clean_texts(texts, **{step: of_data.get(step, False) for step in CLEANING})


def predict(run: Run, texts: Sequence[Text], **way: Any) -> pd.DataFrame:
    """One row per text: ``text`` (and ``text_pair``), ``label, p_<label name>…``. Arguments: :func:`probabilities`."""
    names = run.spec["label_names"]
    p = probabilities(run, texts, **way)
    table = pd.DataFrame(list(texts), columns=["text", PAIR] if reads_pairs(run) else ["text"])
    table["label"] = [names[i] for i in p.argmax(axis=1)]
    return pd.concat([table, pd.DataFrame(p, columns=[f"p_{name}" for name in names])], axis=1)


def evaluate(run: Run, texts: Sequence[Text], labels: Sequence[str]) -> dict[str, Any]:
    """The scores of a run on labelled texts. Texts that the run has seen in training are scored apart from the others.

    labels: the name of each text's label. Texts are compared after they are cleaned as the run cleans its texts.

    Returns ``accuracy``, ``f1``, ``precision``, ``recall`` and ``confusion`` (as
    :func:`rtxlib.runs.metrics.classification_report`) of the ``n`` texts that the run has not seen; ``in_training`` and
    ``in_validation``, the numbers of texts that it was trained on and chosen on; and of these ``n_seen`` texts the same scores
    under names that end in ``_seen``. Scores of no texts are left out. ``overlap_checked`` is False when it is not known which
    texts the run has seen; then all texts count as unseen. ``drift`` (:func:`rtxlib.runs.drift.compare`) says how the unseen
    texts differ from those that the run was tested on; models of `rtx compare` have it.

    Raises InputError when there is no text, when the numbers of texts and labels differ, or for a label that the run does not
    know.
    """
    numbers, names = _label_numbers(run, texts, labels), run.spec["label_names"]
    cleaned = _cleaned(run, texts)
    p = _probabilities(run, cleaned)
    guesses = p.argmax(axis=1)
    found = seen.splits_of(run, cleaned)
    split = np.full(len(texts), "") if found is None else found
    unseen, counts = split == "", {name: int((split == name).sum()) for name in seen.SPLITS}
    scores: dict[str, Any] = {}
    if unseen.any():
        scores |= classification_report(numbers[unseen], guesses[unseen], names)
    scores |= {"n": int(unseen.sum()), "overlap_checked": found is not None}
    if found is not None:
        scores |= {"in_training": counts["train"], "in_validation": counts["validation"]}
    if not unseen.all():
        of_seen = classification_report(numbers[~unseen], guesses[~unseen], names) | {"n": int((~unseen).sum())}
        scores |= {f"{name}_seen": score for name, score in of_seen.items()}
    new = np.flatnonzero(unseen)
    if run.path is not None and (shift := drift.compare(run.path, [cleaned[row] for row in new], p[new])) is not None:
        scores["drift"] = shift
    return scores


def _label_numbers(run: Run, texts: Sequence[Text], labels: Sequence[str]) -> np.ndarray:
    """The number of each text's label, (texts,). Raises InputError as :func:`evaluate` does."""
    names = run.spec["label_names"]
    if not len(texts) or len(texts) != len(labels):
        raise InputError(
            f"There are {len(texts)} texts and {len(labels)} labels; give at least one text, each with its label."
        )
    unknown = sorted(set(labels) - set(names))
    if unknown:
        raise InputError(
            f"The run knows the labels {few(names, 12)}; the file also has {few(unknown)}."
        )
    return np.array([names.index(label) for label in labels])


def transfer(run: Run, to: DataSpec, data: Prepared, results: Path | None = None) -> pd.DataFrame:
    """The scores of a run on the whole test split of other data. They are computed once and kept in the run's folder.

    Returns one row: key, model, seed, trained_on, tested_on, accuracy, f1, precision, recall, n_test. Raises InputError when
    only the run's record is here and it was not tested on these texts.
    """
    label, fingerprint = data_label(to), data.fingerprint
    if run.path is None:
        kept = store.part(run, "evaluations", results)
        if not (kept["fingerprint"] == fingerprint).any():
            raise InputError(f"The scores of run {run.key} on these texts of {label} are not here; train it again.")
        return kept[kept["fingerprint"] == fingerprint]
    file = run.path / "evaluations.parquet"
    with store.changing(run):
        old = store.part(run, "evaluations") if file.is_file() else pd.DataFrame({"fingerprint": []})
        if not (old["fingerprint"] == fingerprint).any():
            rows = data.rows("test")
            texts = texts_of(rows)
            numbers = _label_numbers(run, texts, rows["label_name"].tolist())
            scores = classification_report(numbers, probabilities(run, texts).argmax(axis=1), run.spec["label_names"])
            scores.pop("confusion")
            new = {
                "key": run.key,
                "model": run.metrics["model"],
                "seed": run.metrics["seed"],
                "trained_on": run.metrics["data"],
                "tested_on": label,
                "fingerprint": fingerprint,
                "n_test": len(numbers),
                **scores,
            }
            old = pd.concat([old, pd.DataFrame([new])], ignore_index=True) if len(old) else pd.DataFrame([new])
            store.put(run, file.name, lambda path: store.write_table(path, old))
    return old[old["fingerprint"] == fingerprint]
