"""Train missing runs on this machine, in several worker processes on its CPU or its GPU."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from rtx import archive
from rtx.executors import gpu
from rtx.process import cores, end_workers, workers
from rtxlib.data.prepare import Prepared
from rtxlib.data.spec import DataSpec
from rtxlib.errors import InputError
from rtxlib.runs import store
from rtxlib.runs.spec import RunSpec
from rtxlib.runs.store import Run
from rtxlib.runs.train import train_run
from rtxlib.training.device import pick_device

FEW_ROWS = 2000  # that the runs of a call read together; starting processes for fewer takes longer than training


def train_all(
    missing: dict[str, RunSpec], runs: Path, say: Callable[[str], None], data: Mapping[DataSpec, Prepared]
) -> None:
    """Train the runs of ``missing`` (key → spec) into the store ``runs``.

    As many runs train at once as there are cores for their threads, which is faster for small models than one run on all
    cores. On a GPU there are as many as its memory takes (:mod:`rtx.executors.gpu`). Where there is little to read, they train
    one after another, on the prepared ``data``. The first failure stops the others.
    """
    jobs = min(max(1, cores() // max(spec.threads for spec in missing.values())), len(missing))
    if jobs > 1 and sum(_rows_read(spec, data) for spec in missing.values()) > FEW_ROWS:
        _in_workers(missing, runs, say, jobs, pick_device().type == "cuda")
        return
    for number, spec in enumerate(missing.values(), start=1):
        where = f"[{number}/{len(missing)}] {spec.title}"
        run = train_run(spec, runs, lambda line, where=where: say(f"{where}: {line}"), data=data.get(spec.data))
        say(where + outcome(run))


def _rows_read(spec: RunSpec, data: Mapping[DataSpec, Prepared]) -> float:
    return len(data[spec.data].splits["train"]) * spec.recipe.epochs if spec.data in data else math.inf


def outcome(run: Run) -> str:
    """How a run ended, to be printed after its title."""
    return f": accuracy {run.metrics['accuracy']:.3f} in {run.metrics['train_seconds']:.0f} s"


def under_way(missing: dict[str, RunSpec], runs: Path) -> Iterator[str]:
    """The last line of progress of each run that is being trained, by this process or by another."""
    for key, spec in missing.items():
        with contextlib.suppress(OSError):  # the run has not begun, or has just ended
            yield f"{spec.title}: {(store.partial(runs, key) / store.PROGRESS).read_text(encoding='utf-8')}"


def _in_workers(missing: dict[str, RunSpec], runs: Path, say: Callable[[str], None], jobs: int, on_gpu: bool) -> None:
    """Train in ``jobs`` worker processes, each of which opens the data itself. Report the progress every ten seconds.

    On a GPU each run has a process of its own that ends with it. Otherwise the memory that CUDA keeps for a process would be lost
    to the runs that come next.
    """
    shapes = {key: gpu.shape(spec.canonical()) for key, spec in missing.items()} if on_gpu else {}
    known = archive.every(runs) if on_gpu else []
    pool = None if on_gpu else workers(jobs, train_run.__module__)
    queue: list[str] = list(missing)
    tasks: dict[Future[Run], tuple[str, float, ProcessPoolExecutor]] = {}  # a run that is trained → key, share of the GPU, pool

    try:
        while queue or tasks:
            wanted = dict.fromkeys(queue, 0.0)
            if on_gpu:
                busy = {shapes[key] for key, *_ in tasks.values()}
                wanted = gpu.may_start({key: shapes[key] for key in queue}, busy, gpu.measured(known))
            for key, share in wanted.items():
                if not on_gpu or (len(tasks) < jobs and sum(used for _, used, _ in tasks.values()) + share <= 1):
                    its = pool or workers(1, train_run.__module__)
                    tasks[its.submit(train_run, missing[key], runs)] = key, share, its
                    queue.remove(key)
            ready, _ = wait(tasks, timeout=10, return_when=FIRST_COMPLETED)
            for future in ready:
                key, _, its = tasks.pop(future)
                if on_gpu:
                    its.shutdown()
                known.append(future.result())
                say(f"[{len(missing) - len(queue) - len(tasks)}/{len(missing)}] {missing[key].title}{outcome(known[-1])}")
            if not ready:
                for line in under_way(missing, runs):
                    say(f"[{len(missing) - len(queue) - len(tasks)}/{len(missing)} done] {line}")
    except BaseException as error:
        for *_, its in tasks.values():
            end_workers(its)
        if not isinstance(error, BrokenProcessPool):
            raise
        raise InputError(
            "A training process was ended from outside, most likely because memory ran out; what was trained is kept. "
            "Free some memory and run the same command again."
        ) from error
    finally:
        for its in {pool, *(its for *_, its in tasks.values())} - {None}:
            its.shutdown(wait=False, cancel_futures=True)
