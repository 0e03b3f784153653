"""The Transformer of "Attention Is All You Need" (Vaswani et al. 2017): an encoder, a decoder, and how they write text."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers.modeling_outputs import Seq2SeqLMOutput

from rtxlib.errors import InputError
from rtxlib.models.config import ModelConfig
from rtxlib.models.encoder import Encoder, EncoderBase, check_length
from rtxlib.models.layers import DecoderLayer
from rtxlib.models.linear import linear
from rtxlib.models.masks import padding_view, self_attention_view
from rtxlib.models.norms import make_norm


class Target(NamedTuple):
    """What the decoder makes of the target: its last states (batch, length, hidden), and all that led there.

    states: the embedding and the state after each layer. attentions: (batch, heads, length, length) and
    cross_attentions: (batch, heads, length, source length) of each layer; empty on the fused path.
    """

    last: Tensor
    states: tuple[Tensor, ...]
    attentions: tuple[Tensor, ...]
    cross_attentions: tuple[Tensor, ...]


class EncoderDecoder(EncoderBase):
    """logits = E·decoder(target so far, encoder(source)), where E is the one table of token vectors (Vaswani et al. 2017).

    The paper uses one matrix three times, to embed the source, to embed the target and to read the next token (§3.4): so
    both sides share the encoder's ``embeddings``, and the output projection is its token table. Of the configuration's
    other choices, recurrence, windows and ``output_initializer`` concern the encoder alone.
    ``preset("transformer-base")`` is the paper's base model. Raises InputError without decoder layers.
    """

    def __init__(self, config: ModelConfig) -> None:
        if config.num_decoder_layers < 1:
            raise InputError("An encoder–decoder needs num_decoder_layers of at least 1; transformer-base has 6.")
        super().__init__(config)
        self.encoder = Encoder(config)
        self.decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.num_decoder_layers))
        self.final_norm = make_norm(config) if config.final_norm else nn.Identity()
        self.post_init()

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
        """Read a batch of sources and, at every position of their targets, predict the token that follows.

        input_ids: (batch, source length). decoder_input_ids: (batch, target length), beginning with bos.
        attention_mask, decoder_attention_mask: of the same shapes, nonzero where a token is real; None: all are. labels:
        (batch, target length), at each position the id that follows, eos at the end, −100 where none counts; with them
        the output carries the mean cross-entropy as ``loss`` (nats a token).

        Returns logits (batch, target length, vocabulary) and encoder_last_hidden_state (batch, source length, hidden);
        with output_hidden_states encoder_hidden_states and decoder_hidden_states, on each side the embedding and the
        state after each layer; with output_attentions encoder_attentions, decoder_attentions and cross_attentions, for
        each layer (batch, heads, queries, keys).
        Raises InputError when a text is longer than ``max_position_embeddings``.
        """
        show = {"output_attentions": output_attentions, "output_hidden_states": output_hidden_states}
        source = self.encoder(input_ids, attention_mask, **show)
        memory = source.last_hidden_state
        target = self.read(decoder_input_ids, memory, attention_mask, decoder_attention_mask, bool(output_attentions))
        logits = self.project(target.last)
        output = Seq2SeqLMOutput(
            loss=None if labels is None else F.cross_entropy(logits.float().flatten(0, 1), labels.flatten()),
            logits=logits,
            decoder_hidden_states=target.states if output_hidden_states else None,
            decoder_attentions=target.attentions if output_attentions else None,
            cross_attentions=target.cross_attentions if output_attentions else None,
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
        eager: bool = False,
    ) -> Target:
        """The decoder alone, on a source already encoded as ``memory`` (batch, source length, hidden).

        Other arguments as in :meth:`forward`; ``eager`` shows the attention weights. A token sees the target up to
        itself and all of the source, so that one pass predicts every position without a look at its answer.
        Raises InputError when the target is longer than ``max_position_embeddings``.
        """
        config, length = self.config, decoder_input_ids.shape[1]
        check_length(length, config)
        eager = eager or config._attn_implementation == "eager"
        h = self.encoder.embeddings(decoder_input_ids)  # (B, T, d)
        past = self_attention_view(config, length, decoder_attention_mask, h.device, causal=True)
        source = padding_view(attention_mask)
        states, attentions, cross_attentions = [h], [], []
        for layer in self.decoder:
            h, weights, cross_weights = layer(h, memory, past, source, eager)
            states.append(h)
            if eager:
                attentions.append(weights)
                cross_attentions.append(cross_weights)
        return Target(self.final_norm(h), tuple(states), tuple(attentions), tuple(cross_attentions))

    def project(self, states: Tensor) -> Tensor:
        """Logits (…, vocabulary) of states (…, hidden): their products with every token's vector, without a bias."""
        return linear(states, self.encoder.embeddings.token.weight)


class Hypothesis(NamedTuple):
    """What a source was decoded into.

    ids: the tokens between bos and eos. score: their log-probability (nats), eos included, over the length penalty.
    """

    ids: list[int]
    score: float


def penalty(length: int, alpha: float) -> float:
    """((5 + length) / 6)^alpha, by which a log-probability is divided lest short texts always win (Wu et al. 2016)."""
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
    """The best target found for each source: greedily with one beam, by beam search with more (the paper: 4 and 0.6).

    input_ids, attention_mask: (batch, source length), as in :meth:`EncoderDecoder.forward`. At every step each source
    keeps the ``beams`` likeliest continuations. One that ends in ``eos_id`` leaves with its score, log-probability /
    ((5 + tokens, eos included) / 6)^length_penalty (Wu et al. 2016); a source is done once no other could still score
    higher. If none has ended after ``max_new_tokens`` (the paper: source length + 50), the likeliest is returned as it
    stands. Returns one :class:`Hypothesis` a source; the model's training mode is left as it was.

    Sources are encoded once, but the decoder reads the target anew at every step, without a cache of keys and values:
    the tokens it reads grow with the square of the length.
    Raises InputError when beams or max_new_tokens are below 1, the length penalty is negative, or a source or
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
        for module, mode in modes:  # each its own: a part may be frozen in evaluation while the rest trains
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
    real = torch.ones_like(input_ids) if attention_mask is None else attention_mask
    memory = model.encoder(input_ids, real).last_hidden_state  # (rows, S, d)
    longest = penalty(max_new_tokens, alpha)
    rows = list(range(len(input_ids)))  # the sources not done yet; the tensors below hold these alone
    best = [Hypothesis([], -torch.inf) for _ in rows]
    ids = input_ids.new_full((len(rows), beams, 1), bos_id)  # (rows, beams, tokens)
    logp = memory.new_full((len(rows), beams), -torch.inf, dtype=torch.float32)
    logp[:, 0] = 0  # of the equal beams at the start only the first counts

    for step in range(1, max_new_tokens + 1):
        h = model.read(ids.flatten(0, 1), memory.repeat_interleave(beams, 0), real.repeat_interleave(beams, 0)).last
        following = model.project(h[:, -1]).float().log_softmax(-1).unflatten(0, (-1, beams))  # (rows, beams, V)
        logp, choice = (logp[..., None] + following).flatten(1).topk(beams)  # (rows, beams · V) → (rows, beams)
        beam, token = choice // following.shape[-1], choice % following.shape[-1]
        ids = torch.cat((ids.take_along_dim(beam[..., None], 1), token[..., None]), -1)

        ended = token == eos_id
        for i, k in ended.nonzero().tolist():
            hypothesis = Hypothesis(ids[i, k, 1:-1].tolist(), logp[i, k].item() / penalty(step, alpha))
            best[rows[i]] = max(best[rows[i]], hypothesis, key=lambda found: found.score)
        logp = logp.masked_fill(ended, -torch.inf)
        # A log-probability only falls, so what a beam has now, over the penalty of the longest text, is all it can reach.
        reach = (logp.amax(1) / longest).tolist()
        going = [i for i, row in enumerate(rows) if reach[i] > best[row].score]
        if not going:
            return best
        rows = [rows[i] for i in going]
        ids, logp, memory, real = ids[going], logp[going], memory[going], real[going]

    for i, row in enumerate(rows):
        if best[row].score == -torch.inf:  # none has ended, so the likeliest is the first, as topk sorted them
            best[row] = Hypothesis(ids[i, 0, 1:].tolist(), logp[i, 0].item() / longest)
    return best
