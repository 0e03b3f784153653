"""Candidates that are fitted at once: the majority class, counted words, and linear models on MiniLM's vectors."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pandas as pd

from rtx.classifiers import linear, words
from rtx.classifiers.encoders import Frozen, Static, static_table
from rtx.classifiers.folder import Classifier
from rtx.classifiers.linear import Linear
from rtx.classifiers.simple import Majority
from rtxlib.data.tokenization import pretrained_tokenizer
from rtxlib.models import pretrained
from rtxstudy.questions.your_texts import finished_candidates
from rtxstudy.questions.your_texts.candidates import (
    FROZEN,
    MAJORITY,
    MAX_LENGTH,
    MINILM,
    NAMED,
    STATIC,
    WORDS,
    Candidate,
    Plan,
)
from rtxstudy.questions.your_texts.state import Race

EMBEDDING_SHARE = 0.35  # of the time: at most for embeddings
FEWEST_EMBEDDED = 250  # training texts that are embedded, whatever the time
PIECE = 128  # texts that are embedded at once
CURVE = (0.125, 0.25, 0.5, 1.0)  # shares of the training rows in the learning curve


def majority_class(race: Race) -> None:
    texts, labels = race.texts, len(race.texts.label_names)

    def counted(rows: np.ndarray) -> Majority:
        return Majority((np.bincount(texts.numbers(rows), minlength=labels) / len(rows)).tolist())

    fitted(race, NAMED[MAJORITY], counted)


def counting_words(race: Race) -> None:
    """Counted words, whatever the time, with a learning curve."""
    texts = race.texts

    def counted(rows: np.ndarray) -> words.WordCounts:
        return words.fit(texts.texts(rows), texts.numbers(rows), len(texts.label_names), texts.unbalanced)

    fitted(race, NAMED[WORDS], counted)
    learn(race, WORDS, len(race.train), lambda rows: counted(rows).probabilities(texts.texts(race.curve_judged)))


def static_vectors(race: Race) -> None:
    encoder, tokenizer, nothing = minilm()
    _on_vectors(race, NAMED[STATIC], Static(static_table(encoder), tokenizer, nothing))


def frozen_minilm(race: Race) -> None:
    encoder, tokenizer, nothing = minilm()
    _on_vectors(race, NAMED[FROZEN], Frozen(encoder, tokenizer, nothing, MAX_LENGTH))


FIT: dict[str, Callable[[Race], None]] = {
    MAJORITY: majority_class,
    WORDS: counting_words,
    STATIC: static_vectors,
    FROZEN: frozen_minilm,
}


def minilm() -> tuple:
    """MiniLM's encoder, its tokenizer, and a linear model that is to be replaced."""
    nothing = Linear(np.zeros((1, 1), np.float32), np.zeros(1, np.float32))
    return pretrained.load(MINILM), pretrained_tokenizer(pretrained.find(MINILM)), nothing


def _on_vectors(race: Race, candidate: Candidate, embedder: Static | Frozen) -> None:
    texts, clock = race.texts, race.clock
    judged = np.empty(0, int) if texts.cross_validated else texts.judged
    order = pd.unique(np.concatenate([judged, texts.rows("test"), race.train]))  # training rows last: the time may cut them
    least = len(order) - len(race.train) + min(len(race.train), FEWEST_EMBEDDED)
    least = len(order) if texts.cross_validated else least
    file = race.results / f"vectors-{race.key(candidate, Plan(len(order)))}.safetensors"
    begun, most = time.monotonic(), min(EMBEDDING_SHARE * clock.seconds, max(0.0, clock.left))

    def make(start: int) -> np.ndarray:
        clock.progress(candidate.name, f"{start:,} of {len(order):,} texts read")
        clock.check()
        return embedder.vectors(texts.texts(order[start : start + PIECE]))

    def enough(count: int) -> bool:
        return count >= least and time.monotonic() - begun > most

    width = embedder.vectors(texts.texts(order[:1])).shape[1]
    vectors = finished_candidates.vectors(file, len(order), width, make, enough)
    place = np.full(len(texts.table), -1)
    place[order[: len(vectors)]] = np.arange(len(vectors))
    train_rows = race.train[place[race.train] >= 0]

    def fit(rows: np.ndarray) -> Static | Frozen:
        numbers, labels = texts.numbers(rows), len(texts.label_names)
        return embedder.with_linear(linear.fit(vectors[place[rows]], numbers, labels, texts.unbalanced))

    def answer(classifier: Static | Frozen, rows: np.ndarray) -> np.ndarray:
        return classifier.linear.probabilities(vectors[place[rows]])

    fitted(race, candidate, fit, answer, train_rows, begun)
    learn(race, candidate.name, len(train_rows), lambda rows: answer(fit(rows), race.curve_judged))


def fitted(
    race: Race,
    candidate: Candidate,
    fit: Callable[[np.ndarray], Classifier],
    answer: Callable[[Classifier, np.ndarray], np.ndarray] | None = None,
    train: np.ndarray | None = None,
    begun: float | None = None,
    max_length: int = MAX_LENGTH,
) -> None:
    """Fit a candidate and keep it, in cross-validation once for each fold and once on all. A kept one is found.

    Args:
        fit: from the rows to learn from to the classifier
        answer: the probabilities of a classifier on rows; None: it reads their texts
        train: the rows to learn from; None: all training rows
        begun: the time (:func:`time.monotonic`) from which its seconds count; None: now
        max_length: tokens of a text that the classifier reads
    """
    texts, train = race.texts, race.train if train is None else train
    plan = Plan(len(train), max_length)
    entry = race.find(candidate, plan)
    if entry is None:
        race.clock.progress(candidate.name, f"learning from {len(train):,} texts")
        answer = answer or (lambda classifier, rows: classifier.probabilities(texts.texts(rows)))
        begun, judged = time.monotonic() if begun is None else begun, texts.judged
        classifier = fit(train)
        if texts.cross_validated:
            p = np.zeros((len(judged), len(texts.label_names)))
            for fold in race.folds:
                out = race.fold[judged] == fold
                p[out] = answer(fit(train[race.fold[train] != fold]), judged[out])
        else:
            p = answer(classifier, judged)
        answers = {"judged": p, "test": answer(classifier, texts.rows("test"))}
        record = {"name": candidate.name, "plan": plan, "seconds": time.monotonic() - begun}
        entry = finished_candidates.put(race.results, race.key(candidate, plan), classifier, answers, record)
    race.finish(entry)


def learn(race: Race, name: str, most: int, answer: Callable[[np.ndarray], np.ndarray]) -> None:
    """The learning curve of a cheap candidate: its score after growing parts of its training rows.

    answer: from the rows to learn from to the probabilities of :attr:`Race.curve_judged`.
    """
    texts = race.texts
    train = race.train[race.fold[race.train] != 0] if texts.cross_validated else race.train[:most]
    for share in CURVE:
        rows = train[: int(share * len(train))]
        counts = np.bincount(texts.numbers(rows), minlength=len(texts.label_names))
        if not race.curves or race.clock.asked or race.clock.left < 0 or counts.min() < 2:
            continue
        whole = share == 1 and not texts.cross_validated
        race.point(name, len(rows), race.entries[name].judged if whole else answer(rows))
