"""Which files may be opened, and whether they are as they were written: regular files only, compared with their SHA-256.

A folder of prepared data or of an exported model has the list SHA256SUMS, which ``sha256sum -c`` reads too. A run has the field
``files`` in complete.json. Both are written last. A folder with neither, such as one of the Hub, has no checksums.
"""

from __future__ import annotations

import hashlib
import json
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path

from rtxlib.errors import InputError

SUMS = "SHA256SUMS"  # of prepared data and of exported models
MARK = "complete.json"  # of a run
# The files that decide what a model computes and which texts count as unseen; none of them may be added unnoticed.
_OPENED = (
    "config.json", "*/config.json", "modules.json", "sentence_bert_config.json", "*.safetensors",
    "model*.index.json", "*token*.json", "vocab.txt", "spec.json", "metrics.json", "seen_texts.parquet",
    "*model.onnx", "*export.json", "*part.json", "*.npz", "classifier.json", "*/classifier.json", "terms.json", "*/terms.json",
)  # fmt: skip
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_hashed: dict[Path, tuple[tuple[int, ...], str]] = {}  # file -> its size, time of change and inode when it was hashed; SHA-256

Accepted = dict[str, list[str | None]]  # file -> the checksums it may have; None: it may be missing


def regular(path: Path) -> Path:
    """The path of a regular file. Reading from anything else may wait for ever.

    Raises FileNotFoundError when there is nothing, and InputError for a FIFO, a socket, a device or a folder.
    """
    kind = stat.S_IFMT(path.stat().st_mode)
    if kind != stat.S_IFREG:
        raise InputError(f"{path} is {_KINDS.get(kind, 'of an unknown kind')}; a file must be in its place.")
    return path


def check_kinds(folder: Path) -> None:
    """Raise InputError when a folder holds a FIFO, a socket or a device, because libraries would wait for it for ever."""
    for path in sorted(folder.iterdir()):
        if path.exists() and not path.is_dir():
            regular(path)


def sha256(path: Path) -> str:
    """The SHA-256 of a regular file. A process hashes a file once.

    It hashes the file again when its size, its time of change or its inode differs. So it misses later damage that changes none
    of the three, as of a bad disk. Raises OSError and InputError as :func:`regular`.
    """
    now = regular(path).stat()
    state = now.st_size, now.st_mtime_ns, now.st_ino
    if path.absolute() not in _hashed or _hashed[path.absolute()][0] != state:
        _hashed[path.absolute()] = state, _digest(path)
    return _hashed[path.absolute()][1]


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def names(folder: Path) -> list[str]:
    """The files of a folder and of its subfolders, without hidden files and without the records of checksums."""
    files = (path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file())
    visible_names = (path.as_posix() for path in files if not any(part.startswith(".") for part in path.parts))
    return [name for name in visible_names if name not in (SUMS, MARK)]


def write(folder: Path) -> None:
    """Write SHA256SUMS, the checksums of all other files of a folder."""
    (folder / SUMS).write_text("".join(f"{sha256(folder / name)}  {name}\n" for name in names(folder)), encoding="utf-8")


def opened(name: str) -> bool:
    """Whether a file of a model's folder is read when the model is opened, so that it decides what the model computes."""
    return any(fnmatchcase(name, pattern) for pattern in _OPENED)


@contextmanager
def unchanged(folder: Path) -> Iterator[None]:
    """Raise InputError if a file that is read when a model is opened was replaced in the block, in which the model is opened.

    Otherwise the checksum of one file would be compared, and another file be read.
    """
    before = _states(folder)
    try:
        yield
    except InputError as error:
        if _states(folder) != before:
            raise _changed(folder) from error
        raise
    if _states(folder) != before:
        raise _changed(folder)


def _states(folder: Path) -> dict[str, tuple[int, ...]]:
    """The size, time of change and inode of each file that is read when a model is opened."""
    states = {}
    for name in filter(opened, names(folder)):
        with suppress(FileNotFoundError):  # it is being replaced
            status = (folder / name).stat()
            states[name] = (status.st_size, status.st_mtime_ns, status.st_ino)
    return states


def _changed(folder: Path) -> InputError:
    return InputError(f"{folder} was changed while it was opened; give the same command again.")


def recorded(folder: Path) -> Accepted | None:
    """The checksums that the files of a folder may have; None when it has no record of them.

    While a file of a run is replaced, its old and its new checksum are both accepted. Raises ValueError when the record is
    damaged.
    """
    if (folder / MARK).exists():
        content = regular(folder / MARK).read_bytes()
        try:
            mark = json.loads(content)
            if not mark.keys() <= {"key", "files"}:
                raise ValueError
            if "files" not in mark:  # stored by an earlier version
                return None
            return {name: list(accepted) for name, accepted in mark["files"].items()}
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise ValueError(f"{MARK} is not as it was written") from None
    if not (folder / SUMS).exists():
        return None
    lines = regular(folder / SUMS).read_text(encoding="utf-8", errors="replace").splitlines()
    parts = [re.fullmatch(r"([0-9a-f]{64}) [ *](?:\./)?(.+)", line) for line in lines]
    if not all(parts):
        raise ValueError(f"{SUMS} is not a list of checksums")
    return {part[2]: [part[1]] for part in parts}


def damage(folder: Path, chosen: Callable[[str], bool] = lambda name: True) -> str | None:
    """Which file of a folder is not as it was written, in a few words. None: all are, or the folder has no checksums.

    chosen: whether to look at the file of this name. Raises OSError when a file may not be read.
    """
    while True:
        try:
            sums = recorded(folder)
            difference = None if sums is None else _damage(folder, sums, chosen)
            if difference is None or recorded(folder) == sums:  # else a process was replacing a file: look again
                return difference
        except ValueError as error:
            return str(error)


def _damage(folder: Path, sums: Accepted, chosen: Callable[[str], bool]) -> str | None:
    for name in filter(chosen, sums):
        try:
            actual = sha256(folder / name)
        except FileNotFoundError:
            actual = None
        if actual not in sums[name]:
            return f"it has no {name}" if actual is None else f"{name} is not as it was written: its SHA-256 differs"
    added = (name for name in names(folder) if name not in sums and opened(name) and chosen(name))
    return next((f"{name} was added to it" for name in added), None)
