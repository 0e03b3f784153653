"""Every model of the study and of its references, from one configuration and one set of parts.

``import rtxlib.models`` registers the architecture with transformers: ``AutoConfig``, ``AutoModel``,
``AutoModelForSequenceClassification``, ``AutoModelForSeq2SeqLM`` and ``pipeline`` then open what these models save.

config, presets              what a model is, and its names
attention → layers → residual, recurrence → encoder → heads, seq2seq
early_exit                   a text leaves the loop when its label is settled
pretrained, references       checkpoints of BERT, MiniLM and ModernBERT, opened and saved
kernels                      what is there for speed, beside the plain formulas
"""

from transformers import AutoConfig, AutoModel, AutoModelForSeq2SeqLM, AutoModelForSequenceClassification

from rtxlib.models.config import ModelConfig
from rtxlib.models.early_exit import EarlyExit
from rtxlib.models.encoder import Encoder
from rtxlib.models.heads import EncoderForSequenceClassification
from rtxlib.models.presets import build, preset
from rtxlib.models.seq2seq import EncoderDecoder

AutoConfig.register(ModelConfig.model_type, ModelConfig, exist_ok=True)
AutoModel.register(ModelConfig, Encoder, exist_ok=True)
AutoModelForSequenceClassification.register(ModelConfig, EncoderForSequenceClassification, exist_ok=True)
AutoModelForSeq2SeqLM.register(ModelConfig, EncoderDecoder, exist_ok=True)

__all__ = [
    "EarlyExit",
    "Encoder",
    "EncoderDecoder",
    "EncoderForSequenceClassification",
    "ModelConfig",
    "build",
    "preset",
]
