"""One layer: attention and feed-forward, each with a norm and a residual. A decoder layer also attends to the source.

The norms (RMSNorm, or torch's LayerNorm) and the feed-forward network (plain with two matrices, or gated with three) stand here.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from rtxlib.models.attention import SEES_ALL, Attention, View
from rtxlib.models.config import GATED, ModelConfig
from rtxlib.models.kernels.dropout import Dropout
from rtxlib.models.kernels.glu import glu
from rtxlib.models.kernels.linear import Activation, Linear
from rtxlib.models.kernels.rms_norm import rms_norm
from rtxlib.models.recurrence import PassParts


class RMSNorm(nn.RMSNorm):
    """y = w ⊙ x / √(mean(x²) + ε) over the last axis (Zhang & Sennrich 2019)."""

    def forward(self, x: Tensor) -> Tensor:
        """(…, hidden) → (…, hidden)."""
        return rms_norm(x, self.weight, self.eps)


def make_norm(config: ModelConfig) -> nn.Module:
    """The norm over the hidden dimension that ``config.norm`` names."""
    if config.norm == "rmsnorm":
        return RMSNorm(config.hidden_size, eps=config.norm_eps)
    return nn.LayerNorm(config.hidden_size, eps=config.norm_eps, bias=config.norm_bias)


ACTIVATIONS: dict[str, Activation] = {"swiglu": F.silu, "geglu": F.gelu, "gelu": F.gelu, "relu": F.relu}


class FeedForward(nn.Module):
    """W₂·act(W₁·x) (Vaswani et al. 2017), or gated W₃·(act(W₁·x) ⊙ W₂·x) (SwiGLU and GeGLU, Shazeer 2020).

    The gate W₁ and the value W₂ are one matrix ``input`` (2·intermediate, hidden), gate first. ``activation_dropout``
    acts between the activation and the last matrix.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.gated = config.feedforward in GATED
        self.activation = ACTIVATIONS[config.feedforward]
        inner = config.resolved_intermediate_size
        self.input = Linear(config.hidden_size, 2 * inner if self.gated else inner, bias=config.bias)
        self.dropout = Dropout(config.activation_dropout)
        self.output = Linear(inner, config.hidden_size, bias=config.bias)

    def forward(self, x: Tensor, own: PassParts | None = None) -> Tensor:
        """(…, hidden) → (…, hidden). own: what this pass adds to the two maps."""
        if not hasattr(own, "feedforward_input"):
            inner = glu(self.input(x), self.activation) if self.gated else self.input.activated(x, self.activation)
            return self.output(self.dropout(inner))
        inner = self.input(x) + own.feedforward_input(x)
        inner = self.dropout(glu(inner, self.activation) if self.gated else self.activation(inner))
        return self.output(inner) + own.feedforward_output(inner)


# Under autocast a sub-layer's output is bf16 and the state is float32. `.to(x.dtype)` stands before each sum, because CPUs add
# tensors of the same dtype faster.


class EncoderLayer(nn.Module):
    """Pre-norm: x + sublayer(norm(x)) (Xiong et al. 2020). Post-norm: norm(x + sublayer(x)) (Vaswani et al. 2017).
    Sandwich: x + norm(sublayer(norm(x))) (Ding et al. 2021), which bounds what a layer can add.

    ``index``: index of the layer, counting shared layers once. It decides whether the layer is local
    (``local_attention``). The layer with index 0 has no attention norm if ``first_attention_norm`` is off.
    """

    def __init__(self, config: ModelConfig, index: int = 0) -> None:
        super().__init__()
        self.pre_norm = config.norm_placement != "post"
        sandwich = config.norm_placement == "sandwich"
        self.attention_out_norm = make_norm(config) if sandwich else nn.Identity()
        self.feedforward_out_norm = make_norm(config) if sandwich else nn.Identity()
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
        view: View = SEES_ALL,
        queries: int | None = None,
        eager: bool = False,
        own: PassParts | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """(batch, length, hidden) → (batch, queries, hidden) and, with ``eager``, the attention weights.

        Arguments are those of :meth:`Attention.forward`. ``queries`` below the length computes only the first positions: a
        [CLS] read-out needs no more of the last layer. own: what this pass has of its own.
        """
        attention_norm = getattr(own, "attention_norm", self.attention_norm)
        feedforward_norm = getattr(own, "feedforward_norm", self.feedforward_norm)
        if self.pre_norm:
            attended, weights = self.attention(attention_norm(x), view, queries, eager, own=own)
            x = x if queries is None else view.first(x, queries)
            x = x + self.dropout(self.attention_out_norm(attended.to(x.dtype)))
            fed = self.feedforward(feedforward_norm(x), own)
            return x + self.dropout(self.feedforward_out_norm(fed.to(x.dtype))), weights
        attended, weights = self.attention(x, view, queries, eager, own=own)
        x = x if queries is None else view.first(x, queries)
        x = attention_norm(x + self.dropout(attended.to(x.dtype)))
        return feedforward_norm(x + self.dropout(self.feedforward(x, own).to(x.dtype))), weights


class DecoderLayer(nn.Module):
    """Causal self-attention, attention to the encoder's output, feed-forward; norms placed as in :class:`EncoderLayer`."""

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

        view: what the target's tokens see of each other; memory_view: what they see of the source. With ``eager`` it also
        returns the weights of self-attention (batch, heads, length, length) and of cross-attention (batch, heads, length,
        source length), otherwise None twice.
        """
        if self.pre_norm:
            attended, weights = self.attention(self.attention_norm(x), view, eager=eager)
            x = x + self.dropout(attended.to(x.dtype))
            asking = self.cross_attention_norm(x)
            seen, cross_weights = self.cross_attention(asking, memory_view, eager=eager, memory=memory)
            x = x + self.dropout(seen.to(x.dtype))
            fed = self.feedforward(self.feedforward_norm(x))
            return x + self.dropout(fed.to(x.dtype)), weights, cross_weights
        attended, weights = self.attention(x, view, eager=eager)
        x = self.attention_norm(x + self.dropout(attended.to(x.dtype)))
        seen, cross_weights = self.cross_attention(x, memory_view, eager=eager, memory=memory)
        x = self.cross_attention_norm(x + self.dropout(seen.to(x.dtype)))
        return self.feedforward_norm(x + self.dropout(self.feedforward(x).to(x.dtype))), weights, cross_weights
