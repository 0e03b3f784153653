"""The residual across passes: how a pass joins its output to the state it started from.

To add a form:

1. config.py: its word in ``CHOICES["residual"]``, and in ``_check_loop`` the values that it cannot have.
2. Here: a row in the table, a case in ``forward``, and its parameters, if any, in ``__init__`` and ``reset_parameters``.
3. ``forward_flops`` (runs/cost.py), if it multiplies matrices.
4. ``_coefficients`` (rtxstudy/evaluation/gradients.py): how a pass weighs h and F(h), for the bound and the gain of the
   gradient. ``forms`` (rtxstudy/studies/loop.py) and ``FORMS`` (rtxstudy/figures/shared/looks.py), if the study compares it and
   draws it. ``configuration`` (rtxstudy/pages/weights.py) must
   refuse it as long as the transformer page does not compute it.
5. tests/test_recurrence.py: its formula in ``by_hand`` and its word in ``VARIANTS``, which other tests go through too.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from transformers import initialization

from rtxlib.models.config import ModelConfig
from rtxlib.models.kernels.linear import Linear


class PassResidual(nn.Module):
    """h ← join(h, F(h)), where F is the block. ``config.residual`` names the form; α is ``residual_scale``.

    ============= ============================== =====================================================================
    form          next state                     meaning
    ============= ============================== =====================================================================
    none          F(h)                           only the block's own residuals carry the state
    every         F(h) + α·h                     every pass
    from_second   F(h), then F(h) + α·h          every pass but the first (default)
    learned       F(h) + α_t·h                   α_t = sigmoid(a_t) is learned for each pass t and starts at α
    damped        h + α·(F(h) − h)               a step of length α towards F(h)
    gated         g ⊙ F(h) + (1 − g) ⊙ h         g = sigmoid(W·[h, F(h)] + b) for each value, about one half at the start
    ============= ============================== =====================================================================

    F has residual connections inside, so F(h) ≈ h at the start. F(h) + α·h therefore multiplies the state by about 1 + α in
    each pass. Damped and gated are averages of h and F(h), so the state grows only by what F adds to it.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.form, self.alpha = config.residual, config.residual_scale
        if self.form == "learned":
            self.logit = nn.Parameter(torch.empty(config.recurrent_depth))  # a_t
        if self.form == "gated":
            self.gate = Linear(2 * config.hidden_size, config.hidden_size)

    def reset_parameters(self) -> None:
        """Start at sigmoid(a_t) = α. The gate starts as every other linear map does."""
        if self.form == "learned":
            initialization.constant_(self.logit, math.log(self.alpha / (1 - self.alpha)))

    def forward(self, before: Tensor, after: Tensor, pass_index: int) -> Tensor:
        """Join h (``before``) and F(h) (``after``), both (batch, length, hidden); pass_index counts from 0.

        Passes beyond the trained ones use the last learned α.
        """
        match self.form:
            case "none":
                return after
            case "every":
                return after + self.alpha * before
            case "from_second":
                return after + self.alpha * before if pass_index > 0 else after
            case "learned":
                return after + self.logit[min(pass_index, len(self.logit) - 1)].sigmoid() * before
            case "damped":
                return torch.lerp(before, after, self.alpha)
            case "gated":  # torch.lerp needs one dtype; under autocast the gate is bf16
                gate = self.gate(torch.cat((before, after), dim=-1)).sigmoid()
                return before + gate * (after - before)
