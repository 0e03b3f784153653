"""Bounded risk of early exit: the bounds hold on simulated texts, and they are not idle."""

from __future__ import annotations

import numpy as np
import pytest

from rtxlib.errors import InputError
from rtxstudy.evaluation.exit_risk import certified, check_bound, controlled, exit_losses

THRESHOLDS = np.append(np.linspace(0.3, 1.0, 71), 1.01)


def texts(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores and rightness after four passes; a higher score is right more often, and later passes are better."""
    rng = np.random.default_rng(seed)
    skill = rng.normal(size=(n, 1))
    scores = 1 / (1 + np.exp(-(skill + 0.5 * np.arange(4) + 0.3 * rng.normal(size=(n, 4)))))
    return scores, rng.random((n, 4)) < 0.5 + 0.5 * scores


def test_losses_fall_with_the_threshold_and_end_at_zero() -> None:
    scores, right = texts(500, 0)
    losses = exit_losses(scores, right, THRESHOLDS)
    assert (np.diff(losses, axis=1) <= 0).all() and not losses[:, -1].any() and losses[:, 0].mean() > 0.05


@pytest.mark.parametrize("risk", [0.02, 0.05])
def test_the_expected_risk_is_bounded_and_nearly_reached(risk: float) -> None:
    scores, right = texts(4000, 1)
    plain = check_bound(scores, right, THRESHOLDS, "controlled", risk, splits=100)
    sure = check_bound(scores, right, THRESHOLDS, "certified", risk, splits=100)
    assert risk / 4 < plain.mean_risk <= risk * 1.05, plain
    assert sure.share_above <= 0.12 and sure.mean_risk <= plain.mean_risk  # 5 of 100, within chance
    assert plain.mean_passes <= sure.mean_passes < 4


def test_few_texts_allow_no_early_exit() -> None:
    scores, right = texts(10, 2)
    losses = exit_losses(scores, right, THRESHOLDS)
    assert controlled(losses, THRESHOLDS, 0.01) == certified(losses, THRESHOLDS, 0.01) == THRESHOLDS[-1]
    with pytest.raises(InputError, match="between 0 and 1"):
        controlled(losses, THRESHOLDS, 0)
