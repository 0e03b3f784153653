"""One encoder layer: attention and feed-forward, each with its norm and its residual."""

from __future__ import annotations

from torch import Tensor, nn

from rtxlib.models.attention import SelfAttention
from rtxlib.models.config import ModelConfig
from rtxlib.models.feedforward import FeedForward


def make_norm(config: ModelConfig) -> nn.Module:
    """RMSNorm (Zhang & Sennrich 2019) or LayerNorm over the hidden dimension; torch's own."""
    norm = {"rmsnorm": nn.RMSNorm, "layernorm": nn.LayerNorm}[config.norm]
    return norm(config.hidden_size, eps=config.norm_eps)


class EncoderLayer(nn.Module):
    """Pre-norm: x + sublayer(norm(x)) (Xiong et al. 2020). Post-norm: norm(x + sublayer(x)) (Vaswani et al. 2017)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.pre_norm = config.norm_placement == "pre"
        self.attention_norm = make_norm(config)
        self.attention = SelfAttention(config)
        self.feedforward_norm = make_norm(config)
        self.feedforward = FeedForward(config)
        self.dropout = nn.Dropout(config.hidden_dropout)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        rotary: tuple[Tensor, Tensor] | None = None,
        queries: int | None = None,
        eager: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """(batch, length, hidden) → (batch, queries, hidden) and the attention weights, if eager.

        Arguments are those of :meth:`SelfAttention.forward`. With ``queries`` below the length only those positions are
        computed, which is all that a [CLS] read-out needs of the last layer.
        """
        if self.pre_norm:
            attended, weights = self.attention(self.attention_norm(x), mask, rotary, queries, eager)
            x = x[:, : attended.shape[1]] + self.dropout(attended)
            return x + self.dropout(self.feedforward(self.feedforward_norm(x))), weights
        attended, weights = self.attention(x, mask, rotary, queries, eager)
        x = self.attention_norm(x[:, : attended.shape[1]] + self.dropout(attended))
        return self.feedforward_norm(x + self.dropout(self.feedforward(x))), weights
