"""Multi-head attention: one fused path, and an eager one that shows its weights."""

from __future__ import annotations

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rtxlib.models.config import ModelConfig
from rtxlib.models.dropout import Dropout
from rtxlib.models.linear import Linear, linear
from rtxlib.models.masks import View
from rtxlib.models.positions import rotate

_LONGEST_PLAIN = 256  # keys up to which a CPU may build the weights: beyond, their memory grows past what they save
_VECTOR = 16  # float32 numbers of the widest vector instruction


def _plain_is_faster(q: Tensor, keys: int, dropout: float) -> bool:
    """Whether a CPU is quicker with the plain products than with torch's fused kernel.

    With dropout that kernel falls back to plain products and a slow mask of its own. In sixteen bits and without dropout it
    takes 1.2 to 2.4 times as long at 8 to 256 keys, in float32 up to 1.5 times less (one core, LOG.md).
    """
    return q.device.type == "cpu" and (dropout > 0 or (q.dtype == torch.bfloat16 and keys <= _LONGEST_PLAIN))


def _softmax(scores: Tensor) -> Tensor:
    """Softmax over the last axis. On a CPU torch's is scalar code for rows shorter than a vector; along columns it is not."""
    if scores.shape[-1] >= _VECTOR or scores.device.type != "cpu":
        return scores.softmax(dim=-1)
    return scores.transpose(-1, -2).contiguous().softmax(dim=-2).transpose(-1, -2)


class Attention(nn.Module):
    """softmax(Q·Kᵀ / √head_dim + mask)·V over several heads (Vaswani et al. 2017).

    Self-attention draws Q, K and V from one sequence; cross-attention draws K and V from another, the memory. The three
    projections are one matrix, ``qkv`` (3·hidden, hidden), queries first, and within each third head after head: one
    product instead of three, and the same numbers.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.num_heads, self.head_dim = config.num_attention_heads, config.head_dim
        self.dropout = Dropout(config.attention_dropout)
        self.qkv = Linear(config.hidden_size, 3 * config.hidden_size, bias=config.bias)
        self.output = Linear(config.hidden_size, config.hidden_size, bias=config.bias)

    def per_head(self) -> dict[str, Tensor]:
        """The weights as each head sees them, views of the fused ones.

        ``query``, ``key``, ``value``: (heads, head_dim, hidden), what each head projects a state with; ``output``:
        (heads, hidden, head_dim). Attention is the sum over heads of output·softmax(…)·value, plus the output's bias.
        """
        query, key, value = self.qkv.weight.unflatten(0, (3, self.num_heads, self.head_dim))
        output = self.output.weight.unflatten(1, (self.num_heads, self.head_dim)).transpose(0, 1)
        return {"query": query, "key": key, "value": value, "output": output}

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2)  # (B, T, d) → (B, heads, T, head_dim)

    def _project(self, asking: Tensor, seen: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Q of the states that ask, K and V of those that are seen."""
        if asking is seen:
            q, k, v = self.qkv(seen).chunk(3, dim=-1)
        else:  # cut the fused projection into its query part and the rest
            d = seen.shape[-1]
            weight, bias = self.qkv.weight, self.qkv.bias
            q = linear(asking, weight[:d], None if bias is None else bias[:d])
            k, v = linear(seen, weight[d:], None if bias is None else bias[d:]).chunk(2, dim=-1)
        return self._split(q), self._split(k), self._split(v)

    def forward(
        self,
        x: Tensor,
        view: View = View(),  # noqa: B008 - immutable
        queries: int | None = None,
        eager: bool = False,
        memory: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend from the first ``queries`` positions of x (all by default) to every position of x, or of ``memory``.

        x: (batch, length, hidden). memory: (batch, memory length, hidden). view: see :class:`View`; its rotation is for
        self-attention. Returns the output (batch, queries, hidden) and, on the eager path, the weights (batch, heads,
        queries, keys); None on the fused path, which never builds them.
        """
        queries = x.shape[1] if queries is None else queries
        asking = x if queries == x.shape[1] else x[:, :queries]
        q, k, v = self._project(asking, x if memory is None else memory)
        mask = view.mask
        if view.rotary is not None:
            cos, sin = view.rotary
            q, k = rotate(q, cos[:queries], sin[:queries]), rotate(k, cos, sin)
        if mask is not None:
            mask = mask[..., :queries, :]  # no effect where one row stands for all queries
            if mask.is_floating_point():
                mask = mask.to(q.dtype)
        if view.offsets is None:
            attended, weights = self._attend(q, k, v, mask, eager)
        else:  # each text by itself; what surrounds attention runs over all of them at once, and nothing is padding
            each = []
            for start, end in pairwise(view.offsets):
                own = None if mask is None else mask[..., : end - start, : end - start]
                each.append(self._attend(*(x[..., start:end, :] for x in (q, k, v)), own, eager=False)[0])
            attended, weights = torch.cat(each, dim=-2), None
        return self.output(attended.transpose(1, 2).flatten(2)), weights

    def _attend(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, eager: bool
    ) -> tuple[Tensor, Tensor | None]:
        """(batch, heads, queries, head_dim), and the weights on the eager path."""
        dropout = self.dropout.p if self.training else 0.0
        if not eager and not _plain_is_faster(q, k.shape[-2], dropout):
            return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout), None
        scores = (q @ k.transpose(-1, -2)).float().div_(self.head_dim**0.5)  # (B, heads, queries, keys)
        if mask is not None:  # added, since filling is scalar code on a CPU
            scores += mask if mask.is_floating_point() else torch.where(mask, 0.0, torch.finfo(scores.dtype).min)
        weights = _softmax(scores).to(v.dtype)
        return self.dropout(weights) @ v, weights if eager else None
