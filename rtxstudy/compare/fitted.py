"""Candidates that are fitted at once: the majority class, counted words, and linear models on MiniLM's vectors."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from rtxlib.classifiers import linear, words
from rtxlib.classifiers.encoders import Frozen, Static, static_table
from rtxlib.classifiers.folder import Classifier
from rtxlib.classifiers.linear import Linear
from rtxlib.classifiers.simple import Majority
from rtxlib.data.tokenization import pretrained_tokenizer
from rtxlib.errors import InputError, fact
from rtxlib.models import pretrained
from rtxstudy.compare import kept
from rtxstudy.compare.candidates import CANDIDATES, FROZEN, MAX_LENGTH, MINILM, NAMED, STATIC, WORDS, Candidate
from rtxstudy.compare.estimate import Estimate
from rtxstudy.compare.state import Race

EMBEDDING_SHARE = 0.35  # of the time: at most for embeddings
FEWEST_EMBEDDED = 250  # training texts that are embedded, whatever the time
PIECE = 128  # texts that are embedded at once
CURVE = (0.125, 0.25, 0.5, 1.0)  # shares of the training rows in the learning curve


def without_layers(race: Race) -> None:
    """The majority class and counting words, which are always there."""
    texts, labels = race.texts, len(race.texts.label_names)
    shares = lambda rows: np.bincount(texts.numbers(rows), minlength=labels) / len(rows)  # noqa: E731
    fitted(race, CANDIDATES[0], lambda rows: Majority(shares(rows).tolist()))

    def counted(rows: np.ndarray) -> words.WordCounts:
        return words.fit(texts.texts(rows), texts.numbers(rows), labels, texts.unbalanced)

    try:
        fitted(race, NAMED[WORDS], counted)
        learn(race, WORDS, len(race.train), lambda rows: counted(rows).probabilities(texts.texts(race.curve_judged)))
    except InputError as error:
        race.left_out[WORDS] = str(error)


def with_minilm(race: Race, estimate: Estimate) -> Frozen | None:
    """Linear models on MiniLM's vectors. Returns MiniLM, without a linear model; None when it is out of reach."""
    if why := pretrained.out_of_reach(MINILM):
        for candidate in CANDIDATES:
            if candidate.pretrained:
                race.left_out[candidate.name] = f"{fact(why)}."
        return None
    encoder, tokenizer = pretrained.load(MINILM), pretrained_tokenizer(pretrained.find(MINILM))
    nothing = Linear(np.zeros((1, 1), np.float32), np.zeros(1, np.float32))
    _on_vectors(race, NAMED[STATIC], Static(static_table(encoder), tokenizer, nothing))
    frozen = Frozen(encoder, tokenizer, nothing, MAX_LENGTH)
    _on_vectors(race, NAMED[FROZEN], frozen)
    estimate.measure(frozen, race.train)
    return frozen


def _on_vectors(race: Race, candidate: Candidate, embedder: Static | Frozen) -> None:
    texts, clock = race.texts, race.clock
    judged = np.empty(0, int) if texts.cross_validated else texts.judged
    order = np.concatenate([judged, texts.rows("test"), race.train])  # training rows last: the time may cut them
    least = len(order) - len(race.train) + min(len(race.train), FEWEST_EMBEDDED)
    least = len(order) if texts.cross_validated else least
    file = race.results / f"vectors-{race.key(candidate, len(order))}.safetensors"
    begun = time.monotonic()

    def make(start: int) -> np.ndarray:
        clock.progress(candidate.name, f"{start:,} of {len(order):,} texts read")
        clock.check()
        return embedder.vectors(texts.texts(order[start : start + PIECE]))

    def enough(count: int) -> bool:
        return count >= least and time.monotonic() - begun > EMBEDDING_SHARE * clock.seconds

    width = embedder.vectors(texts.texts(order[:1])).shape[1]
    found = kept.vectors(file, len(order), width, make, enough)
    place = np.full(len(texts.table), -1)
    place[order[: len(found)]] = np.arange(len(found))
    known = race.train[place[race.train] >= 0]

    def fit(rows: np.ndarray) -> Static | Frozen:
        numbers, labels = texts.numbers(rows), len(texts.label_names)
        return embedder.with_linear(linear.fit(found[place[rows]], numbers, labels, texts.unbalanced))

    def answer(classifier: Static | Frozen, rows: np.ndarray) -> np.ndarray:
        return classifier.linear.probabilities(found[place[rows]])

    if len(known) < len(race.train):
        race.partial[candidate.name] = len(known)
    fitted(race, candidate, fit, answer, known, begun)
    learn(race, candidate.name, len(known), lambda rows: answer(fit(rows), race.curve_judged))


def fitted(
    race: Race,
    candidate: Candidate,
    fit: Callable[[np.ndarray], Classifier],
    answer: Callable[[Classifier, np.ndarray], np.ndarray] | None = None,
    train: np.ndarray | None = None,
    begun: float | None = None,
) -> None:
    """Fit a candidate and keep it, in cross-validation once for each fold and once on all. A kept one is found.

    Args:
        fit: from the rows to learn from to the classifier
        answer: the probabilities of a classifier on rows; None: it reads their texts
        train: the rows to learn from; None: all training rows
        begun: the time (:func:`time.monotonic`) from which its seconds count; None: now
    """
    texts, train = race.texts, race.train if train is None else train
    entry = race.find(candidate, len(train))
    if entry is None:
        race.clock.progress(candidate.name, f"learning from {len(train):,} texts")
        answer = answer or (lambda classifier, rows: classifier.probabilities(texts.texts(rows)))
        begun, judged = time.monotonic() if begun is None else begun, texts.judged
        classifier = fit(train)
        if texts.cross_validated:
            p = np.zeros((len(judged), len(texts.label_names)))
            for fold in np.unique(race.fold[judged]):
                out = race.fold[judged] == fold
                p[out] = answer(fit(train[race.fold[train] != fold]), judged[out])
        else:
            p = answer(classifier, judged)
        answers = {"judged": p, "test": answer(classifier, texts.rows("test"))}
        record = {"name": candidate.name, "rows": len(train), "seconds": time.monotonic() - begun}
        entry = kept.put(race.results, race.key(candidate, len(train)), classifier, answers, record)
    race.entries[candidate.name] = entry


def learn(race: Race, name: str, most: int, answer: Callable[[np.ndarray], np.ndarray]) -> None:
    """The learning curve of a cheap candidate: its score after growing parts of its training rows.

    answer: from the rows to learn from to the probabilities of :attr:`Race.curve_judged`.
    """
    texts = race.texts
    train = race.train[race.fold[race.train] != 0] if texts.cross_validated else race.train[:most]
    for share in CURVE:
        rows = train[: int(share * len(train))]
        counts = np.bincount(texts.numbers(rows), minlength=len(texts.label_names))
        if race.clock.asked or race.clock.left < 0 or counts.min() < 2:
            continue
        whole = share == 1 and not texts.cross_validated
        race.point(name, len(rows), race.entries[name].judged if whole else answer(rows))
