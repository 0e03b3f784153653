"""What do width, layers, passes, data and text length each buy?"""

from __future__ import annotations

import pandas as pd

from rtxstudy.claims import Claim, claim, first, listed, row
from rtxstudy.numbers import aside, between


def blocks(over_blocks: pd.DataFrame) -> list[Claim]:
    """Passes over all blocks of the grid; ``over_blocks``: of ``comparisons.over_blocks``."""
    differences = over_blocks[(over_blocks["low"] > 0) | (over_blocks["high"] < 0)] if len(over_blocks) else over_blocks
    twice = row(over_blocks, passes=2, against="one pass")
    against_layers = row(over_blocks, passes=2, against="layers of their own")
    return [
        first(
            claim(
                "Over nine blocks (layers × width) neither a second pass ({pass_}) nor a third is shown to help or to harm.",
                holds=differences.empty,
                pass_=aside(twice.difference, twice.low, twice.high) if twice else None,
            ),
            claim(
                "Over the blocks of the grid, these differences are shown: {told}.",
                holds=len(differences) > 0,
                told=listed(
                    [
                        f"{one.passes} passes − {one.against} ({aside(one.difference, one.low, one.high)})"
                        for one in differences.itertuples()
                    ]
                )
                or None,
            ),
        ),
        claim(
            "Two passes are not shown to be less accurate than twice as many layers ({own}).",
            holds=against_layers.low <= 0 <= against_layers.high,
            own=aside(against_layers.difference, against_layers.low, against_layers.high) if against_layers else None,
        ),
    ]


def bubble_title(grid: pd.DataFrame) -> Claim:
    spread = 100 * (grid["mean"].max() - grid["mean"].min())
    return claim(
        "From {small:.1f} to {large:.0f} million parameters, {n} encoders lie within {spread:.0f} points",
        holds=spread < 4,
        small=grid["parameters"].min() / 1e6,
        large=grid["parameters"].max() / 1e6,
        n=len(grid),
        spread=spread,
    )


def frontier_title(grid: pd.DataFrame, best: pd.Series, cost: str) -> Claim:
    """Which encoders stand on the frontier. With few seeds each their order is noise, and the title says how many."""
    on = grid[best]
    recurrent = int((on["family"] == "recurrent").sum())
    return claim(
        "Against {cost}, {recurrent:word} of {n:word} encoders on the frontier {are} recurrent ({seeds} each)",
        holds=grid["n"].nunique() == 1,
        seeds="one seed" if (grid["n"] == 1).all() else f"{grid['n'].max():.0f} seeds",
        cost=cost,
        recurrent=recurrent,
        n=len(on),
        are="is" if recurrent == 1 else "are",
    )


def grid_title(grid: pd.DataFrame) -> Claim:
    spread = 100 * (grid["mean"].max() - grid["mean"].min())
    return claim(
        "No size stands out: the best and the worst of {n} cells are {spread:.1f} points apart",
        holds=spread < 4,
        n=len(grid),
        spread=spread,
    )


def data_size(at_sizes: pd.DataFrame) -> list[Claim]:
    """The recurrent encoder minus the standard one on parts of the training texts."""
    tenth, half = row(at_sizes, data="sst2 10%"), row(at_sizes, data="sst2 50%")
    return [
        first(
            claim(
                "Less data does not tell the two encoders apart, neither half of the texts ({half}) nor a tenth "
                "({tenth}).",
                holds=tenth.low <= 0 <= tenth.high and half.low <= 0 <= half.high,
                half=aside(half.difference, half.low, half.high) if half else None,
                tenth=aside(tenth.difference, tenth.low, tenth.high) if tenth else None,
            ),
            claim(
                "With a tenth of the texts the two encoders differ ({tenth}).",
                holds=not tenth.low <= 0 <= tenth.high,
                tenth=aside(tenth.difference, tenth.low, tenth.high) if tenth else None,
            ),
        )
    ]


def few_steps(steps: pd.DataFrame) -> list[Claim]:
    """``steps``: ``data``, ``train_rows``, ``steps`` of each part."""
    tenth, whole = row(steps, data="sst2 10%"), row(steps, data="sst2")
    parts = steps.loc[steps["data"] != "sst2", "steps"]
    return [
        first(
            claim(
                "The runs on parts of the texts (half, a tenth, the shortest, the longest) read their texts several times, in "
                "{steps} optimiser steps. Those on all texts read them once, in {all:,}. So the parts differ from the "
                "whole in steps, too, and no part has fewer.",
                holds=len(parts) > 3 and parts.min() > whole.steps,
                steps=between(parts, ",.0f") if len(parts) else None,
                all=whole.steps,
            ),
            claim(
                "A tenth of the texts is read in {steps} optimiser steps, so this part says as much about few steps as "
                "about few texts.",
                holds=tenth.steps < 200,
                steps=tenth.steps,
            ),
        )
    ]


def data_size_title(by_size: pd.DataFrame) -> Claim:
    ends = by_size.sort_values("train_rows").groupby("model")["mean"].agg(["first", "last"])
    gain = 100 * (ends["last"] - ends["first"])
    return claim(
        "Ten times the texts are worth {gain} points to either encoder",
        holds=gain.min() > 5,
        gain=between(gain, ".0f"),
    )


def lengths(at_lengths: pd.DataFrame) -> list[Claim]:
    short_, long = row(at_lengths, data="sst2 shortest"), row(at_lengths, data="sst2 longest")
    return [
        claim(
            "Long texts are not shown to favour the loop ({long}), and short ones are not either ({short}).",
            holds=long.low <= 0 <= long.high and short_.low <= 0 <= short_.high,
            long=aside(long.difference, long.low, long.high) if long else None,
            short=aside(short_.difference, short_.low, short_.high) if short_ else None,
        )
    ]


def lengths_title(at_lengths: pd.DataFrame) -> Claim:
    return claim(
        "Neither on short nor on long texts are the two encoders told apart",
        holds=bool(((at_lengths["low"] <= 0) & (at_lengths["high"] >= 0)).all()),
        n=len(at_lengths) or None,
    )


def longer_title(longer: pd.DataFrame) -> Claim:
    """Texts longer than in training; ``longer``: ``position``, ``read``, differences to the length of training."""
    falls = longer[longer["high"] < 0] if len(longer) else longer
    return first(
        claim(
            "No form of positions loses accuracy on texts longer than in training",
            holds=falls.empty,
            n=len(longer) or None,
        ),
        claim(
            "On texts longer than in training, {named} lose accuracy",
            holds=len(falls) > 0,
            named=listed(sorted(set(falls["position"]))) or None,
        )
        if len(longer)
        else claim("", holds=None),
    )
