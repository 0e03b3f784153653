"""The tables that a study publishes: tidy Parquet under ``data/results/<profile>``, from which every figure can be drawn again.

``runs.parquet`` holds each run's record once, ``studies.parquet`` says which study has which run, ``curves.parquet``,
``predictions.parquet``, … hold the runs' own tables. Further tables belong to one study each.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from rtx import archive
from rtxlib.errors import InputError
from rtxlib.runs import store
from rtxlib.runs.store import Run
from rtxstudy.names import Name

FINDINGS = ("sources", "runs", "studies", "comparisons", "classical", "worth", "early_exits", "depth_gains")
OPTIONAL = ("over_blocks", "tour_norm_times", "carried_over")  # of notebooks 04, 08 and 06
TABLES = (
    "curves",
    "predictions",
    "evaluations",
    "gradients",
    "parameter_gradients",
    "state_gradients",
    "states",
    "exits",
    "exit_predictions",
    "bounded_exits",
    "bounded_exit_predictions",
    "further_passes",
    "small_vocabulary",
    "window_passes",
    "deployed",
    "deployed_predictions",
    "deployed_times",
    "rounding",
    "longer_texts",
)  # the tables that a run's folder may hold


def publish(study: str, runs: Iterable[Run], results: Path, **tables: pd.DataFrame) -> None:
    """Write what a study found into ``results``: its runs' records and tables, and any further ``tables`` of its own.

    The rows that the same study, or the same run, left there before are replaced. A run may be given more than once. A run
    that is known from the published tables alone is there already; only its place in the study is written.
    """
    from rtxlib.runs.spec import RunSpec
    from rtxstudy import naming

    runs = list({run.key: run for run in runs}.values())
    here = [run for run in runs if run.path is not None]
    with store.lock(results, "publish"):
        if here:
            records = store.runs_table(here).assign(spec=[json.dumps(run.spec, sort_keys=True) for run in here])
            _replace(results / "runs.parquet", records, "key", records["key"])
        if runs:
            members = pd.DataFrame({"study": study, "key": [run.key for run in runs]})
            _replace(results / "studies.parquet", members, "study", [study])
            named = name_table(naming.of_runs(RunSpec.from_canonical(run.spec) for run in runs))
            _replace(results / "names.parquet", named, "id", named["id"])
        for name in TABLES:
            holders = [run for run in here if (run.path / f"{name}.parquet").is_file()]
            if parts := [_part(run, name) for run in holders]:
                _replace(results / f"{name}.parquet", pd.concat(parts, ignore_index=True), "key", [run.key for run in holders])
        for name, table in tables.items():
            _replace(results / f"{name}.parquet", table.assign(study=study), "study", [study])


def _part(run: Run, name: str) -> pd.DataFrame:
    """A run's own table, compared with its checksum, without the probabilities of its answers.

    No notebook reads the probabilities. They would be four fifths of the table, and stay in the run's folder.
    """
    table = archive.part(run, name)
    return table.drop(columns=[column for column in table if column.startswith("p_")]) if name == "predictions" else table


def _replace(file: Path, new: pd.DataFrame, column: str, values: Iterable[str]) -> None:
    """Write ``new`` among the rows of ``file``, in place of those that have one of ``values`` in ``column``."""
    if file.is_file():
        old = store.read_table(file)
        rest = old[~old[column].isin(list(values))]
        parts = [part for part in (rest, new) if len(part)]  # the types of no rows do not count
        new = pd.concat(parts, ignore_index=True) if parts else new
    store.write_table(file, new.sort_values(column, kind="stable", ignore_index=True))


def read(results: Path, name: str) -> pd.DataFrame | None:
    """A published table, or None when it was not published."""
    file = results / f"{name}.parquet"
    return store.read_table(file) if file.is_file() else None


def keys(results: Path, name: str) -> set[str]:
    """The keys of the runs that a published table has rows of."""
    table = read(results, name)
    return set() if table is None else set(table["key"])


def write_rows(results: Path, name: str, rows: pd.DataFrame, column: str) -> None:
    """Publish rows of a table; those with the same value in ``column`` are replaced."""
    with store.lock(results, "publish"):
        _replace(results / f"{name}.parquet", rows, column, rows[column])


def name_table(names: Mapping[str, Name]) -> pd.DataFrame:
    """The columns ``id``, ``short`` and ``long`` of the table ``names``."""
    return pd.DataFrame([{"id": id_, **name._asdict()} for id_, name in names.items()])


def names(results: Path) -> dict[str, Name]:
    """The published names: id → name."""
    table = read(results, "names")
    return {} if table is None else {row.id: Name(row.short, row.long) for row in table.itertuples()}


def untrue(results: Path) -> str:
    """The published claims that are not true of the tables, as a Markdown list; empty where all are true."""
    claims = read(results, "claims")
    wrong = [] if claims is None else claims.loc[~claims["holds"].astype(bool)].itertuples()
    return "\n".join(f"- {one.sentence.removeprefix('- ')} ({one.question.replace('_', ' ')})" for one in wrong)


def written(given: Mapping[str, Any]) -> str:
    """Parameters as the table ``settings`` holds them."""
    return json.dumps(given, sort_keys=True, default=str)


def mixed(results: Path, given: Mapping[str, Any]) -> str:
    """Which notebooks left tables that were made with other parameters than ``given``, in Markdown; empty where none did."""
    settings = read(results, "settings")
    if settings is None:
        return ""
    others = settings[(settings["parameters"] != written(given)) & (settings["study"] != "notebook 99")]
    if others.empty:
        return ""

    def said(parameters: Mapping[str, Any]) -> str:
        return ", ".join(f"{name} = {value}" for name, value in parameters.items()) or "the profile's own"

    named = "; ".join(f"{one['study']}: {said(json.loads(one['parameters']))}" for one in others.to_dict("records"))
    return (
        f"**These tables were made with different parameters** ({named}; this notebook: {said(given)}). `rtx report` with one "
        "set of parameters makes them alike."
    )


def runs(results: Path) -> list[Run]:
    """Every published run: its record, without weights."""
    table = read(results, "runs")
    if table is None:
        return []
    records = table.to_dict("records")
    return [Run(record.pop("key"), json.loads(record.pop("spec")), record, None) for record in records]


def findings(results: Path) -> dict[str, pd.DataFrame]:
    """What the studies of a profile left: :data:`FINDINGS`, and :data:`OPTIONAL`, which are empty where they were not made.

    "runs" has one row per study and run. Beside the ``epochs`` a run took stand the ``most_epochs`` that its recipe allows,
    because recipes of one name may differ in them. The trials of the recipe search are left out: they choose, and are no results.

    Raises InputError when the notebooks before have left nothing.
    """
    from rtxlib.training.recipe import Recipe  # loads torch

    tables = {name: read(results, name) for name in FINDINGS}
    if absent := [name for name, table in tables.items() if table is None]:
        raise InputError(f"{results} has no {' and no '.join(absent)}; run the other notebooks of this profile first.")
    members = tables["studies"][tables["studies"]["study"] != "recipe_search"]
    runs = members.merge(tables["runs"], on="key")
    recipes = [Recipe(**json.loads(spec)["recipe"]) for spec in runs["spec"]]
    runs["most_epochs"] = [
        recipe.most_epochs(math.ceil(rows / recipe.batch_rows))
        for recipe, rows in zip(recipes, runs["train_rows"], strict=True)
    ]
    optional = {name: pd.DataFrame() if (table := read(results, name)) is None else table for name in OPTIONAL}
    return tables | {"runs": runs, **optional}
