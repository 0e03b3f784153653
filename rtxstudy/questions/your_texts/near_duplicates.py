"""Which texts are nearly the same, so that they stay on one side of every split."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from rtx.classifiers.words import UNSPACED
from rtxlib.data.containment import groups as contained
from rtxlib.data.containment import words_key
from rtxlib.data.rows import INVISIBLE

SIGN = re.compile(f"[{UNSPACED}]")  # of a script without spaces; each counts as a word
CONTAINED_WORDS = 3  # a text of more words that lies inside another belongs to it
MOST_WORDS = 1_500_000  # of all texts; with more, texts inside others are not looked for, because that takes gigabytes
HASHES, BANDS = 48, 12  # of MinHash: 12 bands of 4 hashes find most pairs of a likeness of 0.8
LIKENESS = 0.8  # Jaccard similarity of the word triples of two texts that count as nearly the same
FEWEST_TRIPLES = 5  # of a text, to be compared by its triples
_LARGE = 10  # more texts with one band in common are each compared with the first alone; fewer pair by pair


def groups(texts: Sequence[str]) -> np.ndarray:
    """(texts,) equal numbers for texts of the same words, texts inside others, and texts that share most word triples.

    Invisible characters do not count, because the tokenizers leave them out.

    Near-duplicates are found with MinHash and bands (Broder 1997; Leskovec et al. 2014, Mining of Massive Datasets, ch. 3).
    """
    texts = [SIGN.sub(r" \g<0> ", INVISIBLE.sub("", text)) for text in texts]
    keys = [words_key(text) for text in texts]
    if sum(key.count(" ") + 1 for key in keys) <= MOST_WORDS:
        first = contained(texts, CONTAINED_WORDS)
    else:
        first = pd.factorize(np.array(keys, dtype=object))[0]
    return joined(first, near_pairs(keys))


def joined(group: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """The groups after the groups of each pair (n, 2) of texts are joined."""
    if not len(pairs):
        return group
    count = int(group.max()) + 1
    left, right = group[pairs[:, 0]], group[pairs[:, 1]]
    graph = coo_matrix((np.ones(len(pairs), bool), (left, right)), shape=(count, count))
    return connected_components(graph, directed=False)[1][group]


def near_pairs(keys: Sequence[str]) -> np.ndarray:
    """(n, 2) texts, given by their words, whose word triples have a Jaccard similarity of at least ``LIKENESS``."""
    words = [key.split() for key in keys]
    long = [row for row, text_words in enumerate(words) if len(text_words) >= FEWEST_TRIPLES + 2]
    if len(long) < 2:
        return np.empty((0, 2), int)
    triples = [_triples(words[row]) for row in long]
    starts = np.cumsum([0, *map(len, triples)])[:-1]
    values = np.concatenate(triples)
    rng = np.random.default_rng(0)
    factors = rng.integers(1, 1 << 63, HASHES, dtype=np.uint64) | np.uint64(1)
    with np.errstate(over="ignore"):
        signature = np.stack(
            [np.minimum.reduceat((values ^ (values >> np.uint64(29))) * f, starts) for f in factors], 1
        )
        mixed = signature.reshape(len(long), BANDS, -1) * rng.integers(
            1, 1 << 63, (1, BANDS, HASHES // BANDS), dtype=np.uint64
        )
        bands = mixed.sum(axis=2, dtype=np.uint64)  # (texts, bands)
    candidates: set[tuple[int, int]] = set()
    for band in bands.T:
        for alike in pd.Series(np.arange(len(long))).groupby(band).indices.values():
            if 1 < len(alike) <= _LARGE:
                candidates.update((a, b) for i, a in enumerate(alike) for b in alike[i + 1 :])
            elif len(alike) > _LARGE:
                candidates.update((alike[0], b) for b in alike[1:])

    def near(a: int, b: int) -> bool:
        both = len(np.intersect1d(triples[a], triples[b], assume_unique=True))
        return both >= LIKENESS * (len(triples[a]) + len(triples[b]) - both)

    return np.array([(long[a], long[b]) for a, b in sorted(candidates) if near(a, b)], int).reshape(-1, 2)


def _triples(words: list[str]) -> np.ndarray:
    """The distinct hashes of the word triples of a text, uint64; the same on every machine."""
    spelt = [" ".join(triple) for triple in zip(words, words[1:], words[2:], strict=False)]
    return np.unique(pd.util.hash_array(np.array(spelt, dtype=object), categorize=False))
