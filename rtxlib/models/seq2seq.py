"""The Transformer of "Attention Is All You Need" (Vaswani et al. 2017): an encoder, a decoder, and beam search."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers.modeling_outputs import Seq2SeqLMOutput

from rtxlib.errors import InputError
from rtxlib.models.attention import padding_view, self_attention_view
from rtxlib.models.config import ModelConfig
from rtxlib.models.encoder import Encoder, EncoderBase, check_length
from rtxlib.models.kernels.linear import linear
from rtxlib.models.layers import NO_TRACE, DecoderLayer, Trace, make_norm


class EncoderDecoder(EncoderBase):
    """logits = E·decoder(target so far, encoder(source)), where E is the one table of token vectors (Vaswani et al. 2017).

    The paper uses one matrix three times: to embed the source, to embed the target and to predict the next token (§3.4).
    Both sides therefore share the encoder's ``embeddings``, and its token table is the output projection. Recurrence,
    windows and ``output_initializer`` concern the encoder alone. ``preset("transformer-base")`` is the paper's base model.
    Raises InputError without decoder layers.
    """

    def __init__(self, config: ModelConfig) -> None:
        if config.num_decoder_layers < 1:
            raise InputError("An encoder–decoder needs num_decoder_layers of at least 1; transformer-base has 6.")
        super().__init__(config)
        self.encoder = Encoder(config)
        self.decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.num_decoder_layers))
        self.final_norm = make_norm(config) if config.final_norm else nn.Identity()
        self.draw_weights()

    def forward(
        self,
        input_ids: Tensor,
        decoder_input_ids: Tensor,
        attention_mask: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
    ) -> Seq2SeqLMOutput | tuple:
        """Read a batch of sources and predict, at each position of their targets, the token that follows.

        input_ids: (batch, source length). decoder_input_ids: (batch, target length), beginning with bos. attention_mask,
        decoder_attention_mask: the same shapes, nonzero where a token is real; None: all are. labels: (batch, target
        length), at each position the id that follows, eos at the end, −100 where none counts; with them ``loss`` is the
        mean cross-entropy (nats per token).

        Returns logits (batch, target length, vocabulary) and encoder_last_hidden_state (batch, source length, hidden).
        With output_hidden_states also encoder_hidden_states and decoder_hidden_states, the embedding and the state after
        each layer. With output_attentions also encoder_attentions, decoder_attentions and cross_attentions, for each
        layer (batch, heads, queries, keys).
        Raises InputError if a text is longer than ``max_position_embeddings``.
        """
        show = {"output_attentions": output_attentions, "output_hidden_states": output_hidden_states}
        source = self.encoder(input_ids, attention_mask, **show)
        memory = source.last_hidden_state
        trace = Trace(output_hidden_states, output_attentions)
        logits = self.project(self.read(decoder_input_ids, memory, attention_mask, decoder_attention_mask, trace))
        output = Seq2SeqLMOutput(
            loss=None if labels is None else F.cross_entropy(logits.float().flatten(0, 1), labels.flatten()),
            logits=logits,
            decoder_hidden_states=tuple(trace.states) if output_hidden_states else None,
            decoder_attentions=tuple(trace.attentions) if output_attentions else None,
            cross_attentions=tuple(trace.cross_attentions) if output_attentions else None,
            encoder_last_hidden_state=memory,
            encoder_hidden_states=source.hidden_states,
            encoder_attentions=source.attentions,
        )
        return output if return_dict is not False else output.to_tuple()

    def read(
        self,
        decoder_input_ids: Tensor,
        memory: Tensor,
        attention_mask: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        trace: Trace = NO_TRACE,
    ) -> Tensor:
        """The decoder alone: its last states (batch, target length, hidden).

        memory: the encoded source (batch, source length, hidden). trace: what is recorded on the way; its attentions make
        attention eager. Other arguments are those of :meth:`forward`. A token sees the target up to itself and all of the
        source, so one forward pass predicts every position without seeing its answer.
        Raises InputError if the target is longer than ``max_position_embeddings``.
        """
        config, length = self.config, decoder_input_ids.shape[1]
        check_length(length, config)
        eager = trace.attentions is not None or config._attn_implementation == "eager"
        h = self.encoder.embeddings(decoder_input_ids)  # (B, T, d)
        trace.add(states=h)
        past = self_attention_view(config, length, decoder_attention_mask, h.device, causal=True)._replace(eager=eager)
        source = padding_view(attention_mask)._replace(eager=eager)
        for layer in self.decoder:
            h, weights, cross_weights = layer(h, memory, past, source)
            trace.add(states=h, attentions=weights, cross_attentions=cross_weights)
        return self.final_norm(h)

    def project(self, states: Tensor) -> Tensor:
        """Logits (…, vocabulary) of states (…, hidden): their products with each token's vector, without a bias."""
        return linear(states, self.encoder.embeddings.token.weight)


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
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        return _search(model, input_ids, attention_mask, bos_id, eos_id, beams, max_new_tokens, length_penalty)
    finally:
        for module, mode in modes:  # each separately: a frozen part may be in evaluation mode while the rest trains
            module.training = mode


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
