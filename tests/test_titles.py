"""Titles of figures state what their tables show, and no more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from test_composed import arm

from rtxstudy.evaluation.comparisons import two_best, two_best_over_splits
from rtxstudy.evaluation.finished import Runs
from rtxstudy.words import titles


def pair(difference: float, low: float, high: float, n_seeds: int = 3, **others: Any) -> dict[str, Any]:
    row = {"comparison": "a − b", "difference": difference, "low": low, "high": high, "n_seeds": n_seeds, "fits": 0}
    return row | others


@pytest.mark.parametrize(
    ("row", "title"),
    [
        (pair(0.1, 0.05, 0.15), "a leads b by 10.0 points in accuracy (+5.0 to +15.0)"),
        (pair(0.1, -0.05, 0.25), "No difference in accuracy is shown between the two highest, a and b"),
        (pair(0.011, -0.01, 0.03, 1, fits=2), "a has the highest accuracy, 1.1 points above b (one fit each)"),
        (pair(0.1, 0.05, 0.15, 1), "a has the highest accuracy, 10.0 points above b (one seed each)"),
        (pair(0.1, np.nan, np.nan, 2), "a has the highest accuracy, 10.0 points above b (2 seeds each)"),
    ],
)
def test_a_lead_needs_an_interval_without_zero_and_names_the_rival(row: dict[str, Any], title: str) -> None:
    assert titles.accuracy(row) == title


def test_on_short_and_long_texts_a_lead_needs_an_interval_without_zero() -> None:
    both = [pair(0.003, -0.022, 0.027, data="x shortest"), pair(-0.022, -0.092, 0.048, data="x longest")]
    said = titles.by_length(pd.DataFrame(both))
    assert said == "No difference is shown between a and b on the shortest and on the longest texts"
    shown = [both[0], pair(-0.022, -0.03, -0.01, data="x longest")]
    assert titles.by_length(pd.DataFrame(shown)) == (
        "b leads a by 2.2 points on the longest texts; no difference is shown between a and b on the shortest texts"
    )
    assert "leads" not in titles.by_length(pd.DataFrame([pair(0.1, 0.05, 0.15, 2, data="x shortest")]))


def test_the_two_best_are_encoders_or_fits_and_the_majority_class_takes_no_part(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=400)

    def encoder(name: str, seeds: int, share: float) -> Runs:
        runs = arm(name, rng.random((seeds, 400)) < share, tmp_path, labels)
        for run in runs:
            run.metrics["accuracy"] = share
        return runs

    runs = encoder("e", 5, 0.8) + encoder("f", 3, 0.6)
    fits = {"majority class": 0.99, "x": 0.5, "y": 0.4}
    rows = [{"model": m, "accuracy": p, "n_test": 400, "correct": rng.random(400) < p} for m, p in fits.items()]
    counting = pd.DataFrame(rows)
    found = two_best(runs, counting)
    assert found["comparison"] == "e − f" and found["n_seeds"] == 3 and found["n_items"] == 400 and found["low"] > 0.1
    beside = two_best(runs[:5], counting)
    assert beside["comparison"] == "e − x" and (beside["n_seeds"], beside["fits"]) == (5, 1)
    high = counting.assign(accuracy=counting["accuracy"] + 0.45)
    assert titles.accuracy(two_best(runs, high)).endswith("above y (one fit each)")


def test_two_models_are_paired_by_split() -> None:
    runs = {"a": (0.9, 0.8, 0.7), "b": (0.89, 0.79, 0.69), "c": (0.5, 0.5, 0.5), "majority class": (1.0, 1.0, 1.0)}
    scores = pd.DataFrame([{"model": m, "seed": s, "f1": v} for m, own in runs.items() for s, v in enumerate(own)])
    found = two_best_over_splits(scores, "f1")
    assert found["comparison"] == "a − b" and found["difference"] == pytest.approx(0.01) and found["low"] > 0.0099
    assert titles.accuracy(found, "F1").startswith("a leads b by 1.0 points in F1")


def test_gains_losses_and_frontiers_are_counted() -> None:
    sizes = pd.DataFrame({"model": list("aabb"), "train_rows": [100, 1000] * 2, "mean": [0.6, 0.8, 0.7, 0.85]})
    assert titles.by_size(sizes) == "From 100 to 1,000 texts the encoders gain 15 to 20 points"
    moved = pd.DataFrame({"model": list("aabb"), "tested_on": ["x", "y"] * 2, "mean": [0.8, 0.7, 0.8, 0.75]})
    assert titles.carried(moved, "x", "y") == "From x to y accuracy changes by −10 to −5 points"
    changes = pd.DataFrame({"low": [0.01, -0.03, -0.01, 0.01], "high": [0.02, -0.01, 0.01, 0.02], "n_seeds": [3, 3, 3, 2]})
    assert titles.differences(changes, "base") == "Of 4 changes to base, 1 is better and 1 worse"
    models = pd.DataFrame({"family": ["standard", "recurrent", "standard"], "mean": [0.8, 0.9, 0.7], "n": 1})
    on = pd.Series([True, False, True])
    assert titles.frontier(models, on, "time") == (
        "2 of 3 encoders lie on the frontier of accuracy and time: 2 standard (one seed each)"
    )
    assert titles.spread(models) == "The highest and the lowest accuracy of 3 encoders are 20.0 points apart (one seed each)"
    costs = models.assign(ms_median=[2, 3, 1], parameters=[2, 1, 3])
    assert titles.bubble(costs) == (
        "The rank correlation of accuracy is 1.00 with time and −1.00 with parameters (3 encoders, one seed each)"
    )


def test_a_training_curve_says_where_the_loss_is_lowest() -> None:
    loss = {0.5: 0.6, 1.0: 0.4, 1.5: 0.5}
    curves = pd.DataFrame([{"model": "a", "seed": s, "epoch": e, "val_loss": v} for s in (0, 1) for e, v in loss.items()])
    assert titles.learning(curves).endswith("lowest at epoch 1 of 1.5 and rises after that")
    falls = curves[curves["epoch"] <= 1]
    assert titles.learning(falls).endswith("lowest at the end of the training (epoch 1)")
    assert titles.learning(pd.concat([curves, falls.assign(model="b")])).endswith("rises before the end for 1 of 2 encoders")
    stopped = curves.drop(curves.index[(curves["seed"] == 1) & (curves["epoch"] == 1.5)])
    assert titles.learning(stopped) == titles.learning(falls)  # the mean ends where the first seed stops


def test_titles_on_passes_state_what_was_found() -> None:
    left = pd.DataFrame({"throughput": [2.0, 1.0, 3.0], "fixed_throughput": [2.5, np.nan, 2.0], "n_seeds": 3})
    assert titles.exits(left) == "For 1 of 3 early exits, a fixed number of passes is as fast at no lower mean accuracy"
    bounds = pd.DataFrame({"bound": ["", "validated", "controlled", "certified"], "beside_fixed": [2, 1, 0.7, 0.9], "n_seeds": 2})
    assert titles.bounded_exits(bounds) == (
        "None of 2 bounded exits is faster than the fixed passes that validation texts choose (2 seeds each)"
    )
    fit = {"data": "x", "phi": 0.5, "low": 0.2, "high": 0.8, "learned": True, "seeds": 3}
    unknown = fit | {"data": "y", "phi": np.nan, "low": -np.inf, "high": np.inf}
    assert titles.worth(pd.DataFrame([unknown, fit])) == (
        "On y, φ is not determined; on x, a pass helps, but less than a layer"
    )
    assert titles.worth(pd.DataFrame([fit | {"high": np.inf, "seeds": 2}])) == "On x, a pass helps (2 seeds each)"
    read = {1: (0.70, 0.72, 0.71), 4: (0.90, 0.91, 0.92)}
    rows = [{"iterations": r, "seed": s, "accuracy": v} for r, own in read.items() for s, v in enumerate(own)]
    table = pd.DataFrame(rows).assign(arm="p", depth=4)
    assert titles.composition(table) == (
        "On texts with 4 operators, 4 passes instead of 1 change accuracy by +20.0 points (+17.5 to +22.5 over 3 seeds)"
    )
    assert titles.composition(table[table["seed"] < 2]).endswith("(2 seeds each)")
    states = pd.DataFrame({"model": list("aabb"), "iteration": [1, 2] * 2, "token_correlation": [0.1, 0.4, 0.1, 0.6]})
    assert titles.states(states.assign(distance=[0.9, 0.2, 0.9, 0.5])) == (
        "After the last pass a text's tokens correlate by 0.40 to 0.60, and the last step is 20 to 50 % of the state"
    )


def test_embeddings_differ_only_where_the_interval_excludes_zero() -> None:
    ends = {"the same kind · x": (0.02, 0.01, 0.03), "the same mood · y": (-0.01, -0.03, 0.01)}
    rows = [
        {"panel": panel, "comparison": name, "difference": d, "low": low, "high": high}
        for panel, (d, low, high) in ends.items()
        for name in ("e 2×2 − e", "e 2×1 distilled − e", "e 2×2 distilled − e", "e 2×2 distilled − e 2×1 distilled")
    ]
    assert titles.retrieval(pd.DataFrame(rows), "e") == (
        "Against e, the distilled loop finds 2.0 points more for the same kind and is not shown to differ for the same mood"
    )
