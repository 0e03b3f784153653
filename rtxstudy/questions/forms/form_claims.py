"""Which form of the loop learns best?"""

from __future__ import annotations

import pandas as pd

from rtxstudy.claims import Claim, claim, listed
from rtxstudy.names import short
from rtxstudy.numbers import signed
from rtxstudy.statistics import CONFIDENCE, FEWEST_SEEDS


def title(rows: pd.DataFrame, data: str) -> Claim:
    """The title of the figure of one data set; ``rows``: a form each, minus the study's own form."""
    enough = rows[rows["n_seeds"] >= FEWEST_SEEDS]
    better, worse = enough[enough["low"] > 0], enough[enough["high"] < 0]
    if worse.empty:
        if enough.empty:
            seeds = f"{rows['n_seeds'].max()} seeds" if len(rows) else None
            return claim("{data}: {seeds} are too few to tell the forms apart", data=short(data), seeds=seeds)
        return claim("{data}: no form is shown to differ from the study's own", holds=better.empty, data=short(data))
    return claim(
        "{data}: no form beats the study's own, and {n:word} {are} worse",
        holds=better.empty,
        data=short(data),
        n=len(worse),
        are="is" if len(worse) == 1 else "are",
    )


def summary(rows: pd.DataFrame) -> list[Claim]:
    """What all data sets show together. ``rows``: of :func:`rtxstudy.questions.forms.loop_forms.corrected`."""
    enough = rows[rows["n_seeds"] >= FEWEST_SEEDS]
    worse = enough[(enough["high"] < 0) & (enough["data"] != "sst2")].sort_values("difference")
    shown = worse[worse["holm"] < 1 - CONFIDENCE]
    few = rows[(rows["n_seeds"] < FEWEST_SEEDS) & (rows["high"] < 0)]
    both = sorted(set(rows.loc[rows["high"] < 0, "form"][rows.loc[rows["high"] < 0, "form"].duplicated()]))
    return [
        claim(
            "No form of the loop is shown to be better than the study's own, and on the generated texts {named} are "
            "worse.",
            holds=not (enough["low"] > 0).any() and len(worse) > 1,
            named=listed([f"{short(one.form)} ({signed(one.difference)} points)" for one in worse.itertuples()])
            or None,
        ),
        claim(
            "With Holm's correction over the {n} forms of the generated texts {named} {are} still worse.",
            holds=0 < len(shown) < len(worse),
            n=int((enough["data"] != "sst2").sum()),
            named=listed([f"*{short(form)}*" for form in shown["form"]]) or None,
            are="is" if len(shown) == 1 else "are",
        ),
        claim(
            "Of the forms that are worse there, only *{named}* has an interval below zero on SST-2, too. It has two seeds on "
            "SST-2, which are too few to decide.",
            holds=len(both) == 1 and len(few) > 0,
            named=short(both[0]) if both else None,
        ),
    ]
