"""Accuracy, F1, precision, recall and the confusion matrix, from integer labels and predictions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from rtxlib.errors import InputError, nearest


def classification_report(labels: np.ndarray, predictions: np.ndarray, label_names: Sequence[str]) -> dict:
    """``accuracy``, ``f1``, ``precision``, ``recall`` (all 0..1) and ``confusion`` (list of lists, rows = truth).

    With two label names, F1, precision and recall are those of the second class (index 1, "positive"). With more they are
    macro means over all the named classes. A ratio whose denominator is zero counts as 0.

    labels, predictions: integers in ``[0, len(label_names))``, (rows,). Raises ``InputError`` when they differ in length, are
    empty, or hold a class outside that range.
    """
    from sklearn.metrics import accuracy_score, confusion_matrix, precision_recall_fscore_support

    classes = range(len(label_names))
    labels, predictions = _checked(labels, predictions, len(label_names))
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


def confusion_counts(
    predictions: pd.DataFrame, label_names: Sequence[str], by: Sequence[str] = ("model",)
) -> pd.DataFrame:
    """Confusion matrices as a tidy table: ``by…, truth, prediction, rows``. Seeds are pooled, and empty pairs count as 0.

    ``predictions`` holds one row per text and run, with the integer columns ``label`` and ``prediction`` and the ``by``
    columns. Raises ``InputError`` for a missing column or a class without a name.
    """
    from sklearn.metrics import confusion_matrix

    for column in (*by, "label", "prediction"):
        if column not in predictions:
            raise InputError(f"The predictions have no column '{column}'.{nearest(column, predictions.columns)}")
    parts = []
    for group, part in predictions.groupby(list(by), sort=False):
        checked = _checked(part["label"], part["prediction"], len(label_names))
        counts = confusion_matrix(*checked, labels=range(len(label_names)))
        parts += [
            {**dict(zip(by, group, strict=True)), "truth": truth, "prediction": guess, "rows": int(counts[i, j])}
            for i, truth in enumerate(label_names)
            for j, guess in enumerate(label_names)
        ]
    return pd.DataFrame(parts, columns=[*by, "truth", "prediction", "rows"])


def _checked(labels: np.ndarray, predictions: np.ndarray, classes: int) -> tuple[np.ndarray, np.ndarray]:
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
