"""A whole encoder as a graph: token ids → logits of a classifier, or sentence embeddings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import onnx
from torch import Tensor

from rtx.export import quantize
from rtx.export.onnx_nodes import Graph
from rtxlib.models.attention import alibi_slopes
from rtxlib.models.config import GATED, ModelConfig
from rtxlib.models.encoder import Encoder
from rtxlib.models.heads import EncoderForSequenceClassification
from rtxlib.models.layers import EncoderLayer
from rtxlib.models.residual import FORMS


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
    calibration: quantize.Calibration | None = None

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
    if weights.calibration is not None and weights.number is None and quantize.is_rounded(name):
        matrix = weights.state[f"{name}.weight"].t().float().numpy()
        product = quantize.product(weights.graph, x, name, matrix, weights.calibration)
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


OUTPUT = {True: "logits", False: "embeddings"}  # of a classifier or not


def any_depth(config: ModelConfig) -> bool:
    """Whether ``passes`` is an input of the graph: the encoder was trained for every number of passes."""
    return config.depth_sampling == "uniform"


def to_onnx(
    model: Encoder | EncoderForSequenceClassification, pairs: bool = False, calibration: quantize.Calibration | None = None
) -> onnx.ModelProto:
    """The graph of a model in evaluation mode, in float32, or with eight-bit weights where a calibration is given.

    Inputs: ``input_ids`` and ``attention_mask`` (batch, length), for pairs ``token_type_ids`` (batch, length), and ``passes`` (a
    whole number) where :func:`any_depth`. Output: ``logits`` (batch, labels), or ``embeddings`` (batch, hidden).
    A pass that is repeated a fixed number of times is written out so often, and reads the same weights. Raises InputError for
    weights of more than 2 GiB.
    """
    return _Writer(model, pairs, calibration).model


class _Writer:
    def __init__(
        self, model: Encoder | EncoderForSequenceClassification, pairs: bool, calibration: quantize.Calibration | None
    ) -> None:
        self.classifies = isinstance(model, EncoderForSequenceClassification)
        self.encoder: Encoder = model.encoder if self.classifies else model
        self.config: ModelConfig = self.encoder.config
        self.graph = Graph()
        self.root = Weights(self.graph, model.state_dict(), ("",), calibration=calibration)
        self.at = self.root.sub("encoder") if self.classifies else self.root
        self.ids = self.graph.input("input_ids", ("batch", "length"))
        self.real = self.graph.input("attention_mask", ("batch", "length"))
        self.types = self.graph.input("token_type_ids", ("batch", "length")) if pairs and self._has_types() else None
        self.passes = self.graph.input("passes", ()) if any_depth(self.config) else None
        self.length = self.graph.op("Shape", self.ids, start=1, end=2)  # (1,)
        self.position = self._positions()
        self.views = self._view(local=False), self._view(local=True) if self.config.local_attention else None
        h = self._pooled(norm(self._stack(self._embeddings()), self.at.sub("final_norm"), self.config))
        h = linear(h, self.root.sub("classifier")) if self.classifies else h
        width = self.config.num_labels if self.classifies else self.config.hidden_size
        self.model = self.graph.model(h, OUTPUT[self.classifies], width)

    def _has_types(self) -> bool:
        return self.config.type_vocab_size > 1

    def _positions(self) -> str:
        """0, 1, 2, … (length,) in float32."""
        op = self.graph.op
        last = op("Squeeze", self.length, self.graph.whole([0]))
        return op("Cast", op("Range", self.graph.whole(0), last, self.graph.whole(1)), to=onnx.TensorProto.FLOAT)

    def _angles(self, frequencies: np.ndarray) -> str:
        """The angle of every position and frequency, (length, frequencies)."""
        column = self.graph.op("Unsqueeze", self.position, self.graph.whole([1]))
        return self.graph.op("Mul", column, self.graph.constant(frequencies[None]))

    def _view(self, local: bool) -> View:
        """:func:`rtxlib.models.attention.self_attention_view` as scores that are added."""
        graph, config, op = self.graph, self.config, self.graph.op
        seen = op("Cast", op("Unsqueeze", self.real, graph.whole([1, 2])), to=onnx.TensorProto.BOOL)  # (batch, 1, 1, length)
        distance = op("Abs", op("Sub", self.position, op("Unsqueeze", self.position, graph.whole([1]))))  # (length, length)
        if local:
            near = op("LessOrEqual", distance, graph.constant(config.local_attention // 2))
            seen = op("Or", op("And", seen, near), op("Equal", distance, graph.constant(0)))
        score = graph.constant(0)
        if config.position == "alibi":
            slopes = alibi_slopes(config.num_attention_heads).numpy()
            score = op("Mul", distance, graph.constant(-slopes[:, None, None]))
        mask = op("Where", seen, score, graph.constant(np.finfo(np.float32).min))
        if config.position != "rotary":
            return View(mask, None)
        theta = config.local_rope_theta if local and config.local_rope_theta else config.rope_theta
        frequencies = theta ** (-np.arange(0, config.head_dim, 2, dtype=np.float32) / config.head_dim)
        angles = self._angles(np.tile(frequencies, 2).astype(np.float32))
        return View(mask, (op("Cos", angles), op("Sin", angles)))

    def _embeddings(self) -> str:
        """:class:`rtxlib.models.encoder.Embeddings`."""
        graph, config, weights, op = self.graph, self.config, self.at.sub("embeddings"), self.graph.op
        if weights.calibration is None:
            x = op("Gather", weights.value("token.weight"), self.ids, axis=0)
        else:
            name = f"{weights.names[0]}token.weight"
            x = quantize.row(graph, name, weights.state[name].float().numpy(), self.ids)
        x = linear(x, weights.sub("widen")) if weights.has("widen") else x
        if config.embedding_scale:
            x = op("Mul", x, graph.constant(config.hidden_size**0.5))
        if config.type_vocab_size:
            types = graph.whole(0) if self.types is None else self.types
            x = op("Add", x, op("Gather", weights.value("token_type.weight"), types, axis=0))
        if config.position == "learned":
            x = op("Add", x, op("Slice", weights.value("position.weight"), graph.whole([0]), self.length, graph.whole([0])))
        elif config.position == "sinusoidal":
            d = config.hidden_size
            angles = self._angles(10000 ** (-np.arange(0, d, 2, dtype=np.float32) / d))
            both = (op("Unsqueeze", op(kind, angles), graph.whole([2])) for kind in ("Sin", "Cos"))
            table = op("Reshape", op("Concat", *both, axis=2), graph.whole([0, -1]))  # (length, d, or d + 1 for an odd d)
            x = op("Add", x, op("Slice", table, graph.whole([0]), graph.whole([d]), graph.whole([1])))
        return norm(x, weights.sub("norm"), config)

    def _layers(self, x: str, modules: list, weights: Weights, first_only: bool, of_pass: Weights | None = None) -> str:
        """x through these layers. first_only: the last computes only [CLS]."""
        for number, module in enumerate(modules):
            only = first_only and number == len(modules) - 1
            pass_weights = None if of_pass is None else of_pass.sub(str(number))
            x = layer(x, module, weights.sub(str(number)), self.config, self.views, only, pass_weights)
        return x

    def _stack(self, h: str) -> str:
        """:class:`rtxlib.models.recurrence.RecurrentStack`."""
        config, stack, weights = self.config, self.encoder.stack, self.at.sub("stack")
        only = config.reads_cls
        h = entered = self._layers(h, stack.prelude, weights.sub("prelude"), False)
        if self.passes is None:
            for number in range(config.recurrent_depth):
                last = number == config.recurrent_depth - 1 and not len(stack.coda)
                h = self._pass(h, entered, number, None, only and last)
        else:
            # The first pass differs in what it joins and adds, so it stands before the loop. All others are alike.
            h, op = self._pass(h, entered, 0, None, False), self.graph.op
            more = op("Sub", self.passes, self.graph.whole(1))
            h = self.graph.loop(more, h, lambda turn, before: self._pass(before, entered, 1, turn, False))
        return self._layers(h, stack.coda, weights.sub("coda"), only)

    def _of_pass(self, weights: Weights, name: str, number: int, turn: str | None, first_number: int = 0) -> Weights:
        """The parameters of one pass, from a list of modules whose first belongs to pass ``first_number``.

        turn: in a loop, how often it has turned; the passes of the loop begin with the second.
        """
        if turn is None:
            return weights.sub(f"{name}.{number - first_number}")
        places = range(1 - first_number, self.config.recurrent_depth - first_number)
        names = tuple(f"{weights.names[0]}{name}.{place}." for place in places)
        return replace(weights, names=names, number=self._trained(turn))

    def _trained(self, turn: str) -> str:
        """The turn whose parameters are read: passes after the trained ones read those of the last."""
        return self.graph.op("Min", turn, self.graph.whole(self.config.recurrent_depth - 2))

    def _pass(self, h: str, entered: str, number: int, turn: str | None, first_only: bool) -> str:
        """One pass: :meth:`RecurrentStack.begin` and :meth:`RecurrentStack.finish`."""
        graph, config, stack, weights, op = self.graph, self.config, self.encoder.stack, self.at.sub("stack"), self.graph.op
        x = op("Add", h, entered) if config.input_injection and number else h
        if config.iteration_embedding:
            place = graph.whole(number) if turn is None else op("Add", self._trained(turn), graph.whole(1))
            x = op("Add", x, op("Gather", weights.value("iteration.weight"), place, axis=0))
        if config.conditioning_size is not None and number:
            light = self._of_pass(weights, "conditioning", number, turn, first_number=1)
            x = layer(x, stack.conditioning[0], light, config, self.views)
        pass_weights = self._of_pass(weights, "of_pass", number, turn) if config.pass_norms or config.pass_rank else None
        block = number % len(stack.blocks)
        after = self._layers(x, stack.blocks[block], weights.sub(f"blocks.{block}"), first_only, pass_weights)
        before = first(graph, h, 1) if first_only else h
        return norm(self._joined(before, after, weights.sub("residual"), number, turn), weights.sub("loop_norm"), config)

    def _joined(self, before: str, after: str, weights: Weights, number: int, turn: str | None) -> str:
        """:class:`rtxlib.models.residual.PassResidual`."""
        graph, form, op = self.graph, FORMS[self.config.residual], self.graph.op
        if not form.joins(number):
            return after
        if form.alpha == "learned":
            place = graph.whole(number) if turn is None else op("Add", self._trained(turn), graph.whole(1))
            alpha = op("Sigmoid", op("Gather", weights.value("logit"), place, axis=0))
        elif form.alpha == "gate":
            alpha = op("Sigmoid", linear(op("Concat", before, after, axis=-1), weights.sub("gate")))
        else:
            alpha = graph.constant(self.config.residual_scale)
        if form.averages:
            return op("Add", before, op("Mul", op("Sub", after, before), alpha))
        return op("Add", after, op("Mul", before, alpha))

    def _pooled(self, h: str) -> str:
        """:meth:`rtxlib.models.encoder.Encoder.pool`, and for sentence embeddings the scaling to length one."""
        graph, config, op = self.graph, self.config, self.graph.op
        if config.reads_cls:
            h = op("Squeeze", first(graph, h, 1), graph.whole([1]))
            h = op("Tanh", linear(h, self.at.sub("pooler"))) if config.pooling == "pooler" else h
        else:
            real = op("Unsqueeze", op("Cast", self.real, to=onnx.TensorProto.FLOAT), graph.whole([2]))
            both = (op("ReduceSum", x, graph.whole([1]), keepdims=0) for x in (op("Mul", h, real), real))
            h = op("Div", *both)
        if self.classifies or not config.normalize:
            return h
        size = op("Sqrt", op("ReduceSum", op("Mul", h, h), graph.whole([1]), keepdims=1))
        return op("Div", h, op("Max", size, graph.constant(1e-12)))
