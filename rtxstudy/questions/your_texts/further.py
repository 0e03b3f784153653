"""What the report shows besides the scores: calibration, mistakes, doubtful labels, words, and what a loop's passes change."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from rtx.classifiers.network import Network
from rtx.classifiers.words import WordCounts
from rtxlib.data.rows import PAIR
from rtxstudy.questions.your_texts.candidates import MAJORITY
from rtxstudy.questions.your_texts.finished_candidates import Entry
from rtxstudy.questions.your_texts.rows import RAW
from rtxstudy.questions.your_texts.texts import Texts

BINS = 10  # of the calibration
MOST_SHOWN = 12  # texts of a table
MOST_CLASSES = 8  # labels whose words are shown
WORDS_EACH = 8  # of each label
LEAST_SURE = 0.5  # a doubtful label has less than this share of the mean probability that texts of its label give it
SURE = 0.75  # the probability of the other label, at least; weak models are sure of nothing


def calibration(texts: Texts, p: np.ndarray, rows: np.ndarray) -> pd.DataFrame:
    """Columns confidence, accuracy, rows: texts in bins of their largest probability, empty bins left out."""
    sure, right = p.max(axis=1), p.argmax(axis=1) == texts.numbers(rows)
    place = np.minimum((sure * BINS).astype(int), BINS - 1)
    table = pd.DataFrame({"bin": place, "confidence": sure, "accuracy": right, "rows": 1})
    return table.groupby("bin").agg({"confidence": "mean", "accuracy": "mean", "rows": "sum"}).reset_index(drop=True)


def confusion(texts: Texts, p: np.ndarray, rows: np.ndarray) -> pd.DataFrame:
    """Columns truth, prediction, rows: counts of all pairs of labels."""
    counts = np.zeros((len(texts.label_names),) * 2, int)
    np.add.at(counts, (texts.numbers(rows), p.argmax(axis=1)), 1)
    pairs = [(a, b, counts[i, j]) for i, a in enumerate(texts.label_names) for j, b in enumerate(texts.label_names)]
    return pd.DataFrame(pairs, columns=["truth", "prediction", "rows"])


def mistakes(texts: Texts, p: np.ndarray, rows: np.ndarray) -> pd.DataFrame:
    """The wrong answers of which the model was surest: columns text, label, answer, confidence, line."""
    answers, sure = p.argmax(axis=1), p.max(axis=1)
    wrong = np.flatnonzero(answers != texts.numbers(rows))
    chosen = wrong[np.argsort(-sure[wrong], kind="stable")][:MOST_SHOWN]
    return _table(texts, rows[chosen], answers[chosen], sure[chosen])


def doubtful_labels(texts: Texts, entries: Mapping[str, Entry]) -> pd.DataFrame:
    """Labels that are probably wrong: all models that learned agree, with confidence, on another label.

    The probabilities are those of models that have not seen the text, averaged. As in confident learning (Northcutt et al. 2021),
    a label is doubtful where another label has more than the mean probability that texts of that other label have, and its own
    has less than half of the mean of its own. The probability of the other label must also be :data:`SURE`.
    """
    names = [name for name in entries if name != MAJORITY]
    rows = np.concatenate([texts.judged, texts.rows("test")])
    if not names:
        return _table(texts, rows[:0], rows[:0], np.empty(0))
    each = [np.concatenate([entries[name].judged, entries[name].test]) for name in names]
    p, numbers, labels = np.mean(each, axis=0), texts.numbers(rows), len(texts.label_names)
    usual = np.array(
        [p[numbers == label, label].mean() if (numbers == label).any() else 1.0 for label in range(labels)]
    )
    answers = p.argmax(axis=1)
    agreed = np.all([one.argmax(axis=1) == answers for one in each], axis=0)
    label_p = p[np.arange(len(rows)), numbers]
    sure = p.max(axis=1) >= np.maximum(SURE, usual[answers] - 1e-9)
    doubt = (answers != numbers) & agreed & sure & (label_p < LEAST_SURE * usual[numbers])
    chosen = np.flatnonzero(doubt)
    chosen = chosen[np.argsort(label_p[chosen], kind="stable")][:MOST_SHOWN]
    return _table(texts, rows[chosen], answers[chosen], p.max(axis=1)[chosen])


def _table(texts: Texts, rows: np.ndarray, answers: np.ndarray, sure: np.ndarray) -> pd.DataFrame:
    part = texts.table.iloc[rows]
    beginnings = {column: part[RAW[column]].str.slice(0, 400).to_numpy() for column in texts.text_columns}
    named = {"text": "first text", PAIR: "second text"} if texts.pairs else {"text": "text"}
    return pd.DataFrame(
        {
            **{named[column]: values for column, values in beginnings.items()},
            "label": [texts.label_names[number] for number in part["label"]],
            "answer": [texts.label_names[number] for number in answers],
            "confidence": np.round(sure, 2),
            "line": [line if line > 0 else f"{-line} of the test file" for line in part["line"]],
        }
    )


def telling_words(texts: Texts, words: WordCounts) -> pd.DataFrame:
    """The words that speak most for each label. Of many labels the most frequent are shown.

    Columns label and words; of pairs label, first text and second text.
    """
    weights = words.linear.weights * words.idf[:, None]
    if weights.shape[1] == 1:
        weights = np.hstack([-weights, weights])
    frequent = texts.table["label"].value_counts().index[:MOST_CLASSES]
    table, start = {"label": [texts.label_names[label] for label in sorted(frequent)]}, 0
    for name, side in zip(("first text", "second text") if texts.pairs else ("words",), words.vocabularies, strict=True):
        part, terms = weights[start : start + len(side.terms)], np.array(side.terms, dtype=object)
        table[name] = [", ".join(terms[np.argsort(-part[:, label])[:WORDS_EACH]]) for label in sorted(frequent)]
        start += len(terms)
    return pd.DataFrame(table)


def passes(texts: Texts, network: Network, rows: np.ndarray) -> pd.DataFrame:
    """What a loop answers after each pass: columns passes, accuracy, changed (share of texts whose label the pass changes)."""
    numbers, inputs, table, before = texts.numbers(rows), texts.texts(rows), [], None
    for number in range(1, network.model.config.recurrent_depth + 1):
        answers = network.probabilities(inputs, recurrent_depth=number).argmax(axis=1)
        changed = np.nan if before is None else float((answers != before).mean())
        table.append({"passes": number, "accuracy": float((answers == numbers).mean()), "changed": changed})
        before = answers
    return pd.DataFrame(table)
