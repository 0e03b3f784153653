"""Bounded risk of early exit: the bounds hold on simulated texts, and they are not idle."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rtxlib.errors import InputError
from rtxlib.runs.spec import RunSpec
from rtxstudy import profiles, published, studies
from rtxstudy.finished import Runs
from rtxstudy.numbers import percent
from rtxstudy.questions.early_exit import bounded_exits, leaving_early
from rtxstudy.questions.early_exit.exit_risk import certified, check_bound, controlled, exit_losses
from rtxstudy.questions.early_exit.exits import Decoded, leave

FULL = Path(__file__).resolve().parents[1] / "data" / "results" / "full"
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
    assert sure.share_all_above <= min(0.05, sure.share_above)


def test_few_texts_allow_no_early_exit() -> None:
    scores, right = texts(10, 2)
    losses = exit_losses(scores, right, THRESHOLDS)
    assert controlled(losses, THRESHOLDS, 0.01) == certified(losses, THRESHOLDS, 0.01) == THRESHOLDS[-1]
    with pytest.raises(InputError, match="between 0 and 1"):
        controlled(losses, THRESHOLDS, 0)


def decoded(n: int, seed: int, easy: float = 0.5) -> tuple[Decoded, np.ndarray]:
    """Two labels after four passes. ``easy`` texts are settled at once, others only after the last pass; scores tell which."""
    rng = np.random.default_rng(seed)
    labels, settled = rng.integers(0, 2, n), rng.random(n) < easy
    right = np.where(settled[:, None], rng.random((n, 1)) < 0.9, rng.random((n, 4)) < [0.5, 0.55, 0.6, 0.8])
    found = np.where(right, labels[:, None], 1 - labels[:, None])
    scores = np.clip(np.where(settled[:, None], 0.97, 0.6) + 0.05 * rng.random((n, 4)), 0, 0.999)
    return Decoded(np.eye(2)[found], {criterion: scores for criterion in bounded_exits.CRITERIA}), labels


@pytest.fixture(scope="module")
def measured() -> pd.DataFrame:
    """Ways chosen on 3,000 texts and judged on 1,500 others, with three seeds, where a pass takes one millisecond."""
    tables = []
    for seed in range(3):
        found = bounded_exits.ways(*decoded(3000, seed))
        run = {"data": "x", "model": "m", "seed": seed}
        ways, texts = bounded_exits.judged(found, *decoded(1500, 100 + seed))
        tables.append((ways.assign(ms_per_text=ways["passes"], **run), texts.assign(row=texts.index, **run)))
    return bounded_exits.against_all_passes(*map(pd.concat, zip(*tables, strict=True)))


def test_ways_are_chosen_on_validation_texts_and_judged_on_test_texts() -> None:
    valid, test = decoded(3000, 0), decoded(2000, 1)
    found = bounded_exits.ways(*valid)
    ways, texts = bounded_exits.judged(found, *test)
    ways = ways.set_index("way")
    right = test[0].predictions == test[1][:, None]
    assert ways.loc["fixed", "setting"] == 4  # fewer passes lose more than the bound
    for name, row in ways.iterrows():
        assert row["accuracy"] == (texts[name] == texts["label"]).mean()
    low = ways.loc["confidence_controlled"]
    taken = leave(test[0].scores["confidence"], low["setting"])
    lost = right[:, -1] & ~right[np.arange(len(taken)), taken - 1]
    assert low["passes"] == taken.mean() < 3 and low["risk"] == lost.mean()
    assert low["setting"] <= ways.loc["confidence_certified", "setting"]
    same = Decoded(np.repeat(valid[0].logits[:, -1:], 4, axis=1), valid[0].scores)  # no pass after the first changes a label
    assert [way.setting for way in bounded_exits.ways(same, valid[1]) if way.way == "fixed"] == [1]


def test_a_bound_on_average_is_exceeded_in_many_splits_and_a_certified_one_in_few() -> None:
    """With two passes and scores that tell nothing, the loss falls smoothly with the threshold, and bounds are used up."""
    rng = np.random.default_rng(0)
    scores, right = rng.random((4000, 2)), np.stack([rng.random(4000) < 0.6, np.ones(4000, bool)], axis=1)
    plain, sure = (check_bound(scores, right, np.linspace(0, 1, 401), how, 0.1) for how in ("controlled", "certified"))
    assert 0.095 < plain.mean_risk <= 0.101 and plain.share_above > 0.3 and plain.share_all_above > 0.3, plain
    assert sure.share_all_above <= 0.05 < sure.share_above < 0.2, sure


def test_exits_are_compared_with_all_passes_by_seed_and_text(measured: pd.DataFrame) -> None:
    left = measured.set_index("way")
    assert (left["most"] == 4).all() and (left["n_seeds"] == 3).all()
    assert left.loc["fixed_4", "difference"] == 0 and left.loc["fixed_2", "throughput"] == pytest.approx(2)
    early = left.loc["confidence_controlled"]
    assert early["throughput"] > 1.4 and early["low"] <= early["difference"] <= early["high"] and abs(early["difference"]) < 0.005
    assert early["difference"] == pytest.approx(early["accuracy"] - left.loc["fixed_4", "accuracy"])
    assert early["mean_risk"] <= 0.005 and early["splits"] == 200
    assert early["beside_fixed"] == pytest.approx(early["throughput"])  # the fixed passes chosen are all four


def fixed(rows: pd.DataFrame, **changed: float) -> pd.DataFrame:
    """The rows with other numbers for the fixed passes that validation texts chose."""
    return rows.assign(**{name: rows[name].where(rows["way"] != "fixed", value) for name, value in changed.items()})


def test_the_table_of_exits_shows_the_accuracy(measured: pd.DataFrame) -> None:
    shown = leaving_early.readable(measured)
    assert list(shown["accuracy"]) == [percent(accuracy) for accuracy in measured["accuracy"]]


def published_runs(model: str) -> Runs:
    found = sorted((run for run in published.runs(FULL) if run.metrics["model"] == model), key=lambda run: run.metrics["seed"])
    found = [run for run in found if run.metrics["data"] == "multi_nli"]
    return Runs(tuple(found), tuple(RunSpec.from_canonical(run.spec) for run in found), FULL)


def test_the_encoder_that_texts_leave_stands_beside_the_plain_loop_of_its_layers() -> None:
    name = "all-MiniLM-L6-v2"
    leaving, plain = published_runs(f"{name} 3×4 lower random depth"), published_runs(f"{name} 3×2 lower")
    others = [published_runs(f"{name} 2×2 lower between edges"), published_runs(name), plain[:0]]
    (row,) = bounded_exits.beside_plain_loop(leaving, [*others, plain]).to_dict("records")
    assert (row["passes"], row["plain_passes"], row["epochs"], row["plain_epochs"]) == (4, 2, 1, 2)
    assert row["difference"] == pytest.approx(leaving.table["accuracy"].mean() - plain.table["accuracy"].mean())
    assert row["low"] < row["difference"] < row["high"] < -0.03
    assert bounded_exits.beside_plain_loop(leaving, others).empty


def test_a_study_of_exits_trains_each_seed_at_random_depth_with_four_passes() -> None:
    profile = profiles.load("smoke", seeds=2, rows=100, max_length=32)
    specs = studies.leaving_early(profile)
    assert [spec.seed for spec in specs] == [0, 1] and {spec.data.rows for spec in specs} == {100}
    assert all(spec.conversion["passes"] >= 4 and spec.conversion["depth_sampling"] == "uniform" for spec in specs)
    assert all(spec.data.tokenizer == profile.pretrained for spec in specs)
