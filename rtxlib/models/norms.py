"""The norms: RMSNorm, or torch's LayerNorm."""

from __future__ import annotations

from torch import Tensor, nn

from rtxlib.models.config import ModelConfig
from rtxlib.models.kernels.rms_norm import rms_norm


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
