"""Does depth pay where the answer must be computed?"""

from __future__ import annotations

import pandas as pd

from rtxstudy.claims import Claim, claim, row
from rtxstudy.numbers import with_ends


def same(gains: pd.DataFrame, phrase: pd.Series | dict) -> list[Claim]:
    """Same sentiment; ``phrase``: of ``composed.phrase_level``."""
    task = row(gains, id="composed same")
    level = row(pd.DataFrame([phrase])) if len(phrase) else row(None)
    return [
        claim(
            "Counting words is at chance on *same* ({words:percent}). Judging each phrase by counting words and comparing the "
            "two labels would give {bound:percent}. Six layers reach {deep:percent}.",
            holds=task.words < 0.55 and task.deep > level.bound,
            words=task.words,
            bound=level.bound,
            deep=task.deep,
        ),
        claim(
            "Six layers gain {gain} points over three, which does not survive the correction over all comparisons.",
            holds=task.depth_low > 0 and not task.pays,
            gain=with_ends(task.depth_gain, task.depth_low, task.depth_high) if task else None,
        ),
    ]


def pointers(tasks: int) -> list[Claim]:
    return [
        claim(
            "A second task asks a model to follow pointers from phrase to phrase. MiniLM and encoders from scratch were tried on "
            "it and did not learn it. No table has these runs (LOG.md).",
            holds=tasks == 0,
            n=tasks,
        )
    ]
