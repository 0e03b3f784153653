"""Files and folders that appear whole or not at all: both are written under a temporary name and then renamed.

A temporary name holds a mark of the process that made it. What a killed process left is therefore known, and :func:`sweep`
removes it.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import os
import platform
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rtxlib.errors import InputError

_MARK = re.compile(r"rtx-(?P<host>[0-9a-f]{8})-(?P<pid>\d+)-(?P<birth>[0-9a-f]{8})")
_numbers = itertools.count()


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary name for a file, which takes the name ``path`` when the block ends without an error.

    Missing parent folders are made. An error leaves the old file as it was, and nothing of the new one.
    """
    temporary = _beside(path)
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def replacing_folder(path: Path, new: bool = False) -> Iterator[Path]:
    """An empty temporary folder, which takes the name ``path`` when the block ends without an error.

    Missing parent folders are made. A folder that has the name already is then removed; with ``new`` it stays, and InputError is
    raised, because somebody made it meanwhile. An error leaves the old folder as it was, and nothing of the new one. Two
    folders cannot be exchanged at once, so a kill may come when the old one is set aside and the new one is not yet in its place;
    the next call brings the old one back.
    """
    temporary, old = _beside(path), path.with_name(f".{path.name[:40]}.{_short(path.name)}.old")
    if old.exists() and not path.exists():
        os.replace(old, path)
    temporary.mkdir()
    try:
        yield temporary
        shutil.rmtree(old, ignore_errors=True)
        if path.exists() and new:
            raise InputError(f"{path} was made by another program meanwhile; name a new folder.")
        if path.exists():
            os.replace(path, old)
        try:
            os.replace(temporary, path)
        except OSError:
            if old.exists():
                os.replace(old, path)
            raise
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _beside(path: Path) -> Path:
    """A hidden name in the folder of ``path`` that nothing else uses. Its folder is made if it is missing, and swept once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _sweep_once(path.parent.absolute())
    return path.with_name(f".{path.name[:40]}.{mark()}.{next(_numbers)}.tmp")


def mark() -> str:
    """The mark of this process, a part of a file name: its machine, its process id and when it began."""
    return f"rtx-{_host()}-{os.getpid()}-{_birth(os.getpid())}"


def sweep(*folders: Path) -> None:
    """Remove the files and folders in ``folders`` whose names hold the mark of a process that has ended.

    Only marks of this machine are judged, because processes of other machines may use the same folder. What cannot be read or
    removed stays. :func:`replacing` and :func:`replacing_folder` sweep the folder in which they write, once in a process.
    """
    for folder in folders:
        with suppress(OSError):  # there is no such folder
            for name in os.listdir(folder):
                mark = _MARK.search(name)
                if mark and mark["host"] == _host() and _ended(int(mark["pid"]), mark["birth"]):
                    left = Path(folder, name)
                    if left.is_dir() and not left.is_symlink():
                        shutil.rmtree(left, ignore_errors=True)
                    else:
                        with suppress(OSError):
                            left.unlink()


_sweep_once = functools.cache(sweep)


@functools.cache
def _host() -> str:
    """A short hash of what tells this machine, or this container on it, from others that may share its files."""
    parts = [platform.node()]
    with suppress(OSError):
        parts.append(Path("/etc/machine-id").read_text())
    with suppress(OSError):  # processes of two containers may have the same id
        parts.append(os.readlink("/proc/self/ns/pid"))
    return _short("\n".join(parts))


def _ended(pid: int, birth: str) -> bool:
    """Whether the process has ended. When that cannot be known, it has not."""
    if os.name != "posix":  # os.kill would end the process
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:  # another user's process
        pass
    return birth != _UNKNOWN and _birth(pid) not in (birth, _UNKNOWN)


def _birth(pid: int) -> str:
    """When a process began, as a hash of the boot and the clock ticks since then. Ids are used again, but not with this."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()
        state, *others = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # no Linux, or another user's process
        return _UNKNOWN
    return _ZOMBIE if state in "ZX" else _short(boot + others[18])


_UNKNOWN, _ZOMBIE = "00000000", "ffffffff"  # a zombie has ended, and only its parent has not asked yet


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
