"""Sentences on other people's encoders, as notebooks 07 and 08 measure them."""

from __future__ import annotations

import pandas as pd


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
