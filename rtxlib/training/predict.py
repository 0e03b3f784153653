"""Logits of many texts: batched by length, in the order they were given."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from torch import nn

from rtxlib.data.batching import Tokens, batches, collate
from rtxlib.models.kernels.linear import prepacked
from rtxlib.training.device import autocast, moved

EVALUATION_TOKENS = (
    8192  # padded tokens of a full batch; keeps the peak memory of the widest model here under a gigabyte
)
# Padded tokens a batch where nothing is learned. A CPU wants few: what a layer makes of some hundred tokens stays in its cache,
# and texts so few are nearly of one length. Of 64 to 2,048 tokens, 512 were within 2 % of the fastest for 400 phrases and 50
# reviews, in fp32 and bf16, and 8 to 15 % from it for 56 phrases, where 256 were (LOG.md). A GPU wants many; its figure is
# not tuned.
_BATCH_TOKENS = {"cpu": 512, "cuda": 16_384}


def fitting_batches(lengths: np.ndarray, device: torch.device) -> list[np.ndarray]:
    """Row indices of batches of like length, as large as this device computes fastest; a longer text goes alone."""
    budget = _BATCH_TOKENS[device.type]
    return batches(np.minimum(lengths, budget), budget, None, seed=None, epoch=0)


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
    groups, found = fitting_batches(tokens.lengths, device), []
    with autocast(precision, device), prepacked(model) if len(groups) > 1 else nullcontext():
        for index in groups:
            batch = moved(collate(tokens, index, pad_id), device)
            batch.pop("labels")
            found.append(model(**batch, **way).logits.float())
    if groups:  # brought over in one piece, since a GPU would have to be waited for after every batch
        logits[np.concatenate(groups)] = torch.cat(found).cpu().numpy()
    for module in training:  # each by itself: a frozen encoder stays in evaluation mode under a head that trains
        module.training = True
    return logits


def cross_entropy(logits: np.ndarray, labels: np.ndarray) -> float:
    """Mean −log p(label), in nats; logits (rows, labels), labels (rows,)."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return float(-log_p[np.arange(len(labels)), labels].mean())
