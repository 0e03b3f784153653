"""Workers that are actors of a Ray cluster. Ray Data hands them the names of the shards; the texts never pass through Ray."""

from __future__ import annotations

import logging
import traceback
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rtx import process
from rtx.executors import ray as executors
from rtx.shards.job import Job
from rtx.shards.worker import Outcome, Worker
from rtxlib.errors import InputError

RETRIES = 3  # of a shard whose worker or node is lost, within a round
MOST_BLOCKS = 10_000  # of names; more shards share a block, and an outcome is reported when its block has ended


def outcomes(job: Job, names: Sequence[str], workers: int | None) -> Iterator[Outcome]:
    """The outcomes of shards. Those whose worker or node was lost again and again are missing.

    workers: how many actors at most, with a core or a GPU each; None: as many as the cluster has. A Ray that already runs in
    this process is used as it is.
    """
    import ray

    started_here = not ray.is_initialized()
    if started_here:
        executors.connect(workers or 1)
    try:
        for row in _dataset(job, names, workers).iter_rows():
            yield Outcome(row["name"], int(row["rows"]), row["error"], bool(row["fatal"]))
    except ray.exceptions.RayError as error:
        if not executors.lacks_us(error):
            raise
        raise InputError(executors.NOT_ON_A_NODE) from error
    finally:
        if started_here:
            ray.shutdown()


def _dataset(job: Job, names: Sequence[str], workers: int | None) -> Any:
    """The outcomes as a Ray dataset, which is computed while it is read."""
    import ray.data

    gpus = ray.cluster_resources().get("GPU", 0)
    gpu = int(gpus > 0 and not job.exported)
    most = workers or int(gpus if gpu else ray.cluster_resources().get("CPU", 1))
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # a lost worker is an error with a stack trace there
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = context.print_on_execution_start = False
    context.execution_no_progress_timeout_s = -1  # a shard may take hours
    context.max_errored_blocks = -1  # such a shard is given out again by rtx.shards.drive
    data = ray.data.from_items([{"name": name} for name in names], override_num_blocks=min(len(names), MOST_BLOCKS))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # max_task_retries; without it Ray would try for ever
        return data.map(
            _Actor,
            fn_constructor_args=(job,),
            compute=ray.data.ActorPoolStrategy(size=max(1, min(most, len(names))), max_tasks_in_flight_per_actor=1),
            num_cpus=1,
            num_gpus=gpu,
            max_task_retries=RETRIES,
            runtime_env=executors.environment(),  # Ray may have been started by somebody else
        )


class _Actor:
    """A worker on a node. It opens the model with its first shard and keeps it."""

    def __init__(self, job: Job) -> None:
        process.tune()
        self.worker = Worker(job, threads=1)

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        try:
            return asdict(self.worker(row["name"]))
        except Exception as error:  # a mistake of ours, which Ray Data would take for a lost worker
            traceback.print_exc()
            return asdict(Outcome(row["name"], error=f"{type(error).__name__}: {executors.first_line(error)}", fatal=True))
