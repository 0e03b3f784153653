"""Heads on the encoder: sequence classification."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor
from transformers.modeling_outputs import SequenceClassifierOutput

from rtxlib.errors import InputError
from rtxlib.models import early_exit as exits
from rtxlib.models.config import ModelConfig
from rtxlib.models.dropout import Dropout
from rtxlib.models.early_exit import EarlyExit
from rtxlib.models.encoder import Encoder, EncoderBase
from rtxlib.models.linear import Linear
from rtxlib.models.recurrence import Walk


@dataclass
class ClassifierOutput(SequenceClassifierOutput):
    """What transformers' classifiers return, and ``passes`` (batch,): after how many passes each text left the loop."""

    passes: Tensor | None = None


class EncoderForSequenceClassification(EncoderBase):
    """logits = W·dropout(pooled) + b, pooled as :meth:`Encoder.pool` does."""

    def __init__(self, config: ModelConfig) -> None:
        if config.pooler and config.pooling != "pooler":  # weights that nothing reads are not carried along
            config = copy.deepcopy(config)
            config.pooler = False
        super().__init__(config)
        self.encoder = Encoder(config)
        self.dropout = Dropout(config.classifier_dropout)
        self.classifier = Linear(config.hidden_size, config.num_labels)
        self.post_init()

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

        labels: (batch,) class indices; with them the output carries the mean cross-entropy as ``loss`` (nats).
        early_exit: let each text leave the loop once its label is settled, and note its ``passes``
        (:func:`rtxlib.models.early_exit.classify`). Returns logits (batch, num_labels). Raises InputError when early exit
        is asked together with states, attentions, token types or packed texts.
        """
        if early_exit is not None:
            if output_attentions or output_hidden_states or offsets is not None or token_type_ids is not None:
                raise InputError(
                    "With early exits a batch shrinks on its way, so it has no states or attentions to show, and takes "
                    "neither packed texts nor token types."
                )
            left = exits.classify(self, input_ids, attention_mask, early_exit, recurrent_depth)
            loss = None if labels is None else F.cross_entropy(left.logits.float(), labels)
            output = ClassifierOutput(loss, left.logits, passes=left.passes)
            return output if return_dict is not False else output.to_tuple()
        # A [CLS] read-out looks at position 0 alone, so the last layer need not compute the others: the same logits for
        # about a seventh less work at six layers. Whoever asks for states or attentions, or packs texts,
        # gets all of them.
        everything = output_attentions or output_hidden_states or offsets is not None
        cls_only = self.config.reads_cls and not everything
        encoded = self.encoder(
            input_ids,
            attention_mask,
            token_type_ids,
            output_attentions=output_attentions,
            output_hidden_states=output_hidden_states,
            queries=1 if cls_only else None,
            offsets=offsets,
            recurrent_depth=recurrent_depth,
        )
        logits = self.classify(encoded.last_hidden_state, attention_mask, offsets)
        loss = None if labels is None else F.cross_entropy(logits.float(), labels)
        output = ClassifierOutput(loss, logits, encoded.hidden_states, encoded.attentions)
        return output if return_dict is not False else output.to_tuple()

    def decode(self, h: Tensor, attention_mask: Tensor | None, walk: Walk) -> Tensor:
        """Logits (batch, num_labels) from the loop's state after any pass (batch, length, hidden): coda, final norm, read-out.

        walk: what the coda's layers see (:meth:`Encoder.views`); of a state cut to [CLS] there must be no coda.
        """
        h = walk.through(self.encoder.stack.coda, h, 1 if self.config.reads_cls else None)
        return self.classify(self.encoder.final_norm(h), attention_mask)

    def classify(
        self, states: Tensor, attention_mask: Tensor | None = None, offsets: Sequence[int] | None = None
    ) -> Tensor:
        """Pool the states (batch, length, hidden) of any iteration and read the logits (batch, num_labels) from them."""
        return self.classifier(self.dropout(self.encoder.pool(states, attention_mask, offsets)))
