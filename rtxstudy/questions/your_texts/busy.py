"""Whether other programs compute on this machine, so that times measured here are too long."""

from __future__ import annotations

import os
import threading
from pathlib import Path

WAITED = 0.08  # of its time a process may wait for a core and still count as undisturbed


class Waiting:
    """How long this thread waits for a core, from its making on.

    Linux counts it for each thread (Documentation/scheduler/sched-stats.rst). Elsewhere the load of the machine is looked at.
    """

    def __init__(self) -> None:
        self.file = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat")
        self.begun = self._nanoseconds()

    def _nanoseconds(self) -> tuple[int, int] | None:
        """Nanoseconds on a core and waiting for one; None where the system does not tell."""
        try:
            on_core, waiting, _ = map(int, self.file.read_text().split())
        except (OSError, ValueError):
            return None
        return on_core, waiting

    def share(self) -> float:
        """Of the time in which this thread had something to compute, the share in which it waited for a core."""
        now = self._nanoseconds()
        if now is None or self.begun is None:
            return _load()
        on_core, waiting = (b - a for a, b in zip(self.begun, now, strict=True))
        return waiting / max(1, on_core + waiting)

    def quiet(self) -> bool:
        return self.share() <= WAITED


def _load() -> float:
    """The share of the last minute in which programs waited for a core, from the load of the machine."""
    if not hasattr(os, "getloadavg"):
        return 0.0
    return max(0.0, 1 - (os.cpu_count() or 1) / max(1e-9, os.getloadavg()[0]))
