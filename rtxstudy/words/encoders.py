"""Sentences on other people's encoders, as notebooks 07 and 08 measure them."""

from __future__ import annotations

import pandas as pd

from rtxstudy.names import said
from rtxstudy.numbers import signed


def traced(steps: pd.DataFrame, model: str) -> str:
    """Where the parameters of a classifier are, and how large what passes through it is; ``steps``: as ``shapes.trace`` gives."""
    by_step = steps.set_index("step")
    total = by_step["parameters"].sum()
    table = by_step.loc["token vectors", "parameters"] / total
    layers = by_step.loc[by_step["times"] > 1, "parameters"].sum() / total
    largest = by_step["numbers"].idxmax()
    ends = by_step.iloc[[0, -1]]["shape"]
    return (
        f"A batch of token ids of shape {ends.iloc[0]} leaves {model} as logits of shape {ends.iloc[1]}. Of {total:,} "
        f"parameters, the layers hold {layers:.0%} and the token table {table:.0%}. The step with the largest result is "
        f"“{largest}”: {by_step.loc[largest, 'numbers'] / 1e6:.1f} million numbers."
    )


def guided(table: pd.DataFrame) -> str:
    """What a larger pretrained encoder costs, and what quality was measured; ``table``: as ``guide.guide`` gives it."""
    by_time = table.sort_values("ms_median")
    quick, slow = by_time.iloc[0], by_time.iloc[-1]
    lines = [
        f"- For one text of {table['tokens'].mean():.0f} tokens on average, {slow['model']} takes "
        f"{slow['ms_median'] / quick['ms_median']:.1f} times as long as {quick['model']}, and it has "
        f"{slow['parameters'] / quick['parameters']:.1f} times the parameters. The times are of random weights in float32 on the "
        f"CPU, with {int(table['threads'].iloc[0])} thread{'s' if table['threads'].iloc[0] > 1 else ''}."
    ]
    return "\n".join([*lines, f"- {_quality(table)}"])


def _quality(table: pd.DataFrame) -> str:
    """How often the nearest neighbour is of the same kind, for the encoders whose weights were at hand."""
    known, unknown = table.dropna(subset="nearest"), list(table.loc[table["nearest"].isna(), "model"])
    if known.empty:
        return "No quality was measured, because the weights were out of reach."
    best = known.loc[known["nearest"].idxmax()]
    finds = f"{best['model']} finds a neighbour of the same kind for {best['nearest']:.1%} of the texts"
    if len(known) == 1 and unknown:
        return f"{finds}. The quality of the others was not measured, because their weights were out of reach."
    if unknown:
        return f"{finds}, the most of those measured. The weights of {_listed(unknown)} were out of reach."
    return f"{finds}, the most of all."


def looked_at(heads: pd.DataFrame) -> str:
    """The head that looks most at each kind of token; ``heads``: as ``heads.strongest`` gives them."""
    lines = []
    for row in heads.itertuples(index=False):
        times = row.share / row.uniform if row.uniform else float("inf")
        half = f"{row.over_half} of {row.heads} heads give" if row.over_half != 1 else f"1 of {row.heads} heads gives"
        lines.append(
            f"- **{row.pattern}**: head {row.head} of layer {row.layer} gives it {row.share:.0%} of its attention, "
            f"{times:.1f} times what attention to all tokens alike would give. {half} it more than half."
        )
    return "\n".join(lines)


def heads_title(heads: pd.DataFrame) -> str:
    """The most one-sided head, as the title of the figure; ``heads``: as ``heads.strongest`` gives them."""
    top = heads.loc[heads["share"].idxmax()]
    return f"Head {top['head']} of layer {top['layer']} gives {top['share']:.0%} of its attention to one thing: {top['pattern']}"


def probes_title(table: pd.DataFrame) -> str:
    """What the first encoder has learned by its end, as the title of the figure; ``table``: as ``probing.probes`` gives it."""
    model, by = table[["model", "by"]].iloc[0]
    own = table[table["model"] == model]
    ends = own[own["depth"] == own["depth"].max()].pivot(
        index="task", columns="weights", values=["accuracy", "low", "high"]
    )
    above = list(ends.index[ends["low", "trained"] > ends["high", "random"]])
    below = list(ends.index[ends["high", "trained"] < ends["low", "random"]])
    said_above = f"above random weights for {_listed(above)}" if above else "not above random weights"
    return f"After its last {by}, {model} is {said_above}" + (f" and below for {_listed(below)}" if below else "")


def known_by_depth(table: pd.DataFrame) -> str:
    """Where each probe reads most, and how far that is above random weights; ``table``: as ``probing.probes`` gives it."""
    lines = []
    for (model, task), own in table.groupby(["model", "task"], sort=False):
        trained, random = (own[own["weights"] == weights].set_index("depth") for weights in ("trained", "random"))
        gain = trained["accuracy"] - random["accuracy"]
        last = trained.index.max()
        by = own["by"].iloc[0]
        first, end = trained.loc[[0, last], "accuracy"]
        lines.append(
            f"- {said(model)}, **{task}**: {first:.0%} at the embedding and {end:.0%} after {by} {last}. "
            f"That is {signed(gain.iloc[0])} and {signed(gain.loc[last])} points compared with random weights, "
            f"on {int(trained.loc[last, 'n']):,} texts."
        )
    return "\n".join(lines)


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
