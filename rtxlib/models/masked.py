"""The encoder with a head that predicts hidden tokens, for pretraining (masked language modelling, Devlin et al. 2019)."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers.modeling_outputs import MaskedLMOutput

from rtxlib.models.config import ModelConfig
from rtxlib.models.encoder import Encoder, EncoderBase
from rtxlib.models.kernels.linear import Linear, linear
from rtxlib.models.kernels.vocabulary import vocabulary_loss

NOT_PREDICTED = -100  # the label of a token that is not predicted, as in transformers


@dataclass
class MaskedOutput(MaskedLMOutput):
    """What :meth:`EncoderForMaskedLM.forward` returns."""

    best: Tensor | None = None  # (predicted,) ids


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
    ) -> MaskedOutput | tuple:
        """Predict tokens; arguments as in :meth:`Encoder.forward`.

        labels: (batch, length), the true id of each token to predict, −100 elsewhere. With labels the head runs at these
        positions alone, since the product with the whole vocabulary is the most expensive one, and no logits are kept: ``loss``
        is the mean cross-entropy (nats), and ``best`` the most probable ids, (predicted,), in reading order. Without labels
        ``logits`` are (batch, length, vocabulary).
        """
        states = self.encoder(
            input_ids, attention_mask, token_type_ids, recurrent_depth=recurrent_depth
        ).last_hidden_state
        table, predicted = self.encoder.embeddings.token.weight, None if labels is None else labels != NOT_PREDICTED
        x = self.norm(F.gelu(self.transform(states if labels is None else states[predicted])))
        if labels is None:
            output = MaskedOutput(logits=linear(x, table, self.bias))
        else:
            loss, best = vocabulary_loss(x, table, self.bias, labels[predicted])
            output = MaskedOutput(loss=loss / max(len(x), 1), best=best)
        return output if return_dict is not False else output.to_tuple()
