"""The position-wise feed-forward network: plain with two matrices, or gated with three."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from rtxlib.models.config import GATED, ModelConfig
from rtxlib.models.kernels.dropout import Dropout
from rtxlib.models.kernels.glu import glu
from rtxlib.models.kernels.linear import Activation, Linear
from rtxlib.models.relaxation import PassParts

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
