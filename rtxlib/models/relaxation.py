"""What each pass of a shared block may have of its own: norms, and an addition of low rank to each matrix."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import initialization

from rtxlib.models.config import ModelConfig
from rtxlib.models.kernels.linear import linear
from rtxlib.models.norms import make_norm

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
    each of its four maps.
    """

    def __init__(self, config: ModelConfig, layer: nn.Module) -> None:
        super().__init__()
        if config.pass_norms:
            for name in NORMS:
                setattr(self, name, make_norm(config))
        if config.pass_rank:
            for name, shared in MATRICES.items():
                of = layer.get_submodule(shared)
                addition = LowRank(of.in_features, of.out_features, config.pass_rank, config.initializer_range)
                setattr(self, name, addition)
