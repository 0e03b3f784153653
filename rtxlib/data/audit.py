"""Can the data be trusted? Duplicates, contradictions, and texts that stand on both sides of a split."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import permutations

import numpy as np
import pandas as pd

from rtxlib.data.splits import occurrences, words_key
from rtxlib.errors import InputError

COLUMNS = ["check", "left", "right", "rows", "share", "example"]
LEAK = "leak"
_BUCKETS = ((1, 3, "1–3 words"), (4, 7, "4–7 words"), (8, 10**9, "8 words and more"))
_EXAMPLE = 90  # characters of a text that are shown


def within(name: str, texts: pd.Series, labels: pd.Series) -> pd.DataFrame:
    """What is wrong inside one split: rows that repeat an earlier text, and texts that carry more than one label.

    Texts are compared as their words, so white space at an end makes no difference.

    Returns:
        ``COLUMNS``, with ``right`` empty; ``rows`` counts repeated rows, or distinct texts with two labels.
    """
    key = texts.map(lambda text: " ".join(text.split()))
    again = key.duplicated().to_numpy()
    several = labels.groupby(key.to_numpy()).nunique()
    torn = several.index[several > 1]
    return pd.DataFrame(
        [
            ("duplicate texts", name, "", int(again.sum()), again.mean(), _example(key[again])),
            ("same text, different labels", name, "", len(torn), len(torn) / max(1, len(several)), _example(torn)),
        ],
        columns=COLUMNS,
    )


def overlaps(parts: Mapping[str, pd.Series], leak_words: int = 3) -> pd.DataFrame:
    """How much of each part stands in each other part, both ways; the parts may come from different sources.

    The checks, each the rows of ``left`` that

    - "same text": stand in ``right`` word for word;
    - "same words": do so but for case and punctuation;
    - "inside": are, as a whole, a sequence of words of a text of ``right`` (equal texts included); where there are any,
      also by length;
    - "leak": are inside or of the same words, and longer than ``leak_words`` words.

    Args:
        parts: name -> (n,) texts; words are what white space separates
        leak_words: above this length an overlap is a leak; short phrases recur in any language

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
        for name, found in inside.items():
            found[inner[has[name][outer]]] = True

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


def audit(parts: Mapping[str, pd.DataFrame], leak_words: int = 3) -> pd.DataFrame:
    """Every check on every split and pair of splits.

    Args:
        parts: split -> rows with the columns text and label
        leak_words: as in ``overlaps``

    Returns:
        ``COLUMNS``: check, left, right ("" for a check inside one split), rows, share (of ``left``), example.
    """
    alone = [within(name, rows["text"], rows["label"]) for name, rows in parts.items()]
    across = overlaps({name: rows["text"] for name, rows in parts.items()}, leak_words)
    return pd.concat([*alone, across], ignore_index=True)


def stop_on_leaks(table: pd.DataFrame, leak_words: int, allowed: Collection[frozenset[str]] = ()) -> None:
    """Refuse data that leak.

    Args:
        table: from ``audit`` or ``overlaps``
        leak_words: named in the message
        allowed: pairs of splits that may overlap

    Raises:
        InputError: some other pair of splits has a leak.
    """
    found = table[(table["check"] == LEAK) & (table["rows"] > 0)]
    found = found[[frozenset(pair) not in allowed for pair in zip(found["left"], found["right"], strict=True)]]
    if len(found):
        worst = found.loc[found["rows"].idxmax()]
        raise InputError(
            f"A leak: {worst['rows']:,} texts of {worst['left']} ({worst['share']:.1%}), of over {leak_words} words "
            f"each, stand in {worst['right']}, for example '{worst['example']}'. Remove them, or set allow_leaks."
        )


def label_balance(parts: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Rows of each label: columns split, label_name, rows, share (of the split)."""
    counts = [rows["label_name"].value_counts().sort_index().rename("rows").reset_index() for rows in parts.values()]
    table = pd.concat([count.assign(split=name) for name, count in zip(parts, counts, strict=True)], ignore_index=True)
    return table.assign(share=table["rows"] / table.groupby("split")["rows"].transform("sum"))[
        ["split", "label_name", "rows", "share"]
    ]


def length_counts(parts: Mapping[str, pd.DataFrame], unit: str = "tokens") -> pd.DataFrame:
    """The distribution of lengths as counts: columns split, ``unit`` ("tokens" or "words"), rows."""
    counts = [rows[unit].value_counts().sort_index().rename("rows").reset_index() for rows in parts.values()]
    table = pd.concat([count.assign(split=name) for name, count in zip(parts, counts, strict=True)], ignore_index=True)
    return table[["split", unit, "rows"]]


def _example(texts: pd.Series | pd.Index | np.ndarray) -> str:
    """The longest, cut: it says most about what the overlap is."""
    longest = max(texts, key=len, default="")
    return longest if len(longest) <= _EXAMPLE else longest[: _EXAMPLE - 1].rstrip() + "…"
