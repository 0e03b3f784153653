"""What is computed for each value or row alone: dropout, the gate of a feed-forward, RMSNorm, the rotation of rotary positions.

Each is fast on a CPU, by a random generator or a backward pass of its own.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rtxlib.models.kernels.linear import Activation

_DRAWS = 1 << 16  # sixteen random bits decide about a value


class Dropout(nn.Dropout):
    """``nn.Dropout`` by :func:`dropout`: active in training mode only."""

    def forward(self, x: Tensor) -> Tensor:
        """Any shape → the same shape."""
        return dropout(x, self.p if self.training else 0.0)


def dropout(x: Tensor, p: float) -> Tensor:
    """x ⊙ mask / (1 − p), where the mask is 0 with probability p and otherwise 1 (Srivastava et al. 2014).

    torch draws one Bernoulli number per value on a single core. On a CPU :func:`dropout_mask` draws instead, and one 64-bit
    number decides four values. On a GPU torch's own kernel runs.
    """
    if not p:
        return x
    if x.device.type != "cpu":
        return F.dropout(x, p)
    return x * dropout_mask(x.shape, p, x.dtype)


def dropout_mask(shape: torch.Size, p: float, dtype: torch.dtype) -> Tensor:
    """A mask on the CPU: 0 with probability p, otherwise 1 / (1 − p). p is rounded to a multiple of 1/65,536.

    The random bits come from SFC64 (Doty-Humphrey's PractRand), one stream per mask. torch's own generator draws the
    stream's seed, so ``torch.manual_seed`` and a checkpoint's random state determine the mask.
    """
    dropped = round(p * _DRAWS)
    values = shape.numel()
    words = np.random.SFC64(int(torch.randint(2**63 - 1, ()))).random_raw(math.ceil(values / 4))
    bits = torch.from_numpy(words.view(np.int16)[:values])
    # The comparison is done in float32, which holds every sixteen-bit integer; torch does not vectorise it for integers.
    mask = bits.float().ge_(dropped - _DRAWS // 2).mul_(_DRAWS / max(1, _DRAWS - dropped))
    return mask.to(dtype).view(shape)


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
