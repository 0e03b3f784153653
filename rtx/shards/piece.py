"""How much of a shard is read at a time, and what holds for every piece of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from rtxlib.errors import InputError, few, nearest, shortened

ROWS = 2048  # of a piece at most: enough for batches of texts of like length
BYTES = 16 << 20  # of a piece, about; fewer rows are read where they are long

Columns = dict[str, object]  # name → what is added to a piece: strings, or numbers (rows,) or (rows, width) in float32


def require_columns(columns: Collection[str], read: Mapping[str, str], name: str) -> None:
    """Raise InputError unless the shard ``name`` has each column that is read exactly once; a shard without rows may have none.

    read: the columns by the options that name them.
    """
    for option, column in read.items() if columns else ():
        times = list(columns).count(column)
        if not times:
            raise InputError(
                f"{name} has no column '{shortened(column)}' ({option}); it has {few(columns, 12)}.{nearest(column, columns)}"
            )
        if times > 1:
            raise InputError(f"{name} has more than one column '{shortened(column)}'; rename one.")


def require_free(columns: Collection[str], added: Collection[str], where: str) -> None:
    """Raise InputError when a shard or a line has a column that the answers would add."""
    for column in columns:
        if column in added:
            raise InputError(
                f"{where} has a column '{shortened(column)}' of its own, and the answers would add another; rename it."
            )
