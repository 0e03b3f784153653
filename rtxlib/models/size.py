"""The size of a model before it is built: its parameters, and whether it fits into memory."""

from __future__ import annotations

import dataclasses
import sys

import torch
from torch import nn

from rtxlib.errors import InputError
from rtxlib.memory import available_memory, short_of_memory
from rtxlib.models.config import ModelConfig
from rtxlib.models.encoder import Embeddings, without_weights
from rtxlib.models.layers import EncoderLayer, PassParts, make_norm
from rtxlib.models.residual import PassResidual

WEIGHT_BYTES = 4  # of a parameter: weights are float32


def parameter_count(config: ModelConfig) -> dict[str, int]:
    """``total``, ``embedding`` (only the token table) and ``non_embedding`` parameters of a classifier with this configuration.

    They are those of :func:`rtxlib.runs.cost.parameters`. One part of each kind is made, without memory for its weights, and
    multiplied by the number of such parts, so that a model of any size is counted at once.
    """
    d, passes = config.hidden_size, config.recurrent_depth
    copies = 1 if config.block_sharing == "shared" else passes
    layers = config.prelude_layers + copies * config.num_hidden_layers + config.coda_layers
    with without_weights():
        parts: list[tuple[nn.Module, int]] = [
            (embeddings := Embeddings(config), 1),
            (EncoderLayer(config, 0), 1),  # the first layer may lack a norm
            (EncoderLayer(config, 1), layers - 1),
            (PassResidual(config), 1),
        ]
        if config.conditioning_size is not None:
            light = dataclasses.replace(config, intermediate_size=config.conditioning_size, local_attention=None)
            parts.append((EncoderLayer(light, 1), passes - 1))
        if config.pass_norms or config.pass_rank:
            parts.append((PassParts(config, EncoderLayer(config, 1)), passes * config.num_hidden_layers))
        if config.loop_norm or config.final_norm:
            parts.append((make_norm(config), config.loop_norm + config.final_norm))
    total = sum(_numbers(part) * count for part, count in parts)
    total += passes * d if config.iteration_embedding else 0
    total += d * d + d if config.pooling == "pooler" else 0
    total += (d + 1) * config.num_labels
    embedding = _numbers(embeddings.token)
    return {"total": total, "embedding": embedding, "non_embedding": total - embedding}


def _numbers(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


def require_room(
    name: str,
    config: ModelConfig,
    doing: str,
    bytes_each: float,
    further: int = 0,
    advice: str = "take a smaller model",
    device: torch.device | None = None,
) -> None:
    """Raise InputError, with the estimate and the room there is, if a model cannot fit into the memory of a device.

    Args:
        name: the model in the sentence
        config: its configuration
        doing: "building" or "training"
        bytes_each: memory of a parameter in bytes
        further: bytes that come on top
        advice: what to do instead
        device: where it is to fit; None: the CPU
    """
    count = parameter_count(config)["total"]
    needed = count * bytes_each + further
    device = device or torch.device("cpu")
    if device.type == "cuda":
        where, room = "the GPU", torch.cuda.mem_get_info(device)[0]
    else:
        where, room = short_of_memory(), available_memory() if device.type == "cpu" else sys.maxsize
    if needed > room:
        raise InputError(
            f"{name} has {_short(count)} parameters; {doing} it needs about {_gigabytes(needed)} GB of memory, and "
            f"{where} has {_gigabytes(room)} free; {advice}."
        )


def _gigabytes(count: float) -> str:
    return f"{count / 1e9:,.1f}" if count >= 1e9 else f"{count / 1e9:.3f}"


def _short(count: int) -> str:
    """A count as a sentence gives it: "12.3 billion", "25.9 million" or "1,234"."""
    for size, word in ((10**9, "billion"), (10**6, "million")):
        if count >= size:
            return f"{count / size:,.1f} {word}"
    return f"{count:,}"
