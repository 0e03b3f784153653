"""Does a fine-tuned encoder gain when layers are passed again without training?"""

from __future__ import annotations

import pandas as pd

from rtxstudy.claims import Claim, claim, listed
from rtxstudy.names import short
from rtxstudy.numbers import signed
from rtxstudy.questions.untrained_loop.window_passes import DAMPED, REPEATED


def title(changes: pd.DataFrame) -> Claim:
    """``changes``: of :func:`rtxstudy.questions.untrained_loop.untrained_loop.untrained_loop`."""
    untrained = _untrained(changes)
    return claim(
        "Passed again without training, the window that validation texts choose is not shown to gain on any of {n:word} tasks",
        holds=_gains_nowhere(untrained),
        n=untrained["data"].nunique() or None,
    )


def without_training(changes: pd.DataFrame) -> list[Claim]:
    """What further passes of a trained encoder's own layers change."""
    untrained = _untrained(changes)
    damped, repeated = (untrained[untrained["kind"] == kind] for kind in (DAMPED, REPEATED))
    lost = repeated[repeated["high"] < 0]
    return [
        claim(
            "With damped steps, the window that validation texts choose changes test accuracy by {low} to {high} points. On none "
            "of {n:word} tasks is a gain shown.",
            holds=_gains_nowhere(damped),
            low=signed(damped["difference"].min()) if len(damped) else None,
            high=signed(damped["difference"].max()) if len(damped) else None,
            n=len(damped) or None,
        ),
        claim(
            "On {tasks} it loses.",
            holds=bool((damped["high"] < 0).any()),
            tasks=listed([short(data) for data in damped.loc[damped["high"] < 0, "data"]]) or None,
        ),
        claim(
            "Plain repetition of the best window loses on {tasks}.",
            holds=len(lost) > 0,
            tasks=listed([short(data) for data in lost["data"]]) or None,
        ),
        claim(
            "An unlucky window is costly: the worst repetition loses {worst:points} points on validation texts.",
            holds=repeated["worst"].min() < -0.05,
            worst=-repeated["worst"].min(),
        ),
    ]


def _untrained(changes: pd.DataFrame) -> pd.DataFrame:
    """Without the trained loop that stands beside them."""
    return changes[changes["kind"].isin([DAMPED, REPEATED])]


def _gains_nowhere(changes: pd.DataFrame) -> bool:
    return bool((changes["low"] <= 0).all())
