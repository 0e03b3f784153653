"""Missing runs on this machine: worker processes beside each other on its cores, or one after another on its GPU."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path

from rtxlib.errors import InputError
from rtxlib.process import start_worker
from rtxlib.runs import store
from rtxlib.runs.spec import RunSpec
from rtxlib.runs.store import Run
from rtxlib.training.device import pick_device


def train_all(missing: dict[str, RunSpec], runs: Path, train: Callable[..., Run], say: Callable[[str], None]) -> None:
    """Train the runs of ``missing`` (key → spec) into the store ``runs`` by ``train(spec, runs, report)``.

    On a CPU as many run at once as have cores for their threads, which for models this small is faster than one run on all
    cores; on a GPU they take turns. The first failure stops the rest.
    """
    cores = (os.cpu_count() or 1) // max(spec.threads for spec in missing.values())
    jobs = 1 if pick_device().type == "cuda" else min(max(1, cores), len(missing))
    if jobs > 1:
        return _side_by_side(missing, runs, train, say, jobs)
    for number, spec in enumerate(missing.values(), start=1):
        run = train(spec, runs, lambda line, s=spec, n=number: say(f"[{n}/{len(missing)}] {s.title}: {line}"))
        say(f"[{number}/{len(missing)}] {spec.title}{outcome(run)}")


def outcome(run: Run) -> str:
    """What is said of a run that has ended, after its name."""
    return f": accuracy {run.metrics['accuracy']:.3f} in {run.metrics['train_seconds']:.0f} s"


def under_way(missing: dict[str, RunSpec], runs: Path) -> Iterator[str]:
    """The last line that each run which is being trained reported, by this process or by another."""
    for key, spec in missing.items():
        with contextlib.suppress(OSError):  # it has not begun, or has just ended
            yield f"{spec.title}: {(store.partial(runs, key) / store.PROGRESS).read_text(encoding='utf-8')}"


def _side_by_side(
    missing: dict[str, RunSpec], runs: Path, train: Callable[..., Run], say: Callable[[str], None], jobs: int
) -> None:
    """Train in worker processes; every few seconds say where they stand."""
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=start_worker)
    try:
        titles = {pool.submit(train, spec, runs): spec.title for spec in missing.values()}
        waiting = set(titles)
        done = 0
        while waiting:
            ready, waiting = wait(waiting, timeout=10, return_when=FIRST_COMPLETED)
            for future in ready:
                done += 1
                say(f"[{done}/{len(missing)}] {titles[future]}{outcome(future.result())}")
            if not ready:
                for line in under_way(missing, runs):
                    say(f"[{done}/{len(missing)} done] {line}")
    except BrokenProcessPool as error:
        raise InputError(
            "A training process was ended from outside, most likely because memory ran out; what was trained is kept. "
            "Free some memory and run the same command again."
        ) from error
    except BaseException:
        for process in list(pool._processes.values()):  # the public way to stop them now comes with Python 3.14
            process.terminate()
        raise
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
