"""A damaged, foreign or read-only store is reported in a sentence and affects no other run."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import os
import shutil
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch
from filelock import Timeout
from safetensors.torch import save_file
from test_training import CPU, QUICK, SPECIAL, order_task, tiny, weights

from rtxlib import atomic, paths
from rtxlib.data.prepare import prepare
from rtxlib.data.spec import DataSpec
from rtxlib.errors import InputError
from rtxlib.runs import store, train, use
from rtxlib.runs.spec import RunSpec
from rtxlib.runs.store import Run
from rtxlib.training import checkpoint, trainer
from rtxlib.training.recipe import RECIPES
from rtxstudy import published

SPEC = RunSpec("recurrent-1x2x32", DataSpec(source="embedded", rows=240, depth=1, vocab_size=400), RECIPES["smoke"], 0)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A root folder for the tests of this file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RTX_HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture(scope="module")
def run(home) -> Run:
    return train.train_run(SPEC, paths.runs_dir())


@pytest.fixture
def runs(run, tmp_path) -> Path:
    """A store with a copy of the run, which a test may damage."""
    shutil.copytree(run.path, tmp_path / "runs" / run.key)
    return tmp_path / "runs"


@pytest.mark.parametrize("name", ["spec.json", "metrics.json"])
@pytest.mark.parametrize("damage", [None, b"", b"\xff\x00\xfe", b"{}", b"[]", b'{"accuracy": 0.5'], ids=repr)
def test_a_damaged_record_is_one_sentence_and_the_other_runs_are_listed(
    run, runs: Path, name: str, damage: bytes | None
) -> None:
    whole = runs / "whole"
    shutil.copytree(runs / run.key, whole)
    file = runs / run.key / name
    file.unlink() if damage is None else file.write_bytes(damage)
    told = rf"Run {run.key} is damaged \(.*{name}.*\): delete {runs / run.key} and train it again"
    for ask in (store.load, store.find, lambda runs, key: train.train_run(SPEC, runs)):
        with pytest.raises(InputError, match=told):
            ask(runs, run.key)
    with pytest.warns(UserWarning, match=told) as warned:
        assert [found.key for found in store.every(runs)] == ["whole"]
    assert len(warned) == 1


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json"])
@pytest.mark.parametrize("damage", [None, b"", b"\xff\x00\xfe", b"{}"], ids=repr)
def test_a_damaged_tokenizer_is_one_sentence(run, runs: Path, name: str, damage: bytes | None) -> None:
    file = runs / run.key / name
    file.unlink() if damage is None else file.write_bytes(damage)
    with pytest.raises(InputError, match=f"tokenizer of run {run.key} cannot be read .* delete"):
        use.predict(store.find(runs, run.key), ["a film"])


@pytest.mark.parametrize("damage", [b"", b"PAR1 and no more"])
def test_a_damaged_table_is_one_sentence(run, runs: Path, tmp_path: Path, damage: bytes) -> None:
    (runs / run.key / "curves.parquet").write_bytes(damage)
    (tmp_path / "runs.parquet").write_bytes(damage)
    for read in (lambda: store.part(store.load(runs, run.key), "curves"), lambda: published.runs(tmp_path)):
        with pytest.raises(InputError, match=r"parquet is damaged \(.*\): delete it"):
            read()


@pytest.mark.parametrize("name", ["spec.json", "model.safetensors", "tokenizer.json"])
def test_a_run_that_may_not_be_read_is_not_called_damaged(run, runs: Path, monkeypatch, name: str) -> None:
    locked, read, access = runs / run.key / name, Path.read_text, os.access

    def refused(path: Path, *args, **kwargs) -> str:
        if path == locked:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return read(path, *args, **kwargs)

    monkeypatch.setattr(Path, "read_text", refused)
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != locked and access(path, mode))
    if name != "spec.json":
        locked.write_bytes(b"")  # damaged, because the tests may run as root, who can read everything
    with pytest.raises(InputError, match="cannot be read; ask its owner"):
        use.predict(store.find(runs, run.key), ["a film"])


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS])
def test_a_finished_run_in_a_read_only_store_needs_no_lock(run, runs: Path, monkeypatch, code: int) -> None:
    def refused(*args) -> None:
        raise OSError(code, "no")

    monkeypatch.setattr(store, "lock", refused)
    assert train.train_run(SPEC, runs).metrics == run.metrics
    with pytest.raises(InputError, match="cannot be written; ask its owner for write permission, or set RTX_HOME"):
        train.train_run(dataclasses.replace(SPEC, seed=1), runs)


def test_another_users_half_trained_run_is_one_sentence(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(InputError, match="cannot be written"), store.writing(tmp_path, "k"):
        pytest.fail("written all the same")


def test_a_runs_files_may_be_read_as_the_umask_says(home, tmp_path) -> None:
    before = os.umask(0o027)
    try:
        made = train.train_run(SPEC, tmp_path)
    finally:
        os.umask(before)
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in made.path.iterdir()} == {
        path.name: 0o640 for path in made.path.iterdir()
    }


def test_files_that_a_killed_process_left_half_written_are_no_part_of_a_run(home, tmp_path) -> None:
    key = SPEC.key(prepare(SPEC.data, paths.prepared_dir()).fingerprint)
    folder = store.partial(tmp_path, key)
    folder.mkdir()
    for name in (".checkpoint.safetensors.1.2.tmp", ".tmpAb1Cd2"):  # of rtxlib and of safetensors
        (folder / name).write_bytes(b"half")
    assert not list(train.train_run(SPEC, tmp_path).path.glob(".*"))


def test_the_next_command_sweeps_the_store_of_what_killed_processes_left(tmp_path) -> None:
    runs, ended = tmp_path / "data" / "runs", subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    mark = atomic.mark().replace(f"-{os.getpid()}-", f"-{ended.pid}-")
    swept = [
        *(f"data/runs/{folder}/.tmpAb1Cd2" for folder in ("finished", "broken.partial")),
        *(f"data/{folder}/.a.{mark}.0.tmp" for folder in ("prepared", "generated", "results/demo", "runs/finished")),
        *(f"{folder}/.a.{mark}.0.tmp" for folder in ("figures/demo", "reports/demo", "reports/demo/notebooks")),
        f"reports/demo/notebooks/.03.{mark}.part.ipynb",
        f"data/runs/.driver-0-{mark}.lock",
    ]
    kept = ["data/runs/trained.partial/.tmpAb1Cd2", "data/runs/broken.partial/checkpoint.safetensors", "data/prepared/x.lock"]
    for name in (*swept, *kept):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    with store.lock(runs, "trained"):
        store.sweep(tmp_path)
    assert not [name for name in swept if (tmp_path / name).exists()]
    assert not [name for name in kept if not (tmp_path / name).exists()]


def test_a_full_disk_under_the_tokenizer_is_told(tmp_path) -> None:
    with pytest.raises(InputError, match="disk is full"), store.writing(tmp_path, "k"):
        raise Exception("No space left on device (os error 28)")
    with pytest.raises(InputError, match="not this"), store.writing(tmp_path, "k"):
        raise InputError("not this") from OSError(errno.ENOSPC, "a sentence of its own")


def test_several_processes_wait_for_a_run_in_turns(home, tmp_path, monkeypatch) -> None:
    """torch aborts a process that waits for a message for ten minutes, so process 0 must answer the others meanwhile."""
    asked = []

    def agree(decide) -> bool:
        asked.append(decide())
        if len(asked) == 4:
            other.lock.release()
        return asked[-1]

    spec = dataclasses.replace(SPEC, processes=2)
    monkeypatch.setattr(train, "TURN_SECONDS", 0.05)
    monkeypatch.setattr(train.parallel, "processes", lambda: 2)
    monkeypatch.setattr(train.parallel, "agree", agree)
    monkeypatch.setattr(train.parallel, "barrier", lambda: None)
    monkeypatch.setattr(train, "_train_into", lambda folder, *_: asked.append("trained"))
    key = spec.key(prepare(spec.data, paths.prepared_dir()).fingerprint)
    other = store.hold(tmp_path, key, 0, lambda line: None)
    with pytest.raises(InputError, match=r"it has no spec\.json"):  # the stand-in writes nothing
        train.train_run(spec, tmp_path)
    # Is it finished? Is the lock free (four times)? Is it finished now? Then it trains.
    assert asked[:7] == [False, False, False, False, True, False, "trained"]


def test_who_waits_for_another_process_says_so_once(tmp_path) -> None:
    lines: list[str] = []
    with store.hold(tmp_path, "k", -1, lines.append):
        with pytest.raises(Timeout):
            store.hold(tmp_path, "k", 0, lines.append)  # does not wait, so it reports nothing
        assert lines == []
        with pytest.raises(Timeout):
            store.hold(tmp_path, "k", 0.1, lines.append)
    assert lines == ["waiting for another process that trains this run"]

    other = store.lock(tmp_path, "k")
    begun = threading.Event()

    def busy() -> None:
        with other:
            begun.set()
            time.sleep(0.3)

    thread = threading.Thread(target=busy)
    thread.start()
    begun.wait()
    with store.hold(tmp_path, "k", -1, lines.append):
        assert len(lines) == 2
    thread.join()


def damaged(file: Path, how: str) -> None:
    if how == "foreign":
        save_file({"a": torch.zeros(3)}, file)
    elif how == "random":
        file.write_bytes(os.urandom(500))
    elif how == "empty":
        file.write_bytes(b"")
    elif how == "short":
        file.write_bytes(file.read_bytes()[:-100])
    else:
        groups, state = checkpoint.load(file)
        if how == "of other weights":
            groups["best"] = {name: torch.zeros(*x.shape, 2) for name, x in groups["best"].items()}
        else:
            groups["model"] = {name: torch.full_like(x, 7) for name, x in groups["model"].items()}
            groups["random"] = {"cpu": torch.zeros(3, dtype=torch.uint8)}
        checkpoint.save(file, groups, state)


@pytest.mark.parametrize("how", ["foreign", "random", "empty", "short", "of other weights", "of another generator"])
def test_a_damaged_checkpoint_is_told_and_the_training_starts_anew(tmp_path, monkeypatch, how: str) -> None:
    """The weights are those of a training without a checkpoint: nothing of the damaged file is kept."""
    data, plan = (order_task(120, 0), order_task(40, 1)), dataclasses.replace(QUICK, epochs=1, word_dropout=0.1)
    whole = tiny()
    trainer.Trainer(whole, *data, plan, 3, SPECIAL, CPU).run()
    file, save = tmp_path / "checkpoint.safetensors", checkpoint.save

    def killed(*args) -> None:
        save(*args)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, contextlib.suppress(KeyboardInterrupt):
        patch.setattr(trainer, "CHECKPOINT_SECONDS", 0.0)
        patch.setattr(checkpoint, "save", killed)
        trainer.Trainer(tiny(), *data, plan, 3, SPECIAL, CPU, file).run()
    damaged(file, how)
    lines: list[str] = []
    again = tiny()
    trainer.Trainer(again, *data, plan, 3, SPECIAL, CPU, file, lines.append).run()
    assert lines[0] == f"the checkpoint {file} is damaged: starting anew"
    assert torch.equal(weights(again), weights(whole))


def test_a_checkpoint_that_may_not_be_read_is_left_alone(tmp_path, monkeypatch) -> None:
    file = tmp_path / "checkpoint.safetensors"
    file.write_bytes(b"another's")

    def refused(path: Path) -> None:
        raise FileNotFoundError(f"No such file or directory: {path}")  # as safetensors says it

    monkeypatch.setattr(checkpoint, "load", refused)
    with pytest.raises(InputError, match="cannot be read; ask its owner"):
        trainer.Trainer(tiny(), order_task(40, 0), order_task(20, 1), QUICK, 0, SPECIAL, CPU, file).run()
    assert file.read_bytes() == b"another's"


def test_a_run_is_written_in_utf_8_wherever_it_is_trained(home, tmp_path, monkeypatch) -> None:
    """In a POSIX locale without UTF-8 mode, open() writes ASCII, and the model card has other characters."""
    write = Path.write_text

    def ascii_by_default(path: Path, text: str, encoding: str = "ascii", **rest) -> int:
        return write(path, text, encoding=encoding, **rest)

    monkeypatch.setattr(Path, "write_text", ascii_by_default)
    assert "×" in (train.train_run(SPEC, tmp_path).path / "README.md").read_text(encoding="utf-8")
