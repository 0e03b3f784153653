"""An encoder that is trained once into a folder of its own and found there again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from rtxlib.errors import InputError, disk_full
from rtxlib.runs import store
from rtxlib.training import parallel
from rtxlib.training.device import training_threads


class Training(Protocol):
    """What defines an encoder, such as a :class:`rtxlib.runs.pretraining.Pretraining`."""

    threads: int

    def made(self, folder: Path) -> bool:
        """Whether ``folder`` holds the encoder of this training."""


def train_once(what: Training, folder: Path, train: Callable[[Path], None], report: Callable[[str], None]) -> Path:
    """Train an encoder into ``folder``, unless it is there already.

    An unfinished training lies beside it in ``<folder>.partial``, and the next call goes on from there. Two processes that want
    the same encoder wait for each other. Their lock, ``.<folder>.lock``, stays (:func:`rtxlib.runs.store.lock`). ``train`` takes
    the checkpoint's file and writes the folder.

    Raises InputError when the folder holds something else, when several processes train together, or when the disk is full.
    """
    if parallel.processes() > 1:
        raise InputError("This encoder is trained in one process; start without torchrun.")
    partial = folder.with_name(f"{folder.name}{store.PARTIAL}")
    checkpoint = partial / "checkpoint.safetensors"
    try:
        with store.hold(folder.parent, folder.name, -1, report):
            try:
                if not folder.exists():
                    partial.mkdir(exist_ok=True)
                    with training_threads(what.threads):
                        train(checkpoint)
                    checkpoint.unlink(missing_ok=True)
            finally:  # under the lock, so that a process that only waited removes nothing of the one that trains
                if not checkpoint.exists():  # there is nothing to go on from
                    shutil.rmtree(partial, ignore_errors=True)
    except Exception as error:  # on a full disk, safetensors and tokenizers do not raise OSError
        if disk_full(error) and not isinstance(error, InputError):
            raise InputError(
                f"The disk is full while training into {folder}; free some space and give the same command again."
            ) from error
        raise
    if not what.made(folder):
        raise InputError(f"{folder} exists already and is another encoder; name a new folder.")
    return folder
