"""The states in the loop: how large they are, how far each pass moves them, and the labels that are read from them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor

from rtx.latency import Batch
from rtxlib.models.heads import EncoderForSequenceClassification

MEASURES = ("norm", "cosine", "distance", "token_correlation", "accuracy", "loss", "changed", "entropy")


@torch.inference_mode()
def states_by_pass(
    model: EncoderForSequenceClassification, batches: Sequence[Batch], passes: int | None = None
) -> pd.DataFrame:
    """The state after each of ``passes`` passes (by default R): one row per pass. Row 0 is the state that enters the loop.

    Columns, each a mean over texts. Row 0 has only ``norm`` and ``token_correlation``; its other columns are NaN:

    - ``iteration``: the pass;
    - ``norm``: ‖h‖₂ / √d of a token;
    - ``cosine``: similarity of a token's state to its state one pass earlier;
    - ``distance``: the distance between these two, relative to the norm of the earlier one;
    - ``token_correlation``: Pearson's correlation, over the hidden dimensions, between the states of two tokens of a text; near
      1 all tokens have the same state;
    - ``accuracy`` and ``loss`` (nats) of the label read after this pass;
    - ``changed``: the share of labels that differ from those after R passes (after the last, if fewer are run);
    - ``entropy`` of the attention weights over the logarithm of the text's length, mean over the pass' heads, layers and
      queries; 1 where a query attends to all tokens equally.

    batches: each with ``input_ids`` (B, T), ``attention_mask`` (B, T) or None and ``labels`` (B,), of texts of at least two
    tokens. Dropout is off; the model's mode is restored at the end.
    """
    was_training = model.training
    model.eval()
    config, encoder = model.config, model.encoder
    passes = encoder.stack.check_passes(passes)
    sums, texts = np.zeros((passes + 1, len(MEASURES))), 0
    for batch in batches:
        ids, mask, labels = batch["input_ids"], batch["attention_mask"], batch["labels"]
        out = encoder(ids, mask, output_attentions=True, output_hidden_states=True, recurrent_depth=passes)
        real = (torch.ones_like(ids) if mask is None else mask).double()  # (B, T)
        context = encoder.context(ids.shape[1], mask, ids.device)
        logits = [model.decode(h, mask, context).double() for h in out.pass_states[1:]]
        settled = logits[min(config.recurrent_depth, passes) - 1].argmax(dim=1)
        for t, state in enumerate(out.pass_states):
            h = state.double()
            measured = {
                "norm": _mean(h.norm(dim=-1) / config.hidden_size**0.5, real),
                "token_correlation": _token_correlation(h, real),
            }
            if t > 0:
                before, pass_logits = out.pass_states[t - 1].double(), logits[t - 1]
                first = config.prelude_layers + (t - 1) * config.num_hidden_layers
                measured |= {
                    "cosine": _mean(F.cosine_similarity(h, before, dim=-1), real),
                    "distance": _mean((h - before).norm(dim=-1) / before.norm(dim=-1), real),
                    "accuracy": (pass_logits.argmax(dim=1) == labels).double(),
                    "loss": F.cross_entropy(pass_logits, labels, reduction="none"),
                    "changed": (pass_logits.argmax(dim=1) != settled).double(),
                    "entropy": _entropy(out.attentions[first : first + config.num_hidden_layers], real),
                }
            sums[t] += [float(measured[name].sum()) if name in measured else math.nan for name in MEASURES]
        texts += len(labels)
    model.train(was_training)
    return pd.DataFrame(sums / texts, columns=list(MEASURES)).rename_axis("iteration").reset_index()


def _mean(of_token: Tensor, real: Tensor) -> Tensor:
    """Mean over the real tokens of each text: (batch, length) → (batch,)."""
    return torch.where(real > 0, of_token, 0.0).sum(dim=1) / real.sum(dim=1)


def _token_correlation(h: Tensor, real: Tensor) -> Tensor:
    """Mean correlation over the pairs of different tokens of each text: (batch, length, hidden) → (batch,).

    With unit vectors u the sum over all pairs is ‖Σu‖²; each of the n pairs of a token with itself contributes one to it.
    """
    unit = F.normalize(h - h.mean(dim=-1, keepdim=True), dim=-1) * real[..., None]
    n = real.sum(dim=1)
    return (unit.sum(dim=1).square().sum(dim=-1) - n) / (n * (n - 1))


def _entropy(attentions: Sequence[Tensor], real: Tensor) -> Tensor:
    """−Σ p log p over the logarithm of the text's length, mean over layers, heads and real queries: (batch,)."""
    weights = torch.stack(list(attentions)).double()  # (layers, B, heads, queries, keys)
    of_query = torch.special.entr(weights).sum(dim=-1).mean(dim=(0, 2))  # (B, queries)
    return _mean(of_query, real) / real.sum(dim=1).log()
