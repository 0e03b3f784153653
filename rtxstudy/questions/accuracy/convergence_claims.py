"""When does a training end?"""

from __future__ import annotations

import pandas as pd

from rtxstudy.claims import Claim, claim, first


def stopped(table: pd.DataFrame) -> list[Claim]:
    """How trainings ended; ``table``: of ``convergence.stopping``."""
    return [
        first(
            claim(
                "No recipe of these runs stops early.", holds=bool(table["patience"].isna().all()), n=len(table) or None
            ),
            claim(
                "{early} of {n} trainings stopped early.",
                holds=True,
                early=int(table["early"].sum()),
                n=int(table["n"].sum()),
            ),
        )
    ]
