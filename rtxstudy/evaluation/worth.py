"""What one more pass is worth in layers: φ, from the errors of standard encoders and of loops of one width."""

from __future__ import annotations

import contextlib
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from rtxlib.errors import InputError, nearest

PHI = np.round(np.arange(-2.0, 4.0001, 0.02), 2)  # tried; an interval that reaches an end has no end there
BETA = np.geomspace(0.05, 8.0, 60)


class Worth(NamedTuple):
    """error = E + A·w^(−beta) with w = layers·iterations^phi, and the interval of φ, ±∞ where the data do not bound it.

    Bounded on neither side, or best at an end of what is tried, φ and the curve are not determined: NaN.
    """

    phi: float
    low: float
    high: float
    E: float
    A: float
    beta: float
    n: int  # runs


def worth_of_passes(runs: pd.DataFrame, confidence: float = 0.95) -> Worth:
    """φ by least squares, its interval by profile likelihood.

    runs: one row a run, with ``layers`` N of the block, ``iterations`` r and ``error``. A block of N layers passed r times is
    taken to be worth N·r^φ layers of their own: φ = 1, a pass is as good as layers; φ = 0, it is worth nothing; below, it
    harms. After the iso-depth law of arXiv 2604.21106, L = E + A(N_once + r^φ·N_rec)^(−α), without its term for data, with
    layers in place of parameters (one width, so they are proportional) and nothing outside the loop. E, A ≥ 0.

    φ lies in the interval where (S(φ) − S) / (S / (n − 4)) is at most the quantile of F(1, n − 4), S(φ) being the least sum of
    squares for this φ and S the least of all (Bates & Watts 1988, ch. 6). Runs count as independent. Raises InputError for a
    missing column, fewer than two depths of standard encoders, no loop, or fewer than six runs.
    """
    for column in ("layers", "iterations", "error"):
        if column not in runs:
            raise InputError(f"The table of runs has no column '{column}'.{nearest(column, runs.columns)}")
    layers, passes, error = (runs[column].to_numpy(dtype=float) for column in ("layers", "iterations", "error"))
    n, looped = len(runs), passes > 1
    if n < 6 or not looped.any() or len(set(layers[~looped])) < 2:
        raise InputError(
            "φ needs standard encoders of at least two depths, at least one loop, and six runs or more; "
            f"here are {len(set(layers[~looped]))} depths, {looped.sum()} loops and {n} runs."
        )
    squares, floor, scale = _curves(layers * passes ** PHI[:, None, None], error)  # (φ, beta)
    profile = squares.min(axis=1)
    at = int(profile.argmin())
    least, beta = float(profile[at]), int(squares[at].argmin())
    limit = least * (1 + stats.f.ppf(confidence, 1, n - 4) / (n - 4))
    inside = np.flatnonzero(profile <= limit)
    low = -np.inf if inside[0] == 0 else float(PHI[inside[0]])
    high = np.inf if inside[-1] == len(PHI) - 1 else float(PHI[inside[-1]])
    if at in (0, len(PHI) - 1) or not (np.isfinite(low) or np.isfinite(high)):
        return Worth(np.nan, low, high, np.nan, np.nan, np.nan, n)
    return Worth(float(PHI[at]), low, high, float(floor[at, beta]), float(scale[at, beta]), float(BETA[beta]), n)


def without_one_model(runs: pd.DataFrame) -> tuple[float, float]:
    """The least and the largest φ when all runs of one model after another are left out; NaN where one leaves φ undetermined.

    How far a fit hangs on single models, one whose training failed now and then say. runs: as for
    :func:`worth_of_passes`, with ``model``. A model without which there is nothing to fit is kept.
    """
    found = []
    for model in runs["model"].unique():
        with contextlib.suppress(InputError):
            found.append(worth_of_passes(runs[runs["model"] != model]).phi)
    return (float(np.min(found)), float(np.max(found))) if found else (np.nan, np.nan)


def _curves(w: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sum of squares, E and A of the best E + A·w^(−beta) with E, A ≥ 0, for worths w (φ, 1, runs) and each of BETA.

    Two unknowns, so the best is the free one where it is allowed, and else the better of the two with one of them at zero.
    """
    x = w ** -BETA[None, :, None]  # (φ, beta, runs)
    mean = x.mean(axis=-1, keepdims=True)
    spread = np.square(x - mean).sum(axis=-1)
    slope = ((x - mean) * error).sum(axis=-1) / np.where(spread > 1e-12, spread, np.inf)
    floor = error.mean() - slope * mean[..., 0]
    through_zero = (x * error).sum(axis=-1) / np.square(x).sum(axis=-1)
    flat = np.full_like(slope, error.mean())
    none = np.zeros_like(slope)
    choices = [(floor, slope), (none, through_zero), (flat, none)]
    squares = np.stack([np.square(error - E[..., None] - A[..., None] * x).sum(axis=-1) for E, A in choices])
    squares[0][(floor < 0) | (slope < 0)] = np.inf
    pick = squares.argmin(axis=0)[None]
    E, A = (np.take_along_axis(np.stack(values), pick, axis=0)[0] for values in zip(*choices, strict=True))
    return np.take_along_axis(squares, pick, axis=0)[0], E, A
