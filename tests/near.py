"""One comparison for computations that may round differently: the difference is measured against the size of the numbers."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike


def assert_near(found: torch.Tensor | ArrayLike, wanted: torch.Tensor | ArrayLike, within: float = 1e-5) -> None:
    """Raise AssertionError unless no difference is larger than ``within`` times the largest number in ``wanted``.

    Shapes must agree, and no number may be NaN. A processor adds the terms of a product in an order of its own, so the
    last digits of float32 differ between machines, and the more so the larger the numbers and the deeper the model.
    The default is about eighty times float32's rounding. Where two formulas are compared, both are computed in float64
    and ``within`` is smaller.
    """
    found, wanted = (
        np.asarray(x.detach() if isinstance(x, torch.Tensor) else x, dtype=np.float64) for x in (found, wanted)
    )
    assert found.shape == wanted.shape, f"shape {found.shape}, wanted {wanted.shape}"
    difference, size = np.abs(found - wanted).max(initial=0.0), np.abs(wanted).max(initial=0.0)
    assert difference <= within * size, f"differs by {difference:.3g}; wanted at most {within:g} of {size:.3g}"
