"""The data of a notebook, and what their audit found."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from rtxstudy.words.limitations import SPLITS
from rtxstudy.numbers import counted, number

if TYPE_CHECKING:  # loads torch
    from rtxlib.training.recipe import Recipe

_SEARCHED = ("default",)  # recipes whose rate was searched on the validation split of the headline data (LOG.md)


def setting(source: Mapping[str, Any], recipe: str, seeds: int) -> str:
    """The data and the recipe of a notebook's runs. ``source``: a row of :meth:`rtxstudy.study.Study.source`."""
    rows = ", ".join(f"{source[f'{split} rows']:,} {word}" for split, word in SPLITS.items())
    return (
        f"Data: **{source['data']}** ({source['source']}), {rows} texts. "
        f"Recipe: **{recipe}**, {counted(seeds, 'seed')} per model, unless a section below says otherwise."
    )


def validation(source: Mapping[str, Any], accuracy: float, recipe: Recipe) -> str:
    """How coarse the validation split is, and what was chosen with it.

    source: as for :func:`setting`. accuracy: p, of a classifier on that split. recipe: of the runs.
    """
    n = source["validation rows"]
    error = math.sqrt(accuracy * (1 - accuracy) / n)
    chosen = {
        "the learning rates of the recipes `default` and `finetune` (docs/method.md)": recipe.name in _SEARCHED,
        "the weights that each run keeps": recipe.keep == "best",
        "the constants of the baselines, and the best baseline": True,
        "the thresholds of early exit in notebook 03": True,
    }
    return (
        f"The validation split of **{source['data']}** has {n:,} texts. At an accuracy of {accuracy:.3f}, the standard error is "
        f"√(p(1 − p)/n) = {number(100 * error, '.1f')} points. Differences of this size are noise, so the following choices are "
        "coarse:\n\n"
    ) + "\n".join(f"- {what}" for what, holds in chosen.items() if holds)


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
