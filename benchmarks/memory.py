"""How much memory processes held at most: their resident sets, in 10⁶ bytes. What processes share counts for each of them.

A process measures itself by Linux's /proc, and not elsewhere.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil

EVERY = 0.1  # seconds between two looks at the processes of a command; more often would slow it


def forget_peak(pid: int | None = None) -> bool:
    """Restart the peak of a process, by default this one, from what it holds now; False where that is not possible.

    Linux: Documentation/filesystems/proc.rst.
    """
    try:
        Path(f"/proc/{pid or os.getpid()}/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def peak_mb(pid: int | None = None) -> float | None:
    """The peak since the start of the process, or since :func:`forget_peak`; None where the system does not say."""
    try:
        lines = Path(f"/proc/{pid or os.getpid()}/status").read_text().splitlines()
    except OSError:
        return None
    kilobytes = next((line.split()[1] for line in lines if line.startswith("VmHWM:")), None)
    return None if kilobytes is None else int(kilobytes) * 1024 / 1e6


@contextlib.contextmanager
def of_commands(peaks: list[float]) -> Iterator[None]:
    """Append what the processes that this one has started hold together at most, while the block runs."""
    ended, most = threading.Event(), [0.0]

    def look() -> None:
        while not ended.wait(EVERY):
            held = 0
            for process in psutil.Process().children(recursive=True):
                with contextlib.suppress(psutil.Error):  # it has ended meanwhile
                    held += process.memory_info().rss
            most[0] = max(most[0], held / 1e6)

    watching = threading.Thread(target=look, daemon=True)
    watching.start()
    try:
        yield
    finally:
        ended.set()
        watching.join()
        peaks.append(most[0])
