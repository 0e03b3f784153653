"""The cost of a model: parameters, megabytes, arithmetic per text, and time per text."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext

import numpy as np
import torch
from torch import nn
from transformers import PretrainedConfig

from rtxlib.errors import InputError
from rtxlib.models.config import ModelConfig
from rtxlib.models.encoder import EncoderBase
from rtxlib.models.kernels.linear import prepacked
from rtxlib.training.device import DTYPES
from rtxlib.training.recipe import Recipe

Batch = dict[str, torch.Tensor | None]
_MATRICES = {"swiglu": 3, "geglu": 3, "gelu": 2, "relu": 2}  # matrices of a feed-forward layer; a gated one has a third

_WARM_UP = 3  # untimed forward passes after the first of each batch


def parameters(model: EncoderBase) -> dict[str, int]:
    """``total``, ``embedding`` (only the token table) and ``non_embedding`` parameters. A shared block counts once."""
    total = sum(p.numel() for p in model.parameters())  # .parameters() lists a shared tensor once
    embedding = model.get_input_embeddings().weight.numel()
    return {"total": total, "embedding": embedding, "non_embedding": total - embedding}


def size_mb(model: nn.Module) -> float:
    """Megabytes (10⁶ bytes) of the weights in their own precision. Shared weights count once."""
    return sum(p.numel() * p.element_size() for p in model.parameters()) / 1e6


def training_bytes(config: ModelConfig, recipe: Recipe, tokens: int, precision: str) -> tuple[int, int]:
    """Bytes of memory that a training needs at least: per parameter, and for the activations of a micro-batch of ``tokens``.

    A parameter takes 8 bytes, for its weight and for the best weights so far. If it is trained it takes 12 more, for its
    gradient and AdamW's two moments. A layer keeps for each token at least its input, both norms' output, queries, keys, values
    and the attended values (7d numbers), and what its feed-forward holds inside (km, see :func:`forward_flops`).
    """
    if recipe.freeze_encoder:
        return 8, 0
    layer = 7 * config.hidden_size + _MATRICES[config.feedforward] * config.resolved_intermediate_size
    return 20, tokens * config.effective_depth * layer * DTYPES[precision].itemsize


def forward_flops(config: PretrainedConfig, length: int, recurrent_depth: int | None = None) -> int:
    """Floating-point operations of one forward pass over one text of ``length`` tokens. A multiply-add counts as two.

    Only matrix products are counted, as in ``torch.utils.flop_counter``: not norms, activations, rotations, softmax and
    biases. With width d, T tokens and feed-forward width m, a layer costs 8Td² (query, key, value, output) + 4T²d (scores and
    their weighted sum) + 2kTdm, where k is 3 for gated feed-forwards and 2 otherwise. A layer of the block runs
    ``recurrent_depth`` times (None: as often as the configuration says), shared or not: sharing saves parameters but no
    arithmetic. Prelude and coda run once. A conditioning layer runs before each later pass. A gate on the residual adds 4Td²
    per pass, and a token table of width E adds 2TEd. A low-rank addition to a map from i to o values adds 2Tr(i + o).

    If the pooling reads [CLS], the last layer computes keys and values for all tokens and everything else for [CLS] only,
    which costs 4Td² + 4d² + 4Td + 2kdm.

    Raises ``InputError`` for a length below 1 or an unknown feed-forward.
    """
    if length < 1:
        raise InputError(f"A text has at least one token, not {length}.")
    if config.feedforward not in _MATRICES:
        raise InputError(f"Feed-forward '{config.feedforward}' is none of {', '.join(_MATRICES)}.")
    d, t, m, k = config.hidden_size, length, config.resolved_intermediate_size, _MATRICES[config.feedforward]
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


def latency(
    model: EncoderBase,
    single: Sequence[Batch],
    saturated: Sequence[Batch],
    device: torch.device | str,
    *,
    rounds: int,
    autocast: torch.dtype | None = None,
) -> dict[str, float]:
    """Milliseconds of a forward pass: ``ms_median`` and ``ms_p95`` at batch size 1, ``ms_per_text`` with full batches.

    Before the clock starts, batches are moved to the device, weights are prepacked, every batch is run once, and the first batch
    three more times. The device is synchronised around each timed pass. The model is moved to ``device``, timed
    in evaluation mode, and left in the mode it had.

    Args:
        model: the model to time
        single: batches of one text. Each is timed once per round; median and 95th percentile are over texts × rounds.
        saturated: batches that keep the device busy. ``ms_per_text`` is the median over the rounds of all their time, divided
            by the number of all their rows.
        device: where the model is timed
        rounds: how often each batch is timed
        autocast: the number format of matrix products; None: that of the weights

    A batch holds ``input_ids`` (B, T) and ``attention_mask`` (B, T) or None. Its other entries are ignored.

    Raises:
        InputError: a list is empty, or ``single`` holds a larger batch.
    """
    device = torch.device(device)
    if not single or not saturated or rounds < 1:
        raise InputError("Latency needs at least one batch of one text, one full batch and one round.")
    if any(len(batch["input_ids"]) != 1 for batch in single):
        raise InputError("The batches for the latency at batch size 1 must hold one text each.")
    held = [[inputs(batch, device) for batch in batches] for batches in (single, saturated)]
    wait = synchroniser(device)
    precision = torch.autocast(device.type, autocast) if autocast else nullcontext()

    def timed(batch: Batch) -> float:
        wait()
        start = time.perf_counter()
        model(**batch)
        wait()
        return 1000 * (time.perf_counter() - start)

    was_training = model.training
    model.to(device).eval()
    try:
        with torch.inference_mode(), precision, prepacked(model):
            for batches in held:
                for batch in [*batches, *batches[:1] * _WARM_UP]:
                    timed(batch)
            ones = [timed(batch) for _ in range(rounds) for batch in held[0]]
            full = [sum(timed(batch) for batch in held[1]) for _ in range(rounds)]
    finally:
        model.train(was_training)
    rows = sum(len(batch["input_ids"]) for batch in saturated)
    return {
        "ms_median": float(np.median(ones)),
        "ms_p95": float(np.quantile(ones, 0.95)),
        "ms_per_text": float(np.median(full) / rows),
    }


def inputs(batch: Batch, device: torch.device) -> Batch:
    """The entries of a batch that a model reads, on the device."""
    mask, types = batch.get("attention_mask"), batch.get("token_type_ids")  # the types are of pairs alone
    read = {"input_ids": batch["input_ids"].to(device), "attention_mask": None if mask is None else mask.to(device)}
    return read if types is None else read | {"token_type_ids": types.to(device)}


def synchroniser(device: torch.device) -> Callable[[], object]:
    """A function that waits until the device has finished. A CPU is always finished when a call returns."""
    return (lambda: None) if device.type == "cpu" else (lambda: torch.accelerator.synchronize(device))
