"""A half-finished training in a file, from which a resumed training gives the same result as an uninterrupted one."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from rtxlib.atomic import replacing
from rtxlib.checksums import regular


@dataclass
class Progress:
    """Where a training stands, in numbers: the part of a checkpoint that is not tensors."""

    step: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    training_seconds: float = 0.0
    rows: int = 0
    tokens: int = 0  # without padding
    computed: int = 0  # tokens with padding
    best_loss: float = math.inf  # the lowest validation loss
    best_epoch: float = 0.0  # the epoch of the weights to keep
    reference_loss: float = math.inf  # early stopping waits for a loss that is lower than this by min_delta
    evaluations_without_progress: int = 0  # since reference_loss fell
    evaluations_on_plateau: int = 0  # since the plateau schedule saw a better loss or halved the rate
    rate_factor: float = 1.0  # the product of the plateau schedule's halvings
    losses: list[float] = field(default_factory=list)  # training loss of each step since the last evaluation
    grad_norms: list[float] = field(default_factory=list)  # likewise
    curve: list[dict[str, float]] = field(default_factory=list)
    stopped: bool = False  # by early stopping


def save(path: Path, tensors: dict[str, dict[str, Tensor]], progress: Progress) -> None:
    """Write groups of tensors and the progress to one safetensors file, whole or not at all.

    tensors: group ("model", "best", "mean", "optimizer", "random", "scale") -> name -> tensor.
    """
    flat = {
        f"{group}/{name}": x.detach().cpu().contiguous()
        for group, named in tensors.items()
        for name, x in named.items()
    }
    with replacing(path) as temporary:
        save_file(flat, temporary, metadata={"state": json.dumps(vars(progress))})


def load(path: Path) -> tuple[dict[str, dict[str, Tensor]], Progress]:
    """The groups of tensors and the progress that :func:`save` wrote.

    Raises OSError when the file may not be read, and any exception when the file is damaged.
    """
    groups: dict[str, dict[str, Tensor]] = {}
    with safe_open(regular(path), framework="pt") as file:
        progress = Progress(**json.loads(file.metadata()["state"]))
        for key in file.keys():  # noqa: SIM118 - safe_open is not a mapping
            group, name = key.split("/", 1)
            groups.setdefault(group, {})[name] = file.get_tensor(key)
    return groups, progress


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimiser's moments and step counts, named "<parameter number>.<kind>"."""
    state = optimizer.state_dict()["state"]
    return {f"{number}.{kind}": value for number, kinds in state.items() for kind, value in kinds.items()}


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Put back the tensors of :func:`optimizer_tensors`. The settings of the parameter groups stay as they are."""
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        number, kind = key.split(".", 1)
        state.setdefault(int(number), {})[kind] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def random_state(device: torch.device) -> dict[str, Tensor]:
    """The states of torch's random generators on the CPU and on ``device``."""
    state = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    return state


def restore_random(state: dict[str, Tensor], device: torch.device) -> None:
    """Put back the states of :func:`random_state`."""
    torch.set_rng_state(state["cpu"])
    if device.type == "cuda" and "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"], device)
