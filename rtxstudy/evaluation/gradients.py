"""What the loop does to gradients: what each pass contributes to each parameter, and what reaches the state before it."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence

import numpy as np
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


def pass_gradients(
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


def gradients_by_parameter(
    model: EncoderForSequenceClassification, batches: Sequence[dict[str, Tensor]]
) -> pd.DataFrame:
    """What each pass adds to the gradient of each parameter of the block: one row a pass and parameter.

    Columns: ``iteration`` (from 1), ``layer`` (of the block, from 1), ``depth`` (of this application of the layer among all
    of them, from 1), ``parameter``, ``norm`` of the contribution, ``share`` of that parameter's whole gradient: for a shared
    block the projection ⟨gᵢ, g⟩ / ⟨g, g⟩, which adds up to one over the passes; for a block of one pass alone, one.
    """
    gradients, _ = pass_gradients(model, batches)
    blocks = model.encoder.stack.blocks
    shared = len(blocks) == 1
    rows = []
    for number, (name, _) in enumerate(blocks[0].named_parameters()):
        parts = [of_pass[number].double() for of_pass in gradients]
        whole = sum(parts)
        layer, _, parameter = name.partition(".")
        for iteration, part in enumerate(parts, start=1):
            share = float((part * whole).sum() / whole.square().sum()) if shared else 1.0
            depth = (iteration - 1) * len(blocks[0]) + int(layer) + 1
            rows.append((iteration, int(layer) + 1, depth, parameter, float(part.norm()), share))
    return pd.DataFrame(rows, columns=["iteration", "layer", "depth", "parameter", "norm", "share"])


def gradients_by_pass(
    model: EncoderForSequenceClassification, batches: Sequence[dict[str, Tensor]]
) -> pd.DataFrame:
    """One row an iteration: ``iteration`` (from 1), ``norm`` of its gradient and ``share`` of the whole.

    ``share`` is the projection of the iteration's gradient onto the summed gradient over that gradient's squared norm:
    ⟨gᵢ, g⟩ / ⟨g, g⟩. Shares add up to one; a negative one pulls against the others. For unshared blocks, whose
    gradients are not summed, it is ‖gᵢ‖² / Σ‖gⱼ‖², which adds up to one as well.
    """
    gradients, _ = pass_gradients(model, batches)
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


def coefficients(model: EncoderForSequenceClassification) -> list[tuple[float, float]]:
    """How each pass joins: (s, b) with h ← s·h + b·F(h); NaN for a gate, which has no one number."""
    residual, passes = model.encoder.stack.residual, model.config.recurrent_depth
    alpha = residual.alpha
    match residual.form:
        case "none":
            return [(0.0, 1.0)] * passes
        case "every":
            return [(alpha, 1.0)] * passes
        case "from_second":
            return [(0.0, 1.0)] + [(alpha, 1.0)] * (passes - 1)
        case "learned":
            return [(float(a), 1.0) for a in residual.logit.sigmoid()]
        case "damped":
            return [(1 - alpha, alpha)] * passes
    return [(math.nan, math.nan)] * passes


def gradients_of_states(model: EncoderForSequenceClassification, batches: Sequence[dict[str, Tensor]]) -> pd.DataFrame:
    """How much of the loss' gradient reaches the state after each pass, beside what is claimed of it.

    Columns: ``iteration`` t (0: the state that entered the loop), ``ratio`` ‖∂L/∂h_t‖ / ‖∂L/∂h_R‖ (mean over texts),
    ``least`` (the smallest of any text), ``bound`` and ``gain``. With h ← s·h + b·F(h) the argument says that the product
    Π(‖J‖ + s) over the passes after t is at least ``bound`` = Π s, α^(R−t) where s = α. That product bounds the gradient
    from *above* (triangle inequality), so it is no lower bound: J may cancel s. ``gain`` = Π(s + b) is what reaches t where
    F is near the identity that its own residuals carry. Dropout is off; of each text the whole state (length, hidden)
    counts. batches: as :func:`pass_gradients` takes them.
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
    joins = np.array(coefficients(model))  # (R, 2)
    after = [joins[t:] for t in range(len(joins) + 1)]
    return pd.DataFrame(
        {
            "iteration": range(len(ratio)),
            "ratio": ratio.mean(dim=1).tolist(),
            "least": ratio.amin(dim=1).tolist(),
            "bound": [float(rest[:, 0].prod()) for rest in after],
            "gain": [float(rest.sum(axis=1).prod()) for rest in after],
        }
    )
