"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A name to write under, this process's and thread's own, that becomes ``path`` when the block ends well.

    The folder is made where it is missing; after a failure nothing is left.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """A new folder beside ``path`` to write into, which is renamed to ``path`` when the block ends well.

    After a failure nothing is left. ``path`` must not exist, or be an empty folder.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    shutil.rmtree(folder, ignore_errors=True)  # left by a killed process that had the same number
    folder.mkdir()
    try:
        yield folder
        os.replace(folder, path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
