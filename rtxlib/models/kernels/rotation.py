"""The rotation of rotary positions, with a backward pass of its own."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def rotate_formula(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """(x₁, x₂) → (x₁·cos − x₂·sin, x₂·cos + x₁·sin) for each pair of dimensions (Su et al. 2021).

    x: (B, H, T, D). cos, sin: (T, D), from :func:`rtxlib.models.attention.rotary_angles`. The two members of a pair lie
    D/2 apart. The paper pairs neighbours instead; the two layouts differ by one permutation of the dimensions, which
    changes no product of a query with a key.
    """
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """:func:`rotate_formula`, fast; cos and sin are cast to the format of x.

    It takes three operations forward and four back, where autograd takes five each way.
    """
    return _Rotation.apply(x, cos.to(x.dtype), sin.to(x.dtype))


class _Rotation(torch.autograd.Function):
    """The gradient of a rotation is the rotation by the opposite angle."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        ctx.save_for_backward(cos, sin)
        return _turn(x, cos, sin)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        cos, sin = ctx.saved_tensors
        return _turn(grad, cos, -sin), None, None


def _turn(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    turned = x * cos
    turned[..., :half].addcmul_(x[..., half:], sin[..., :half], value=-1)
    turned[..., half:].addcmul_(x[..., :half], sin[..., half:])
    return turned
