"""Which labels are taken for which: confusion matrices of several runs as one table."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from rtxlib.errors import InputError, nearest
from rtxlib.runs.metrics import checked


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
        numbers = checked(part["label"], part["prediction"], len(label_names))
        counts = confusion_matrix(*numbers, labels=range(len(label_names)))
        parts += [
            {**dict(zip(by, group, strict=True)), "truth": truth, "prediction": guess, "rows": int(counts[i, j])}
            for i, truth in enumerate(label_names)
            for j, guess in enumerate(label_names)
        ]
    return pd.DataFrame(parts, columns=[*by, "truth", "prediction", "rows"])
