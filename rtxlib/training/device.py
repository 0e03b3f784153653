"""Where the arithmetic happens, and in which number format."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

import torch
from torch import Tensor

from rtxlib.errors import InputError

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def pick_device() -> torch.device:
    """The GPU when there is one, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def device_name(device: torch.device) -> str:
    """What the device calls itself, for provenance."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    threads = torch.get_num_threads()
    return f"CPU, {threads} thread{'' if threads == 1 else 's'}"


def pick_precision(wanted: str, device: torch.device) -> str:
    """Resolve ``"auto"``: bf16 where the device multiplies it natively, fp16 on an older GPU, fp32 on other CPUs.

    A CPU without AVX512-BF16 or AMX instructions emulates bf16, several times slower than fp32, so it is asked first.
    Raises InputError for an unknown word.
    """
    if wanted in DTYPES:
        return wanted
    if wanted != "auto":
        raise InputError(f"precision={wanted!r} is not one of auto, {', '.join(DTYPES)}.")
    if device.type == "cuda":
        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp16"
    native = torch.cpu._is_amx_tile_supported() or torch.cpu._is_avx512_bf16_supported()
    return "bf16" if native else "fp32"


def moved(batch: Mapping[str, Tensor | None], device: torch.device) -> dict[str, Tensor]:
    """A batch on the device, without what it lacks; to a GPU from pinned memory, so that the host need not wait."""
    there = {name: x for name, x in batch.items() if x is not None}
    if device.type == "cuda":
        there = {name: x.pin_memory() for name, x in there.items()}
    return {name: x.to(device, non_blocking=True) for name, x in there.items()}


def autocast(precision: str, device: torch.device) -> contextlib.AbstractContextManager:
    """Matrix products in ``precision``, weights kept in fp32; no effect for fp32."""
    if precision == "fp32":
        return contextlib.nullcontext()
    return torch.autocast(device.type, dtype=DTYPES[precision])
