"""The cross-entropy over a whole vocabulary, in pieces of rows whose logits stay in the processor's cache.

A thousand hidden tokens and 30,522 word pieces have 30 million logits. As one matrix they would be written to memory and read
back by the softmax, by its logarithm, and by both of their gradients. Here each piece of rows goes from logits to gradients at
once, and no logit is kept (Hsu et al. 2024, "Liger Kernel", do the same on GPUs). LOG.md has the measurements.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rtxlib.models.kernels.linear import number_format

_ROWS = {"cpu": 128}  # of a piece
_ROWS_OF_A_GPU = 4096  # not measured


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
