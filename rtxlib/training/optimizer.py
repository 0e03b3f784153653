"""AdamW over groups of parameters with learning rates of their own, and the learning rate of every step."""

from __future__ import annotations

import math
import re

import torch
from torch import nn

from rtxlib.training.recipe import Recipe

_LAYER = re.compile(r"encoder\.stack\.(prelude|blocks\.\d+|coda)\.(\d+)\.")


def rate_scales(model: nn.Module, recipe: Recipe) -> dict[str, float]:
    """Parameter name -> its learning rate as a multiple of the recipe's, for each parameter that the recipe trains.

    The head has ``head_rate``. The encoder's top layer and everything above it have 1, each layer below has ``layer_decay``
    times the value of the layer above it (Howard & Ruder 2018), and the embeddings have the lowest. The layers of a shared
    block count once. With ``freeze_encoder`` only the head is trained.
    """
    layer_of = {name: match.groups() for name, _ in model.named_parameters() if (match := _LAYER.match(name))}
    parts = ("prelude", *(f"blocks.{number}" for number in range(len(model.encoder.stack.blocks))), "coda")
    upwards = sorted(set(layer_of.values()), key=lambda layer: (parts.index(layer[0]), int(layer[1])))
    places = {name: upwards.index(layer) for name, layer in layer_of.items()}
    top = max(places.values(), default=0)
    scales = {}
    for name, _ in model.named_parameters():
        if not name.startswith("encoder."):
            scales[name] = recipe.head_rate
        elif not recipe.freeze_encoder:
            place = -1 if name.startswith("encoder.embeddings.") else places.get(name, top)
            scales[name] = recipe.layer_decay ** (top - place)
    return scales


def make_optimizer(model: nn.Module, recipe: Recipe) -> torch.optim.AdamW:
    """AdamW (Loshchilov & Hutter 2019) over the parameters that the recipe trains. The others no longer require gradients.

    The parameters of a group share a scale (:func:`rate_scales`, kept as ``group["scale"]``) and a weight decay. Matrices have
    the recipe's weight decay. Biases and norms have none, because they should not be pulled to zero.
    """
    scales = rate_scales(model, recipe)
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name in scales)
        if name in scales:
            decay = recipe.weight_decay if parameter.ndim >= 2 else 0.0
            groups.setdefault((scales[name], decay), []).append(parameter)
    return torch.optim.AdamW(
        [{"params": p, "weight_decay": decay, "scale": scale} for (scale, decay), p in groups.items()],
        lr=recipe.learning_rate,
        betas=(0.9, recipe.beta2),
        fused=True,
    )


def rate_at(recipe: Recipe, step: int, total: int, plateau_factor: float) -> float:
    """The learning rate of a step: linear warm-up, then a cosine (Loshchilov & Hutter 2017) or a line to zero at ``total``.

    plateau_factor: what the plateau schedule multiplies the rate by; ``Trainer.judge`` halves it. That schedule has no warm-up
    and no other decay.
    """
    if recipe.schedule == "plateau":
        return recipe.learning_rate * plateau_factor
    warmup = max(1, round(recipe.warmup * total))
    if step < warmup:
        return recipe.learning_rate * (step + 1) / warmup
    done = (step - warmup) / max(1, total - warmup)
    return recipe.learning_rate * (1 - done if recipe.schedule == "linear" else 0.5 * (1 + math.cos(math.pi * done)))
