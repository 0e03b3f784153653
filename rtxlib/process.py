"""How a process that computes treats its threads and its freed memory. LOG.md has the measurements behind each setting."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from pathlib import Path

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


def available_memory() -> int:
    """Bytes of memory that this process can still take: the least of what the machine has and of what limits leave.

    On Linux it is the least of free memory and swap (/proc/meminfo), RLIMIT_AS (`ulimit -v`) and the limits of the process's
    control groups. Elsewhere it is the machine's memory, or sys.maxsize where that is unknown.
    """
    if sys.platform != "linux":
        names = getattr(os, "sysconf_names", {})
        known = "SC_PHYS_PAGES" in names and "SC_PAGE_SIZE" in names
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if known else sys.maxsize
    import resource  # not on Windows

    meminfo = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    rooms = [sum(int(meminfo[name].split()[0]) * 1024 for name in ("MemAvailable", "SwapFree"))]
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        pages = int(Path("/proc/self/statm").read_text().split()[0])  # of address space that is taken
        rooms.append(soft - pages * resource.getpagesize())
    return max(0, min(rooms + _rooms_of_groups()))


def _rooms_of_groups() -> list[int]:
    """Bytes that each control group of this process leaves: its limit less its use. Its file cache can be freed and is no use."""
    rooms = []
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0":
            mount, limit, use, cache = "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"
        elif "memory" in controllers.split(","):
            mount, limit, use = "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
            cache = "total_inactive_file"
        else:
            continue
        inside = Path(mount, path.strip("/"))
        for group in (inside, *inside.parents):  # a container sees its own group as the mount, and no path below it
            if not group.is_relative_to(mount):
                break
            try:
                most = (group / limit).read_text().strip()
                stat = dict(entry.split() for entry in (group / "memory.stat").read_text().splitlines())
                if most != "max":
                    rooms.append(int(most) - int((group / use).read_text()) + int(stat.get(cache, 0)))
            except (OSError, ValueError):  # a group that may not be read; the root of version 2 has no limit
                continue
    return rooms
