"""How a process that computes treats its threads and its freed memory. LOG.md has the measurements behind each setting."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time

SETTINGS = {
    # Idle OpenMP threads sleep after a short wait instead of spinning. On a busy machine, spinning threads wait for partners
    # that are not scheduled. Threads that sleep at once are slow to wake for the next product, so they spin 3,000 times first.
    "OMP_WAIT_POLICY": "PASSIVE",
    "GOMP_SPINCOUNT": "3000",
    # oneDNN compiles a matrix product for each shape and keeps 1,024 of them by default. Batches without padding have a shape
    # for every length of text, with about twenty products each.
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "4096",
}
_KEPT = 1 << 30  # bytes of freed memory that stay with the process
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h


def environment() -> dict[str, str]:
    """The environment variables of a tuned process: the user's values, and ``SETTINGS`` where the user has none."""
    chosen = SETTINGS | {name: os.environ[name] for name in SETTINGS if name in os.environ}
    if chosen["OMP_WAIT_POLICY"] != SETTINGS["OMP_WAIT_POLICY"] and "GOMP_SPINCOUNT" not in os.environ:
        del chosen["GOMP_SPINCOUNT"]  # it would override the user's policy
    return chosen


def tune() -> None:
    """Set up threads and memory. Call it before torch is loaded: OpenMP reads its variables only once."""
    os.environ.update(environment())
    if sys.platform == "linux" and not any(name.startswith("MALLOC_") for name in os.environ):
        _keep_freed_memory()


def start_worker() -> None:
    """Begin a worker process: tune it, and end it when its parent ends."""
    tune()
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _keep_freed_memory() -> None:
    """Let the process reuse freed tensors. By default glibc returns large ones to the system, page by page."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:  # musl
        return
    mallopt(_M_TRIM_THRESHOLD, _KEPT)
    if not mallopt(_M_MMAP_THRESHOLD, _KEPT):
        mallopt(_M_MMAP_THRESHOLD, 1 << 25)  # the largest value that older versions accept


def release_freed_memory() -> None:
    """Return the freed memory that glibc keeps to the system, as between two trainings in one process."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)
