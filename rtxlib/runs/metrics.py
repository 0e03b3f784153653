"""Accuracy, F1, precision, recall and the confusion matrix, from integer labels and predictions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from rtxlib.errors import InputError, nearest


def confusion_matrix(labels: np.ndarray, predictions: np.ndarray, classes: int) -> np.ndarray:
    """Counts of rows by true class and predicted class, shape (classes, classes), rows = truth.

    ``labels`` and ``predictions`` are integers in ``[0, classes)``, shape (rows,). Raises ``InputError`` when they
    differ in length, are empty, or hold a class outside the range.
    """
    labels, predictions = np.asarray(labels, dtype=np.int64), np.asarray(predictions, dtype=np.int64)
    if labels.ndim != 1 or labels.shape != predictions.shape:
        raise InputError(
            f"Labels have shape {labels.shape} and predictions {predictions.shape}; give one number a row in both."
        )
    if labels.size == 0:
        raise InputError("There are no rows to evaluate; give at least one labelled row.")
    low, high = min(labels.min(), predictions.min()), max(labels.max(), predictions.max())
    if low < 0 or high >= classes:
        raise InputError(f"Class numbers run from {low} to {high} but there are {classes} label names.")
    return np.bincount(labels * classes + predictions, minlength=classes * classes).reshape(classes, classes)


def classification_report(labels: np.ndarray, predictions: np.ndarray, label_names: Sequence[str]) -> dict:
    """``accuracy``, ``f1``, ``precision``, ``recall`` (all 0..1) and ``confusion`` (list of lists, rows = truth).

    With two label names the last three are those of the second class (index 1, "positive"); with more they are macro
    means over all the named classes. A ratio whose denominator is zero counts as 0. Shapes and errors are those of
    :func:`confusion_matrix`.
    """
    confusion = confusion_matrix(labels, predictions, len(label_names))
    hits, truths, guesses = confusion.diagonal(), confusion.sum(axis=1), confusion.sum(axis=0)
    precision = hits / np.maximum(guesses, 1)
    recall = hits / np.maximum(truths, 1)
    f1 = 2 * hits / np.maximum(truths + guesses, 1)
    chosen = [1] if len(label_names) == 2 else slice(None)
    return {
        "accuracy": float(hits.sum() / confusion.sum()),
        "f1": float(f1[chosen].mean()),
        "precision": float(precision[chosen].mean()),
        "recall": float(recall[chosen].mean()),
        "confusion": confusion.tolist(),
    }


def confusion_counts(
    predictions: pd.DataFrame, label_names: Sequence[str], by: Sequence[str] = ("model",)
) -> pd.DataFrame:
    """Confusion matrices as a tidy table: ``by…, truth, prediction, rows``, seeds pooled, empty pairs counted as 0.

    ``predictions`` holds one row a text and run with the integer columns ``label`` and ``prediction``, and the
    ``by`` columns. Raises ``InputError`` for a missing column or a class without a name.
    """
    for column in (*by, "label", "prediction"):
        if column not in predictions:
            raise InputError(f"The predictions have no column '{column}'.{nearest(column, predictions.columns)}")
    parts = []
    for group, part in predictions.groupby(list(by), sort=False):
        counts = confusion_matrix(part["label"], part["prediction"], len(label_names))
        parts += [
            {**dict(zip(by, group, strict=True)), "truth": truth, "prediction": guess, "rows": int(counts[i, j])}
            for i, truth in enumerate(label_names)
            for j, guess in enumerate(label_names)
        ]
    return pd.DataFrame(parts, columns=[*by, "truth", "prediction", "rows"])
