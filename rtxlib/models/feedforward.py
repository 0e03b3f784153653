"""The position-wise feed-forward network: plain with two matrices, or gated with three."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from rtxlib.models.config import GATED, ModelConfig
from rtxlib.models.dropout import Dropout

ACTIVATIONS = {"swiglu": F.silu, "geglu": F.gelu, "gelu": F.gelu, "relu": F.relu}


class FeedForward(nn.Module):
    """W₂·act(W₁·x), or gated W₃·(act(W₁·x) ⊙ W₂·x) (SwiGLU and GeGLU, Shazeer 2020).

    The gate W₁ and the value W₂ are one matrix here, (2·intermediate, hidden), gate first: one product instead of two.
    ``activation_dropout`` falls between the activation and the last matrix.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.gated = config.feedforward in GATED
        self.activation = ACTIVATIONS[config.feedforward]
        inner = config.resolved_intermediate_size
        self.input = nn.Linear(config.hidden_size, 2 * inner if self.gated else inner, bias=config.bias)
        self.dropout = Dropout(config.activation_dropout)
        self.output = nn.Linear(inner, config.hidden_size, bias=config.bias)

    def forward(self, x: Tensor) -> Tensor:
        """(…, hidden) → (…, hidden)."""
        inner = self.input(x)
        if self.gated:
            gate, value = inner.chunk(2, dim=-1)
            return self.output(self.dropout(self.activation(gate) * value))
        return self.output(self.dropout(self.activation(inner)))
