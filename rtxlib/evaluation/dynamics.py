"""What the loop does to gradients: how much each iteration contributes to the update of the shared block."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rtxlib.models.heads import EncoderForSequenceClassification


def unroll(model: EncoderForSequenceClassification) -> EncoderForSequenceClassification:
    """The same function with a block of its own for each iteration; the shared weights are copied into each.

    By the chain rule the gradient of the shared block is the sum of these blocks' gradients, one for each iteration
    (back-propagation through time, Werbos 1990). An unshared model comes back as a plain copy.
    """
    twin = copy.deepcopy(model)
    blocks = twin.encoder.stack.blocks
    twin.encoder.stack.blocks = nn.ModuleList(
        copy.deepcopy(blocks[i % len(blocks)]) for i in range(model.config.recurrent_depth)
    )
    return twin


def iteration_gradients(
    model: EncoderForSequenceClassification, batches: Sequence[dict[str, Tensor]]
) -> tuple[list[list[Tensor]], float]:
    """The mean loss' gradient of each iteration's block: a list for each iteration of one tensor a parameter; and the loss.

    batches: each with ``input_ids`` (B, T), ``attention_mask`` (B, T) or None and ``labels`` (B,). Dropout is off.
    """
    twin = unroll(model).eval()
    rows = sum(len(batch["labels"]) for batch in batches)
    total = 0.0
    for batch in batches:
        logits = twin(batch["input_ids"], batch["attention_mask"]).logits
        loss = F.cross_entropy(logits, batch["labels"], reduction="sum") / rows
        loss.backward()
        total += loss.item()
    return [[p.grad for p in block.parameters()] for block in twin.encoder.stack.blocks], total


def gradients_by_iteration(
    model: EncoderForSequenceClassification, batches: Sequence[dict[str, Tensor]]
) -> pd.DataFrame:
    """One row an iteration: ``iteration`` (from 1), ``norm`` of its gradient and ``share`` of the whole.

    ``share`` is the projection of the iteration's gradient onto the summed gradient over that gradient's squared norm:
    ⟨gᵢ, g⟩ / ⟨g, g⟩. Shares add up to one; a negative one pulls against the others. For unshared blocks, whose
    gradients are not summed, it is ‖gᵢ‖² / Σ‖gⱼ‖², which adds up to one as well.
    """
    gradients, _ = iteration_gradients(model, batches)
    flat = torch.stack(
        [torch.cat([g.flatten() for g in block]) for block in gradients]
    ).double()  # (iterations, parameters)
    if model.config.block_sharing == "shared":
        whole = flat.sum(dim=0)
        share = flat @ whole / whole.dot(whole)
    else:
        share = flat.square().sum(dim=1) / flat.square().sum()
    return pd.DataFrame(
        {"iteration": range(1, len(flat) + 1), "norm": flat.norm(dim=1).tolist(), "share": share.tolist()}
    )
