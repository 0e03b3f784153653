"""Use a trained run: labels and probabilities of new texts, and scores on other data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from rtx import archive
from rtxlib import checksums
from rtxlib.data.prepare import Prepared
from rtxlib.data.rows import PAIR, Text, texts_of
from rtxlib.data.spec import DataSpec
from rtxlib.errors import InputError, few
from rtxlib.models import EarlyExit
from rtxlib.runs import seen, store, trained
from rtxlib.runs.metrics import classification_report
from rtxlib.runs.spec import data_label
from rtxlib.runs.store import Run

if TYPE_CHECKING:
    from rtx.classifiers.folder import Classifier


def probabilities(run: Run, texts: Sequence[Text], **way: Any) -> np.ndarray:
    """As :func:`rtxlib.runs.trained.probabilities`, also of a classifier that is no network."""
    return opened(run)(texts, **way)


def is_classifier(run: Run) -> bool:
    """Whether a run's folder holds a classifier that is no network (:mod:`rtx.classifiers`), as `rtx compare` leaves it."""
    return run.path is not None and (run.path / store.CLASSIFIER).is_file()


def early_exit(written: str) -> EarlyExit:
    """The early exit that is written as "confidence:0.9". Raises InputError for anything else."""
    criterion, _, threshold = written.partition(":")
    try:
        number = float(threshold)
    except ValueError:
        raise InputError(f"An early exit is written criterion:threshold (confidence:0.9), not '{written}'.") from None
    return EarlyExit(criterion, number)


def opened(run: Run) -> Callable[..., np.ndarray]:
    """The function :func:`probabilities` of a run that is opened once, to be called many times with ``texts`` and ``way``."""
    answer = _answerer(run)
    return lambda texts, **way: answer(trained.cleaned(run, texts), **way)


def classifier_of(run: Run) -> Classifier:
    """The classifier in a run's folder. Raises InputError when a file of it is not as it was written."""
    from rtx.classifiers.folder import load  # here, because networks need none of them

    with checksums.unchanged(run.path):
        store.verify(run, lambda name: name != store.CARD)
        classifier = load(run.path)
    if classifier.labels != (named := len(run.spec["label_names"])):
        what = f"spec.json has {named} labels, and the classifier tells {classifier.labels} apart"
        raise store.damaged(run.key, run.path, what)
    return classifier


def _answerer(run: Run) -> Callable[..., np.ndarray]:
    """The probabilities (texts, labels) of cleaned texts, as a function that holds the model."""
    return classifier_of(run).probabilities if is_classifier(run) else trained.answerer(run)


def predict(run: Run, texts: Sequence[Text], **way: Any) -> pd.DataFrame:
    """One row per text: ``text`` (and ``text_pair``), ``label, p_<label name>…``. Arguments: :func:`probabilities`."""
    names = run.spec["label_names"]
    p = probabilities(run, texts, **way)
    table = pd.DataFrame(list(texts), columns=["text", PAIR] if run.pairs else ["text"])
    table["label"] = [names[i] for i in p.argmax(axis=1)]
    return pd.concat([table, pd.DataFrame(p, columns=[f"p_{name}" for name in names])], axis=1)


def evaluate(run: Run, texts: Sequence[Text], labels: Sequence[str]) -> dict[str, Any]:
    """The scores of a run on labelled texts. Texts that the run has seen in training are scored apart from the others.

    labels: the name of each text's label. Texts are compared after they are cleaned as the run cleans its texts.

    Returns ``accuracy``, ``f1``, ``precision``, ``recall`` and ``confusion`` (as
    :func:`rtxlib.runs.metrics.classification_report`) of the ``n`` texts that the run has not seen; ``in_training`` and
    ``in_validation``, the numbers of texts that it was trained on and chosen on; and of these ``n_seen`` texts the same scores
    under names that end in ``_seen``. Scores of no texts are left out. ``overlap_checked`` is False when it is not known which
    texts the run has seen; then all texts count as unseen. ``drift`` (:func:`rtx.drift.compare`) says how the unseen
    texts differ from those that the run was tested on, where these are known on this machine.

    Raises InputError when there is no text, when the numbers of texts and labels differ, or for a label that the run does not
    know.
    """
    from rtx import drift  # here, because a prediction needs no counted words

    numbers, names = _label_numbers(run, texts, labels), run.spec["label_names"]
    cleaned = trained.cleaned(run, texts)
    p = _answerer(run)(cleaned)
    guesses = p.argmax(axis=1)
    splits = seen.splits_of(run, cleaned)
    split = np.full(len(texts), "") if splits is None else splits
    unseen, counts = split == "", {name: int((split == name).sum()) for name in seen.SPLITS}
    scores: dict[str, Any] = {}
    if unseen.any():
        scores |= classification_report(numbers[unseen], guesses[unseen], names)
    scores |= {"n": int(unseen.sum()), "overlap_checked": splits is not None}
    if splits is not None:
        scores |= {"in_training": counts["train"], "in_validation": counts["validation"]}
    if not unseen.all():
        of_seen = classification_report(numbers[~unseen], guesses[~unseen], names) | {"n": int((~unseen).sum())}
        scores |= {f"{name}_seen": score for name, score in of_seen.items()}
    new = np.flatnonzero(unseen)
    if (shift := drift.compare(run, [cleaned[row] for row in new], p[new])) is not None:
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
        earlier = archive.part(run, "evaluations", results)
        if not (earlier["fingerprint"] == fingerprint).any():
            raise InputError(f"The scores of run {run.key} on these texts of {label} are not here; train it again.")
        return earlier[earlier["fingerprint"] == fingerprint]
    file = run.path / "evaluations.parquet"
    with archive.changing(run):
        old = archive.part(run, "evaluations") if file.is_file() else pd.DataFrame({"fingerprint": []})
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
            archive.put(run, file.name, lambda path: store.write_table(path, old))
    return old[old["fingerprint"] == fingerprint]
