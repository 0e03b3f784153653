"""A training step on torch's meta device, in place of a GPU. Its tensors have shapes and no values.

An operation that combines them with a tensor on the CPU raises, and so does reading a value, which on a GPU would wait for it. A
forward and a backward pass that finish have done neither.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from rtx import doctor
from rtxlib.errors import InputError
from rtxlib.models import build
from rtxlib.training import parallel
from rtxlib.training.device import autocast
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
