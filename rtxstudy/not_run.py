"""What a profile was asked to run and has not run: its experiments, what they would cost, and training them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable
from pathlib import Path

import pandas as pd

from rtx.executors import execute, local
from rtxlib import paths
from rtxlib.data.prepare import Prepared
from rtxlib.data.spec import DataSpec
from rtxlib.errors import InputError, nearest
from rtxlib.runs.spec import RunSpec, data_label
from rtxlib.runs.store import Run, hashed
from rtxstudy import published
from rtxstudy.estimate import training_flops
from rtxstudy.finished import Runs
from rtxstudy.profiles import Profile
from rtxstudy.studies import STUDIES, finals, first_round

Added = dict[str, list[RunSpec]]  # notebook → the specs of the runs that it would train


def added(profile: Profile) -> dict[str, Added]:
    """Field of ``profile.not_run`` → the runs that it adds. The fields are switched on one after another, in their order."""
    earlier, extra = {spec for specs in _by_notebook(profile).values() for spec in specs}, {}
    for name, value in profile.not_run.items():
        profile = dataclasses.replace(profile, **{name: value})
        by_notebook = _by_notebook(profile).items()
        new = {notebook: [spec for spec in dict.fromkeys(specs) if spec not in earlier] for notebook, specs in by_notebook}
        extra[name] = {notebook: specs for notebook, specs in new.items() if specs}
        earlier |= {spec for specs in new.values() for spec in specs}
    return extra


def train(profile: Profile, fields: Iterable[str], results: Path, say: Callable[[str], None]) -> int:
    """Train what is missing of these fields of ``profile.not_run``, in their order, seed after seed.

    Each finished run is published into ``results`` at once, without a study, and is not trained again on any machine. Returns
    how many runs were trained. A training that is interrupted goes on at the next call. Raises InputError for an unknown field.
    """
    extra, whole = added(profile), dataclasses.replace(profile, **profile.not_run)
    later = set(finals(whole)) - set(first_round(whole))  # notebook 02 trains them, because the first round chooses them
    specs: list[RunSpec] = []
    for name in fields:
        if name not in extra:
            raise InputError(f"Nothing that was not run is called '{name}'; there are {', '.join(extra)}.{nearest(name, extra)}")
        new = dict.fromkeys(spec for of_notebook in extra[name].values() for spec in of_notebook)
        specs += sorted((spec for spec in new if spec not in later), key=lambda spec: spec.seed)
    data: dict[DataSpec, Prepared] = {}
    pairs, published_keys = execute.lookup(specs, paths.runs_dir(), data), {run.key for run in published.runs(results)}
    published.publish(None, [run for key, run in pairs if run and key not in published_keys], results)
    missing = {
        key: spec for spec, (key, run) in zip(specs, pairs, strict=True) if run is None and key not in published_keys
    }
    say(f"{len(missing)} of {len(specs)} runs are to be trained.")
    runs: list[Run] = []

    def publish(run: Run) -> None:
        published.publish(None, [run], results)
        runs.append(run)

    try:
        if missing:
            local.train_all(missing, paths.runs_dir(), say, data, publish)
    finally:
        say(f"{len(runs)} runs were trained and published; {len(missing) - len(runs)} are left, which the same command trains.")
    return len(runs)


def key(profile: Profile) -> str:
    """A hash of :func:`added`, under which the table of costs is kept."""
    return hashed(
        {name: [spec.canonical() for group in new.values() for spec in group] for name, new in added(profile).items()}
    )


def costs(profile: Profile, runs: Runs, data: Callable[[DataSpec], Prepared]) -> pd.DataFrame:
    """One row for each run of :func:`added`: ``field``, ``notebook`` (its number), ``data``, ``model``, ``seed``, ``core_hours``
    and ``spec`` (canonical JSON).

    runs: finished ones. The operations that they had done in a second are taken for all. data: gives the prepared data of a spec.
    """
    done_operations = sum(training_flops(spec, data(spec.data)) for spec in runs.specs)
    rate = done_operations / sum(run.metrics["train_cpu_seconds"] for run in runs)
    return pd.DataFrame(
        {
            "field": name,
            "notebook": notebook[:2],
            "data": data_label(spec.data),
            "model": spec.name,
            "seed": spec.seed,
            "core_hours": training_flops(spec, data(spec.data)) / rate / 3600,
            "spec": json.dumps(spec.canonical()),
        }
        for name, new in added(profile).items()
        for notebook, specs in new.items()
        for spec in specs
    )


def remaining(costs: pd.DataFrame, finished: Iterable[Run]) -> pd.DataFrame:
    """One row for each field of which something is left: the runs of a table of :func:`costs` that are not finished.

    Columns: ``field``, ``notebooks`` (their numbers), ``data`` (labels), ``models`` and ``seeds`` (how many), ``runs`` and
    ``core_hours``.
    """
    if costs.empty:
        return costs
    finished_specs = {RunSpec.from_canonical(run.spec) for run in finished}
    missing = costs[[RunSpec.from_canonical(json.loads(spec)) not in finished_specs for spec in costs["spec"]]]
    notebooks = missing.groupby("field")["notebook"].agg(lambda numbers: ", ".join(dict.fromkeys(numbers)))
    runs = missing.drop_duplicates("spec").groupby("field", sort=False)
    return runs.agg(
        data=("data", lambda labels: ", ".join(dict.fromkeys(labels))),
        models=("model", "nunique"),
        seeds=("seed", "nunique"),
        runs=("spec", "size"),
        core_hours=("core_hours", "sum"),
    ).assign(notebooks=notebooks).reset_index()


def _by_notebook(profile: Profile) -> Added:
    return {notebook: [spec for make in studies.values() for spec in make(profile)] for notebook, studies in STUDIES.items()}
