"""Sentences on early exit whose risk is bounded: whether the bound holds, what is saved, and whether fixed passes do as well."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from rtxstudy.evaluation.statistics import FEWEST_SEEDS
from rtxstudy.words.numbers import between, higher, number, signed

AIM = 1.7  # early exit aims for at least this throughput in batches, relative to all passes, for a loss of at most the bound
_CHOSEN = {"controlled": "with a bounded expected risk", "certified": "with a certified risk"}


def bounded_exit(row: Mapping[str, Any]) -> str:
    """A row of :func:`rtxstudy.evaluation.bounded_exits.against_all_passes` that is an exit, in words."""
    leaves = f"**{row['data']}**, leaving by {row['criterion']} {_CHOSEN[row['bound']]}"
    if row["passes"] >= row["most"]:
        return f"{leaves}: no text leaves early."
    interval = "" if math.isnan(row["low"]) else f" (95 % interval {signed(row['low'])} to {signed(row['high'])})"
    return (
        f"{leaves}: {row['passes']:.2f} of {row['most']} passes on average, {row['throughput']:.2f} times the throughput of all "
        f"passes ({row['throughput_least']:.2f} times in the slowest seed). "
        f"The accuracy is {higher(row['difference'])}{interval}."
    )


def may_leave(rows: pd.DataFrame) -> str:
    """For each data set: whether the bound holds, what leaving early saves, and whether fixed passes do as well.

    rows: of :func:`rtxstudy.evaluation.bounded_exits.against_all_passes`.
    """
    return "\n\n".join(f"**{data}.** {_of_data(own)}" for data, own in rows.groupby("data", sort=False))


def _of_data(rows: pd.DataFrame) -> str:
    exits, fixed = rows[rows["bound"].isin(_CHOSEN)], rows[rows["bound"] == "validated"].iloc[0]
    early = exits[exits["passes"] < exits["most"]]
    if early.empty:
        most = _percent(fixed["at_most"])
        return f"No text leaves early at a risk of {most}: the validation texts are too few, or need all passes."
    said = [_bounds(early), _saved(early, fixed)]
    if rows["n_seeds"].min() < FEWEST_SEEDS:
        said.append(f"Fewer than {FEWEST_SEEDS} seeds settle nothing.")
    return " ".join(said)


def _bounds(early: pd.DataFrame) -> str:
    """Whether the bounds hold over splits of the test texts, and at the thresholds that validation texts chose."""
    risk, chance, splits = (early[column].iloc[0] for column in ("at_most", "chance", "splits"))
    said = []
    for bound, column, most, spec, words in (
        ("controlled", "mean_risk", risk, ".2f", "thresholds with a bounded expected risk have a mean risk of"),
        ("certified", "share_all_above", chance, ".0f", f"certified thresholds exceed a risk of {_percent(risk)} in"),
    ):
        found = early.loc[early["bound"] == bound, column]
        if len(found):
            verdict = "holds" if (found <= most).all() else "does not hold"
            of = "" if bound == "controlled" else " of the splits"
            shares = f"{between(100 * found, spec)} %{of}"
            said.append(f"Over {splits:.0f} splits of the test texts, {words} {shares}: the bound of {_percent(most)} {verdict}.")
    above = int((early["risk"] > risk).sum())
    kept = "none is above the bound" if not above else f"{above} of {len(early)} are above the bound"
    risks = between(100 * early["risk"], ".2f")
    said.append(f"The thresholds that validation texts chose have a risk of {risks} % on the test texts; {kept}.")
    return " ".join(said)


def _saved(early: pd.DataFrame, fixed: pd.Series) -> str:
    """The fastest exit that loses no more than the bound, beside the fewest fixed passes that validation texts allow."""
    loss = f"{number(100 * fixed['at_most'], 'g')} points"
    instead = (
        f"Fixed passes that lose at most {loss} on validation texts are {fixed['passes']:.1f} on average. They have "
        f"{fixed['throughput']:.2f} times the throughput, and their accuracy is {higher(fixed['difference'])}"
    )
    good = early[early["difference"] >= -fixed["at_most"]]
    if good.empty:
        return f"Every exit loses more than {loss} of accuracy. {instead}."
    best = good.loc[good["throughput"].idxmax()]
    reached = "reached" if best["throughput"] >= AIM else "not reached"
    if fixed["difference"] < -fixed["at_most"]:
        verdict = f"That is a loss of more than {loss}, so fixed passes do not do as well."
    elif fixed["throughput"] >= best["throughput"]:
        verdict = "So fixed passes do as well, and leaving early is not needed."
    else:
        verdict = f"Leaving early is {best['beside_fixed']:.2f} times as fast as they are."
    return (
        f"The fastest exit that loses at most {loss} leaves by {best['criterion']} {_CHOSEN[best['bound']]}, and has "
        f"{best['throughput']:.2f} times the throughput of all passes. The aim of {AIM} times is {reached}. {instead}. {verdict}"
    )


def _percent(share: float) -> str:
    return f"{number(100 * share, 'g')} %"
