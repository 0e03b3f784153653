"""NB-SVM: a linear support vector machine over naive Bayes' log-count ratios (Wang and Manning 2012, ACL)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.svm import LinearSVC

from rtx.baselines.classical import WORDS, Fitted, Labelled, Terms, share_right

NAME = "nb-svm"
STRENGTHS = (0.01, 0.1, 1.0)  # C, the inverse of the L2 penalty
SMOOTHING = 1.0  # α, added to the count of each term
# β, the share of the support vector machine; the rest is naive Bayes. The paper takes 0.25 for two labels of equal frequency.
# With unequal ones, or with several machines, the means w̄ do not fit the biases, and a larger β is better (LOG.md).
INTERPOLATIONS = (0.25, 0.5, 1.0)


def fit(train: Labelled, validation: Labelled, classes: int) -> Fitted:
    """Words and word pairs, each counted once a text, times their log-count ratio, and a linear classifier.

    For a class with term counts p and the counts q of all other classes, r = log((p / ‖p‖₁) / (q / ‖q‖₁)). The machine is trained
    on f∘r, where f (terms,) is 0 or 1; its weights w become β·w + (1 − β)·w̄ with w̄ the mean of |w|. With more than two classes
    there is one machine for each, against the others. C of :data:`STRENGTHS` and β of :data:`INTERPOLATIONS` are those with the
    best validation accuracy, the smallest ones if several are equal. α is that of the paper.
    """
    terms = Terms(lambda: CountVectorizer(binary=True, **WORDS), train.texts)
    counts, unseen = terms(train.texts), terms(validation.texts)
    present = np.unique(train.labels)
    separated = present[1:] if len(present) == 2 else present  # of two classes one machine tells both
    ratios = np.stack([log_ratio(counts, train.labels == label) for label in separated], axis=1)  # (terms, machines)

    def machines(strength: float) -> tuple[np.ndarray, np.ndarray]:
        """The weights of f∘r (terms, machines) and the biases (machines,)."""
        svms = [
            LinearSVC(C=strength, dual=False).fit(counts.multiply(ratio).tocsr(), train.labels == label)
            for label, ratio in zip(separated, ratios.T, strict=True)
        ]
        return np.stack([svm.coef_[0] for svm in svms], axis=1), np.array([svm.intercept_[0] for svm in svms])

    def labels(counts: csr_matrix, weights: np.ndarray, biases: np.ndarray) -> np.ndarray:
        scores = counts @ weights + biases  # (rows, machines)
        return present[(scores[:, 0] > 0).astype(int) if len(separated) == 1 else scores.argmax(axis=1)]

    def tries() -> Iterator[tuple[float, dict[str, float], np.ndarray, np.ndarray]]:
        for strength in STRENGTHS:
            weights, biases = machines(strength)
            for share in INTERPOLATIONS:
                mixed = ratios * (share * weights + (1 - share) * np.abs(weights).mean(axis=0))
                yield share_right(labels(unseen, mixed, biases), validation.labels), {"C": strength, "beta": share}, mixed, biases

    right, chosen, weights, biases = max(tries(), key=lambda tried: tried[0])  # the first of equals
    return Fitted(lambda texts: labels(terms(texts), weights, biases), weights.size + biases.size, chosen, right)


def log_ratio(counts: csr_matrix, inside: np.ndarray) -> np.ndarray:
    """r (terms,) from counts (rows, terms): how much more frequent each term is in the rows ``inside``, as a logarithm."""
    p, q = (SMOOTHING + np.asarray(counts[rows].sum(axis=0), dtype=float).ravel() for rows in (inside, ~inside))
    return np.log(p / p.sum()) - np.log(q / q.sum())
