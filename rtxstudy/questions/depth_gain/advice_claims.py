"""Which encoder to take on each task."""

from __future__ import annotations

import pandas as pd

from rtxstudy.claims import Claim, claim, listed
from rtxstudy.questions.depth_gain.depth_claims import shown, with_ways
from rtxstudy.questions.depth_gain.verdicts import LESS_ACCURATE

OF_SEVERAL = (
    "The advice below uses one comparison for each task, named in brackets. It is a comparison in which depth pays, if there is "
    "one. Of several it is the one with the most accurate deep encoder, and of these the one with the most accurate loop."
)


def what_to_use(gains: pd.DataFrame) -> list[Claim]:
    """Which of the three encoders to take on each task, or none of them.

    A task with several ways of training stands here once, by the way of :data:`OF_SEVERAL`.
    """
    table = shown(gains)
    judged_rows = table[table["depth_holm"].notna()]
    judged_rows = judged_rows.sort_values(["pays", "deep", "loop"], ascending=False, kind="stable").drop_duplicates("data")
    beaten = judged_rows["deep_words_low"] > 0  # the deep encoder is shown to beat counting words
    rest = judged_rows[beaten]
    flat = rest[rest["verdict"] == "no gain"]
    unlike = flat[flat["shallow_words_low"] <= 0]  # the shallow encoder is not shown to beat counting words
    below = rest[rest["verdict"].isin(LESS_ACCURATE)]
    others = listed(with_ways(_other_loops(table, below)))
    another = " Another loop is not told apart from the same deep encoder on {others}." if others else ""
    groups = (
        ("- **TF-IDF may be enough:** {named}. The deep encoder is not shown to beat it.", judged_rows[~beaten]),
        ("- **Take the loop, if memory counts:** {named}.", rest[rest["verdict"] == "replaces"]),
        ("- **Take the deep encoder:** {named}. This loop is less accurate." + another, below),
        (
            "- **Take the deep encoder, to be safe:** {named}. Depth pays, and it is not shown, with any one seed "
            "left out, that the loop loses less than a point.",
            rest[rest["verdict"] == "not settled"],
        ),
        (
            "- **Take the shallow encoder:** {named}. No gain from depth is shown, and the shallow one is the cheapest.",
            flat[flat["shallow_words_low"] > 0],
        ),
        (
            "- **Take TF-IDF, or the deep encoder:** {named}. No gain from depth is shown, but only the deep encoder is shown to "
            "beat TF-IDF.",
            unlike[unlike["loop_words_low"] <= 0],
        ),
        (
            "- **Take TF-IDF, the loop or the deep encoder:** {named}. No gain from depth is shown, but the loop and the deep "
            "encoder are shown to beat TF-IDF, and the shallow one is not.",
            unlike[unlike["loop_words_low"] > 0],
        ),
    )
    return [
        claim(OF_SEVERAL, holds=table["data"].duplicated().any(), n=len(table) or None),
        *(claim(text, named=listed(with_ways(rows)) or None, others=others) for text, rows in groups),
    ]


def _other_loops(table: pd.DataFrame, below: pd.DataFrame) -> pd.DataFrame:
    """Comparisons of the tasks of ``below`` with the same deep encoder, in which the loop is not told apart from it."""
    same_deep = table.merge(below[["data", "deep"]], on=["data", "deep"])
    return same_deep[(same_deep["sharing_low"] <= 0) & (same_deep["sharing_high"] >= 0)]
