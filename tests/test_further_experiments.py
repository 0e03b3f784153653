"""The experiments that the proposal asks for beside the headline: their runs, their tables, and the power of a comparison."""

from __future__ import annotations

import dataclasses
import math
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from statsmodels.stats.power import TTestPower

from rtx import archive
from rtxlib import paths
from rtxlib.data.datasets import Generated
from rtxlib.data.prepare import prepare
from rtxlib.errors import InputError
from rtxlib.models import build
from rtxlib.models.presets import preset
from rtxlib.runs import store
from rtxlib.runs.spec import RunSpec, data_label
from rtxlib.runs.train import fresh_model, train_run
from rtxlib.runs.trained import open_model
from rtxlib.training.recipe import RECIPES, Recipe
from rtxlib.training.trainer import evaluation_steps
from rtxstudy import comparisons, profiles, studies, tables
from rtxstudy.claims import sentences
from rtxstudy.finished import Runs
from rtxstudy.names import short
from rtxstudy.profiles.full import FULL
from rtxstudy.questions.accuracy.accuracy_claims import RECURRENT, STANDARD
from rtxstudy.questions.data_and_length import longer_texts
from rtxstudy.questions.domains import domain_claims, further_data
from rtxstudy.statistics import mean_difference, smallest_shown, standard_error

SHORT = Generated(rows=240, depth=1, vocab_size=400, max_length=48)


# ---------------------------------------- what is run


@pytest.mark.parametrize(
    ("study", "arms"),
    [
        ("elsewhere", 2 * 4),
        ("unified", 2 * 2),
        ("cross_domain", 3 * 2),
        ("stars", 2),
        ("components", 10),
        ("plan_b", 4),
        ("longer_texts", 3),
        ("grid", 27),
        ("data_size", 3 * 2),
        ("text_length", 2 * 2),
    ],
)
def test_each_arm_of_a_study_has_as_many_seeds(study: str, arms: int) -> None:
    specs = studies.specs_of(study, FULL)
    assert len(set(specs)) == len(specs)
    of_arms = Counter((spec.name, data_label(spec.data)) for spec in specs)
    assert len(of_arms) == arms and set(of_arms.values()) == {5 if study == "components" else 3}
    for spec in specs:  # raises InputError where fields contradict each other
        spec.config(1000, 0, ["negative", "positive"])


@pytest.mark.parametrize("arms", [studies.component_arms, studies.plan_b_arms, studies.position_arms])
def test_an_arm_differs_from_the_first_in_what_it_names_alone(arms: Callable) -> None:
    first, *others = arms(FULL).values()
    for own in others:
        for base, spec in zip(first, own, strict=True):
            assert spec.overrides != base.overrides == {}
            assert dataclasses.replace(spec, overrides={}) == base


def test_gelu_of_as_many_parameters_has_as_many() -> None:
    (seed, *_), wide = (studies.component_arms(FULL)[name] for name in ("the study's own", "GELU, as many parameters"))

    def weights(overrides: dict) -> int:
        return sum(p.numel() for p in build("recurrent-1x2x64", **overrides).parameters() if p.ndim == 2)

    scale = preset(seed.model).hidden_size // 64
    overrides = {"feedforward": "gelu", "intermediate_size": wide[0].overrides["intermediate_size"] // scale}
    assert weights(overrides) == weights({})


def test_parameters_of_a_notebook_reach_the_new_experiments_and_leave_those_off_off() -> None:
    smoke = profiles.load("smoke", seeds=4, rows=100, recipe="demo")
    assert [task.seeds for task in (*smoke.elsewhere, *smoke.unified, smoke.longer)] == [4] * 5
    assert (smoke.component_seeds, smoke.plan_b_seeds) == (4, 4) and smoke.grid_data.rows == 100
    assert smoke.longer.data.rows == 100 and smoke.longer.data.max_length == 48
    assert {spec.recipe.name for spec in studies.elsewhere(smoke)} == {"demo"}
    demo = profiles.load("demo", seeds=4)
    assert demo.component_seeds == demo.plan_b_seeds == 0 and demo.longer is None


def test_data_of_other_lengths_and_official_tests_have_names_of_their_own() -> None:
    assert len({data_label(spec) for spec in FULL.data_sets}) == len(FULL.data_sets)
    assert data_label(FULL.longer.data) == "yelp_polarity official test at 64 tokens"


# ---------------------------------------- least steps


def test_least_steps_lengthen_a_training_and_change_no_key_where_they_are_not_set() -> None:
    recipe = Recipe("r", learning_rate=1e-3, epochs=2, batch_rows=8, evaluations_per_epoch=2, least_steps=35)
    assert recipe.steps(10) == 35 and recipe.steps(20) == 40
    assert evaluation_steps(recipe, 10, 35) >= {5, 10, 15, 20, 25, 30, 35}
    plain = dataclasses.replace(recipe, least_steps=None)
    assert plain.steps(10) == 20 and evaluation_steps(plain, 10, 20) == {5, 10, 15, 20}
    with pytest.raises(InputError, match="least_steps must be from 1 to 1,000,000"):
        dataclasses.replace(recipe, least_steps=0)


def test_parts_of_the_data_get_least_steps_and_the_whole_keeps_its_key() -> None:
    of_study = {spec.data.train_fraction: spec.recipe.least_steps for spec in studies.data_size(FULL)}
    assert of_study == {1.0: None, 0.5: FULL.least_steps, 0.1: FULL.least_steps}
    assert {spec.recipe.least_steps for spec in studies.text_length(FULL)} == {FULL.least_steps}


# ---------------------------------------- longer texts


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory):
    folder, before = tmp_path_factory.mktemp("home"), os.environ.get("RTX_HOME")
    os.environ["RTX_HOME"] = str(folder)
    yield folder
    os.environ.pop("RTX_HOME") if before is None else os.environ.update(RTX_HOME=before)


@pytest.fixture(scope="module")
def learned(home: Path) -> store.Run:
    recipe = dataclasses.replace(RECIPES["smoke"], least_steps=9, precision="fp32", keep="last")
    return train_run(RunSpec("recurrent-1x2x32", SHORT, recipe, 0, {"position": "learned"}), paths.runs_dir())


def test_a_training_goes_on_to_its_least_steps(learned: store.Run) -> None:
    assert archive.part(learned, "curves")["step"].max() == 9 and learned.metrics["epochs"] > 1


def test_rows_of_a_learned_table_beyond_the_training_texts_stay_as_they_were_drawn(learned: store.Run) -> None:
    """They only shrink, by the weight decay. The rows that training reaches do change."""
    spec, data = RunSpec.from_canonical(learned.spec), prepare(SHORT, paths.prepared_dir())
    before, after = (
        model.encoder.embeddings.position.weight for model in (fresh_model(spec, data), open_model(learned))
    )
    ratio = (after / before).detach()
    assert torch.allclose(ratio[SHORT.max_length :], ratio[-1, -1], rtol=1e-4) and 0.99 < ratio[-1, -1] < 1
    assert not torch.allclose(ratio[: SHORT.max_length], ratio[-1, -1], rtol=1e-2)


def test_a_learned_table_refuses_a_text_beyond_its_last_row() -> None:
    model = build("recurrent-1x2x32", vocab_size=50, position="learned", max_position_embeddings=16)
    with pytest.raises(InputError, match="A text of 17 tokens is longer than the 16 positions"):
        model(torch.ones(1, 17, dtype=torch.long))


def test_answers_at_the_training_length_are_those_of_the_run_and_short_texts_never_change(learned: store.Run) -> None:
    data = prepare(SHORT, paths.prepared_dir())
    table = longer_texts.answers(learned, data, lengths=(48, 96))
    at = table.pivot(index="row", columns="read", values="right")
    assert at[48].mean() == pytest.approx(learned.metrics["accuracy"])
    tokens = table.drop_duplicates("row").set_index("row")["tokens"]
    assert (at[48] == at[96])[tokens <= 48].all()
    assert 0 < (tokens > 48).sum() < len(tokens)
    runs = Runs((learned,), (RunSpec.from_canonical(learned.spec),), Path("unused"))
    means = longer_texts.by_length({"learned": runs}, table)
    assert means["texts"].unique() == (tokens > 48).sum()
    (row,) = longer_texts.differences({"learned": runs}, table).to_dict("records")
    assert row["difference"] == pytest.approx(means["mean"].iloc[1] - means["mean"].iloc[0])
    assert row["comparison"] == "learned, 96 tokens − 48 tokens" and row["n_items"] == (tokens > 48).sum()


# ---------------------------------------- beside counting words, and on one another's data


CPU = {"device": "CPU, 1 thread", "train_cpu_seconds": 1.0}


def made(accuracies: dict[str, list[float]], labels: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> dict[str, Runs]:
    """Runs of models with so many right answers, the first rows first."""
    tables, arms = {}, {}
    for name, values in accuracies.items():
        runs = []
        for seed, value in enumerate(values):
            right = np.arange(len(labels)) < round(value * len(labels))
            guessed = np.where(right, labels, 1 - labels)
            key = f"{name}{seed}"
            tables[key] = pd.DataFrame({"row": range(len(labels)), "label": labels, "prediction": guessed, "key": key})
            tables[key] = tables[key].assign(model=name, seed=seed, data="d")  # as the tables of real runs have them
            runs.append(store.Run(key, {}, {"model": name, "seed": seed, "data": "d", "accuracy": right.mean()} | CPU, None))
        arms[name] = Runs(tuple(runs), (None,) * len(runs), Path("unused"))
    monkeypatch.setattr(archive, "part", lambda run, name, results: tables[run.key])
    return arms


def test_the_baseline_that_validation_texts_choose_is_the_one_that_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = np.arange(100) % 2
    arms = made({"good": [0.9, 0.92, 0.94], "bad": [0.5, 0.52, 0.54]}, labels, monkeypatch)
    counting = pd.DataFrame(
        {
            "model": ["majority class", "nb-svm", "lucky on the test"],
            "validation_accuracy": [0.5, 0.8, 0.7],
            "accuracy": [0.5, 0.8, 0.85],
            "correct": [labels == 0, np.arange(100) < 80, np.arange(100) < 85],
        }
    )
    above = further_data.against_best_words(arms["good"], counting).iloc[0].to_dict()
    assert above["comparison"] == "good − nb-svm" and above["difference"] == pytest.approx(0.12)


def test_macro_f1_falls_where_one_class_is_preferred(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = np.r_[np.ones(63, int), np.zeros(37, int)]
    arms = made({"always positive": [0.63]}, labels, monkeypatch)
    counting = pd.DataFrame({"model": ["perfect"], "accuracy": [1.0], "correct": [np.ones(100, bool)]})
    table = further_data.scores(further_data.macro_f1(arms["always positive"], counting)).set_index("model")
    assert table.loc["perfect", "macro_f1"] == 1
    assert table.loc["always positive", "macro_f1"] == pytest.approx(2 * 0.63 / 1.63 / 2)
    assert list(table.index) == ["perfect", "always positive"]


def test_what_carries_over_is_paired_by_seed_for_each_pair_of_data() -> None:
    columns = ["model", "seed", "trained_on", "tested_on", "accuracy", "n_test"]
    made = {("a", "x"): [0.8, 0.82, 0.84], ("b", "x"): [0.7, 0.74, 0.75], ("a", "y"): [0.6] * 3, ("b", "y"): [0.6] * 3}
    rows = [(model, seed, "home", to, own, 600) for (model, to), each in made.items() for seed, own in enumerate(each)]
    scores = pd.DataFrame([*rows, ("a", 3, "home", "x", 0.1, 600)], columns=columns)  # b has no such seed
    table = comparisons.carried_over(scores, "a", "b").set_index("data")
    assert list(table.index) == ["x, after training on home", "y, after training on home"]
    assert table["difference"].tolist() == pytest.approx([0.09, 0]) and table["n_seeds"].tolist() == [3, 3]
    above, equal = sentences(domain_claims.carried_over(table.reset_index().assign(comparison="a − b")))
    assert "a is more accurate" in above and "not told apart" in equal


def test_a_further_task_says_which_encoder_is_better_and_which_is_above_counting_words() -> None:
    def said(*intervals: tuple[float, float]) -> list[str]:
        names = [f"{RECURRENT} − {STANDARD}", f"{RECURRENT} − nb-svm", f"{STANDARD} − nb-svm"]
        rows = [("sst2", name, (low + high) / 2, low, high) for name, (low, high) in zip(names, intervals, strict=True)]
        return sentences(domain_claims.pairs(pd.DataFrame(rows, columns=["data", "comparison", "difference", "low", "high"])))

    below, across, above = (-0.03, -0.01), (-0.01, 0.01), (0.01, 0.03)
    first, second = said(below, across, above)
    assert "the standard encoder is more accurate (+2.0" in first
    standard, loop = short(STANDARD), short(RECURRENT)
    assert second.startswith(f"{standard} is above the best classical baseline, and {loop} is not told apart")
    first, second = said(above, above, above)
    assert "the loop is more accurate (+2.0" in first and second.startswith("Both are above")
    assert said(across, below, above)[1] == f"{standard} is above the best classical baseline, and {loop} below."
    assert said(across, below, across)[1].startswith(f"{loop} is below")
    assert said(across, across, across)[1].startswith("Neither")


# ---------------------------------------- power


def drawn(
    rng: np.random.Generator, seeds: int, items: int, of_seeds: float, of_items: float, rest: float
) -> np.ndarray:
    """Differences (seeds, items) of mean zero, with these standard deviations of seeds, items and residual."""
    sizes = ((seeds, 1), (1, items), (seeds, items))
    return sum(rng.normal(0, sd, size) for sd, size in zip((of_seeds, of_items, rest), sizes, strict=True))


def test_power_needs_no_difference_but_only_its_spread() -> None:
    d = drawn(np.random.default_rng(0), 5, 200, 0.02, 0.3, 0.3)
    assert smallest_shown(d + 0.2) == pytest.approx(smallest_shown(d))
    assert smallest_shown(3 * d) == pytest.approx(3 * smallest_shown(d))
    assert smallest_shown(d, power=0.9) > smallest_shown(d) and smallest_shown(np.zeros((3, 4))) == 0


@pytest.mark.parametrize("seeds", [2, 3, 5, 20])
def test_the_power_of_seeds_alone_is_that_of_the_t_test(seeds: int) -> None:
    by_seed = np.random.default_rng(seeds).normal(0, 1, (seeds, 1))
    d = np.broadcast_to(by_seed, (seeds, 50)) + np.random.default_rng(1).normal(0, 1e-6, (seeds, 50))
    error, freedom = standard_error(d)
    assert freedom == pytest.approx(seeds - 1, rel=1e-3)
    effect = TTestPower().solve_power(nobs=seeds, alpha=0.05, power=0.8)
    assert smallest_shown(d) / error == pytest.approx(effect * math.sqrt(seeds), rel=0.01)


@pytest.mark.parametrize(("seeds", "of_seeds"), [(5, 0.01), (3, 0.0), (1, 0.0)])
def test_simulated_experiments_show_the_smallest_difference_four_times_in_five(seeds: int, of_seeds: float) -> None:
    """The median estimate of many experiments is the true difference of many others."""
    rng, sizes = np.random.default_rng(0), (seeds, 400, of_seeds, 0.3, 0.3)
    true = np.median([smallest_shown(drawn(rng, *sizes)) for _ in range(60)])
    shown = np.mean([mean_difference(true + drawn(rng, *sizes)).low > 0 for _ in range(500)])
    assert 0.72 < shown < 0.88


def test_the_smallest_detectable_difference_stands_in_its_row_and_its_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    labels = np.arange(200) % 2
    arms = made({"a": [0.9, 0.85, 0.95], "b": [0.8, 0.82, 0.78]}, labels, monkeypatch)
    table = comparisons.against_first({"the base": arms["b"], "changed": arms["a"]})
    (row,) = table.to_dict("records")
    assert row["form"] == "changed" and row["comparison"] == "a − b" and row["smallest"] > 0
    shown = tables.comparisons(table.assign(study="s")).iloc[0]
    assert shown["smallest detectable (points)"] == f"{100 * row['smallest']:.1f}"
    before = tables.comparisons(table.assign(study="s").drop(columns="smallest")).iloc[0]
    assert before["smallest detectable (points)"] == "–"
