"""Titles of figures state what their tables show."""

from __future__ import annotations

import pandas as pd
import pytest

from rtxstudy.words import titles


@pytest.mark.parametrize(
    ("accuracies", "title"),
    [
        ({"a": 0.9, "b": 0.8, "majority class": 0.5}, "a leads by 10.0 points"),
        ({"a": 0.9, "b": 0.895, "c": 0.7}, "a and b lead, 0.5 points apart"),
        ({"a": 0.9, "b": 0.895}, "The models lie within 0.5 points of each other"),
    ],
)
def test_the_most_accurate_is_named_only_where_it_is_alone(accuracies: dict[str, float], title: str) -> None:
    assert titles.accuracy(pd.DataFrame({"model": accuracies.keys(), "accuracy": accuracies.values()})) == title


def test_gains_losses_and_frontiers_are_counted() -> None:
    sizes = pd.DataFrame({"model": list("aabb"), "train_rows": [100, 1000] * 2, "mean": [0.6, 0.8, 0.7, 0.85]})
    assert titles.by_size(sizes) == "From 100 to 1,000 texts the encoders gain 15 to 20 points"
    moved = pd.DataFrame({"model": list("aabb"), "tested_on": ["x", "y"] * 2, "mean": [0.8, 0.7, 0.8, 0.75]})
    assert titles.carried(moved, "x", "y") == "From x to y accuracy changes by −10 to −5 points"
    changes = pd.DataFrame({"low": [0.01, -0.03, -0.01, 0.01], "high": [0.02, -0.01, 0.01, 0.02], "n_seeds": [3, 3, 3, 2]})
    assert titles.differences(changes, "base") == "Of 4 changes to base, 1 is better and 1 worse"
    models = pd.DataFrame({"model": list("abc"), "family": ["standard", "recurrent", "standard"], "mean": [0.8, 0.9, 0.7]})
    on = pd.Series([True, False, True])
    assert titles.frontier(models, on, "time") == "No other encoder is as accurate for less time: 2 standard of 3"
    assert titles.best_cell(models) == "b is the best, and the worst is 20.0 points behind"


def test_a_length_is_named_only_where_the_leader_changes() -> None:
    table = pd.DataFrame({"model": list("abab"), "lengths": ["shortest"] * 2 + ["longest"] * 2, "mean": [0.8, 0.7, 0.6, 0.7]})
    assert titles.by_length(table) == "a leads on the shortest texts; b leads on the longest texts"
    assert titles.by_length(table[:2]) == "a has the higher mean at every length"
