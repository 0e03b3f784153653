"""Named configurations, and the one call that builds a model from a name."""

from __future__ import annotations

import re
from typing import Any

import torch

from rtxlib.errors import InputError, nearest, shortened
from rtxlib.models.config import ModelConfig, check_names
from rtxlib.models.heads import EncoderForSequenceClassification
from rtxlib.models.size import WEIGHT_BYTES, require_room

_PATTERN = re.compile(r"standard-(?P<n>\d+)x(?P<width>\d+)|recurrent-(?P<rn>\d+)x(?P<r>\d+)x(?P<rwidth>\d+)", re.ASCII)
_MOST_DIGITS = 20  # in a name; of thousands Python makes no number

Settings = dict[str, Any]


def _sizes(layers: int, width: int, heads: int, inner: int) -> Settings:
    sizes = {"num_hidden_layers": layers, "hidden_size": width, "num_attention_heads": heads}
    return sizes | {"intermediate_size": inner}


# "Attention Is All You Need" (Vaswani et al. 2017). Both sides share one vocabulary, whose vectors are scaled by √d and are
# also the output projection. Neither side has a final norm. The dropout inside the feed-forward is that of torch.nn.Transformer.
_TRANSFORMER: Settings = {
    "vocab_size": 37_000,
    "type_vocab_size": 0,
    "position": "sinusoidal",
    "embedding_scale": True,
    "embedding_norm": False,
    "norm": "layernorm",
    "norm_placement": "post",
    "norm_eps": 1e-5,
    "feedforward": "relu",
    "attention_dropout": 0.0,
    "activation_dropout": 0.1,
    "pooling": "mean",
}
# BERT (Devlin et al. 2019). The sizes below base are those of Turc et al. 2019.
BERT: Settings = {
    "position": "learned",
    "norm": "layernorm",
    "norm_placement": "post",
    "feedforward": "gelu",
    "pooler": True,
    "pooling": "pooler",
}
# MiniLM (Wang et al. 2020) as tuned by sentence-transformers: a narrow BERT that returns a mean over the tokens.
_MINILM: Settings = BERT | {"pooling": "mean", "normalize": True, "max_seq_length": 128}
# ModernBERT (Warner et al. 2024).
MODERNBERT: Settings = {
    "vocab_size": 50_368,
    "pad_token_id": 50_283,
    "type_vocab_size": 0,
    "max_position_embeddings": 8192,
    "position": "rotary",
    "rope_theta": 160_000.0,
    "local_rope_theta": 10_000.0,
    "local_attention": 128,
    "norm": "layernorm",
    "norm_eps": 1e-5,
    "norm_bias": False,
    "first_attention_norm": False,
    "final_norm": True,
    "feedforward": "geglu",
    "bias": False,
    "pooling": "mean",
    "normalize": True,
    "hidden_dropout": 0.0,
    "attention_dropout": 0.0,
    "classifier_dropout": 0.0,
}

PRESETS: dict[str, Settings] = {
    "transformer-base": _TRANSFORMER | _sizes(6, 512, 8, 2048) | {"num_decoder_layers": 6},
    "transformer-big": _TRANSFORMER | _sizes(6, 1024, 16, 4096) | {"num_decoder_layers": 6, "hidden_dropout": 0.3},
    "bert-tiny": BERT | _sizes(2, 128, 2, 512),
    "bert-mini": BERT | _sizes(4, 256, 4, 1024),
    "bert-small": BERT | _sizes(4, 512, 8, 2048),
    "bert-medium": BERT | _sizes(8, 512, 8, 2048),
    "bert-base": BERT | _sizes(12, 768, 12, 3072),
    "bert-large": BERT | _sizes(24, 1024, 16, 4096),
    "minilm-l3": _MINILM | {"normalize": False} | _sizes(3, 384, 12, 1536),
    "minilm-l6": _MINILM | {"max_seq_length": 256} | _sizes(6, 384, 12, 1536),
    "minilm-l12": _MINILM | _sizes(12, 384, 12, 1536),
    "modernbert-base": MODERNBERT | _sizes(22, 768, 12, 1152),
    "modernbert-large": MODERNBERT | _sizes(28, 1024, 16, 2624),
}
# The published weights of a preset's architecture, by their id on the Hub. A model built from a preset has random weights.
CHECKPOINTS: dict[str, str] = {
    "bert-tiny": "google/bert_uncased_L-2_H-128_A-2",
    "bert-mini": "google/bert_uncased_L-4_H-256_A-4",
    "bert-small": "google/bert_uncased_L-4_H-512_A-8",
    "bert-medium": "google/bert_uncased_L-8_H-512_A-8",
    "bert-base": "google-bert/bert-base-uncased",
    "bert-large": "google-bert/bert-large-uncased",
    "minilm-l3": "sentence-transformers/paraphrase-MiniLM-L3-v2",
    "minilm-l6": "sentence-transformers/all-MiniLM-L6-v2",
    "minilm-l12": "sentence-transformers/all-MiniLM-L12-v2",
    "modernbert-base": "answerdotai/ModernBERT-base",
    "modernbert-large": "answerdotai/ModernBERT-large",
}
NAMED = ("standard-6x384", "recurrent-3x2x256", *PRESETS)  # first the two that the study compares


def _study(name: str) -> Settings:
    """The settings of a ``standard-…`` or ``recurrent-…`` name. Raises InputError for any other name."""
    match = _PATTERN.fullmatch(name)
    if not match:
        raise InputError(
            f"There is no model '{shortened(name)}'; write standard-<layers>x<width> or recurrent-<layers>x<passes>x<width>, for "
            f"example {NAMED[0]} or {NAMED[1]}, or take one of {', '.join(PRESETS)}.{nearest(name, NAMED)}"
        )
    if max(map(len, filter(None, match.groups()))) > _MOST_DIGITS:
        raise InputError(f"'{shortened(name)}' has a number of more than {_MOST_DIGITS} digits; give a smaller one.")
    layers, width = int(match["n"] or match["rn"]), int(match["width"] or match["rwidth"])
    head = 64 if width >= 128 else 32
    if width % head or not width:
        raise InputError(f"'{name}': the width must be a multiple of {head}, the width of an attention head.")
    return _sizes(layers, width, width // head, 4 * width) | {"recurrent_depth": int(match["r"] or 1)}


def preset(name: str, **overrides: Any) -> ModelConfig:
    """The configuration of this name: one of :data:`PRESETS`, or a study model of any size.

    Study models are called ``standard-<layers>x<width>`` and ``recurrent-<layers>x<passes>x<width>``. They have heads of width 64
    (32 below a width of 128), a feed-forward of width 4·width inside, biases everywhere, no final norm. ``overrides`` are fields
    of :class:`ModelConfig`.
    Raises InputError for an unknown name, a width that no number of heads divides, or an unknown field.
    """
    settings = PRESETS.get(name) or _study(name)
    check_names(overrides)
    return ModelConfig(**(settings | overrides))


def build(name: str, seed: int = 0, **overrides: Any) -> EncoderForSequenceClassification:
    """A newly initialised classifier of this name; the same seed gives the same weights.

    ``build("recurrent-3x2x256", block_sharing="unshared")`` changes a field. For an encoder–decoder it is a classifier on
    the encoder. The caller's random state does not change. Raises InputError as :func:`preset` does, and for a model that does
    not fit into memory.
    """
    config = preset(name, **overrides)
    require_room(name, config, "building", WEIGHT_BYTES, device=torch.get_default_device())
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # only the CPU's; torch.manual_seed would seed GPUs too
        return EncoderForSequenceClassification(config)
