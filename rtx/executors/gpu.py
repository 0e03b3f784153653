"""How many runs share a GPU: each gets the share of its memory that a run of the same shape was measured to need.

A small encoder keeps a GPU waiting for its host. On an NVIDIA H100 eight trainings of standard-3x256 side by side read 5.4 times
as many rows a second as one alone (LOG.md).
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from rtxlib.runs.store import Run

CONTEXT_MB = 760  # the memory of a process besides its tensors; on an NVIDIA H100 it was 750 to 755 (torch 2.11)
HEADROOM = 1.15
LEAST = 0.125  # of a GPU; eight small encoders at once each still trained at 0.7 of the speed that they have alone

Shape = tuple[Any, ...]


def shape(spec: Mapping[str, Any]) -> Shape:
    """The parts of a canonical spec that decide how much memory its run needs: model, lengths, batch and number format."""
    data, recipe = spec["data"], spec["recipe"]
    batch = recipe["batch_rows"], recipe["batch_tokens"], recipe["precision"], spec.get("processes", 1)
    return spec["model"], json.dumps(spec["overrides"], sort_keys=True), data["source"], data["max_length"], *batch


def share(peak_mb: float, total_mb: float) -> float:
    """The share of a GPU, from 0.125 to 1, for a run whose peak memory was ``peak_mb`` on a GPU of ``total_mb``."""
    needed = HEADROOM * (peak_mb + CONTEXT_MB) / total_mb
    return min(1.0, max(LEAST, math.ceil(100 * needed) / 100))


def measured(runs: Iterable[Run]) -> dict[Shape, float]:
    """The share of a GPU for each shape that was measured: the largest peak of its runs, on the smallest GPU of any run."""
    on_gpus = [run for run in runs if "peak_memory_mb" in run.metrics]
    smallest = min((run.metrics["device_memory_mb"] for run in on_gpus), default=0.0)
    peaks: dict[Shape, float] = {}
    for run in on_gpus:
        shape_of_run = shape(run.spec)
        peaks[shape_of_run] = max(run.metrics["peak_memory_mb"], peaks.get(shape_of_run, 0.0))
    return {shape_of_run: share(peak, smallest) for shape_of_run, peak in peaks.items()}


def may_start(queue: Mapping[str, Shape], busy: Collection[Shape], shares: Mapping[Shape, float]) -> dict[str, float]:
    """The queued runs (key → shape) that may start now, each with its share of a GPU.

    The first run of a shape that was not measured yet gets a whole GPU. The other runs of that shape wait for its measurement.
    busy: the shapes that are being trained; shares: those that were measured.
    """
    chosen, leading = {}, set(busy)
    for key, waiting in queue.items():
        if waiting in shares:
            chosen[key] = shares[waiting]
        elif waiting not in leading:
            leading.add(waiting)
            chosen[key] = 1.0
    return chosen
