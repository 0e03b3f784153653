"""How is a pretrained encoder made into a loop, and what does the loop cost to use?"""

from __future__ import annotations

import pandas as pd

from rtxstudy.claims import Claim, claim, row
from rtxstudy.names import short
from rtxstudy.numbers import aside, ends


def chosen(choice: pd.DataFrame) -> list[Claim]:
    """Which way to make a loop; ``choice``: of ``depth_gain.conversions``, the study's own first."""
    if choice.empty:
        return []
    best, own = choice.loc[choice["val_accuracy"].idxmax()], choice.iloc[0]
    return [
        claim(
            "The study's loop keeps the first and the last layer and passes the second and the third twice. It has "
            "the highest validation accuracy of {n:word} ways, {own:percent} on {rows:,} texts (standard error "
            "{error:points} points), with one seed each.",
            holds=len(choice) > 2 and best.name == own.name and bool(own["taken"]),
            n=len(choice),
            own=own["val_accuracy"],
            rows=own["texts"],
            error=own["standard_error"],
        ),
        claim(
            "Lower layers work, and averaged or spread layers do not: {average:percent} and {spread:percent}.",
            holds=choice.loc[choice["start"].isin(["average", "spread"]), "val_accuracy"].max()
            < choice.loc[choice["start"] == "lower", "val_accuracy"].min()
            if {"average", "spread"} <= set(choice["start"])
            else None,
            average=row(choice[choice["start"] == "average"].head(1)).val_accuracy,
            spread=row(choice[choice["start"] == "spread"].head(1)).val_accuracy,
        ),
    ]


def neighbours_title(apart: pd.DataFrame, original: str) -> Claim:
    """The title of the retrieval figure; ``apart``: of ``converted_embeddings.differences``."""
    taught = apart[apart["comparison"].str.endswith(f" distilled − {original}")] if len(apart) else apart
    sentiment = taught[taught["panel"].str.contains("sentiment")] if len(taught) else taught
    return claim(
        "Taught by the original, the loop finds as many neighbours of the same sentiment as it does",
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
            "As it was made, the loop finds {lost:points} points fewer neighbours of the same sentiment ({interval}).",
            holds=sentiment.high < 0,
            lost=sentiment.difference,
            interval=ends(sentiment.low, sentiment.high) if sentiment else None,
        ),
        claim(
            "After distillation the further pass is not shown to help ({more}).",
            holds=more.low <= 0 <= more.high,
            more=aside(more.difference, more.low, more.high) if more else None,
        ),
        claim(
            "Read the domains with care: format alone, without any word, tells {signs:percent} of them.",
            holds=signs.low > 0.5,
            signs=signs.accuracy,
        ),
    ]


def vocabulary(small: pd.DataFrame, margin: float = 0.01) -> list[Claim]:
    """Loops whose token table keeps the words of the task; ``small``: of ``small_vocabulary.against_whole``."""
    if small.empty:
        return []
    near, far = small[small["low"] > -margin], small[small["high"] < -margin]
    return [
        claim(
            "Cut to the words of their task, {near:word} of {n:word} loops are shown to lose less than a point to all "
            "six layers with all words, and {far:word} to lose more.",
            holds=True,
            near=len(near),
            n=len(small),
            far=len(far),
        ),
        claim(
            "They have {low:.0f} to {high:.0f} million parameters instead of {whole:.0f}.",
            holds=True,
            low=small["small_parameters"].min() / 1e6,
            high=small["small_parameters"].max() / 1e6,
            whole=small["deep_parameters"].max() / 1e6,
        ),
    ]


def deployed(forms: pd.DataFrame, rounding: pd.DataFrame, eight: str) -> list[Claim]:
    """Eight bits; ``forms``: of ``deployed.compared``, ``rounding``: of ``deployed.rounding``."""
    if forms.empty:
        return []
    rounded = forms[forms["form"] == eight]
    loop = row(rounded, arm="loop")
    after = (
        rounding[rounding["arm"] == "loop"].set_index("passes")["error"] if len(rounding) else pd.Series(dtype=float)
    )
    return [
        claim(
            "In eight bits the loop takes {megabytes:.0f} MB, {share:share} of its bytes, and no encoder loses "
            "accuracy that is shown ({data}).",
            holds=bool((rounded["high"] >= 0).all()),
            megabytes=loop.bytes / 1e6,
            share=loop.bytes / loop.whole_bytes,
            data=short(str(loop.data)),
        ),
        claim(
            "The error of rounding grows from pass to pass, from {one:.2f} to {two:.2f} of the spread of the states.",
            holds=after.get(2, 0) > after.get(1, 1),
            one=after.get(1),
            two=after.get(2),
        ),
    ]
