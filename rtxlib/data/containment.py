"""Which texts lie inside which others, as sequences of words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from rtxlib.data.rows import INVISIBLE

_WORD = re.compile(r"[^\W_]+")
_ANCHOR = 8  # a longer sequence of words is looked up by its first eight words and then compared whole
_BASE = 0x9E3779B97F4A7C15  # odd, so that it has an inverse modulo 2**64
_PAIRS = 4_000_000  # candidates compared at once: bounds the memory


def words_key(text: str) -> str:
    """The words of a text, lower-cased, without punctuation and invisible characters: "Cool ." and "cool" have the same key.

    The key of a text without letters and digits is the text itself.
    """
    text = INVISIBLE.sub("", text)
    return " ".join(_WORD.findall(text.lower())) or text


def occurrences(needles: Sequence[str], haystack: Sequence[str]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Where whole texts occur inside others as sequences of words, equal texts included.

    White space separates words. The polynomial hash of Karp and Rabin (1987) over random 64-bit values of the words
    gives each run of words a number; the numbers of all runs of one length are compared at once.

    Args:
        needles: distinct texts to look for; a text without words is never found
        haystack: texts to look in

    Yields:
        Pairs of index arrays of one length: needle, row of the haystack. The same pair may come more than once.
    """
    split = [text.split() for text in needles] + [text.split() for text in haystack]
    lengths = np.fromiter(map(len, split), np.int64, len(split))
    if not len(needles) or not lengths[len(needles) :].sum():
        return
    # prefix[i] is the sum of value[j] · base^j over the words j < i. The difference of two prefixes, divided by a power
    # of the base, is the hash of the words between them; it does not depend on where they stand. All modulo 2**64.
    codes, vocabulary = pd.factorize(np.array([word for row in split for word in row], dtype=object))
    value = np.random.default_rng(0).integers(1 << 64, size=len(vocabulary), dtype=np.uint64)[codes]
    with np.errstate(over="ignore"):
        power = np.cumprod(np.full(len(codes), _BASE, np.uint64)) * np.uint64(pow(_BASE, -1, 1 << 64))
        inverse = np.cumprod(np.full(len(codes), pow(_BASE, -1, 1 << 64), np.uint64)) * np.uint64(_BASE)
        prefix = np.concatenate([np.zeros(1, np.uint64), np.cumsum(value * power)])
    del split, codes, value, power

    def hashes(start: np.ndarray, length: np.ndarray | int) -> np.ndarray:
        return (prefix[start + length] - prefix[start]) * inverse[start]

    n = len(needles)
    starts = np.cumsum(lengths) - lengths  # of each text in the sequence of all words, needles first
    first = starts[n]  # where the haystack begins
    position = np.arange(first, len(inverse))
    row = np.repeat(np.arange(len(haystack)), lengths[n:])  # of each position of the haystack
    end = np.repeat(starts[n:] + lengths[n:], lengths[n:])

    for size in range(1, _ANCHOR + 1):
        needles_here = np.flatnonzero(lengths[:n] == size if size < _ANCHOR else lengths[:n] >= _ANCHOR)
        if not len(needles_here):
            continue
        anchors = hashes(starts[needles_here], size)
        order = np.argsort(anchors, kind="stable")
        needles_here, anchors = needles_here[order], anchors[order]
        inside = position[position + size <= end]
        window = hashes(inside, size)
        # Most windows match nothing. A table of the first 20 bits of the wanted hashes rules them out early.
        wanted = np.zeros(1 << 20, bool)
        wanted[anchors >> np.uint64(44)] = True
        maybe = wanted[window >> np.uint64(44)]
        inside, window = inside[maybe], window[maybe]
        low = np.searchsorted(anchors, window, "left")
        many = np.searchsorted(anchors, window, "right") - low
        inside, low, many = inside[many > 0], low[many > 0], many[many > 0]
        cuts = np.searchsorted(np.cumsum(many), np.arange(_PAIRS, many.sum(), _PAIRS))
        for part in np.split(np.arange(len(many)), cuts):
            times = many[part]
            here = np.repeat(inside[part], times)
            nth = np.arange(len(here)) - np.repeat(np.cumsum(times) - times, times)
            needle = needles_here[np.repeat(low[part], times) + nth]
            fits = here + lengths[needle] <= end[here - first]
            here, needle = here[fits], needle[fits]
            same = hashes(here, lengths[needle]) == hashes(starts[needle], lengths[needle])
            yield needle[same], row[here[same] - first]


def groups(texts: Sequence[str], longer_than: int) -> np.ndarray:
    """Texts that must stay together in one split: texts of the same words, and a longer text that lies in another.

    Words are compared without case and punctuation. A text is longer if it has more than ``longer_than`` words, counted
    with or without punctuation.

    Returns:
        (n,) int, equal for texts of one group. Links chain: a group holds everything linked to any of its members.
    """
    from scipy.sparse import coo_matrix  # here, because a prediction makes no groups
    from scipy.sparse.csgraph import connected_components

    row_key, keys = pd.factorize(np.array([words_key(text) for text in texts], dtype=object))
    longest = pd.Series([len(text.split()) for text in texts]).groupby(row_key).max().to_numpy()
    needles = np.flatnonzero(np.maximum(longest, [len(key.split()) for key in keys]) > longer_than)
    edges = [(needles[a], b) for a, b in occurrences(keys[needles], keys)]
    left, right = (np.concatenate(side) for side in zip(*edges, strict=True)) if edges else ([], [])
    graph = coo_matrix((np.ones(len(left), bool), (left, right)), shape=(len(keys), len(keys)))
    return connected_components(graph, directed=False)[1][row_key]
