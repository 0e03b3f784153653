"""Confidence intervals: for a mean over seeds, and for the difference between two models over seeds and texts.

Every interval is a 95 % interval. A new statistic becomes a function here that takes arrays and returns a named tuple; its
docstring gives the formula and the source.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats
from scipy.optimize import brentq
from scipy.special import ndtr

from rtxlib.errors import InputError, nearest

CONFIDENCE = 0.95  # of every interval
FEWEST_SEEDS = 3  # for an interval over seeds and for a verdict: t(0.975, 1) is 12.7, so an interval of two is rarely narrow
MARGIN = 0.01  # of accuracy that a replacement may lose: one percentage point
_QUANTILES = 1000  # of a distribution, for a mean over it
POWER = 0.8  # four times in five: the probability with which a difference is to be shown (Cohen 1988)


class Interval(NamedTuple):
    """A mean over n values with its confidence interval; ``low`` and ``high`` are NaN if n is below :data:`FEWEST_SEEDS`."""

    mean: float
    low: float
    high: float
    n: int


class MeanSquares(NamedTuple):
    """The mean squares of seeds, items and residual of paired differences, each over the number of differences.

    So each is in units of the variance of the mean difference.
    """

    seeds: float
    items: float
    residual: float


class Difference(NamedTuple):
    """Accuracy of A minus accuracy of B (0.01 = one percentage point) with its interval and two-sided p-value."""

    difference: float
    low: float
    high: float
    p: float
    n_seeds: int
    n_items: int


def mean_interval(values: Sequence[float] | np.ndarray) -> Interval:
    """Student's t-interval for the mean of ``values`` (seeds,), for example one model's accuracies over its seeds.

    mean ± t(0.975, n − 1) · s / √n, where s is the standard deviation of the sample (Student 1908, Biometrika 6). The interval
    says how far other seeds would move the mean on the *same* test texts. Fewer than :data:`FEWEST_SEEDS` values have no
    interval, so its ends are NaN.
    Raises ``InputError`` for no values, and for a missing or infinite one: leaving it out would overstate n.
    """
    values = np.asarray(values, dtype=float)
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
        raise InputError(f"A mean needs at least one finite value per seed, not {values.tolist()}.")
    mean, n = float(values.mean()), values.size
    if n < FEWEST_SEEDS:
        return Interval(mean, np.nan, np.nan, n)
    half = stats.t.ppf((1 + CONFIDENCE) / 2, n - 1) * values.std(ddof=1) / np.sqrt(n)
    return Interval(mean, float(mean - half), float(mean + half), n)


def paired_difference(correct_a: np.ndarray, correct_b: np.ndarray) -> Difference:
    """Accuracy of A minus accuracy of B, with the interval of :func:`mean_difference`.

    ``correct_a`` and ``correct_b``: (seeds, items) booleans for the same test items; seed s of A is paired with seed s of B.
    A 1-D array is one seed. Raises ``InputError`` when the shapes differ or there are fewer than two items.
    """
    a, b = (np.atleast_2d(np.asarray(correct, dtype=float)) for correct in (correct_a, correct_b))
    if a.shape != b.shape or a.ndim != 2 or a.shape[1] < 2:
        raise InputError(
            f"A paired difference needs two arrays of the same seeds × items (2 or more), not {a.shape} and {b.shape}."
        )
    return mean_difference(a - b)


def mean_difference(d: np.ndarray) -> Difference:
    """The mean of paired differences ``d`` (seeds, items), with an interval that covers new seeds *and* new items.

    Seeds and items are crossed random effects of ``d``. S, I and E are the mean squares of seeds, items and residual in the
    two-way analysis of variance. Then

        var(D̄) = (S + max(I − E, 0)) / (seeds · items)
        degrees of freedom = (S + max(I − E, 0))² / (S² / (seeds − 1))

    after Hillis (2007), Statistics in Medicine 26, 596-619. Two cases differ from it:

    - S ≤ E: the seed effect is not larger than noise. E then replaces S, with items − 1 degrees of freedom. Three seeds often
      agree by chance, and an interval from such a small S would be too narrow.
    - One seed: only the items vary, and the interval is the paired t-interval over items.

    LOG.md has the simulated coverage of this interval, and of a bootstrap over seeds and items, which covers less reliably.
    """
    mean, (error, freedom) = float(d.mean()), standard_error(d)
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, freedom)) * error
    p = float(2 * stats.t.sf(abs(mean) / error, freedom)) if error > 0 else float(mean == 0)
    return Difference(mean, mean - half, mean + half, p, *d.shape)


def lowest_start(d: np.ndarray) -> float:
    """Where the interval of the mean of ``d`` (seeds, items) begins at the lowest if one seed is left out; NaN below 3 seeds."""
    if len(d) < FEWEST_SEEDS:
        return float("nan")
    return min(mean_difference(np.delete(d, seed, axis=0)).low for seed in range(len(d)))


def difference_of_accuracies(a: np.ndarray, b: np.ndarray, items: int) -> Difference:
    """Accuracy of A minus accuracy of B from the accuracies alone, (seeds,) each; seed s of A is paired with seed s of B.

    Which texts were labelled correctly is not known, so the items count as if A and B had been tested on different ones. With the
    standard deviation s of the n paired differences and the mean accuracies p and q on m items

        var = s²/n + (p(1 − p) + q(1 − q)) / m,

    and the degrees of freedom are var² / ((s²/n)² / (n − 1)) (Satterthwaite 1946, Biometrics Bulletin 2). Two models mostly err
    on the same texts, so this interval is wider than that of :func:`mean_difference`. Fewer than :data:`FEWEST_SEEDS` seeds have
    no interval.
    """
    d, n = a - b, len(a)
    if n < FEWEST_SEEDS:
        return Difference(float(d.mean()), np.nan, np.nan, np.nan, n, items)
    by_seed = float(d.var(ddof=1)) / n
    variance = by_seed + sum(float(p * (1 - p)) for p in (a.mean(), b.mean())) / items
    freedom = variance**2 * (n - 1) / by_seed**2 if by_seed else np.inf
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, freedom) * np.sqrt(variance))
    p = float(2 * stats.t.sf(abs(d.mean()) / np.sqrt(variance), freedom))
    return Difference(float(d.mean()), float(d.mean()) - half, float(d.mean()) + half, p, n, items)


def standard_error(d: np.ndarray) -> tuple[float, float]:
    """The standard error of the mean of paired differences ``d`` (seeds, items), and its degrees of freedom.

    The formulas are those of :func:`mean_difference`. Neither number depends on the mean itself.
    """
    seeds, items = d.shape
    squares = mean_squares(d)
    if seeds > 1 and squares.seeds > squares.residual:
        spread = squares.seeds + max(squares.items - squares.residual, 0.0)
        return float(np.sqrt(spread)), (seeds - 1) * (spread / squares.seeds) ** 2
    spread = squares.items if seeds == 1 else max(squares.items, squares.residual)
    return float(np.sqrt(spread)), items - 1.0


def mean_squares(d: np.ndarray) -> MeanSquares:
    """The mean squares of the two-way analysis of variance of ``d`` (seeds, items); without seeds and residual for one seed."""
    seeds, items = d.shape
    mean, by_item, by_seed = float(d.mean()), d.mean(axis=0), d.mean(axis=1)
    of_items = seeds * float(np.square(by_item - mean).sum()) / (items - 1)
    if seeds == 1:
        return MeanSquares(np.nan, of_items / d.size, np.nan)
    of_seeds = items * float(np.square(by_seed - mean).sum()) / (seeds - 1)
    residual = d - by_seed[:, None] - by_item[None, :] + mean
    of_residual = float(np.square(residual).sum()) / ((seeds - 1) * (items - 1))
    return MeanSquares(of_seeds / d.size, of_items / d.size, of_residual / d.size)


def pooled(differences: np.ndarray, squares: Sequence[MeanSquares], seeds: np.ndarray) -> tuple[float, pd.DataFrame]:
    """Several mean differences with the noise of their seeds pooled: the common ratio, and columns ``low``, ``high`` and ``p``.

    Three seeds tell little about how far seeds vary: S of :func:`mean_difference` has two degrees of freedom. If S is the same
    multiple of E in all comparisons, that multiple is estimated from all of them,

        ratio = max(1, Σ (seeds − 1) · S/E / Σ (seeds − 1)),

    and var(D̄) = ratio · E + max(I − E, 0) has Σ (seeds − 1) · (var(D̄) / (ratio · E))² degrees of freedom. That the multiple is
    common is an assumption.

    differences: (comparisons,); seeds: (comparisons,) how many each has, at least two.
    """
    s, i, e = (np.array(part) for part in zip(*squares, strict=True))
    freedom = float((seeds - 1).sum())
    ratio = max(1.0, float(((seeds - 1) * s / e).sum()) / freedom)
    spread = ratio * e + np.maximum(i - e, 0)
    degrees = freedom * (spread / (ratio * e)) ** 2
    half = stats.t.ppf((1 + CONFIDENCE) / 2, degrees) * np.sqrt(spread)
    p = 2 * stats.t.sf(np.abs(differences) / np.sqrt(spread), degrees)
    return ratio, pd.DataFrame({"low": differences - half, "high": differences + half, "p": p})


def smallest_shown(d: np.ndarray, power: float = POWER) -> float:
    """The smallest true difference that so many seeds and items would show with this probability.

    A difference is shown if the interval of :func:`mean_difference` excludes zero. With the standard error s and the degrees of
    freedom f of ``d``, (seeds, items), the mean over s has a noncentral t-distribution whose noncentrality is δ/s (Cohen 1988,
    Statistical Power Analysis). The result is the δ ≥ 0 for which

        P(|t_f(δ/s)| > t_f(0.975)) = power.

    The variance components are those of crossed random seeds and items (Westfall, Kenny & Judd 2014, Journal of Experimental
    Psychology: General 143, 2020-2045). They measure spread around the mean, so the observed difference plays no part. They
    are estimates: from few seeds the result is rough. A test holds it against simulated experiments.

    Returns an accuracy (0.01 = one percentage point), 0 where nothing varies.
    """
    error, freedom = standard_error(d)
    if error == 0:
        return 0.0
    # Given the estimate of s, the mean is normal. So the probability is a mean over the chi distribution of that estimate, here
    # over its quantiles. scipy's own noncentral t has no value far out, where few degrees of freedom lead.
    quantiles = stats.chi.ppf((np.arange(_QUANTILES) + 0.5) / _QUANTILES, freedom)
    limits = stats.t.ppf((1 + CONFIDENCE) / 2, freedom) * quantiles / np.sqrt(freedom)

    def missing(noncentrality: float) -> float:
        return float(power - np.mean(ndtr(noncentrality - limits) + ndtr(-noncentrality - limits)))

    return float(error * brentq(missing, 0.0, limits.max() + 10.0))


def error_of_share(share: np.ndarray, n: np.ndarray | int) -> np.ndarray:
    """The standard error of a share of n items over new items, √(p(1 − p)/n)."""
    return np.sqrt(share * (1 - share) / n)


def by_cluster(d: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    """Paired differences of items in clusters, as values (seeds, clusters) for :func:`mean_difference`.

    Args:
        d: (seeds, items) differences, or answers that are 0 or 1
        clusters: (items,) name of the cluster of each item, such as the sentence that several texts share

    Items of one cluster are alike, so an interval has to treat the cluster as the unit. With n items in a cluster, C clusters, N
    items and the mean D̄ of ``d``, a cluster's value is D̄ + (Σd − n·D̄)·C/N, the linearised ratio of two sums (Cochran 1977,
    Sampling Techniques, ch. 6 and 9A). Each seed keeps its mean. With one item in each cluster, ``d`` is returned.

    Raises ``InputError`` when an item has no cluster, and for fewer than two clusters.
    """
    _, place, sizes = np.unique(clusters, return_inverse=True, return_counts=True)
    if len(place) != d.shape[1] or len(sizes) < 2:
        raise InputError(f"{d.shape[1]} items in at least 2 clusters are needed, not {len(place)} in {len(sizes)}.")
    sums = np.stack([np.bincount(place, of_seed, len(sizes)) for of_seed in d])  # (seeds, clusters)
    mean = d.mean()
    return mean + (sums - sizes * mean) * (len(sizes) / len(place))


def summarise(
    runs: pd.DataFrame, by: Sequence[str], value: str = "accuracy", carry: Sequence[str] = ()
) -> pd.DataFrame:
    """One row per group of runs: ``by…, mean, low, high, sd, n`` of ``value``, and the median of each column in ``carry``.

    ``low`` and ``high`` are the interval of :func:`mean_interval` over seeds, NaN for fewer than three; ``sd`` is NaN for a
    single run. Groups keep the order in which they first appear, and a missing value in ``by`` forms a group of its own. Raises
    ``InputError`` for a missing column, an empty table, or a seed that occurs twice in a group (one run would count as two).
    """
    for column in (*by, value, *carry):
        if column not in runs:
            raise InputError(f"The table of runs has no column '{column}'.{nearest(column, runs.columns)}")
    if runs.empty:
        raise InputError("The table of runs is empty; nothing can be summarised.")
    rows = []
    for group, part in runs.groupby(list(by), sort=False, dropna=False):
        name = dict(zip(by, group, strict=True))
        if "seed" in part and part["seed"].duplicated().any():
            raise InputError(f"A seed occurs twice among the runs of {name}; group by what tells them apart as well.")
        mean, low, high, n = mean_interval(part[value])
        medians = {column: part[column].median() for column in carry}
        rows.append({**name, "mean": mean, "low": low, "high": high, "sd": part[value].std(), "n": n, **medians})
    return pd.DataFrame(rows)
