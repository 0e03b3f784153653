"""A worker: it opens the model of a job once and finishes one shard after another."""

from __future__ import annotations

import contextlib
import os
import platform
from dataclasses import dataclass
from pathlib import Path

from rtx.errors import lacking
from rtx.shards import answers, folder
from rtx.shards.job import RECORD, Job
from rtx.shards.piece import Columns, require_columns
from rtxlib import atomic
from rtxlib.data.rows import Text
from rtxlib.errors import InputError


@dataclass(frozen=True)
class Outcome:
    """How a shard ended.

    Attributes:
        name: of the shard
        rows: that were written
        error: why it was not written, in a sentence; "" if it was
        fatal: whether the error concerns every shard, such as a model that is missing or a full disk
    """

    name: str
    rows: int = 0
    error: str = ""
    fatal: bool = False


class Worker:
    """Calling it with the name of a shard writes the shard whole, or not at all. threads: of an exported graph; 0: all cores."""

    def __init__(self, job: Job, threads: int = 0) -> None:
        self.job, self.threads = job, threads
        self.answer: answers.Answer | None = None
        self.nothing: Columns = {}  # what is added to no rows, which tells the types of the columns

    def __call__(self, name: str) -> Outcome:
        try:
            if self.answer is None:
                self._require_folders()
                answer = answers.open_model(self.job, self.threads)
                one: Text = "" if self.job.text_pair_column is None else ("", "")
                self.nothing = {column: values[:0] for column, values in answer([one]).items()}
                self.answer = answer
        except InputError as error:
            return Outcome(name, error=str(error), fatal=True)
        try:
            return Outcome(name, self._finish(name))
        except InputError as error:
            return Outcome(name, error=str(error))
        except Exception as error:
            lack = lacking(error)
            if lack is None and isinstance(error, OSError):
                lack = f"{error.filename or self.job.out} cannot be written or read: {error.strerror}."
            if lack is None:
                raise
            return Outcome(name, error=lack, fatal=True)

    def _require_folders(self) -> None:
        for path, what in ((Path(self.job.folder), self.job.folder), (Path(self.job.out, RECORD), self.job.out)):
            if not path.exists():
                raise InputError(
                    f"{platform.node()} does not see {what}; shards and answers must lie on a file system that all machines "
                    "share."
                )

    def _finish(self, name: str) -> int:
        """Write the shard of this name; returns its number of rows. A shard that another worker has finished stays."""
        source, out, job = Path(self.job.folder, name), Path(self.job.out, name), self.job
        if folder.finished(source, out):
            return 0
        rows = 0
        with contextlib.closing(folder.opened(source)) as shard, atomic.replacing(out) as temporary:
            before = _state(source)
            require_columns(shard.columns, job.columns, name)
            with shard.writing(temporary, self.nothing, {"rtx": str(job.record())}) as write:
                for piece in shard.pieces():
                    texts: list[Text] = shard.texts(piece, job.text_column)
                    if job.text_pair_column is not None:
                        texts = list(zip(texts, shard.texts(piece, job.text_pair_column), strict=True))
                    write(piece, self.answer(texts))
                    rows += len(texts)
            if _state(source) != before:
                raise InputError(f"{name} changed while it was read; give the same command again.")
            os.utime(temporary, ns=(before[1], before[1]))  # by which a later call knows it (folder.finished)
        return rows


def _state(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns
