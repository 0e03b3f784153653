"""What the classifiers without a neural network share: counted terms, a fit, and the record of its scores."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, hstack

from rtx.classifiers.words import WORD
from rtxlib.data.rows import Text, one_side, sides
from rtxlib.errors import InputError
from rtxlib.runs.metrics import classification_report

WORDS = {"ngram_range": (1, 2), "token_pattern": WORD, "lowercase": True}  # of a vectoriser: words and word pairs


class Labelled(NamedTuple):
    """The texts, or pairs of texts, of a split, and their labels: integers (rows,)."""

    texts: Sequence[Text]
    labels: np.ndarray


@dataclass(frozen=True)
class Fitted:
    """A classifier after training, with the settings that the validation rows chose."""

    predict: Callable[[Sequence[Text]], np.ndarray]  # texts → labels (rows,)
    parameters: int  # weights and biases
    chosen: dict[str, float]  # column of the record → value
    validation_accuracy: float


Fit = Callable[[Labelled, Labelled, int], Fitted]  # training rows, validation rows, number of classes → classifier


class Terms:
    """Counts the terms of texts with a scikit-learn vectoriser; of pairs, one for the first and one for the second texts."""

    def __init__(self, vectoriser: Callable[[], Any], texts: Sequence[Text]) -> None:
        """vectoriser: makes a new one. texts: of training. Raises InputError when they hold no words."""
        self.vectorisers = [vectoriser() for _ in sides(texts[0])]
        try:
            for side, words in enumerate(self.vectorisers):
                words.fit(one_side(texts, side))
        except ValueError as error:  # scikit-learn's "empty vocabulary"
            raise InputError("The training texts hold no words, only signs.") from error

    def __call__(self, texts: Sequence[Text]) -> csr_matrix:
        """The terms of each row: (rows, terms)."""
        parts = [words.transform(one_side(texts, side)) for side, words in enumerate(self.vectorisers)]
        return hstack(parts, format="csr")


def share_right(predictions: np.ndarray, labels: np.ndarray) -> float:
    """The share of labels (rows,) that were predicted."""
    return float(np.mean(predictions == labels))


def checked(labels: np.ndarray, split: str) -> np.ndarray:
    """The labels as integers (rows,). Raises InputError when there are none."""
    if len(labels) == 0:
        raise InputError(f"The {split} split has no rows; a baseline needs at least one.")
    return np.asarray(labels, dtype=np.int64)


def record(
    name: str, fit: Fit, train: Labelled, validation: Labelled, test: Labelled, label_names: Sequence[str]
) -> dict:
    """Train a classifier and score it on the test rows.

    Returns ``model`` (its name), ``family``, the scores of :func:`rtxlib.runs.metrics.classification_report` on the test rows,
    ``validation_accuracy``, the settings that were chosen, ``seconds`` (counting, all fits and the choice), ``parameters``,
    ``ms_per_text`` (all test rows at once) and ``predictions``, (test rows,) int64.

    Raises ``InputError`` when a split is empty, when the training labels are of one class, when the training texts hold no words,
    or when the numbers of texts and labels differ.
    """
    for split, (texts, labels) in (("training", train), ("validation", validation), ("test", test)):
        if len(texts) != len(checked(labels, split)):
            raise InputError(f"The {split} split has {len(texts)} texts but {len(labels)} labels.")
    if len(np.unique(train.labels)) < 2:
        raise InputError("The training labels are all of one class; a classifier needs at least two.")
    start = time.perf_counter()
    fitted = fit(train, validation, len(label_names))
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    predictions = fitted.predict(test.texts).astype(np.int64)
    return {
        "model": name,
        "family": "classical",
        **classification_report(test.labels, predictions, label_names),
        "validation_accuracy": fitted.validation_accuracy,
        **fitted.chosen,
        "seconds": seconds,
        "parameters": fitted.parameters,
        "ms_per_text": 1000 * (time.perf_counter() - start) / len(test.texts),
        "predictions": predictions,
    }
