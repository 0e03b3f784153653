"""Accuracy, F1, precision, recall and the confusion matrix, from integer labels and predictions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rtxlib.errors import InputError


def classification_report(labels: np.ndarray, predictions: np.ndarray, label_names: Sequence[str]) -> dict:
    """``accuracy``, ``f1``, ``precision``, ``recall`` (all 0..1) and ``confusion`` (list of lists, rows = truth).

    With two label names, F1, precision and recall are those of the second class (index 1, "positive"). With more they are
    macro means over all the named classes. A ratio whose denominator is zero counts as 0.

    labels, predictions: integers in ``[0, len(label_names))``, (rows,). Raises ``InputError`` when they differ in length, are
    empty, or hold a class outside that range.
    """
    from sklearn.metrics import accuracy_score, confusion_matrix, precision_recall_fscore_support

    classes = range(len(label_names))
    labels, predictions = checked(labels, predictions, len(label_names))
    scores = precision_recall_fscore_support(labels, predictions, labels=classes, zero_division=0)
    chosen = [1] if len(label_names) == 2 else slice(None)
    precision, recall, f1 = (float(score[chosen].mean()) for score in scores[:3])
    return {
        "accuracy": float(accuracy_score(labels, predictions)),
        "f1": f1,
        "precision": precision,
        "recall": recall,
        "confusion": confusion_matrix(labels, predictions, labels=classes).tolist(),
    }


def checked(labels: np.ndarray, predictions: np.ndarray, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels and predictions as integer arrays (rows,). scikit-learn would leave out classes that have no name."""
    labels, predictions = np.asarray(labels, dtype=np.int64), np.asarray(predictions, dtype=np.int64)
    if labels.ndim != 1 or labels.shape != predictions.shape:
        raise InputError(
            f"Labels have shape {labels.shape} and predictions {predictions.shape}; give one number per row in both."
        )
    if labels.size == 0:
        raise InputError("There are no rows to evaluate; give at least one labelled row.")
    low, high = min(labels.min(), predictions.min()), max(labels.max(), predictions.max())
    if low < 0 or high >= classes:
        raise InputError(f"Class numbers run from {low} to {high} but there are {classes} label names.")
    return labels, predictions
