"""The run store: one folder a run, named by its key, that either counts whole or does not count."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from filelock import AcquireReturnProxy, FileLock, Timeout

from rtxlib.atomic import replacing
from rtxlib.errors import READ_ONLY, InputError, disk_full, nearest

MARK = "complete.json"  # written last; a folder without it is a half-written run
PARTIAL = ".partial"  # how the name of a folder ends in which a run is being made
# what no run's records lack
RECORDS = {"spec.json": ("model", "data", "recipe", "seed"), "metrics.json": ("accuracy", "train_seconds")}
PROGRESS = "progress.txt"  # the last line a training reported, in its partial folder
TABLES = (
    "curves",
    "predictions",
    "evaluations",
    "gradients",
    "parameter_gradients",
    "state_gradients",
    "states",
    "exits",
    "exit_predictions",
)  # what a run's folder may hold beside its spec and metrics


@dataclass(frozen=True)
class Run:
    """A finished run: what it was (``spec``), what it gave (``metrics``), and where it lies.

    ``path`` is None for a run known only from the committed result tables, whose weights are elsewhere.
    """

    key: str
    spec: dict[str, Any]
    metrics: dict[str, Any]
    path: Path | None


def lock(runs: Path, key: str) -> FileLock:
    """The lock that whoever trains or completes this run must hold.

    It is the kernel's (flock): it ends with the process that holds it, however that ends. NFS and the usual file systems
    of clusters keep it between machines. Where flock is unknown, filelock warns and takes a file that is there or is not;
    one that a killed process leaves behind on another machine must then be deleted by hand.
    """
    runs.mkdir(parents=True, exist_ok=True)
    return FileLock(lock_file(runs, key))


def lock_file(runs: Path, key: str) -> Path:
    return runs / f".{key}.lock"


def hold(runs: Path, key: str, patience: float, report: Callable[[str], None]) -> AcquireReturnProxy[FileLock]:
    """Take the lock of this run; what is returned gives it back at the end of a ``with`` block.

    ``patience``: seconds to wait for another process that has it, without end when negative; ``report`` is told of a wait.
    Raises filelock.Timeout when they are over, and InputError where the store cannot be written.
    """
    try:
        ours = lock(runs, key)
        try:
            return ours.acquire(timeout=0)
        except Timeout:
            if patience == 0:
                raise
            report("waiting for another process that trains this run")
            return ours.acquire(timeout=patience)
    except OSError as error:
        if error.errno not in READ_ONLY:  # a Timeout among them
            raise
        raise _unwritable(runs) from error


def _unwritable(folder: Path) -> InputError:
    return InputError(
        f"{folder} cannot be written; ask its owner for the right to, or set RTX_HOME to a folder of your own."
    )


def taken(file: Path) -> bool:
    """Whether some process, on whichever machine, holds the lock of this file now."""
    try:
        with FileLock(file).acquire(timeout=0):
            return False
    except Timeout:
        return True


def load(runs: Path, key: str) -> Run | None:
    """The run of this key, or None when there is none that counts. Raises InputError when its records cannot be read."""
    path = runs / key
    try:
        if not (path / MARK).is_file():
            return None
        return Run(key, *(_record(path / name, needed) for name, needed in RECORDS.items()), path)
    except PermissionError as error:
        raise InputError(f"Run {key} cannot be read; ask its owner for the right to read {path}.") from error
    except (FileNotFoundError, ValueError) as error:
        what = f"it has no {Path(error.filename).name}" if isinstance(error, FileNotFoundError) else error
        raise InputError(f"Run {key} is damaged ({what}): delete {path} and train it again.") from error


def _record(file: Path, needed: Iterable[str]) -> dict[str, Any]:
    """A JSON object from a file. Raises ValueError when it is none, or lacks what is needed."""
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{file.name} is not JSON") from error
    lacking = [name for name in needed if not isinstance(record, dict) or name not in record]
    if lacking:
        raise ValueError(f"{file.name} lacks {', '.join(lacking)}")
    return record


def find(runs: Path, name: str) -> Run:
    """The run a person names: a key, the start of one, or a folder. Raises InputError when there is none, or several."""
    folder = Path(name)
    if (folder / MARK).is_file():
        return load(folder.resolve().parent, folder.resolve().name)  # type: ignore[return-value]
    known = sorted(path.parent.name for path in runs.glob(f"*/{MARK}"))
    matching = [key for key in known if key.startswith(name)] if name else []
    if len(matching) == 1:
        return load(runs, matching[0])  # type: ignore[return-value]
    if matching:
        raise InputError(
            f"'{name}' is the start of {len(matching)} runs ({', '.join(matching[:4])} …); write more of it."
        )
    if folder.is_dir() or partial(runs, name).is_dir():
        raise InputError(f"'{name}' holds no finished run ({MARK} is missing); train it again and it will go on.")
    raise InputError(
        f"There is no run '{name}' in {runs}; `rtx results` lists the {len(known)} there are.{nearest(name, known)}"
    )


def every(runs: Path, report: Callable[[str], None] = warnings.warn) -> list[Run]:
    """All finished runs of the store, oldest first; ``report`` is told of those that cannot be read, which are left out."""
    marks = [mark for mark in runs.glob(f"*/{MARK}") if mark.parent.suffix != PARTIAL]  # killed a moment before it counted
    marks.sort(key=lambda mark: mark.stat().st_mtime)
    found = []
    for mark in marks:
        try:
            found.append(load(runs, mark.parent.name))
        except InputError as error:
            report(f"Left out: {error}")
    return [run for run in found if run]


def partial(runs: Path, key: str) -> Path:
    """The folder in which a run is made until it counts."""
    return runs / f"{key}{PARTIAL}"


@contextlib.contextmanager
def writing(runs: Path, key: str) -> Iterator[Path]:
    """A folder to make the run in; it becomes the run when the block ends well, and stays as it is when it does not.

    The folder survives a kill, so that its checkpoint can be gone on from. Raises InputError when the disk is full, or the
    folder is another user's.
    """
    folder = partial(runs, key)
    with contextlib.suppress(PermissionError):
        folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        raise _unwritable(folder)
    try:
        yield folder
        (folder / MARK).write_text(json.dumps({"key": key}), encoding="utf-8")
    except Exception as error:  # safetensors has an exception of its own for a full disk, and tokenizers a bare one
        if disk_full(error) and not isinstance(error, InputError):
            raise InputError(
                f"The disk is full while saving run {key}; free some space and run the same command again: "
                f"it goes on from {folder}."
            ) from error
        raise
    final = runs / key
    if final.exists():  # a folder without the mark: half of an earlier copy
        shutil.rmtree(final)
    os.replace(folder, final)


def write_json(path: Path, value: Any) -> None:
    """Write JSON atomically."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def write_table(path: Path, table: pd.DataFrame) -> None:
    """Write Parquet atomically."""
    with replacing(path) as temporary:
        table.to_parquet(temporary, index=False)


def read_table(path: Path, **chosen: Any) -> pd.DataFrame:
    """A table of :func:`write_table`; ``chosen``: what of it, as pandas takes it. Raises InputError when it is damaged."""
    try:
        return pd.read_parquet(path, **chosen)
    except ValueError as error:  # pyarrow's ArrowInvalid is one
        raise InputError(
            f"{path} is damaged ({str(error).splitlines()[0]}): delete it, and run again the notebook, or train again the run, "
            "that wrote it."
        ) from error


def runs_table(runs: Iterable[Run]) -> pd.DataFrame:
    """One row a run, its key and its metrics."""
    return pd.DataFrame([{"key": run.key, **run.metrics} for run in runs])


def part(run: Run, name: str, results: Path | None = None) -> pd.DataFrame:
    """A table of one run ("curves", "predictions", …) from its folder, or from the committed results.

    Raises InputError when neither has it.
    """
    if run.path is not None and (run.path / f"{name}.parquet").is_file():
        return read_table(run.path / f"{name}.parquet")
    if results is not None and (results / f"{name}.parquet").is_file():
        rows = read_table(results / f"{name}.parquet", filters=[("key", "==", run.key)])
        if len(rows):
            return rows.reset_index(drop=True)
    raise InputError(f"The {name} of run {run.key} are not here; train it again, or fetch data/results.")


def published(results: Path, key: str) -> Run | None:
    """A run from the committed tables: its record without its weights."""
    file = results / "runs.parquet"
    if not file.is_file():
        return None
    rows = read_table(file, filters=[("key", "==", key)])
    if not len(rows):
        return None
    record = rows.iloc[0].drop("key").to_dict()
    return Run(key, json.loads(record.pop("spec")), record, None)


def publish(study: str, runs: Iterable[Run], results: Path, **tables: pd.DataFrame) -> None:
    """Put what a study found into ``results``: its runs' tables, which runs it has, and any further table of its own.

    ``runs.parquet``, ``curves.parquet``, … hold a run once, however many studies share it; ``studies.parquet`` says which
    study has which run. Rows that the same study, or the same run, left there before are replaced. A run may be given more than
    once, as where two parts of a study share it.
    """
    runs = list({run.key: run for run in runs}.values())
    with lock(results, "publish"):
        if runs:
            records = runs_table(runs).assign(spec=[json.dumps(run.spec, sort_keys=True) for run in runs])
            _replace(results / "runs.parquet", records, "key")
            _replace(
                results / "studies.parquet", pd.DataFrame({"study": study, "key": [run.key for run in runs]}), "study"
            )
        for name in TABLES:
            files = [run.path / f"{name}.parquet" for run in runs if run.path is not None]
            if parts := [read_table(file) for file in files if file.is_file()]:
                _replace(results / f"{name}.parquet", pd.concat(parts, ignore_index=True), "key")
        for name, table in tables.items():
            _replace(results / f"{name}.parquet", table.assign(study=study), "study")


def _replace(file: Path, new: pd.DataFrame, column: str) -> None:
    """Write ``new`` among the rows of ``file``, in place of those with the same value in ``column``."""
    if file.is_file():
        old = read_table(file)
        new = pd.concat([old[~old[column].isin(new[column])], new], ignore_index=True)
    write_table(file, new.sort_values(column, kind="stable", ignore_index=True))
