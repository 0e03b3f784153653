"""The encoder with a head: sequence classification, or the prediction of hidden tokens (Devlin et al. 2019) for pretraining."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers.modeling_outputs import MaskedLMOutput, SequenceClassifierOutput

from rtxlib.errors import InputError
from rtxlib.models.config import ModelConfig
from rtxlib.models.early_exit import EarlyExit, classify_with_exits
from rtxlib.models.encoder import Encoder, EncoderBase
from rtxlib.models.kernels import Dropout, Linear, linear, vocabulary_loss
from rtxlib.models.layers import Context


@dataclass
class ClassifierOutput(SequenceClassifierOutput):
    """What transformers' classifiers return, and ``passes`` (batch,): after how many passes each text left the loop."""

    passes: Tensor | None = None


class EncoderForSequenceClassification(EncoderBase):
    """logits = W·dropout(pooled) + b, pooled as :meth:`Encoder.pool` does."""

    def __init__(self, config: ModelConfig) -> None:
        if config.pooler and config.pooling != "pooler":  # a pooler that nothing reads is left out
            config = copy.deepcopy(config)
            config.pooler = False
        super().__init__(config)
        self.encoder = Encoder(config)
        self.dropout = Dropout(config.classifier_dropout)
        self.classifier = Linear(config.hidden_size, config.num_labels)
        self.draw_weights()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        labels: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        offsets: Sequence[int] | None = None,
        recurrent_depth: int | None = None,
        early_exit: EarlyExit | None = None,
    ) -> ClassifierOutput | tuple:
        """Classify a batch; arguments as in :meth:`Encoder.forward`.

        labels: (batch,) class indices; with them ``loss`` is the mean cross-entropy (nats). early_exit: each text leaves
        the loop when its label is settled, and ``passes`` (batch,) says when (:mod:`rtxlib.models.early_exit`). Returns
        logits (batch, num_labels). Raises InputError if early exit is combined with training mode, states, attentions
        or packed texts.
        """
        if early_exit is not None:
            if output_attentions or output_hidden_states or offsets is not None:
                raise InputError(
                    "With early exits a batch shrinks on its way, so it has no states or attentions to show, and takes no "
                    "packed texts."
                )
            if self.training:
                raise InputError("Early exit is for a trained model; call model.eval() first, or train with depth_sampling.")
            logits, passes = classify_with_exits(
                self.encoder, self.decode, input_ids, attention_mask, early_exit, recurrent_depth, token_type_ids
            )
            output = ClassifierOutput(_loss(logits, labels), logits, passes=passes)
            return output if return_dict is not False else output.to_tuple()
        # A read-out of [CLS] needs position 0 alone, so the last layer computes no other, unless somebody looks at it.
        shows_all = output_attentions or output_hidden_states
        encoded = self.encoder(
            input_ids,
            attention_mask,
            token_type_ids,
            output_attentions=output_attentions,
            output_hidden_states=output_hidden_states,
            queries=1 if self.config.reads_cls and not shows_all else None,
            offsets=offsets,
            recurrent_depth=recurrent_depth,
        )
        logits = self.classify(encoded.last_hidden_state, attention_mask, offsets)
        output = ClassifierOutput(_loss(logits, labels), logits, encoded.hidden_states, encoded.attentions)
        return output if return_dict is not False else output.to_tuple()

    def decode(self, h: Tensor, attention_mask: Tensor | None, context: Context) -> Tensor:
        """Logits (batch, num_labels) from the loop's state after any pass (batch, length, hidden).

        The state goes through coda, final norm and read-out. context: what the coda's layers see (:meth:`Encoder.context`). A
        state cut to [CLS] is allowed if there is no coda.
        """
        stack = self.encoder.stack
        h = stack.through(stack.coda, h, context._replace(queries=1 if self.config.reads_cls else None))
        return self.classify(self.encoder.final_norm(h), attention_mask)

    def classify(
        self, states: Tensor, attention_mask: Tensor | None = None, offsets: Sequence[int] | None = None
    ) -> Tensor:
        """Logits (batch, num_labels) from final states (batch, length, hidden): pooling, dropout, linear map."""
        return self.classifier(self.dropout(self.encoder.pool(states, attention_mask, offsets)))


def _loss(logits: Tensor, labels: Tensor | None) -> Tensor | None:
    return None if labels is None else F.cross_entropy(logits.float(), labels)


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
        self.draw_weights()

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
        states = self.encoder(input_ids, attention_mask, token_type_ids, recurrent_depth=recurrent_depth).last_hidden_state
        table, predicted = self.encoder.embeddings.token.weight, None if labels is None else labels != NOT_PREDICTED
        x = self.norm(F.gelu(self.transform(states if labels is None else states[predicted])))
        if labels is None:
            output = MaskedOutput(logits=linear(x, table, self.bias))
        else:
            loss, best = vocabulary_loss(x, table, self.bias, labels[predicted])
            output = MaskedOutput(loss=loss / max(len(x), 1), best=best)
        return output if return_dict is not False else output.to_tuple()
