"""Multi-head self-attention: one fused path, and an eager one that shows its weights."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rtxlib.models.config import ModelConfig
from rtxlib.models.positions import rotate


class SelfAttention(nn.Module):
    """softmax(Q·Kᵀ / √head_dim)·V over several heads (Vaswani et al. 2017), queries and keys rotated when asked."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.num_heads, self.head_dim = config.num_attention_heads, config.head_dim
        self.dropout = config.attention_dropout
        self.qkv = nn.Linear(config.hidden_size, 3 * config.hidden_size, bias=config.bias)
        self.output = nn.Linear(config.hidden_size, config.hidden_size, bias=config.bias)

    def _heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2)  # (B, T, d) → (B, heads, T, head_dim)

    def _project(self, x: Tensor, queries: int) -> tuple[Tensor, Tensor, Tensor]:
        """Q for the first ``queries`` positions; K and V for all of them."""
        if queries == x.shape[1]:
            q, k, v = self.qkv(x).chunk(3, dim=-1)
        else:  # only some positions ask: cut the fused projection into its query part and the rest
            d = x.shape[-1]
            weight, bias = self.qkv.weight, self.qkv.bias
            q = F.linear(x[:, :queries], weight[:d], None if bias is None else bias[:d])
            k, v = F.linear(x, weight[d:], None if bias is None else bias[d:]).chunk(2, dim=-1)
        return self._heads(q), self._heads(k), self._heads(v)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        rotary: tuple[Tensor, Tensor] | None = None,
        queries: int | None = None,
        eager: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend from the first ``queries`` positions (all of them by default) to every position.

        x: (batch, length, hidden). mask: (batch, 1, 1, length), True where a key may be seen; None: all may.
        rotary: cosine and sine, each (length, head_dim). Returns the output (batch, queries, hidden) and, on the eager
        path, the weights (batch, heads, queries, length); None on the fused path, which never builds them.
        """
        queries = x.shape[1] if queries is None else queries
        q, k, v = self._project(x, queries)
        if rotary is not None:
            cos, sin = rotary
            q, k = rotate(q, cos[:queries], sin[:queries]), rotate(k, cos, sin)
        dropout = self.dropout if self.training else 0.0
        weights = None
        if eager:
            scores = q @ k.transpose(-1, -2) / self.head_dim**0.5  # (B, heads, queries, T)
            if mask is not None:
                scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
            weights = scores.float().softmax(dim=-1).to(v.dtype)
            attended = F.dropout(weights, dropout, self.training) @ v
        else:
            attended = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout)
        return self.output(attended.transpose(1, 2).flatten(2)), weights
