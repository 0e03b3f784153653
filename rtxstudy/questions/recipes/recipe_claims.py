"""Which recipe suits each encoder, and what does the published protocol reach?"""

from __future__ import annotations

import pandas as pd

from rtxstudy.claims import Claim, claim, first, listed, row
from rtxstudy.names import said, short
from rtxstudy.numbers import aside


def search_title(tried: pd.DataFrame | None) -> Claim:
    if tried is None or tried.empty:
        return claim("", holds=None)
    finals = tried[tried["round"] == "final"].groupby(["arm", "trial"])["val_accuracy"].mean()
    spread = 100 * (finals.groupby("arm").max() - finals.groupby("arm").min())
    error = 100 * float(tried["standard_error"].max())
    return first(
        claim(
            "The recipes of the finals lie within one standard error ({error:.1f} points)",
            holds=spread.max() <= error,
            error=error,
        ),
        claim(
            "The recipes of the finals lie up to {spread:.1f} points apart, on a standard error of {error:.1f}",
            holds=True,
            spread=spread.max(),
            error=error,
        ),
    )


def chosen(best: pd.DataFrame | None) -> list[Claim]:
    """``best``: of ``recipe_search.means``, the finals of each encoder."""
    if best is None or best.empty:
        return []
    claims = []
    for arm, trials in best.groupby("arm", sort=False):
        usual, top = trials[trials["trial"] == 0], trials.loc[trials["val_accuracy"].idxmax()]
        claims.append(
            first(
                claim("- **{arm}** keeps its recipe.", holds=bool(top["trial"] == 0), arm=short(str(arm))),
                claim(
                    "- **{arm}** gains {gain:points} points of validation accuracy with another recipe ({changes}).",
                    holds=True,
                    arm=short(str(arm)),
                    gain=float(top["val_accuracy"] - usual["val_accuracy"].max()) if len(usual) else None,
                    changes=top.get("changes", "another recipe"),
                ),
            )
        )
    return claims


def with_one_recipe(usual: pd.DataFrame | None) -> Claim:
    """Six layers, three, and three passed twice by the recipe before the search; ``usual``: of ``recipe_trials``."""
    depth = row(usual, comparison="standard-6x256 − standard-3x256")
    passes = row(usual, comparison="standard-3x256 − recurrent-3x2x256")
    return claim(
        "- With the recipe before the search, {seeds:word} seeds each, six layers of 256 are not told apart from three "
        "({depth}), nor are three from three passed twice ({passes}). So no order of them is shown on SST-2.",
        holds=depth.low <= 0 <= depth.high and passes.low <= 0 <= passes.high,
        seeds=depth.n_seeds,
        depth=aside(depth.difference, depth.low, depth.high) if depth else None,
        passes=aside(passes.difference, passes.low, passes.high) if passes else None,
    )


def with_own_recipes(differences: pd.DataFrame | None) -> list[Claim]:
    """The encoders on test texts, each with the recipe that its finals chose; ``differences``: of ``recipe_trials``."""
    if differences is None or differences.empty:
        return []
    apart = differences[(differences["low"] > 0) | (differences["high"] < 0)]
    told = listed([said(f"{one.comparison} ({aside(one.difference, one.low, one.high)})") for one in apart.itertuples()])
    depth = row(differences, comparison="standard-6x256 − standard-3x256")
    return [
        first(
            claim(
                "- Each with its own best recipe, no two of the encoders are told apart on the test texts.",
                holds=apart.empty,
                n=len(differences),
            ),
            claim("- Each with its own best recipe, on the test texts: {told}.", holds=True, told=told or None),
        ),
        claim(
            "- So six layers of 256 are not shown to beat three with recipes of their own either ({depth}).",
            holds=depth.low <= 0 <= depth.high,
            depth=aside(depth.difference, depth.low, depth.high) if depth else None,
        ),
    ]
