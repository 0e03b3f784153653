"""What the layers of an encoder do to a text: which tokens each token attends to, and how large the states become."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pandas as pd
import torch

from rtx.latency import Batch
from rtxlib.errors import InputError
from rtxlib.models.encoder import Encoder
from rtxlib.training.device import evaluating


@contextmanager
def reading(encoder: Encoder) -> Iterator[None]:
    """Evaluation mode without gradients; the encoder's own mode is restored at the end."""
    if encoder.device.type == "meta":
        raise InputError("An encoder on the meta device has no weights to run; build it without, random ones will do.")
    with evaluating(encoder), torch.inference_mode():
        yield


def reach(encoder: Encoder, length: int) -> pd.DataFrame:
    """Which tokens each token attends to in each layer: those with a non-zero attention weight in a random text.

    One row per stretch of neighbouring tokens that a token attends to: ``layer`` (counted over all passes, from 1),
    ``token``, ``first`` and ``last`` (from 1, both included). The weights need no training. Raises ``InputError`` for weights
    on the meta device, and for a length below 1 or beyond the model's.
    """
    if length < 1:
        raise InputError(f"A text has at least one token, not {length}.")
    ids = torch.randint(encoder.config.vocab_size, (1, length), generator=torch.Generator().manual_seed(0))
    with reading(encoder):
        attentions = encoder(ids.to(encoder.device), output_attentions=True).attentions
        visible = torch.stack([(weights[0] > 0).any(dim=0) for weights in attentions]).cpu().numpy()  # (layers, T, T)
    edges = np.diff(visible.astype(np.int8), axis=-1, prepend=0, append=0)  # 1 where a stretch starts, −1 after its end
    layer, token, first = np.nonzero(edges == 1)
    last = np.nonzero(edges == -1)[2]  # the index after the end, counted from 0, is the end counted from 1
    return pd.DataFrame({"layer": layer + 1, "token": token + 1, "first": first + 1, "last": last})


def norms_by_layer(encoder: Encoder, batches: Sequence[Batch]) -> pd.DataFrame:
    """How large a token's state is after each layer: ``layer`` (0: the embedding) and ``norm``, the mean of ‖h‖₂ / √d.

    batches: each with ``input_ids`` (B, T) and ``attention_mask`` (B, T) or None; the mean leaves padding out. The states are
    those that the next layer reads, so the encoder's final norm is not applied. Raises ``InputError`` for weights on the meta
    device, and for batches without a single token.
    """
    total, tokens = 0.0, 0
    with reading(encoder):
        for batch in batches:
            ids, mask = batch["input_ids"].to(encoder.device), batch.get("attention_mask")
            mask = torch.ones_like(ids) if mask is None else mask.to(encoder.device)
            states = encoder(ids, mask, output_hidden_states=True).hidden_states
            lengths = torch.stack([h.float().norm(dim=-1)[mask.bool()].sum() for h in states])  # (layers + 1,)
            total, tokens = total + lengths.double().cpu().numpy(), tokens + int(mask.bool().sum())
    if not tokens:
        raise InputError("There is not a single token to measure; give at least one batch with a text in it.")
    norms = total / tokens / encoder.config.hidden_size**0.5
    return pd.DataFrame({"layer": range(len(norms)), "norm": norms})
