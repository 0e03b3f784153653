"""A file or a folder appears whole or not at all, and replaces an older one only when it is whole."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from rtxlib.atomic import replacing, replacing_folder


def test_a_file_replaces_the_old_one_when_it_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "new" / "file.txt"
    for text in ("first", "second"):
        with replacing(file) as temporary:
            temporary.write_text(text)
            assert not file.exists() or file.read_text() == "first"
        assert file.read_text() == text
    with pytest.raises(ValueError, match="broken off"), replacing(file) as temporary:
        temporary.write_text("third")
        raise ValueError("broken off")
    assert file.read_text() == "second" and list(file.parent.iterdir()) == [file]


def test_a_folder_replaces_the_old_one_when_it_is_whole(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    for name in ("first", "second"):
        with replacing_folder(folder) as temporary:
            assert not list(temporary.iterdir())
            (temporary / name).write_text("")
            assert not folder.exists() or [file.name for file in folder.iterdir()] == ["first"]
        assert [file.name for file in folder.iterdir()] == [name]
    with pytest.raises(ValueError, match="broken off"), replacing_folder(folder) as temporary:
        (temporary / "third").write_text("")
        raise ValueError("broken off")
    assert [file.name for file in folder.iterdir()] == ["second"] and list(folder.parent.iterdir()) == [folder]


def test_a_folder_may_be_read_as_the_umask_says(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with replacing_folder(tmp_path / "folder"):
            pass
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) == 0o750
