"""Code that is there for speed. tests/test_fast_paths.py compares each kernel with its formula.

``rms_norm``, ``rotate`` and ``glu`` have the formula beside them, as ``rms_norm_formula`` and so on. ``linear`` is
compared with torch's ``F.linear``. ``dropout`` is compared with its definition: the share of zeros, and the factor of the rest.

=========================== ============================================================
kernel                      formula
=========================== ============================================================
``linear``, ``Linear``      x·Wᵀ + b
``rms_norm``                w ⊙ x / √(mean(x²) + ε)
``rotate``                  each pair of dimensions turned by the angle of its position
``glu``                     act(gate) ⊙ value
``dropout``, ``Dropout``    x ⊙ mask / (1 − p)
``vocabulary_loss``         Σ −log softmax(x·Eᵀ + c)
=========================== ============================================================

A model part calls the kernel by its name. The kernel decides from the device, the number format and whether gradients are
needed which code computes it. Most kernels are for CPUs; on a GPU torch's own operators run.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.flop_counter import flop_registry, register_flop_formula

Activation = Callable[[Tensor], Tensor]
_INSIDE = {None: ("none", ""), F.gelu: ("gelu", "none"), F.relu: ("relu", "")}  # activation -> oneDNN's words for it
_DRAWS = 1 << 16  # sixteen random bits decide about a value
_ROWS = {"cpu": 128}  # of a piece
_ROWS_OF_A_GPU = 4096  # not measured


# ---------------------------------------- the linear map
# On a CPU it goes through oneDNN: bias and activation inside the product, weights laid out beforehand. torch's own way hands
# float32 to MKL and adds the bias in a second pass over memory. oneDNN is faster in bfloat16, and in both formats with weights
# that `prepacked` has laid out. LOG.md has the measurements.


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


# ---------------------------------------- what is computed for each value or row alone
# Each is fast on a CPU, by a random generator or a backward pass of its own.


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


# ---------------------------------------- the cross-entropy over a whole vocabulary
# It is computed in pieces of rows whose logits stay in the processor's cache. A thousand hidden tokens and 30,522 word pieces
# have 30 million logits. As one matrix they would be written to memory and read back by the softmax, by its logarithm, and by
# both of their gradients. Here each piece of rows goes from logits to gradients at once, and no logit is kept (Hsu et al. 2024,
# "Liger Kernel", do the same on GPUs). LOG.md has the measurements.


def vocabulary_loss(x: Tensor, table: Tensor, bias: Tensor, true: Tensor) -> tuple[Tensor, Tensor]:
    """The sum of −log softmax(x·Eᵀ + c) at the true ids (nats, float32), and the most probable id of each row, (rows,).

    x: (rows, width); table: E (vocabulary, width); bias: c (vocabulary,); true: (rows,) ids. Products are in autocast's format
    where it is on, and everything else is in float32.
    """
    return _VocabularyLoss.apply(x, table, bias, true, torch.is_grad_enabled())


class _VocabularyLoss(torch.autograd.Function):
    """With g = softmax(x·Eᵀ + c) − onehot(true): dx = g·E, dE = gᵀ·x, dc = Σ g. They are computed together with the loss."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, table: Tensor, bias: Tensor, true: Tensor, with_gradients: bool
    ) -> tuple[Tensor, Tensor]:
        dtype, size = number_format(x), _ROWS.get(x.device.type, _ROWS_OF_A_GPU)
        rows, weights = x.to(dtype), table.to(dtype)
        loss, best = x.new_zeros((), dtype=torch.float32), torch.empty_like(true)
        kinds = (x, table, bias) if with_gradients else ()
        to_x, to_table, to_bias = gradients = [torch.zeros_like(each, dtype=torch.float32) for each in kinds] or [None] * 3
        for start in range(0, len(rows), size):
            piece, ids = rows[start : start + size], true[start : start + size]
            z = (piece @ weights.t()).float().add_(bias)  # (piece, vocabulary)
            best[start : start + size] = z.argmax(dim=-1)
            total = z.logsumexp(dim=-1)
            loss += (total - z.gather(1, ids[:, None])[:, 0]).sum()
            if not with_gradients:
                continue
            g = z.sub_(total[:, None]).exp_()
            g.scatter_add_(1, ids[:, None], g.new_full((len(ids), 1), -1.0))
            to_bias += g.sum(dim=0)
            g = g.to(dtype)
            to_x[start : start + size] = g @ weights
            to_table += g.t() @ piece
        if with_gradients:
            ctx.save_for_backward(*gradients)
        ctx.mark_non_differentiable(best)
        ctx.kinds = x.dtype, table.dtype, bias.dtype
        return loss, best

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        return *((grad * each).to(kind) for each, kind in zip(ctx.saved_tensors, ctx.kinds, strict=True)), None, None
