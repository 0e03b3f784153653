"""One layer: attention and feed-forward, each with its norm and its residual; a decoder's looks at the source too."""

from __future__ import annotations

from torch import Tensor, nn

from rtxlib.models.attention import Attention
from rtxlib.models.config import ModelConfig
from rtxlib.models.dropout import Dropout
from rtxlib.models.feedforward import FeedForward
from rtxlib.models.masks import View
from rtxlib.models.norms import make_norm


def _made(made: Tensor, x: Tensor, norm: nn.Module | None = None) -> Tensor:
    """A sub-layer's output as it joins the state x: in its precision, and normed where there is a norm for it.

    A CPU adds two numbers of different formats thirty times more slowly than it converts one and adds them.
    """
    made = made.to(x.dtype)
    return made if norm is None else norm(made)


class EncoderLayer(nn.Module):
    """Pre-norm: x + sublayer(norm(x)) (Xiong et al. 2020). Post-norm: norm(x + sublayer(x)) (Vaswani et al. 2017).
    Sandwich: x + norm(sublayer(norm(x))) (Ding et al. 2021), which bounds what a layer can add.

    ``index``: its place among the layers that have weights of their own. It decides whether the layer is local
    (``local_attention``), and whether it is the very first, whose attention may go without a norm.
    """

    def __init__(self, config: ModelConfig, index: int = 0) -> None:
        super().__init__()
        self.pre_norm = config.norm_placement != "post"
        sandwich = config.norm_placement == "sandwich"
        self.attention_out_norm = make_norm(config) if sandwich else None
        self.feedforward_out_norm = make_norm(config) if sandwich else None
        self.local = config.local_attention is not None and index % config.global_attention_every > 0
        bare = self.pre_norm and index == 0 and not config.first_attention_norm
        self.attention_norm = nn.Identity() if bare else make_norm(config)
        self.attention = Attention(config)
        self.feedforward_norm = make_norm(config)
        self.feedforward = FeedForward(config)
        self.dropout = Dropout(config.hidden_dropout)

    def forward(
        self,
        x: Tensor,
        view: View = View(),  # noqa: B008 - immutable
        queries: int | None = None,
        eager: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """(batch, length, hidden) → (batch, queries, hidden) and the attention weights, if eager.

        Arguments are those of :meth:`Attention.forward`. With ``queries`` below the length only those positions are
        computed, which is all that a [CLS] read-out needs of the last layer.
        """
        if self.pre_norm:
            attended, weights = self.attention(self.attention_norm(x), view, queries, eager)
            x = x[:, : attended.shape[1]]
            x = x + self.dropout(_made(attended, x, self.attention_out_norm))
            fed = self.feedforward(self.feedforward_norm(x))
            return x + self.dropout(_made(fed, x, self.feedforward_out_norm)), weights
        attended, weights = self.attention(x, view, queries, eager)
        x = self.attention_norm(x[:, : attended.shape[1]] + self.dropout(_made(attended, x)))
        return self.feedforward_norm(x + self.dropout(_made(self.feedforward(x), x))), weights


class DecoderLayer(nn.Module):
    """Masked self-attention, attention to the encoder's output, feed-forward; norms placed as in :class:`EncoderLayer`."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.pre_norm = config.norm_placement == "pre"
        self.attention_norm = make_norm(config)
        self.attention = Attention(config)
        self.cross_attention_norm = make_norm(config)
        self.cross_attention = Attention(config)
        self.feedforward_norm = make_norm(config)
        self.feedforward = FeedForward(config)
        self.dropout = Dropout(config.hidden_dropout)

    def forward(
        self, x: Tensor, memory: Tensor, view: View, memory_view: View, eager: bool = False
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """(batch, length, hidden) and memory (batch, source length, hidden) → (batch, length, hidden).

        view: what the target's tokens see of each other; memory_view: what they see of the source. With ``eager`` also
        the weights of self-attention (batch, heads, length, length) and cross-attention (batch, heads, length, source
        length).
        """
        if self.pre_norm:
            attended, weights = self.attention(self.attention_norm(x), view, eager=eager)
            x = x + self.dropout(_made(attended, x))
            seen, cross_weights = self.cross_attention(
                self.cross_attention_norm(x), memory_view, eager=eager, memory=memory
            )
            x = x + self.dropout(_made(seen, x))
            return x + self.dropout(_made(self.feedforward(self.feedforward_norm(x)), x)), weights, cross_weights
        attended, weights = self.attention(x, view, eager=eager)
        x = self.attention_norm(x + self.dropout(_made(attended, x)))
        seen, cross_weights = self.cross_attention(x, memory_view, eager=eager, memory=memory)
        x = self.cross_attention_norm(x + self.dropout(_made(seen, x)))
        return self.feedforward_norm(x + self.dropout(_made(self.feedforward(x), x))), weights, cross_weights
