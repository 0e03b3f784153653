"""One layer: attention and feed-forward, each with a norm and a residual. A decoder layer also attends to the source.

The norms (RMSNorm, or torch's LayerNorm), the feed-forward network (plain with two matrices, or gated with three), and what each
pass of a shared block may have of its own (norms, and an addition of low rank to each matrix) stand here.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import initialization

from rtxlib.models.attention import SEES_ALL, Attention, View
from rtxlib.models.config import GATED, ModelConfig
from rtxlib.models.kernels import Activation, Dropout, Linear, glu, linear, rms_norm


class Trace:
    """Lists that a forward pass appends to. A list that nobody asked for is None, and nothing is kept alive for it.

    With ``states``:
        states: the embedding, and the state (batch, length, hidden) after each layer. For the last layer of a pass it is
            the state after the residual across passes.
        pass_states: the state that enters the loop, and the state after each pass.
    With ``attentions``, which makes attention eager:
        attentions: the self-attention weights of each layer (batch, heads, queries, keys).
        cross_attentions: the weights of each decoder layer's attention to the source.
    """

    def __init__(self, states: bool | None = False, attentions: bool | None = False) -> None:
        self.states: list[Tensor] | None = [] if states else None
        self.pass_states: list[Tensor] | None = [] if states else None
        self.attentions: list[Tensor] | None = [] if attentions else None
        self.cross_attentions: list[Tensor] | None = [] if attentions else None

    def add(self, **tensors: Tensor) -> None:
        """Append each tensor to the list of its name, if that list was asked for."""
        for name, tensor in tensors.items():
            wanted = getattr(self, name)
            if wanted is not None:
                wanted.append(tensor)


NO_TRACE = Trace()


class Context(NamedTuple):
    """What travels with a state through the layers of an encoder.

    full: what global layers see. local: what layers with a window see; None: there are none. queries: how many positions of each
    text the last layer computes; None: all. trace: what is recorded. eager: whether layers build their attention weights; they
    do in any case where the trace records them.
    """

    full: View
    local: View | None = None
    queries: int | None = None
    trace: Trace = NO_TRACE
    eager: bool = False

    @property
    def inside(self) -> Context:
        """The same for layers that are not the last one."""
        return self._replace(queries=None)

    def view(self, layer: EncoderLayer) -> View:
        """What a layer sees, and what it computes."""
        view = self.local if layer.local else self.full
        return view._replace(queries=self.queries, eager=self.eager or self.trace.attentions is not None)

    def run(self, layer: EncoderLayer, h: Tensor, parts: PassParts | None = None) -> Tensor:
        """One layer; its attention weights go to the trace. parts: what this pass has of its own."""
        h, weights = layer(h, self.view(layer), parts)
        self.trace.add(attentions=weights)
        return h


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

    def forward(self, x: Tensor, parts: PassParts | None = None) -> Tensor:
        """(…, hidden) → (…, hidden). parts: what this pass adds to the two maps."""
        if not (parts and parts.feedforward_input):
            inner = glu(self.input(x), self.activation) if self.gated else self.input.activated(x, self.activation)
            return self.output(self.dropout(inner))
        inner = self.input(x) + parts.feedforward_input(x)
        inner = self.dropout(glu(inner, self.activation) if self.gated else self.activation(inner))
        return self.output(inner) + parts.feedforward_output(inner)


NORMS = ("attention_norm", "feedforward_norm")  # of a layer
MATRICES = {  # our name for the addition -> the layer's map that it is added to
    "qkv": "attention.qkv",
    "attention_output": "attention.output",
    "feedforward_input": "feedforward.input",
    "feedforward_output": "feedforward.output",
}


class LowRank(nn.Module):
    """x ↦ x·Aᵀ·Bᵀ + b, which one pass adds to a shared map x·Wᵀ. A is (rank, in), B is (out, rank), b is (out,).

    B and b start at zero, so a new addition changes nothing (LoRA, Hu et al. 2022).
    """

    def __init__(self, inputs: int, outputs: int, rank: int, std: float) -> None:
        super().__init__()
        rank, self.std = min(rank, inputs, outputs), std
        self.a, self.b = nn.Parameter(torch.empty(rank, inputs)), nn.Parameter(torch.empty(outputs, rank))
        self.bias = nn.Parameter(torch.empty(outputs))

    def reset_parameters(self) -> None:
        initialization.normal_(self.a, std=self.std)
        initialization.zeros_(self.b)
        initialization.zeros_(self.bias)

    def forward(self, x: Tensor, outputs: slice = slice(None)) -> Tensor:
        """(…, in) → (…, out). outputs: which of them to compute, such as the queries of ``qkv``."""
        return linear(linear(x, self.a), self.b[outputs], self.bias[outputs])

    @torch.no_grad()
    def approximate(self, weight: Tensor, bias: Tensor) -> None:
        """Take the matrix of this rank that is nearest to ``weight`` (out, in), by its largest singular values, and ``bias``."""
        u, s, v = torch.linalg.svd(weight.double(), full_matrices=False)
        root = s[: len(self.a)].sqrt()
        self.a.copy_(root[:, None] * v[: len(root)])
        self.b.copy_(u[:, : len(root)] * root)
        self.bias.copy_(bias)


class PassParts(nn.Module):
    """What one layer of the block has of its own in one pass (Relaxed Recursive Transformers, Bae et al. 2024).

    ``pass_norms`` gives it two norms that replace the shared ones. ``pass_rank`` gives it a :class:`LowRank` addition to
    each of its four maps. What it does not have is None.
    """

    def __init__(self, config: ModelConfig, layer: nn.Module) -> None:
        super().__init__()
        for name in NORMS:
            setattr(self, name, make_norm(config) if config.pass_norms else None)
        for name, shared in MATRICES.items():
            module, rank, std = layer.get_submodule(shared), config.pass_rank, config.initializer_range
            setattr(self, name, LowRank(module.in_features, module.out_features, rank, std) if rank else None)


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
        self, x: Tensor, view: View = SEES_ALL, parts: PassParts | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """(batch, length, hidden) → (batch, queries, hidden) and, where the view is eager, the attention weights.

        A view with fewer queries than the length computes only the first positions: a read-out of [CLS] needs no more of the
        last layer. parts: what this pass has of its own.
        """
        attention_norm = (parts and parts.attention_norm) or self.attention_norm
        feedforward_norm = (parts and parts.feedforward_norm) or self.feedforward_norm
        if self.pre_norm:
            attended, weights = self.attention(attention_norm(x), view, parts=parts)
            x = view.asking(x) + self.dropout(self.attention_out_norm(attended.to(x.dtype)))
            fed = self.feedforward(feedforward_norm(x), parts)
            return x + self.dropout(self.feedforward_out_norm(fed.to(x.dtype))), weights
        attended, weights = self.attention(x, view, parts=parts)
        x = attention_norm(view.asking(x) + self.dropout(attended.to(x.dtype)))
        return feedforward_norm(x + self.dropout(self.feedforward(x, parts).to(x.dtype))), weights


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
        self, x: Tensor, memory: Tensor, view: View, memory_view: View
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """(batch, length, hidden) and memory (batch, source length, hidden) → (batch, length, hidden).

        view: what the target's tokens see of each other; memory_view: what they see of the source. Where they are eager it also
        returns the weights of self-attention (batch, heads, length, length) and of cross-attention (batch, heads, length,
        source length), otherwise None twice.
        """
        if self.pre_norm:
            attended, weights = self.attention(self.attention_norm(x), view)
            x = x + self.dropout(attended.to(x.dtype))
            asking = self.cross_attention_norm(x)
            seen, cross_weights = self.cross_attention(asking, memory_view, memory)
            x = x + self.dropout(seen.to(x.dtype))
            fed = self.feedforward(self.feedforward_norm(x))
            return x + self.dropout(fed.to(x.dtype)), weights, cross_weights
        attended, weights = self.attention(x, view)
        x = self.attention_norm(x + self.dropout(attended.to(x.dtype)))
        seen, cross_weights = self.cross_attention(x, memory_view, memory)
        x = self.cross_attention_norm(x + self.dropout(seen.to(x.dtype)))
        return self.feedforward_norm(x + self.dropout(self.feedforward(x).to(x.dtype))), weights, cross_weights
