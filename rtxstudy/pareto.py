"""The Pareto frontier of a table: the rows that no other row dominates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from rtxlib.errors import InputError, nearest


def frontier(table: pd.DataFrame, minimise: Sequence[str] = (), maximise: Sequence[str] = ()) -> pd.Series:
    """True for each row that no other row dominates; a boolean Series on the table's index.

    Row a dominates row b when a is at least as good in every column of ``minimise`` and ``maximise`` and better in at least
    one. Equal rows therefore stay on the frontier together. A row with a missing value neither dominates nor is on the
    frontier. All pairs of rows are compared, so the cost is quadratic. Raises ``InputError`` for a missing column, or when no
    column is given.
    """
    if not (*minimise, *maximise):
        raise InputError("A frontier needs at least one column to minimise or maximise.")
    for column in (*minimise, *maximise):
        if column not in table:
            raise InputError(f"The table has no column '{column}'.{nearest(column, table.columns)}")
    cost = np.column_stack([*(table[c] for c in minimise), *(-table[c] for c in maximise)]).astype(float)  # (rows, aims)
    no_worse = (cost[:, None, :] <= cost[None, :, :]).all(axis=2)  # (a, b): a is at least as good as b on every aim
    better = (cost[:, None, :] < cost[None, :, :]).any(axis=2)
    dominated = (no_worse & better).any(axis=0)
    return pd.Series(~dominated & np.isfinite(cost).all(axis=1), index=table.index, name="on_frontier")
