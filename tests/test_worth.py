"""The worth of a pass: a φ that is put in is found again, its interval covers it, and what is said follows the interval."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from rtxlib.errors import InputError
from rtxstudy.absent import Absent
from rtxstudy.questions.forms import loop_tables
from rtxstudy.questions.passes.worth import without_one_model, worth_of_passes

DESIGN = [(1, 1), (2, 1), (4, 1), (8, 1), (1, 2), (1, 4), (1, 8), (2, 2), (2, 4), (4, 2)]


def errors(phi: float, noise: float, seed: int, seeds: int = 3) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    rows = [(n, r, 0.05 + 0.15 * (n * r**phi) ** -1.0 + noise * rng.normal()) for n, r in DESIGN for _ in range(seeds)]
    return pd.DataFrame(rows, columns=["layers", "iterations", "error"])


@pytest.mark.parametrize("phi", [-0.5, 0.0, 0.46, 1.0, 1.5])
def test_phi_is_found_again_without_noise(phi: float) -> None:
    found = worth_of_passes(errors(phi, 0.0, 0))
    assert found.phi == pytest.approx(phi, abs=0.021) and found.n == 30
    np.testing.assert_allclose((found.E, found.A), (0.05, 0.15), atol=0.003)
    assert found.low <= found.phi <= found.high


def test_the_interval_of_phi_covers_it_as_often_as_it_says() -> None:
    covered = [found.low <= 0.5 <= found.high for found in (worth_of_passes(errors(0.5, 0.006, s)) for s in range(200))]
    assert 0.90 <= np.mean(covered) <= 0.99  # 95 % within three standard errors of 200 draws


def test_a_fit_that_depends_on_one_failed_model_shows_it() -> None:
    runs = errors(0.5, 0.002, 0)
    runs = runs.assign(model=runs["layers"].astype(str) + "x" + runs["iterations"].astype(str))
    steady = without_one_model(runs)
    assert steady.least <= worth_of_passes(runs).phi <= steady.largest and steady.largest - steady.least < 0.3
    failed = runs.assign(error=runs["error"] + 0.1 * (runs["model"] == "4x1"))
    assert np.ptp(without_one_model(failed)) > 0.5 or np.isnan(without_one_model(failed)).all()
    assert np.isnan(without_one_model(runs[runs["iterations"] == 1])).all()


def test_where_depth_is_worth_nothing_phi_is_not_bounded() -> None:
    for seed in range(8):
        noise = np.random.default_rng(seed).normal(size=30)
        found = worth_of_passes(errors(0.5, 0.0, 0).assign(error=0.2 + 0.01 * noise))
        assert not (np.isfinite(found.low) and np.isfinite(found.high))
        assert np.isnan(found.phi) or -2 < found.phi < 4  # never an end of what was tried


@pytest.mark.parametrize(
    ("runs", "says"),
    [
        (pd.DataFrame({"layers": [1], "iterations": [1]}), "no column 'error'"),
        (errors(0.5, 0, 0).query("iterations == 1"), "0 loops"),
        (errors(0.5, 0, 0).query("layers == 1"), "1 depths"),
    ],
)
def test_phi_is_refused_without_what_it_needs(runs: pd.DataFrame, says: str) -> None:
    with pytest.raises(InputError, match=says):
        worth_of_passes(runs)


def test_a_data_set_with_too_few_runs_makes_the_question_absent_and_says_why() -> None:
    runs = errors(0.5, 0.002, 0).assign(data="embedded", seed=0)
    runs = runs.assign(model=runs["layers"].astype(str) + "x" + runs["iterations"].astype(str))
    counted = pd.DataFrame({"data": ["embedded"], "model": ["majority"], "accuracy": [0.5], "n_test": [800]})
    assert not isinstance(loop_tables.worth(runs, counted), Absent)
    few = loop_tables.worth(pd.concat([runs, runs.head(5).assign(data="few")]), counted)
    assert isinstance(few, Absent) and few.why.endswith("5 runs.")
