"""The encoder with a head that predicts hidden tokens, for pretraining (masked language modelling, Devlin et al. 2019)."""

from __future__ import annotations

import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers.modeling_outputs import MaskedLMOutput

from rtxlib.models.config import ModelConfig
from rtxlib.models.encoder import Encoder, EncoderBase
from rtxlib.models.kernels.linear import Linear, linear

NOT_PREDICTED = -100  # the label of a token that is not predicted, as in transformers


class EncoderForMaskedLM(EncoderBase):
    """logits = E·norm(gelu(W·h + b)) + c, where E is the encoder's own table of token vectors (Press & Wolf 2017).

    W maps the hidden width to the width of the table, so a factorised table (``embedding_size``) makes the head smaller, too.
    """

    def __init__(self, config: ModelConfig) -> None:
        if config.pooler:  # nothing would read it
            config = copy.deepcopy(config)
            config.pooler, config.pooling = False, "cls"
        super().__init__(config)
        self.encoder = Encoder(config)
        width = config.embedding_size or config.hidden_size
        self.transform = Linear(config.hidden_size, width)
        self.norm = nn.LayerNorm(width, eps=config.norm_eps)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))
        self.post_init()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        labels: Tensor | None = None,
        return_dict: bool | None = None,
        recurrent_depth: int | None = None,
    ) -> MaskedLMOutput | tuple:
        """Predict tokens; arguments as in :meth:`Encoder.forward`.

        labels: (batch, length), the true id of each token to predict, −100 elsewhere. With labels the head runs at these
        positions alone, since the product with the whole vocabulary is the most expensive one: ``logits`` are then
        (predicted, vocabulary), in reading order, and ``loss`` is their mean cross-entropy (nats). Without labels logits are
        (batch, length, vocabulary).
        """
        states = self.encoder(
            input_ids, attention_mask, token_type_ids, recurrent_depth=recurrent_depth
        ).last_hidden_state
        if labels is not None:
            states = states[labels != NOT_PREDICTED]
        x = self.norm(F.gelu(self.transform(states)))
        logits = linear(x, self.encoder.embeddings.token.weight, self.bias)
        loss = None if labels is None else F.cross_entropy(logits.float(), labels[labels != NOT_PREDICTED])
        output = MaskedLMOutput(loss=loss, logits=logits)
        return output if return_dict is not False else output.to_tuple()
