"""The run store: one folder per run, named by its key, a hash of what defines the run. A folder counts as a run only when it is
complete.

complete.json is written last. It has the SHA-256 of every file, so that damage is noticed (:mod:`rtxlib.checksums`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import itertools
import json
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from filelock import AcquireReturnProxy, FileLock, Timeout

from rtxlib import checksums
from rtxlib.atomic import replacing
from rtxlib.checksums import MARK
from rtxlib.data.datasets import from_record
from rtxlib.errors import READ_ONLY, InputError, disk_full, fact

_KEY = re.compile("[0-9a-f]{16}")  # of a run
PARTIAL = ".partial"  # the end of the name of a folder in which a run is being trained
# the entries that every run's records have
RECORDS = {"spec.json": ("model", "data", "recipe", "seed", "label_names"), "metrics.json": ("accuracy", "train_seconds")}
CARD = "README.md"  # for people, who may edit it
CLASSIFIER = "classifier.json"  # in the folder of a model of `rtx compare` that is no network
PROGRESS = "progress.txt"  # the last line that a training reported, in its partial folder
SAFETENSORS = ".tmp??????"  # the name under which safetensors writes a file before it renames it

# Raise this when a change of the code changes the result of a spec. Runs and pretrainings of earlier generations then no longer
# count.
GENERATION = 1


def changed(settings: Any) -> dict[str, Any]:
    """The fields of a dataclass that differ from their defaults; dataclasses inside it likewise.

    A key is made of these, so that a new setting with a default does not change the keys of what was trained before. A field
    whose metadata say "in_key" is always among them.
    """
    values = {field: getattr(settings, field.name) for field in dataclasses.fields(settings)}
    return {field.name: _values(value) for field, value in values.items() if value != field.default or "in_key" in field.metadata}


def _values(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_values(part) for part in value]
    return changed(value) if dataclasses.is_dataclass(value) else value


def hashed(record: Mapping[str, Any]) -> str:
    """Sixteen hex digits: the hash of a record's JSON."""
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Run:
    """A finished run: its canonical ``spec``, its ``metrics`` and its folder.

    ``path`` is None for a run whose record is in the committed result tables and whose weights are not here.
    """

    key: str
    spec: dict[str, Any]
    metrics: dict[str, Any]
    path: Path | None

    @property
    def pairs(self) -> bool:
        """Whether it was trained on pairs of texts."""
        return from_record(self.spec["data"]).pairs


def lock(runs: Path, key: str) -> FileLock:
    """The lock that a process must hold while it trains this run or adds tables to it.

    It is a lock of the kernel (flock). It ends with the process that holds it, even if that process is killed. The lock also
    works across machines on NFS. Without flock, the existence of the file is the lock. If a process on another machine is
    killed then, its file must be deleted by hand.

    The file stays when its run is finished. Another process may have opened it and be waiting for it, and on NFS it could then
    take the lock of a file that is gone while a third process takes the lock of a new one.
    """
    runs.mkdir(parents=True, exist_ok=True)
    return FileLock(lock_file(runs, key))


def lock_file(runs: Path, key: str) -> Path:
    return runs / f".{key}.lock"


def hold(runs: Path, key: str, patience: float, report: Callable[[str], None]) -> AcquireReturnProxy[FileLock]:
    """Take the lock of this run. The result is a context manager that releases it.

    patience: seconds to wait for another process that holds the lock; negative: without end. report: is called if it has to
    wait. Raises filelock.Timeout when the seconds are over, and InputError when the store cannot be written.
    """
    try:
        ours = lock(runs, key)
        try:
            return ours.acquire(timeout=0)
        except Timeout:
            if patience == 0:
                raise
            report("waiting for another process that trains the same")
            return ours.acquire(timeout=patience)
    except OSError as error:
        if error.errno not in READ_ONLY:  # Timeout is an OSError too; other errors pass through
            raise
        raise unwritable(runs) from error


def unwritable(folder: Path) -> InputError:
    return InputError(
        f"{folder} cannot be written; ask its owner for write permission, or set RTX_HOME to a folder of your own."
    )


def load(runs: Path, key: str) -> Run | None:
    """The run of this key, or None when there is no complete one.

    Raises InputError when its records cannot be read or are not as they were written, or when its folder holds the run of
    another key. The other files are not looked at.
    """
    path = runs / key
    try:
        if not (path / MARK).exists():
            return None
        if what := checksums.damage(path, RECORDS.__contains__):
            raise ValueError(what)
        # Somebody may give a copy a name of their own, but not the key of another run.
        marked = json.loads(checksums.regular(path / MARK).read_bytes()).get("key", key)
        if _KEY.fullmatch(key) and marked != key:
            raise ValueError(f"it holds the run {marked}")
        spec, metrics = (_record(path / name, needed) for name, needed in RECORDS.items())
        labels = spec["label_names"]
        if not isinstance(labels, list) or len(labels) < 2 or not all(isinstance(label, str) for label in labels):
            raise ValueError("label_names of spec.json is no list of at least two names")
        return Run(key, spec, metrics, path)
    except PermissionError as error:
        raise InputError(f"Run {key} cannot be read; ask its owner for permission to read {path}.") from error
    except (FileNotFoundError, ValueError) as error:
        what = f"it has no {Path(error.filename).name}" if isinstance(error, FileNotFoundError) else error
        raise damaged(key, path, what) from error


def damaged(key: str, path: Path, what: object) -> InputError:
    """The error for a damaged run. what: what is wrong, in a few words."""
    return InputError(f"Run {key} is damaged ({fact(what)}): {made_again(path)}")


def made_again(path: Path) -> str:
    """What to do about a run whose files cannot be used."""
    return f"delete {path} and repeat the command that made it."


def verify(run: Run, chosen: Callable[[str], bool]) -> None:
    """Raise InputError when a file of a run is not as it was written. chosen: whether to look at the file of this name."""
    if what := checksums.damage(run.path, lambda name: chosen(name) and not measured_later(name)):
        raise damaged(run.key, run.path, what)
    if what := checksums.damage(run.path, lambda name: chosen(name) and measured_later(name)):
        raise InputError(f"A table of run {run.key} is damaged ({fact(what)}): delete it, then repeat what wrote it.")


def measured_later(name: str) -> bool:
    """Whether a file is a table that was measured after the training, so that it can be measured again."""
    return name.endswith(".parquet") and name not in ("curves.parquet", "predictions.parquet", "seen_texts.parquet")


def _record(file: Path, needed: Iterable[str]) -> dict[str, Any]:
    """A JSON object from a file. Raises ValueError when the file holds no JSON object or an entry of ``needed`` is missing."""
    content = checksums.regular(file).read_bytes()
    try:
        record = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file.name} is not JSON") from error
    lacking = [name for name in needed if not isinstance(record, dict) or name not in record]
    if lacking:
        raise ValueError(f"{file.name} lacks {', '.join(lacking)}")
    return record


def partial(runs: Path, key: str) -> Path:
    """The folder in which a run is trained."""
    return runs / f"{key}{PARTIAL}"


@contextlib.contextmanager
def writing(runs: Path, key: str, report: Callable[[str], None] = warnings.warn) -> Iterator[Path]:
    """The folder in which a run is trained. It becomes the run when the block ends without an error.

    After an error or a kill the folder stays, so that the next training resumes from its checkpoint. A folder that has the
    run's name and no mark, such as an incomplete copy, is renamed and reported. Raises InputError when the disk is full, the
    folder belongs to another user, or it holds something that is not a file.
    """
    folder, final = partial(runs, key), runs / key
    with contextlib.suppress(PermissionError):
        folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        raise unwritable(folder)
    for half_written in (*folder.glob(SAFETENSORS), *folder.glob(".*.tmp")):  # left by a killed process, on any machine
        half_written.unlink(missing_ok=True)
    for path in filter(Path.exists, folder.iterdir()):
        checksums.regular(path)  # writing into a FIFO would wait for ever
    if os.path.lexists(final):
        names = (runs / f"{key}.incomplete-{number}" for number in itertools.count(1))
        aside = next(name for name in names if not os.path.lexists(name))
        os.replace(final, aside)
        report(f"{final} has no {MARK}, so it is not a finished run; it is now {aside}, and the run is trained")
    try:
        yield folder
        sums = {name: [checksums.sha256(folder / name)] for name in checksums.names(folder)}
        write_json(folder / MARK, {"key": key, "files": sums})
    except Exception as error:  # on a full disk, safetensors and tokenizers do not raise OSError
        if disk_full(error) and not isinstance(error, InputError):
            raise InputError(
                f"The disk is full while saving run {key}; free some space and run the same command again: "
                f"it goes on from {folder}."
            ) from error
        raise
    os.replace(folder, final)


def write_json(path: Path, value: Any) -> None:
    """Write JSON, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def write_table(path: Path, table: pd.DataFrame) -> None:
    """Write Parquet, whole or not at all."""
    with replacing(path) as temporary:
        table.to_parquet(temporary, index=False)


def read_table(path: Path, **chosen: Any) -> pd.DataFrame:
    """Read a table of :func:`write_table`. chosen: arguments of ``pandas.read_parquet``.

    Raises InputError when the table is damaged.
    """
    try:
        return pd.read_parquet(path, **chosen)
    except ValueError as error:  # such as pyarrow's ArrowInvalid
        raise InputError(
            f"{path} is damaged ({str(error).splitlines()[0]}): delete it, then repeat the notebook or the training that "
            "wrote it."
        ) from error


def runs_table(runs: Iterable[Run]) -> pd.DataFrame:
    """One row per run: its key and its metrics."""
    return pd.DataFrame([{"key": run.key, **run.metrics} for run in runs])
