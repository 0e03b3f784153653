"""Logistic regression on vectors of texts. Its penalty and its class weights are chosen inside the training rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from safetensors.numpy import load_file, save_file
from scipy.special import softmax
from threadpoolctl import threadpool_limits

if TYPE_CHECKING:  # scikit-learn is imported where a model is fitted, because labelling a text needs none of it
    from sklearn.linear_model import LogisticRegression

STRENGTHS = (1.0, 10.0, 100.0)  # C, the inverse of the L2 penalty
HELD_OUT = 0.2  # of the training rows, to choose C on; with fewer than MANY rows three folds are held out in turn
MANY = 1000
STEPS = 300  # of the solver
NEVER = -30.0  # the bias of a label that no training row has


@dataclass(frozen=True)
class Linear:
    """Weights (features, labels) and bias (labels,) of a logistic regression; of two labels only those of the second."""

    weights: np.ndarray
    bias: np.ndarray

    @property
    def labels(self) -> int:
        return max(2, len(self.bias))

    def probabilities(self, vectors: np.ndarray) -> np.ndarray:
        """Probabilities (rows, labels) of dense or sparse vectors (rows, features)."""
        logits = np.asarray(vectors @ self.weights) + self.bias
        if logits.shape[1] == 1:
            logits = np.hstack([np.zeros_like(logits), logits])
        return softmax(logits.astype(np.float64), axis=1)

    def save(self, file: Path) -> None:
        save_file({"weights": np.ascontiguousarray(self.weights), "bias": np.ascontiguousarray(self.bias)}, file)

    @classmethod
    def load(cls, file: Path) -> Linear:
        return cls(**load_file(file))


def fit(
    vectors: np.ndarray,
    numbers: np.ndarray,
    labels: int,
    balanced: bool = False,
    strengths: Sequence[float] = STRENGTHS,
) -> Linear:
    """Fit a logistic regression.

    C is the value among ``strengths`` with the lowest log loss on held-out training rows. With ``balanced``, C and whether
    each class has the same weight are chosen together, by macro-F1.

    Args:
        vectors: (rows, features), dense or sparse
        numbers: (rows,) label numbers; one of ``labels`` may be absent, as in a fold of few rows
        labels: how many there are
        balanced: whether rare classes count as much as frequent ones
        strengths: values of C, the inverse of the L2 penalty
    """
    from sklearn.metrics import f1_score, log_loss

    present, compact = np.unique(numbers, return_inverse=True)
    if len(present) < labels:  # in a fold of few rows
        inner = fit(vectors, compact, len(present), balanced, strengths) if len(present) > 1 else None
        return _widened(inner, present, labels, vectors.shape[1])
    ways = [(strength, weight) for weight in ((None, "balanced") if balanced else (None,)) for strength in strengths]
    losses = np.zeros(len(ways))
    # One thread: the solver multiplies short vectors, and on a busy machine the threads of BLAS wait for each other (LOG.md).
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")  # of labels with a few rows each, and of solvers that are stopped
        for train, held in _held_out(numbers) if len(ways) > 1 else ():
            for way, (strength, weight) in enumerate(ways):
                p = _regression(strength, weight).fit(vectors[train], numbers[train]).predict_proba(vectors[held])
                if balanced:
                    losses[way] -= f1_score(numbers[held], p.argmax(axis=1), average="macro", zero_division=0)
                else:
                    losses[way] += log_loss(numbers[held], p, labels=np.arange(labels))
        best = _regression(*ways[int(losses.argmin())]).fit(vectors, numbers)
    return Linear(best.coef_.T.astype(np.float32), best.intercept_.astype(np.float32))


def _widened(inner: Linear | None, present: np.ndarray, labels: int, width: int) -> Linear:
    """A linear model of the labels that are present, with weights for all. An absent label has a vanishing probability."""
    weights, bias = np.zeros((width, labels), np.float32), np.full(labels, NEVER, np.float32)
    bias[present] = 0
    if inner is not None and len(inner.bias) == 1:  # of two labels
        weights[:, present[1]], bias[present[1]] = inner.weights[:, 0], inner.bias[0]
    elif inner is not None:
        weights[:, present], bias[present] = inner.weights, inner.bias
    return Linear(weights, bias)


def _regression(strength: float, weight: str | None) -> LogisticRegression:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=strength, class_weight=weight, max_iter=STEPS)


def _held_out(numbers: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows to fit on and rows to judge on. An empty list where some class is too rare to be on both sides."""
    from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit

    counts = np.bincount(numbers)
    rows = np.zeros((len(numbers), 1))
    if len(numbers) < MANY:
        folds = min(3, counts.min())
        return list(StratifiedKFold(folds, shuffle=True, random_state=0).split(rows, numbers)) if folds > 1 else []
    if counts.min() < 2 or HELD_OUT * len(numbers) < len(counts):
        return []
    return list(StratifiedShuffleSplit(1, test_size=HELD_OUT, random_state=0).split(rows, numbers))
