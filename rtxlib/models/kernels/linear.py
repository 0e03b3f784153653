"""The linear map, which on a CPU goes through oneDNN: bias and activation inside the product, weights laid out beforehand.

torch's own way hands float32 to MKL and adds the bias in a second pass over memory. oneDNN is faster in bfloat16, and
in both formats with weights that :func:`prepacked` has laid out. LOG.md has the measurements.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.flop_counter import flop_registry, register_flop_formula

Activation = Callable[[Tensor], Tensor]
_INSIDE = {None: ("none", ""), F.gelu: ("gelu", "none"), F.relu: ("relu", "")}  # activation -> oneDNN's words for it


@cache
def _multiplies(dtype: torch.dtype) -> bool:
    """Whether this machine has oneDNN and oneDNN multiplies this number format."""
    if not torch.backends.mkldnn.is_available() or platform.machine().lower() not in ("x86_64", "amd64"):
        return False
    return dtype == torch.float32 or (dtype == torch.bfloat16 and torch.ops.mkldnn._is_mkldnn_bf16_supported())


def number_format(x: Tensor) -> torch.dtype:
    """The number format that products of x use: autocast's where it is on, otherwise that of x."""
    return torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else x.dtype


def _product(x: Tensor, weight: Tensor, bias: Tensor | None, activation: Activation | None) -> Tensor:
    """activation(x·Wᵀ + b) by oneDNN. The activation is GELU, ReLU or none. The operands have one dtype; W may be prepacked."""
    inside, kind = _INSIDE[activation]
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, inside, [], kind)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x·Wᵀ + b, as ``F.linear``: x (…, in), weight (out, in), bias (out,) → (…, out); under autocast in its format.

    oneDNN computes bf16 products in training. F.linear computes all others. Without gradients, autocast caches converted
    weights, which oneDNN cannot read. In float32, MKL's sums are more exact, and the reference tests need that.
    """
    half = x.device.type == "cpu" and number_format(x) == torch.bfloat16 and _multiplies(torch.bfloat16)
    return _Linear.apply(x, weight, bias) if half and torch.is_grad_enabled() else F.linear(x, weight, bias)


class _Linear(torch.autograd.Function):
    """dx = g·W, dW = gᵀ·x, db = Σ g, with the products in the format of the forward pass."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        dtype = number_format(x)
        x, weight = x.to(dtype), weight.to(dtype)
        ctx.save_for_backward(x, weight)
        return _product(x, weight, None if bias is None else bias.to(dtype), None)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        rows = grad.flatten(0, -2)  # (rows, out)
        to_x, to_weight, to_bias = ctx.needs_input_grad
        return (
            (rows @ weight).view(x.shape) if to_x else None,
            rows.t() @ x.flatten(0, -2) if to_weight else None,
            rows.sum(0) if to_bias else None,
        )


class Linear(nn.Linear):
    """``nn.Linear`` by :func:`linear`. Inside :func:`prepacked` it multiplies by the weight that was laid out there."""

    prepacked: tuple[Tensor, Tensor | None] | None = None

    def forward(self, x: Tensor) -> Tensor:
        """(…, in) → (…, out)."""
        if self.prepacked is None or torch.is_grad_enabled():
            return linear(x, self.weight, self.bias)
        return self._prepacked_product(x, None)

    def activated(self, x: Tensor, activation: Activation) -> Tensor:
        """activation(x·Wᵀ + b): (…, in) → (…, out).

        A prepacked layer computes the activation inside the product. Forward hooks of this layer do not run then.
        """
        if self.prepacked is None or torch.is_grad_enabled():
            return activation(self(x))
        return self._prepacked_product(x, activation)

    def _prepacked_product(self, x: Tensor, activation: Activation | None) -> Tensor:
        weight, bias = self.prepacked
        return _product(x.to(weight.dtype), weight, bias, activation)


@contextmanager
def prepacked(model: nn.Module) -> Iterator[None]:
    """Inside, every :class:`Linear` on a CPU multiplies by a copy of its weight in oneDNN's own layout.

    Without it, oneDNN converts the layout in every product. The copies are in
    autocast's format where autocast is on. They take as much memory as the weights, and do not follow a change of them.
    Gradients are computed from the weights themselves. On other devices nothing happens.
    """
    layers = [layer for layer in model.modules() if isinstance(layer, Linear) and layer.weight.device.type == "cpu"]
    layers = [layer for layer in layers if _multiplies(number_format(layer.weight))]
    try:
        for layer in layers:
            dtype = number_format(layer.weight)
            weight = torch.ops.mkldnn._reorder_linear_weight(layer.weight.detach().to(dtype))
            layer.prepacked = weight, None if layer.bias is None else layer.bias.detach().to(dtype)
        yield
    finally:
        for layer in layers:
            layer.prepacked = None


# The operator exists only in builds with oneDNN. A second import of this module must not register it again.
if _multiplies(torch.float32) and torch.ops.mkldnn._linear_pointwise not in flop_registry:

    @register_flop_formula(torch.ops.mkldnn._linear_pointwise)
    def _flops(x: torch.Size, weight: torch.Size, *_: Any, **__: Any) -> int:
        """Two operations per weight and row; torch's FlopCounterMode knows only torch's own products."""
        return 2 * x[:-1].numel() * weight.numel()
