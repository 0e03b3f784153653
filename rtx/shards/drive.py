"""A whole job: the shards that are not finished are given to workers until all of them are."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rtx.executors import ray as executors
from rtx.shards import folder, local
from rtx.shards.job import Job, holding
from rtx.shards.piece import require_columns
from rtx.shards.worker import Outcome
from rtxlib.errors import InputError, counted, few

ROUNDS = 3  # after so many lost workers in a row a shard has failed; after so many such shards in a row the command stops


def work(
    job: Job,
    executor: str | None = None,
    workers: int | None = None,
    report: Callable[[Outcome, int, int], object] = lambda *_: None,
) -> dict[str, Any]:
    """Write every shard of a job that is not finished.

    Args:
        job: what is done
        executor: "local" (processes of this machine) or "ray" (a cluster); None: ``RTX_EXECUTOR``, else "local"
        workers: how many; None: as many as there are cores, or on a cluster with GPUs as many as these
        report: is called with (outcome, shards that have ended, all shards) when a shard has ended

    Returns ``out``, the numbers of ``shards``, of those that were finished before (``kept``) and of the ``rows`` that were
    written now, and ``seconds``.

    Raises InputError when nothing can be done, and at the end when shards failed; the others are then written.
    """
    executor, source, started = executors.known(executor), Path(job.folder), time.monotonic()
    names = folder.shards(source)
    _require_columns(job, source / names[0])
    with holding(job):
        left = {name: None for name in names if not folder.finished(source / name, Path(job.out, name))}
        finished, rows, failed, stalled = len(names) - len(left), 0, [], 0
        lost: list[str] = []  # shards in a row that lost their workers
        while left and len(lost) < ROUNDS:
            before = len(left)
            given = list(left)[:1] if stalled else list(left)  # alone, so that a shard that kills its worker is known
            with contextlib.closing(_outcomes(executor)(job, given, workers)) as outcomes:
                for outcome in outcomes:
                    if outcome.fatal:
                        raise InputError(outcome.error)
                    left.pop(outcome.name, None)
                    rows += outcome.rows
                    failed += [outcome.error] if outcome.error else []
                    report(outcome, len(names) - len(left), len(names))
            if len(left) < before:
                stalled, lost = 0, []
            elif (stalled := stalled + 1) == ROUNDS:
                left.pop(given[0])
                failed.append(f"{given[0]}: its worker was lost {ROUNDS} times, most likely because memory ran out.")
                stalled, lost = 0, [*lost, given[0]]
        if left:
            raise InputError(
                f"The workers of {ROUNDS} shards in turn were lost, most likely because memory ran out; {few([*lost, *left], 4)} "
                "are not written. Finished shards are kept. Use fewer --workers, and the same command goes on from there."
            )
        for temporary in Path(job.out).glob(".*.tmp"):  # of a worker on another machine that was lost
            temporary.unlink(missing_ok=True)
    if failed:
        others = ", and the others are written" if len(failed) < len(names) else ""
        raise InputError(
            f"{len(failed)} of {counted(len(names), 'shard')} failed{others}. {' '.join(failed[:3])}"
        )
    return {"out": job.out, "shards": len(names), "kept": finished, "rows": rows, "seconds": round(time.monotonic() - started, 1)}


def _outcomes(executor: str) -> Callable[..., Any]:
    if executor == "local":
        return local.outcomes
    from rtx.shards import on_ray

    return on_ray.outcomes


def _require_columns(job: Job, first: Path) -> None:
    """Raise InputError when the first shard lacks a column. A first shard that is damaged is reported by its worker."""
    columns: list[str] = []
    with contextlib.suppress(InputError), contextlib.closing(folder.opened(first)) as shard:
        columns = shard.columns
    require_columns(columns, job.columns, first.name)
