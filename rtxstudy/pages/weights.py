"""The weights of a model for the transformer page, under the names of the page, and a trained run packed for it."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rtxlib.errors import InputError
from rtxlib.models.attention import Attention
from rtxlib.models.config import ModelConfig
from rtxlib.models.encoder import Encoder, EncoderBase
from rtxlib.models.layers import DecoderLayer, EncoderLayer, FeedForward
from rtxlib.runs.store import Run

LARGEST = 6_000_000  # parameters; at 16 bits each they make a page of 16 MB, which a browser still opens
EXACT = 1_000_000  # parameters; up to this number they keep their 32 bits

# The fields that the page computes, and those that it does not, with the value that switches each of them off.
KEPT = (
    "hidden_size", "num_attention_heads", "num_hidden_layers", "num_decoder_layers", "position", "rope_theta", "norm",
    "norm_placement", "norm_eps", "feedforward", "embedding_scale", "embedding_norm", "final_norm", "recurrent_depth",
    "block_sharing", "residual", "residual_scale", "pooling", "max_position_embeddings", "type_vocab_size",
)  # fmt: skip
ABSENT = {
    "prelude_layers": 0,
    "coda_layers": 0,
    "conditioning_size": None,
    "pass_norms": False,
    "pass_rank": None,
    "input_injection": False,
    "iteration_embedding": False,
    "loop_norm": False,
    "local_attention": None,
    "embedding_size": None,
    "first_attention_norm": True,
}


def configuration(config: ModelConfig) -> dict[str, Any]:
    """The fields that the page needs. Raises ``InputError`` for a model with a part that the page does not compute."""
    strange = [field for field, absent in ABSENT.items() if getattr(config, field) != absent]
    strange += [f"{field}={word!r}" for field, word in (("residual", "gated"), ("norm_placement", "sandwich"))
                if getattr(config, field) == word]  # fmt: skip
    if strange:
        raise InputError(
            f"The transformer page does not compute {', '.join(strange)}; choose a run of a model without it."
        )
    return {field: getattr(config, field) for field in KEPT}


def tensors(model: EncoderBase) -> dict[str, Tensor]:
    """Every weight under the page's name, as a view of the model's tensor: matrices (in, out), vectors (1, width).

    ``model`` is an EncoderDecoder or an EncoderForSequenceClassification. The names are those of
    rtxstudy/pages/transformer/core.js, without "weights/".
    """
    encoder: Encoder = model.encoder
    return {name: x if x.dim() == 2 else x[None] for name, x in _walk(model, encoder)}


def _walk(model: EncoderBase, encoder: Encoder) -> Iterator[tuple[str, Tensor]]:
    embeddings = encoder.embeddings
    yield "table", embeddings.token.weight.data
    if embeddings.config.type_vocab_size:
        yield "type", embeddings.token_type.weight.data[0]
    if embeddings.config.position == "learned":
        yield "position", embeddings.position.weight.data
    yield from _norm("embedding/norm", embeddings.norm)
    for number, block in enumerate(encoder.stack.blocks):
        for index, layer in enumerate(block):
            yield from _layer(f"encoder/{number}/{index}", layer)
    if encoder.config.residual == "learned":
        yield "loop/alpha", encoder.stack.residual.logit.data.sigmoid()
    yield from _norm("encoder/norm", encoder.final_norm)
    if hasattr(model, "decoder"):
        for index, layer in enumerate(model.decoder):
            yield from _layer(f"decoder/0/{index}", layer)
        yield from _norm("decoder/norm", model.final_norm)
        return
    if encoder.config.pooler:
        yield from _linear("pooler", encoder.pooler.weight, encoder.pooler.bias)
    yield from _linear("classifier", model.classifier.weight, model.classifier.bias)


def _linear(name: str, weight: Tensor, bias: Tensor | None) -> Iterator[tuple[str, Tensor]]:
    yield name, weight.data.T
    if bias is not None:
        yield f"{name}/bias", bias.data


def _norm(name: str, norm: nn.Module) -> Iterator[tuple[str, Tensor]]:
    for theirs, ours in (("weight", "gain"), ("bias", "bias")):
        if getattr(norm, theirs, None) is not None:  # an Identity has neither, RMSNorm no bias
            yield f"{name}/{ours}", getattr(norm, theirs).data


def _layer(name: str, layer: EncoderLayer | DecoderLayer) -> Iterator[tuple[str, Tensor]]:
    yield from _attention(f"{name}/attention", layer.attention)
    yield from _norm(f"{name}/attention/norm", layer.attention_norm)
    if isinstance(layer, DecoderLayer):
        yield from _attention(f"{name}/cross", layer.cross_attention)
        yield from _norm(f"{name}/cross/norm", layer.cross_attention_norm)
    yield from _feedforward(f"{name}/feedforward", layer.feedforward)
    yield from _norm(f"{name}/feedforward/norm", layer.feedforward_norm)


def _attention(name: str, attention: Attention) -> Iterator[tuple[str, Tensor]]:
    weights, bias = attention.qkv.weight.chunk(3), attention.qkv.bias
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    for word, weight, offset in zip(("query", "key", "value"), weights, biases, strict=True):
        yield from _linear(f"{name}/{word}", weight, offset)
    yield from _linear(f"{name}/output", attention.output.weight, attention.output.bias)


def _feedforward(name: str, feedforward: FeedForward) -> Iterator[tuple[str, Tensor]]:
    weight, bias, words = feedforward.input.weight, feedforward.input.bias, ("inner",)
    if feedforward.gated:
        words = ("gate", "value")
    biases = (None,) * len(words) if bias is None else bias.chunk(len(words))
    for word, part, offset in zip(words, weight.chunk(len(words)), biases, strict=True):
        yield from _linear(f"{name}/{word}", part, offset)
    yield from _linear(f"{name}/output", feedforward.output.weight, feedforward.output.bias)


def packed(run: Run) -> dict[str, Any]:
    """A trained run as the field ``run`` of the page's state: configuration, weights in base64, vocabulary and labels.

    Raises ``InputError`` for a run with more than :data:`LARGEST` parameters, a part that the page does not compute, or
    a vocabulary that is not WordPiece.
    """
    from rtxlib.runs.trained import open_run

    if (count := run.metrics.get("parameters", 0)) > LARGEST:  # a classifier that is no network has none and cannot be opened
        raise InputError(
            f"Run {run.key} has {count:,} parameters, and a page holds at most {LARGEST:,}; choose a smaller run, for "
            "example one of the demo profile."
        )
    model, tokenizer = open_run(run)
    backend = tokenizer.backend_tokenizer
    if type(backend.model).__name__ != "WordPiece":
        raise InputError(f"Run {run.key} reads a {type(backend.model).__name__} vocabulary; the page reads WordPiece.")
    words = sorted(backend.get_vocab().items(), key=lambda pair: pair[1])
    return {
        "name": f"{run.metrics['model']} ({run.key})",
        "config": configuration(model.config),
        "words": [word for word, _ in words],
        "lowercase": bool(backend.normalizer.lowercase),
        "labels": run.spec["label_names"],
    } | written(tensors(model), "float32" if count <= EXACT else "float16")


def written(weights: dict[str, Tensor], dtype: str) -> dict[str, Any]:
    """Matrices as JSON: ``weights`` lists name, rows and columns; ``data`` holds all numbers in order, in base64."""
    arrays = {name: x.cpu().numpy().astype(np.dtype(dtype).newbyteorder("<")) for name, x in weights.items()}
    return {
        "weights": [[name, *x.shape] for name, x in arrays.items()],
        "dtype": dtype,
        "data": base64.b64encode(b"".join(x.tobytes() for x in arrays.values())).decode(),
    }


def read_into(model: EncoderBase, record: dict[str, Any]) -> None:
    """Give ``model`` the weights that :func:`written` wrote into ``record``."""
    numbers = np.frombuffer(base64.b64decode(record["data"]), np.dtype(record["dtype"]).newbyteorder("<"))
    sizes = [rows * columns for _, rows, columns in record["weights"]]
    into = tensors(model)
    with torch.no_grad():
        for (name, rows, columns), values in zip(record["weights"], np.split(numbers, np.cumsum(sizes)[:-1]), strict=True):
            into[name].copy_(torch.from_numpy(values.astype(np.float32)).view(rows, columns))
