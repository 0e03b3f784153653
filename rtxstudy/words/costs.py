"""Sentences on costs: one model compared with another, and the models on the Pareto frontier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

DISTURBED = 1.5  # the same pair of models differs by less from seed to seed on a quiet machine


def cost_ratio(runs: pd.DataFrame, model: str, other: str) -> str:
    """The costs of one model relative to another: medians over the runs of each, and of times the range over paired seeds."""
    columns = ["parameters", "non_embedding_parameters", "forward_flops", "ms_median", "ms_per_text"]
    cost = runs.groupby("model")[columns].median()
    ratio = cost.loc[model] / cost.loc[other]
    return (
        f"**{model}** has {ratio['parameters']:.0%} of the parameters of **{other}** ({ratio['non_embedding_parameters']:.0%} "
        f"outside the token table). It does {ratio['forward_flops']:.0%} of the arithmetic. It takes {ratio['ms_median']:.0%} of "
        f"the time for one text{_range(runs, model, other, 'ms_median')} and {ratio['ms_per_text']:.0%} in full "
        f"batches{_range(runs, model, other, 'ms_per_text')}."
    )


def _range(runs: pd.DataFrame, model: str, other: str, cost: str) -> str:
    """The least and the largest ratio over the seeds that both have; where they lie far apart, the sentence says so."""
    if "seed" not in runs:
        return ""
    a, b = (runs[runs["model"] == name].drop_duplicates("seed").set_index("seed")[cost] for name in (model, other))
    ratios = (a / b).dropna()
    if len(ratios) < 2:
        return ""
    far = ratios.max() > DISTURBED * ratios.min()
    disturbed = "; they lie so far apart that other work, or another machine, probably changed the times" if far else ""
    return f" ({ratios.min():.0%} to {ratios.max():.0%} over seeds{disturbed})"


def frontiers(summary: pd.DataFrame, on: Mapping[str, Sequence[bool]]) -> str:
    """Which models are on the Pareto frontier of accuracy and cost; ``on``: name of the cost → which rows are on it."""
    lines = []
    for cost, best in on.items():
        part = summary[best]
        recurrent = (part["family"] == "recurrent").sum()
        lines.append(
            f"- Accuracy against **{cost}**: {len(part)} of the {len(summary)} models {'is' if len(part) == 1 else 'are'} on "
            f"the Pareto frontier ({', '.join(part['model'])}); {recurrent} of these {'is' if recurrent == 1 else 'are'} "
            "recurrent."
        )
    return "\n".join(lines)
