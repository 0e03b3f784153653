"""What does each part of these encoders do, and does it do what is said of it?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from rtxstudy.claims import Claim, claim, row


def traced(steps: pd.DataFrame) -> list[Claim]:
    """``steps``: of ``shapes.trace``."""
    by_step = steps.set_index("step")
    total = by_step["parameters"].sum()
    return [
        claim(
            "Of {total:,} parameters, the layers hold {layers:share} and the embedding matrix {table:share}.",
            total=int(total),
            layers=by_step.loc[by_step["times"] > 1, "parameters"].sum() / total,
            table=by_step["parameters"].get("token vectors", float("nan")) / total,
        )
    ]


def softmax(peaks: pd.DataFrame, head_dim: int) -> list[Claim]:
    """``peaks``: ``head_dim``, ``divided``, ``peak``, ``slope``."""
    raw, divided = (row(peaks, head_dim=head_dim, divided=flag) for flag in (False, True))
    return [
        claim(
            "With {n} numbers a head, the largest of 16 weights takes {raw:share} of the attention with raw scores "
            "and {divided:share} with divided ones, and division makes the slope {times:.1f} times as large.",
            holds=raw.peak > divided.peak and divided.slope > raw.slope,
            n=head_dim,
            raw=raw.peak,
            divided=divided.peak,
            times=divided.slope / raw.slope,
        )
    ]


def feedforward(kinds: pd.DataFrame, curves: pd.DataFrame) -> list[Claim]:
    """``kinds``: ``feedforward``, ``shut``, ``parameters``; ``curves``: ``feedforward``, ``x``, ``slope``."""
    relu, swiglu = row(kinds, feedforward="relu"), row(kinds, feedforward="swiglu")
    slope = curves[curves["feedforward"] == "swiglu"].sort_values("x")["slope"]
    zeros = int((np.sign(slope).diff().abs() == 2).sum() + (slope == 0).sum())
    return [
        claim(
            "With random weights ReLU shuts {relu:share} of its units and SwiGLU none. The slope of a SwiGLU unit is still zero "
            "at {zeros:word} points between −3 and 3, so it can be zero.",
            holds=swiglu.shut < 0.005 and zeros > 1,
            relu=relu.shut,
            zeros=zeros,
        ),
        claim(
            "With an inner width of ⌊8/3·d⌋ it has {times:.4f} times the parameters of ReLU with 4d.",
            holds=abs(swiglu.parameters / relu.parameters - 1) < 0.01,
            times=swiglu.parameters / relu.parameters,
        ),
    ]


def activations_title(curves: pd.DataFrame) -> Claim:
    relu = curves[(curves["feedforward"] == "relu") & (curves["x"] < 0)]["slope"]
    gated = curves[(curves["feedforward"] == "swiglu")].sort_values("x")
    return claim(
        "Gated units grow like a square; ReLU has no slope below zero",
        holds=bool((relu == 0).all()) and float(gated["value"].iloc[-1]) > 2 * float(gated["x"].iloc[-1]),
        n=len(relu) or None,
    )


def rotary(periods: pd.Series, longest: int, error: float, closest: float) -> list[Claim]:
    """``periods``: tokens per turn of each pair. ``error``: the largest change of a score when both positions move."""
    return [
        claim(
            "{turning} of {n} pairs make a full turn within {longest} tokens; the slowest takes {slowest:,.0f} tokens.",
            holds=0 < (periods <= longest).sum() < len(periods),
            turning=int((periods <= longest).sum()),
            n=len(periods),
            longest=longest,
            slowest=periods.max(),
        ),
        claim(
            "Only the distance counts: moving query and key together changes a score by at most {error:.0e} of the "
            "largest, which is rounding.",
            holds=error < 1e-4,
            error=error,
        ),
        claim(
            "And every position looks different: the two most alike of {longest} are {closest:.2f} apart, where 0 "
            "means alike.",
            holds=closest > 0.01,
            longest=longest,
            closest=closest,
        ),
    ]


def rotation_title(turned: pd.DataFrame) -> Claim:
    steps = turned[turned["position"] == 1].set_index("pair")["angle"].abs()
    return claim(
        "Each pair turns at its own speed: {fast:.2f} radians a position in the first, {slow:.3f} in the slowest shown",
        holds=steps.max() > 10 * steps.min(),
        fast=steps.max(),
        slow=steps.min(),
    )


def frequencies_title(frequencies: pd.DataFrame, longest: int) -> Claim:
    periods = frequencies[frequencies["base"] == frequencies["base"].min()]["period"]
    return claim(
        "{n} of {all} pairs never come round within a text of {longest} tokens",
        holds=bool((periods > longest).any()),
        n=int((periods > longest).sum()),
        all=len(periods),
        longest=longest,
    )


def far_away(scores: pd.DataFrame, whole: float, far: int, slow: str, spread: str) -> list[Claim]:
    """``scores``: one row per line of the figure; column "score FAR away"."""
    shares = scores[f"score {far} away"] / whole
    alibi = shares[[name for name in shares.index if name.startswith("ALiBi")]]
    return [
        claim(
            "{far} tokens away RoPE keeps {slow:share} of a score whose match sits in the slowest pair and "
            "{spread:share} on average; ALiBi keeps {gentle:share} in its gentlest head and nothing in its steepest.",
            holds=alibi.min() <= 0 and shares[slow] > 0.9,
            far=far,
            slow=shares[slow],
            spread=shares[spread],
            gentle=alibi.max(),
        ),
        claim(
            "So neither always keeps a distant match: RoPE chooses by the pairs that it uses, ALiBi by the head.",
            holds=shares[spread] < 0.9 and alibi.max() > shares[spread],
            n=len(shares),
        ),
    ]


def far_title(scores: pd.DataFrame, whole: float, far: int, slow: str) -> Claim:
    shares = scores[f"score {far} away"] / whole
    alibi = shares[[name for name in shares.index if name.startswith("ALiBi")]]
    return claim(
        "RoPE's slowest pair keeps a match over {far} tokens; ALiBi keeps it in some heads and not in others",
        holds=shares[slow] > 0.9 and alibi.max() > 0.5 > alibi.min(),
        far=far,
    )


def norms(reaching: pd.DataFrame, times: pd.DataFrame) -> list[Claim]:
    """``reaching``: ``shift``, ``difference`` at each norm of a fresh encoder; ``times``: ``norm``, ``ms``."""
    ms = times.set_index("norm")["ms"]
    return [
        claim(
            "At the norms of an untrained encoder the mean of a token's numbers is at most {shift:.2f} of their standard "
            "deviation, so the two norms differ by at most {difference:share} there.",
            holds=reaching["difference"].max() < 0.1,
            shift=reaching["shift"].max(),
            difference=reaching["difference"].max(),
        ),
        claim(
            "RMSNorm is said to be 10 to 15 % faster; on this CPU it is slower, {rms:.2f} ms against {layer:.2f} ms.",
            holds=ms["rmsnorm"] > ms["layernorm"],
            rms=ms["rmsnorm"],
            layer=ms["layernorm"],
        ),
    ]


def norms_title(moved: pd.DataFrame) -> Claim:
    last = moved[moved["shift"] == moved["shift"].max()].set_index("norm")["mean"].abs()
    return claim(
        "LayerNorm removes the mean of a vector, RMSNorm keeps it",
        holds=last.get("LayerNorm", 1) < 0.01 < last.get("RMSNorm", 0),
        n=len(last),
    )


def gradients(ends: pd.DataFrame, standard: str, shared: str, passes: int) -> list[Claim]:
    """``ends``: rows ("no norm" or "norm", model); columns "first layer passed", "last", "ratio"."""
    return [
        claim(
            "Before any training the first of {passes:word} passes receives {times:.1f} times the gradient of the "
            "last, and the standard encoder's first layer {plain:.1f} times that of its last.",
            holds=ends.loc[("no norm", shared), "ratio"] > 2,
            passes=passes,
            times=ends.loc[("no norm", shared), "ratio"],
            plain=ends.loc[("no norm", standard), "ratio"],
        )
    ]


def gradients_title(arriving: pd.DataFrame, shared: str) -> Claim:
    norm = arriving[arriving["model"] == shared].groupby("depth")["norm"].mean()
    return claim(
        "In an untrained loop the first pass receives {times:.1f} times the gradient of the last",
        holds=norm.iloc[0] > norm.iloc[-1],
        times=norm.iloc[0] / norm.iloc[-1],
    )


def signal(table: pd.DataFrame, passes: int) -> list[Claim]:
    """``table``: ``alpha``, ``passes``, ``signal``, ``first``."""
    deepest = table[table["passes"] == passes].groupby("alpha")[["signal", "first"]].mean()
    half = deepest["first"].get(0.5)
    return [
        claim(
            "With {passes:word} passes the gradient of an untrained shared layer is at least {low:.1f} times that of one pass: "
            "the contributions of all passes have about the same direction.",
            holds=deepest["signal"].min() > 0.9 * passes,
            passes=passes,
            low=deepest["signal"].min(),
        ),
        claim(
            "With α = ½ the first pass contributes {half:.0f} times what the last one does, as (1 + α)^{power} says.",
            holds=half is not None and abs(half / 1.5 ** (passes - 1) - 1) < 0.1,
            half=half,
            power=passes - 1,
        ),
    ]


def signal_title(table: pd.DataFrame, passes: int) -> Claim:
    deepest = table[table["passes"] == passes].groupby("alpha")["signal"].mean()
    return claim(
        "A shared layer receives R times the gradient of one pass", holds=deepest.min() > 0.9 * passes, n=len(deepest)
    )
