"""Baselines without a neural network, for every accuracy table: the majority class, and classifiers that count terms."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from rtx.baselines import embedding_bag, nb_svm
from rtx.baselines.classical import WORDS, Fit, Fitted, Labelled, Terms, checked, one_side, record, share_right
from rtxlib.data.prepare import Prepared
from rtxlib.data.rows import Text
from rtxlib.errors import InputError
from rtxlib.memory import require_memory
from rtxlib.runs.metrics import classification_report

MAJORITY = "majority class"
NAME = "tf-idf + logistic regression"
SECOND_ALONE = f"{NAME}, second text alone"
STRENGTHS = (1.0, 3.0, 10.0)  # of logistic regression: C, the inverse of the L2 penalty
WEIGHT_BYTES = 200  # of memory for each weight of a logistic regression: L-BFGS keeps ten pairs of vectors
VERSION = 3  # of the table of counting_words; raise it when a classifier is added or changed
SHOWN = (
    "model", "family", "accuracy", "f1", "precision", "recall", "validation_accuracy", "parameters", "ms_per_text", "seconds",
    "C", "beta", "learning_rate", "epochs",
)  # fmt: skip


def tf_idf(train: Labelled, validation: Labelled, classes: int) -> Fitted:
    """TF-IDF of words and word pairs with logistic regression: a linear classifier that sees word order only within pairs.

    Term counts are sublinear, 1 + log(count). C is the value among :data:`STRENGTHS` with the best validation accuracy, the
    smallest one if several are equal. Wang and Manning (2012), ACL, show how strong such a baseline is. Of pairs of texts the
    terms of the first and of the second text are counted apart.
    """
    terms = Terms(lambda: TfidfVectorizer(sublinear_tf=True, **WORDS), train.texts)
    counts, unseen = terms(train.texts), terms(validation.texts)
    rows = classes if classes > 2 else 1
    require_memory(WEIGHT_BYTES * rows * counts.shape[1], "Counting words", "give fewer labels or shorter texts")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn takes hundreds of labels with a few rows each for a mistake
        fits = [LogisticRegression(C=strength, max_iter=1000).fit(counts, train.labels) for strength in STRENGTHS]
    right = [share_right(fit.predict(unseen), validation.labels) for fit in fits]
    best = int(np.argmax(right))
    size = fits[best].coef_.size + fits[best].intercept_.size
    return Fitted(lambda texts: fits[best].predict(terms(texts)), size, {"C": STRENGTHS[best]}, right[best])


FITS: dict[str, Fit] = {NAME: tf_idf, nb_svm.NAME: nb_svm.fit, embedding_bag.NAME: embedding_bag.fit}


def counting_words(data: Prepared, tested_on: Prepared | None = None) -> pd.DataFrame:
    """Classifiers without a neural network, trained on these data: one row for the majority class and one for each of FITS.

    Of pairs there is a further row, :data:`SECOND_ALONE`: TF-IDF without the first texts. In inference data the second text, the
    hypothesis, gives much of the label away (Gururangan et al. 2018).

    tested_on: the data whose test split is used; None: that of ``data``. The columns model, family, seed, accuracy, f1,
    precision, recall, parameters, ms_per_text and n_test are those of :func:`rtxlib.runs.store.runs_table`. Further columns are
    validation_accuracy, by which :func:`best` chooses; seconds; C, beta, learning_rate and epochs, which the validation rows
    chose; and ``correct``: booleans (test rows,), the test rows that were classified correctly. Raises InputError when the two
    data sets have different labels.
    """
    judge = tested_on or data
    if judge.label_names != data.label_names:
        raise InputError(
            f"A classifier of {', '.join(data.label_names)} cannot be judged by {', '.join(judge.label_names)}."
        )
    source = {"train": data, "validation": data, "test": judge}
    train, validation, test = (
        Labelled(prepared.texts(split), np.array(prepared.splits[split].labels)) for split, prepared in source.items()
    )
    rows = [majority(train.labels, test.labels, data.label_names, validation.labels)]
    rows += [record(name, fit, train, validation, test, data.label_names) for name, fit in FITS.items()]
    if not isinstance(train.texts[0], str):
        seconds = (Labelled(one_side(part.texts, 1), part.labels) for part in (train, validation, test))
        rows.append(record(SECOND_ALONE, tf_idf, *seconds, data.label_names))
    return pd.DataFrame([{name: row.get(name) for name in SHOWN} for row in rows]).assign(
        seed=0, n_test=len(test.labels), correct=[row["predictions"] == test.labels for row in rows]
    )


def best(table: pd.DataFrame) -> pd.Series:
    """The row of :func:`counting_words` with the best validation accuracy, the first one if several are equal.

    A table of version 1 has no validation accuracies; its row is that of :data:`NAME`.
    """
    known = table["validation_accuracy"] if "validation_accuracy" in table else pd.Series(np.nan, table.index)
    if known.isna().all():
        return table[table["model"] == NAME].iloc[0]
    return table.loc[known.idxmax()]


def majority(
    train_labels: np.ndarray,
    test_labels: np.ndarray,
    label_names: Sequence[str],
    validation_labels: np.ndarray | None = None,
) -> dict[str, Any]:
    """The most frequent training label, given to every test row.

    The keys are those of :func:`baseline`, without ``C`` and ``ms_per_text``.
    """
    start = time.perf_counter()
    winner = int(np.bincount(checked(train_labels, "training"), minlength=len(label_names)).argmax())
    predictions = np.full(len(test_labels), winner, dtype=np.int64)
    return {
        "model": MAJORITY,
        "family": "classical",
        **classification_report(test_labels, predictions, label_names),
        "validation_accuracy": np.nan if validation_labels is None else float(np.mean(validation_labels == winner)),
        "seconds": time.perf_counter() - start,
        "parameters": 0,
        "predictions": predictions,
    }


def baseline(
    train_texts: Sequence[Text],
    train_labels: np.ndarray,
    test_texts: Sequence[Text],
    test_labels: np.ndarray,
    validation_texts: Sequence[Text],
    validation_labels: np.ndarray,
    label_names: Sequence[str],
) -> dict[str, Any]:
    """:func:`tf_idf` on texts and labels: the record and the errors of :func:`rtx.baselines.classical.record`.

    Labels are integers, (rows,).
    """
    train, test = Labelled(train_texts, train_labels), Labelled(test_texts, test_labels)
    return record(NAME, tf_idf, train, Labelled(validation_texts, validation_labels), test, label_names)
