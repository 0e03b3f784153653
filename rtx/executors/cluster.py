"""Train missing runs on a Ray cluster: one task per run, on the cores of this machine or on the nodes of ``RAY_ADDRESS``.

Every node must be able to import rtxlib, and ``RTX_HOME`` must lie on a file system that all nodes share and that keeps locks
between them. Each worker checks this (:func:`_train_on_node`). A killed worker loses its lock, and the next worker that trains
the run resumes from its checkpoint.
"""

from __future__ import annotations

import contextlib
import platform
import time
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from filelock import Timeout

from rtx import archive, process
from rtx.executors import gpu, local
from rtx.executors import ray as executors
from rtxlib import atomic
from rtxlib.errors import InputError, counted
from rtxlib.runs import store
from rtxlib.runs.spec import RunSpec
from rtxlib.runs.store import Run
from rtxlib.runs.train import train_run

RETRIES = 3  # of a run whose worker or node was lost; a run that raises is not tried again
LOOK_SECONDS = 2.0  # between two looks at the locks of other drivers
SAY_SECONDS = 10.0  # between two reports of the progress
SHOWN_SECONDS = 90.0  # a network file system may show a folder of another machine only after a minute


def train_all(missing: dict[str, RunSpec], runs: Path, say: Callable[[str], None]) -> None:
    """Train the runs of ``missing`` (key → spec) into the store ``runs``, as Ray tasks.

    A task has ``spec.threads`` cores and, if the cluster has GPUs, a share of one. A run that raises is reported at once, the
    other runs go on, and InputError names the failures at the end. A Ray that already runs in this process is used as it is.
    """
    import ray

    started_here = not ray.is_initialized()
    if started_here:
        executors.connect(max(spec.threads for spec in missing.values()))
    held = store.lock(runs, f"driver-{uuid.uuid4().hex[:12]}-{atomic.mark()}")
    try:
        with held:
            failed = _follow(missing, runs, say, Path(held.lock_file))
    finally:
        Path(held.lock_file).unlink(missing_ok=True)
        if started_here:
            ray.shutdown()
    if failed:
        reasons = list(dict.fromkeys(failed.values()))
        first = next(missing[key] for key in failed)
        others = ", and the others are in the store" if len(failed) < len(missing) else ""
        raise InputError(
            f"{len(failed)} of {counted(len(missing), 'run')} failed{others}. {first.title}: {reasons[0]}"
            + (f" Others: {' '.join(reasons[1:3])}" if len(reasons) > 1 else "")
        )


def _train_on_node(spec: RunSpec, runs: Path, mark: Path, on_gpu: bool) -> bool:
    """In a worker: train a run. False when another process is training it, True when it is in the store."""
    check_node(runs, mark, on_gpu)
    try:
        train_run(spec, runs, patience=0)
    except Timeout:
        return False
    return True


def check_node(runs: Path, mark: Path, on_gpu: bool, mend: str = "set RTX_HOME to a folder") -> None:
    """In a worker, before it trains into the store ``runs``: tune the process, and see whether the node can do it.

    Raises InputError when this node does not see the driver's lock file ``mark`` in the store, when the driver's lock does not
    hold on this node, or when torch cannot use the GPU that the node has. mend: how the user moves the store.
    """
    process.tune()  # memory; the variables were set when Ray started this process
    here = platform.node()
    if not mark.is_file():
        raise InputError(
            f"{here} does not see what the driver wrote into {runs}; {mend} on a file system that all nodes share."
        )
    if not archive.taken(mark):
        raise InputError(
            f"On {here} a lock in {runs} can be taken that the driver holds; mount that file system with locks (flock) "
            "between machines, or two nodes could train the same run."
        )
    if on_gpu:
        import torch

        if not torch.cuda.is_available():
            raise InputError(f"{here} has a GPU that its torch cannot use; install a build of torch for CUDA there.")


def _follow(missing: dict[str, RunSpec], runs: Path, say: Callable[[str], None], mark: Path) -> dict[str, str]:
    """Hand all runs to the cluster and wait for them. Returns the reasons of the runs that failed, by key."""
    import ray

    with_gpus = ray.cluster_resources().get("GPU", 0) > 0
    # A worker on a GPU ends with its run. Otherwise its CUDA context and cached memory would stay on a GPU that Ray gives to
    # other workers.
    train_one = ray.remote(max_calls=1 if with_gpus else 0)(_train_on_node)
    shapes = {key: gpu.shape(spec.canonical()) for key, spec in missing.items()} if with_gpus else {}
    known = archive.every(runs) if with_gpus else []
    environment = executors.environment()  # given to each task too, because Ray may have been started by somebody else
    tasks: dict[Any, str] = {}  # a task's reference → its key
    elsewhere: set[str] = set()  # keys of runs that other processes are training
    queue, failed, done, said_at = list(missing), {}, 0, time.monotonic()

    def submit(key: str, share: float) -> None:
        task = train_one.options(
            name=missing[key].title,
            num_cpus=missing[key].threads,
            num_gpus=share,
            max_retries=RETRIES,
            retry_exceptions=False,
            runtime_env=environment,
        )
        tasks[task.remote(missing[key], runs, mark, with_gpus)] = key
        queue.remove(key)

    def end(key: str, line: str) -> None:
        nonlocal done
        done += 1
        say(f"[{done}/{len(missing)}] {missing[key].title}{line}")

    _tell_of_too_many_threads(missing.values(), say)
    try:
        while queue or tasks or elsewhere:
            if with_gpus:
                busy = {shapes[key] for key in tasks.values()}
                shares = gpu.may_start({key: shapes[key] for key in queue}, busy, gpu.measured(known))
            else:
                shares = dict.fromkeys(queue, 0.0)
            for key, share in shares.items():
                submit(key, share)
            if tasks:
                ended, _ = ray.wait(list(tasks), timeout=LOOK_SECONDS)
            else:
                ended = []
                time.sleep(LOOK_SECONDS)
            for task in ended:
                key = tasks.pop(task)
                try:
                    if ray.get(task):
                        known.append(shown(runs, key))
                        end(key, local.outcome(known[-1]))
                    else:
                        elsewhere.add(key)
                except (ray.exceptions.RayError, InputError) as error:
                    if not isinstance(error, InputError):
                        say(str(error))  # with the worker's stack trace
                    failed[key] = reason(error)
                    end(key, f" failed: {failed[key]}")
            for key in [key for key in elsewhere if not archive.taken(store.lock_file(runs, key))]:
                elsewhere.remove(key)
                queue.append(key)  # the other process has finished it or was killed; a task finds out
            if time.monotonic() - said_at > SAY_SECONDS:
                said_at = time.monotonic()
                for line in local.under_way({key: missing[key] for key in (*tasks.values(), *elsewhere)}, runs):
                    say(f"[{done}/{len(missing)} done] {line}")
                if not tasks:
                    say(f"[{done}/{len(missing)} done] another process has {len(elsewhere)} of the runs in hand")
    except BaseException:
        for task in tasks:
            with contextlib.suppress(Exception):  # the cluster may be gone
                ray.cancel(task, force=True)
        raise
    return failed


def _tell_of_too_many_threads(specs: Iterable[RunSpec], say: Callable[[str], None]) -> None:
    """Say so when a run needs more cores than any node has."""
    import ray

    largest = max((node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"]), default=0)
    if most := [spec for spec in specs if spec.threads > largest]:
        say(f"No node has {most[0].threads} cores, as {most[0].title} needs; Ray waits until one joins")


def shown(runs: Path, key: str) -> Run:
    """The run that a worker has put into the store, as soon as this machine sees it."""
    deadline = time.monotonic() + SHOWN_SECONDS
    while (run := store.load(runs, key)) is None:
        if time.monotonic() > deadline:
            raise InputError(f"A worker finished the run {key}, but it does not appear in {runs}.")
        time.sleep(1)
    return run


def reason(error: Exception) -> str:
    """Why a task failed, in a sentence."""
    cause = getattr(error, "cause", error)  # the exception that the task raised
    if isinstance(cause, InputError):
        return str(cause)
    if type(error).__name__ in ("WorkerCrashedError", "NodeDiedError", "LocalRayletDiedError", "OutOfMemoryError"):
        return (
            f"its worker was lost {RETRIES + 1} times, most likely because memory ran out; what was trained is kept, and "
            "the same command goes on from there."
        )
    if executors.lacks_us(error):
        return executors.NOT_ON_A_NODE
    return f"{type(cause).__name__}: {executors.first_line(cause)}"
