"""The verdict on each task and way of training: whether depth pays there, and whether a loop replaces it.

There is one rule, and this module holds it. README, report, docs/findings.md, the titles of figures and notebook 09 read its
column. The rows are those of :func:`rtxstudy.questions.depth_gain.gains.depth_gain`.

- Depth pays: the deep encoder is more accurate than the shallow one, with Holm's correction over all comparisons of the table
  (Holm 1979), and an encoder of the comparison has learned. A comparison of fewer than three seeds takes no part. Whether an
  encoder has learned is told by test texts, so it thins no family.
- A loop replaces depth: depth pays there, the loop is more accurate than the shallow encoder, and the whole interval of
  loop − deep lies above −margin. It is not settled where the interval of loop − deep fails without one of the seeds. The other
  two conditions are judged on all seeds.
- The loop is less accurate where the whole interval of loop − deep lies below zero; it loses where it lies below −margin.
- Where no gain from depth is shown, nothing is said of the loop. A gain that is not shown may still exist.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
from statsmodels.stats.multitest import multipletests

from rtxstudy.statistics import CONFIDENCE, FEWEST_SEEDS, MARGIN

VERDICTS = {  # verdict → how a table writes it
    "replaces": "the loop replaces depth",
    "not settled": "not settled",
    "below": "the loop is less accurate, perhaps by less than a point",
    "loses": "the loop loses more than a point",
    "no gain": "no gain from depth shown",
    "few seeds": "too few seeds",
    "not learned": "no encoder learned",
}

LESS_ACCURATE = ("below", "loses")  # the verdicts by which the loop is less accurate


def judged(gains: pd.DataFrame, margin: float = MARGIN) -> pd.DataFrame:
    """The rows with three further columns.

    ``depth_holm``: the p-value of the depth gain with Holm's correction, NaN where a row takes no part; ``pays``: whether depth
    pays; ``verdict``: a key of :data:`VERDICTS`.
    """
    counts = gains["n_seeds"] >= FEWEST_SEEDS
    holm = pd.Series(float("nan"), gains.index)
    if counts.any():
        holm[counts] = multipletests(gains.loc[counts, "depth_p"], method="holm")[1]
    table = gains.assign(depth_holm=holm, pays=(holm < 1 - CONFIDENCE) & (gains["depth_gain"] > 0) & gains["learned"])
    table["verdict"] = [_verdict(row, margin) for row in table.to_dict("records")]
    return table


def _verdict(row: dict[str, Any], margin: float) -> str:
    if not row["learned"]:
        return "not learned"
    if row["n_seeds"] < FEWEST_SEEDS:
        return "few seeds"
    if not row["pays"]:
        return "no gain"
    if row["sharing_high"] < -margin:
        return "loses"
    if row["sharing_high"] < 0:
        return "below"
    replaces = row["loop_low"] > 0 and row["sharing_low"] > -margin and row["sharing_low_without"] > -margin
    return "replaces" if replaces else "not settled"


def counted(table: pd.DataFrame) -> dict[str, int]:
    """How many comparisons and tasks take part, and on how many of them depth pays: the one count of all pages.

    ``table``: of :func:`judged`. Keys: ``comparisons``, ``tasks``, ``pays`` (comparisons) and ``paying`` (tasks).
    """
    settled = table[table["depth_holm"].notna()]
    return {
        "comparisons": len(settled),
        "tasks": settled["data"].nunique(),
        "pays": int(settled["pays"].sum()),
        "paying": settled.loc[settled["pays"], "data"].nunique(),
    }
