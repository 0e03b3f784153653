"""How many passes does a loop need, when may a text leave, and what does each pass do?"""

from __future__ import annotations

import math

import pandas as pd

from rtxstudy.claims import Claim, claim, first, listed, row
from rtxstudy.names import short
from rtxstudy.numbers import aside, ends, signed
from rtxstudy.statistics import mean_interval


def _gain(accuracies: pd.DataFrame, model: str, data: str, last: int) -> tuple[float, float, float, int] | None:
    """Accuracy after the last pass of training minus that after the first, with its interval over seeds."""
    part = accuracies[(accuracies["model"] == model) & (accuracies["data"] == data)]
    by_seed = part.pivot(index="seed", columns="iteration", values="accuracy")
    if part.empty or not {1, last} <= set(by_seed):
        return None
    return tuple(mean_interval((by_seed[last] - by_seed[1]).dropna()))


def read_after(accuracies: pd.DataFrame, last: int) -> list[Claim]:
    """What later passes add. ``accuracies``: ``data``, ``model``, ``seed``, ``iteration``, ``accuracy``."""
    generated = _gain(accuracies, "recurrent-1x4x64 none", "embedded", last)
    headline = _gain(accuracies, "recurrent-3x4x256 uniform", "sst2", last)
    return [
        claim(
            "On the generated texts the later passes do the work: a one-layer loop that was trained for four passes "
            "gains {gain:points} points from the first to the fourth ({interval}, over seeds).",
            holds=bool(generated) and generated[1] > 0,
            gain=generated[0] if generated else None,
            interval=ends(*generated[1:3]) if generated else None,
        ),
        first(
            claim(
                "On SST-2 they do not: an encoder that was trained with one to four passes is less accurate after the fourth "
                "pass than after the first ({gain}, over {seeds:word} seeds on these test texts).",
                holds=bool(headline) and headline[2] < 0,
                gain=aside(*headline[:3]) if headline else None,
                seeds=headline[3] if headline else None,
            ),
            claim(
                "On SST-2 they do not: an encoder that was trained with one to four passes is no better after the fourth than "
                "after the first ({gain}, over seeds).",
                holds=bool(headline) and headline[2] < 0.005,
                gain=aside(*headline[:3]) if headline else None,
            ),
        ),
    ]


def read_title(accuracies: pd.DataFrame, last: int) -> Claim:
    generated, headline = (
        _gain(accuracies, "recurrent-1x4x64 none", "embedded", last),
        _gain(accuracies, "recurrent-3x4x256 uniform", "sst2", last),
    )
    gain, other = 100 * generated[0] if generated else None, headline[0] if headline else None
    return first(
        claim(
            "Later passes gain {gain:.0f} points on the generated texts, and lose {other:points} on SST-2",
            holds=bool(generated) and bool(headline) and generated[1] > 0 and headline[2] < 0,
            gain=gain,
            other=other,
        ),
        claim(
            "Later passes gain {gain:.0f} points on the generated texts, and none on SST-2",
            holds=bool(generated) and bool(headline) and generated[1] > 0 and headline[2] < 0.005,
            gain=gain,
            other=other,
        ),
    )


def leaving(exits: pd.DataFrame) -> list[Claim]:
    """Early exit beside fixed passes; ``exits``: of ``exits.exit_differences``."""
    fixed = int((exits["fixed_throughput"] >= exits["throughput"]).sum()) if len(exits) else 0
    sure = row(exits, data="sst2", criterion="confidence")
    return [
        claim(
            "On SST-2 leaving by confidence takes {passes:.1f} of 4 passes and reads {speed:.1f} times as many texts a second as "
            "four passes for every text.",
            holds=sure.throughput > 1.5 and abs(sure.difference) < 0.005,
            passes=sure.passes,
            speed=sure.throughput,
        ),
        claim(
            "With {passes:word} {noun} for every text it reads {speed:.1f} times as many, at an accuracy that differs by {gain} "
            "points from that of all four. So the exit is not needed there.",
            holds=sure.fixed_throughput > sure.throughput and sure.fixed_difference > -0.005,
            passes=int(sure.fixed_passes) if sure else None,
            noun="pass" if sure.fixed_passes == 1 else "passes",
            speed=sure.fixed_throughput,
            gain=signed(sure.fixed_difference) if sure else None,
        ),
        claim(
            "No exit is shown to be needed, here and on the generated texts: for each rule on each data set ({n:word} in all), "
            "some fixed number of passes for every text is as fast, at no lower mean accuracy. (That number is found on these "
            "test texts.)",
            holds=fixed == len(exits),
            n=len(exits) or None,
        ),
    ]


def leaving_title(exits: pd.DataFrame) -> Claim:
    fixed = (exits["fixed_throughput"] >= exits["throughput"]).all()
    return claim(
        "For every early exit some fixed number of passes is as fast, at no lower accuracy",
        holds=bool(fixed),
        n=len(exits) or None,
    )


def states_title(states: pd.DataFrame) -> Claim:
    last = states[states["iteration"] == states["iteration"].max()].groupby("model")["token_correlation"].mean()
    return claim(
        "Tokens do not become one: after the last pass they correlate by {low:.2f} to {high:.2f}",
        holds=last.max() < 0.8,
        low=last.min(),
        high=last.max(),
    )


def stability(growth: pd.DataFrame) -> list[Claim]:
    """Which forms keep the length of the state; ``growth``: of ``loop_tables.growth``."""
    growth = growth[growth["weights"] == "trained"]
    return [
        claim(
            "Passed more often than in training, these forms let the length of the state grow by more than a fifth a pass: "
            "{grows}. In these it changes by less than a tenth a pass: {stays}.",
            holds=True,
            grows=listed([f"*{short(form)}*" for form in growth.loc[growth["gain per pass"] > 1.2, "form"]]) or None,
            stays=listed([f"*{short(form)}*" for form in growth.loc[growth["gain per pass"].between(0.9, 1.1), "form"]]) or None,
        )
    ]


def stability_title(lengths: pd.DataFrame) -> Claim:
    last = (
        lengths[(lengths["weights"] == "trained") & (lengths["iteration"] == lengths["iteration"].max())]
        .groupby("form")["norm"]
        .mean()
    )
    first_ = (
        lengths[(lengths["weights"] == "trained") & (lengths["iteration"] == lengths["iteration"].min())]
        .groupby("form")["norm"]
        .mean()
    )
    times = last / first_
    averaging = max(times.get(form, math.nan) for form in ("gated", "damped"))
    return claim(
        "Forms that add the state grow up to {most:.0f}-fold over twelve passes, averaging forms at most {less:.1f}-fold",
        holds=times.get("from_second", 0) > 5 and averaging < 5,
        most=times.max(),
        less=averaging,
    )


def worth_title(fits: pd.DataFrame) -> Claim:
    """φ of the law; ``fits``: of ``loop_tables.worth``."""
    generated = row(fits, data="embedded")
    return claim(
        "On the generated texts φ is known only roughly ({phi:.2f}; {least:.2f} to {largest:.2f} without one model)",
        holds=generated.low > 0.5 and bool(fits.loc[fits["data"] == "sst2", "phi"].isna().all()),
        phi=generated.phi,
        least=generated.least,
        largest=generated.largest,
    )


def worth(fits: pd.DataFrame) -> list[Claim]:
    generated = row(fits, data="embedded")
    return [
        claim(
            "By the law that N layers passed r times are worth N·r^φ layers, φ is {phi:.2f} on the generated texts ({n} "
            "runs), with an interval from {low:.2f} up. With any one model left out φ lies between {least:.2f} and "
            "{largest:.2f}. So φ is known only roughly, and no pass is shown to be worth more than a layer.",
            holds=0.5 < generated.low < 1 and generated.least < 1 < generated.largest,
            phi=generated.phi,
            n=generated.n,
            low=generated.low,
            least=generated.least,
            largest=generated.largest,
        ),
        claim(
            "The SST-2 runs do not determine φ, because no depth pays there.",
            holds=bool(fits.loc[fits["data"] == "sst2", "phi"].isna().all()),
            n=int((fits["data"] == "sst2").sum()) or None,
        ),
    ]


def composition(table: pd.DataFrame) -> list[Claim]:
    """What passes gain on the texts with most operators."""
    rows = table[(table["arm"] == "fixed parameters") & (table["depth"] == table["depth"].max())]
    by_passes = rows.pivot(index="seed", columns="iterations", values="accuracy")
    gain = mean_interval((by_passes.iloc[:, -1] - by_passes.iloc[:, 0]).dropna()) if by_passes.shape[1] > 1 else None
    return [
        claim(
            "On texts with {n} operators, {many} passes of one layer instead of {few} are worth {gain:points} points "
            "({interval}, over seeds).",
            holds=bool(gain) and gain.low > 0,
            n=rows["depth"].iloc[0] if len(rows) else None,
            many=by_passes.columns[-1] if len(rows) else None,
            few="one" if len(rows) else None,
            gain=gain[0] if gain else None,
            interval=ends(*gain[1:3]) if gain else None,
        )
    ]


def composition_title(table: pd.DataFrame) -> Claim:
    rows = table[table["arm"] == "fixed parameters"]
    ends = rows.groupby(["depth", "iterations"])["accuracy"].mean().unstack("iterations")
    gain = ends.iloc[:, -1] - ends.iloc[:, 0]
    return claim(
        "One layer passed {many} times instead of once gains {most:.0f} points where {deep} operators are composed",
        holds=len(gain) > 1 and gain.iloc[-1] > 0.1,
        many=ends.columns[-1],
        most=100 * gain.iloc[-1],
        deep=gain.index[-1],
    )
