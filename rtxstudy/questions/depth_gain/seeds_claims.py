"""Do the verdicts hang on how the noise of three seeds is estimated?"""

from __future__ import annotations

import pandas as pd

from rtxstudy.claims import Claim, claim, listed
from rtxstudy.questions.depth_gain.depth_claims import tasks, with_ways
from rtxstudy.questions.depth_gain.pooled_seeds import Pooled, pool
from rtxstudy.questions.depth_gain.verdicts import LESS_ACCURATE


def verdicts(found: Pooled) -> list[Claim]:
    """What changes if the noise of seeds is pooled."""
    rows = found.rows
    flat, now_flat = rows["before"] == "no gain", rows["verdict"] == "no gain"
    replaces = rows["verdict"] == "replaces"
    was_below, is_below = (rows[column].isin(LESS_ACCURATE) for column in ("before", "verdict"))
    return [
        claim(
            "Three seeds tell little about how far seeds vary. Over the {n} comparisons made of MiniLM, the mean square of seeds "
            "is {depth:.1f} times the residual one in the depth gain, {loop:.1f} times in the loop gain and {sharing:.1f} times "
            "in loop − deep. If these ratios are taken for all of them, {changed:word} verdicts change. Comparisons on one task "
            "share the runs of the deep encoder, so they tell less than as many independent ones.",
            n=len(rows),
            **found.ratios,
            changed=int((rows["before"] != rows["verdict"]).sum()),
        ),
        claim("Then depth pays on {more}, too.", more=listed(with_ways(rows[flat & ~now_flat])) or None),
        claim("It no longer pays on {fewer}.", fewer=listed(with_ways(rows[~flat & now_flat])) or None),
        claim("And a loop replaces depth on {named}.", named=listed(with_ways(rows[replaces])) or None),
        claim("The loop is then less accurate on {named}, too.", named=listed(with_ways(rows[~was_below & is_below])) or None),
        claim(
            "It is no longer shown to be less accurate on {named}.", named=listed(with_ways(rows[was_below & ~is_below])) or None
        ),
    ]


def in_short(gains: pd.DataFrame) -> Claim:
    """The same in a sentence. ``gains``: of :func:`rtxstudy.questions.depth_gain.gains.depth_gain`."""
    found = pool(gains)
    rows = None if found is None else found.rows[found.rows["verdict"] == "replaces"]
    return claim(
        "A second analysis, added when the results were known, pools the noise of seeds over comparisons and leaves no seed out. "
        "By it a loop replaces depth on {n:word} tasks.",
        holds=rows is not None and len(rows) > 0,
        n=None if rows is None else len(tasks(rows)),
    )
