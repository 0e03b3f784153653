"""The worth of more passes: φ, the worth of a pass in layers, and accuracy by the number of operators in a text."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from rtx import archive
from rtxlib.data.prepare import Prepared
from rtxlib.errors import InputError, nearest
from rtxlib.runs import store
from rtxlib.runs.store import Run
from rtxstudy.statistics import CONFIDENCE

PHI = np.round(np.arange(-2.0, 4.0001, 0.02), 2)  # values tried; an interval that reaches an end has no bound there
BETA = np.geomspace(0.05, 8.0, 60)


class Worth(NamedTuple):
    """error = E + A·w^(−beta) with w = layers·passes^phi, and the interval of φ.

    - ``low`` is −∞ if the data do not bound φ from below.
    - ``high`` is +∞ if the data do not bound φ from above.
    - φ and the curve are NaN if φ has neither bound, or if the best fit lies at an end of the values tried.
    """

    phi: float
    low: float
    high: float
    E: float
    A: float
    beta: float
    n: int  # runs


class Range(NamedTuple):
    """The least and the largest of several values."""

    least: float
    largest: float


def errors(runs: Sequence[Run]) -> pd.DataFrame:
    """The table that :func:`worth_of_passes` reads: ``model, data, layers, iterations, seed, error``, one row per run.

    ``iterations`` is the number of passes.
    """
    table = store.runs_table(runs).rename(columns={"num_hidden_layers": "layers", "recurrent_depth": "iterations"})
    return table.assign(error=1 - table["accuracy"])[["model", "data", "layers", "iterations", "seed", "error"]]


def worth_of_passes(runs: pd.DataFrame) -> Worth:
    """φ by least squares, and its interval by profile likelihood.

    runs: one row per run, with ``layers`` N of the block, ``iterations`` r (its passes) and ``error``. In the model, N layers
    passed r times are worth N·r^φ layers of their own: with φ = 1 a pass is as good as new layers, with φ = 0 it is worth
    nothing, with φ < 0 it does harm. This is the iso-depth law of arXiv 2604.21106, L = E + A(N_once + r^φ·N_rec)^(−α), with
    three changes: no term for the amount of data; layers in place of parameters (proportional, as all runs have one width);
    nothing outside the loop. E, A ≥ 0.

    S(φ) is the least sum of squares for a given φ, and S_min the least over all φ. The interval holds every φ for which
    (S(φ) − S_min) / (S_min / (n − 4)) is at most the quantile of F(1, n − 4) (Bates & Watts 1988, ch. 6). Runs count as
    independent.

    Raises InputError for a missing column, fewer than two depths of standard encoders, no loop, or fewer than six runs.
    """
    for column in ("layers", "iterations", "error"):
        if column not in runs:
            raise InputError(f"The table of runs has no column '{column}'.{nearest(column, runs.columns)}")
    layers, passes, error = (runs[column].to_numpy(dtype=float) for column in ("layers", "iterations", "error"))
    n, looped = len(runs), passes > 1
    depths = len(set(layers[~looped]))
    if n < 6 or not looped.any() or depths < 2:
        raise InputError(
            "φ needs standard encoders of at least two depths, at least one loop, and six runs or more; "
            f"here are {depths} depths, {looped.sum()} loops and {n} runs."
        )
    squares, floor, scale = _curves(layers * passes ** PHI[:, None, None], error)  # (φ, beta)
    profile = squares.min(axis=1)
    best = int(profile.argmin())
    least, beta = float(profile[best]), int(squares[best].argmin())
    limit = least * (1 + stats.f.ppf(CONFIDENCE, 1, n - 4) / (n - 4))
    inside = np.flatnonzero(profile <= limit)
    low = -np.inf if inside[0] == 0 else float(PHI[inside[0]])
    high = np.inf if inside[-1] == len(PHI) - 1 else float(PHI[inside[-1]])
    if best in (0, len(PHI) - 1) or not (np.isfinite(low) or np.isfinite(high)):
        return Worth(np.nan, low, high, np.nan, np.nan, np.nan, n)
    return Worth(float(PHI[best]), low, high, float(floor[best, beta]), float(scale[best, beta]), float(BETA[beta]), n)


def without_one_model(runs: pd.DataFrame) -> Range:
    """The leave-one-model-out range of φ: the least and the largest φ when the runs of one model are left out.

    The range shows how far φ depends on single models, for example on one whose training sometimes fails. It is NaN if φ is
    undetermined without one of them. Models that the fit needs are skipped. runs: as for :func:`worth_of_passes`, with a
    column ``model``.
    """
    phis = []
    for model in runs["model"].unique():
        with contextlib.suppress(InputError):
            phis.append(worth_of_passes(runs[runs["model"] != model]).phi)
    return Range(float(np.min(phis)), float(np.max(phis))) if phis else Range(np.nan, np.nan)


def by_composition(runs: Sequence[Run], data: Prepared, results: Path | None = None) -> pd.DataFrame:
    """Accuracy on the embedded test texts by ``depth``, the number of operators that compose a text's verdict.

    Columns: ``model, seed, layers, iterations`` (the passes), ``depth`` (0, 1, …), ``accuracy``, ``n`` (texts). data: the
    embedded data. Only the embedded data have ``depth``.
    """
    composed = data.rows("test")["depth"]
    parts = []
    for run in runs:
        predictions = archive.part(run, "predictions", results).sort_values("row")
        right = (predictions["label"] == predictions["prediction"]).groupby(composed.to_numpy()[predictions["row"]])
        part = right.agg(accuracy="mean", n="size").rename_axis("depth").reset_index()
        m = run.metrics
        sizes = {"layers": m["num_hidden_layers"], "iterations": m["recurrent_depth"]}
        parts.append(part.assign(model=m["model"], seed=m["seed"], **sizes))
    return pd.concat(parts, ignore_index=True)


def _curves(w: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The best E + A·w^(−beta) with E, A ≥ 0, for w (φ, 1, runs) and each of BETA.

    Returns its sum of squares, E and A, each (φ, beta). The best fit is the free one if it meets the constraints, and otherwise
    the better of the two fits with E or A at zero.
    """
    x = w ** -BETA[None, :, None]  # (φ, beta, runs)
    mean = x.mean(axis=-1, keepdims=True)
    spread = np.square(x - mean).sum(axis=-1)
    slope = ((x - mean) * error).sum(axis=-1) / np.where(spread > 1e-12, spread, np.inf)
    zero = np.zeros_like(slope)
    free = (error.mean() - slope * mean[..., 0], slope)
    without_floor = (zero, (x * error).sum(axis=-1) / np.square(x).sum(axis=-1))
    constant = (np.full_like(slope, error.mean()), zero)
    fits = [free, without_floor, constant]  # (E, A) of each
    squares = np.stack([np.square(error - E[..., None] - A[..., None] * x).sum(axis=-1) for E, A in fits])
    squares[0][(free[0] < 0) | (free[1] < 0)] = np.inf
    pick = squares.argmin(axis=0)[None]
    E, A = (np.take_along_axis(np.stack(values), pick, axis=0)[0] for values in zip(*fits, strict=True))
    return np.take_along_axis(squares, pick, axis=0)[0], E, A
