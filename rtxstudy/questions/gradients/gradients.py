"""The loop's gradients: what each pass contributes to each parameter, and how much reaches the state before each pass."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rtx.latency import Batch
from rtxlib.models.heads import EncoderForSequenceClassification


def unroll(model: EncoderForSequenceClassification) -> EncoderForSequenceClassification:
    """The same function with one block per pass; each block holds its own copy of the shared weights.

    By the chain rule the gradient of the shared block is the sum of these blocks' gradients (back-propagation through time,
    Werbos 1990). For an unshared model the result is a plain copy.
    """
    twin = copy.deepcopy(model)
    blocks = twin.encoder.stack.blocks
    twin.encoder.stack.blocks = nn.ModuleList(
        copy.deepcopy(blocks[i % len(blocks)]) for i in range(model.config.recurrent_depth)
    )
    return twin


def pass_gradients(
    model: EncoderForSequenceClassification, batches: Sequence[Batch]
) -> tuple[list[list[Tensor]], float]:
    """The gradient of the mean loss that each pass contributes, as one list of parameter gradients per pass; and the loss.

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


def gradients_by_parameter(model: EncoderForSequenceClassification, batches: Sequence[Batch]) -> pd.DataFrame:
    """The contribution of each pass to the gradient of each parameter of the block: one row per pass and parameter.

    Columns: ``iteration`` (the pass, from 1), ``layer`` (of the block, from 1), ``depth`` (number of the unrolled
    layer, from 1), ``parameter``, ``norm`` of the contribution gᵢ, and ``share`` of the parameter's whole
    gradient g. For a shared block the share is the projection ⟨gᵢ, g⟩ / ⟨g, g⟩, and the shares of all passes add up to one. An
    unshared block belongs to one pass, so its share is one. batches: see :func:`pass_gradients`.
    """
    gradients, _ = pass_gradients(model, batches)
    blocks = model.encoder.stack.blocks
    shared = len(blocks) == 1
    rows = []
    for number, (name, _) in enumerate(blocks[0].named_parameters()):
        parts = [of_pass[number].double() for of_pass in gradients]
        whole = sum(parts)
        layer, _, parameter = name.partition(".")
        for pass_number, part in enumerate(parts, start=1):
            share = float((part * whole).sum() / whole.square().sum()) if shared else 1.0
            depth = (pass_number - 1) * len(blocks[0]) + int(layer) + 1
            rows.append((pass_number, int(layer) + 1, depth, parameter, float(part.norm()), share))
    return pd.DataFrame(rows, columns=["iteration", "layer", "depth", "parameter", "norm", "share"])


def gradients_by_pass(model: EncoderForSequenceClassification, batches: Sequence[Batch]) -> pd.DataFrame:
    """One row per pass: ``iteration`` (the pass, from 1), ``norm`` of its gradient gᵢ and ``share`` of the whole gradient g.

    For a shared block the share is the projection ⟨gᵢ, g⟩ / ⟨g, g⟩; a pass with a negative share pulls against the others. For
    unshared blocks, whose gradients are not summed, it is ‖gᵢ‖² / Σ‖gⱼ‖². Both add up to one. batches: see
    :func:`pass_gradients`.
    """
    gradients, _ = pass_gradients(model, batches)
    flat = torch.stack([torch.cat([g.flatten() for g in block]) for block in gradients]).double()  # (passes, parameters)
    if model.config.block_sharing == "shared":
        whole = flat.sum(dim=0)
        share = flat @ whole / whole.dot(whole)
    else:
        share = flat.square().sum(dim=1) / flat.square().sum()
    return pd.DataFrame(
        {"iteration": range(1, len(flat) + 1), "norm": flat.norm(dim=1).tolist(), "share": share.tolist()}
    )


def gradients_of_states(model: EncoderForSequenceClassification, batches: Sequence[Batch]) -> pd.DataFrame:
    """The gradient of the loss that reaches the state after each pass, with two products that are said to predict it.

    With the residual h ← s·h + b·F(h), one row per pass t, where t = 0 is the state that entered the loop:

    - ``iteration``: t;
    - ``ratio``: ‖∂L/∂h_t‖ / ‖∂L/∂h_R‖ of a text's whole state (length, hidden), mean over texts; ``least``: the smallest of
      any text;
    - ``bound``: Π s over the passes after t, which is α^(R−t) where s = α. It is claimed as a lower bound of the gradient,
      because Π(‖J‖ + s) is at least as large, with J the Jacobian of F. By the triangle inequality that product bounds the
      gradient from *above*, so ``bound`` bounds nothing from below: J may cancel s;
    - ``gain``: Π(s + b), the factor where F is near the identity that its own residuals carry.

    Dropout is off. batches: see :func:`pass_gradients`.
    """
    model = copy.deepcopy(model).eval()
    ratios = []
    for batch in batches:
        encoded = model.encoder(batch["input_ids"], batch["attention_mask"], output_hidden_states=True)
        for state in encoded.pass_states:
            state.retain_grad()
        logits = model.classify(encoded.last_hidden_state, batch["attention_mask"])
        F.cross_entropy(logits, batch["labels"], reduction="sum").backward()
        norms = torch.stack([state.grad.flatten(1).norm(dim=1) for state in encoded.pass_states])  # (R + 1, B)
        ratios.append(norms / norms[-1])
    ratio = torch.cat(ratios, dim=1).double()
    coefficients = np.array(model.encoder.stack.residual.weights(model.config.recurrent_depth))  # (R, 2)
    after = [coefficients[t:] for t in range(len(coefficients) + 1)]  # of the passes after t
    return pd.DataFrame(
        {
            "iteration": range(len(ratio)),
            "ratio": ratio.mean(dim=1).tolist(),
            "least": ratio.amin(dim=1).tolist(),
            "bound": [float(rest[:, 0].prod()) for rest in after],
            "gain": [float(rest.sum(axis=1).prod()) for rest in after],
        }
    )
