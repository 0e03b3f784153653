"""A damaged, foreign or read-only store is reported in a sentence and affects no other run."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest
import torch
from filelock import Timeout
from in_process import rtx
from safetensors.torch import load_file, save_file
from test_training import CPU, QUICK, SPECIAL, order_task, tiny, weights

from rtx import archive, doctor, use
from rtxlib import atomic, checksums, paths
from rtxlib.data import prepare as preparation
from rtxlib.data.datasets import Generated
from rtxlib.data.prepare import prepare
from rtxlib.errors import InputError
from rtxlib.models import pretrained
from rtxlib.models.checkpoint_files import INDEX, WEIGHTS
from rtxlib.runs import store, train, trained
from rtxlib.runs.spec import RunSpec
from rtxlib.runs.store import Run
from rtxlib.training import checkpoint, trainer
from rtxlib.training.recipe import RECIPES
from rtxstudy import published

SPEC = RunSpec("recurrent-1x2x32", Generated(rows=240, depth=1, vocab_size=400), RECIPES["smoke"], 0)


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
    told = rf"Run {run.key} is damaged \(.*{name}.*\): delete {runs / run.key} and repeat the command that made it"
    for ask in (store.load, archive.find, lambda runs, key: train.train_run(SPEC, runs)):
        with pytest.raises(InputError, match=told):
            ask(runs, run.key)
    with pytest.warns(UserWarning, match=told) as warned:
        assert [found.key for found in archive.every(runs)] == ["whole"]
    assert len(warned) == 1


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json"])
@pytest.mark.parametrize("damage", [None, b"", b"\xff\x00\xfe", b"{}"], ids=repr)
def test_a_damaged_tokenizer_is_one_sentence(run, runs: Path, name: str, damage: bytes | None) -> None:
    file = runs / run.key / name
    file.unlink() if damage is None else file.write_bytes(damage)
    with pytest.raises(InputError, match=f"Run {run.key} is damaged .*{name}.* delete"):
        use.predict(archive.find(runs, run.key), ["a film"])
    (runs / run.key / store.MARK).write_text("{}")  # as an earlier version stored it
    with pytest.raises(InputError, match=f"tokenizer of run {run.key} cannot be read .* delete"):
        use.predict(archive.find(runs, run.key), ["a film"])


def tensors_changed(folder: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    tensors = load_file(folder / WEIGHTS)
    change(tensors)
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})


def only_a_pickle(folder: Path) -> None:
    torch.save(load_file(folder / WEIGHTS), folder / "pytorch_model.bin")
    (folder / WEIGHTS).unlink()


def an_index_of_a_pickle(folder: Path) -> None:
    only_a_pickle(folder)
    (folder / INDEX).write_text(json.dumps({"weight_map": {"classifier.weight": "pytorch_model.bin"}}))


def a_flipped_bit(folder: Path) -> None:
    content = bytearray((folder / WEIGHTS).read_bytes())
    content[-1000] ^= 1
    (folder / WEIGHTS).write_bytes(content)


HEAD = "classifier.weight"
# What is done to a run's folder, and what is said of it when the run has no checksums; None: it cannot be noticed then.
WEIGHTS_DAMAGED = {
    "lacking": (
        lambda folder: tensors_changed(folder, lambda tensors: tensors.pop(HEAD)),
        rf"Missing: {HEAD}\. Unexpected: none",
    ),
    "renamed": (
        lambda folder: tensors_changed(folder, lambda tensors: tensors.update(kopf=tensors.pop(HEAD))),
        rf"Missing: {HEAD}\. Unexpected: kopf",
    ),
    "narrow": (
        lambda folder: tensors_changed(folder, lambda tensors: tensors.update({HEAD: tensors[HEAD][:, 1:].clone()})),
        rf"{HEAD} makes \(2, 31\) where {HEAD} has \(2, 32\)",
    ),
    "NaN": (
        lambda folder: tensors_changed(folder, lambda tensors: tensors[HEAD][0].fill_(torch.nan)),
        rf"NaN or infinite numbers: {HEAD}",
    ),
    "integers": (
        lambda folder: tensors_changed(folder, lambda tensors: tensors.update({HEAD: tensors[HEAD].long()})),
        rf"are not: {HEAD} \(torch\.int64\)",
    ),
    "flipped": (a_flipped_bit, None),
    "pickle": (only_a_pickle, r"holds no model\.safetensors.* It has pytorch_model\.bin"),
    "index": (an_index_of_a_pickle, r"names 'pytorch_model\.bin', which is not a \.safetensors file"),
}


@pytest.mark.parametrize(("damage", "said"), WEIGHTS_DAMAGED.values(), ids=WEIGHTS_DAMAGED)
def test_damaged_weights_are_one_sentence_and_nothing_is_trained_or_lost(
    run, runs: Path, damage: Callable[[Path], object], said: str | None
) -> None:
    folder = runs / run.key
    damage(folder)
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    found, told = store.load(runs, run.key), rf"Run {run.key} is damaged \(.*model\.safetensors.*\): delete {folder}"
    for ask in (trained.open_run, trained.open_model, lambda run: train.train_run(SPEC, runs)):
        with pytest.raises(InputError, match=told):
            ask(found)
    (finding,) = doctor.examine_store(runs)
    assert finding["check"] == run.key and not finding["ok"]
    assert files == {path.name: path.read_bytes() for path in folder.iterdir()}

    (folder / store.MARK).write_text(json.dumps({"key": run.key}))  # as an earlier version stored it
    if said is None:
        assert len(use.predict(found, ["a film"])) == 1
    else:
        for ask in (trained.open_run, lambda run: train.train_run(SPEC, runs)):
            with pytest.raises(InputError, match=f"weights of run {run.key} cannot be read [^;]*{said}[^;]*\\); delete"):
                ask(found)


def test_a_run_under_the_key_of_another_is_damaged_but_may_lie_anywhere(run, runs: Path, tmp_path: Path) -> None:
    other = "0123456789abcdef"
    shutil.copytree(runs / run.key, runs / other)
    with pytest.raises(InputError, match=f"Run {other} is damaged .*it holds the run {run.key}"):
        store.load(runs, other)
    assert not doctor.examine_store(runs)[0]["ok"] and doctor.examine_store(runs)[1]["ok"]
    assert archive.find(runs, str(shutil.copytree(runs / run.key, tmp_path / "mine"))).metrics == run.metrics


def edited(folder: Path, name: str, change: Callable[[dict], object]) -> None:
    """Edit a JSON file of a run, and its checksum with it."""
    record = json.loads((folder / name).read_text())
    change(record)
    (folder / name).write_text(json.dumps(record))
    rehashed(folder)


def rehashed(folder: Path) -> None:
    sums = {name: [checksums.sha256(folder / name)] for name in checksums.names(folder)}
    (folder / store.MARK).write_text(json.dumps({"key": folder.name, "files": sums}))


def other_columns(folder: Path) -> None:
    pd.DataFrame({"text": ["a"], "split": ["train"]}).to_parquet(folder / "seen_texts.parquet")
    rehashed(folder)


def more_words(folder: Path) -> None:
    added = {"id": 999, "content": "zzz", **dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)}
    edited(folder, "tokenizer.json", lambda record: record["added_tokens"].append(added))


EDITED = {
    "one label more": (
        lambda folder: edited(folder, "spec.json", lambda spec: spec["label_names"].append("mixed")),
        "spec.json has the 3 labels .*, and config.json has the 2 labels",
    ),
    "another label": (
        lambda folder: edited(folder, "config.json", lambda config: config["id2label"].update({"1": "good"})),
        r"config.json has the 2 labels \['negative', 'good'\]",
    ),
    "no labels": (lambda folder: edited(folder, "spec.json", lambda spec: spec.pop("label_names")), "lacks label_names"),
    "labels that are no names": (
        lambda folder: edited(folder, "spec.json", lambda spec: spec.update(label_names=[1, 2])), "label_names of spec.json",
    ),
    "texts of no length": (
        lambda folder: edited(folder, "spec.json", lambda spec: spec["data"].update(max_length=-5)), "the max_length -5",
    ),
    "another number of labels": (
        lambda folder: edited(folder, "config.json", lambda config: config.update(num_labels=3)), "num_labels 3 and 2 labels",
    ),
    "more words": (more_words, r"tokenizer of run .*it has [\d,]+ words and the model's configuration [\d,]+"),
    "other columns": (other_columns, "seen_texts.parquet is no table of hashes and splits"),
}  # fmt: skip


@pytest.mark.parametrize(("edit", "said"), EDITED.values(), ids=EDITED.keys())
def test_files_of_a_run_that_do_not_fit_one_another_are_one_sentence(run, runs: Path, edit, said: str, capfd) -> None:
    edit(runs / run.key)
    with pytest.raises(InputError, match=f"{said}.*delete"):
        use.evaluate(archive.find(runs, run.key), ["a film zzz"], ["positive"])
    assert capfd.readouterr().err == ""  # no library warns beside the sentence


def test_a_run_that_is_swapped_while_it_is_opened_answers_nothing(run, runs: Path, tmp_path: Path, monkeypatch) -> None:
    """Otherwise the checksums of one run would be compared, and the weights of another be read."""
    ours, other, opening = runs / run.key, shutil.copytree(runs / run.key, tmp_path / run.key), trained.load_trained

    def swapped(folder: Path) -> object:
        ours.rename(tmp_path / "away")
        other.rename(ours)
        return opening(folder)

    monkeypatch.setattr(trained, "load_trained", swapped)
    with pytest.raises(InputError, match="was changed while it was opened; give the same command again"):
        use.predict(archive.find(runs, run.key), ["a film"])
    monkeypatch.undo()
    assert len(use.predict(archive.find(runs, run.key), ["a film"])) == 1


def test_answers_that_are_no_numbers_are_refused(run, runs: Path) -> None:
    def enlarge(tensors: dict[str, torch.Tensor]) -> None:
        tensors["encoder.embeddings.norm.weight"].fill_(3e38)  # finite, and its products are not

    tensors_changed(runs / run.key, enlarge)
    (runs / run.key / store.MARK).write_text(json.dumps({"key": run.key}))
    with pytest.raises(InputError, match="numbers that are not finite"):
        use.predict(archive.find(runs, run.key), ["a film"])


def test_the_doctor_checks_every_run_of_a_store_and_deletes_nothing(run, runs: Path) -> None:
    home = runs.parent
    (home / "data").mkdir()
    runs = runs.rename(home / "data" / "runs")
    told = rtx("doctor", "--store", home=home)
    assert told.returncode == 0 and "1 run in" in told.stdout and "0 of them damaged" in told.stdout
    for name in ("flipped", "old", "unmarked", "table", f"half{store.PARTIAL}"):
        shutil.copytree(runs / run.key, runs / name)
    a_flipped_bit(runs / "flipped")
    (runs / "old" / store.MARK).write_text(json.dumps({"key": "old"}))
    (runs / "unmarked" / store.MARK).unlink()
    (runs / "table" / "predictions.parquet").write_bytes(b"PAR1")
    (runs / run.key / store.CARD).write_text("my notes")
    graph = runs / f"{run.key}.graph"  # beside its run, as `rtx export` writes it
    graph.mkdir()
    (graph / "export.json").write_text("{}")
    told = rtx("doctor", "--store", home=home)
    assert told.returncode == 1 and "5 runs" in told.stdout and "3 of them damaged" in told.stdout
    lines = {line.split()[1]: line for line in told.stdout.splitlines()[:-1]}
    assert sorted(name for name, line in lines.items() if line.startswith("BAD")) == ["flipped", "table", "unmarked"]
    assert "carries no checksums" in lines["old"] and "README.md was edited" in lines[run.key]
    assert "model.safetensors" in lines["flipped"] and "predictions.parquet" in lines["table"]
    assert len(list(runs.iterdir())) == 7  # nothing was deleted


@pytest.mark.parametrize("steps", range(4))
@pytest.mark.parametrize("name", ["metrics.json", "evaluations.parquet"])
def test_a_kill_while_a_file_of_a_run_is_replaced_leaves_it_undamaged(
    run, runs: Path, monkeypatch, steps: int, name: str
) -> None:
    """The process ends after so many renamings. Both the mark and the file are renamed into their places."""
    copy, left, rename = store.load(runs, run.key), steps, os.replace

    def killed(*args) -> None:
        nonlocal left
        if left == 0:
            raise KeyboardInterrupt
        left -= 1
        rename(*args)

    def put() -> None:
        content = json.dumps(run.metrics | {"ms_median": 1.0}).encode()
        archive.put(copy, name, lambda path: path.write_bytes(content))

    monkeypatch.setattr(os, "replace", killed)
    with contextlib.suppress(KeyboardInterrupt):
        put()
    monkeypatch.undo()
    store.verify(store.load(runs, run.key), lambda name: True)
    assert doctor.examine_store(runs)[0]["ok"]
    put()
    store.verify(store.load(runs, run.key), lambda name: True)
    if name == "metrics.json":
        assert store.load(runs, run.key).metrics["ms_median"] == 1.0
    else:
        (copy.path / name).unlink()  # a table that was measured later may be deleted, and is measured again
        store.verify(copy, lambda name: True)
    put()
    (copy.path / name).write_bytes(b"{}")
    assert not doctor.examine_store(runs)[0]["ok"]


def test_a_table_with_a_flipped_bit_is_neither_read_nor_published(run, runs: Path, tmp_path: Path) -> None:
    copy = store.load(runs, run.key)
    archive.put(copy, "states.parquet", lambda path: shutil.copy(copy.path / "curves.parquet", path))
    content = bytearray((copy.path / "states.parquet").read_bytes())
    content[40] ^= 1
    (copy.path / "states.parquet").write_bytes(content)
    for read in (lambda: archive.part(copy, "states"), lambda: published.publish("s", [copy], tmp_path / "results")):
        with pytest.raises(InputError, match=rf"table of run {run.key} is damaged \(states\.parquet .*\): delete it"):
            read()


def test_a_run_of_an_earlier_version_gains_tables_but_no_checksums(run, runs: Path) -> None:
    mark = runs / run.key / store.MARK
    mark.write_text(json.dumps({"key": run.key}))
    archive.put(store.load(runs, run.key), "states.parquet", lambda path: path.write_bytes(b"x"))
    assert json.loads(mark.read_text()) == {"key": run.key} and (mark.parent / "states.parquet").read_bytes() == b"x"


def test_a_run_without_checksums_says_so_once(run, runs: Path) -> None:
    (runs / run.key / store.MARK).write_text(json.dumps({"key": run.key}))
    told = rtx("predict", runs / run.key, "--file", "-", given=b"a film\nanother\n")
    assert told.returncode == 0 and told.stdout.count("\n") == 2
    assert told.stderr.count("carries no checksums") == 1 == told.stderr.count("\n")


def test_what_is_no_run_is_called_that(run, runs: Path) -> None:
    (runs / "folder").mkdir()
    (runs / f"half{store.PARTIAL}").mkdir()
    for name, said in (
        (runs / "folder", "folder is a folder without complete.json, so it is no run; `rtx results`"),
        (runs / run.key / WEIGHTS, f"is a file, and a run is named by its key or its folder, here {runs / run.key}."),
        (runs / f"half{store.PARTIAL}", "train it again and it will go on"),
        ("half", "train it again and it will go on"),
    ):
        with pytest.raises(InputError, match=re.escape(said)):
            archive.find(runs, str(name))


def test_results_and_the_doctor_see_the_same_runs(run, runs: Path) -> None:
    home = runs.parent
    (home / "data").mkdir()
    runs = runs.rename(home / "data" / "runs")
    shutil.copytree(runs / run.key, runs / "..hidden")
    shutil.copytree(runs / run.key, runs / "lost")
    (runs / "lost" / WEIGHTS).unlink()
    (runs / "lost" / store.CARD).unlink()
    (runs / "empty").mkdir()
    told = rtx("results", home=home)
    assert run.key in told.stdout and "hidden" not in told.stdout
    advice = f"delete {runs / 'lost'} and repeat the command that made it"
    assert told.stderr == f"Run lost is damaged (it has no model.safetensors): {advice}.\n"
    told = rtx("doctor", "--store", home=home).stdout
    assert f"{runs / 'empty'} holds no run; move it elsewhere." in told and "hidden" not in told and "3 runs" in told
    with pytest.raises(InputError, match="There is no run"):
        archive.find(runs, "..hid")


@pytest.fixture
def fifo(tmp_path: Path) -> Iterator[Callable[[Path], Path]]:
    """Puts a FIFO in a file's place. Who waits for it is let go after ten seconds, and the test then fails."""
    made: list[subprocess.Popen] = []

    def make(path: Path) -> Path:
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        # A process of its own, because safetensors waits without letting other threads run.
        let_go = 'sleep 10; : > "$1"; while : <> "$0"; do sleep 0.1; done'
        made.append(subprocess.Popen(["sh", "-c", let_go, path, tmp_path / "waited"], start_new_session=True))
        return path

    yield make
    for process in made:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert not (tmp_path / "waited").exists()


@pytest.mark.parametrize("name", ["spec.json", "metrics.json", "complete.json"])
def test_a_fifo_for_a_record_is_one_sentence(run, runs: Path, fifo, name: str) -> None:
    fifo(runs / run.key / name)
    for ask in (store.load, archive.find, lambda runs, key: train.train_run(SPEC, runs)):
        with pytest.raises(InputError, match=rf"Run {run.key} is damaged \(.*{name} is a FIFO\): delete"):
            ask(runs, run.key)
    assert not doctor.examine_store(runs)[0]["ok"]


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json", "README.md", "curves.parquet"])
@pytest.mark.parametrize("checked", [True, False])
def test_a_fifo_for_a_file_of_a_model_is_one_sentence(run, runs: Path, fifo, name: str, checked: bool) -> None:
    found = store.load(runs, run.key)
    if not checked:
        (runs / run.key / store.MARK).write_text("{}")
    fifo(runs / run.key / name)
    with pytest.raises(InputError, match=f"^[^ ]*{name} is a FIFO; a file must be in its place.$"):
        trained.open_run(found)
    with pytest.raises(InputError, match=f"{name}.* is a FIFO"):
        pretrained.read_config(str(runs / run.key))


@pytest.mark.parametrize("name", ["checkpoint.safetensors", "progress.txt", "spec.json"])
def test_a_fifo_in_the_folder_of_a_training_is_one_sentence(home, tmp_path, fifo, name: str) -> None:
    key = SPEC.key(prepare(SPEC.data, paths.prepared_dir()).fingerprint)
    store.partial(tmp_path, key).mkdir()
    fifo(store.partial(tmp_path, key) / name)
    with pytest.raises(InputError, match=f"{name} is a FIFO; a file must be in its place"):
        train.train_run(SPEC, tmp_path)


def test_a_fifo_for_prepared_data_is_noticed(home, tmp_path, fifo) -> None:
    folder = prepare(SPEC.data, tmp_path).folder
    for name in ("data.json", "SHA256SUMS"):
        fifo(folder / name)
        assert not list(preparation.made_before(SPEC.data, tmp_path))
        assert prepare(SPEC.data, tmp_path, progress=False).folder == folder


def test_a_fifo_or_a_device_for_a_table_is_one_sentence(run, tmp_path, fifo) -> None:
    table = fifo(tmp_path / "mine.csv")
    for words in (("train", "--model", "standard-1x32", "--data"), ("evaluate", run.path), ("predict", run.path)):
        told = rtx(*words, table)
        assert told.returncode == 2 and told.stderr.endswith("mine.csv is a FIFO; a file must be in its place.\n")
    assert "/dev/null is a device" in rtx("predict", run.path, "--file", "/dev/null").stderr


@pytest.mark.parametrize("damage", [b"", b"PAR1 and no more"])
def test_a_damaged_table_is_one_sentence(run, runs: Path, tmp_path: Path, damage: bytes) -> None:
    (runs / run.key / "curves.parquet").write_bytes(damage)
    (tmp_path / "runs.parquet").write_bytes(damage)
    with pytest.raises(InputError, match=rf"Run {run.key} is damaged \(curves\.parquet .*\): delete {runs / run.key}"):
        archive.part(store.load(runs, run.key), "curves")
    (runs / run.key / store.MARK).write_text("{}")  # as an earlier version stored it
    for read in (lambda: archive.part(store.load(runs, run.key), "curves"), lambda: published.runs(tmp_path)):
        with pytest.raises(InputError, match=r"parquet is damaged \(.*\): delete it"):
            read()


@pytest.mark.parametrize("name", ["spec.json", "model.safetensors", "tokenizer.json"])
def test_a_run_that_may_not_be_read_is_not_called_damaged(run, runs: Path, monkeypatch, name: str) -> None:
    locked, open_, access = runs / run.key / name, Path.open, os.access

    def refused(path: Path, *args, **kwargs) -> object:
        if path == locked:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return open_(path, *args, **kwargs)

    monkeypatch.setattr(Path, "open", refused)
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != locked and access(path, mode))
    with pytest.raises(InputError, match="cannot be read; ask its owner"):
        use.predict(archive.find(runs, run.key), ["a film"])


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS])
def test_a_finished_run_in_a_read_only_store_needs_no_lock(run, runs: Path, monkeypatch, code: int) -> None:
    def refused(*args) -> None:
        raise OSError(code, "no")

    monkeypatch.setattr(store, "lock", refused)
    assert train.train_run(SPEC, runs).metrics == run.metrics
    with pytest.raises(InputError, match="cannot be written; ask its owner for write permission, or set RTX_HOME"):
        train.train_run(dataclasses.replace(SPEC, seed=1), runs)
    with pytest.raises(InputError, match="cannot be written; ask its owner"), archive.changing(run):
        pytest.fail("a latency would be added all the same")


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
        archive.sweep(tmp_path)
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
    assert lines == ["waiting for another process that trains the same"]

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


def one_epoch(file: Path | None = None, report: Callable[[str], None] = lambda _: None) -> torch.Tensor:
    """The weights after an epoch of a tiny model, which goes on from a checkpoint and keeps one."""
    model, plan = tiny(), dataclasses.replace(QUICK, epochs=1, word_dropout=0.1)
    trainer.Trainer(model, order_task(120, 0), order_task(40, 1), plan, 3, SPECIAL, CPU, file, report).run()
    return weights(model)


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> tuple[torch.Tensor, Path]:
    """The weights of a whole training, and the checkpoint of the same training that was killed."""
    file, save = tmp_path_factory.mktemp("killed") / "checkpoint.safetensors", checkpoint.save

    def kill(*args) -> None:
        save(*args)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(trainer, "CHECKPOINT_SECONDS", 0.0)
        patch.setattr(checkpoint, "save", kill)
        one_epoch(file)
    return one_epoch(), file


@pytest.mark.parametrize("how", ["foreign", "random", "empty", "short", "of other weights", "of another generator"])
def test_a_damaged_checkpoint_is_told_and_the_training_starts_anew(
    killed: tuple[torch.Tensor, Path], tmp_path: Path, how: str
) -> None:
    """The weights are those of a training without a checkpoint: nothing of the damaged file is kept."""
    whole, file = killed[0], Path(shutil.copy(killed[1], tmp_path))
    damaged(file, how)
    lines: list[str] = []
    again = one_epoch(file, lines.append)
    assert lines[0] == f"the checkpoint {file} is damaged: starting anew"
    assert torch.equal(again, whole)


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
