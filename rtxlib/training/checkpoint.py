"""A half-finished training, saved so that going on gives what an unbroken run would have given."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor


def save(path: Path, tensors: dict[str, dict[str, Tensor]], state: dict[str, Any]) -> None:
    """Write groups of tensors and a JSON-able state to one safetensors file, atomically.

    ``tensors`` maps a group ("model", "best", "optimizer", "random") to named tensors.
    """
    flat = {
        f"{group}/{name}": x.detach().cpu().contiguous()
        for group, named in tensors.items()
        for name, x in named.items()
    }
    temporary = path.with_suffix(".tmp")
    save_file(flat, temporary, metadata={"state": json.dumps(state)})
    os.replace(temporary, path)


def load(path: Path) -> tuple[dict[str, dict[str, Tensor]], dict[str, Any]]:
    """What :func:`save` wrote: groups of tensors, and the state.

    Raises OSError where the file may not be read, and all kinds of exceptions where it is not what :func:`save` wrote.
    """
    groups: dict[str, dict[str, Tensor]] = {}
    with safe_open(path, framework="pt") as file:
        state = json.loads(file.metadata()["state"])
        for key in file.keys():  # noqa: SIM118 - safe_open is not a mapping
            group, name = key.split("/", 1)
            groups.setdefault(group, {})[name] = file.get_tensor(key)
    return groups, state


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimiser's moments and step counts, named "<parameter number>.<kind>"."""
    state = optimizer.state_dict()["state"]
    return {f"{number}.{kind}": value for number, kinds in state.items() for kind, value in kinds.items()}


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Put back what :func:`optimizer_tensors` took; the parameter groups' settings stay as built."""
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        number, kind = key.split(".", 1)
        state.setdefault(int(number), {})[kind] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def random_state(device: torch.device) -> dict[str, Tensor]:
    """The state of torch's random generators, on the CPU and on ``device``."""
    state = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    return state


def restore_random(state: dict[str, Tensor], device: torch.device) -> None:
    torch.set_rng_state(state["cpu"])
    if device.type == "cuda" and "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"], device)
