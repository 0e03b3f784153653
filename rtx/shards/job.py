"""What is done with a folder of shards. The folder that is written remembers it, so that no other job goes on in it."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from rtx.export.opened import RECORD as EXPORTED
from rtxlib import atomic
from rtxlib.errors import READ_ONLY, InputError, shown

RECORD, LOCK = ".rtx.json", ".rtx.lock"  # in the folder that is written; readers of tables pass over hidden files


@dataclass(frozen=True)
class Job:
    """A command, its model and its columns.

    Attributes:
        command: "predict" or "embed"
        folder: of the shards; an absolute path
        out: the folder that is written; an absolute path
        model: the folder of a run or of an exported or pretrained encoder, or an encoder's id on the Hub
        version: of the model, from :func:`rtx.shards.answers.version`
        weights: another weights file of a pretrained encoder
        text_column, text_pair_column: the columns that are read; the second is None for single texts
        passes, early_exit: as the options of ``rtx predict``
    """

    command: str
    folder: str
    out: str
    model: str
    version: str
    weights: str | None = None
    text_column: str = "text"
    text_pair_column: str | None = None
    passes: int | None = None
    early_exit: str | None = None

    def record(self) -> dict[str, object]:
        """What tells this job from another. The same model may lie elsewhere on another day."""
        fields = dataclasses.asdict(self)
        return {name: value for name, value in fields.items() if name not in ("out", "model")}

    @property
    def exported(self) -> bool:
        """Whether the model is a folder of ``rtx export``, whose graph runs on the CPU."""
        return os.path.isfile(os.path.join(self.model, EXPORTED))

    @property
    def columns(self) -> dict[str, str]:
        """The columns that are read, by their options."""
        named = {"--text-column": self.text_column, "--text-pair-column": self.text_pair_column}
        return {option: column for option, column in named.items() if column is not None}


@contextmanager
def holding(job: Job) -> Iterator[None]:
    """Make the folder that is written and hold its lock, so that one command writes into it at a time.

    Raises InputError when another command holds it, or when the folder cannot be written, is the folder of the shards, or holds
    something else than the unfinished or finished shards of this job.
    """
    out, record = Path(job.out), Path(job.out, RECORD)
    if os.path.realpath(out) == os.path.realpath(job.folder):
        raise InputError(f"--out is the folder of the shards, {job.folder}; name another.")
    if os.path.lexists(out) and not out.is_dir():
        raise InputError(f"{out} is a file; the answers to a folder are written into a folder, so name another with --out.")
    try:
        out.mkdir(parents=True, exist_ok=True)
        _require_same(job, record)
        with FileLock(out / LOCK, timeout=0):
            if not record.exists():
                with atomic.replacing(record) as temporary:
                    temporary.write_text(json.dumps(job.record(), indent=1) + "\n", encoding="utf-8")
            yield
    except Timeout:
        raise InputError(f"Another command is writing into {out}; wait for it, or name another folder with --out.") from None
    except OSError as error:
        if error.errno not in READ_ONLY:
            raise
        raise InputError(f"{error.filename or out} cannot be written: {error.strerror}.") from error


def _require_same(job: Job, record: Path) -> None:
    if not record.exists():
        if any(name not in (LOCK, RECORD) and not name.startswith(f".{RECORD}") for name in os.listdir(record.parent)):
            raise InputError(f"{record.parent} holds files that this command did not write; name a new folder with --out.")
        return
    try:
        earlier = dict(json.loads(record.read_bytes()))
    except (ValueError, TypeError):
        raise InputError(f"{record} is damaged; name a new folder with --out.") from None
    now = job.record()
    if different := [name for name in {**earlier, **now} if earlier.get(name) != now.get(name)]:
        name = different[0]
        what = "model" if name == "version" else name.replace("_", " ")
        raise InputError(
            f"{record.parent} was begun with another {what} ({shown(earlier.get(name))}, not {shown(now.get(name))}); name a new "
            "folder with --out."
        )
