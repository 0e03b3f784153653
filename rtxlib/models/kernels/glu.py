"""The gate of a gated linear unit, with a backward pass that makes no copies."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from rtxlib.models.kernels.linear import Activation

_BACKWARD = {F.silu: torch.ops.aten.silu_backward.grad_input, F.gelu: torch.ops.aten.gelu_backward.grad_input}


def glu_formula(x: Tensor, activation: Activation) -> Tensor:
    """act(gate) ⊙ value (Shazeer 2020): x (…, 2m) holds the gate and then the value → (…, m)."""
    gate, value = x.chunk(2, dim=-1)
    return activation(gate) * value


def glu(x: Tensor, activation: Activation) -> Tensor:
    """:func:`glu_formula`, fast: for SiLU and GELU on a CPU the backward pass writes both gradients into one tensor."""
    if x.device.type == "cpu" and torch.is_grad_enabled():
        return _GLU.apply(x, activation)
    return glu_formula(x, activation)


class _GLU(torch.autograd.Function):
    """Both gradients are written into one tensor. The preceding linear layer reads that tensor."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, activation: Activation) -> Tensor:
        gate, value = x.chunk(2, dim=-1)
        activated = activation(gate)
        ctx.activation = activation
        ctx.save_for_backward(x, activated)
        return activated * value

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        x, activated = ctx.saved_tensors
        gate, value = x.chunk(2, dim=-1)
        both = torch.empty_like(x)
        to_gate, to_value = both.chunk(2, dim=-1)
        torch.mul(grad, activated, out=to_value)
        _BACKWARD[ctx.activation](grad * value, gate, grad_input=to_gate)
        return both, None
