"""What a model costs: parameters, megabytes, arithmetic per text, and time per text."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext

import numpy as np
import torch
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel

from rtxlib.errors import InputError
from rtxlib.models.kernels.linear import prepacked

Batch = dict[str, torch.Tensor | None]
_MATRICES = {"swiglu": 3, "geglu": 3, "gelu": 2, "relu": 2}  # of one feed-forward: gated ones have a third


def parameters(model: PreTrainedModel) -> dict[str, int]:
    """``total``, ``embedding`` (the token table alone) and ``non_embedding`` parameters; a shared block counts once."""
    total = sum(p.numel() for p in model.parameters())  # .parameters() names each tensor once, however often it is used
    embedding = model.get_input_embeddings().weight.numel()
    return {"total": total, "embedding": embedding, "non_embedding": total - embedding}


def size_mb(model: nn.Module) -> float:
    """Megabytes (10⁶ bytes) of the weights in the precision they are held in, shared ones once."""
    return sum(p.numel() * p.element_size() for p in model.parameters()) / 1e6


def forward_flops(
    config: PretrainedConfig, length: int, cls_only_last_layer: bool = True, recurrent_depth: int | None = None
) -> int:
    """Floating-point operations of one forward pass over one text of ``length`` tokens; a multiply-add counts as two.

    Matrix products only, which is what ``torch.utils.flop_counter`` counts: norms, activations, rotations, softmax
    and biases are left out. With width d, T tokens and feed-forward width m, a layer costs 8Td² (query, key, value,
    output) + 4T²d (scores and their weighted sum) + 2kTdm, where k is 3 for gated feed-forwards and 2 otherwise. A
    layer runs ``recurrent_depth`` times (R unless given), shared or not: sharing saves parameters and no arithmetic.
    Prelude and coda run once, a conditioning layer before each later pass; a gate on the residual costs 4Td² a pass, a
    token table of width E another 2TEd.

    ``cls_only_last_layer`` (and a pooling that reads [CLS]): the very last layer makes keys and values for all
    tokens and everything else for [CLS] alone, 4Td² + 4d² + 4Td + 2kdm, as the models here do; False counts it in
    full. Raises ``InputError`` for a length below 1 or an unknown feed-forward.
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
    read_cls = cls_only_last_layer and config.reads_cls
    if read_cls:
        total += last - layer
    if config.residual == "gated":
        gate = 4 * d * d  # of one token
        total += gate * (t * passes - (t - 1 if read_cls and not config.coda_layers else 0))
    if config.conditioning_size is not None:
        total += (attention + 2 * k * t * d * config.conditioning_size) * (passes - 1)
    if config.embedding_size not in (None, d):
        total += 2 * t * config.embedding_size * d
    if config.pooling == "pooler":
        total += 2 * d * d
    return total + 2 * d * config.num_labels


def latency(
    model: PreTrainedModel,
    single: Sequence[Batch],
    saturated: Sequence[Batch],
    device: torch.device | str,
    *,
    rounds: int = 3,
    warm_up: int = 3,
    autocast: torch.dtype | None = None,
) -> dict[str, float]:
    """Milliseconds of a forward pass: ``ms_median`` and ``ms_p95`` at batch size 1, ``ms_per_text`` with full batches.

    ``single``: batches of one text, of the lengths met in use; each is timed once a round, and median and 95th
    percentile are over texts × rounds. ``saturated``: batches large enough to keep the device busy; ``ms_per_text``
    is the median over rounds of all their time over all their rows. A batch holds ``input_ids`` (B, T) and
    ``attention_mask`` (B, T) or None; others of its entries are ignored. Batches are moved to the device before the
    clock starts and weights prepacked, every batch is run once and ``warm_up`` more passes are untimed, and the device is
    synchronised around each timed pass. The model is moved to ``device``, timed in evaluation mode, and left in the
    mode it had. Raises ``InputError`` when a list is empty or ``single`` holds a larger batch.
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
                for batch in [*batches, *batches[:1] * warm_up]:
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
    """What a model reads of a batch, on its device."""
    mask = batch.get("attention_mask")
    return {"input_ids": batch["input_ids"].to(device), "attention_mask": None if mask is None else mask.to(device)}


def synchroniser(device: torch.device) -> Callable[[], object]:
    """What waits for the device to finish; a CPU call returns only when it is done."""
    return (lambda: None) if device.type == "cpu" else (lambda: torch.accelerator.synchronize(device))
