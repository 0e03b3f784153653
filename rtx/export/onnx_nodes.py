"""An ONNX graph, written down node by node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from rtxlib.errors import InputError

OPSET = 20  # the first with GELU
_IR = 10  # of the file format; every ONNX Runtime since 1.18 reads it
_MOST_BYTES = 2**31 - 1  # of a protobuf file
FLOAT, WHOLE, TRUTH = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


class Graph:
    """Nodes in the order in which they are computed, and the weights that they read.

    A value is named by a string. A weight is stored once, however many nodes read it, also from inside a loop.
    """

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, onnx.TensorProto] = {}
        self.inputs: list[onnx.ValueInfoProto] = []
        self._constants: dict[tuple[Any, ...], str] = {}
        self._count = 0

    def input(self, name: str, axes: Sequence[str]) -> str:
        """An input of whole numbers with these named axes."""
        self.inputs.append(helper.make_tensor_value_info(name, WHOLE, list(axes)))
        return name

    def weight(self, name: str, array: np.ndarray) -> str:
        """A weight of this name, stored once."""
        if name not in self.weights:
            self.weights[name] = numpy_helper.from_array(np.ascontiguousarray(array), name)
        return name

    def constant(self, value: Any, kind: type[np.generic] = np.float32) -> str:
        """A constant, stored once for each value. A Python list is an array."""
        array = np.array(value, dtype=kind)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._constants:
            self._constants[key] = self.weight(f"constant_{len(self._constants)}", array)
        return self._constants[key]

    def whole(self, value: Any) -> str:
        """A constant of whole numbers."""
        return self.constant(value, np.int64)

    def op(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """A node. Returns the name of its output, or a list of names where it has several."""
        self._count += 1
        names = [f"{kind}_{self._count}" + (f"_{i}" if outputs > 1 else "") for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, f"{kind}_{self._count}", **attributes))
        return names if outputs > 1 else names[0]

    def loop(self, times: str, state: str, body: Callable[[str, str], str]) -> str:
        """The state after ``body`` was applied ``times`` times. body: (number of the turn from 0, state) → state."""
        outside, self.nodes = self.nodes, []
        self._count += 1
        turn, go_on, before = (f"{name}_{self._count}" for name in ("turn", "go_on", "state"))
        after = body(turn, before)
        condition = self.op("Identity", go_on)
        inner = helper.make_graph(
            self.nodes,
            f"pass_{self._count}",
            [
                helper.make_tensor_value_info(turn, WHOLE, []),
                helper.make_tensor_value_info(go_on, TRUTH, []),
                helper.make_tensor_value_info(before, FLOAT, ["batch", "length", "width"]),
            ],
            [
                helper.make_tensor_value_info(condition, TRUTH, []),
                helper.make_tensor_value_info(after, FLOAT, ["batch", "length", "width"]),
            ],
        )
        self.nodes = outside
        return self.op("Loop", times, "", state, body=inner)

    def model(self, output: str, name: str, width: int) -> onnx.ModelProto:
        """The graph whose output, called ``name``, is (batch, width). Raises InputError if it is too large for one file."""
        self.nodes.append(helper.make_node("Identity", [output], [name], name))
        size = sum(len(tensor.raw_data) for tensor in self.weights.values())
        if size > _MOST_BYTES:
            raise InputError(f"An ONNX file holds at most 2 GiB, and the weights of this encoder take {size:,} bytes.")
        result = helper.make_tensor_value_info(name, FLOAT, ["batch", width])
        graph = helper.make_graph(self.nodes, "encoder", self.inputs, [result], list(self.weights.values()))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=_IR, producer_name="rtxlib")
        onnx.checker.check_model(model)
        return model
