"""The linear map, which on a CPU goes through oneDNN with its bias, and where it can its activation, inside the product.

torch's own way hands float32 to MKL and adds the bias in a pass before or after the product. On an AMD EPYC with two threads, for
14 to 2,000 states of 384 (LOG.md), oneDNN took 3 to 10 % less time in bfloat16. With weights laid out beforehand
(:func:`prepacked`) it took a fifth less for a full batch in float32, and a third to a half less for a single text.
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
_INSIDE = {None: ("none", ""), F.gelu: ("gelu", "none"), F.relu: ("relu", "")}  # what oneDNN calls each


@cache
def _multiplies(dtype: torch.dtype) -> bool:
    """Whether oneDNN is here and multiplies this format."""
    if not torch.backends.mkldnn.is_available() or platform.machine().lower() not in ("x86_64", "amd64"):
        return False
    return dtype == torch.float32 or (dtype == torch.bfloat16 and torch.ops.mkldnn._is_mkldnn_bf16_supported())


def _format(x: Tensor) -> torch.dtype:
    """In which the product is taken."""
    return torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else x.dtype


def _product(x: Tensor, weight: Tensor, bias: Tensor | None, activation: Activation | None) -> Tensor:
    """activation(x·Wᵀ + b) of operands in one format; the weight may be prepacked."""
    inside, kind = _INSIDE[activation]
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, inside, [], kind)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x·Wᵀ + b: x (…, in), weight (out, in), bias (out,) → (…, out); under autocast in its precision.

    Where nothing is learned autocast keeps the weights it has converted, but out of our reach. In float32 oneDNN's sums stand
    1.6 times as far from the exact ones as MKL's: no matter for a label, but for being equal to a reference implementation.
    """
    half = x.device.type == "cpu" and _format(x) == torch.bfloat16 and _multiplies(torch.bfloat16)
    return _Linear.apply(x, weight, bias) if half and torch.is_grad_enabled() else F.linear(x, weight, bias)


class _Linear(torch.autograd.Function):
    """dx = g·W, dW = gᵀ·x, db = Σ g, with the products in the precision of the forward pass."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        dtype = _format(x)
        x, weight = x.to(dtype), weight.to(dtype)
        ctx.save_for_backward(x, weight)
        return _product(x, weight, None if bias is None else bias.to(dtype), None)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        rows = grad.flatten(0, -2)
        to_x, to_weight, to_bias = ctx.needs_input_grad
        return (
            (rows @ weight).view(x.shape) if to_x else None,
            rows.t() @ x.flatten(0, -2) if to_weight else None,
            rows.sum(0) if to_bias else None,
        )


class Linear(nn.Linear):
    """``nn.Linear`` by :func:`linear`; inside :func:`prepacked` it multiplies by the weight as it was laid out there."""

    prepacked: tuple[Tensor, Tensor | None] | None = None

    def forward(self, x: Tensor) -> Tensor:
        """(…, in) → (…, out)."""
        if self.prepacked is None or torch.is_grad_enabled():
            return linear(x, self.weight, self.bias)
        return self._prepacked_product(x, None)

    def activated(self, x: Tensor, activation: Activation) -> Tensor:
        """The activation of (…, out). Only where the weight is prepacked does it join the product, out of sight of a hook."""
        if self.prepacked is None or torch.is_grad_enabled():
            return activation(self(x))
        return self._prepacked_product(x, activation)

    def _prepacked_product(self, x: Tensor, activation: Activation | None) -> Tensor:
        weight, bias = self.prepacked
        return _product(x.to(weight.dtype), weight, bias, activation)


@contextmanager
def prepacked(model: nn.Module) -> Iterator[None]:
    """Inside, the weights of every :class:`Linear` lie as a CPU's products read them, in autocast's precision if that is on.

    For many predictions, or a server's one after another: what each product would do first is done once, at the price of a
    second copy of the weights. A change to them is not seen inside, and gradients go by the usual way. Elsewhere than on a
    CPU it does nothing.
    """
    layers = [layer for layer in model.modules() if isinstance(layer, Linear) and layer.weight.device.type == "cpu"]
    layers = [layer for layer in layers if _multiplies(_format(layer.weight))]
    try:
        for layer in layers:
            dtype = _format(layer.weight)
            weight = torch.ops.mkldnn._reorder_linear_weight(layer.weight.detach().to(dtype))
            layer.prepacked = weight, None if layer.bias is None else layer.bias.detach().to(dtype)
        yield
    finally:
        for layer in layers:
            layer.prepacked = None


# A build without oneDNN has no such operator.
if _multiplies(torch.float32) and torch.ops.mkldnn._linear_pointwise not in flop_registry:

    @register_flop_formula(torch.ops.mkldnn._linear_pointwise)
    def _flops(x: torch.Size, weight: torch.Size, *_: Any, **__: Any) -> int:
        """Two a weight and row, for torch's FlopCounterMode, which knows its own products alone."""
        return 2 * x[:-1].numel() * weight.numel()
