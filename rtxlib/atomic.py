"""Files and folders that appear whole or not at all: both are written under a temporary name and then renamed."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
def replacing_folder(path: Path) -> Iterator[Path]:
    """An empty temporary folder, which takes the name ``path`` when the block ends without an error.

    Missing parent folders are made. A folder that has the name already is then removed. An error leaves the old folder as it
    was, and nothing of the new one.
    """
    temporary = _beside(path)
    shutil.rmtree(temporary, ignore_errors=True)  # a killed process may have left it
    temporary.mkdir()
    try:
        yield temporary
        if path.exists():
            shutil.rmtree(path)
        os.replace(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _beside(path: Path) -> Path:
    """A hidden name in the folder of ``path`` that no other process or thread uses. Its folder is made if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
