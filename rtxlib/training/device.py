"""The device that computes, and the number format it computes in."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn

from rtxlib.errors import InputError, counted
from rtxlib.memory import release_freed_memory

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def pick_device() -> torch.device:
    """The GPU if there is one, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


@contextlib.contextmanager
def training_threads(number: int) -> Iterator[None]:
    """Train with so many CPU threads in the block. Afterwards the old number is back, and freed memory is returned."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
        release_freed_memory()


@contextlib.contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """The model is in evaluation mode in the block. Afterwards each module has its own mode again: a frozen one stays in it."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode


def device_name(device: torch.device) -> str:
    """The device's own name, for provenance."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else f"CPU, {counted(torch.get_num_threads(), 'thread')}"


def pick_precision(wanted: str, device: torch.device) -> str:
    """Resolve ``"auto"``: bf16 if the device multiplies it natively, else fp16 on a GPU and fp32 on a CPU.

    A CPU without AVX512-BF16 or AMX instructions emulates bf16, which is slower than fp32. Raises InputError for an unknown
    word.
    """
    if wanted in DTYPES:
        return wanted
    if wanted != "auto":
        raise InputError(f"precision={wanted!r} is not one of auto, {', '.join(DTYPES)}.")
    if device.type == "cuda":
        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp16"
    native = torch.cpu._is_amx_tile_supported() or torch.cpu._is_avx512_bf16_supported()
    return "bf16" if native else "fp32"


def moved(batch: Mapping[str, Tensor | list[int] | None], device: torch.device) -> dict[str, Tensor | list[int]]:
    """A batch with its tensors on the device, without its entries that are None; lists of numbers stay on the host.

    Pinned memory lets the host go on while a GPU copies.
    """
    there = {name: x for name, x in batch.items() if x is not None}
    tensors = {name: x for name, x in there.items() if isinstance(x, Tensor)}
    if device.type == "cuda":
        tensors = {name: x.pin_memory() for name, x in tensors.items()}
    return there | {name: x.to(device, non_blocking=True) for name, x in tensors.items()}


@contextlib.contextmanager
def autocast(precision: str, device: torch.device) -> Iterator[None]:
    """Compute matrix products in ``precision`` in the block; the weights stay in fp32.

    On a GPU attention is any but cuDNN's, which makes a plan for each new shape. On an NVIDIA H100 a plan took 19 ms, a step of
    three layers of 256 took 16 ms, and batches of texts have many shapes.
    """
    with contextlib.ExitStack() as stack:
        stack.callback(torch.backends.cuda.enable_cudnn_sdp, torch.backends.cuda.cudnn_sdp_enabled())
        torch.backends.cuda.enable_cudnn_sdp(False)
        if precision != "fp32":
            stack.enter_context(torch.autocast(device.type, dtype=DTYPES[precision]))
        yield
