"""Scaled dot-product attention: torch's fused kernel, or plain products with the scores in place."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from rtxlib.models.kernels.dropout import dropout

_LONGEST_PLAIN = 256  # keys; beyond it the memory of the weights costs more than plain products save
_VECTOR = 16  # float32 numbers in the widest vector instruction


def attend_formula(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """softmax(Q·Kᵀ / √D + mask)·V (Vaswani et al. 2017, equation 1), and the weights, the softmax itself.

    q: (B, H, T, D). k, v: (B, H, S, D). mask: (B or 1, H or 1, T or 1, S), either bool, True where a key may be seen, or
    numbers that are added to the scores. Returns (B, H, T, D) and (B, H, T, S).
    """
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores + mask if mask.is_floating_point() else scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = scores.softmax(dim=-1)
    return weights @ v, weights


def attend(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, p: float = 0.0, eager: bool = False
) -> tuple[Tensor, Tensor | None]:
    """:func:`attend_formula`, fast, with dropout of the weights at probability ``p``.

    The mask is cut to T queries and S keys. ``eager`` asks for the weights
    before dropout; without it they are None, and the fused kernel never builds them.
    """
    if mask is not None:
        mask = mask[..., : q.shape[-2], : k.shape[-2]]  # an axis of size one stays
        mask = mask.to(q.dtype) if mask.is_floating_point() else mask
    if not eager and not _plain_is_faster(q, k.shape[-2], p):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=p), None
    scores = (q @ k.transpose(-1, -2)).to(torch.promote_types(q.dtype, torch.float32))  # (B, H, T, S)
    scores /= q.shape[-1] ** 0.5
    if mask is not None:  # masked_fill is slow on CPUs, so the mask is added
        scores += mask if mask.is_floating_point() else torch.where(mask, 0.0, torch.finfo(torch.float32).min)
    weights = _softmax(scores).to(v.dtype)
    return dropout(weights, p) @ v, weights if eager else None


def _plain_is_faster(q: Tensor, keys: int, p: float) -> bool:
    """Whether plain products beat torch's fused kernel on this device.

    They do on a CPU with dropout, where the fused kernel falls back to plain products and a slow mask, and in bfloat16 up
    to a few hundred keys.
    """
    return q.device.type == "cpu" and (p > 0 or (q.dtype == torch.bfloat16 and keys <= _LONGEST_PLAIN))


def _softmax(scores: Tensor) -> Tensor:
    """Softmax over the last axis. torch's CPU softmax is slow over short rows, so short rows are transposed first."""
    if scores.shape[-1] >= _VECTOR or scores.device.type != "cpu":
        return scores.softmax(dim=-1)
    return scores.transpose(-1, -2).contiguous().softmax(dim=-2).transpose(-1, -2)
