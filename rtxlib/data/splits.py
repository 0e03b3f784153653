"""Which text goes where: word sequences inside others, groups that must not straddle, seeded splits and samples."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from rtxlib.errors import InputError

_WORD = re.compile(r"[^\W_]+")
_ANCHOR = 8  # a sequence of more words is looked up by its first eight, then compared whole
_BASE = 0x9E3779B97F4A7C15  # odd, so that it has an inverse modulo 2**64
_PAIRS = 4_000_000  # candidates compared at once: bounds the memory


def words_key(text: str) -> str:
    """The words of a text, lower-cased, without punctuation: "Cool ." and "cool" are the same words.

    A text without a letter or digit stands for itself.
    """
    return " ".join(_WORD.findall(text.lower())) or text


def occurrences(needles: Sequence[str], haystack: Sequence[str]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Where whole texts occur inside others as sequences of words, equal texts included.

    Words are what white space separates. Each run of words is compared by a 64-bit polynomial hash over random word
    values (Karp and Rabin 1987), whole arrays at a time: seconds for a million words, where n-gram sets take minutes.

    Args:
        needles: distinct texts to look for; one without words is never found
        haystack: texts to look in

    Yields:
        Pairs of index arrays of one length: needle, row of the haystack. A pair may come more than once.
    """
    split = [text.split() for text in needles] + [text.split() for text in haystack]
    lengths = np.fromiter(map(len, split), np.int64, len(split))
    if not len(needles) or not lengths[len(needles) :].sum():
        return
    codes, vocabulary = pd.factorize(np.array([word for row in split for word in row], dtype=object))
    value = np.random.default_rng(0).integers(1 << 64, size=len(vocabulary), dtype=np.uint64)[codes]
    with np.errstate(over="ignore"):
        power = np.cumprod(np.full(len(codes), _BASE, np.uint64)) * np.uint64(pow(_BASE, -1, 1 << 64))
        inverse = np.cumprod(np.full(len(codes), pow(_BASE, -1, 1 << 64), np.uint64)) * np.uint64(_BASE)
        prefix = np.concatenate([np.zeros(1, np.uint64), np.cumsum(value * power)])
    del split, codes, value, power

    def hashes(start: np.ndarray, length: np.ndarray | int) -> np.ndarray:
        return (prefix[start + length] - prefix[start]) * inverse[start]

    starts = np.cumsum(lengths) - lengths
    n, needle_lengths = len(needles), lengths[: len(needles)]
    first = starts[n] if n < len(starts) else len(inverse)
    position = np.arange(first, len(inverse))
    row = np.repeat(np.arange(len(haystack)), lengths[n:])
    end = np.repeat(starts[n:] + lengths[n:], lengths[n:])

    for size in range(1, _ANCHOR + 1):
        found = np.flatnonzero(needle_lengths == size if size < _ANCHOR else needle_lengths >= _ANCHOR)
        if not len(found):
            continue
        anchors = hashes(starts[found], size)
        order = np.argsort(anchors, kind="stable")
        found, anchors = found[order], anchors[order]
        inside = position[position + size <= end]
        window = hashes(inside, size)
        # most windows match nothing: a table of 20 bits of the wanted hashes rules them out before the exact search
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
            needle = found[np.repeat(low[part], times) + nth]
            fits = here + needle_lengths[needle] <= end[here - first]
            here, needle = here[fits], needle[fits]
            same = hashes(here, needle_lengths[needle]) == hashes(starts[needle], needle_lengths[needle])
            yield needle[same], row[here[same] - first]


def groups(texts: Sequence[str], longer_than: int) -> np.ndarray:
    """Texts that must stay together: those of the same words, and those longer than so many words that lie in another.

    Words are compared without case and punctuation; a text counts as longer if it is so with or without punctuation.

    Returns:
        (n,) int, equal for texts of one group; chains count, so a group holds everything linked to any of its members.
    """
    row_key, keys = pd.factorize(np.array([words_key(text) for text in texts], dtype=object))
    longest = pd.Series([len(text.split()) for text in texts]).groupby(row_key).max().to_numpy()
    needles = np.flatnonzero(np.maximum(longest, [len(key.split()) for key in keys]) > longer_than)
    edges = [(needles[a], b) for a, b in occurrences(keys[needles], keys)]
    left, right = (np.concatenate(side) for side in zip(*edges, strict=True)) if edges else ([], [])
    graph = coo_matrix((np.ones(len(left), bool), (left, right)), shape=(len(keys), len(keys)))
    return connected_components(graph, directed=False)[1][row_key]


def split(group: np.ndarray, strata: Sequence[str], seed: int, share: float = 0.1) -> np.ndarray:
    """"train", "validation" or "test" for each row: whole groups, stratified, seeded.

    Args:
        group: (n,) rows of one number stay together
        strata: (n,) each is shared out alike (the label, or label and domain)
        seed: of the draw
        share: of each stratum in validation, and as much in test; the rest is training

    Returns:
        (n,) names. A group of more than a hundredth of a small split goes to training: its rows are alike, and in a small
        split they would weigh too much.

    Raises:
        InputError: some split would be empty.
    """
    rng = np.random.default_rng(seed)
    codes, names = pd.factorize(np.asarray(strata, dtype=object))
    sizes = np.bincount(codes, minlength=len(names))
    # each class of three rows or more is in every split
    room = {name: np.where(sizes >= 3, np.maximum(1, np.rint(sizes * share)), 0) for name in ("validation", "test")}
    where = np.full(len(codes), "train", dtype=object)
    by_group = pd.Series(np.arange(len(codes))).groupby(group).indices
    members = list(by_group.values())
    most = max(2, share * len(codes) / 100)
    many = [rows for rows in members if 1 < len(rows) <= most]
    for i in rng.permutation(len(many)):  # first those that are hard to place, each with the odds of a single row
        content = np.bincount(codes[many[i]], minlength=len(names))
        draw = rng.random()
        name = "test" if draw < share else "validation" if draw < 2 * share else "train"
        if name != "train" and (content <= room[name]).all():
            room[name] = room[name] - content
            where[many[i]] = name
    single = rng.permutation(np.array([rows[0] for rows in members if len(rows) == 1], dtype=np.int64))
    for code in range(len(names)):
        rows = single[codes[single] == code]
        tests, validations = int(room["test"][code]), int(room["validation"][code])
        where[rows[:tests]] = "test"
        where[rows[tests : tests + validations]] = "validation"
    for name in ("train", "validation", "test"):
        if not (where == name).any():
            raise InputError(f"{len(codes)} rows in {len(members)} groups leave nothing for {name}; give more rows.")
    return where


def sst2_validation(texts: Sequence[str], seed: int, share: float = 0.05) -> tuple[np.ndarray, np.ndarray, int]:
    """The internal validation set of SST-2, whose training rows are phrases of sentences that are nowhere numbered.

    A phrase that lies in no other is *maximal*, mostly a whole sentence. A share of them is drawn; every phrase inside
    a drawn one has to leave the training rows.

    Args:
        texts: (n,) the official training phrases
        seed: of the draw
        share: of the maximal phrases

    Returns:
        (n,) bool, rows in validation; (n,) bool, rows to drop; and the number of maximal phrases.
    """
    row, distinct = pd.factorize(np.array([" ".join(text.split()) for text in texts], dtype=object))
    found = [(a[a != b], b[a != b]) for a, b in occurrences(distinct, distinct)]
    maximal = np.ones(len(distinct), bool)
    for inner, _ in found:
        maximal[inner] = False
    maximal = np.flatnonzero(maximal)
    chosen = np.zeros(len(distinct), bool)
    chosen[np.random.default_rng(seed).permutation(maximal)[: max(1, round(share * len(maximal)))]] = True
    dropped = np.zeros(len(distinct), bool)
    for inner, outer in found:
        dropped[inner[chosen[outer]]] = True
    return chosen[row], dropped[row], len(maximal)


def maximal_first(texts: Sequence[str], seed: int) -> np.ndarray:
    """(n,) ranks in random order, the texts that lie in no other before those that do."""
    row, distinct = pd.factorize(np.array([" ".join(text.split()) for text in texts], dtype=object))
    inner = np.zeros(len(distinct), bool)
    for a, b in occurrences(distinct, distinct):
        inner[a[a != b]] = True
    order = np.lexsort((np.random.default_rng(seed).random(len(row)), inner[row]))
    ranks = np.empty(len(row), np.int64)
    ranks[order] = np.arange(len(row))
    return ranks


def balanced(strata: Sequence[str], rows: int, rank: np.ndarray) -> np.ndarray:
    """Indices of at most ``rows`` rows, equally many of each stratum: balanced first, sized second; lowest rank first.

    Where the smallest stratum holds less than its part, every stratum gives only as much.
    """
    codes, names = pd.factorize(np.asarray(strata, dtype=object))
    each = min(rows // len(names), np.bincount(codes).min())
    order = np.argsort(rank, kind="stable")
    place = pd.Series(codes[order]).groupby(codes[order]).cumcount().to_numpy()
    return np.sort(order[place < each])


def nested(strata: Sequence[str], fraction: float, seed: int) -> np.ndarray:
    """Indices of a fraction of the rows, of each stratum alike; with one seed the smaller lies inside the larger."""
    order = np.random.default_rng(seed).permutation(len(strata))
    codes = pd.factorize(np.asarray(strata, dtype=object))[0]
    place = pd.Series(codes[order]).groupby(codes[order]).cumcount().to_numpy()
    each = np.maximum(1, np.floor(np.bincount(codes) * fraction + 1e-6))
    return np.sort(order[place < each[codes[order]]])


def by_length(lengths: np.ndarray, which: str, seed: int, share: float = 0.3) -> np.ndarray:
    """Indices of the "shortest" or "longest" share of the rows; equals are drawn at random, seeded."""
    order = np.lexsort((np.random.default_rng(seed).random(len(lengths)), lengths))
    count = max(1, round(share * len(lengths)))
    return np.sort(order[:count] if which == "shortest" else order[len(order) - count :])
