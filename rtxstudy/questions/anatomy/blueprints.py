"""What a drawing of an encoder shows: its parts in the order in which a text meets them, read from the modules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd
import torch
from torch import nn

from rtxlib.models.encoder import Encoder
from rtxlib.models.presets import preset
from rtxstudy.questions.anatomy.anatomy import activation

_POSITIONS = {"rotary": "rotary positions", "alibi": "cost of distance"}  # what attention does with positions
_ADDED = {"learned": "learned position", "sinusoidal": "sines of the position"}  # what is added to a token's vector
_READ = {"mean": "mean of all tokens", "cls": "state of [CLS]", "pooler": "tanh(W·[CLS] + b)"}


def blueprints(names: Mapping[str, str], **overrides: Any) -> pd.DataFrame:
    """The parts of several encoders, one row for each part: those of :func:`blueprint`, and ``model``.

    ``names``: what an encoder is called → its preset. The encoders are built on the meta device, so no weight is needed.
    ``overrides``: fields of their configurations, such as the size of the vocabulary.
    """
    parts = []
    for name, of_preset in names.items():
        with torch.device("meta"):
            parts.append(blueprint(Encoder(preset(of_preset, **overrides))).assign(model=name))
    return pd.concat(parts, ignore_index=True)


def blueprint(encoder: Encoder) -> pd.DataFrame:
    """The parts of an encoder, from the token ids to the vector of a text. Weights on the meta device suffice.

    Columns:

    - ``stage``: "embedding", "layer" (a part that every layer of the block has) or "reading";
    - ``part``: "tokens", "embedding", "norm", "attention", "add", "add and norm", "feed-forward" or "vector";
    - ``words``: what this encoder has there;
    - ``opens``: whether a residual branch begins before this part. It ends at the next "add" or "add and norm";
    - ``parameters``: of this part in all layers of the block; those of a pooler count to "vector", also if it is not read;
    - ``width``: numbers of a state;
    - ``layers``: one letter for each layer, G if it sees all tokens and L if it sees neighbours only;
    - ``passes``: how often the block is passed;
    - ``total``: the parameters of the encoder.
    """
    rows = [*_embedding(encoder), *_layer(encoder), *_reading(encoder)]
    table = pd.DataFrame(rows, columns=["stage", "part", "words", "opens", "parameters"])
    layers = encoder.stack.blocks[0]
    return table.assign(
        width=encoder.config.hidden_size,
        layers="".join("L" if layer.local else "G" for layer in layers),
        passes=encoder.config.recurrent_depth,
        total=_count(encoder),
    )


Row = tuple[str, str, str, bool, int]


def _count(*modules: nn.Module) -> int:
    return sum(p.numel() for module in modules for p in module.parameters())


def _named(norm: nn.Module) -> str:
    return type(norm).__name__


def _embedding(encoder: Encoder) -> Iterator[Row]:
    config, tables = encoder.config, encoder.embeddings
    yield "embedding", "tokens", f"at most {config.max_position_embeddings:,} tokens", False, 0
    added = ["token", *(["segment"] if hasattr(tables, "token_type") else []), _ADDED.get(config.position)]
    norm = _count(tables.norm)
    words = f"{' + '.join(filter(None, added))} ({tables.token.num_embeddings:,}\xa0tokens)"
    yield "embedding", "embedding", words, False, _count(tables) - norm
    if not isinstance(tables.norm, nn.Identity):
        yield "embedding", "norm", _named(tables.norm), False, norm


def _layer(encoder: Encoder) -> Iterator[Row]:
    layers = encoder.stack.blocks[0]
    last = layers[-1]  # the first layer may lack a norm
    for part, words in (("attention", _attention(encoder)), ("feed-forward", _feedforward(encoder))):
        name = part.replace("-", "")
        norms = [getattr(layer, f"{name}_norm") for layer in layers]
        norm, bare = _named(norms[-1]), isinstance(norms[0], nn.Identity)
        of_part, of_norms = _count(*(getattr(layer, name) for layer in layers)), _count(*norms)
        if last.pre_norm:
            yield "layer", "norm", f"{norm}, not in layer 1" if bare else norm, True, of_norms
            yield "layer", part, words, False, of_part
            yield "layer", "add", "+", False, 0
        else:
            yield "layer", part, words, True, of_part
            yield "layer", "add and norm", f"+, then {norm}", False, of_norms


def _attention(encoder: Encoder) -> str:
    config, layers = encoder.config, encoder.stack.blocks[0]
    heads = layers[0].attention.num_heads
    words = f"{heads} head{'s' * (heads > 1)} of {layers[0].attention.head_dim}"
    words += f", {_POSITIONS[config.position]}" if config.position in _POSITIONS else ""
    local = sum(layer.local for layer in layers)
    reach = f"{config.local_attention // 2} tokens to each side" if local else "all tokens"
    return f"{words}; sees {reach}" + (f" in {local} layers, all in {len(layers) - local}" if local else "")


def _feedforward(encoder: Encoder) -> str:
    feed = encoder.stack.blocks[0][0].feedforward
    width, inner = feed.output.out_features, feed.output.in_features
    gate, gated = ("2\xa0×\xa0", "gated ") if feed.gated else ("", "")
    return f"{width:,} → {gate}{inner:,} → {width:,}, {gated}{activation(encoder)}"


def _reading(encoder: Encoder) -> Iterator[Row]:
    config = encoder.config
    if not isinstance(encoder.final_norm, nn.Identity):
        yield "reading", "norm", _named(encoder.final_norm), False, _count(encoder.final_norm)
    words = _READ[config.pooling] + (", of length one" if config.normalize else "")
    yield "reading", "vector", words, False, _count(encoder.pooler) if config.pooler else 0
