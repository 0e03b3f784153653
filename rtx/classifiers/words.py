"""Counted words: TF-IDF of words and word pairs with logistic regression. Of pairs of texts each side is counted apart."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from safetensors.numpy import load_file, save_file
from scipy.sparse import csr_matrix, hstack

from rtx.classifiers import linear
from rtx.classifiers.linear import Linear
from rtxlib.data.rows import Text, one_side, sides
from rtxlib.errors import InputError

if TYPE_CHECKING:  # scikit-learn is imported where words are counted, because a network's texts need none of it
    from sklearn.feature_extraction.text import TfidfVectorizer

UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"  # kana and Han: scripts without spaces between words
# One-letter words count, as in "n't" and "I". Each sign of a script without spaces is a word, so a word pair is two signs.
WORD = rf"(?u)[{UNSPACED}]|[^\W{UNSPACED}]+"
SEEN_TWICE = 1000  # training rows from which on a term must occur in two texts: it halves the model
MOST_WEIGHTS = 8_000_000  # terms × labels; the rarest terms are left out. The solver holds about 200 bytes for each


@dataclass(frozen=True)
class Vocabulary:
    """Counts terms: frequencies 1 + log(count), times the inverse document frequency, each row of length one.

    Attributes:
        terms: words and word pairs, in the order of their numbers
        idf: (terms,) inverse document frequencies
    """

    terms: list[str]
    idf: np.ndarray

    @cached_property
    def vectorizer(self) -> TfidfVectorizer:
        words = _vectorizer(vocabulary={term: number for number, term in enumerate(self.terms)})
        words.idf_ = self.idf
        return words


@dataclass(frozen=True)
class WordCounts:
    """Counted terms under a linear model.

    Attributes:
        vocabularies: one, or for pairs of texts one for the first and one for the second texts
        linear: the weights of the terms, those of the first vocabulary first
    """

    vocabularies: list[Vocabulary]
    linear: Linear

    @property
    def labels(self) -> int:
        return self.linear.labels

    @property
    def terms(self) -> list[str]:
        """The terms in the order of their weights, those of first texts before those of second texts."""
        return [term for vocabulary in self.vocabularies for term in vocabulary.terms]

    @property
    def idf(self) -> np.ndarray:
        """(terms,) inverse document frequencies."""
        return np.concatenate([vocabulary.idf for vocabulary in self.vocabularies])

    def vectors(self, texts: Sequence[Text]) -> csr_matrix:
        """(texts, terms)"""
        parts = [vocabulary.vectorizer.transform(one_side(texts, side)) for side, vocabulary in enumerate(self.vocabularies)]
        return hstack(parts, format="csr")

    def probabilities(self, texts: Sequence[Text]) -> np.ndarray:
        if not len(texts):
            return np.empty((0, self.labels))
        return self.linear.probabilities(self.vectors(texts))

    def save(self, folder: Path) -> dict:
        names = [vocabulary.terms for vocabulary in self.vocabularies]
        text = json.dumps(names if len(names) > 1 else names[0], ensure_ascii=False)
        (folder / "terms.json").write_text(text, encoding="utf-8")
        save_file({"idf": self.idf}, folder / "idf.safetensors")
        self.linear.save(folder / "linear.safetensors")
        return {}

    @classmethod
    def load(cls, folder: Path) -> WordCounts:
        names = json.loads((folder / "terms.json").read_text(encoding="utf-8"))
        names = [names] if isinstance(names[0], str) else names
        idf = np.split(load_file(folder / "idf.safetensors")["idf"], np.cumsum([len(terms) for terms in names])[:-1])
        return cls(list(map(Vocabulary, names, idf)), Linear.load(folder / "linear.safetensors"))


def fit(texts: Sequence[Text], numbers: np.ndarray, labels: int, balanced: bool = False) -> WordCounts:
    """Count the words of training texts and fit the weights (:func:`rtx.classifiers.linear.fit`).

    Raises InputError when the texts hold no words.
    """
    least = 2 if len(texts) >= SEEN_TWICE else 1
    vocabularies, vectors = [], []
    for side in range(len(sides(texts[0]))):
        words = _vectorizer(min_df=least, max_features=max(1000, MOST_WEIGHTS // labels), dtype=np.float32)
        try:
            vectors.append(words.fit_transform(one_side(texts, side)))
        except ValueError as error:  # scikit-learn's "empty vocabulary", or none of its words occurs twice
            why = "hold no words, only signs" if "empty vocabulary" in str(error) else "have no word that two of them share"
            raise InputError(f"The training texts {why}.") from error
        vocabularies.append(Vocabulary(words.get_feature_names_out().tolist(), words.idf_.astype(np.float32)))
    return WordCounts(vocabularies, linear.fit(hstack(vectors, format="csr"), numbers, labels, balanced))


def _vectorizer(**settings: object) -> TfidfVectorizer:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=WORD, lowercase=True, **settings)
