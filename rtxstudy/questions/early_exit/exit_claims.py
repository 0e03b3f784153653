"""Can a text leave a loop early, at a bounded risk?"""

from __future__ import annotations

import pandas as pd

from rtxstudy.claims import Claim, claim, first, row
from rtxstudy.numbers import aside, ends


def title(exits: pd.DataFrame) -> Claim:
    """``exits``: of ``bounded_exits.against_all_passes``."""
    bounded = exits[exits["bound"].isin(["controlled", "certified"])] if len(exits) else exits
    faster = int((bounded["beside_fixed"] > 1).sum()) if len(bounded) else 0
    return claim(
        "No exit of bounded risk is faster than the two passes that validation texts choose",
        holds=faster == 0 and row(exits, way="fixed").passes == 2,
        n=len(bounded) or None,
    )


def leaving(exits: pd.DataFrame, weaker: pd.DataFrame) -> list[Claim]:
    """``weaker``: of ``bounded_exits.beside_plain_loop``."""
    sure, fixed, plain = (
        row(exits, way="confidence_controlled"),
        row(exits, way="fixed"),
        row(weaker.head(1) if len(weaker) else None),
    )
    return [
        claim(
            "On MultiNLI the fastest exit with a bounded risk uses the confidence rule. It takes {passes:.1f} of 4 passes, reads "
            "{speed:.2f} "
            "times as many texts a second, and turns a right label wrong for {risk:.2f} % of the texts.",
            holds=sure.throughput == exits.loc[exits["bound"].isin(["controlled", "certified"]), "throughput"].max()
            if len(exits)
            else None,
            passes=sure.passes,
            speed=sure.throughput,
            risk=100 * sure.risk,
        ),
        claim(
            "Two passes for every text are faster ({speed:.2f} times as many texts a second), and their accuracy is not told "
            "apart ({gain}). They turn a right label wrong for {risk:.1f} % of the texts.",
            holds=fixed.throughput > sure.throughput and fixed.low <= 0 <= fixed.high,
            speed=fixed.throughput,
            gain=aside(fixed.difference, fixed.low, fixed.high) if fixed else None,
            risk=100 * fixed.risk,
        ),
        first(
            claim(
                "An encoder that can be read after every pass pays for that. It is {lost:points} points below the loop trained "
                "for two passes ({interval}).",
                holds=plain.high < 0 and plain.epochs == plain.plain_epochs,
                lost=plain.difference,
                interval=ends(plain.low, plain.high) if plain else None,
            ),
            claim(
                "The encoder that can be read after every pass is {lost:points} points below the loop trained for two passes "
                "({interval}). It was also trained for a shorter time, {epochs:word} epoch instead of {plain:word}.",
                holds=plain.high < 0 and plain.epochs == 1 < plain.plain_epochs,
                lost=plain.difference,
                interval=ends(plain.low, plain.high) if plain else None,
                epochs=plain.epochs,
                plain=plain.plain_epochs,
            ),
        ),
    ]
