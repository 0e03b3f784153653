"""Workers that are processes of this machine."""

from __future__ import annotations

import functools
import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context

from rtx import process
from rtx.shards.job import Job
from rtx.shards.worker import Outcome, Worker
from rtxlib import atomic


def outcomes(job: Job, names: Sequence[str], workers: int | None) -> Iterator[Outcome]:
    """The outcomes of shards, each as soon as it is there. They end early when a worker is killed.

    workers: how many processes; None: one for each core or shard, and one alone if it computes on a GPU. The cores are shared
    among them.
    """
    cores = process.cores()
    count = max(1, min(workers or (1 if _on_gpu(job) else cores), len(names)))
    threads = max(1, cores // count)
    pool = ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=_start, initargs=(threads,))
    try:
        for future in as_completed([pool.submit(_finish, job, threads, name) for name in names]):
            yield future.result()
    except BrokenProcessPool:
        return
    except BaseException:
        process.end_workers(pool)
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        atomic.sweep(job.out)


def _on_gpu(job: Job) -> bool:
    if job.exported:  # there may be no torch
        return False
    from rtxlib.training.device import pick_device

    return pick_device().type == "cuda"


def _start(threads: int) -> None:
    """Begin a worker process. Ctrl-C reaches it as well as its parent, which ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    process.start_worker()
    for name in ("OMP_NUM_THREADS", "RAYON_NUM_THREADS"):  # of torch, of tokenizers
        os.environ.setdefault(name, str(threads))


@functools.cache
def _worker(job: Job, threads: int) -> Worker:
    return Worker(job, threads)


def _finish(job: Job, threads: int, name: str) -> Outcome:
    return _worker(job, threads)(name)
