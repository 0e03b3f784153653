"""The recipe search: validation chooses among the trials, each arm has its recipe, and the words follow from the tables."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rtx.executors.execute import lookup
from rtxlib import paths
from rtxlib.data.datasets import Hub
from rtxlib.errors import InputError
from rtxlib.runs.spec import RunSpec, data_label
from rtxlib.runs.store import Run
from rtxlib.training.recipe import RECIPES, recipe
from rtxstudy import estimate, profiles, studies
from rtxstudy.claims import sentences
from rtxstudy.finished import Runs
from rtxstudy.profiles.full import FULL
from rtxstudy.questions.accuracy import convergence
from rtxstudy.questions.recipes import recipe_claims, recipe_figures, recipe_search, recipe_trials

SEARCH, PUBLISHED = FULL.search, FULL.published
SST2 = Hub("sst2")
Curve = list[tuple[float, float]]  # validation loss and accuracy of each evaluation


def made(
    specs: list[RunSpec], curve_of: Callable[[RunSpec], Curve], results: Path, kept: int = -1, evaluations: int = 4
) -> Runs:
    """Runs that never took place, with these curves in the published tables; 10 steps and 5 core-seconds to each evaluation."""
    runs, curves = [], []
    for number, spec in enumerate(specs):
        curve = curve_of(spec)
        identity = {"key": f"{number:03}", "model": spec.name, "seed": spec.seed, "data": data_label(spec.data)}
        table = pd.DataFrame(curve, columns=["val_loss", "val_accuracy"]).assign(**identity)
        table["step"] = 10 * (table.index + 1)
        table["epoch"] = (table.index + 1) / evaluations
        curves.append(table)
        loss, accuracy = curve[kept]
        found = {
            "val_accuracy": accuracy,
            "val_loss": loss,
            "train_cpu_seconds": 5.0 * len(curve),
            "device": "CPU, 1 thread",
            "recipe": spec.recipe.name,
        }
        found |= {"epochs": table["epoch"].iloc[-1], "best_epoch": table["epoch"].iloc[kept]}
        runs.append(Run(identity["key"], spec.canonical(), identity | found, None))
    results.mkdir(exist_ok=True)
    pd.concat(curves).to_parquet(results / "curves.parquet")
    return Runs(tuple(runs), tuple(specs), results)


def test_the_search_of_the_full_profile_is_the_same_for_every_arm_and_can_be_afforded() -> None:
    assert len(SEARCH.trials) == 8 and SEARCH.recipes[0] == RECIPES["default"]
    assert len({one.name for one in SEARCH.recipes}) == len(set(SEARCH.recipes)) == 8
    changed = {name for trial in SEARCH.trials for name in trial}
    assert changed >= {
        *("learning_rate", "epochs", "dropout", "word_dropout", "average", "label_smoothing", "batch_rows"),
        *("output_initializer", "embedding_initializer_range"),
    }
    profile = dataclasses.replace(profiles.load("full"), search=SEARCH, published=PUBLISHED)
    first, last = studies.first_round(profile), studies.finals(profile)
    assert len(first) == 32 and all(
        spec.data.validation_share == 0.2 and spec.data.train_fraction < 1 for spec in first
    )
    minutes = {
        "standard-6x384": 8,
        "recurrent-3x2x256": 4,
        "standard-3x256": 2,
        "standard-6x256": 4.4,
    }  # an epoch, all rows
    kept = 52_365 / 63_141
    hours = [
        sum(minutes[spec.model] * kept * spec.data.train_fraction * spec.recipe.epochs for spec in specs) / 60
        for specs in (first, last)
    ]
    assert hours[0] < 2.5 and hours[1] / SEARCH.seeds < 3.7 / 2, hours
    protocol = studies.published_protocol(profile)
    assert {spec.recipe.name for spec in protocol} == {"published"} and len(protocol) == 2


def test_the_best_trials_of_an_arm_and_the_recipe_before_the_search_go_on() -> None:
    search = dataclasses.replace(SEARCH, arms=("standard-1x32", "recurrent-1x2x32"), seeds=2)
    profile = dataclasses.replace(profiles.load("smoke"), search=search)
    rows = [
        {
            "arm": arm,
            "trial": trial,
            "val_accuracy": 0.7 + 0.01 * (trial if arm == "standard-1x32" else -trial),
            "val_loss": 0.5,
        }
        for arm in search.arms
        for trial in range(8)
    ]
    first = pd.DataFrame(rows)
    tied = (first["arm"] == "standard-1x32") & (first["trial"] == 3)
    first.loc[tied, ["val_accuracy", "val_loss"]] = [0.76, 0.4]  # as accurate as trial 6, with a lower loss

    def went_on(table: pd.DataFrame | None) -> dict[str, list[tuple[int, int]]]:
        found = studies.finals(profile, table)
        assert {spec.data for spec in found} == {search.data}
        return {
            arm: [(search.recipes.index(spec.recipe), spec.seed) for spec in found if spec.model == arm]
            for arm in search.arms
        }

    assert went_on(first) == {
        "standard-1x32": [(trial, seed) for trial in (0, 3, 7) for seed in (0, 1)],
        "recurrent-1x2x32": [(trial, seed) for trial in (0, 1) for seed in (0, 1)],
    }
    longest = [max(search.recipes, key=lambda one: one.epochs).epochs] * 2
    most = {trial for trial, _ in went_on(None)["standard-1x32"]} - {0}
    assert [search.recipes[trial].epochs for trial in most] == longest
    without = dataclasses.replace(profile, search=None, published=None)
    assert not [*studies.first_round(without), *studies.finals(without), *studies.published_protocol(without)]


@pytest.fixture
def searched(tmp_path: Path) -> tuple[profiles.Search, Runs, pd.DataFrame]:
    """The search of the smoke profile with made-up curves: its last trial is the more accurate one, and its loss rises."""
    profile = profiles.load("smoke")
    search = profile.search

    def curve(spec: RunSpec) -> Curve:
        if spec.recipe == search.recipes[0]:
            return [(0.6, 0.70), (0.5, 0.75)] if spec.model == search.arms[0] else [(0.5, 0.80), (0.6, 0.78)]
        return [(0.5, 0.70), (0.7, 0.76 + 0.02 * spec.seed)]

    first = made(studies.first_round(profile), curve, tmp_path / "first")
    by_trial = recipe_search.of_round(search.recipes, first)
    final = made(studies.finals(profile, by_trial), curve, tmp_path / "final")
    return search, final, recipe_search.trials(by_trial, recipe_search.of_round(search.recipes, final), texts=400)


def test_the_highest_mean_validation_accuracy_of_the_finals_is_chosen(searched) -> None:
    search, final, table = searched
    assert len(table) == 4 + len(final) and (table["texts"] == 400).all()
    assert table["standard_error"].iloc[0] == pytest.approx(np.sqrt(0.75 * 0.25 / 400))
    best = recipe_search.means(table[table["round"] == "final"])
    chosen = best[best["chosen"]].set_index("arm")
    # the other arm's first trial is the best of its first round, so it alone goes on
    assert chosen["trial"].to_dict() == {search.arms[0]: 1, search.arms[1]: 0}
    assert chosen.loc[search.arms[0], ["val_accuracy", "seeds"]].tolist() == pytest.approx([0.77, 2])
    assert table[table["chosen"] & (table["round"] == "first")].groupby("arm")["trial"].apply(list).to_dict() == {
        search.arms[0]: [0, 1],
        search.arms[1]: [0],
    }


def test_a_rising_loss_is_calibration_only_where_the_accuracy_rises_too(searched) -> None:
    search, final, _ = searched
    table = recipe_search.calibration(search.recipes, final)
    kinds = table.set_index(["arm", "recipe"])["kind"].to_dict()
    standard, loop = search.arms
    assert kinds == {
        (standard, "smoke"): "falls",
        (standard, "averaged"): "calibration",
        (loop, "smoke"): "overfitting",
    }
    row = table[table["kind"] == "calibration"].iloc[0]
    assert (row["lowest_loss"], row["last_loss"], row["last_accuracy"]) == pytest.approx((0.5, 0.7, 0.77))


def test_convergence_is_the_first_evaluation_within_a_point_of_the_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    specs = [RunSpec("standard-1x32", SST2, RECIPES["default"], seed) for seed in (0, 1)]
    curves = [
        [(0.6, 0.70), (0.5, 0.795), (0.5, 0.80), (0.5, 0.79)],
        [(0.6, 0.70), (0.5, 0.75), (0.5, 0.78), (0.5, 0.80)],
    ]
    runs = made(specs, lambda spec: curves[spec.seed], tmp_path)
    (row,) = convergence.convergence(runs + runs).to_dict("records")  # a run that is given twice counts once
    assert (row["n"], row["best"], row["steps"], row["epochs"], row["core_seconds"]) == (2, 0.8, 30, 0.75, 15)
    assert (row["all_steps"], row["all_epochs"], row["all_core_seconds"]) == (40, 1, 20)
    assert convergence.readable(pd.DataFrame([row]))["core-seconds"].tolist() == ["15"]
    monkeypatch.setattr(convergence, "NEAR", 0.2)
    (wide,) = convergence.convergence(runs).to_dict("records")
    assert wide["steps"] == 10


def test_a_run_stopped_early_only_where_it_ended_before_its_last_step(tmp_path: Path) -> None:
    plan = recipe("published", epochs=2)
    specs = [RunSpec("standard-1x32", SST2, plan, seed) for seed in (0, 1)]
    curve = [(0.5, 0.7), (0.4, 0.8), *[(0.6, 0.8)] * 6]
    runs = made(specs, lambda spec: curve[: 8 - 3 * spec.seed], tmp_path, kept=1)
    (row,) = convergence.stopping(runs).to_dict("records")
    assert (row["early"], row["least"], row["most"], row["lowest_loss"], row["kept"]) == (1, 1.25, 2, 0.5, 0.5)
    usual = [RunSpec("standard-1x32", SST2, RECIPES["default"])]
    (never,) = convergence.stopping(made(usual, lambda _: curve, tmp_path)).to_dict("records")
    assert row["patience"] == 3 and math.isnan(never["patience"])


def test_an_arm_has_its_own_recipe_and_others_that_of_their_family() -> None:
    usual = dataclasses.replace(profiles.load("full"), least_steps=None)
    names = ("standard-6x384", "recurrent-3x2x256", "standard-3x256")
    own = {name: recipe("default", name=f"of {name}", epochs=2) for name in names}
    profile = dataclasses.replace(usual, recipes=own)
    expected = {"standard-3x256": names[2], "standard-2x128": names[0], "recurrent-6x3x384": names[1]}
    assert {model: profile.recipe_of(model) for model in expected} == {model: own[of] for model, of in expected.items()}
    assert usual.recipe_of("recurrent-6x3x384") == usual.recipe
    assert dataclasses.replace(usual, recipes={names[0]: own[names[0]]}).recipe_of("recurrent-6x3x384") == usual.recipe
    for name in ("baseline", "recurrent", "random_depth", "grid", "data_size", "width_vs_depth"):
        make = getattr(studies, name)
        found = make(profile)
        assert [spec.recipe for spec in found] == [profile.recipe_of(spec.model) for spec in found]
        assert [dataclasses.replace(spec, recipe=usual.recipe) for spec in found] == make(usual)
    of_sst2 = next(trio for trio in studies.trios(profile, ["scratch"]) if trio.deep[0].data == usual.data)
    assert [arm[0].recipe.name for arm in of_sst2[1:]] == [
        "of standard-6x384",
        "of standard-3x256",
        "of recurrent-3x2x256",
    ]
    others = [trio for trio in studies.trios(profile, ["scratch"]) if trio.deep[0].data != usual.data]
    assert others == [trio for trio in studies.trios(usual, ["scratch"]) if trio.deep[0].data != usual.data]


def test_a_recipe_that_is_asked_for_replaces_the_recipes_of_the_arms(monkeypatch: pytest.MonkeyPatch) -> None:
    own = {"standard-2x32": recipe("smoke", name="own", learning_rate=1e-3)}
    smoke = dataclasses.replace(profiles.PROFILES["smoke"], recipes=own)
    monkeypatch.setitem(profiles.PROFILES, "smoke", smoke)
    assert profiles.load("smoke", recipe="small").recipe_of("standard-2x32") == RECIPES["small"]
    longer = profiles.load("smoke", epochs=7, rows=120, seeds=1)
    assert longer.recipe_of("standard-2x32") == dataclasses.replace(own["standard-2x32"], epochs=7)
    assert longer.search.recipes == smoke.search.recipes  # the search keeps its own
    assert (longer.search.data.rows, longer.published.data.rows, longer.search.seeds, longer.published.seeds) == (
        120,
        120,
        1,
        1,
    )


def test_the_dry_run_counts_the_finals_that_the_first_round_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RTX_HOME", str(tmp_path))
    profile, data = profiles.load("smoke"), {}
    specs = studies.first_round(profile)
    assert estimate._first_round(profile, {}, data) is None
    keys = [key for key, _ in lookup(specs, paths.runs_dir(), data)]
    ahead = made(specs, lambda spec: [(0.5, 0.9 if spec.recipe == profile.search.recipe else 0.8)], tmp_path / "made")
    elsewhere = dict(zip(keys, ahead, strict=True))
    decided = studies.finals(profile, estimate._first_round(profile, elsewhere, data))
    assert {spec.recipe for spec in decided} == {profile.search.recipe}
    monkeypatch.setattr(estimate.published, "runs", lambda results: [])
    monkeypatch.setattr(estimate, "flops_per_second", lambda spec, data: 1e9)
    plan = estimate.plan(profile, ["02_baseline"]).set_index("study")["to_train"].to_dict()
    # two runs of the finals are those of the baseline
    assert plan == {
        "baseline": 2,
        "first_round": 4,
        "finals (at most)": len(studies.finals(profile)) - 2,
        "published_protocol": 2,
    }
    made_up = [dataclasses.replace(run, key=key) for key, run in elsewhere.items()]
    monkeypatch.setattr(estimate.published, "runs", lambda results: made_up)
    plan = estimate.plan(profile, ["02_baseline"]).set_index("study")["to_train"].to_dict()
    assert (plan["first_round"], plan["finals"]) == (0, len(decided) - 2)


def test_the_figure_has_a_row_for_each_trial_and_names_the_chosen_one(searched) -> None:
    search, _, table = searched
    axes = recipe_figures.trials(table).axes
    assert [ax.get_title(loc="left") for ax in axes] == list(search.arms)
    bold = [[name.get_text() for name in ax.get_yticklabels() if name.get_weight() == "bold"] for ax in axes]
    assert bold == [["averaged"], ["smoke"]]
    dashed = next(line for line in axes[0].lines if line.get_linestyle() == "--")
    assert dashed.get_xdata()[0] == pytest.approx(0.75)
    hollow = [line for line in axes[0].lines if line.get_markerfacecolor() == "white"]
    assert sorted(line.get_xdata()[0] for line in hollow) == pytest.approx([0.75, 0.76])
    with pytest.raises(InputError, match="needs a column 'chosen'"):
        recipe_figures.trials(table.drop(columns="chosen"))
    assert recipe_trials.readable(table)["then"].tolist()[:2] == ["goes on", "goes on"]


def test_encoders_with_their_own_recipes_are_told_apart_by_their_intervals() -> None:
    pairs = pd.DataFrame(
        [("recurrent-3x2x256 − standard-6x384", -0.01, -0.02, 0.01), ("standard-6x256 − standard-3x256", 0.006, -0.01, 0.02)],
        columns=["comparison", "difference", "low", "high"],
    )
    together, depth = sentences(recipe_claims.with_own_recipes(pairs))
    assert "no two of the encoders are told apart" in together and "(+0.6, −1.0 to +2.0)" in depth
    apart = pairs.assign(low=0.001)
    (told,) = sentences(recipe_claims.with_own_recipes(apart))  # depth is shown to pay, so the second sentence is left out
    assert "no two" not in told and "+0.1 to +2.0" in told
    assert not recipe_claims.with_own_recipes(None)
