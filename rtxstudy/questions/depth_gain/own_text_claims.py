"""What does a pretraining on the study's own texts reach?"""

from __future__ import annotations

import pandas as pd

from rtxstudy.claims import Claim, claim, row
from rtxstudy.numbers import ends


def reached(gained: pd.DataFrame) -> list[Claim]:
    """``gained``: of ``depth_gain.own_text_gains``."""
    on = gained[gained["data"] == "sst2"] if len(gained) else gained
    shallow = row(on, arm="shallow", against="from scratch")
    loop = row(on, arm="loop", against="from scratch")
    minilm = row(on, arm="deep", against="made from a pretrained encoder")
    return [
        claim(
            "Pretrained on masked words and fine-tuned by another recipe, the loop is {loop:points} points above the loop from "
            "scratch on SST-2 ({interval}). Three layers reach {best:percent}, the highest mean of the three encoders.",
            holds=loop.low > 0 and shallow.accuracy == on["accuracy"].max() if len(on) else None,
            loop=loop.difference,
            interval=ends(loop.low, loop.high) if loop else None,
            best=shallow.accuracy,
        ),
        claim(
            "MiniLM, which read far more text, is {minilm:points} points better than six such layers.",
            holds=minilm.high < 0,
            minilm=minilm.difference,
        ),
    ]
