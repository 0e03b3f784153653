"""Two processes train the same model as one process."""

from __future__ import annotations

import json
import multiprocessing
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from test_cli import SMALL

from rtxlib.data.batching import Tokens
from rtxlib.data.datasets import Generated
from rtxlib.errors import InputError
from rtxlib.models import build
from rtxlib.runs.spec import RunSpec
from rtxlib.runs.train import train_run
from rtxlib.training import checkpoint, parallel, trainer
from rtxlib.training.recipe import RECIPES, Recipe

# Each process is forked from one that has loaded the libraries.
forkserver = multiprocessing.get_context("forkserver")


def one_process(folder: Path, dropout: float, stop: int, environment: dict[str, str]) -> None:
    """Write the weights of this process, and print the curve if it is the first. After checkpoint ``stop`` it ends abruptly."""
    os.environ.update(environment)
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(folder / f"{name}-{environment['RANK']}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    torch.set_num_threads(1)
    parallel.join()
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 150)
    texts = [np.concatenate(([2], rng.integers(5 + 5 * y, 25 + 5 * y, rng.integers(3, 9)), [3])) for y in labels]
    data = Tokens(np.concatenate(texts).astype(np.int32), np.cumsum([0, *map(len, texts)]), labels.astype(np.int64))
    rows = {"batch_rows": 31, "batch_tokens": 120, "evaluations_per_epoch": 2, "word_dropout": dropout}
    recipe = Recipe(name="parallel", learning_rate=3e-3, epochs=3, precision="fp32", **rows)
    rates = dict.fromkeys(("hidden_dropout", "attention_dropout", "classifier_dropout"), dropout)
    model = build("recurrent-1x2x32", vocab_size=40, **rates)
    trainer.CHECKPOINT_SECONDS, trainer.AGREE_EVERY = 0.0, 1
    save, saved = checkpoint.save, []

    def counted(*given: object) -> None:
        save(*given)
        saved.append(1)
        if len(saved) == stop:
            os._exit(9)

    checkpoint.save = counted
    special = {"pad": 0, "unk": 1, "cls": 2, "sep": 3}
    given = model, data, data, recipe, 5, special, torch.device("cpu"), folder / "checkpoint.safetensors"
    result = trainer.Trainer(*given).run()
    save_file(model.state_dict() | {"draw": torch.rand(9)}, folder / f"weights-{parallel.rank()}.safetensors")
    if parallel.rank() == 0:
        print(json.dumps(result.curve.drop(columns="seconds").to_dict("list")))


def train(folder: Path, processes: int, dropout: float = 0.0, stop: int = 0) -> tuple[int, dict[str, list[float]]]:
    """The exit status of process 0, and the curve if it is 0. The processes learn of each other as from torchrun."""
    folder.mkdir(exist_ok=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    place = {"WORLD_SIZE": str(processes), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    environments = [os.environ | place | {"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(processes)]
    forkserver.set_forkserver_preload([train_run.__module__, "torch._dynamo"])  # an optimizer loads the second
    started = [forkserver.Process(target=one_process, args=(folder, dropout, stop, given), daemon=True) for given in environments]
    for process in started:
        process.start()
    for process in started:
        process.join(timeout=300)
    status = started[0].exitcode
    assert status is not None and (status == 0 or stop), (folder / "err-0").read_text()[-2000:]
    first, *others = [(folder / f"out-{rank}").read_text() for rank in range(processes)]
    assert not any(others)
    return status, json.loads(first.strip().splitlines()[-1]) if status == 0 else {}


def result(folder: Path, rank: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The final weights of a process, and the next numbers of its random generator."""
    tensors = load_file(folder / f"weights-{rank}.safetensors")
    draw = tensors.pop("draw").numpy()
    return np.concatenate([x.numpy().ravel() for x in tensors.values()]), draw


def test_two_processes_give_the_losses_of_one_with_the_same_batch(tmp_path: Path) -> None:
    _, alone = train(tmp_path / "one", 1)
    _, together = train(tmp_path / "two", 2)
    assert alone["step"] == together["step"]
    for column in ("train_loss", "val_loss", "val_accuracy", "grad_norm"):
        np.testing.assert_allclose(together[column], alone[column], atol=1e-5, rtol=1e-4, err_msg=column)
    assert alone["train_loss"][-1] < alone["train_loss"][0]
    (first, drawn_first), (second, drawn_second) = (result(tmp_path / "two", rank) for rank in range(2))
    assert np.array_equal(first, second)
    assert not np.array_equal(drawn_first, drawn_second)  # otherwise dropout would hit the same places in both shares
    np.testing.assert_allclose(first, result(tmp_path / "one")[0], atol=1e-4)


def test_two_processes_that_are_killed_go_on_to_the_same_weights(tmp_path: Path) -> None:
    train(tmp_path / "whole", 2, dropout=0.2)
    status, _ = train(tmp_path / "broken", 2, dropout=0.2, stop=7)
    assert status != 0 and (tmp_path / "broken" / "checkpoint.safetensors").is_file()
    train(tmp_path / "broken", 2, dropout=0.2)
    for rank in range(2):
        for resumed, unbroken in zip(result(tmp_path / "broken", rank), result(tmp_path / "whole", rank), strict=True):
            assert np.array_equal(resumed, unbroken)


def test_accelerate_trains_one_run_which_torchrun_finds_again(tmp_path: Path) -> None:
    words = [*SMALL, "--recipe-set", "precision=fp32"]
    accelerate = ["-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2", "--num_machines", "1"]
    accelerate += ["--main_process_port", "0", "--mixed_precision", "no", "--dynamo_backend", "no", "-m", "rtx"]
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "rtx"]
    found = []
    for start in (accelerate, torchrun, ["-m", "rtx"]):
        done = subprocess.run(
            [sys.executable, *start, *words],
            capture_output=True,
            text=True,
            env=os.environ | {"RTX_HOME": str(tmp_path)},
            timeout=300,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        lines = done.stdout.strip().splitlines()
        assert len(lines) == 1  # process 1 prints nothing
        found.append(json.loads(lines[0]))
    together, again, alone = found
    assert together == again and (together["processes"], alone["processes"]) == (2, 1)
    assert together["key"] != alone["key"]
    assert abs(together["test_loss"] - alone["test_loss"]) < 0.1  # only dropout was drawn differently
    assert len(list((tmp_path / "data" / "runs").glob("*/complete.json"))) == 2


def test_a_run_of_several_processes_is_refused_where_one_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RTX_HOME", str(tmp_path))
    spec = RunSpec(
        "recurrent-1x2x32", Generated(rows=240, vocab_size=400), RECIPES["smoke"], processes=3
    )
    with pytest.raises(InputError, match="run of 3 processes, and 1 started; use torchrun --nproc-per-node 3"):
        train_run(spec, tmp_path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("WORLD_SIZE", value) for value in ("x", "", "0", "-1", "2.0", "9" * 5000)),
        *(("RANK", value) for value in ("x", "2", "-1")),
        *(("LOCAL_RANK", value) for value in ("x", "2")),
        *(("MASTER_PORT", value) for value in ("x", "0", "65536", "")),
    ],
)
def test_a_malformed_variable_of_torchrun_is_named(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told = {"WORLD_SIZE": "2", "RANK": "0", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
    for variable, given in (told | {name: value}).items():
        monkeypatch.setenv(variable, given)
    with pytest.raises(InputError, match=rf"^{name}={value[:200]}…? is no whole number from .*unset WORLD_SIZE\.$"):
        parallel.join()


def test_processes_that_cannot_connect_say_where(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        told = {"WORLD_SIZE": "2", "RANK": "0", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1"}
        for variable, given in (told | {"MASTER_PORT": str(taken.getsockname()[1])}).items():
            monkeypatch.setenv(variable, given)
        with pytest.raises(InputError, match=r"could not connect at 127\.0\.0\.1"):
            parallel.join()
