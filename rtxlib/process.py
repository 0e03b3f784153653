"""Settings of a process that computes, to be made before torch is loaded. Each was measured (LOG.md)."""

from __future__ import annotations

import ctypes
import os
import sys

SETTINGS = {
    # Idle OpenMP threads soon sleep instead of spinning. On busy cores, spinning threads wait for partners that are not
    # scheduled, which makes processes that share the cores many times slower. Threads that sleep at once make a single text
    # slower; 3,000 turns, a few microseconds, are a compromise.
    "OMP_WAIT_POLICY": "PASSIVE",
    "GOMP_SPINCOUNT": "3000",
    # oneDNN compiles a matrix product for each shape and keeps 1,024 of them by default. Batches without padding have a shape
    # for every text length, with about twenty products each, so more have to be kept.
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "4096",
}
_KEPT = 1 << 30  # bytes of freed memory that the process keeps
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h


def tune() -> None:
    """Apply the settings, except for those that the user's environment decides."""
    os.environ.setdefault("OMP_WAIT_POLICY", SETTINGS["OMP_WAIT_POLICY"])
    own_policy = os.environ["OMP_WAIT_POLICY"] != SETTINGS["OMP_WAIT_POLICY"]
    for name, value in SETTINGS.items():
        if not (own_policy and name == "GOMP_SPINCOUNT"):  # the count would override the user's policy
            os.environ.setdefault(name, value)
    if sys.platform == "linux" and not any(name.startswith("MALLOC_") for name in os.environ):
        _keep_freed_memory()


def _keep_freed_memory() -> None:
    """Let glibc keep freed memory. By default it returns every large tensor to the system, and the next batch gets the memory
    back page by page, which takes time.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # musl has no mallopt
        mallopt(_M_TRIM_THRESHOLD, _KEPT)
        if not mallopt(_M_MMAP_THRESHOLD, _KEPT):
            mallopt(_M_MMAP_THRESHOLD, 1 << 25)  # the most that an older glibc accepts


def release_freed_memory() -> None:
    """Return the memory that glibc keeps to the system. Called between two trainings in one process."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)
