"""A training step on torch's meta device, in place of a GPU. Its tensors have shapes and no values.

An operation that combines them with a tensor on the CPU raises, and so does reading a value, which on a GPU would wait for it. A
forward and a backward pass that finish have done neither.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from pathlib import Path

import psutil
import pytest
import torch
import torch.nn.functional as F

from rtx import doctor
from rtx.executors import gpu, local
from rtxlib.data.datasets import Generated
from rtxlib.errors import InputError
from rtxlib.models import build
from rtxlib.runs import store
from rtxlib.runs.spec import RunSpec
from rtxlib.training import parallel
from rtxlib.training.device import autocast
from rtxlib.training.recipe import RECIPES
from rtxlib.training.trainer import word_dropout
from rtxstudy import profiles
from rtxstudy.studies import forms

META = torch.device("meta")
LOOPS = {name: ("recurrent-1x3x64", changes) for name, changes in forms(profiles.load("smoke").loops[0]).items()}
OTHERS = {name: (name, {}) for name in ("standard-2x64", "bert-tiny", "minilm-l3", "transformer-base")} | {
    "alibi": ("standard-2x64", {"position": "alibi"}),
    "sliding window": ("modernbert-base", {"num_hidden_layers": 4, "local_attention": 8}),
}


@pytest.mark.parametrize(("name", "changes"), (LOOPS | OTHERS).values(), ids=LOOPS | OTHERS)
@pytest.mark.parametrize("padded", [True, False])
def test_a_training_step_stays_on_its_device_and_reads_no_value(name: str, changes: dict, padded: bool) -> None:
    model = build(name, **changes).to(META).train()
    ids = torch.zeros(4, 17, dtype=torch.long, device=META)
    ids = word_dropout(ids, 0.1, 3, torch.tensor([0, 1, 2], device=META))
    logits = model(input_ids=ids, attention_mask=torch.ones_like(ids) if padded else None).logits
    F.cross_entropy(logits, torch.zeros(4, dtype=torch.long, device=META)).backward()
    assert logits.device == META
    assert {p.grad.device for p in model.parameters() if p.grad is not None} == {META}


def test_the_meta_device_refuses_reads_and_mixed_devices() -> None:
    with pytest.raises(RuntimeError, match="meta"):
        torch.ones(1, device=META).item()
    with pytest.raises(RuntimeError, match="meta"):
        torch.ones(2, device=META) + torch.ones(2)


def test_more_processes_than_gpus_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    told = {"WORLD_SIZE": "2", "RANK": "1", "LOCAL_RANK": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(InputError, match=r"Process 2 of this machine has no GPU of its own.*--nproc-per-node 1"):
        parallel.join()


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("asked", [True, False])
def test_a_forward_pass_leaves_out_the_attention_that_plans_for_each_shape(precision: str, asked: bool) -> None:
    """cuDNN's took most of the first training of a process on a GPU. What the caller had set is back afterwards."""
    usual = torch.backends.cuda.cudnn_sdp_enabled()
    torch.backends.cuda.enable_cudnn_sdp(asked)
    try:
        with contextlib.suppress(ZeroDivisionError), autocast(precision, torch.device("cpu")):
            assert not torch.backends.cuda.cudnn_sdp_enabled()
            assert torch.is_autocast_enabled("cpu") == (precision == "bf16")
            raise ZeroDivisionError
        assert torch.backends.cuda.cudnn_sdp_enabled() == asked
    finally:
        torch.backends.cuda.enable_cudnn_sdp(usual)


def test_the_doctor_reports_a_gpu_that_torch_cannot_use(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    monkeypatch.setattr(doctor, "NVIDIA", tmp_path / "no device")  # where the tests run on a GPU there is one
    assert "NVIDIA" not in doctor._device()
    monkeypatch.setattr(doctor.shutil, "which", lambda name: f"/usr/bin/{name}")
    assert "an NVIDIA GPU is here that this torch cannot use" in doctor._device()


def stand_in(spec: RunSpec, runs: Path, *_: object, **__: object) -> store.Run:
    """In place of a training that needs 4,000 of the 16,000 MB of a GPU: seeds 1 to 3 wait until all three are at work."""
    log = runs.parent / "log"
    with log.open("a") as file:
        file.write(f"begun {spec.seed} {os.getpid()}\n")
    if spec.seed:  # the process of the first run has left the GPU before another comes
        assert not psutil.pid_exists(int(log.read_text().split(maxsplit=3)[2]))
    deadline = time.monotonic() + 300
    while spec.seed in (1, 2, 3) and log.read_text().count("begun") < 4 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert time.monotonic() < deadline
    with store.writing(runs, str(spec.seed)) as folder:
        store.write_json(folder / "spec.json", spec.canonical() | {"label_names": ["a", "b"]})
        needed = {"peak_memory_mb": 3_400.0, "device_memory_mb": 16_000.0}
        store.write_json(folder / "metrics.json", {"accuracy": 0.5, "train_seconds": 1.0, **needed})
    with log.open("a") as file:
        file.write(f"ended {spec.seed} {os.getpid()}\n")
    return store.load(runs, str(spec.seed))


def test_runs_share_the_gpu_of_this_machine_as_its_memory_allows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first run has it alone and is measured. Then three fit at once, each in a process that ends with its run."""
    monkeypatch.setattr(local, "train_run", stand_in)
    monkeypatch.setattr(local, "cores", lambda: 8)
    monkeypatch.setattr(local, "pick_device", lambda: torch.device("cuda"))
    spec = RunSpec("standard-1x32", Generated(), RECIPES["smoke"])
    missing = {str(seed): dataclasses.replace(spec, seed=seed) for seed in range(5)}
    said: list[str] = []
    local.train_all(missing, tmp_path / "runs", said.append, {})
    assert gpu.share(3_400, 16_000) == 0.3
    lines = [line.split() for line in (tmp_path / "log").read_text().splitlines()]
    assert [line[:2] for line in lines[:2]] == [["begun", "0"], ["ended", "0"]]
    assert [line[0] for line in lines[2:6]] == [*["begun"] * 3, "ended"]  # and the fifth waits until one has ended
    processes = {int(process) for _, _, process in lines}
    assert len(processes) == 5
    for _ in range(600):
        if not any(map(psutil.pid_exists, processes)):
            break
        time.sleep(0.1)
    assert not any(map(psutil.pid_exists, processes))
    assert [line.partition("]")[0] for line in said] == [f"[{number}/5" for number in range(1, 6)]
