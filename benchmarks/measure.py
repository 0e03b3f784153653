"""One row of the benchmark table, and timing in turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from multiprocessing import get_context
from statistics import median
from typing import Any

import numpy as np
import torch

from benchmarks.memory import forget_peak, peak_mb
from rtxlib.training.device import device_name, pick_device

PAUSE = 0.1  # seconds


@dataclass(frozen=True)
class Row:
    """One comparison of ours with a peer.

    ``ours`` and ``peer`` are medians in ``unit``. ``ratio`` is the median over rounds of each round's ratio, so a machine that
    slows down for a while slows both sides; a higher ratio is better, whatever the unit. ``spread`` holds the lowest and the
    highest ratio, and ``aim`` the ratio to reach. None means not measured.
    """

    name: str
    ours: float | None
    peer: float | None
    unit: str
    ratio: float | None
    aim: float | None
    n: int
    device: str
    versions: str
    settings: str  # what exactly was compared with what
    spread: tuple[float, float] | None = None
    ours_mb: float | None = None  # the most memory that the process held meanwhile
    peer_mb: float | None = None


class Taken(list[float]):
    """The values of one way, one a round. ``mb``: the most memory that its process held in a round; None: not measured."""

    mb: float | None = None

    @classmethod
    def of(cls, values: Sequence[float], mb: float | None) -> Taken:
        taken = cls(values)
        taken.mb = mb
        return taken


def apart(measure: Callable[..., Row], *arguments: Any) -> Row:
    """The row that a function of a module measures, in a process of its own: the memory is then that of this row alone.

    A process that has trained keeps freed memory and compiled products for the next training.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measure, *arguments).result()


def versions(*packages: str) -> str:
    return ", ".join(f"{package} {version(package)}" for package in packages)


def seconds(run: Callable[[], Any]) -> float:
    """Seconds that a call takes; on a GPU the clock stops when the device has finished."""
    device = pick_device()
    started = time.perf_counter()
    run()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - started


def take_turns(ways: Mapping[str, Callable[[], float]], rounds: int, peer: int | None = None) -> dict[str, Taken]:
    """The values that each way returns over ``rounds`` rounds; the order of the ways alternates between rounds.

    Before each there is a pause, because the threads of the way before it go on spinning for a while. ``peer``: the process in
    which the way of that name computes; None: this one, as all others.
    """
    values = {name: Taken() for name in ways}
    for number in range(rounds):
        for name in ways if number % 2 else reversed(ways):
            pid = peer if name == "peer" else None
            time.sleep(PAUSE)
            forgotten = forget_peak(pid)
            values[name].append(ways[name]())
            if forgotten and (mb := peak_mb(pid)) is not None:
                values[name].mb = max(mb, values[name].mb or 0.0)
    return values


def fastest(
    run: Callable[[int], tuple[float, np.ndarray]],
    sizes: Sequence[int],
    expected: np.ndarray,
    tolerance: float,
    what: str,
) -> int:
    """The batch size with the fewest seconds. ``run``: batch size -> seconds and outputs.

    Every size runs once, which warms up, and its outputs must lie within ``tolerance`` of ``expected``.
    """
    taken = {}
    for size in sizes:
        taken[size], result = run(size)
        difference = np.abs(result - expected).max()
        assert difference <= tolerance, f"{what}: the outputs differ by {difference:.1e}"
    return min(taken, key=taken.__getitem__)


def row(
    name: str,
    ours: Sequence[float],
    peer: Sequence[float],
    unit: str,
    aim: float | None,
    packages: Sequence[str],
    settings: str,
    less_is_better: bool = False,
) -> Row:
    """A row from values measured in turns, one of ours and one of the peer per round; :class:`Taken` has memory, too."""
    ratios = [b / a if less_is_better else a / b for a, b in zip(ours, peer, strict=True)]
    return Row(
        name,
        median(ours),
        median(peer),
        unit,
        median(ratios),
        aim,
        len(ratios),
        device_name(pick_device()),
        versions("torch", *packages),
        settings,
        (min(ratios), max(ratios)),
        *(one.mb if isinstance(one, Taken) else None for one in (ours, peer)),
    )


def not_measured(name: str, unit: str, aim: float | None, why: str) -> Row:
    return Row(
        name, None, None, unit, None, aim, 0, device_name(pick_device()), versions("torch"), f"not measured: {why}"
    )


def verdict(ratio: float | None, aim: float | None) -> str:
    """Whether the ratio has "met" or "missed" the aim; an empty string where there is no ratio or no aim."""
    return "" if ratio is None or aim is None else "met" if ratio >= aim else "missed"
