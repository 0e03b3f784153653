"""Finished runs as the command and the study use them: found by name, listed, their tables read and added, leftovers removed.

:mod:`rtxlib.runs.store` writes and opens them.
"""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from filelock import FileLock, Timeout

from rtxlib import atomic, checksums
from rtxlib.atomic import replacing
from rtxlib.checksums import MARK
from rtxlib.errors import READ_ONLY, InputError, nearest
from rtxlib.runs import store
from rtxlib.runs.store import Run

WRITTEN_TO = ("data/*", "data/runs/*", "data/results/*", "figures/*", "reports/*", "reports/*/notebooks")  # under RTX_HOME


def find(runs: Path, name: str) -> Run:
    """The run of a key, of the start of a key, or of a folder. Raises InputError when no run or several runs match."""
    folder = Path(name)
    if (folder / MARK).exists():
        return store.load(folder.resolve().parent, folder.resolve().name)  # type: ignore[return-value]
    known = sorted(mark.parent.name for mark in _marks(runs))
    matching = [key for key in known if key.startswith(name)] if name else []
    if len(matching) == 1:
        return store.load(runs, matching[0])  # type: ignore[return-value]
    if matching:
        raise InputError(
            f"'{name}' is the start of {len(matching)} runs ({', '.join(matching[:4])}{' …' * (len(matching) > 4)}); "
            "write more of it."
        )
    if store.partial(runs, name).is_dir() or (folder.suffix == store.PARTIAL and folder.is_dir()):
        raise InputError(f"'{name}' is no finished run ({MARK} is missing); train it again and it will go on.")
    if folder.is_dir():
        raise InputError(f"{name} is a folder without {MARK}, so it is no run; `rtx results` lists the runs there are.")
    if folder.is_file():
        whose = f", here {folder.parent}" if (folder.parent / MARK).exists() else ""
        raise InputError(f"{name} is a file, and a run is named by its key or its folder{whose}.")
    raise InputError(
        f"There is no run '{name}' in {runs}; `rtx results` lists those there are ({len(known)}).{nearest(name, known)}"
    )


def every(runs: Path, report: Callable[[str], None] = warnings.warn) -> list[Run]:
    """All finished runs of the store, oldest first. Runs that cannot be read are left out and reported."""
    runs_here = []
    for mark in sorted(_marks(runs), key=lambda mark: mark.stat().st_mtime):
        try:
            runs_here.append(store.load(runs, mark.parent.name))
        except InputError as error:
            report(f"Left out: {error}")
    return [run for run in runs_here if run]


def _marks(runs: Path) -> list[Path]:
    """The marks of the runs of the store.

    A hidden folder is no run. A partial folder has a mark if its process was killed before it renamed the folder.
    """
    marks = runs.glob(f"*/{MARK}")
    return [mark for mark in marks if mark.parent.suffix != store.PARTIAL and not mark.parent.name.startswith(".")]


def lost(run: Run) -> str | None:
    """Which file of a run is missing, in a sentence; None if none is. The files that are there are not read."""
    try:
        store.verify(run, lambda name: name != store.CARD and not (run.path / name).is_file())
    except InputError as error:
        return str(error)
    return None


@functools.lru_cache(maxsize=8)
def _by_key(file: Path, written: int) -> dict[str, pd.DataFrame]:
    """Key → its rows of a published table. It is read and split once: a study asks it for hundreds of runs.

    written: when the file was written, in nanoseconds, so that a new one is read again.
    """
    return {str(key): rows for key, rows in store.read_table(file).groupby("key", sort=False)}


def part(run: Run, name: str, results: Path | None = None) -> pd.DataFrame:
    """A table of one run ("curves", "predictions", …), from its folder or from the committed results.

    Raises InputError when neither holds the table, or when it is not as it was written.
    """
    if run.path is not None and (run.path / f"{name}.parquet").is_file():
        store.verify(run, f"{name}.parquet".__eq__)
        return store.read_table(run.path / f"{name}.parquet")
    file = results / f"{name}.parquet" if results is not None else None
    if file is not None and file.is_file():
        rows = _by_key(file, file.stat().st_mtime_ns)
        if run.key in rows:
            return rows[run.key].reset_index(drop=True)
    raise InputError(f"The {name} of run {run.key} are not here; train it again, or fetch data/results.")


def answers(run: Run) -> np.ndarray:
    """The probabilities (test rows, labels) that a run gave its test texts when it was trained. Raises as :func:`part` does."""
    return part(run, "predictions")[[f"p_{name}" for name in run.spec["label_names"]]].to_numpy()


@contextlib.contextmanager
def changing(run: Run) -> Iterator[None]:
    """Hold the lock of a finished run while its files are changed by :func:`put`. Raises InputError when they cannot be."""
    try:
        with store.lock(run.path.parent, run.key):
            yield
    except OSError as error:
        if error.errno not in READ_ONLY:
            raise
        raise store.unwritable(run.path) from error


def put(run: Run, name: str, write: Callable[[Path], object]) -> None:
    """Add a file to a finished run, or replace it, with its checksum. The caller holds the run's lock (:func:`changing`).

    write: writes the file under the name that it is given. The mark accepts the old and the new file while the file is replaced,
    so the run is undamaged whenever the process is killed. A file that was added may be deleted again. A run that an earlier
    version stored stays without checksums.
    """
    with replacing(run.path / name) as temporary:
        write(temporary)
        sums, new = checksums.recorded(run.path), checksums.sha256(temporary)
        if sums is not None:
            old = sums.get(name, [None])  # None: there may be no such file
            store.write_json(run.path / MARK, {"key": run.key, "files": sums | {name: [*old, new]}})
    if sums is not None:
        store.write_json(run.path / MARK, {"key": run.key, "files": sums | {name: [None, new] if None in old else [new]}})


def taken(file: Path) -> bool:
    """Whether a process on any machine holds the lock of this file now."""
    try:
        with FileLock(file).acquire(timeout=0):
            return False
    except Timeout:
        return True


def sweep(root: Path) -> None:
    """Remove the temporary files that killed processes left under ``root``, which is RTX_HOME.

    The partial folder of a run stays, because the next training resumes from its checkpoint.
    """
    for folders in WRITTEN_TO:
        atomic.sweep(*root.glob(folders))
    for file in root.glob(f"data/runs/*/{store.SAFETENSORS}"):
        key = file.parent.name.removesuffix(store.PARTIAL)
        with contextlib.suppress(OSError), store.lock(root / "data" / "runs", key).acquire(timeout=0):  # nobody trains it
            file.unlink()
