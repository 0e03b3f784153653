"""Sentences on the parts of an encoder, as notebook 08 measures them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from rtxstudy.numbers import between, counted


def softmax(peaks: pd.DataFrame, head_dim: int) -> str:
    """What dividing by √dₖ does to 16 attention weights; columns head_dim, divided, peak, slope."""
    own = peaks[peaks["head_dim"] == head_dim].set_index("divided")
    raw, divided = own.loc[False], own.loc[True]
    return (
        f"With {head_dim} numbers per head, the largest of 16 weights is {raw['peak']:.0%} for raw scores and "
        f"{divided['peak']:.0%} for divided scores. Division makes the slope {divided['slope'] / raw['slope']:.1f} times "
        "as large."
    )


def feedforward(kinds: pd.DataFrame, curves: pd.DataFrame, model: str, width: int, inner: int) -> str:
    """How many units ReLU and SwiGLU shut, and how many parameters SwiGLU has; ``inner``: the model's own inner width."""
    by_kind = kinds.set_index("feedforward")
    relu, swiglu = by_kind.loc["relu"], by_kind.loc["swiglu"]
    slope = curves[curves["feedforward"] == "swiglu"].sort_values("x")["slope"]
    zeros = int((np.sign(slope).diff().abs() == 2).sum() + (slope == 0).sum())
    return "\n".join(
        [
            f"- A fresh ReLU shuts {relu['shut']:.0%} of its units, a fresh SwiGLU {swiglu['shut']:.0%}. But the slope of "
            "SwiGLU is not *never* zero: between −3 and 3, the slope of the unit above is zero at "
            f"{counted(zeros, 'point')}.",
            f"- With ⌊8/3·d⌋ inner units, SwiGLU has {swiglu['parameters'] / relu['parameters']:.4f} times the parameters "
            f"of ReLU with 4d. **{model}** keeps {inner / width:.3g}d inner units, so its feed-forward has "
            f"{3 * inner / (2 * relu['inner']):.2f} times the weights of the original's.",
        ]
    )


def rotary(
    periods: Mapping[float, pd.Series],
    own: tuple[float, int],
    modern: tuple[float, int],
    error: float,
    closest: float,
    next_to: float,
) -> str:
    """The pairs of a rotary embedding that make a full turn within a text.

    ``periods``: base → tokens per turn of each pair. ``own``, ``modern``: base and longest text of the study's
    encoder and of ModernBERT. ``error``: largest change of a score when both positions move, relative to the largest score.
    ``closest``: distance of the two positions that are most alike. ``next_to``: distance of two neighbours.
    """
    (base, longest), (modern_base, modern_longest) = own, modern
    turns, modern_turns = periods[base], periods[modern_base]
    if np.isclose(closest, next_to):
        apart = "The two most alike positions are neighbours."
    else:
        apart = f"Two neighbours are {next_to:.3f} apart."
    return "\n".join(
        [
            f"- Of {len(turns)} pairs, {(turns <= longest).sum()} make a full turn within {longest} tokens. The fastest "
            f"takes {turns.min():.1f} tokens for a turn, the slowest {turns.max():,.0f}. ModernBERT reads up to "
            f"{modern_longest:,} tokens: {(modern_turns <= modern_longest).sum()} pairs make a full turn with its base, "
            f"and {(turns <= modern_longest).sum()} would with {base:,.0f}.",
            "- **Only the distance counts**: moving query and key together by up to 127 positions changes their score "
            f"by at most {error:.0e} of the largest score, which is rounding.",
            f"- **Every position looks different**: the two most alike of {longest} positions are {closest:.3f} apart. "
            f"On this scale, 0 means alike and 1 means that every pair points the other way. {apart}",
        ]
    )


def far_away(scores: pd.DataFrame, whole: float, far: int, slow: str, spread: str) -> str:
    """The part of a score of ``whole`` that RoPE and ALiBi keep over ``far`` tokens; one row per line of the figure."""
    column = f"score {far} away"
    kept = scores[column] / whole
    alibi = [name for name in scores.index if name.startswith("ALiBi")]
    steep, gentle = kept[alibi].idxmin(), kept[alibi].idxmax()
    price = whole - scores.loc[steep, column]
    left = "more than the score itself" if kept[steep] < 0 else f"which leaves {kept[steep]:.0%}"
    neither = "Neither scheme always keeps or always loses a distant match. " if kept[gentle] > kept[spread] else ""
    return (
        f"Of a score of {whole:.0f}, {far} tokens away, RoPE keeps {kept[slow]:.0%} if the slowest pair holds the match "
        f"and {kept[spread]:.0%} on average over random queries. ALiBi keeps {kept[gentle]:.0%} in its gentlest head. In "
        f"its steepest head the price is {price:.0f}, {left}. {neither}RoPE lets the model choose by the pairs that it "
        "uses, ALiBi by the head."
    )


def norms(reaching: pd.DataFrame, times: pd.DataFrame, model: str, width: int) -> str:
    """How much RMSNorm and LayerNorm differ at a fresh encoder's norms, and what they cost here; ``times``: columns norm, ms."""
    ms = times.set_index("norm")["ms"]
    faster = ms["rmsnorm"] / ms["layernorm"]
    verdict = f"{1 - faster:.0%} faster" if faster < 1 else f"slower here, by a factor of {faster:.1f}"
    return "\n".join(
        [
            f"- At the {len(reaching)} norms of a fresh **{model}**, the mean of a token's numbers is "
            f"{between(reaching['shift'], '.2f')} of their standard deviation. There the two norms differ by "
            f"{between(reaching['difference'], '.0%')} of LayerNorm's output.",
            f"- On 4,096 tokens of width {width}, on the CPU that measured it, RMSNorm takes {ms['rmsnorm']:.2f} ms and "
            f"LayerNorm {ms['layernorm']:.2f} ms: RMSNorm is {verdict}.",
        ]
    )


def gradient_ends(ends: pd.DataFrame, standard: str, shared: str, passes: int, alpha: float) -> str:
    """How large the gradients of the first and last pass of a shared layer are, relative to a standard encoder's.

    ``ends``: rows ("no norm" or "norm", model), columns "first layer passed", "last", "ratio".
    """
    level = ends.loc["norm"].div(ends.loc[("norm", standard)])
    early, late = level.loc[shared, "first layer passed"], level.loc[shared, "last"]
    size = ["larger" if times > 1.5 else "smaller" if times < 1 / 1.5 else "about as large" for times in (early, late)]
    return (
        f"With {passes} passes and α = {alpha:g}, the first pass receives {ends.loc[('no norm', shared), 'ratio']:.1f} "
        "times the gradient of the last. The standard encoder's first layer receives "
        f"{ends.loc[('no norm', standard), 'ratio']:.1f} times the gradient of its last. With a norm before the classifier, "
        f"the first pass receives {early:.2f} times the gradient of the standard encoder's first layer ({size[0]}), and "
        f"the last pass receives {late:.2f} times the gradient of its last layer ({size[1]})."
    )


def signal(table: pd.DataFrame, alphas: Sequence[float], passes: int) -> str:
    """Whether a shared layer receives R times the gradient of one pass; columns alpha, passes, signal, first."""
    deepest = table[table["passes"] == passes].groupby("alpha")[["signal", "first"]].mean()
    least = deepest["signal"].min() / passes
    aligned = "The passes point the same way, so R times is right" if least > 0.9 else f"That is at least {least:.0%} of R times"
    residual = [alpha for alpha in alphas if alpha > 0]
    larger = (deepest["first"] > 0.95).all() and (deepest.loc[residual, "first"] > 1.5).all()
    return "\n".join(
        [
            f"- With {passes} passes, the gradient of a fresh shared layer is {between(deepest['signal'], '.2f')} times "
            f"the mean contribution of a pass. {aligned}, before training.",
            *(
                f"- α = {alpha:g}: the first pass contributes {deepest.loc[alpha, 'first']:.1f} times what the last one "
                f"does. The identity alone would give {(1 + alpha) ** (passes - 1):.1f}."
                for alpha in alphas
            ),
            "- With none of these α does the first pass contribute less than the last, and with a residual it "
            "contributes more."
            if larger
            else "- The first pass does not contribute as much as the last with every α.",
        ]
    )
