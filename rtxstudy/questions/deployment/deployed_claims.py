"""How small can a loop be, and what do fewer bits per weight cost?"""

from __future__ import annotations

import pandas as pd

from rtxstudy.claims import Claim, claim, row
from rtxstudy.names import short
from rtxstudy.statistics import MARGIN

SOONER = 0.9  # of the other's time, to be called sooner; the times of one session differ by a few percent


def vocabulary(small: pd.DataFrame) -> list[Claim]:
    """Loops whose embedding matrix keeps the words of the task; ``small``: of ``small_vocabulary.against_whole``."""
    if small.empty:
        return []
    near = small["low"] > -MARGIN
    less = ~near & (small["high"] < 0)
    return [
        claim(
            "Of {n:word} loops that keep only the word pieces of their task, {near:word} are shown to lose less than a point to "
            "six layers with all word pieces; {less:word} are less accurate, and {open:word} are not settled.",
            holds=True,
            n=len(small),
            near=int(near.sum()),
            less=int(less.sum()),
            open=int((~near & ~less).sum()),
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
            "In eight bits the loop takes {megabytes:.0f} MB, {share:share} of its size. On {data} no encoder is shown to lose "
            "accuracy by it.",
            holds=bool((rounded["high"] >= 0).all()),
            megabytes=loop.bytes / 1e6,
            share=loop.bytes / loop.whole_bytes,
            data=short(str(loop.data)),
        ),
        _one_text(forms),
        claim(
            "The error of rounding is {one:.2f} standard deviations of the states after one pass, and {two:.2f} after two.",
            holds=after.get(2, 0) > after.get(1, 1),
            one=after.get(1),
            two=after.get(2),
        ),
    ]


def _one_text(forms: pd.DataFrame) -> Claim:
    """In which forms one text takes less time with the loop than with all layers."""
    ms = forms.pivot(index="form", columns="arm", values="ms_one")
    ratio = ms["loop"] / ms["deep"]
    faster = ms[ratio < SOONER]
    return claim(
        "One text is labelled sooner by the loop than by six layers in one form of {n:word} ({form}: {loop:.2f} ms instead of "
        "{deep:.2f}). The cause was not measured.",
        holds=len(faster) == 1 and bool((ratio < 1 / SOONER).all()),
        n=len(ms),
        form=faster.index[0] if len(faster) else None,
        loop=faster["loop"].iloc[0] if len(faster) else None,
        deep=faster["deep"].iloc[0] if len(faster) else None,
    )
