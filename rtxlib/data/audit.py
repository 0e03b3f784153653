"""Audit: duplicates, contradictory labels, leaks."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from rtxlib.data.containment import occurrences, words_key
from rtxlib.data.rows import PAIR, SPLITS
from rtxlib.errors import InputError

if TYPE_CHECKING:
    from rtxlib.data.rows import Rows
    from rtxlib.data.spec import DataSpec

COLUMNS = ["check", "left", "right", "rows", "share", "example"]
LEAK = "leak"
_BUCKETS = ((1, 3, "1–3 words"), (4, 7, "4–7 words"), (8, 10**9, "8 words and more"))
_EXAMPLE = 90  # characters of an example


def audit_source(rows: Rows, spec: DataSpec) -> pd.DataFrame:
    """Every check on the rows before they are split: on the published splits, or on the pool as it was read."""
    test = spec.published_test
    if test is not None:
        test_name = "official dev" if test == "validation" else f"official {test}"
        return audit({"official train": rows.part("train"), test_name: rows.part(test)}, spec.leak_words)
    return within("as read", whole_texts(rows.table), rows.table["label"])


def whole_texts(table: pd.DataFrame) -> pd.Series:
    """The texts of a table; of pairs both, as one text."""
    return table["text"] + " / " + table[PAIR] if PAIR in table else table["text"]


def audit_splits(rows: Rows, spec: DataSpec) -> pd.DataFrame:
    """Every check on the three splits.

    Raises:
        InputError: there is a leak, and the spec does not allow leaks. Leaks of phrases into SST-2's test set are always
            allowed; it was published with them.
    """
    table = audit({name: rows.part(name) for name in SPLITS}, spec.leak_words)
    if not spec.allow_leaks:
        published = [frozenset(("train", "test")), frozenset(("validation", "test"))]
        stop_on_leaks(table, spec.leak_words, published if spec.phrases else [])
    return table


def within(name: str, texts: pd.Series, labels: pd.Series) -> pd.DataFrame:
    """What is wrong inside one split: rows that repeat an earlier text, and texts with more than one label.

    Texts are compared without regard to white space.

    Returns:
        ``COLUMNS``, with ``right`` empty; ``rows`` counts repeated rows, or distinct texts with two labels.
    """
    key = texts.map(lambda text: " ".join(text.split()))
    again = key.duplicated().to_numpy()
    distinct = labels.groupby(key.to_numpy()).nunique()
    torn = distinct.index[distinct > 1]
    return pd.DataFrame(
        [
            ("duplicate texts", name, "", int(again.sum()), again.mean(), _example(key[again])),
            ("same text, different labels", name, "", len(torn), len(torn) / max(1, len(distinct)), _example(torn)),
        ],
        columns=COLUMNS,
    )


def overlaps(parts: Mapping[str, pd.Series], leak_words: int) -> pd.DataFrame:
    """How many rows of each part occur in each other part, in both directions. Parts may come from several sources.

    The checks count the rows of ``left`` that

    - "same text": occur in ``right`` word for word;
    - "same words": occur in ``right`` apart from case and punctuation;
    - "inside": occur whole inside a longer text of ``right``, or equal one. These rows are also counted by their length;
    - "leak": are inside or of the same words, and longer than ``leak_words`` words.

    Args:
        parts: name -> (n,) texts; white space separates words
        leak_words: a longer overlap is a leak; short phrases recur in any language

    Returns:
        ``COLUMNS``; ``share`` is of the rows of ``left``.
    """
    texts = pd.concat(list(parts.values()), ignore_index=True).map(lambda text: " ".join(text.split()))
    row, distinct = pd.factorize(texts.to_numpy(dtype=object))
    same = pd.factorize(np.array([words_key(text) for text in distinct], dtype=object))[0]
    words = np.array([len(text.split()) for text in distinct])
    ends = np.cumsum([len(part) for part in parts.values()])
    rows = {name: row[end - len(part) : end] for (name, part), end in zip(parts.items(), ends, strict=True)}
    has = {name: np.isin(np.arange(len(distinct)), mine) for name, mine in rows.items()}
    key = {name: np.isin(same, same[mine]) for name, mine in rows.items()}
    inside = {name: mine.copy() for name, mine in has.items()}
    for inner, outer in occurrences(distinct, distinct):
        for name, mask in inside.items():
            mask[inner[has[name][outer]]] = True

    table = []
    for left, right in permutations(parts, 2):
        mine = rows[left]
        checks = {"same text": has[right], "same words": key[right], "inside": inside[right]}
        for low, high, bucket in _BUCKETS:
            checks[f"inside, {bucket}"] = inside[right] & (words >= low) & (words <= high)
        checks[LEAK] = (inside[right] | key[right]) & (words > leak_words)
        for check, flags in checks.items():
            hit = mine[flags[mine]]
            if check.startswith("inside,") and not len(hit):
                continue
            table.append((check, left, right, len(hit), len(hit) / max(1, len(mine)), _example(distinct[hit])))
    return pd.DataFrame(table, columns=COLUMNS)


def audit(parts: Mapping[str, pd.DataFrame], leak_words: int) -> pd.DataFrame:
    """Every check on every split and pair of splits. Of pairs of texts, the overlaps are those of the first texts.

    Args:
        parts: split -> rows with the columns text and label
        leak_words: as in ``overlaps``

    Returns:
        ``COLUMNS``: check, left, right ("" for a check inside one split), rows, share (of ``left``), example.
    """
    alone = [within(name, whole_texts(rows), rows["label"]) for name, rows in parts.items()]
    across = overlaps({name: rows["text"] for name, rows in parts.items()}, leak_words)
    return pd.concat([*alone, across], ignore_index=True)


def stop_on_leaks(table: pd.DataFrame, leak_words: int, allowed: Collection[frozenset[str]]) -> None:
    """Refuse data that leak.

    Args:
        table: from ``audit`` or ``overlaps``
        leak_words: named in the message
        allowed: pairs of splits that may overlap

    Raises:
        InputError: some other pair of splits has a leak.
    """
    leaks = table[(table["check"] == LEAK) & (table["rows"] > 0)]
    leaks = leaks[[frozenset(pair) not in allowed for pair in zip(leaks["left"], leaks["right"], strict=True)]]
    if len(leaks):
        worst = leaks.loc[leaks["rows"].idxmax()]
        raise InputError(
            f"A leak: {worst['rows']:,} texts of {worst['left']} ({worst['share']:.1%}), of over {leak_words} words "
            f"each, stand in {worst['right']}, for example '{worst['example']}'. Remove them, or set allow_leaks."
        )


def _example(texts: pd.Series | pd.Index | np.ndarray) -> str:
    """The longest text, cut."""
    longest = max(texts, key=len, default="")
    return longest if len(longest) <= _EXAMPLE else longest[: _EXAMPLE - 1].rstrip() + "…"
