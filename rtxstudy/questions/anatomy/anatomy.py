"""What an encoder is made of, read from its modules and weights, and compared with what is said about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd
import torch
from torch import nn

from rtxlib.errors import InputError, nearest
from rtxlib.models.attention import self_attention_view
from rtxlib.models.encoder import Encoder
from rtxlib.models.layers import EncoderLayer
from rtxlib.models.presets import preset
from rtxlib.models.references import REFERENCES
from rtxlib.models.size import parameters

_ACTIVATIONS: dict[str, tuple[str, Callable[[torch.Tensor], torch.Tensor]]] = {  # name -> formula, as text and as code
    "GELU": ("x·Φ(x), exact", lambda x: x * torch.special.ndtr(x)),
    "SiLU": ("x·σ(x)", lambda x: x * torch.sigmoid(x)),
    "ReLU": ("max(x, 0)", lambda x: x.clamp(min=0)),
}
_POOLING = {"mean": "mean of the real tokens' states", "cls": "state of [CLS]", "pooler": "pooler on top of [CLS]"}
_UNLEARNED = {"sinusoidal": "absolute: sines and cosines, nothing learned", "none": "none"}


def _layers(encoder: Encoder) -> list[EncoderLayer]:
    """Every layer with weights of its own, in order."""
    return [layer for block in encoder.stack.blocks for layer in block]


def _is_norm(module: nn.Module) -> bool:
    return isinstance(module, nn.LayerNorm | nn.RMSNorm)


# ---------------------------------------- one encoder, row by row


def anatomy(encoder: Encoder, model_type: str | None = None) -> dict[str, str]:
    """What the encoder is made of: name of a row -> description, in the usual order of such comparisons.

    The answers come from the modules and the shapes of their weights wherever possible, so weights on the meta device suffice.
    Every encoder here keeps Q, K and V in one matrix; ``model_type``, a key of ``references.REFERENCES``, adds how the
    checkpoint keeps them. Raises ``InputError`` for an unknown ``model_type``.
    """
    if model_type is not None and model_type not in REFERENCES:
        raise InputError(
            f"There is no reference '{model_type}'; there are {', '.join(REFERENCES)}.{nearest(model_type, REFERENCES)}"
        )
    layer = _layers(encoder)[0]
    biases, counted = _with_bias(encoder), parameters(encoder)
    active = activation(encoder)
    return {
        "Position encoding": _position(encoder),
        "Layer normalization": _placement(encoder),
        "Norm before the first attention": _first_norm(encoder),
        "LayerNorm bias": f"{'yes' if any(biases) else 'no'}, {_among(biases, 'in', 'norms')}",
        "Attention mechanism": _projections(layer, model_type),
        "Attention reach": _attention_reach(encoder),
        "Feed-forward network": _feedforward(layer, active),
        "Activation": f"{active}, {_ACTIVATIONS[active][0]}",
        "MLP dimensions": _mlp(layer),
        "Sequence length": _length(encoder),
        "Layers": _depth(encoder),
        "Hidden size": f"{encoder.embeddings.token.embedding_dim}, in {layer.attention.num_heads} heads",
        "Pooling of a sentence": _pooling(encoder),
        "Parameters": f"{counted['total']:,}, including {counted['embedding']:,} in the embedding matrix",
    }


def activation(encoder: Encoder) -> str:
    """The name of the formula that the feed-forward's activation computes: GELU, SiLU or ReLU."""
    x = torch.linspace(-4, 4, 65, dtype=torch.float64, device="cpu")  # numbers, even if the encoder is on the meta device
    computed = _layers(encoder)[0].feedforward.activation(x)
    return next(name for name, (_, act) in _ACTIVATIONS.items() if torch.allclose(computed, act(x)))


def _with_bias(encoder: Encoder) -> list[bool]:
    """Whether each norm of the encoder has a bias; an RMSNorm never has one."""
    return [getattr(norm, "bias", None) is not None for norm in encoder.modules() if _is_norm(norm)]


def _normed(encoder: Encoder, before: bool) -> list[bool]:
    """Whether each sub-layer has a norm of its own before it (``before``), or after it."""
    return [
        layer.pre_norm == before and _is_norm(norm)
        for layer in _layers(encoder)
        for norm in (layer.attention_norm, layer.feedforward_norm)
    ]


def _position(encoder: Encoder) -> str:
    config = encoder.config
    if hasattr(encoder.embeddings, "position"):
        return f"absolute: a learned vector for each of {encoder.embeddings.position.num_embeddings} positions"
    view = self_attention_view(config, 2, None, torch.device("cpu"))  # what every global layer sees
    if view.rotary is not None:
        local = any(layer.local for layer in _layers(encoder)) and config.local_rope_theta
        return f"rotary (RoPE), base {config.rope_theta:,.0f}" + (f"; {local:,.0f} in local layers" if local else "")
    return "ALiBi: distance lowers the scores" if view.mask is not None else _UNLEARNED[config.position]


def _placement(encoder: Encoder) -> str:
    layer = _layers(encoder)[0]
    name = type(layer.feedforward_norm).__name__
    words = f"pre-norm: x + f({name}(x))" if layer.pre_norm else f"post-norm: {name}(x + f(x))"
    return words + ("; one more norm after the last layer" if _is_norm(encoder.final_norm) else "")


def _first_norm(encoder: Encoder) -> str:
    has_norm, embedding = _normed(encoder, before=True)[0], _is_norm(encoder.embeddings.norm)
    if has_norm:
        return "its own, after the embedding's" if embedding else "its own"
    return "only the embedding's" if embedding else "none"


def _stored(model_type: str) -> int:
    """The number of matrices in which the reference's checkpoint keeps a layer's Q, K and V."""
    modules = REFERENCES[model_type].modules
    return next(len(theirs) for ours, theirs in modules.items() if ours.endswith("attention.qkv"))


def _projections(layer: EncoderLayer, model_type: str | None) -> str:
    shape = tuple(layer.attention.qkv.weight.shape)
    if model_type is None:
        return f"Q, K and V stacked: one {shape} matrix"
    if _stored(model_type) == 1:
        return f"combined QKV: one {shape} matrix, in the checkpoint and here"
    return f"separate Q/K/V: {_stored(model_type)} matrices in the checkpoint, stacked into one {shape} here"


def _attention_reach(encoder: Encoder) -> str:
    layers = _layers(encoder)
    everywhere = sum(not layer.local for layer in layers)
    if everywhere == len(layers):
        return "every layer sees all tokens"
    window = encoder.config.local_attention
    every = encoder.config.global_attention_every
    return f"{everywhere} of {len(layers)} layers, one in {every}, see all tokens; the others see {window // 2} to each side"


def _feedforward(layer: EncoderLayer, active: str) -> str:
    return f"gated (GLU): W₃·({active}(W₁x) ⊙ W₂x)" if layer.feedforward.gated else f"standard: W₂·{active}(W₁x)"


def _mlp(layer: EncoderLayer) -> str:
    inner, outer = layer.feedforward.input, layer.feedforward.output
    if inner.weight.numel() == outer.weight.numel():
        return f"symmetric: {inner.in_features} → {inner.out_features} → {outer.out_features}"
    return f"asymmetric: {inner.in_features} → {inner.out_features} → {outer.in_features} → {outer.out_features}"


def _longest(encoder: Encoder) -> int:
    tables = encoder.embeddings
    return tables.position.num_embeddings if hasattr(tables, "position") else encoder.config.max_position_embeddings


def _length(encoder: Encoder) -> str:
    longest, limit = _longest(encoder), encoder.config.max_seq_length
    return f"{longest} tokens" + (f"; a sentence embedding reads the first {limit}" if limit and limit < longest else "")


def _pooling(encoder: Encoder) -> str:
    return _POOLING[encoder.config.pooling] + (", scaled to length one" if encoder.config.normalize else "")


def _depth(encoder: Encoder) -> str:
    passes, layers = encoder.config.recurrent_depth, len(encoder.stack.blocks[0])
    return f"{layers}" if passes == 1 else f"{layers} in a block, passed {passes} times"


# ---------------------------------------- claims about the two models

TOLERANCE = 0.10  # relative error that an approximate number may have


def claims(minilm: Encoder, modernbert: Encoder) -> pd.DataFrame:
    """What is usually said about the two models, and what they show: ``claim``, ``says``, ``is``, ``holds``.

    ``says`` quotes notes that are older than this study, ``is`` is computed here, and ``holds`` (bool) tells whether the two
    agree. A number that is said approximately may be off by :data:`TOLERANCE`. Parameters are counted in the presets, built
    without weights. Everything else comes from the two encoders, whose weights may be random or on the meta device.
    """
    sizes = {name: _size(name) for name in ("minilm-l3", "minilm-l6", "minilm-l12", "modernbert-base", "bert-base")}
    shares = [sizes[name] / sizes["bert-base"] for name in ("minilm-l3", "minilm-l6", "minilm-l12")]
    typical = [preset(f"modernbert-{size}").num_hidden_layers for size in ("base", "large")]
    mini_layers, modern_layers = len(_layers(minilm)), len(_layers(modernbert))
    mini_after, mini_before = _normed(minilm, before=False), _normed(minilm, before=True)
    modern_layer, modern_before = _layers(modernbert)[0], _normed(modernbert, before=True)
    outside = [name for name in ("embeddings.norm", "final_norm") if _is_norm(modernbert.get_submodule(name))]
    mini_biases, modern_biases = _with_bias(minilm), _with_bias(modernbert)
    combined, separate = _qkv_parameters(modern_layer)
    mini_stored, modern_stored = _stored("bert"), _stored("modernbert")
    rotary = {modernbert.config.rope_theta, modernbert.config.local_rope_theta}
    mini_mlp, modern_mlp = _mlp(_layers(minilm)[0]), _mlp(modern_layer)
    said_mlp = "768 → 2304 → 1152 → 768"
    rows = [
        *(
            (f"parameters of {name}", f"~{about}M", f"{sizes[name] / 1e6:.1f}M", _close(sizes[name], about * 1e6))
            for name, about in (("minilm-l3", 14), ("minilm-l6", 23), ("minilm-l12", 33), ("modernbert-base", 110))
        ),
        (
            "MiniLM's parameters relative to BERT-base",
            "approximately 1/4",
            f"{', '.join(f'{share:.2f}' for share in shares)} (L3, L6, L12)",
            any(_close(share, 1 / 4) for share in shares),
        ),
        ("MiniLM's layers", "3, 6 or 12", f"{mini_layers}", mini_layers in (3, 6, 12)),
        ("ModernBERT's layers, in the diagram", "12", f"{modern_layers}", modern_layers == 12),
        (
            "ModernBERT's layers, in the table",
            "12 to 22",
            f"{typical[0]} (base), {typical[1]} (large)",
            all(12 <= layers <= 22 for layers in typical),
        ),
        ("MiniLM's norms, in the text", "after each sub-layer", _among(mini_after, "after"), all(mini_after)),
        ("MiniLM's norms, in the diagram", "before each sub-layer", _among(mini_before, "before"), all(mini_before)),
        ("ModernBERT's norms, in the table", "pre-layer norm", _placement(modernbert), modern_layer.pre_norm),
        ("ModernBERT's norms, in the text", "before each sub-layer", _among(modern_before, "before"), all(modern_before)),
        ("ModernBERT's norms outside the layers, in the diagram", "none", " and ".join(outside) or "none", not outside),
        ("MiniLM's norms have biases", "yes", _among(mini_biases, "in", "norms"), all(mini_biases)),
        ("ModernBERT's norms have biases", "no", _among(modern_biases, "in", "norms"), not any(modern_biases)),
        ("MiniLM's longest text", "512 tokens", _length(minilm), _longest(minilm) == 512),
        ("ModernBERT's longest text", "8192 tokens", _length(modernbert), _longest(modernbert) == 8192),
        ("base of ModernBERT's rotary angles", "10,000", _position(modernbert), rotary <= {10_000, None}),
        ("MiniLM's Q/K/V in the checkpoint", "separate", f"{mini_stored} matrices", mini_stored == 3),
        ("ModernBERT's Q/K/V in the checkpoint", "combined", f"{modern_stored} matrix", modern_stored == 1),
        (
            "combined Q/K/V has fewer parameters",
            "reducing parameter count",
            f"{combined:,} combined, {separate:,} separate",
            combined < separate,
        ),
        ("ModernBERT's gate", "SiLU", activation(modernbert), activation(modernbert) == "SiLU"),
        ("MiniLM's activation", "GELU", activation(minilm), activation(minilm) == "GELU"),
        ("MiniLM's MLP", "symmetric", mini_mlp, mini_mlp.startswith("symmetric")),
        ("ModernBERT's MLP", f"{said_mlp}, Wi larger than Wo", modern_mlp, modern_mlp == f"asymmetric: {said_mlp}"),
    ]
    return pd.DataFrame(rows, columns=["claim", "says", "is", "holds"])


def _size(name: str) -> int:
    """Parameters of a preset's encoder, built on the meta device, where nothing is allocated."""
    with torch.device("meta"):
        return parameters(Encoder(preset(name)))["total"]


def _close(number: float, about: float) -> bool:
    return abs(number - about) <= TOLERANCE * about


def _among(flags: Sequence[bool], where: str, what: str = "sub-layers") -> str:
    return f"{where} {sum(flags)} of {len(flags)} {what}"


def _qkv_parameters(layer: EncoderLayer) -> tuple[int, int]:
    """Parameters of a layer's combined projection, and of three separate ones with the same width and bias."""
    combined = layer.attention.qkv
    one = nn.Linear(combined.in_features, combined.in_features, combined.bias is not None, device="meta")
    return sum(p.numel() for p in combined.parameters()), 3 * sum(p.numel() for p in one.parameters())
