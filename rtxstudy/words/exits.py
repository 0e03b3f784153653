"""Sentences on early exit whose risk is bounded: whether the bound holds, what is saved, and whether fixed passes do as well."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from rtxstudy.evaluation.statistics import FEWEST_SEEDS
from rtxstudy.numbers import between, higher, interval, number

AIM = 1.7  # early exit aims for at least this throughput in batches, relative to all passes, for a loss of at most the bound
_CHOSEN = {"controlled": "with a bounded expected risk", "certified": "with a certified risk"}
_WORDS = {1: "one", 2: "two", 3: "three", 4: "four", 5: "five", 6: "six"}


def bounded_exit(row: Mapping[str, Any]) -> str:
    """A row of :func:`rtxstudy.evaluation.bounded_exits.against_all_passes` that is an exit, in words."""
    leaves = f"**{row['data']}**, leaving by {row['criterion']} {_CHOSEN[row['bound']]}"
    if row["passes"] >= row["most"]:
        return f"{leaves}: no text leaves early."
    return (
        f"{leaves}: {row['passes']:.2f} of {row['most']} passes on average, {row['throughput']:.2f} times the throughput of all "
        f"passes ({row['throughput_least']:.2f} times in the slowest seed). "
        f"The accuracy is {higher(row['difference'])}{_ends(row)}."
    )


def beside_plain_loop(row: Mapping[str, Any]) -> str:
    """A row of :func:`rtxstudy.evaluation.bounded_exits.beside_plain_loop` in words: how good the encoder is that texts leave."""
    accuracy, of_plain = (f"{number(100 * row[name], '.1f')} %" for name in ("accuracy", "plain_accuracy"))
    said = (
        f"**{row['data']}**: this encoder has an accuracy of {accuracy} at full depth. The loop of the same layers that "
        f"was trained for {_passes(row['plain_passes'])} has {of_plain}. The accuracy of this encoder is "
        f"{higher(row['difference'])}{_ends(row)}. It was trained for {_epochs(row['epochs'])} with one to "
        f"{_passes(row['passes'])}, and that loop for {_epochs(row['plain_epochs'])}."
    )
    return f"{said} What is said below holds for this weaker encoder." if row["high"] < 0 else said


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
    return "\n\n".join(said)


def _bounds(early: pd.DataFrame) -> str:
    """Whether the bounds hold over splits of the test texts, and at the thresholds that validation texts chose."""
    risk, chance, splits = (early[column].iloc[0] for column in ("at_most", "chance", "splits"))
    said = [
        f"The test texts are split {splits:.0f} times into two halves. One half chooses a threshold, and the other half holds "
        "new texts."
    ]
    plain, sure = (early[early["bound"] == bound] for bound in _CHOSEN)
    if len(plain):
        verdict = "holds" if (plain["mean_risk"] <= risk).all() else "does not hold"
        said.append(
            f"Thresholds with a bounded expected risk have a mean risk of {between(100 * plain['mean_risk'], '.2f')} % on the "
            f"new half: the bound of {_percent(risk)} {verdict}."
        )
    if len(sure):
        said.append(_certified(sure, risk, chance))
    above = int((early["risk"] > risk).sum())
    kept = "none is above the bound" if not above else f"{above} of {len(early)} are above the bound"
    risks = between(100 * early["risk"], ".2f")
    said.append(f"The thresholds that validation texts chose have a risk of {risks} % on the test texts; {kept}.")
    return " ".join(said)


def _certified(sure: pd.DataFrame, risk: float, chance: float) -> str:
    """In how many splits a certified threshold exceeds the risk: on the new half, and on both halves together.

    The two shares bracket the share that the bound is about, which is that of texts without end: see
    :func:`rtxstudy.evaluation.exit_risk.check_bound`.
    """
    on_new, on_all = (sure[column] for column in ("share_above", "share_all_above"))
    said = (
        f"Certified thresholds exceed a risk of {_percent(risk)} in {between(100 * on_new, '.1f')} % of the splits if the new "
        f"half is judged, and in {between(100 * on_all, '.1f')} % if both halves are judged."
    )
    bound = f"The bound of {_percent(chance)}"
    if (on_new <= chance).all():
        return f"{said} {bound} holds."
    if (on_all > chance).any():
        return f"{said} {bound} does not hold."
    return (
        f"{said} {bound} lies between the two, so the splits do not settle whether it holds. The bound is about texts without "
        "end. The risk of the new half varies with its texts, which raises the first share. Both halves include the texts that "
        "chose the threshold, which lowers the second share."
    )


def _saved(early: pd.DataFrame, fixed: pd.Series) -> str:
    """The fastest exit that loses no more than the bound, beside the fewest fixed passes that validation texts allow."""
    loss = f"{number(100 * fixed['at_most'], 'g')} points"
    instead = _instead(fixed, loss)
    good = early[early["difference"] >= -fixed["at_most"]]
    if good.empty:
        return f"Every exit loses more than {loss} of accuracy. {instead}"
    best = good.loc[good["throughput"].idxmax()]
    reached = "reached" if best["throughput"] >= AIM else "not reached"
    return (
        f"The fastest exit that loses at most {loss} leaves by {best['criterion']} {_CHOSEN[best['bound']]}, and has "
        f"{best['throughput']:.2f} times the throughput of all passes. The aim of {AIM} times is {reached}. {instead} "
        f"{_verdict(best, fixed, loss)}"
    )


def _instead(fixed: pd.Series, loss: str) -> str:
    """The fewest passes that validation texts allow, and what they do on test texts."""
    if fixed["passes"] >= fixed["most"]:
        return f"On validation texts fewer than {_passes(fixed['most'])} lose more than {loss}, so fixed passes save nothing."
    verb = "loses" if fixed["passes"] == 1 else "lose"
    said = (
        f"On validation texts {_passes(fixed['passes'])} {verb} at most {loss}. On test texts that gives "
        f"{fixed['throughput']:.2f} times the throughput of all passes, and the accuracy is {higher(fixed['difference'])}"
        f"{_ends(fixed)}."
    )
    admits = fixed["low"] < -fixed["at_most"] <= fixed["difference"]
    return f"{said} A loss of more than {loss} is not excluded." if admits else said


def _verdict(best: pd.Series, fixed: pd.Series, loss: str) -> str:
    """Whether fixed passes do as well as the best exit: as fast, with no larger loss, and with a risk within the bound."""
    faster, speed = fixed["throughput"] >= best["throughput"], f"{best['beside_fixed']:.2f} times as fast as"
    if fixed["passes"] >= fixed["most"]:
        return f"Leaving early is {speed} all passes."
    if fixed["difference"] < -fixed["at_most"]:
        return f"That is a loss of more than {loss}, so fixed passes do not do as well."
    if fixed["risk"] > fixed["at_most"]:
        return (
            f"Fixed passes are {'faster' if faster else 'slower'} than this exit and about as accurate, but they turn a right "
            f"label wrong for {number(100 * fixed['risk'], '.1f')} % of the texts. So they do not meet the bound of "
            f"{_percent(fixed['at_most'])}."
        )
    if not faster:
        return f"Leaving early is {speed} fixed passes."
    if fixed["low"] < -fixed["at_most"]:
        return "Fixed passes are faster than this exit and meet the bound, but it is not settled whether they are as accurate."
    return "So fixed passes do as well, and leaving early is not needed."


def _passes(number_of: float) -> str:
    """A number of passes, or a mean of it over seeds: "two passes", "2.3 passes on average"."""
    if number_of % 1:
        return f"{number(number_of, '.1f')} passes on average"
    return f"{_WORDS.get(int(number_of), int(number_of))} {'pass' if number_of == 1 else 'passes'}"


def _ends(row: Mapping[str, Any]) -> str:
    """The interval of a difference in brackets, if it has one."""
    return "" if math.isnan(row["low"]) else f" ({interval(row['low'], row['high'])})"


def _epochs(number_of: float) -> str:
    return f"{_WORDS.get(number_of, number(number_of, 'g'))} {'epoch' if number_of == 1 else 'epochs'}"


def _percent(share: float) -> str:
    return f"{number(100 * share, 'g')} %"
