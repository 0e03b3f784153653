"""The trainings of a race on a Ray cluster, at the same time: on the cores of this machine, or on the nodes of ``RAY_ADDRESS``.

A training travels as the paths of its prepared data and of its store, so the folder of the comparison must lie on a file system
that all nodes share. What comes back is the network's answers. The run itself stays in the store, as if it had been trained here.
"""

from __future__ import annotations

import contextlib
import sys
import time
import uuid
from collections.abc import Hashable, Iterable, Iterator
from pathlib import Path
from typing import Any

import torch

from rtx.executors import cluster
from rtx.executors import ray as executors
from rtxlib import atomic
from rtxlib.data import prepare
from rtxlib.errors import InputError
from rtxlib.runs import store
from rtxstudy.questions.your_texts import networks
from rtxstudy.questions.your_texts.clock import Clock, OutOfTime
from rtxstudy.questions.your_texts.networks import Learnt, Training

LOOK_SECONDS = 0.5  # between two looks at the clock
IDLE_SECONDS = 15.0  # to wait until stopped trainings have ended
MOVE = "name with --out a folder"


@contextlib.contextmanager
def connected(runs: Path) -> Iterator[Cluster]:
    """The cluster, for the trainings of one race into the store ``runs``. A Ray that already runs in this process is used."""
    import ray

    started_here = not ray.is_initialized()
    if started_here:
        executors.connect(torch.get_num_threads())
    lock = store.lock(runs, f"driver-{uuid.uuid4().hex[:12]}-{atomic.mark()}")
    try:
        with lock:
            yield Cluster(Path(lock.lock_file))
    finally:
        Path(lock.lock_file).unlink(missing_ok=True)
        if started_here:
            ray.shutdown()


class Cluster:
    """A Ray cluster. A training takes as many cores as it would have threads here, and a GPU if the cluster has any.

    Args:
        mark: a lock file in the store, which this process holds

    Attributes:
        workers: how many trainings fit on the cluster at the same time

    Raises InputError when no node has room for a training.
    """

    def __init__(self, mark: Path) -> None:
        import ray

        threads = torch.get_num_threads()
        self.gpus = int(ray.cluster_resources().get("GPU", 0) > 0)
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        if self.gpus:
            nodes = [node for node in nodes if node.get("GPU", 0) > 0]
        fit = [min(node.get("CPU", 0) // threads, node["GPU"] if self.gpus else sys.maxsize) for node in nodes]
        self.workers = int(sum(fit))
        if not self.workers:
            most = int(max((node.get("CPU", 0) for node in nodes), default=0))
            raise InputError(
                f"No node of the Ray cluster has {threads} core{'s' * (threads > 1)}{' and a GPU' * self.gpus}, which a "
                f"training on this machine would take; add such a node{f', or set OMP_NUM_THREADS={most}' if most else ''}."
            )
        self.mark = mark
        self.task = ray.remote(max_calls=self.gpus)(_train_on_node).options(
            num_cpus=threads,
            num_gpus=self.gpus,
            max_retries=cluster.RETRIES,
            retry_exceptions=False,
            runtime_env=executors.environment(),  # Ray may have been started by somebody else
        )

    def train(
        self, trainings: Iterable[tuple[Hashable, Training]], clock: Clock
    ) -> dict[Hashable, Learnt | InputError]:
        """What came of trainings, by their names; an error says why one failed, in a sentence.

        When the time is over, or an end is asked for, those that have not ended are stopped and missing. They can go on later.
        """
        import ray

        tasks: dict[Any, Hashable] = {}  # a task's reference → the training's name
        outcomes: dict[Hashable, Learnt | InputError] = {}
        try:
            for name, training in trainings:
                tasks[self.task.remote(training, self.mark, bool(self.gpus))] = name
                clock.check()
            many = len(tasks)
            while tasks:
                ended, _ = ray.wait(list(tasks), num_returns=len(tasks), timeout=LOOK_SECONDS)
                for task in ended:
                    outcomes[tasks.pop(task)] = _outcome(task)
                clock.progress(f"{len(outcomes)} of {many} trainings have ended on the Ray cluster")
                clock.check()
        except OutOfTime:
            pass
        finally:
            for task in tasks:
                with contextlib.suppress(Exception):  # the cluster may be gone
                    ray.cancel(task, force=True)
        return outcomes

    def idle(self) -> bool:
        """Whether nothing is computed on the cluster, or this machine is no part of it. It waits for what was stopped to end."""
        import ray

        here = ray.get_runtime_context().get_node_id()
        if not any(node["Resources"].get("CPU", 0) for node in ray.nodes() if node["NodeID"] == here):
            return True
        deadline = time.monotonic() + IDLE_SECONDS
        while time.monotonic() < deadline:
            free = ray.available_resources()
            if all(free.get(name, 0) >= ray.cluster_resources().get(name, 0) for name in ("CPU", "GPU")):
                return True
            time.sleep(LOOK_SECONDS)
        return False


def _train_on_node(training: Training, mark: Path, on_gpu: bool) -> Learnt:
    """In a worker: train a network and let it answer."""
    cluster.check_node(training.runs, mark, on_gpu, MOVE)
    deadline = time.monotonic() + cluster.SHOWN_SECONDS
    while not prepare.intact(training.data) and time.monotonic() < deadline:
        time.sleep(1)
    return networks.train(training, lambda line: None)


def _outcome(task: Any) -> Learnt | InputError:
    """What a task that has ended returned, once this machine sees its run; or why it failed."""
    import ray

    try:
        learnt = ray.get(task)
        cluster.shown(learnt.run.parent, learnt.run.name)
        return learnt
    except (ray.exceptions.RayError, InputError) as error:
        if not isinstance(error, InputError):
            print(error, file=sys.stderr)  # with the worker's stack trace
        why = cluster.reason(error)
        return InputError(why[0].upper() + why[1:])
