"""A folder of shards: read in pieces, answered by processes that may be killed, and gone on with where it stopped."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from filelock import FileLock
from in_process import exported, rtx
from near import assert_near
from pyarrow import parquet

from rtx.shards import answers, drive, folder, job, local, worker
from rtx.shards import parquet as rtx_parquet
from rtx.shards.jsonl import JsonlShard
from rtx.shards.parquet import ParquetShard

pytest.importorskip("onnxruntime")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained run, whose key is in ``run``, and its export as ``graph``, which workers open without torch."""
    where = tmp_path_factory.mktemp("shards")
    exported(where)
    return where


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in this process, except where a test is about workers: each of them takes seconds to start."""
    monkeypatch.delenv("RTX_EXECUTOR", raising=False)
    one_by_one = lambda job, names, workers: (each(name) for each in [worker.Worker(job, 1)] for name in names)  # noqa: E731
    monkeypatch.setattr(drive, "_outcomes", lambda executor: one_by_one)


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drive, "_outcomes", lambda executor: local.outcomes)


def texts(count: int) -> list[str]:
    return [f"a {('fine', 'dull', 'slow')[n % 3]} film, number {n}" for n in range(count)]


def parquet_shards(where: Path, shards: int, rows: int) -> Path:
    where.mkdir()
    for i in range(shards):
        numbers = pa.array(range(i * rows, (i + 1) * rows), pa.int16())
        table = pa.table({"id": numbers, "text": texts(rows), "more": [{"tags": ["x"]}] * rows})
        parquet.write_table(table, where / f"part-{i}.parquet")
    return where


def job_of(home: Path, source: Path, out: Path, **fields: object) -> job.Job:
    graph = str(home / "graph")
    return job.Job("predict", str(source), str(out), graph, answers.version("predict", graph), **fields)


def refused(*arguments: object, home: Path) -> str:
    done = rtx("predict", home / "graph", *arguments, home=home)
    assert done.returncode == 2 and not done.stdout and "Traceback" not in done.stderr, done.stderr
    return done.stderr.splitlines()[-1]


# ---------------------------------------- what is written


def test_two_processes_write_every_shard_with_all_columns(home: Path, processes: None, tmp_path: Path) -> None:
    source, out = parquet_shards(tmp_path / "in", 3, 40), tmp_path / "out"
    parquet.write_table(parquet.read_table(source / "part-0.parquet").slice(0, 0), source / "part-9.parquet")
    (source / "_SUCCESS").touch()
    done = rtx("predict", home / "graph", source, "--out", out, "--workers", "2", "--json", home=home)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert (told["shards"], told["kept"], told["rows"], told["out"]) == (4, 0, 120, str(out))
    assert sorted(path.name for path in out.glob("[!.]*")) == [f"part-{i}.parquet" for i in (0, 1, 2, 9)]
    done = rtx("predict", home / "graph", "--file", source / "part-2.parquet", "--out", tmp_path / "one.parquet", home=home)
    assert done.returncode == 0, done.stderr
    alone, shard = pd.read_parquet(tmp_path / "one.parquet"), parquet.read_table(out / "part-2.parquet")
    before = parquet.read_table(source / "part-2.parquet")
    assert shard.select(before.column_names).equals(before)  # types and nested values as they were
    assert shard["predicted"].to_pylist() == alone["predicted"].tolist()
    for name in ("p_negative", "p_positive"):
        assert_near(shard[name].to_numpy(), alone[name])
    assert parquet.read_schema(out / "part-9.parquet").equals(shard.schema)
    again = rtx("predict", home / "graph", source, "--out", out, "--json", home=home)
    assert json.loads(again.stdout)["kept"] == 4 and json.loads(again.stdout)["rows"] == 0


def test_a_line_keeps_what_it_holds(home: Path, tmp_path: Path) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    lines = ["{}", '{"id": 1e400, "text": "half \\ud800 a pair"}']
    lines += ['{"text": null, "z": [1, {"a": 2}] }', '{"z": 12345678901234567890}']
    (source / "a.jsonl").write_bytes(b"\xef\xbb\xbf" + "\n\n".join(lines).encode())
    (source / "b.jsonl").touch()
    done = rtx("predict", (home / "run").read_text(), source, "--out", out, "--passes", "1", home=home)
    assert done.returncode == 0, done.stderr
    written = (out / "a.jsonl").read_text().splitlines()
    for line, answered in zip(lines, written, strict=True):
        comma = "" if line == "{}" else ", "
        assert answered.startswith(line.removesuffix("}").rstrip() + comma + '"predicted": "')
        row = json.loads(answered)
        assert row["p_negative"] + row["p_positive"] == pytest.approx(1, abs=1e-6)
    assert (out / "b.jsonl").read_bytes() == b""


def test_a_vector_is_added_to_every_row(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = np.random.default_rng(0).normal(size=(9, 5)).astype(np.float32)
    monkeypatch.setattr(answers, "version", lambda *_: "v")
    monkeypatch.setattr(answers, "open_model", lambda *_: lambda given: {"embedding": vectors[: len(given)]})
    source = parquet_shards(tmp_path / "parquet", 1, 9)
    lines = tmp_path / "lines"
    lines.mkdir()
    (lines / "a.ndjson").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts(9)))
    json_lines = lambda path: pd.DataFrame(map(json.loads, path.read_text().splitlines()))  # noqa: E731
    for shards, name, read in ((source, "part-0.parquet", pd.read_parquet), (lines, "a.ndjson", json_lines)):
        done = rtx("embed", shards, "--out", tmp_path / Path(name).stem, "--model", "some/model", "--json", home=home)
        assert done.returncode == 0 and json.loads(done.stdout)["rows"] == 9, done.stderr
        found = np.stack(read(tmp_path / Path(name).stem / name)["embedding"].tolist())
        assert (found.astype(np.float32) == vectors).all()  # no digit is lost in JSON either


# ---------------------------------------- level memory


def test_no_more_than_a_piece_of_a_shard_is_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Parquet file with one row group, which pyarrow reads whole if it may, and a JSONL file, whose reads are counted."""
    source, rows = tmp_path / "in", 30_000
    source.mkdir()
    numbers = np.random.default_rng(0).integers(0, 1 << 60, (rows, 12)).astype(str)
    long = [" ".join(row) for row in numbers]
    parquet.write_table(pa.table({"text": long}), source / "a.parquet", row_group_size=rows, use_dictionary=False)
    (source / "a.jsonl").write_text("".join(f'{{"text": "{text}"}}\n' for text in long))
    del numbers, long
    size = (source / "a.parquet").stat().st_size
    most, before, biggest = 0, pa.total_allocated_bytes(), 0
    with contextlib.closing(ParquetShard(source / "a.parquet")) as shard:
        assert shard.file.metadata.num_row_groups == 1
        for _, batch in shard.pieces():
            most, biggest = max(most, pa.total_allocated_bytes() - before), max(biggest, batch.num_rows)
    assert biggest <= 2048 and most < size / 2, (most, size)
    with contextlib.closing(JsonlShard(source / "a.jsonl")) as shard:
        first = next(shard.pieces())
        assert len(first) == 2048 and shard.file.tell() < size / 10

    asked: list[int] = []

    def counted(given: list[str]) -> dict[str, list[str]]:
        asked.append(len(given))
        return {"predicted": ["x"] * len(given)}

    monkeypatch.setattr(answers, "open_model", lambda *_: counted)
    for name in ("a.parquet", "a.jsonl"):
        one = job.Job("predict", str(source), str(tmp_path / name), "m", "v")
        with job.holding(one):
            assert worker.Worker(one)(name).rows == rows
    assert max(asked) == 2048 and sum(asked) == 2 * (rows + 1)  # and one text for each worker, for the types
    assert parquet.ParquetFile(tmp_path / "a.parquet" / "a.parquet").metadata.num_row_groups >= rows / 2048


def test_long_rows_make_small_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("parquet", "jsonl"):
        monkeypatch.setattr(f"rtx.shards.{module}.BYTES", 1 << 16)
    long = ["".join(np.random.default_rng(n).choice(list("abcdefgh"), 1 << 12)) for n in range(40)]
    parquet.write_table(pa.table({"text": long}), tmp_path / "a.parquet", use_dictionary=False)
    (tmp_path / "a.jsonl").write_text("".join(f'{{"text": "{text}"}}\n' for text in long))
    for name in ("a.parquet", "a.jsonl"):
        with contextlib.closing(folder.opened(tmp_path / name)) as shard:
            found = [shard.texts(piece, "text") for piece in shard.pieces()]
        assert [text for piece in found for text in piece] == long and max(map(len, found)) <= 17
    alike = pa.table({"text": [letter * 20_000 for letter in "abc"] * 700})  # a dictionary of three texts on the disk
    parquet.write_table(alike, tmp_path / "b.parquet")
    with contextlib.closing(folder.opened(tmp_path / "b.parquet")) as shard:
        assert parquet.ParquetFile(tmp_path / "b.parquet").metadata.row_group(0).total_byte_size < 1 << 17
        assert sum(len(batch) for _, batch in shard.pieces()) == 2100
        assert max(len(batch) for _, batch in shard.pieces()) <= rtx_parquet.FEW


# ---------------------------------------- killed, and gone on with


def test_a_killed_worker_loses_nothing_and_repeats_no_row(home: Path, processes: None, tmp_path: Path) -> None:
    """SIGKILL meets a process while it writes a shard; its temporary file has its number."""
    source, out = parquet_shards(tmp_path / "in", 3, 4000), tmp_path / "out"
    killed: list[str] = []

    def kill() -> None:
        for _ in range(12_000):
            for name in os.listdir(out) if out.is_dir() else ():
                if found := re.search(r"\.parquet\.rtx-\w+-(\d+)-", name):
                    os.kill(int(found[1]), signal.SIGKILL)
                    return killed.append(name)
            time.sleep(0.01)

    killer = threading.Thread(target=kill)
    killer.start()
    told = drive.work(job_of(home, source, out), workers=2)
    killer.join()
    assert killed and told["kept"] == 0
    written = pd.concat(pd.read_parquet(out / f"part-{i}.parquet") for i in range(3))
    assert written["id"].tolist() == list(range(12_000)) and written["predicted"].notna().all()
    assert {path.name for path in out.iterdir()} == {job.RECORD, job.LOCK, *(f"part-{i}.parquet" for i in range(3))}


def test_a_worker_that_is_lost_again_and_again_is_one_sentence(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, out = parquet_shards(tmp_path / "in", 4, 4), tmp_path / "out"
    monkeypatch.setattr(drive, "_outcomes", lambda _: lambda job, names, workers: (n for n in ()))
    said = refused(source, "--out", out, home=home)
    assert f"The workers of {drive.ROUNDS} shards in turn were lost" in said
    assert "'part-2.parquet', 'part-3.parquet' are not written" in said


def test_a_shard_that_kills_its_worker_stops_only_itself(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first shard ends the process in which it is read, and with it all shards that are given at the same time."""
    source, out, given = parquet_shards(tmp_path / "in", 4, 4), tmp_path / "out", []

    def one_by_one(one: job.Job, names: list[str], workers: int | None) -> Iterator[worker.Outcome]:
        given.append(names)
        for name in () if "part-0.parquet" in names else names:
            yield worker.Worker(one, 1)(name)

    monkeypatch.setattr(drive, "_outcomes", lambda _: one_by_one)
    said = refused(source, "--out", out, home=home)
    assert f"1 of 4 shards failed, and the others are written. part-0.parquet: its worker was lost {drive.ROUNDS} times" in said
    assert sorted(path.name for path in out.glob("[!.]*")) == [f"part-{n}.parquet" for n in (1, 2, 3)]
    assert list(map(len, given)) == [4, 1, 1, 3]


def test_a_rerun_does_what_is_missing_or_has_changed(home: Path, tmp_path: Path) -> None:
    source, out = parquet_shards(tmp_path / "in", 3, 4), tmp_path / "out"
    one = job_of(home, source, out)
    with job.holding(one):
        assert worker.Worker(one, 1)("part-1.parquet").rows == 4
    left = out / ".part-0.parquet.rtx-0badcafe-7-00000000.0.tmp"  # by a machine that is no more
    left.touch()
    inode = (out / "part-1.parquet").stat().st_ino
    told = drive.work(one)
    assert (told["kept"], told["rows"]) == (1, 8) and (out / "part-1.parquet").stat().st_ino == inode and not left.exists()
    future = time.time() + 1000
    os.utime(source / "part-2.parquet", (future, future))
    assert (drive.work(one)["rows"], drive.work(one)["rows"]) == (4, 0)
    os.utime(source / "part-2.parquet", (future - 5000, future - 5000))  # an older file in its place
    assert (drive.work(one)["rows"], drive.work(one)["rows"]) == (4, 0)
    (source / "part-3.parquet").symlink_to(tmp_path / "gone")
    (source / "a-first.parquet").symlink_to(tmp_path / "gone")
    said = refused(source, "--out", out, home=home)
    assert "2 of 5 shards failed" in said and "part-3.parquet is gone, or a link to nothing." in said


def test_a_shard_that_changes_while_it_is_read_is_not_written(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, out = parquet_shards(tmp_path / "in", 1, 4), tmp_path / "out"
    monkeypatch.setattr(answers, "open_model", lambda *_: lambda given: (source / "part-0.parquet").touch() or {"p": given})
    assert "part-0.parquet changed while it was read" in refused(source, "--out", out, home=home)
    assert not (out / "part-0.parquet").exists()


# ---------------------------------------- what is refused


def test_what_cannot_be_a_folder_of_shards_is_one_sentence(home: Path, tmp_path: Path) -> None:
    source, out = parquet_shards(tmp_path / "in", 2, 4), tmp_path / "out"
    (tmp_path / "empty").mkdir()
    assert "is a folder without shards" in refused(tmp_path / "empty", "--out", out, home=home)
    assert "is a folder, and the answers to its shards need --out" in refused(source, home=home)
    assert "--out must name a folder, not the file" in refused(source, "--out", tmp_path / "x.csv", home=home)
    assert "--out is the folder of the shards" in refused(source, "--out", source, home=home)
    said = refused(source, "--out", out, "--text-column", "words", home=home)
    assert "part-0.parquet has no column 'words' (--text-column); it has 'id', 'text', 'more'" in said
    assert "There is no executor 'rya'" in refused(source, "--out", out, "--executor", "rya", home=home)
    assert "--force is for a file" in refused(source, "--out", out, "--force", home=home)
    assert "--workers is for a folder" in refused("a film", "--workers", "2", home=home)
    assert "no early exits" in refused(source, "--out", out, "--early-exit", "confidence:0.9", home=home)
    (tmp_path / "file").touch()
    assert "is a file; the answers to a folder" in refused(source, "--out", tmp_path / "file", home=home)
    assert "holds files that this command did not write" in refused(source, "--out", tmp_path, home=home)
    (source / "a.jsonl").write_text("{}\n")
    assert "files of several kinds, such as a.jsonl and part-0.parquet" in refused(source, "--out", out, home=home)


def test_an_out_folder_of_another_job_is_refused(home: Path, tmp_path: Path) -> None:
    source, out = parquet_shards(tmp_path / "in", 1, 4), tmp_path / "out"
    drive.work(job_of(home, source, out))
    before = (out / "part-0.parquet").read_bytes()
    done = rtx("predict", (home / "run").read_text(), source, "--out", out, home=home)
    assert done.returncode == 2 and f"{out} was begun with another model" in done.stderr
    assert "was begun with another passes (None, not 3)" in refused(source, "--out", out, "--passes", "3", home=home)
    other = parquet_shards(tmp_path / "other", 1, 4)
    assert "was begun with another folder" in refused(other, "--out", out, home=home)
    with FileLock(out / job.LOCK):
        assert "Another command is writing into" in refused(source, "--out", out, home=home)
    assert (out / "part-0.parquet").read_bytes() == before


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (b'{"text": "a"}\n{"text": "b"\n', "Line 2 of b.jsonl is not JSON"),
        (b'{"text": "a"}\n{"text": "\xff"}\n', "Line 2 of b.jsonl is not UTF-8"),
        (b'{"text": ["a"]}\n', "Line 1 of b.jsonl has a list in the column 'text'"),
        (b'{"words": "a"}\n', "b.jsonl has no column 'text'"),
        (b'{"text": "a"}\n{"text": "b", "predicted": 1}\n', "Line 2 of b.jsonl has a column 'predicted' of its own"),
    ],
)
def test_a_bad_shard_is_named_and_the_others_are_written(bad: bytes, says: str, home: Path, tmp_path: Path) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    for name in "ac":
        (source / f"{name}.jsonl").write_text('{"text": "a fine film"}\n')
    (source / "b.jsonl").write_bytes(bad)
    said = refused(source, "--out", out, home=home)
    assert "1 of 3 shards failed, and the others are written" in said and says in said
    assert sorted(path.name for path in out.glob("[!.]*")) == ["a.jsonl", "c.jsonl"]
    (source / "b.jsonl").write_text('{"text": "mended"}\n')
    assert drive.work(job_of(home, source, out))["rows"] == 1


def test_a_damaged_parquet_shard_and_columns_of_ours_are_named(home: Path, tmp_path: Path) -> None:
    source, out = parquet_shards(tmp_path / "in", 3, 4), tmp_path / "out"
    whole = (source / "part-0.parquet").read_bytes()
    (source / "part-0.parquet").write_bytes(whole[:-20])
    parquet.write_table(pa.table({"text": ["a"], "p_negative": [1.0]}), source / "part-1.parquet")
    said = refused(source, "--out", out, home=home)
    assert "2 of 3 shards failed" in said and "part-0.parquet cannot be read as Parquet" in said
    assert "part-1.parquet has a column 'p_negative' of its own" in said
    assert [path.name for path in out.glob("[!.]*")] == ["part-2.parquet"]


def test_no_torch_is_loaded_for_an_exported_folder(home: Path, tmp_path: Path) -> None:
    source = parquet_shards(tmp_path / "in", 1, 4)
    code = (
        "import sys\nfrom rtx.cli import main\n"
        f"sys.argv = ['rtx', 'predict', {str(home / 'graph')!r}, {str(source)!r}, '--out', {str(tmp_path / 'out')!r}]\n"
        "main()\nassert 'torch' not in sys.modules and 'transformers' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | {"RTX_HOME": str(home)})
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "part-0.parquet").exists()
