"""How is a pretrained encoder made into a loop?"""

from __future__ import annotations

import pandas as pd

from rtxstudy.claims import Claim, claim, row
from rtxstudy.numbers import NBSP, between


def chosen(choice: pd.DataFrame) -> list[Claim]:
    """Which way to make a loop; ``choice``: of ``depth_gain.conversions``, the study's own first."""
    if choice.empty:
        return []
    best, study_loop = choice.loc[choice["val_accuracy"].idxmax()], choice.iloc[0]
    averaged = 100 * choice.loc[choice["start"] == "average", "val_accuracy"]
    return [
        claim(
            "The study's loop keeps the first and the last layer and passes the second and the third twice. It has "
            "the highest validation accuracy of {n:word} ways on MultiNLI, {own:percent} on {rows:,} texts (standard error "
            "{error:points} points), with one seed each.",
            holds=len(choice) > 2 and best.name == study_loop.name and bool(study_loop["taken"]),
            n=len(choice),
            own=study_loop["val_accuracy"],
            rows=study_loop["texts"],
            error=study_loop["standard_error"],
        ),
        claim(
            "With one seed each, the loops of lower layers reach {lower:percent} or more there, the loops of averaged layers "
            "{average} and the loop of spread layers {spread:percent}.",
            holds=choice.loc[choice["start"].isin(["average", "spread"]), "val_accuracy"].max()
            < choice.loc[choice["start"] == "lower", "val_accuracy"].min()
            if {"average", "spread"} <= set(choice["start"])
            else None,
            lower=choice.loc[choice["start"] == "lower", "val_accuracy"].min(),
            average=between(averaged, ".1f") + f"{NBSP}%" if len(averaged) else None,
            spread=row(choice[choice["start"] == "spread"].head(1)).val_accuracy,
        ),
    ]
