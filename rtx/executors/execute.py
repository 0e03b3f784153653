"""Run specs: open stored runs, train missing ones."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from rtx.executors import cluster, local
from rtx.executors import ray as executors
from rtxlib import paths
from rtxlib.data.prepare import Prepared, prepare
from rtxlib.data.spec import DataSpec
from rtxlib.errors import InputError, counted
from rtxlib.runs import store
from rtxlib.runs.spec import RunSpec
from rtxlib.runs.store import Run

Data = dict[DataSpec, Prepared]


class TrainingRefused(InputError):
    """Runs are missing and training is switched off (``make figures``)."""


def lookup(specs: Sequence[RunSpec], runs: Path, data: Data | None = None) -> list[tuple[str, Run | None]]:
    """The key of each spec, and its run if the store has it.

    data: prepared data by their spec; those that are missing are prepared and added.
    """
    data = {} if data is None else data
    for spec in specs:
        if spec.data not in data:
            data[spec.data] = prepare(spec.data, paths.prepared_dir())
    keys = [spec.key(data[spec.data].fingerprint) for spec in specs]
    return [(key, store.load(runs, key)) for key in keys]


def run(
    specs: Sequence[RunSpec],
    report: Callable[[str], None] | None = None,
    executor: str | None = None,
    data: Data | None = None,
) -> list[Run]:
    """The runs of ``specs``, in their order. Those that the store lacks are trained first.

    Args:
        specs: the runs
        report: is called with lines of progress; None: they are printed
        executor: "local" (:mod:`local`) or "ray" (:mod:`cluster`); None: ``RTX_EXECUTOR``, else "local"
        data: prepared data by their spec; those that are missing are prepared and added

    Raises:
        TrainingRefused: runs are missing and ``RTX_NO_TRAINING`` is set.
        InputError: the executor is unknown, or runs failed.
    """
    executor = executors.known(executor)
    data = {} if data is None else data
    runs = paths.runs_dir()
    say = report or (lambda line: print(line, flush=True))
    refused = bool(os.environ.get("RTX_NO_TRAINING"))
    stored = lookup(specs, runs, data)
    missing = {key: spec for spec, (key, run) in zip(specs, stored, strict=True) if run is None}
    if missing and refused:
        raise TrainingRefused(
            f"{len(missing)} of {counted(len(stored), 'run')} {'is' if len(missing) == 1 else 'are'} not in the store, and "
            "training is switched off: "
            f"{', '.join(spec.title for spec in list(missing.values())[:3])}{' …' if len(missing) > 3 else ''}. "
            "Run the notebook or `rtx report` without --no-training first."
        )
    if missing:
        say(f"{counted(len(missing), 'run')} to train, {len(stored) - len(missing)} already in the store")
        if executor == "ray":
            cluster.train_all(missing, runs, say)
        else:
            local.train_all(missing, runs, say, data)
    return [run or store.load(runs, key) for key, run in stored]
