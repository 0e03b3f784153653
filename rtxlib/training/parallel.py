"""Data parallelism: several processes train one model, each on its share of the rows of every step.

``torchrun`` and ``accelerate launch`` start the processes and describe them in environment variables. Every process holds
the whole model, computes gradients of its own rows, and adds up the gradients of all processes (synchronous SGD, Chen et al.
2016). A step is therefore the same as in one process with the same batch, up to the order of the additions. Random draws
(dropout, masked words, a random number of passes) differ between the processes. In a single process every function here
returns at once.
"""

from __future__ import annotations

import atexit
import os
import re
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from rtxlib.errors import InputError, shortened

Answer = TypeVar("Answer")


def join() -> None:
    """Connect to the other processes, if this process was started as one of several. A second call does nothing.

    Raises InputError when environment variables are missing or malformed, when the processes cannot connect, or when there
    are more of them than GPUs.
    """
    together = _number("WORLD_SIZE", 1) if "WORLD_SIZE" in os.environ else 1
    if together > 1 and not dist.is_initialized():
        if untold := [name for name in ("RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT") if name not in os.environ]:
            raise InputError(f"WORLD_SIZE is set, but not {', '.join(untold)}: start with torchrun, or unset WORLD_SIZE.")
        _number("RANK", 0, together - 1)
        _number("MASTER_PORT", 1, 65535)
        place = _number("LOCAL_RANK", 0, together - 1)
        if torch.cuda.is_available():
            gpus = torch.cuda.device_count()
            if place >= gpus:
                raise InputError(
                    f"Process {place + 1} of this machine has no GPU of its own (GPUs here: {gpus}); start torchrun with "
                    f"--nproc-per-node {gpus}, or set CUDA_VISIBLE_DEVICES= to train on the CPU."
                )
            torch.cuda.set_device(place)
        # Gradients on GPUs travel by NCCL. Decisions and random states are on the CPU and travel by Gloo.
        try:
            dist.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo")
        except RuntimeError as error:  # of the network, or a time-out
            where = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
            raise InputError(
                f"The {together} processes could not connect at {where} ({str(error).splitlines()[0]}); start all of them, with "
                "MASTER_ADDR a machine that each reaches and MASTER_PORT a free port of it."
            ) from error
        atexit.register(dist.destroy_process_group)


def _number(name: str, least: int, most: int | None = None) -> int:
    """The whole number in an environment variable that torchrun sets. Raises InputError when it is none, or out of range."""
    written = os.environ[name].strip()
    if re.fullmatch("[0-9]{1,9}", written) and int(written) >= least and (most is None or int(written) <= most):
        return int(written)
    upwards = f"from {least}" if most is None else f"from {least} to {most}"
    raise InputError(f"{name}={shortened(written)} is no whole number {upwards}: start with torchrun, or unset WORLD_SIZE.")


def processes() -> int:
    """The number of processes that train together."""
    return dist.get_world_size() if dist.is_initialized() else 1


def rank() -> int:
    """The number of this process, from 0. Process 0 evaluates, reports and writes."""
    return dist.get_rank() if dist.is_initialized() else 0


def share(rows: np.ndarray) -> np.ndarray:
    """The rows of a batch that belong to this process: every ``processes()``-th, so that all shares have similar lengths."""
    return rows[rank() :: processes()]


def agree(decide: Callable[[], Answer]) -> Answer:
    """What ``decide`` returns in process 0, in every process. The other processes do not call ``decide``."""
    if processes() == 1:
        return decide()
    answer = [decide() if rank() == 0 else None]
    dist.broadcast_object_list(answer, src=0, device=torch.device("cpu"))
    return answer[0]


def barrier() -> None:
    """Wait until all processes are here."""
    if processes() > 1:
        dist.barrier()


def add_up(tensors: Sequence[Tensor]) -> None:
    """Replace each tensor by its sum over all processes, in one message."""
    if processes() > 1:
        flat = torch.cat([x.reshape(-1) for x in tensors])
        dist.all_reduce(flat)
        for x, total in zip(tensors, flat.split([x.numel() for x in tensors]), strict=True):
            x.copy_(total.view_as(x))


def gather(x: Tensor) -> Tensor:
    """The tensors of all processes, (processes, n), in each of them. x: (n,) on the CPU, of the same size everywhere."""
    if processes() == 1:
        return x[None]
    parts = [torch.empty_like(x) for _ in range(processes())]
    dist.all_gather(parts, x)
    return torch.stack(parts)
