"""RMSNorm with a fused backward pass for CPUs."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def rms_norm_formula(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """y = w ⊙ x / √(mean(x²) + ε) over the last axis (Zhang & Sennrich 2019): x (…, d), w (d,) → (…, d)."""
    return weight * x / (x.square().mean(dim=-1, keepdim=True) + eps).sqrt()


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """:func:`rms_norm_formula`, fast; computed in float32 under autocast.

    torch has one fused operation for the forward pass, and on GPUs for the backward pass. On a CPU its backward pass is a
    chain of operations, each of which reads and writes memory. Training on a CPU therefore uses :class:`_RMSNorm`.
    """
    if x.device.type != "cpu" or not torch.is_grad_enabled():
        return F.rms_norm(x, weight.shape, weight, eps)
    return _RMSNorm.apply(x, weight, eps)


class _RMSNorm(torch.autograd.Function):
    """u = x / rms(x), y = w ⊙ u."""

    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
    def forward(ctx: Any, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        mean_square = torch.linalg.vector_norm(x, dim=-1, keepdim=True).square_().div_(x.shape[-1])
        inverse = mean_square.add_(eps).rsqrt_()  # 1 / rms, (…, 1)
        unit = x * inverse
        ctx.save_for_backward(unit, inverse, weight)
        return unit * weight

    @staticmethod
    @torch.autograd.function.once_differentiable
    @torch.amp.custom_bwd(device_type="cpu")
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        """With g the gradient at y: dw = Σ g⊙u, and dx = (w⊙g − u·mean(w⊙g⊙u)) / rms."""
        unit, inverse, weight = ctx.saved_tensors
        product = grad * unit
        mean = (product @ weight).unsqueeze(-1).div_(-unit.shape[-1])  # −mean(w⊙g⊙u), (…, 1)
        return torch.addcmul(grad * weight, unit, mean).mul_(inverse), product.flatten(0, -2).sum(0), None
