"""How much memory this process can still take. Data that cannot fit are refused before they are read."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

from rtxlib.errors import InputError

# Bytes of memory, measured and rounded down, so that nothing is refused that would fit.
READING = 6.0  # for each byte of a CSV, TSV, JSONL or text file
VALUE = 75  # for each value of a Parquet file
WORD, CHARACTER = 250, 6  # of the distinct texts, while they are searched for leaks
GENERATED = 1000  # for each generated row


def require_memory(needed: float, what: str, instead: str) -> None:
    """Raise InputError, with the estimate and the limit, if this process cannot have so much memory.

    Args:
        needed: bytes
        what: what needs them, as the subject of a sentence
        instead: what to do
    """
    if needed > (free := available_memory()):
        raise InputError(
            f"{what} takes about {_size(needed)} of memory, and {short_of_memory()} has {_size(free)} free; {instead}."
        )


def _size(count: float) -> str:
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.1f} MB"


def release_freed_memory() -> None:
    """Return the freed memory that glibc keeps to the system, as between two trainings in one process."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def available_memory() -> int:
    """Bytes of memory that this process can still take: the least of what the machine has and of what limits leave.

    On Linux it is the least of free memory and swap (/proc/meminfo), RLIMIT_AS (`ulimit -v`) and the limits of the process's
    control groups. Elsewhere it is the machine's memory, or sys.maxsize where that is unknown. :func:`short_of_memory` names
    what leaves the least.
    """
    return max(0, min(_rooms())[0])


def short_of_memory() -> str:
    """What leaves this process the least memory, as the subject of a sentence: the machine, its container or its shell."""
    return min(_rooms())[1]


def _rooms() -> list[tuple[int, str]]:
    """Bytes of memory that the machine and each limit leave, and what leaves them."""
    if sys.platform != "linux":
        names = getattr(os, "sysconf_names", {})
        known = "SC_PHYS_PAGES" in names and "SC_PAGE_SIZE" in names
        return [(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if known else sys.maxsize, "this machine")]
    import resource  # not on Windows

    meminfo = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    rooms = [(sum(int(meminfo[name].split()[0]) * 1024 for name in ("MemAvailable", "SwapFree")), "this machine")]
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        pages = int(Path("/proc/self/statm").read_text().split()[0])  # of address space that is taken
        rooms.append((soft - pages * resource.getpagesize(), "this shell (`ulimit -v`)"))
    return rooms + [(room, "this container") for room in _rooms_of_groups()]


def _rooms_of_groups() -> list[int]:
    """Bytes that each control group of this process leaves: its limit less its use. File cache is not counted."""
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
