"""Which model is worth its cost?"""

from __future__ import annotations

import pandas as pd

from rtxstudy import names
from rtxstudy.claims import Claim, claim, listed, row

MINILM, MINILM_LOOP = "all-MiniLM-L6-v2", "all-MiniLM-L6-v2 2×2 lower between edges"
STUDY = ("standard", "recurrent")  # families of encoders with random weights


def use(glance: pd.DataFrame, validation_rows: int) -> list[Claim]:
    """What to use on the headline data. ``glance``: of :func:`rtxstudy.questions.summary.glance.worth_their_cost`."""
    members = glance[glance["frontier"]].sort_values("megabytes")
    small, large = (row(members.iloc[[place]]) if len(members) == 2 else row(None) for place in (0, -1))
    ours = glance[glance["family"].isin(STUDY)]
    better = ours[~ours["model"].isin(str(small.like).split(", ")) & (ours["validation"] > small.validation)]
    return [
        claim(
            "**Use** {cheap} on SST-2 where cost counts, four of MiniLM's layers where accuracy does.",
            holds=small.family == "classical" and large.model == "all-MiniLM-L6-v2 2×1 lower between edges",
            cheap=names.short(str(small.model)) if small else None,
        ),
        claim(
            "Validation texts do not tell these four layers from all six there.",
            holds=large.model == "all-MiniLM-L6-v2 2×1 lower between edges" and MINILM in str(large.like).split(", "),
            megabytes=large.megabytes,
        ),
        claim(
            "No encoder trained from scratch is shown to beat {cheap} on {rows} validation texts, and each is larger and "
            "slower.",
            holds=better.empty
            and bool((ours["megabytes"] > small.megabytes).all())
            and bool((ours["ms_in_batch"] > small.ms_in_batch).all()),
            rows=validation_rows,
            cheap=names.short(str(small.model)) if small else None,
        ),
        saves(glance),
    ]


def saves(glance: pd.DataFrame) -> Claim:
    """What a loop of MiniLM saves beside all its layers."""
    loop, deep = row(glance, model=MINILM_LOOP), row(glance, model=MINILM)
    return claim(
        "**A loop saves megabytes, and in batches no time:** MiniLM's loop has {loop:.0f} MB instead of {deep:.0f}.",
        holds=0.8 < loop.ms_in_batch / deep.ms_in_batch < 1.25 and loop.megabytes < deep.megabytes,
        loop=loop.megabytes,
        deep=deep.megabytes,
    )


def title(glance: pd.DataFrame) -> Claim:
    """The title of the figure of accuracy, time and megabytes."""
    best = glance[glance["learned"]]
    pretrained, others = best[best["family"] == "pretrained"], best[best["family"] != "pretrained"]
    spread = others["mean"].max() - others["mean"].min() if len(others) else None
    return claim(
        "MiniLM and encoders made of it are {gain:.0f} points better on average than the {n} other models, which lie within "
        "{spread:.1f}",
        holds=len(pretrained) > 0 and pretrained["text_low"].min() > others["mean"].max() and spread < 0.03,
        gain=100 * (pretrained["mean"].mean() - others["mean"].mean()) if len(pretrained) and len(others) else None,
        n=len(others),
        spread=100 * spread if spread is not None else None,
    )


def members(glance: pd.DataFrame) -> list[Claim]:
    """The frontier by name, each member with those that validation rows do not tell apart from it."""
    claims = []
    for one in glance[glance["frontier"]].sort_values("megabytes").itertuples():
        alike = [names.short(model) for model in one.like.split(", ") if model]
        claims.append(
            claim(
                "- **{name}**, {accuracy:percent} on test texts, {megabytes:.1f} MB, {ms:.2g} ms a text. Validation "
                "rows do not tell it from {alike}.",
                holds=True,
                name=names.short(one.model),
                accuracy=one.mean,
                megabytes=one.megabytes,
                ms=one.ms_in_batch,
                alike=listed(alike) or "no other",
            )
        )
    return claims


def times(side_by_side: pd.DataFrame) -> list[Claim]:
    """What a loop costs in time and in parameters, from one session in which the encoders took turns."""

    def ms(model: str) -> float:
        return float(row(side_by_side, model=model).ms_in_batch)

    return [
        claim(
            "In full batches a loop saves no time: MiniLM's loop takes {loop:.1f} ms a text and all six layers take {deep:.1f}.",
            holds=0.8 < ms(MINILM_LOOP) / ms(MINILM) < 1.25,
            loop=ms(MINILM_LOOP),
            deep=ms(MINILM),
        ),
        claim(
            "The recurrent encoder takes {share:share} of the standard encoder's time because it is narrower: a "
            "standard encoder of its width takes as long ({alike:.2f} and {loop:.2f} ms).",
            holds=0.8 < ms("recurrent-3x2x256") / ms("standard-6x256") < 1.25
            and ms("recurrent-3x2x256") < ms("standard-6x384"),
            share=ms("recurrent-3x2x256") / ms("standard-6x384"),
            alike=ms("standard-6x256"),
            loop=ms("recurrent-3x2x256"),
        ),
    ]
