"""Dropout with a fast random generator for CPUs."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

_DRAWS = 1 << 16  # sixteen random bits decide about a value


class Dropout(nn.Dropout):
    """``nn.Dropout`` by :func:`dropout`: active in training mode only."""

    def forward(self, x: Tensor) -> Tensor:
        """Any shape → the same shape."""
        return dropout(x, self.p if self.training else 0.0)


def dropout(x: Tensor, p: float) -> Tensor:
    """x ⊙ mask / (1 − p), where the mask is 0 with probability p and otherwise 1 (Srivastava et al. 2014).

    torch draws one Bernoulli number per value on a single core. On a CPU :func:`dropout_mask` draws instead, and one 64-bit
    number decides four values. On a GPU torch's own kernel runs.
    """
    if not p:
        return x
    if x.device.type != "cpu":
        return F.dropout(x, p)
    return x * dropout_mask(x.shape, p, x.dtype)


def dropout_mask(shape: torch.Size, p: float, dtype: torch.dtype) -> Tensor:
    """A mask on the CPU: 0 with probability p, otherwise 1 / (1 − p). p is rounded to a multiple of 1/65,536.

    The random bits come from SFC64 (Doty-Humphrey's PractRand), one stream per mask. torch's own generator draws the
    stream's seed, so ``torch.manual_seed`` and a checkpoint's random state determine the mask.
    """
    dropped = round(p * _DRAWS)
    values = shape.numel()
    words = np.random.SFC64(int(torch.randint(2**63 - 1, ()))).random_raw(math.ceil(values / 4))
    bits = torch.from_numpy(words.view(np.int16)[:values])
    # The comparison is done in float32, which holds every sixteen-bit integer; torch does not vectorise it for integers.
    mask = bits.float().ge_(dropped - _DRAWS // 2).mul_(_DRAWS / max(1, _DRAWS - dropped))
    return mask.to(dtype).view(shape)
