"""Which differences are larger than the noise?"""

from __future__ import annotations

import pandas as pd

from rtxstudy.claims import Claim, claim, listed
from rtxstudy.names import short


def title(verdicts: pd.DataFrame) -> Claim:
    """``verdicts``: of :func:`rtxstudy.questions.summary.glance.verdicts`."""
    clear = int(verdicts["verdict"].isin(["first", "second"]).sum())
    return claim(
        "{clear} of {n} differences are larger than the noise, before a correction for their number",
        holds=clear > 1,
        clear=clear,
        n=len(verdicts),
    )


def summary(verdicts: pd.DataFrame) -> list[Claim]:
    many = verdicts["verdict"].value_counts()
    largest = verdicts[verdicts["difference"].abs() > 0.05]
    clear = largest[largest["verdict"].isin(["first", "second"])]
    pretrained = clear["comparison"].str.startswith("all-MiniLM")
    below = clear["comparison"].str.contains("tf-idf|nb-svm") & (clear["difference"] < 0)
    longer = clear["study"] == "longer_texts"
    return [
        claim(
            "Every clear difference above five points in this figure is of one of three kinds: MiniLM beside another model, an "
            "encoder from scratch beside TF-IDF or NB-SVM on {counted}, or more tokens of a long text.",
            holds=bool((pretrained | below | longer).all()),
            counted=listed([short(data) for data in dict.fromkeys(clear.loc[below, "data"])]) or None,
            n=len(clear) or None,
        ),
        claim(
            "Of all differences, {alike:word} are shown to lie within what a replacement may lose, and {open:word} stay open: "
            "their intervals contain zero and are wide.",
            holds=many.get("open", 0) > 0,
            alike=int(many.get("alike", 0)),
            open=int(many.get("open", 0)),
        ),
    ]
