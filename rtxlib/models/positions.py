"""How a token knows where it stands: rotated queries and keys, vectors added to the embedding, or a price of distance."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def rotary_angles(
    length: int, head_dim: int, theta: float, device: torch.device | None = None
) -> tuple[Tensor, Tensor]:
    """Cosine and sine of m·θᵢ for every position m and pair i, with θᵢ = theta^(−2i / head_dim) (Su et al. 2021).

    Returns two tensors (length, head_dim) in float32. Pair i joins the dimensions i and i + head_dim/2 (the
    "rotate-half" layout), so each half repeats the same angles.
    """
    pair = torch.arange(0, head_dim, 2, dtype=torch.float32, device=device)
    frequency = theta ** (-pair / head_dim)  # (head_dim/2,)
    position = torch.arange(length, dtype=torch.float32, device=device)
    angle = torch.outer(position, frequency).repeat(1, 2)  # (length, head_dim)
    return angle.cos(), angle.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn each pair of ``x`` (batch, heads, length, head_dim) by its angle; ``cos`` and ``sin`` (length, head_dim).

    The reference writes pairs of neighbours (x₀, x₁), (x₂, x₃), …; here the partners lie half a head apart. The two
    differ by one fixed permutation of the dimensions, which leaves every product of a query with a key unchanged.
    """
    return _Rotation.apply(x, cos.to(x.dtype), sin.to(x.dtype))


class _Rotation(torch.autograd.Function):
    """Three operations, and four back through the opposite angles, where autograd would take five and five."""

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


def sinusoidal_table(length: int, hidden_size: int, device: torch.device | None = None) -> Tensor:
    """PE(m, 2i) = sin(m / 10000^(2i/d)) and PE(m, 2i+1) = cos(the same) (Vaswani et al. 2017).

    Returns (length, hidden_size) in float32.
    """
    pair = torch.arange(0, hidden_size, 2, dtype=torch.float32, device=device)
    angle = torch.outer(torch.arange(length, dtype=torch.float32, device=device), 10000 ** (-pair / hidden_size))
    table = torch.stack((angle.sin(), angle.cos()), dim=-1)  # (length, pairs, 2)
    return table.flatten(1)[:, :hidden_size]


def alibi_slopes(heads: int, device: torch.device | None = None) -> Tensor:
    """What one token of distance costs each head: 2^(−8/n), 2^(−16/n), …, 2^(−8) for n heads (Press et al. 2022).

    Where n is no power of two, the slopes of the next lower power p come first, then every second one of 2p's, as the
    paper's authors do. Returns (heads,) in float32.
    """

    def geometric(n: int) -> Tensor:
        return 2.0 ** (-8.0 / n * torch.arange(1, n + 1, dtype=torch.float32, device=device))

    power = 2 ** (heads.bit_length() - 1)
    return torch.cat((geometric(power), geometric(2 * power)[0::2][: heads - power]))
