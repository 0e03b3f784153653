"""Counted words: TF-IDF of words and word pairs with logistic regression."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file
from sklearn.feature_extraction.text import TfidfVectorizer

from rtxlib.classifiers import linear
from rtxlib.classifiers.linear import Linear
from rtxlib.errors import InputError

WORD = r"(?u)\b\w+\b"  # with one-letter words, so that "n't" and "I" are counted
SEEN_TWICE = 1000  # training rows from which on a term must occur in two texts: it halves the model
MOST_WEIGHTS = 20_000_000  # terms × labels; the rarest terms are left out


@dataclass(frozen=True)
class WordCounts:
    """Term frequencies 1 + log(count), times the inverse document frequency, each row of length one, under a linear model.

    Attributes:
        terms: words and word pairs, in the order of their numbers
        idf: (terms,) inverse document frequencies
        linear: the weights of the terms
    """

    terms: list[str]
    idf: np.ndarray
    linear: Linear

    @cached_property
    def vectorizer(self) -> TfidfVectorizer:
        words = _vectorizer(vocabulary={term: number for number, term in enumerate(self.terms)})
        words.idf_ = self.idf
        return words

    @property
    def labels(self) -> int:
        return self.linear.labels

    def probabilities(self, texts: Sequence[str]) -> np.ndarray:
        if not len(texts):
            return np.empty((0, self.labels))
        return self.linear.probabilities(self.vectorizer.transform(texts))

    def save(self, folder: Path) -> dict:
        (folder / "terms.json").write_text(json.dumps(self.terms, ensure_ascii=False), encoding="utf-8")
        save_file({"idf": self.idf}, folder / "idf.safetensors")
        self.linear.save(folder / "linear.safetensors")
        return {}

    @classmethod
    def load(cls, folder: Path) -> WordCounts:
        terms = json.loads((folder / "terms.json").read_text(encoding="utf-8"))
        return cls(terms, load_file(folder / "idf.safetensors")["idf"], Linear.load(folder / "linear.safetensors"))


def fit(texts: Sequence[str], numbers: np.ndarray, labels: int, balanced: bool = False) -> WordCounts:
    """Count the words of training texts and fit the weights (:func:`rtxlib.classifiers.linear.fit`).

    Raises InputError when the texts hold no words.
    """
    least = 2 if len(texts) >= SEEN_TWICE else 1
    words = _vectorizer(min_df=least, max_features=max(1000, MOST_WEIGHTS // labels), dtype=np.float32)
    try:
        vectors = words.fit_transform(texts)
    except ValueError as error:  # scikit-learn's "empty vocabulary"
        raise InputError("The training texts hold no words, only signs.") from error
    terms = words.get_feature_names_out().tolist()
    return WordCounts(terms, words.idf_.astype(np.float32), linear.fit(vectors, numbers, labels, balanced))


def _vectorizer(**settings: object) -> TfidfVectorizer:
    return TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=WORD, lowercase=True, **settings)
