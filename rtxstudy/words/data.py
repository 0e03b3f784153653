"""The data of a notebook, and what their audit found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from rtxstudy.words.limitations import SPLITS
from rtxstudy.words.numbers import counted


def setting(source: Mapping[str, Any], recipe: str, seeds: int) -> str:
    """The data and the recipe of a notebook's runs. ``source``: a row of :meth:`rtxstudy.study.Study.source`."""
    rows = ", ".join(f"{source[f'{split} rows']:,} {word}" for split, word in SPLITS.items())
    return (
        f"Data: **{source['data']}** ({source['source']}), {rows} texts. "
        f"Recipe: **{recipe}**, {counted(seeds, 'seed')} per model, unless a section below says otherwise."
    )


def overlap(audit: pd.DataFrame, data: str, leak_words: int) -> str:
    """What the audit of one data set found between test and training texts; ``audit``: its rows."""
    between = audit[audit[["left", "right"]].apply(set, axis=1).eq({"test", "train"}) & (audit["rows"] > 0)]
    if between.empty:
        return f"Between the test and the training texts of **{data}** the audit found no overlap at all."
    lines = [
        f"- {row.check}: {row.rows:,} of the {SPLITS[row.left]} texts ({row.share:.2%}), found in {SPLITS[row.right]} texts"
        for row in between.itertuples()
    ]
    return "\n".join(
        [
            f"Between the test and the training texts of **{data}** the audit found the following. "
            f"An overlap of more than {leak_words} words is a leak.",
            "",
            *lines,
        ]
    )
