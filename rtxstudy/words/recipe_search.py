"""Sentences on the search for recipes, on convergence and on early stopping."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from rtxstudy.numbers import between, counted, margin_points, number, points


def chosen_recipe(finals: pd.DataFrame) -> str:
    """What the finals choose for each arm, beside the recipe before the search.

    ``finals``: the table of :func:`rtxstudy.evaluation.recipe_search.means`.
    """
    return "\n".join(_choice(part) for _, part in finals.groupby("arm", sort=False))


def _choice(finals: pd.DataFrame) -> str:
    """The choice of one arm; the trial with number 0 is the recipe before the search."""
    best, before = finals[finals["chosen"]].iloc[0], finals[finals["trial"] == 0].iloc[0]
    measured = (
        f"- **{best['arm']}**: **{best['recipe']}** is chosen, with a validation accuracy of {best['val_accuracy']:.3f} "
        f"(loss {best['val_loss']:.3f} nats) on {best['texts']:,} texts, mean of {counted(best['seeds'], 'seed')}"
    )
    if best["trial"] == 0:
        return f"{measured}. It is the recipe before the search: none of the other finalists is more accurate."
    gain, error = best["val_accuracy"] - before["val_accuracy"], before["standard_error"]
    within = "within" if gain <= error else "more than"
    return (
        f"{measured}. It changes: {best['changes']}. The recipe before the search, {before['recipe']}, reaches "
        f"{before['val_accuracy']:.3f} (loss {before['val_loss']:.3f}). The difference is {points(gain)}, which is {within} one "
        f"standard error ({100 * error:.1f} points)."
    )


def effort(table: pd.DataFrame) -> str:
    """How much was tried for each arm, and what it cost; ``table`` of :func:`rtxstudy.evaluation.recipe_search.trials`."""
    first = table[table["round"] == "first"]
    tried = first.groupby("arm", sort=False)["trial"].nunique()
    hours = table.groupby("round")["core_seconds"].sum() / 3600
    each = f"{between(tried, 'd')} trials for each of {counted(len(tried), 'arm')}"
    texts, errors = table["texts"].iloc[0], 100 * table["standard_error"]
    return (
        f"There are {each}. The first round took {hours['first']:.2f} core-hours and the finals {hours.get('final', 0):.2f}. "
        f"With {texts:,} validation texts the standard error of one accuracy is {between(errors, '.1f')} points, so smaller "
        "differences between two trials are noise."
    )


def calibration(table: pd.DataFrame) -> str:
    """Where the validation loss rises, and whether the accuracy rises with it.

    ``table``: that of :func:`rtxstudy.evaluation.recipe_search.calibration`.
    """
    parts = {kind: table[table["kind"] == kind] for kind in ("falls", "calibration", "overfitting")}
    lines = [
        f"Of {counted(len(table), 'finalist')}, counted once for each arm, {len(parts['falls'])} "
        f"{'has' if len(parts['falls']) == 1 else 'have'} the lowest validation loss at the end."
    ]
    if len(part := parts["calibration"]):
        lines.append(
            "The loss rises after its lowest point while the accuracy rises too in the following. They get more texts right, and "
            f"are too sure of those that they get wrong. That is calibration, and not overfitting: {_rises(part)}."
        )
    if len(part := parts["overfitting"]):
        lines.append(f"The loss rises and the accuracy does not in the following. That is overfitting: {_rises(part)}.")
    return " ".join(lines)


def _rises(table: pd.DataFrame) -> str:
    return "; ".join(
        f"{row.arm} with {row.recipe} (loss {number(row.last_loss - row.lowest_loss, '+.3f')} nats, accuracy "
        f"{points(row.last_accuracy - row.accuracy_then)})"
        for row in table.itertuples()
    )


def converged(row: Mapping[str, Any]) -> str:
    """One sentence on a row of :func:`rtxstudy.evaluation.convergence.convergence`."""
    share = row["steps"] / row["all_steps"]
    near = margin_points(row["near"])
    return (
        f"**{row['model']}** on {row['data']} (recipe {row['recipe']}, {counted(row['n'], 'seed')}) comes within "
        f"{near} of its best validation accuracy, {row['best']:.3f}, after "
        f"{row['steps']:,.0f} steps: {row['epochs']:.2f} epochs and {row['core_seconds']:,.0f} core-seconds, "
        f"{100 * share:.0f} % of its training."
    )


def stopped(row: Mapping[str, Any]) -> str:
    """One sentence on a row of :func:`rtxstudy.evaluation.convergence.stopping`: whether and when an arm stopped early."""
    of = f"**{row['model']}** on {row['data']} (recipe {row['recipe']}, {counted(row['n'], 'seed')})"
    mean = " on average" if row["n"] > 1 else ""
    if pd.isna(row["patience"]):
        when = f"has no early stopping and trains {row['planned']:g} epoch{'' if row['planned'] == 1 else 's'}"
    else:
        better = f"that is lower by {row['min_delta']:g} nats" if row["min_delta"] else "that is lower"
        rule = f"stops after {counted(int(row['patience']), 'evaluation')} without a validation loss {better}"
        trained = between((row["least"], row["most"]), ".2f")
        early = f"{row['early'] or 'none'} of {counted(row['n'], 'seed')} stopped early"
        when = f"{rule}: {early}. The training took {trained} of {row['planned']:g} epochs"
    return (
        f"{of} {when}. The validation loss is lowest at epoch {row['lowest_loss']:.2f}{mean}, and the {row['keep']} "
        f"weights, of epoch {row['kept']:.2f}, are kept."
    )
