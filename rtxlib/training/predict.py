"""Logits of many texts: batched by length, in the order they were given."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from rtxlib.data.batching import Tokens, batches, collate
from rtxlib.training.device import autocast

EVALUATION_TOKENS = 8192  # padded tokens a batch; keeps the peak memory of the widest model here under a gigabyte


@torch.inference_mode()
def predict_logits(
    model: nn.Module, tokens: Tokens, pad_id: int, device: torch.device, precision: str = "fp32", **way: Any
) -> np.ndarray:
    """Logits (rows, labels) in float32, in the row order of ``tokens``. Leaves the model's train/eval mode as it was.

    way: what else the model is called with, ``recurrent_depth=2`` or ``early_exit=EarlyExit("confidence", 0.9)``.
    """
    training = [module for module in model.modules() if module.training]
    model.eval()
    logits = np.empty((len(tokens), model.config.num_labels), dtype=np.float32)
    for index in batches(tokens.lengths, EVALUATION_TOKENS, None, seed=None, epoch=0):
        batch = {name: x.to(device) for name, x in collate(tokens, index, pad_id).items() if x is not None}
        batch.pop("labels")
        with autocast(precision, device):
            logits[index] = model(**batch, **way).logits.float().cpu().numpy()
    for module in training:  # each by itself: a frozen encoder stays in evaluation mode under a head that trains
        module.training = True
    return logits


def cross_entropy(logits: np.ndarray, labels: np.ndarray) -> float:
    """Mean −log p(label), in nats; logits (rows, labels), labels (rows,)."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return float(-log_p[np.arange(len(labels)), labels].mean())
