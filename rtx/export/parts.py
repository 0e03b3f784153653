"""The parts of an encoder as nodes of a graph. Each function writes the formula of the module that its docstring names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from torch import Tensor

from rtx.export import eight_bits
from rtx.export.graph import Graph
from rtxlib.models.config import GATED, ModelConfig
from rtxlib.models.layers import EncoderLayer


class View(NamedTuple):
    """What the tokens of a layer see: scores that are added (broadcast to (batch, heads, length, length)), cosine and sine."""

    mask: str
    rotary: tuple[str, str] | None


@dataclass(frozen=True)
class Weights:
    """The parameters of a module as values of a graph.

    names: how the names of the module's parameters begin. Several names are the modules of several passes, which have one shape;
    ``number`` then says which of them is read. Matrices are stored (in, out), which is how ONNX multiplies.
    calibration: how maps get eight-bit weights; None: all weights are float32.
    """

    graph: Graph
    state: dict[str, Tensor]
    names: tuple[str, ...]
    number: str | None = None
    calibration: eight_bits.Calibration | None = None

    def sub(self, name: str) -> Weights:
        """The parameters of a module inside."""
        return replace(self, names=tuple(f"{before}{name}." for before in self.names))

    def has(self, name: str) -> bool:
        """Whether there is a parameter of this name, or a module."""
        return any(known == self.names[0] + name or known.startswith(f"{self.names[0]}{name}.") for known in self.state)

    def value(self, name: str, matrix: bool = False) -> str:
        """The parameter of this name. matrix: of a linear map, (out, in), to be stored (in, out)."""
        tensors = [self.state[before + name] for before in self.names]
        arrays = [(x.t() if matrix else x).detach().float().cpu().numpy() for x in tensors]
        if self.number is None:
            return self.graph.weight(self.names[0] + name, arrays[0])
        stacked = self.graph.weight(f"{self.names[0]}{name}.stacked", np.stack(arrays))
        return self.graph.op("Gather", stacked, self.number, axis=0)


def linear(x: str, weights: Weights) -> str:
    """x·Wᵀ + b, with eight-bit weights where the model is calibrated and the map is one of those that get them."""
    name = weights.names[0].removesuffix(".")
    if weights.calibration is not None and weights.number is None and eight_bits.is_rounded(name):
        matrix = weights.state[f"{name}.weight"].t().float().numpy()
        product = eight_bits.product(weights.graph, x, name, matrix, weights.calibration)
    else:
        product = weights.graph.op("MatMul", x, weights.value("weight", matrix=True))
    return weights.graph.op("Add", product, weights.value("bias")) if weights.has("bias") else product


def low_rank(x: str, weights: Weights) -> str:
    """:class:`rtxlib.models.layers.LowRank`: x·Aᵀ·Bᵀ + b."""
    narrow = weights.graph.op("MatMul", x, weights.value("a", matrix=True))
    return weights.graph.op("Add", weights.graph.op("MatMul", narrow, weights.value("b", matrix=True)), weights.value("bias"))


def mapped(x: str, weights: Weights, name: str, pass_weights: Weights | None, addition: str) -> str:
    """A linear map of a layer, and what the pass adds to it."""
    y = linear(x, weights.sub(name))
    if pass_weights is None or not pass_weights.has(addition):
        return y
    return weights.graph.op("Add", y, low_rank(x, pass_weights.sub(addition)))


def norm(x: str, weights: Weights, config: ModelConfig) -> str:
    """LayerNorm or RMSNorm over the last axis; nothing where the module is the identity."""
    if not weights.has("weight"):
        return x
    graph, weight = weights.graph, weights.value("weight")
    if config.norm == "layernorm":
        inputs = [x, weight, *([weights.value("bias")] if weights.has("bias") else [])]
        return graph.op("LayerNormalization", *inputs, axis=-1, epsilon=float(config.norm_eps))
    square = graph.op("ReduceMean", graph.op("Mul", x, x), graph.whole([-1]), keepdims=1)
    size = graph.op("Sqrt", graph.op("Add", square, graph.constant(config.norm_eps)))
    return graph.op("Mul", graph.op("Div", x, size), weight)


def activated(graph: Graph, x: str, config: ModelConfig) -> str:
    """The activation of the feed-forward. A gated one takes the gate and then the value, and halves the width."""
    if config.feedforward not in GATED:
        return graph.op({"gelu": "Gelu", "relu": "Relu"}[config.feedforward], x)
    gate, value = graph.op("Split", x, outputs=2, axis=-1, num_outputs=2)
    gate = graph.op("Mul", gate, graph.op("Sigmoid", gate)) if config.feedforward == "swiglu" else graph.op("Gelu", gate)
    return graph.op("Mul", gate, value)


def feedforward(x: str, weights: Weights, config: ModelConfig, pass_weights: Weights | None) -> str:
    """:class:`rtxlib.models.layers.FeedForward`."""
    inner = activated(weights.graph, mapped(x, weights, "input", pass_weights, "feedforward_input"), config)
    return mapped(inner, weights, "output", pass_weights, "feedforward_output")


def rotated(graph: Graph, x: str, rotary: tuple[str, str]) -> str:
    """x ⊙ cos + (−x₂, x₁) ⊙ sin; x: (batch, heads, length, head)."""
    first, second = graph.op("Split", x, outputs=2, axis=-1, num_outputs=2)
    turned = graph.op("Concat", graph.op("Neg", second), first, axis=-1)
    return graph.op("Add", graph.op("Mul", x, rotary[0]), graph.op("Mul", turned, rotary[1]))


def attention(x: str, weights: Weights, config: ModelConfig, view: View, first_only: bool, pass_weights: Weights | None) -> str:
    """:class:`rtxlib.models.attention.Attention`. first_only: only [CLS] asks."""
    graph, heads, head = weights.graph, config.num_attention_heads, config.head_dim
    q, k, v = graph.op("Split", mapped(x, weights, "qkv", pass_weights, "qkv"), outputs=3, axis=-1, num_outputs=3)
    split = graph.whole([0, 0, heads, head])
    q, v = (graph.op("Transpose", graph.op("Reshape", part, split), perm=[0, 2, 1, 3]) for part in (q, v))
    k = graph.op("Reshape", k, split)
    if view.rotary is not None:
        q, k = rotated(graph, q, view.rotary), rotated(graph, graph.op("Transpose", k, perm=[0, 2, 1, 3]), view.rotary)
    q = first(graph, q, 2) if first_only else q
    q = graph.op("Mul", q, graph.constant(head**-0.5))
    k = graph.op("Transpose", k, perm=[0, 2, 3, 1] if view.rotary is None else [0, 1, 3, 2])  # (batch, heads, head, length)
    mask = first(graph, view.mask, 2) if first_only else view.mask
    softmax = graph.op("Softmax", graph.op("Add", graph.op("MatMul", q, k), mask), axis=-1)
    joined = graph.op("Transpose", graph.op("MatMul", softmax, v), perm=[0, 2, 1, 3])
    joined = graph.op("Reshape", joined, graph.whole([0, 0, config.hidden_size]))
    return mapped(joined, weights, "output", pass_weights, "attention_output")


def first(graph: Graph, x: str, axis: int) -> str:
    """The first place along an axis, which stays."""
    return graph.op("Slice", x, graph.whole([0]), graph.whole([1]), graph.whole([axis]))


def layer(
    x: str,
    module: EncoderLayer,
    weights: Weights,
    config: ModelConfig,
    views: tuple[View, View],
    first_only: bool = False,
    pass_weights: Weights | None = None,
) -> str:
    """:class:`rtxlib.models.layers.EncoderLayer`.

    views: of global and of local layers. pass_weights: what this pass has of its own.
    """
    graph = weights.graph

    def normed(y: str, name: str) -> str:
        of_this_pass = pass_weights is not None and pass_weights.has(name)
        return norm(y, (pass_weights if of_this_pass else weights).sub(name), config)

    asking = normed(x, "attention_norm") if module.pre_norm else x
    attended = attention(asking, weights.sub("attention"), config, views[module.local], first_only, pass_weights)
    x = first(graph, x, 1) if first_only else x
    if module.pre_norm:
        x = graph.op("Add", x, norm(attended, weights.sub("attention_out_norm"), config))
        fed = feedforward(normed(x, "feedforward_norm"), weights.sub("feedforward"), config, pass_weights)
        return graph.op("Add", x, norm(fed, weights.sub("feedforward_out_norm"), config))
    x = normed(graph.op("Add", x, attended), "attention_norm")
    return normed(graph.op("Add", x, feedforward(x, weights.sub("feedforward"), config, pass_weights)), "feedforward_norm")
