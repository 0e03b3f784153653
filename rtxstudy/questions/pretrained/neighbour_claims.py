"""Do the embeddings of a loop still find what belongs together?"""

from __future__ import annotations

import pandas as pd

from rtxstudy.claims import Claim, claim, row
from rtxstudy.numbers import aside, ends


def title(apart: pd.DataFrame, original: str) -> Claim:
    """The title of the retrieval figure; ``apart``: of ``converted_embeddings.differences``."""
    taught = apart[apart["comparison"].str.endswith(f" distilled − {original}")] if len(apart) else apart
    sentiment = taught[taught["panel"].str.contains("sentiment")] if len(taught) else taught
    return claim(
        "After distillation the loop is not told apart from the original by neighbours of the same sentiment",
        holds=len(sentiment) > 0 and bool(((sentiment["low"] <= 0) & (sentiment["high"] >= 0)).all()),
        n=len(sentiment) or None,
    )


def neighbours(apart: pd.DataFrame, original: str, control: pd.DataFrame) -> list[Claim]:
    if apart.empty:
        return []
    loop = f"{original} 2×2 lower between edges"
    untaught = apart[(apart["comparison"] == f"{loop} − {original}")]
    pass_ = apart[apart["comparison"] == f"{loop} distilled − {original} 2×1 lower between edges distilled"]
    sentiment = row(untaught[untaught["panel"].str.contains("sentiment")])
    more = row(pass_[pass_["panel"].str.contains("sentiment")])
    signs = row(control, input="length and signs")
    return [
        claim(
            "The loop as it is converted, before distillation, finds {lost:points} points fewer neighbours of the same sentiment "
            "than MiniLM ({interval}).",
            holds=sentiment.high < 0,
            lost=sentiment.difference,
            interval=ends(sentiment.low, sentiment.high) if sentiment else None,
        ),
        claim(
            "After distillation the second pass is not shown to help ({more}).",
            holds=more.low <= 0 <= more.high,
            more=aside(more.difference, more.low, more.high) if more else None,
        ),
        claim(
            "Neighbours of the same domain say little: the format of a text, without any word, tells the domain of "
            "{signs:percent} of the texts.",
            holds=signs.low > 0.5,
            signs=signs.accuracy,
        ),
    ]
