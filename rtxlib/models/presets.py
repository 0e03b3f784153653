"""Named configurations, and the one call that builds a model from a name."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import torch

from rtxlib.errors import InputError, nearest
from rtxlib.models.config import ModelConfig
from rtxlib.models.heads import EncoderForSequenceClassification

NAMED = ("standard-6x384", "recurrent-3x2x256")  # the two that the study sets against each other
_PATTERN = re.compile(r"standard-(?P<n>\d+)x(?P<width>\d+)|recurrent-(?P<rn>\d+)x(?P<r>\d+)x(?P<rwidth>\d+)")


def preset(name: str, **overrides: Any) -> ModelConfig:
    """The configuration a name stands for: ``standard-<layers>x<width>`` or ``recurrent-<layers>x<iterations>x<width>``.

    Heads are 64 wide (32 below a width of 128), the feed-forward is 4·width inside, biases everywhere, no final norm:
    the shape of the study that this one must surpass. ``overrides`` are fields of :class:`ModelConfig`.
    Raises InputError for a name that does not read so, a width no heads fit, or an unknown field.
    """
    match = _PATTERN.fullmatch(name)
    if not match:
        raise InputError(
            f"There is no model '{name}'; write standard-<layers>x<width> or recurrent-<layers>x<iterations>x<width>, "
            f"for example {' or '.join(NAMED)}.{nearest(name, NAMED)}"
        )
    layers, width = int(match["n"] or match["rn"]), int(match["width"] or match["rwidth"])
    head = 64 if width >= 128 else 32
    if width % head or not width:
        raise InputError(f"'{name}': the width must be a multiple of {head}, the width of an attention head.")
    fields = {field.name for field in dataclasses.fields(ModelConfig)} | {"num_labels"}
    for field in overrides:
        if field not in fields:
            raise InputError(f"A model has no setting '{field}'.{nearest(field, fields)}")
    settings: dict[str, Any] = {
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": width // head,
        "intermediate_size": 4 * width,
        "recurrent_depth": int(match["r"] or 1),
    }
    return ModelConfig(**(settings | overrides))


def build(name: str, seed: int = 0, **overrides: Any) -> EncoderForSequenceClassification:
    """A freshly initialised classifier of this name; the same seed gives the same weights.

    ``build("recurrent-3x2x256", block_sharing="unshared")`` changes a field. The caller's random state is left alone.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return EncoderForSequenceClassification(preset(name, **overrides))
