"""A threshold for early exit whose risk is bounded: the share of texts that full depth gets right and the exit gets wrong.

Two ways to choose it on held-out texts, both without assumptions on the model:

- :func:`controlled`: conformal risk control (Angelopoulos et al. 2022) bounds the *expected* risk on new texts.
- :func:`certified`: Learn-then-Test (Angelopoulos et al. 2021) bounds the risk with a stated probability.

Both assume that new texts come from where the held-out ones come from. In both, thresholds (thresholds,) ascend: a higher one
lets texts leave later.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats

from rtxlib.errors import InputError
from rtxstudy.questions.early_exit.exits import leave

CHANCE = 0.05  # with which a certified threshold may exceed its risk


def exit_losses(scores: np.ndarray, right: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """(rows, thresholds) of 0 and 1: full depth is right, and leaving at this threshold *or at a higher one* is wrong.

    scores (rows, passes): of a criterion after each pass. right (rows, passes): whether the label after each pass is right. "Or
    at a higher one" makes the loss fall with the threshold, which conformal risk control needs; it can only make it larger.
    """
    rows = np.arange(len(scores))
    exit_right = np.stack([right[rows, leave(scores, threshold) - 1] for threshold in thresholds], axis=1)
    lost = right[:, -1:] & ~exit_right
    return np.maximum.accumulate(lost[:, ::-1], axis=1)[:, ::-1].astype(float)


def controlled(losses: np.ndarray, thresholds: np.ndarray, risk: float) -> float:
    """The lowest threshold with (Σ losses + 1) / (n + 1) ≤ risk. The expected loss of a new text is then at most ``risk``.

    losses: (n, thresholds) of :func:`exit_losses`. The highest threshold, at which nothing leaves early, has no loss; it is taken
    where n is too small for any other. Raises InputError for a risk outside 0 to 1, or without texts.
    """
    _check(losses, risk)
    bound = (losses.sum(axis=0) + 1) / (len(losses) + 1)
    return float(thresholds[_lowest(bound <= risk)])


def certified(losses: np.ndarray, thresholds: np.ndarray, risk: float) -> float:
    """The lowest threshold whose risk is at most ``risk`` with a probability of at least 1 − :data:`CHANCE`
    over the held-out texts.

    Thresholds are tested from the highest down, each by the exact binomial test of "the risk is above ``risk``", until one is not
    rejected (fixed-sequence testing, so the number of tests needs no correction). Raises InputError as :func:`controlled`.
    """
    _check(losses, risk)
    rejected = stats.binom.cdf(losses.sum(axis=0), len(losses), risk) <= CHANCE
    return float(thresholds[_lowest(rejected)])


def _lowest(allowed: np.ndarray) -> int:
    """The first place from which on every threshold is allowed; the last place is always allowed."""
    refused = np.flatnonzero(~allowed[:-1])
    return int(refused[-1]) + 1 if len(refused) else 0


def _check(losses: np.ndarray, risk: float) -> None:
    if not 0 < risk < 1 or not len(losses):
        raise InputError(f"A bound on the risk needs texts and a risk between 0 and 1, not {len(losses)} and {risk}.")


class Checked(NamedTuple):
    """What happened on new texts, over many splits into held-out and new ones."""

    mean_risk: float
    share_above: float  # of the splits in which the risk on new texts was above the bound
    share_all_above: float  # of the splits in which the risk on held-out and new texts together was above the bound
    mean_passes: float
    splits: int


def check_bound(
    scores: np.ndarray, right: np.ndarray, thresholds: np.ndarray, choose: str, risk: float, splits: int = 200, seed: int = 0
) -> Checked:
    """Choose a threshold on a random half of the texts and measure it on the other half, many times.

    choose: "controlled" or "certified". The risk that is measured is the plain one, without "or at a higher one". The bounds
    are about texts without end. The new half stands for them, but its risk varies with its texts, so it lies above a bound that
    holds now and then. All texts together vary less.
    """
    losses = exit_losses(scores, right, thresholds)
    rule = {"controlled": controlled, "certified": certified}[choose]
    rng, rates = np.random.default_rng(seed), []
    for _ in range(splits):
        order = rng.permutation(len(scores))
        calibration, new = order[: len(order) // 2], order[len(order) // 2 :]
        depths = leave(scores, rule(losses[calibration], thresholds, risk))
        lost = right[:, -1] & ~right[np.arange(len(scores)), depths - 1]
        rates.append((lost[new].mean(), lost.mean(), depths[new].mean()))
    on_new, on_all, passes = np.array(rates).T
    above = (float((risks > risk).mean()) for risks in (on_new, on_all))
    return Checked(float(on_new.mean()), *above, float(passes.mean()), splits)
