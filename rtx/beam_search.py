"""Beam search: an encoder–decoder writes the likeliest target of each source (Vaswani et al. 2017; Wu et al. 2016)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from rtxlib.errors import InputError
from rtxlib.models.encoder import check_length
from rtxlib.models.seq2seq import EncoderDecoder
from rtxlib.training.device import evaluating


class Hypothesis(NamedTuple):
    """The decoded target of a source.

    ids: the tokens between bos and eos. score: their log-probability (nats), eos included, divided by the length penalty.
    """

    ids: list[int]
    score: float


def penalty(length: int, alpha: float) -> float:
    """((5 + length) / 6)^alpha divides a log-probability, so that short texts do not always win (Wu et al. 2016)."""
    return ((5 + length) / 6) ** alpha


@torch.inference_mode()
def decode(
    model: EncoderDecoder,
    input_ids: Tensor,
    attention_mask: Tensor | None = None,
    *,
    bos_id: int,
    eos_id: int,
    beams: int = 1,
    max_new_tokens: int,
    length_penalty: float = 0.6,
) -> list[Hypothesis]:
    """Decode each source: greedily with one beam, by beam search with more. The paper uses 4 beams and a penalty of 0.6.

    input_ids, attention_mask: (batch, source length), as in :meth:`EncoderDecoder.forward`. At each step a source keeps
    its ``beams`` likeliest continuations. A continuation that ends in ``eos_id`` leaves with its score, log-probability /
    ((5 + tokens, eos included) / 6)^length_penalty (Wu et al. 2016). A source is done when no other continuation can
    score higher. If none has ended after ``max_new_tokens`` (the paper: source length + 50), the likeliest is returned
    as it stands. Returns one :class:`Hypothesis` per source. The training mode of each module stays as it was.

    Sources are encoded once. The decoder reads the whole target at each step, without a cache of keys and values, so the
    tokens that it reads grow with the square of the length.
    Raises InputError if beams or max_new_tokens are below 1, the length penalty is negative, or a source or
    max_new_tokens exceeds ``max_position_embeddings``.
    """
    for name, value in {"beams": beams, "max_new_tokens": max_new_tokens}.items():
        if value < 1:
            raise InputError(f"{name} must be at least 1, not {value}.")
    if length_penalty < 0:
        raise InputError(f"length_penalty must not be negative, as {length_penalty} is; 0 leaves lengths unweighted.")
    check_length(max_new_tokens, model.config)
    with evaluating(model):
        return _search(model, input_ids, attention_mask, bos_id, eos_id, beams, max_new_tokens, length_penalty)


def _search(
    model: EncoderDecoder,
    input_ids: Tensor,
    attention_mask: Tensor | None,
    bos_id: int,
    eos_id: int,
    beams: int,
    max_new_tokens: int,
    alpha: float,
) -> list[Hypothesis]:
    """:func:`decode` in evaluation mode; ``alpha`` is the length penalty."""
    real = torch.ones_like(input_ids) if attention_mask is None else attention_mask
    memory = model.encoder(input_ids, real).last_hidden_state  # (rows, S, d)
    longest = penalty(max_new_tokens, alpha)
    rows = list(range(len(input_ids)))  # the sources that are not done; the tensors below hold only these
    best = [Hypothesis([], -torch.inf) for _ in rows]
    ids = input_ids.new_full((len(rows), beams, 1), bos_id)  # (rows, beams, tokens)
    logp = memory.new_full((len(rows), beams), -torch.inf, dtype=torch.float32)
    logp[:, 0] = 0  # the beams are equal at the start, so only the first counts

    for step in range(1, max_new_tokens + 1):
        h = model.read(ids.flatten(0, 1), memory.repeat_interleave(beams, 0), real.repeat_interleave(beams, 0))
        following = model.project(h[:, -1]).float().log_softmax(-1).unflatten(0, (-1, beams))  # (rows, beams, V)
        logp, choice = (logp[..., None] + following).flatten(1).topk(beams)  # (rows, beams · V) → (rows, beams)
        beam, token = choice // following.shape[-1], choice % following.shape[-1]
        ids = torch.cat((ids.take_along_dim(beam[..., None], 1), token[..., None]), -1)

        ended = token == eos_id
        for i, k in ended.nonzero().tolist():
            hypothesis = Hypothesis(ids[i, k, 1:-1].tolist(), logp[i, k].item() / penalty(step, alpha))
            best[rows[i]] = max(best[rows[i]], hypothesis, key=lambda sequence: sequence.score)
        logp = logp.masked_fill(ended, -torch.inf)
        # A log-probability only falls, so no beam can score above its present one over the penalty of the longest text.
        reach = (logp.amax(1) / longest).tolist()
        going = [i for i, row in enumerate(rows) if reach[i] > best[row].score]
        if not going:
            return best
        rows = [rows[i] for i in going]
        ids, logp, memory, real = ids[going], logp[going], memory[going], real[going]

    for i, row in enumerate(rows):
        if best[row].score == -torch.inf:  # none has ended; topk has sorted the beams, so the first is the likeliest
            best[row] = Hypothesis(ids[i, 0, 1:].tolist(), logp[i, 0].item() / longest)
    return best
