"""The residual across passes: how a pass joins its output to the state it started from.

To add a form, add a record to :data:`FORMS`. The loop, its export and the bound on its gradient read it. A form that weighs
h and F(h) in another way than by one α needs new fields of :class:`Form` and a case in :meth:`PassResidual.forward`. Then add
its formula to ``by_hand`` and its word to ``VARIANTS`` in tests/test_recurrence.py, and to ``forms``
(rtxstudy/questions/forms/loop_runs.py) if the study compares it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor, nn
from transformers import initialization

from rtxlib.models.kernels import Linear

if TYPE_CHECKING:
    from rtxlib.models.config import ModelConfig


@dataclass(frozen=True)
class Form:
    """A form of the residual.

    Attributes:
        averages: whether it is h + α·(F(h) − h), an average for α below 1; otherwise it is F(h) + α·h
        alpha: "fixed" (``residual_scale``), "learned" (one number for each pass, which starts there), or "gate" (computed from h
            and F(h), for each value)
        begins: the first pass that has it, counted from 0; None: no pass has it, and the next state is F(h)
    """

    averages: bool = False
    alpha: Literal["fixed", "learned", "gate"] = "fixed"
    begins: int | None = 0

    def joins(self, pass_index: int) -> bool:
        """Whether a pass, counted from 0, has this residual."""
        return self.begins is not None and pass_index >= self.begins

    def weights(self, alpha: float, pass_index: int) -> tuple[float, float]:
        """(s, b) of h ← s·h + b·F(h) in a pass."""
        if not self.joins(pass_index):
            return 0.0, 1.0
        return (1 - alpha, alpha) if self.averages else (alpha, 1.0)


FORMS = {
    "none": Form(begins=None),  # h ← F(h)
    "every": Form(),  # h ← F(h) + α·h
    "from_second": Form(begins=1),  # h ← F(h) + α·h from the second pass on
    "learned": Form(alpha="learned"),  # h ← F(h) + αₜ·h
    "damped": Form(averages=True),  # h ← h + α·(F(h) − h)
    "gated": Form(averages=True, alpha="gate"),  # h ← g ⊙ F(h) + (1 − g) ⊙ h, with g = sigmoid(W·[h, F(h)] + b)
}


class PassResidual(nn.Module):
    """h ← join(h, F(h)), where F is the block. ``config.residual`` names one of :data:`FORMS`; α is ``residual_scale``.

    F has residual connections inside, so F(h) ≈ h at the start. F(h) + α·h therefore multiplies the state by about 1 + α in
    each pass. Damped and gated are averages of h and F(h), so the state grows only by what F adds to it. The gate is about one
    half at the start.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.form, self.start = FORMS[config.residual], config.residual_scale
        if self.form.alpha == "learned":
            self.logit = nn.Parameter(torch.empty(config.recurrent_depth))  # αₜ = sigmoid(logitₜ)
        if self.form.alpha == "gate":
            self.gate = Linear(2 * config.hidden_size, config.hidden_size)

    def reset_parameters(self) -> None:
        """Start at αₜ = α. The gate starts as every other linear map does."""
        if self.form.alpha == "learned":
            initialization.constant_(self.logit, math.log(self.start / (1 - self.start)))

    def forward(self, before: Tensor, after: Tensor, pass_index: int) -> Tensor:
        """Join h (``before``) and F(h) (``after``), both (batch, length, hidden); pass_index counts from 0.

        Passes beyond the trained ones use the last learned α.
        """
        if not self.form.joins(pass_index):
            return after
        alpha = self.start
        if self.form.alpha == "learned":
            alpha = self.logit[min(pass_index, len(self.logit) - 1)].sigmoid()
        elif self.form.alpha == "gate":
            alpha = self.gate(torch.cat((before, after), dim=-1)).sigmoid()
        return before + alpha * (after - before) if self.form.averages else after + alpha * before

    def weights(self, passes: int) -> list[tuple[float, float]]:
        """(s, b) of h ← s·h + b·F(h) in each pass; NaN for a gate, whose weights depend on the state."""
        alphas = [math.nan if self.form.alpha == "gate" else float(self.start)] * passes
        if self.form.alpha == "learned":
            alphas = self.logit.sigmoid().tolist()
        return [self.form.weights(alpha, pass_index) for pass_index, alpha in enumerate(alphas)]
