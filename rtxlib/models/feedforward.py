"""The position-wise feed-forward network: plain with two matrices, or gated with three."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rtxlib.models.config import GATED, ModelConfig
from rtxlib.models.dropout import Dropout
from rtxlib.models.linear import Activation, Linear

ACTIVATIONS: dict[str, Activation] = {"swiglu": F.silu, "geglu": F.gelu, "gelu": F.gelu, "relu": F.relu}
_BACKWARD = {F.silu: torch.ops.aten.silu_backward.grad_input, F.gelu: torch.ops.aten.gelu_backward.grad_input}


class _Gate(torch.autograd.Function):
    """act(gate) ⊙ value, whose backward pass writes both gradients where the product before it reads them, side by side."""

    @staticmethod
    def forward(ctx: Any, inner: Tensor, activation: Activation) -> Tensor:
        gate, value = inner.chunk(2, dim=-1)
        activated = activation(gate)
        ctx.activation = activation
        ctx.save_for_backward(inner, activated)
        return activated * value

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        inner, activated = ctx.saved_tensors
        gate, value = inner.chunk(2, dim=-1)
        both = torch.empty_like(inner)
        to_gate, to_value = both.chunk(2, dim=-1)
        torch.mul(grad, activated, out=to_value)
        _BACKWARD[ctx.activation](grad * value, gate, grad_input=to_gate)
        return both, None


def gated(inner: Tensor, activation: Activation) -> Tensor:
    """act(gate) ⊙ value of (…, 2·inner), gate first."""
    if inner.device.type == "cpu" and torch.is_grad_enabled():
        return _Gate.apply(inner, activation)
    gate, value = inner.chunk(2, dim=-1)
    return activation(gate) * value


class FeedForward(nn.Module):
    """W₂·act(W₁·x), or gated W₃·(act(W₁·x) ⊙ W₂·x) (SwiGLU and GeGLU, Shazeer 2020).

    The gate W₁ and the value W₂ are one matrix here, (2·intermediate, hidden), gate first: one product instead of two.
    ``activation_dropout`` falls between the activation and the last matrix.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.gated = config.feedforward in GATED
        self.activation = ACTIVATIONS[config.feedforward]
        inner = config.resolved_intermediate_size
        self.input = Linear(config.hidden_size, 2 * inner if self.gated else inner, bias=config.bias)
        self.dropout = Dropout(config.activation_dropout)
        self.output = Linear(inner, config.hidden_size, bias=config.bias)

    def forward(self, x: Tensor) -> Tensor:
        """(…, hidden) → (…, hidden)."""
        if self.gated:
            return self.output(self.dropout(gated(self.input(x), self.activation)))
        return self.output(self.dropout(self.input.activated(x, self.activation)))
