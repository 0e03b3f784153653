"""Run specs: open stored runs, train missing ones, measure missing latencies."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch

from rtx import archive
from rtx.executors import cluster, local
from rtx.executors import ray as executors
from rtx.latency import EVALUATION_TOKENS, latency
from rtxlib import paths
from rtxlib.data.batching import Tokens, batches, collate
from rtxlib.data.prepare import Prepared, prepare
from rtxlib.data.spec import DataSpec
from rtxlib.errors import InputError
from rtxlib.runs import store, trained
from rtxlib.runs.spec import RunSpec
from rtxlib.runs.store import Run
from rtxlib.training.device import device_name, pick_device, pick_precision

LATENCY_TEXTS = 24  # texts that are timed one by one
LATENCY_ROUNDS = 3  # how often each is timed
SATURATED_BATCHES = 2  # full batches that are timed

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
    timed: bool = True,
    executor: str | None = None,
    data: Data | None = None,
) -> list[Run]:
    """The runs of ``specs``, in their order. Those that the store lacks are trained first.

    Args:
        specs: the runs
        report: is called with lines of progress; None: they are printed
        timed: whether to measure the latency of runs that have none
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
            f"{len(missing)} of {len(stored)} runs are not in the store and training is switched off: "
            f"{', '.join(spec.title for spec in list(missing.values())[:3])}{' …' if len(missing) > 3 else ''}. "
            "Run the notebook or `rtx report` without --no-training first."
        )
    if missing:
        say(f"{len(missing)} runs to train, {len(stored) - len(missing)} already in the store")
        if executor == "ray":
            cluster.train_all(missing, runs, say)
        else:
            local.train_all(missing, runs, say, data)
    finished = [run or store.load(runs, key) for key, run in stored]
    if not timed:
        return finished
    return [measure_latency(run, data[spec.data]) for spec, run in zip(specs, finished, strict=True)]


def measure_latency(run: Run, data: Prepared) -> Run:
    """Time a run's forward pass on texts of its test split and add the times to its metrics, unless it has them.

    This is not done in training, because other runs may train at the same time. The metrics gain ``ms_median`` and ``ms_p95``
    (batches of one text), ``ms_per_text`` (full batches), ``latency_device`` and ``latency_threads``.
    """
    if run.path is None or "ms_median" in run.metrics:
        return run
    device = pick_device()
    precision = pick_precision(run.spec["recipe"]["precision"], device)
    model = trained.open_model(run)
    single, saturated = _timed_batches(data.splits["test"])
    pad_id = data.tokenizer.pad_token_id
    timing = latency(
        model,
        [collate(data.splits["test"], index, pad_id) for index in single],
        [collate(data.splits["test"], index, pad_id) for index in saturated],
        device,
        rounds=LATENCY_ROUNDS,
        precision=precision,
    )
    on = {"latency_device": device_name(device), "latency_threads": torch.get_num_threads()}
    metrics = run.metrics | timing | on
    with archive.changing(run):
        archive.put(run, "metrics.json", lambda path: store.write_json(path, metrics))
    return dataclasses.replace(run, metrics=metrics)


def _timed_batches(test: Tokens) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Row indices of batches of one text, spread over the split, and of full batches of middle lengths."""
    rows = np.linspace(0, len(test) - 1, min(LATENCY_TEXTS, len(test))).astype(int)
    full = batches(test.lengths, EVALUATION_TOKENS, None, seed=None, epoch=0)
    count = min(SATURATED_BATCHES, len(full))
    # Two more points than batches. The ends are left out, because they are the shortest and the longest texts.
    middle = np.linspace(0, len(full) - 1, count + 2).round().astype(int)[1:-1]
    return [rows[i : i + 1] for i in range(len(rows))], [full[i] for i in middle]
