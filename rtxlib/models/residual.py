"""How a pass joins what it made to the state it started from: the forms of the residual across iterations."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from rtxlib.models.config import ModelConfig
from rtxlib.models.linear import Linear


class PassResidual(nn.Module):
    """h ← join(h, F(h)) with F the block; ``config.residual`` says how, ``residual_scale`` is α.

    ============= ============================== =====================================================================
    word          next state                     what it does
    ============= ============================== =====================================================================
    none          F(h)                           the block's own residuals alone carry the state
    every         F(h) + α·h                     as the proposal writes it; the identity's gain is 1 + α a pass
    from_second   the same, first pass without   as the original ran
    learned       F(h) + α_t·h                   α_t = sigmoid(a_t) of each pass, bounded by 0 and 1, from α on
    damped        h + α·(F(h) − h)               a step of length α towards F(h); the identity's gain is 1
    gated         g ⊙ F(h) + (1 − g) ⊙ h         g = sigmoid(W·[h, F(h)] + b) of each value, half open at first
    ============= ============================== =====================================================================

    F already holds an identity of its own, so h ← F(h) + α·h multiplies the state by about 1 + α a pass. Damped and gated are
    averages: they take that factor away, and the state grows by no more than what F adds to it.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.form, self.alpha = config.residual, config.residual_scale
        if self.form == "learned":
            self.logit = nn.Parameter(torch.empty(config.recurrent_depth))
        if self.form == "gated":
            self.gate = Linear(2 * config.hidden_size, config.hidden_size)

    def initial_logit(self) -> float:
        """a_t at the start, where sigmoid(a_t) = α."""
        return math.log(self.alpha / (1 - self.alpha))

    def forward(self, before: Tensor, after: Tensor, iteration: int) -> Tensor:
        """Join ``before`` and ``after`` (batch, length, hidden); iteration from 0. Passes beyond the trained take the last α."""
        if self.form == "none" or (self.form == "from_second" and iteration == 0):
            return after
        if self.form == "damped":
            return torch.lerp(before, after, self.alpha)
        if self.form == "gated":
            gate = self.gate(torch.cat((before, after), dim=-1)).sigmoid()
            return before + gate * (after - before)  # unlike lerp this takes a sixteen-bit gate between full states
        alpha = self.alpha
        if self.form == "learned":
            alpha = self.logit[min(iteration, len(self.logit) - 1)].sigmoid()
        return after + alpha * before
