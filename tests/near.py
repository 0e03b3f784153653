"""One comparison for computations that may round differently: the difference is measured against the size of the numbers."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike


def assert_near(found: torch.Tensor | ArrayLike, wanted: torch.Tensor | ArrayLike, within: float = 1e-4) -> None:
    """Raise AssertionError unless no difference is larger than ``within`` times the largest number in ``wanted``.

    Shapes must agree, and no number may be NaN. Every processor adds the terms of a product in an order of its own. In
    float32 the outputs of 22 layers therefore differ by some millionths of their size, and the default leaves a hundred
    times as much, while a wrong sign, mask or weight changes the first digits. Where two formulas are compared, both are
    computed in float64 and ``within`` is 1e-10.
    """
    found, wanted = (
        x.detach().double().numpy() if isinstance(x, torch.Tensor) else np.asarray(x, np.float64)
        for x in (found, wanted)
    )
    assert found.shape == wanted.shape, f"shape {found.shape}, wanted {wanted.shape}"
    difference, size = np.abs(found - wanted).max(initial=0.0), np.abs(wanted).max(initial=0.0)
    assert difference <= within * size, f"differs by {difference:.3g}; wanted at most {within:g} of {size:.3g}"
