"""What a model is called in records: its name, its Hub id, or the whole path of its folder."""

from __future__ import annotations

from pathlib import Path


def whole(model: str) -> str:
    """The whole path of a folder, so that the name means the same in every working folder; any other name as it is."""
    folder = Path(model).expanduser()
    return folder.resolve().as_posix() if folder.is_dir() else model
