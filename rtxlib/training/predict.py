"""Logits of many texts, computed in batches of like length and returned in the given order."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from torch import nn

from rtxlib.data.batching import Tokens, batches, collate
from rtxlib.models.kernels import prepacked
from rtxlib.training.device import autocast, evaluating, moved

# Padded tokens of a batch when nothing is learned. A thread of a CPU is fastest with few: its part of a layer's output then stays
# in its cache. A small batch also holds few texts, and these are nearly of one length, so little is padded. A GPU needs many
# tokens; its value is not tuned. The measurements are in LOG.md.
_THREAD_TOKENS, _GPU_TOKENS = 512, 16_384


def fitting_batches(lengths: np.ndarray, device: torch.device) -> list[np.ndarray]:
    """Row indices of batches of like length, of the size that is fastest on this device. A longer text is a batch of its own."""
    budget = _THREAD_TOKENS * torch.get_num_threads() if device.type == "cpu" else _GPU_TOKENS
    return batches(np.minimum(lengths, budget), budget, None, seed=None, epoch=0)


@torch.inference_mode()
def predict_logits(
    model: nn.Module, tokens: Tokens, pad_id: int, device: torch.device, precision: str = "fp32", **way: Any
) -> np.ndarray:
    """Logits (rows, labels) in float32, in the row order of ``tokens``. The model's train/eval mode stays as it was.

    way: further arguments of the model, such as ``recurrent_depth=2`` or ``early_exit=EarlyExit("confidence", 0.9)``.
    """
    logits = np.empty((len(tokens), model.config.num_labels), dtype=np.float32)
    groups, parts = fitting_batches(tokens.lengths, device), []
    with evaluating(model), autocast(precision, device), prepacked(model) if len(groups) > 1 else nullcontext():
        for index in groups:
            batch = moved(collate(tokens, index, pad_id), device)
            batch.pop("labels")
            parts.append(model(**batch, **way).logits.float())
    if groups:  # copied once, because each copy waits for the GPU
        logits[np.concatenate(groups)] = torch.cat(parts).cpu().numpy()
    return logits


def cross_entropy(logits: np.ndarray, labels: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Mean −log p(label), in nats; logits (rows, labels), labels (rows,). weights: (labels,) of the classes; None: all alike."""
    from scipy.special import log_softmax  # here, because a prediction needs no loss

    losses = -log_softmax(logits, axis=1)[np.arange(len(labels)), labels]
    return float(losses.mean() if weights is None else np.average(losses, weights=weights[labels]))
