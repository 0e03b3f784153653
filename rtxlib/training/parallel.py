"""Data parallelism: several processes train one model, each on its share of the rows of every step.

``torchrun`` and ``accelerate launch`` start the processes and tell each its place by environment variables. Every process
holds the whole model, works on its rows, and adds its gradients to those of the others (synchronous SGD, Chen et al. 2016), so
that a step is that of one process with the same global batch, up to the order of the additions; only what is drawn at random
(dropout, hidden words, a random number of passes) is drawn anew in each. Alone, every function here does nothing.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Sequence

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from rtxlib.errors import InputError

_AGREE_EVERY = 20  # steps between two questions to all processes, each of which costs a message


def join() -> None:
    """Meet the other processes, once, if this one was started as one of several.

    Raises InputError when it was not told all, or when there are more processes than GPUs.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) > 1 and not dist.is_initialized():
        if untold := [name for name in ("RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT") if name not in os.environ]:
            raise InputError(f"WORLD_SIZE is set, but not {', '.join(untold)}: start with torchrun, or unset WORLD_SIZE.")
        if torch.cuda.is_available():
            place, gpus = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
            if place >= gpus:
                raise InputError(
                    f"Process {place + 1} of this machine has no GPU of its own (GPUs here: {gpus}); start torchrun with "
                    f"--nproc-per-node {gpus}, or set CUDA_VISIBLE_DEVICES= to train on the CPU."
                )
            torch.cuda.set_device(place)
        dist.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo")
        atexit.register(dist.destroy_process_group)


def processes() -> int:
    """How many processes train together."""
    return dist.get_world_size() if dist.is_initialized() else 1


def rank() -> int:
    """This process's number among them, from 0; number 0 evaluates, reports and writes."""
    return dist.get_rank() if dist.is_initialized() else 0


def share(rows: np.ndarray) -> np.ndarray:
    """This process's part of the rows of a batch: every so-many-th, so that all get texts of like length."""
    return rows[rank() :: processes()]


def add_up(tensors: Sequence[Tensor]) -> None:
    """Replace each tensor by its sum over all processes, in one message."""
    if processes() > 1:
        flat = torch.cat([x.reshape(-1) for x in tensors])
        dist.all_reduce(flat)
        for x, total in zip(tensors, flat.split([x.numel() for x in tensors]), strict=True):
            x.copy_(total.view_as(x))


def from_first(values: Callable[[], Sequence[float]], count: int, device: torch.device) -> list[float]:
    """``count`` numbers that process 0 computes, known to all, so that all decide alike."""
    if processes() == 1:
        return list(values())
    numbers = torch.zeros(count, dtype=torch.float64, device=device)
    if rank() == 0:
        numbers.copy_(torch.tensor(values(), dtype=torch.float64))
    dist.broadcast(numbers, 0)
    return numbers.tolist()


def due(wanted: bool, step: int, device: torch.device) -> bool:
    """Whether process 0 wants something now; asked of all, but not at every step, and alone at once."""
    if processes() == 1:
        return wanted
    return step % _AGREE_EVERY == 0 and bool(from_first(lambda: [float(wanted)], 1, device)[0])


def gather(x: Tensor, device: torch.device) -> Tensor:
    """The tensors (n,) of all processes, (processes, n), in each of them; on the CPU."""
    if processes() == 1:
        return x[None]
    parts = [torch.empty_like(x, device=device) for _ in range(processes())]
    dist.all_gather(parts, x.to(device))
    return torch.stack(parts).cpu()
