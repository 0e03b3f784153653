"""NB-SVM: a linear support vector machine over naive Bayes' log-count ratios (Wang and Manning 2012, ACL)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.svm import LinearSVC

from rtxlib.data.rows import Text
from rtxlib.runs.classical import WORDS, Fitted, Labelled, Terms, share_right

NAME = "nb-svm"
STRENGTHS = (0.01, 0.1, 1.0)  # C, the inverse of the L2 penalty
SMOOTHING = 1.0  # α, added to the count of each term
INTERPOLATION = 0.25  # β, the share of the support vector machine; the rest is naive Bayes


def fit(train: Labelled, validation: Labelled, classes: int) -> Fitted:
    """Words and word pairs, each counted once a text, times their log-count ratio, and a linear classifier.

    For a class with term counts p and the counts q of all other classes, r = log((p / ‖p‖₁) / (q / ‖q‖₁)). The machine is trained
    on f∘r, where f (terms,) is 0 or 1; its weights w become β·w + (1 − β)·w̄ with w̄ the mean of |w|. With more than two classes
    there is one machine for each, against the others. C is the value of :data:`STRENGTHS` with the best validation accuracy, the
    smallest one if several are equal. α and β are those of the paper.
    """
    terms = Terms(lambda: CountVectorizer(binary=True, **WORDS), train.texts)
    counts, unseen = terms(train.texts), terms(validation.texts)
    present = np.unique(train.labels)
    told = present[1:] if len(present) == 2 else present  # of two classes one machine tells both
    ratios = [log_ratio(counts, train.labels == label) for label in told]

    def machines(strength: float) -> tuple[np.ndarray, np.ndarray]:
        """The weights (terms, machines) and biases (machines,)."""
        weights, biases = [], []
        for label, ratio in zip(told, ratios, strict=True):
            machine = LinearSVC(C=strength, dual=False).fit(counts.multiply(ratio).tocsr(), train.labels == label)
            w = machine.coef_[0]
            weights.append(ratio * (INTERPOLATION * w + (1 - INTERPOLATION) * np.abs(w).mean()))
            biases.append(machine.intercept_[0])
        return np.stack(weights, axis=1), np.array(biases)

    def labels(counts: csr_matrix, weights: np.ndarray, biases: np.ndarray) -> np.ndarray:
        scores = counts @ weights + biases  # (rows, machines)
        return present[(scores[:, 0] > 0).astype(int) if len(told) == 1 else scores.argmax(axis=1)]

    fits = [machines(strength) for strength in STRENGTHS]
    right = [share_right(labels(unseen, *each), validation.labels) for each in fits]
    best = int(np.argmax(right))

    def predict(texts: Sequence[Text]) -> np.ndarray:
        return labels(terms(texts), *fits[best])

    return Fitted(predict, sum(part.size for part in fits[best]), {"C": STRENGTHS[best]}, right[best])


def log_ratio(counts: csr_matrix, inside: np.ndarray) -> np.ndarray:
    """r (terms,) from counts (rows, terms): how much more frequent each term is in the rows ``inside``, as a logarithm."""
    p, q = (SMOOTHING + np.asarray(counts[rows].sum(axis=0), dtype=float).ravel() for rows in (inside, ~inside))
    return np.log(p / p.sum()) - np.log(q / q.sum())
