"""The size of a model: its parameters, megabytes and arithmetic per text, and whether it fits into memory before it is built."""

from __future__ import annotations

import dataclasses
import sys

import torch
from torch import nn
from transformers import PretrainedConfig

from rtxlib.errors import InputError
from rtxlib.memory import available_memory, short_of_memory
from rtxlib.models.config import ModelConfig
from rtxlib.models.encoder import Embeddings, EncoderBase, without_weights
from rtxlib.models.layers import EncoderLayer, PassParts, make_norm
from rtxlib.models.residual import PassResidual

WEIGHT_BYTES = 4  # of a parameter: weights are float32
MATRICES = {"swiglu": 3, "geglu": 3, "gelu": 2, "relu": 2}  # of a feed-forward layer; a gated one has a third


def parameters(model: EncoderBase) -> dict[str, int]:
    """``total``, ``embedding`` (only the embedding matrix) and ``non_embedding`` parameters. A shared block counts once."""
    total = sum(p.numel() for p in model.parameters())  # .parameters() lists a shared tensor once
    embedding = model.get_input_embeddings().weight.numel()
    return {"total": total, "embedding": embedding, "non_embedding": total - embedding}


def size_mb(model: nn.Module) -> float:
    """Megabytes (10⁶ bytes) of the weights in their own precision. Shared weights count once."""
    return sum(p.numel() * p.element_size() for p in model.parameters()) / 1e6


def forward_flops(config: PretrainedConfig, length: int, recurrent_depth: int | None = None) -> int:
    """Floating-point operations of one forward pass over one text of ``length`` tokens. A multiply-add counts as two.

    Only matrix products are counted, as in ``torch.utils.flop_counter``: not norms, activations, rotations, softmax and
    biases. With width d, T tokens and feed-forward width m, a layer costs 8Td² (query, key, value, output) + 4T²d (scores and
    their weighted sum) + 2kTdm, where k is 3 for gated feed-forwards and 2 otherwise. A layer of the block runs
    ``recurrent_depth`` times (None: as often as the configuration says), shared or not: sharing saves parameters but no
    arithmetic. Prelude and coda run once. A conditioning layer runs before each later pass. A gate on the residual adds 4Td²
    per pass (4d² in the last one if only [CLS] is read and there is no coda), and an embedding matrix of width E adds 2TEd. A
    low-rank addition to a map from i to o values adds 2Tr(i + o).

    If the pooling reads [CLS], the last layer computes keys and values for all tokens and everything else for [CLS] only,
    which costs 4Td² + 4d² + 4Td + 2kdm.

    Raises ``InputError`` for a length below 1 or an unknown feed-forward.
    """
    if length < 1:
        raise InputError(f"A text has at least one token, not {length}.")
    if config.feedforward not in MATRICES:
        raise InputError(f"Feed-forward '{config.feedforward}' is none of {', '.join(MATRICES)}.")
    d, t, m, k = config.hidden_size, length, config.resolved_intermediate_size, MATRICES[config.feedforward]
    passes = recurrent_depth or config.recurrent_depth
    attention = 8 * t * d * d + 4 * t * t * d
    layer = attention + 2 * k * t * d * m
    last = 4 * t * d * d + 4 * d * d + 4 * t * d + 2 * k * d * m
    total = layer * (config.prelude_layers + config.num_hidden_layers * passes + config.coda_layers)
    if config.reads_cls:
        total += last - layer
    if config.residual == "gated":
        gate = 4 * d * d  # of one token
        total += gate * (t * passes - (t - 1 if config.reads_cls and not config.coda_layers else 0))
    if config.conditioning_size is not None:
        total += (attention + 2 * k * t * d * config.conditioning_size) * (passes - 1)
    if config.pass_rank:
        maps = [(d, 3 * d), (d, d), (d, 2 * m if k == 3 else m), (m, d)]  # qkv first
        qkv, *others = [2 * min(config.pass_rank, i, o) * (i + o) for i, o in maps]  # of one token
        added = t * (qkv + sum(others))
        total += added * passes * config.num_hidden_layers
        if config.reads_cls and not config.coda_layers:
            total += 2 * min(config.pass_rank, d) * (3 * d * t + 2 * d) + sum(others) - added
    if config.embedding_size not in (None, d):
        total += 2 * t * config.embedding_size * d
    if config.pooling == "pooler":
        total += 2 * d * d
    return total + 2 * d * config.num_labels


def parameter_count(config: ModelConfig) -> dict[str, int]:
    """``total``, ``embedding`` (only the embedding matrix) and ``non_embedding`` parameters of a classifier.

    They are those of :func:`parameters`. One part of each kind is made, without memory for its weights, and
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
