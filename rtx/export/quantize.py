"""Maps with eight-bit weights: what they multiply, and how their numbers are rounded.

A token's state is rounded to whole numbers with a scale of its own, so the other texts of a batch change no answer. A few
channels of a state are much larger than the others and would take all of its whole numbers. They are divided by a factor that the
weights are multiplied by (SmoothQuant, Xiao et al. 2023). The factors come from the states of calibration texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import onnx
import torch
from torch import Tensor, nn

from rtx.export.onnx_nodes import Graph
from rtxlib.models.kernels import Linear
from rtxlib.models.layers import MATRICES

# Weights take seven of the eight bits. Processors without VNNI add two products in sixteen bits, where larger weights overflow.
_MOST = 63
_MOST_STATE, _MIDDLE = 127, 128  # of a rounded state, which is stored from 1 to 255
TOWARDS_WEIGHTS = (0.4, 0.5, 0.6, 0.7)  # α of SmoothQuant: 0 makes the weights' rows alike, 1 the states' channels
_LEAST = 1e-5  # of a largest value, so that a channel of zeros divides nothing by zero


class Calibration(NamedTuple):
    """What decides how a model is rounded.

    largest: name of a map → the largest absolute value of each of its inputs, (in,). towards_weights: how much of the difference
    between the inputs is moved into the weights, one of TOWARDS_WEIGHTS.
    """

    largest: Mapping[str, np.ndarray]
    towards_weights: float


def is_rounded(name: str) -> bool:
    """Whether the map of this name gets eight-bit weights: the four of each layer. Head, pooler and gate stay in float32."""
    return name.endswith(tuple(MATRICES.values()))


@torch.no_grad()
def largest_inputs(model: nn.Module, batches: Iterable[Mapping[str, Tensor]]) -> dict[str, np.ndarray]:
    """The largest absolute value of each input of each map, over batches of calibration texts without padding."""
    maxima: dict[str, np.ndarray] = {}

    def see(name: str):
        def hook(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            largest = inputs[0].abs().flatten(0, -2).amax(dim=0).numpy()
            maxima[name] = np.maximum(maxima.get(name, 0), largest)

        return hook

    maps = [(name, m) for name, m in model.named_modules() if isinstance(m, Linear) and is_rounded(name)]
    hooks = [module.register_forward_pre_hook(see(name)) for name, module in maps]
    try:
        for batch in batches:
            model(**batch, output_hidden_states=True)  # so that the last layer computes every position, not [CLS] alone
    finally:
        for hook in hooks:
            hook.remove()
    return maxima


def product(graph: Graph, x: str, name: str, weight: np.ndarray, calibration: Calibration) -> str:
    """x·W with eight-bit whole numbers. weight: W (in, out)."""
    towards = calibration.towards_weights
    of_weight = np.maximum(np.abs(weight).max(axis=1), _LEAST)
    smooth = np.maximum(calibration.largest[name], _LEAST) ** towards / of_weight ** (1 - towards)
    smooth = (smooth / np.exp(np.log(smooth).mean())).astype(np.float32)
    whole, scale = rounded(weight * smooth[:, None], axis=0)
    op = graph.op
    x = op("Mul", x, graph.weight(f"{name}.smooth", 1 / smooth))
    largest = op("Max", op("ReduceMax", op("Abs", x), graph.whole([-1]), keepdims=1), graph.constant(1e-12))  # (B, T, 1)
    x = op("Mul", x, op("Div", graph.constant(_MOST_STATE), largest))
    x = op("Cast", op("Add", x, graph.constant(_MIDDLE + 0.5)), to=onnx.TensorProto.UINT8)  # the cast cuts, so it rounds
    y = op("MatMulInteger", x, graph.weight(f"{name}.weight", whole), graph.constant(_MIDDLE, np.uint8))
    y = op("Mul", op("Cast", y, to=onnx.TensorProto.FLOAT), largest)
    return op("Mul", y, graph.weight(f"{name}.scale", scale[0] / _MOST_STATE))


def row(graph: Graph, name: str, table: np.ndarray, ids: str) -> str:
    """The rows of a table that is stored in eight bits, each row with a scale of its own."""
    whole, scale = rounded(table, axis=1, most=127)
    rows = graph.op("Gather", graph.weight(name, whole), ids, axis=0)
    scales = graph.op("Gather", graph.weight(f"{name}.scale", scale), ids, axis=0)
    return graph.op("Mul", graph.op("Cast", rows, to=onnx.TensorProto.FLOAT), scales)


def rounded(matrix: np.ndarray, axis: int, most: int = _MOST) -> tuple[np.ndarray, np.ndarray]:
    """int8 whole numbers from −most to most, and the float32 scale of each column (axis 0) or row (axis 1), kept as an axis."""
    scale = np.maximum(np.abs(matrix).max(axis=axis, keepdims=True), 1e-12) / most
    return np.rint(matrix / scale).astype(np.int8), scale.astype(np.float32)
