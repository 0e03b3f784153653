"""What depth gains, what a loop keeps of it, and the interval of that share."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from rtxlib.errors import InputError
from rtxstudy.evaluation.depth_gain import kept


def answers(rng: np.random.Generator, share: float, seeds: int, items: int) -> tuple[np.ndarray, np.ndarray]:
    """Differences of the loop and of the deep arm to a shallow arm that both share: D = 0.06, L = share · D."""
    hard = rng.random(items)  # of each text
    right = [rng.random((seeds, items)) * 0.5 + 0.5 * hard < p for p in (0.70, 0.76, 0.70 + 0.06 * share)]
    shallow, deep, loop = (np.asarray(part, float) for part in right)
    return loop - shallow, deep - shallow


def test_with_one_seed_it_is_fiellers_closed_form() -> None:
    loop, deep = answers(np.random.default_rng(0), 0.8, 1, 4000)
    found = kept(loop, deep)
    n, t = loop.size, stats.t.ppf(0.975, loop.size - 1)
    (vl, c), (_, vd) = np.cov(loop[0], deep[0]) / n
    mean_l, mean_d = loop.mean(), deep.mean()
    a, b, e = mean_d**2 - t**2 * vd, mean_l * mean_d - t**2 * c, mean_l**2 - t**2 * vl
    ends = (b + np.array([-1, 1]) * np.sqrt(b**2 - a * e)) / a
    assert found.share == pytest.approx(mean_l / mean_d)
    assert (found.low, found.high) == pytest.approx(tuple(ends), abs=1e-5)


@pytest.mark.parametrize("share", [0.0, 0.8])
def test_the_interval_covers_the_true_share(share: float) -> None:
    rng = np.random.default_rng(1)
    found = [kept(*answers(rng, share, 3, 3000)) for _ in range(200)]
    covered = np.mean([one.low <= share <= one.high for one in found])
    assert 0.9 <= covered <= 1.0, covered
    assert np.median([one.high - one.low for one in found]) < 1.2  # and it is not wide for want of covariance


def test_where_depth_does_not_pay_no_share_is_given() -> None:
    rng = np.random.default_rng(2)
    _, nothing = answers(rng, 0.5, 3, 500)
    assert np.isnan(kept(nothing, nothing - nothing.mean())).all()
    assert np.isnan(kept(nothing, -np.abs(nothing))).all()


def test_a_loop_that_is_the_deep_encoder_keeps_all() -> None:
    _, deep = answers(np.random.default_rng(3), 0.5, 3, 2000)
    assert kept(deep, deep) == pytest.approx((1, 1, 1), abs=1e-6)
    with pytest.raises(InputError, match="same seeds × items"):
        kept(deep, deep[:2])
