"""What the layers of an encoder do to a text: which tokens they let see which, and how large they leave a state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pandas as pd
import torch

from rtxlib.errors import InputError
from rtxlib.models.encoder import Encoder
from rtxlib.runs.cost import Batch


@contextmanager
def _reading(encoder: Encoder) -> Iterator[None]:
    """Evaluation mode without gradients; the mode is left as it was."""
    if encoder.device.type == "meta":
        raise InputError("An encoder on the meta device has no weights to run; build it without, random ones will do.")
    was_training = encoder.training
    encoder.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        encoder.train(was_training)


def reach(encoder: Encoder, length: int) -> pd.DataFrame:
    """Which token sees which in each layer, from the attention weights of a random text: those that are not zero.

    One row a run of neighbouring tokens that a token sees: ``layer`` (of each pass, from 1), ``token``, ``first`` and
    ``last`` (from 1, both included). The weights need not be trained. Raises ``InputError`` for weights on the meta
    device, or a length below 1 or beyond the model's.
    """
    if length < 1:
        raise InputError(f"A text has at least one token, not {length}.")
    ids = torch.randint(encoder.config.vocab_size, (1, length), generator=torch.Generator().manual_seed(0))
    with _reading(encoder):
        attentions = encoder(ids.to(encoder.device), output_attentions=True).attentions
        seen = torch.stack([(weights[0] > 0).any(dim=0) for weights in attentions]).cpu().numpy()  # (layers, T, T)
    edges = np.diff(seen.astype(np.int8), axis=-1, prepend=0, append=0)
    layer, token, first = np.nonzero(edges == 1)
    last = np.nonzero(edges == -1)[2]  # where a run ends the next token is not seen: already counted from 1
    return pd.DataFrame({"layer": layer + 1, "token": token + 1, "first": first + 1, "last": last})


def norms_by_layer(encoder: Encoder, batches: Sequence[Batch]) -> pd.DataFrame:
    """How long the state of a token is after each layer: ``layer`` (0: the embedding) and ``norm``, the mean of ‖h‖₂ / √d.

    batches: each with ``input_ids`` (B, T) and ``attention_mask`` (B, T) or None; padding is left out of the mean. States
    are those that the next layer reads, so a norm after the last layer is not in them. Raises ``InputError`` for weights
    on the meta device, or without a single token.
    """
    total, tokens = 0.0, 0
    with _reading(encoder):
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
