"""What a process that computes is told before torch is loaded: each of these was measured (LOG.md)."""

from __future__ import annotations

import ctypes
import os
import sys

SETTINGS = {
    # Idle OpenMP threads soon sleep instead of spinning. On a machine whose cores are busy, spinning threads wait for partners
    # that are not scheduled: two processes on two cores each took 30 to 80 times as long for a text as without. Sleeping at
    # once would cost a text alone up to half of its speed; 3,000 turns, some microseconds, are a good part of both.
    "OMP_WAIT_POLICY": "PASSIVE",
    "GOMP_SPINCOUNT": "3000",
    # A CPU's matrix products are compiled for each shape and kept, 1,024 of them by default. Batches without padding have a
    # shape for every length of text, about twenty products each; kept whole, training was 5 % faster.
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "4096",
}
_KEPT = 1 << 30  # bytes of freed memory that stay with the process
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h


def tune() -> None:
    """Set what the user's environment leaves open."""
    os.environ.setdefault("OMP_WAIT_POLICY", SETTINGS["OMP_WAIT_POLICY"])
    own_policy = os.environ["OMP_WAIT_POLICY"] != SETTINGS["OMP_WAIT_POLICY"]
    for name, value in SETTINGS.items():
        if not (own_policy and name == "GOMP_SPINCOUNT"):  # the count would overrule the policy
            os.environ.setdefault(name, value)
    if sys.platform == "linux" and not any(name.startswith("MALLOC_") for name in os.environ):
        _keep_freed_memory()


def _keep_freed_memory() -> None:
    """glibc returns every larger tensor to the system, and the next batch gets it back page by page: training takes 8 % more
    time, predicting 6 to 17 %."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # musl has none
        mallopt(_M_TRIM_THRESHOLD, _KEPT)
        mallopt(_M_MMAP_THRESHOLD, _KEPT) or mallopt(_M_MMAP_THRESHOLD, 1 << 25)  # the most that older ones accept


def release_freed_memory() -> None:
    """Give the system what glibc keeps: between two trainings in one process 0.8 GB stay instead of 2.5 (LOG.md)."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)
