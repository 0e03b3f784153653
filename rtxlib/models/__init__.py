"""Every model of the study and of its references, from one configuration and one set of parts.

``import rtxlib.models`` registers the architecture with transformers: ``AutoConfig``, ``AutoModel``,
``AutoModelForSequenceClassification``, ``AutoModelForSeq2SeqLM`` and ``pipeline`` then open what these models save.

config, presets              what a model is, and its names
attention → layers → residual, recurrence → encoder → heads, seq2seq
early_exit                   a text leaves the loop when its label is settled
pretrained, references       checkpoints of BERT, MiniLM and ModernBERT, opened and saved
for_transformers             the same models with transformers' base class
kernels                      what is there for speed, beside the plain formulas
"""

from typing import Any

from transformers import AutoConfig, AutoModel, AutoModelForSeq2SeqLM, AutoModelForSequenceClassification

from rtxlib.models.config import ModelConfig
from rtxlib.models.early_exit import EarlyExit
from rtxlib.models.encoder import Encoder
from rtxlib.models.heads import EncoderForSequenceClassification
from rtxlib.models.presets import build, preset
from rtxlib.models.seq2seq import EncoderDecoder


def _opened_later(name: str) -> type:
    """A stand-in for a class of :mod:`rtxlib.models.for_transformers`, which is imported when a model is opened."""

    def opening(method: str) -> Any:
        def open_model(cls: type, *arguments: Any, **options: Any) -> Any:
            from rtxlib.models import for_transformers

            return getattr(getattr(for_transformers, name), method)(*arguments, **options)

        return classmethod(open_model)

    methods = {method: opening(method) for method in ("from_pretrained", "_from_config")}
    return type(name, (), {"config_class": ModelConfig, **methods})


AutoConfig.register(ModelConfig.model_type, ModelConfig, exist_ok=True)
AutoModel.register(ModelConfig, _opened_later("Encoder"), exist_ok=True)
AutoModelForSequenceClassification.register(ModelConfig, _opened_later("EncoderForSequenceClassification"), exist_ok=True)
AutoModelForSeq2SeqLM.register(ModelConfig, _opened_later("EncoderDecoder"), exist_ok=True)

__all__ = ["EarlyExit", "Encoder", "EncoderDecoder", "EncoderForSequenceClassification", "ModelConfig", "build", "preset"]
