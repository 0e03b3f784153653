"""Tables that are measured once from a run's weights and kept in the run's folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from rtx import archive
from rtxlib.models.heads import EncoderForSequenceClassification
from rtxlib.runs import store
from rtxlib.runs.store import Run
from rtxlib.runs.trained import open_model


def measured_once(
    run: Run, name: str, results: Path | None, measure: Callable[[EncoderForSequenceClassification], pd.DataFrame]
) -> pd.DataFrame:
    """The table ``name`` of a run. If it is not stored, ``measure`` makes it from the run's model, and it is stored.

    results: the published tables, for a run whose weights are not here.
    """
    if run.path is None or (run.path / f"{name}.parquet").is_file():
        return archive.part(run, name, results)
    table = named(run, measure(open_model(run)))
    keep(run, name, table)
    return table


def keep(run: Run, name: str, table: pd.DataFrame) -> None:
    """Write a table into the run's folder."""
    with archive.changing(run):
        archive.put(run, f"{name}.parquet", lambda path: store.write_table(path, table))


def named(run: Run, table: pd.DataFrame) -> pd.DataFrame:
    """The table with the run's key, model, seed and data in every row."""
    return table.assign(key=run.key, **{column: run.metrics[column] for column in ("model", "seed", "data")})
