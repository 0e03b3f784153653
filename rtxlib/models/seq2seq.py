"""The Transformer of "Attention Is All You Need" (Vaswani et al. 2017): an encoder and a decoder."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn
from transformers.modeling_outputs import Seq2SeqLMOutput

from rtxlib.errors import InputError
from rtxlib.models.attention import padding_view, self_attention_view
from rtxlib.models.config import ModelConfig
from rtxlib.models.encoder import Encoder, EncoderBase, check_length
from rtxlib.models.kernels import linear
from rtxlib.models.layers import NO_TRACE, DecoderLayer, Trace, make_norm


class EncoderDecoder(EncoderBase):
    """logits = E·decoder(target so far, encoder(source)), where E is the one table of token vectors (Vaswani et al. 2017).

    The paper uses one matrix three times: to embed the source, to embed the target and to predict the next token (§3.4).
    Both sides therefore share the encoder's ``embeddings``, and its embedding matrix is the output projection. Recurrence,
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
