"""What does a loop do to one sentence?"""

from __future__ import annotations

import pandas as pd

from rtxstudy.claims import Claim, claim


def title(flips: pd.DataFrame) -> Claim:
    """The title of the strip; ``flips``: of :func:`rtxstudy.pages.passes.answers`."""
    after = flips.drop_duplicates("pass").sort_values("pass")["positive"].tolist()
    return claim(
        "Positive {start:percent} after one pass, negative {end:percent} after {passes:word}",
        holds=after[0] > 0.5 > after[-1],
        start=after[0],
        end=1 - after[-1],
        passes=len(after),
    )
