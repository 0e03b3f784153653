"""The same models as transformers opens them: with its base class, from_pretrained, save_pretrained, and its Trainer.

transformers imports this module when a checkpoint is opened (:mod:`rtxlib.models`).
"""

from __future__ import annotations

from transformers import PreTrainedModel

from rtxlib.models import encoder, heads, seq2seq
from rtxlib.models.config import ModelConfig


def _with_base(model: type[encoder.EncoderBase]) -> type[PreTrainedModel]:
    """A subclass of the model and of transformers' base class. transformers draws, loads and saves its weights."""

    def __init__(self: PreTrainedModel, config: ModelConfig) -> None:
        PreTrainedModel.__init__(self, config)
        model.__init__(self, config)  # ends with draw_weights

    theirs = {"draw_weights": PreTrainedModel.post_init, "save_pretrained": PreTrainedModel.save_pretrained}
    members = {"__init__": __init__, "__module__": __name__, "__doc__": model.__doc__, "_supports_sdpa": True}
    return type(model.__name__, (model, PreTrainedModel), members | theirs)


Encoder = _with_base(encoder.Encoder)
EncoderForSequenceClassification = _with_base(heads.EncoderForSequenceClassification)
EncoderDecoder = _with_base(seq2seq.EncoderDecoder)
