"""What notebook 03 finds inside the loop: which pass learns, what each pass changes, and which form stays bounded."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from rtxstudy.words.comparisons import verdict
from rtxstudy.words.loop import loop_used
from rtxstudy.numbers import counted, points


def clear_forms(forms: pd.DataFrame) -> str:
    """The forms of the loop whose interval excludes zero; rows of a comparison with the column ``form``."""
    clear = forms[(forms["low"] > 0) | (forms["high"] < 0)]
    if clear.empty:
        return "No form differs from the base by more than its interval."
    return "\n".join(f"- {row['form']}: {verdict(row)}" for row in clear.to_dict("records"))


def learning_pass(gradients: pd.DataFrame) -> str:
    """The pass that contributes most to the gradient of each model's block; columns model, iteration, share."""
    means = gradients.groupby(["model", "iteration"], sort=False)["share"].mean()
    lines = []
    for model, own in means.groupby(level="model", sort=False):
        share = own.droplevel("model")  # by pass
        lines.append(
            f"- **{model}**: pass {share.idxmax()} contributes most, {share.max():.0%} of the gradient. "
            f"Even shares would be {1 / len(share):.0%}."
        )
    return "\n".join(lines)


def passes_read(read: pd.DataFrame, passes: int, texts: Mapping[str, int]) -> str:
    """Accuracy after one pass, after the ``passes`` of training, and after the most passes.

    ``read``: columns data, model, seed, iteration, accuracy. ``texts``: data → number of test texts.
    """
    lines = []
    for (data, model), own in read.groupby(["data", "model"], sort=False):
        after = own.pivot(index="iteration", columns="seed", values="accuracy")  # (passes, seeds)
        used = loop_used(after.loc[1], after.loc[passes], model, passes, texts[data])
        lines.append(f"- {data}: {used} After {after.index[-1]} passes the accuracy is {after.iloc[-1].mean():.3f}.")
    return "\n".join(lines)


def gradient_reach(bounds: pd.DataFrame, passes: int) -> str:
    """How much gradient reaches what enters the loop, form by form, before and after training."""
    lines = []
    for (form, weights), own in bounds[bounds["iteration"] < passes].groupby(["model", "weights"], sort=False):
        below = (own["least"] < own["bound"]).mean()
        entered = own[own["iteration"] == 0]
        lines.append(
            f"- **{form}**, {'before' if weights == 'initial' else 'after'} training: the state that enters the loop receives "
            f"{entered['ratio'].mean():.2f} times the gradient of the last state. The identity paths alone would "
            f"give {entered['gain'].mean():.2f} times. In {below:.0%} of the measured states, some text lies below the claimed "
            f"bound. The lowest ratio of any text is {own['least'].min():.2f}."
        )
    earlier = bounds[bounds["iteration"] < passes]
    held = (earlier["least"] >= earlier["bound"]).all()
    lines += [
        "",
        "The claimed bound holds in every measured state, although the argument for it has a gap."
        if held
        else "The claimed bound does not hold in every measured state.",
    ]
    return "\n".join(lines)


def state_changes(states: pd.DataFrame) -> str:
    """How alike a text's tokens become, how attention spreads, and how many labels change, form by form."""
    means = states.groupby(["model", "iteration"], sort=False)[["token_correlation", "entropy", "changed"]].mean()
    return "\n".join(
        f"- **{form}**: the tokens of a text correlate by {own['token_correlation'].iloc[0]:.2f} before the loop and by "
        f"{own['token_correlation'].iloc[-1]:.2f} after the last pass. Attention has {own['entropy'].iloc[1]:.0%} of its largest "
        f"entropy in the first pass and {own['entropy'].iloc[-1]:.0%} in the last. {own['changed'].iloc[1]:.0%} of the labels "
        "after the first pass differ from those after the last."
        for form, own in means.groupby(level="model", sort=False)
    )


def stability(states: pd.DataFrame, passes: int) -> str:
    """The forms whose state grows tenfold, and how many passes change accuracy.

    ``states``: trained weights only; columns form, iteration, norm, accuracy.
    """
    length = states.groupby(["form", "iteration"], sort=False)["norm"].mean().unstack("form")
    grown = {form: (own > 10 * own.loc[0]) for form, own in length.items()}
    tenfold = {form: int(above.idxmax()) for form, above in grown.items() if above.any()}
    accuracy = states.groupby(["form", "iteration"], sort=False)["accuracy"].mean().unstack("form")
    change = accuracy.iloc[-1] - accuracy.loc[passes]
    last = accuracy.index[-1]
    listed = sorted(tenfold.items(), key=lambda item: item[1])
    who = ", ".join(f"**{form}** (from pass {first} on)" for form, first in listed) or "no form"
    worst = "loses most" if change.min() < 0 else "gains least"
    best = "gains most" if change.max() > 0 else "loses least"
    return (
        f"Over {last} passes of the trained models, the state grows to more than ten times its length before the loop in {who}. "
        f"With {last} passes instead of the {passes} of training, the mean accuracy changes: **{change.idxmin()}** {worst} "
        f"({points(change.min())}), and **{change.idxmax()}** {best} ({points(change.max())})."
    )


def composition(table: pd.DataFrame) -> str:
    """The best and the worst arm on the texts with most operators; columns arm, depth, layers, iterations, accuracy, n."""
    deepest = table[table["depth"] == table["depth"].max()]
    lines = []
    for arm, own in deepest.groupby("arm", sort=False):
        mean = own.groupby(["layers", "iterations"])["accuracy"].mean()
        shapes = [f"{counted(layers, 'layer')} × {passes}" for layers, passes in (mean.idxmax(), mean.idxmin())]
        lines.append(
            f"- {arm}, on texts with {own['depth'].iloc[0]} operators ({own['n'].iloc[0]} texts per seed): {shapes[0]} is the "
            f"most accurate ({mean.max():.3f}), {shapes[1]} the least ({mean.min():.3f})."
        )
    return "\n".join([*lines, "", "These are means over seeds; the figure has their intervals."])
