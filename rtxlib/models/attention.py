"""Multi-head attention: the projections. ``kernels.attention.attend`` computes softmax(QKᵀ)V."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rtxlib.models.config import ModelConfig
from rtxlib.models.kernels.attention import attend
from rtxlib.models.kernels.dropout import Dropout
from rtxlib.models.kernels.linear import Linear, linear
from rtxlib.models.kernels.rotation import rotate
from rtxlib.models.masks import SEES_ALL, Group, View
from rtxlib.models.relaxation import PassParts


class Attention(nn.Module):
    """softmax(Q·Kᵀ / √head_dim + mask)·V over several heads (Vaswani et al. 2017).

    Self-attention projects Q, K and V from one sequence. Cross-attention projects K and V from another, the memory. The
    three projections are one matrix ``qkv`` (3·hidden, hidden): queries, keys, values, and in each third head after head.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.num_heads, self.head_dim = config.num_attention_heads, config.head_dim
        self.dropout = Dropout(config.attention_dropout)
        self.qkv = Linear(config.hidden_size, 3 * config.hidden_size, bias=config.bias)
        self.output = Linear(config.hidden_size, config.hidden_size, bias=config.bias)

    def forward(
        self,
        x: Tensor,
        view: View = SEES_ALL,
        queries: int | None = None,
        eager: bool = False,
        memory: Tensor | None = None,
        own: PassParts | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend from the first ``queries`` positions of x (all by default) to every position of x, or of ``memory``.

        x: (batch, length, hidden). memory: (batch, memory length, hidden). view: mask and rotary angles.
        Cross-attention has no rotation. own: what this pass adds to the projections. Returns the output (batch, queries,
        hidden), and with ``eager`` the weights (batch, heads, queries, keys), otherwise None. x may be a packed row
        (1, total, hidden); with ``queries=1`` its output then holds the first token of each text (1, texts, hidden).
        """
        asking = x if queries is None else view.first(x, queries)
        q, k, v = self._project(asking, x if memory is None else memory, own)  # (B, T, d)
        if view.groups is None:
            attended, weights = self._attend(q, k, v, view, eager)
        else:
            attended, weights = self._attend_in_groups(q, k, v, view.groups, queries), None
        out = self.output(attended)
        return (out + own.attention_output(attended) if hasattr(own, "attention_output") else out), weights

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, view: View, eager: bool = False) -> tuple[Tensor, Tensor | None]:
        """Attention of texts that stand one in a row: (B, queries, d) and (B, T, d) twice → (B, queries, d) and the weights."""
        q, k, v = self._split(q), self._split(k), self._split(v)  # (B, H, T, D)
        if view.rotary is not None:
            cos, sin = view.rotary  # (T, D)
            queries = q.shape[-2]
            q, k = rotate(q, cos[:queries], sin[:queries]), rotate(k, cos, sin)
        attended, weights = attend(q, k, v, view.mask, self.dropout.p if self.training else 0.0, eager)
        return attended.transpose(1, 2).flatten(2), weights  # (B, H, T, D) → (B, T, d)

    def _attend_in_groups(
        self, q: Tensor, k: Tensor, v: Tensor, groups: tuple[Group, ...], queries: int | None
    ) -> Tensor:
        """Attention inside each text of a packed row: q, k, v (1, total, d) → (1, total, d); one query a text → (1, texts, d)."""
        sizes = [group.tokens for group in groups]
        asking = sizes if queries is None else [group.texts for group in groups]
        attended = []
        # Split once: the gradient of a split is one concatenation, that of a slice a whole row of zeros.
        for group, *parts in zip(groups, q[0].split(asking), k[0].split(sizes), v[0].split(sizes), strict=True):
            keys, values = group.padded(parts[1]), group.padded(parts[2])  # (texts, length, d)
            if queries is None:
                attended.append(group.unpadded(self._attend(group.padded(parts[0]), keys, values, group.view)[0]))
            else:
                attended.append(self._attend(parts[0][:, None], keys, values, group.view)[0][:, 0])
        return torch.cat(attended)[None]

    def _project(self, asking: Tensor, seen: Tensor, own: PassParts | None) -> tuple[Tensor, Tensor, Tensor]:
        """Q of the states that ask, K and V of the states that are seen, each (B, T, d)."""
        added = getattr(own, "qkv", None)
        if asking is seen:
            qkv = self.qkv(seen)
            q, k, v = (qkv if added is None else qkv + added(seen)).chunk(3, dim=-1)
        else:
            d, weight, bias = seen.shape[-1], self.qkv.weight, self.qkv.bias
            q = linear(asking, weight[:d], None if bias is None else bias[:d])
            kv = linear(seen, weight[d:], None if bias is None else bias[d:])
            if added is not None:
                q, kv = q + added(asking, slice(d)), kv + added(seen, slice(d, None))
            k, v = kv.chunk(2, dim=-1)
        return q, k, v

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2)  # (B, T, d) → (B, H, T, D)
