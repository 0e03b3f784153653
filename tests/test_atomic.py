"""A file or a folder appears whole or not at all, and replaces an older one only when it is whole."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rtxlib import atomic
from rtxlib.atomic import replacing, replacing_folder
from rtxlib.errors import InputError


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
    with pytest.raises(InputError, match="was made by another program meanwhile"), replacing_folder(folder, new=True):
        pass
    assert [file.name for file in folder.iterdir()] == ["second"] and list(folder.parent.iterdir()) == [folder]


def test_an_old_folder_survives_when_the_new_one_cannot_take_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "first").touch()
    rename = os.replace

    def fails(source: Path, to: Path) -> None:
        if to == folder and source.suffix == ".tmp":
            raise PermissionError("in use")
        rename(source, to)

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(PermissionError), replacing_folder(folder):
        pass
    monkeypatch.undo()
    assert [file.name for file in folder.iterdir()] == ["first"] and list(tmp_path.iterdir()) == [folder]
    os.replace(folder, tmp_path / f".folder.{atomic._short('folder')}.old")  # as a kill between the two renames leaves it
    with pytest.raises(ValueError, match="broken off"), replacing_folder(folder):
        raise ValueError("broken off")
    assert [file.name for file in folder.iterdir()] == ["first"] and list(tmp_path.iterdir()) == [folder]


def test_a_folder_may_be_read_as_the_umask_says(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with replacing_folder(tmp_path / "folder"):
            pass
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) == 0o750


# ------------------------------------------------------------------------------------------ what a killed process leaves

LEAVE = """
import os, sys
from pathlib import Path
from rtxlib.atomic import mark, replacing, replacing_folder
folder = Path(sys.argv[1])
with replacing(folder / "table.csv") as file, replacing_folder(folder / "data") as part:
    file.write_text("half")
    (part / "rows").write_text("half")
    (folder / f".03.{mark()}.part.ipynb").write_text("half")
    print("ready", flush=True)
    sys.stdin.read()
"""


def writer(folder: Path) -> subprocess.Popen:
    """A process that has begun to write and waits."""
    process = subprocess.Popen(
        [sys.executable, "-c", LEAVE, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    return process


def test_what_a_killed_process_left_is_swept_and_what_a_living_one_writes_is_not(tmp_path: Path) -> None:
    (tmp_path / ".table.csv.1.2.tmp").write_text("of somebody else")
    other = writer(tmp_path)
    try:
        assert len(list(tmp_path.iterdir())) == 4
        atomic.sweep(tmp_path, tmp_path / "none")
        assert len(list(tmp_path.iterdir())) == 4
    finally:
        other.kill()
    deadline = time.monotonic() + 20
    while len(list(tmp_path.iterdir())) > 1 and time.monotonic() < deadline:  # swept before its parent has asked for it
        atomic.sweep(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == [".table.csv.1.2.tmp"]
    other.wait()


def test_writing_into_a_folder_sweeps_it(tmp_path: Path) -> None:
    other = writer(tmp_path)
    other.kill()
    other.wait()
    with replacing(tmp_path / "table.csv") as temporary:
        temporary.write_text("whole")
    assert [file.name for file in tmp_path.iterdir()] == ["table.csv"]


def test_only_processes_that_surely_ended_are_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not those of another machine, and not those of which the beginning is unknown. An id that is used again is told apart."""
    host, pid, birth = re.fullmatch(r"rtx-(\w+)-(\d+)-(\w+)", atomic.mark()).groups()
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    kept = [f"rtx-00c0ffee-{ended.pid}-{birth}", f"rtx-{host}-{pid}-{birth}", f"rtx-{host}-{pid}-{atomic._UNKNOWN}"]
    gone = [f"rtx-{host}-{ended.pid}-{birth}", f"rtx-{host}-{pid}-0badcafe", f"rtx-{host}-{ended.pid}-{atomic._UNKNOWN}"]
    for name in (*kept, *gone):
        (tmp_path / f".a.{name}.0.tmp").write_text("")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text("")
    (tmp_path / f"link.{gone[0]}").symlink_to("outside")
    atomic.sweep(tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {"outside", *(f".a.{name}.0.tmp" for name in kept)}
    assert (tmp_path / "outside" / "file").exists()


def test_a_long_name_leaves_room_for_the_mark(tmp_path: Path) -> None:
    name = "ä" * 120  # 240 of the 255 bytes
    with replacing(tmp_path / name) as temporary:
        temporary.write_text("")
    assert [file.name for file in tmp_path.iterdir()] == [name]
