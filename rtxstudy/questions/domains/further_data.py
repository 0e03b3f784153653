"""Encoders on further data: beside the best classical baseline, and tested on the data of one another."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.metrics import f1_score

from rtx.baselines.counting_words import best
from rtxstudy.comparisons import against_fit
from rtxstudy.finished import Runs
from rtxstudy.statistics import summarise


def against_best_words(runs: Runs, counting: pd.DataFrame) -> pd.DataFrame:
    """The accuracy of the runs minus that of the classical baseline with the best validation accuracy: one row.

    ``counting``: as :meth:`rtxstudy.study.Study.counting_words` gives it on the same data. The baseline's single fit is paired
    with every seed. Columns: those of :func:`rtxstudy.comparisons.compare`, without ``low_without``.
    """
    return pd.DataFrame([against_fit(runs, best(counting))])


def macro_f1(runs: Runs, counting: pd.DataFrame) -> pd.DataFrame:
    """The mean of both classes' F1 for every run and every classical baseline, beside the accuracy; for tasks of two classes.

    Where the test set has more texts of one class, accuracy rewards a model that prefers this class, and macro-F1 does not.
    Columns: ``data, model, seed, accuracy, macro_f1``; the baselines have seed 0.
    """
    answers = runs.part("predictions")[["key", "row", "label", "prediction"]]
    predictions = answers.merge(runs.table[["key", "model", "seed", "data", "accuracy"]], on="key")
    rows = []
    for name, part in predictions.groupby(["data", "model", "seed", "accuracy"], sort=False):
        rows.append((*name, f1_score(part["label"], part["prediction"], average="macro")))
    labels = part.sort_values("row")["label"].to_numpy()  # of the same test texts in every run
    for words in counting.to_dict("records"):
        guessed = np.where(np.asarray(words["correct"], dtype=bool), labels, 1 - labels)
        score = f1_score(labels, guessed, average="macro")
        rows.append((runs[0].metrics["data"], words["model"], 0, words["accuracy"], score))
    return pd.DataFrame(rows, columns=["data", "model", "seed", "accuracy", "macro_f1"])


def scores(table: pd.DataFrame) -> pd.DataFrame:
    """Means over seeds of :func:`macro_f1`: ``data, model, accuracy, low, high, macro_f1, n``, best accuracy first."""
    by = ["data", "model"]
    means = summarise(table, by).rename(columns={"mean": "accuracy"})
    means["macro_f1"] = summarise(table, by, "macro_f1")["mean"]
    order = means.sort_values(["data", "accuracy"], ascending=[True, False], kind="stable")
    return order[[*by, "accuracy", "low", "high", "macro_f1", "n"]].reset_index(drop=True)

