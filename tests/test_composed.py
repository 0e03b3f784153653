"""Tasks composed of real phrases as a study: clusters of sentences, accuracy by steps and passes, and what is said of it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest

from rtx.baselines.counting_words import NAME
from rtxlib.data.datasets import data_spec
from rtxlib.data.prepare import prepare
from rtxlib.errors import InputError
from rtxlib.runs.spec import RunSpec
from rtxlib.runs.store import Run
from rtxlib.runs.train import train_run
from rtxlib.runs.trained import probabilities
from rtxlib.training.recipe import RECIPES
from rtxlib.training.recipe import recipe as named_recipe
from rtxstudy import measured, profiles, studies
from rtxstudy.finished import Runs
from rtxstudy.profiles import ComposedTask
from rtxstudy.questions.composed import composed_figures, composed_tables
from rtxstudy.questions.depth_gain.gains import depth_gain, kept
from rtxstudy.report.levels import levels
from rtxstudy.statistics import by_cluster, mean_difference


def clustered(rng: np.random.Generator, seeds: int, mean: float) -> tuple[np.ndarray, np.ndarray]:
    """Differences (seeds, items) and the cluster of each item. A cluster has an effect of its own, which grows with its size."""
    sizes = rng.geometric(0.25, size=150)
    clusters = np.repeat(np.arange(len(sizes)), sizes)
    effect = rng.normal(mean, 0.15, len(sizes)) + 0.02 * (sizes - 4)
    return effect[clusters] + rng.normal(0, 0.3, (seeds, len(clusters))), clusters


def test_intervals_by_cluster_cover_where_those_by_item_do_not() -> None:
    rng = np.random.default_rng(0)
    true = 0.05 + 0.02 * (np.square(sizes := rng.geometric(0.25, 10**6)).mean() / sizes.mean() - 4)  # weighted by size
    found = []
    for _ in range(300):
        d, clusters = clustered(rng, 3, 0.05)
        found.append([one.low <= true <= one.high for one in (mean_difference(by_cluster(d, clusters)), mean_difference(d))])
    by_clusters, by_items = np.mean(found, axis=0)
    assert 0.91 <= by_clusters <= 0.985 and by_items < 0.85, (by_clusters, by_items)


def test_clusters_keep_the_mean_of_each_seed_and_are_linear() -> None:
    rng = np.random.default_rng(1)
    d, clusters = clustered(rng, 3, 0.05)
    e = rng.normal(size=d.shape)
    np.testing.assert_allclose(by_cluster(d, clusters).mean(axis=1), d.mean(axis=1))
    np.testing.assert_allclose(by_cluster(d - 0.7 * e, clusters), by_cluster(d, clusters) - 0.7 * by_cluster(e, clusters))
    np.testing.assert_allclose(by_cluster(d, np.arange(d.shape[1])), d)
    with pytest.raises(InputError, match="at least 2 clusters"):
        by_cluster(d, clusters[:-1])
    with pytest.raises(InputError, match="at least 2 clusters"):
        by_cluster(d, np.zeros(d.shape[1]))


def arm(model: str, right: np.ndarray, folder, labels: np.ndarray) -> Runs:
    """Runs of one model, one per seed, with these answers: right (seeds, texts)."""
    runs = []
    for seed, own in enumerate(right):
        path = folder / f"{model}-{seed}"
        path.mkdir()
        guesses = pd.DataFrame({"row": np.arange(len(labels)), "label": labels, "prediction": np.where(own, labels, 1 - labels)})
        guesses.to_parquet(path / "predictions.parquet")
        metrics = {"model": model, "data": "p", "seed": seed, "non_embedding_parameters": 1, "parameters": 2}
        runs.append(Run(model + str(seed), {}, metrics, path))
    return Runs(tuple(runs), (None,) * len(runs), folder)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict, pd.DataFrame]:
    """The arms of a task in which depth pays from k = 1 on, with 4 texts of each of 300 sentences."""
    rng, folder = np.random.default_rng(2), tmp_path_factory.mktemp("runs")
    texts = pd.DataFrame({"data": "p", "depth": np.arange(1200) % 3, "sentence": np.arange(1200) // 4})
    hard = rng.random(300)[texts["sentence"]]
    chance = {"deep": (0.8, 0.8, 0.7), "shallow": (0.8, 0.6, 0.5), "loop": (0.8, 0.75, 0.5)}
    right = {
        name: rng.random((3, 1200)) * 0.5 + 0.5 * hard < np.array(by_step)[texts["depth"]] for name, by_step in chance.items()
    }
    labels = rng.integers(2, size=1200)
    return {"p": [arm(name, own, folder, labels) for name, own in right.items()]}, texts


@pytest.fixture(autouse=True)
def _unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables of made runs have no checksums."""
    monkeypatch.setattr("rtx.archive.part", lambda run, name, results=None: pd.read_parquet(run.path / f"{name}.parquet"))


def test_depth_pays_where_steps_need_it_and_the_words_say_so(tables) -> None:
    arms, texts = tables
    steps, gains = composed_tables.by_steps(arms, texts), composed_tables.gains_by_steps(arms, texts)
    assert steps["n_items"].eq(400).all() and len(steps) == 9 and steps["low"].lt(steps["mean"]).all()
    assert (gains["depth_low"] > 0).tolist() == [False, True, True]
    assert gains.loc[1, "kept_low"] > 0.3 and np.isnan(gains.loc[0, "kept"])


def test_the_row_of_a_task_has_clusters_of_sentences(tables) -> None:
    arms, texts = tables
    counting = pd.DataFrame({"model": [NAME], "accuracy": [0.5], "validation_accuracy": [0.5], "correct": [np.arange(1200) % 2]})
    (row,) = composed_tables.gains(arms, texts, {"p": counting}).to_dict("records")
    plain = depth_gain(*arms["p"])
    assert row["depth_gain"] == pytest.approx(plain["depth_gain"]) and row["kept"] == pytest.approx(plain["kept"])
    assert row["depth_high"] - row["depth_low"] != pytest.approx(plain["depth_high"] - plain["depth_low"], rel=1e-3)
    assert row["n_items"] == 1200
    assert row["deep_words_low"] > 0 and row["words"] == 0.5
    tables = composed_tables.gains({}, None, {}), composed_tables.by_steps({}, None), composed_tables.gains_by_steps({}, None)
    assert all(table.empty for table in tables)


def test_the_share_kept_is_covered_with_clusters() -> None:
    rng, covered = np.random.default_rng(3), []
    for _ in range(150):
        sentence = np.repeat(np.arange(400), 5)
        hard = rng.random(400)[sentence]
        right = [rng.random((3, 2000)) * 0.4 + 0.6 * hard < p for p in (0.60, 0.70, 0.68)]
        shallow, deep, loop = (np.asarray(part, float) for part in right)
        found = kept(by_cluster(loop - shallow, sentence), by_cluster(deep - shallow, sentence))
        covered.append(found.low <= 0.8 <= found.high)
    assert np.mean(covered) >= 0.9, np.mean(covered)


def test_two_judgements_agree_as_often_as_the_bound_says() -> None:
    rng = np.random.default_rng(4)
    right = rng.random((2, 200_000)) < 0.8
    assert composed_tables.same_bound(0.8) == pytest.approx((right[0] == right[1]).mean(), abs=0.005)
    assert composed_tables.same_bound(0.5) == 0.5 and composed_tables.same_bound(1.0) == 1.0


def further(better: bool) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    rows = [
        {"data": "p", "model": "loop", "trained_steps": 2, "trained_passes": 2, "seed": seed, "iteration": passes, "row": row}
        | {"depth": row % 4, "sentence": row // 8, "right": bool(rng.random() < (0.8 if better and passes >= row % 4 else 0.5))}
        for seed in range(3) for passes in (1, 2, 4) for row in range(800)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_more_passes_that_follow_more_steps_are_seen() -> None:
    table = composed_tables.by_passes(further(better=True))
    assert len(table) == 12 and set(table["n_items"]) == {200} and set(table["n_sentences"]) == {100}


def test_figures_draw_every_arm_and_every_number_of_passes(tables) -> None:
    arms, texts = tables
    steps = composed_tables.by_steps(arms, texts)
    figure = composed_figures.accuracy_by_steps(steps, pd.DataFrame([{"data": "p", "accuracy": 0.5}]))
    assert {text.get_text() for text in figure.axes[0].texts} >= {"deep", "shallow", "loop", "counting words"}
    with pytest.raises(InputError, match="no level of counting words"):
        composed_figures.accuracy_by_steps(steps, pd.DataFrame([{"data": "q", "accuracy": 0.5}]))
    table = composed_tables.by_passes(further(better=True))
    figure = composed_figures.accuracy_by_passes(table)
    assert {text.get_text() for text in figure.axes[0].texts} >= {"R = 1", "R = 4", "trained up to 2 steps"}
    many = pd.concat([table.assign(passes=passes) for passes in range(1, 10)]).drop_duplicates(["steps", "passes"])
    with pytest.raises(InputError, match="8 numbers of passes"):
        composed_figures.accuracy_by_passes(many)


POINTER = data_spec("composed", task="pointer", rows=240, depth=2, items=4)
TASK = ComposedTask(POINTER, RECIPES["smoke"], 32, 1, 2, (3,), ((1, 4),), random_passes=3, seeds=2)


def test_the_encoders_of_a_composed_task() -> None:
    profile = dataclasses.replace(profiles.load("full"), composed=(TASK,))
    trio, every = studies.composed_trio(profile, TASK), studies.composed(profile)
    assert [arm[0].model for arm in trio[1:]] == ["standard-2x32", "standard-1x32", "recurrent-1x2x32"]
    assert studies.composed_shapes(TASK) == [(1, 1), (2, 1), (3, 1), (1, 2), (1, 4)]
    assert len(every) == len(set(every)) == 2 * 6 and {spec for arm in trio[1:] for spec in arm} < set(every)
    assert [spec.name for spec in studies.composed_random_depth(TASK)] == ["recurrent-1x3x32 none uniform"] * 2
    assert studies.composed_random_depth(dataclasses.replace(TASK, random_passes=None)) == []
    made = studies.composed_trio(profile, dataclasses.replace(TASK, width=None, layers=3, recipe=named_recipe("finetune")))
    lower = {"layers": 3, "start": "lower"}
    assert [arm[0].conversion for arm in made[1:]] == [{}, lower | {"passes": 1}, lower | {"passes": 2}]
    for name in profiles.PROFILES:
        loaded = profiles.load(name, rows=300, seeds=1, epochs=2)
        for task in loaded.composed:  # the epochs are those of runs from random weights
            assert (task.data.rows, task.seeds) == (300, 1) and (task.recipe.epochs == 2) == (task.width is not None)


def test_a_loop_is_followed_on_longer_texts_with_the_answers_of_as_many_passes(hub: str, tmp_path, monkeypatch) -> None:
    monkeypatch.undo()  # the run is real
    monkeypatch.setenv("RTX_HOME", str(tmp_path))
    data = prepare(TASK.data, tmp_path / "prepared", progress=False)
    spec = RunSpec("recurrent-1x2x32", TASK.data, named_recipe("smoke", precision="fp32"), 0, {"residual": "none"})
    run = train_run(spec, tmp_path / "runs", data=data)
    table = measured.further_passes(run, data)
    assert table["depth"].max() == 8 and set(table["iteration"]) == set(range(1, measured.FURTHEST + 1))
    assert table.groupby("iteration")["row"].nunique().eq(24).all() and table["trained_steps"].eq(2).all()
    longer = prepare(dataclasses.replace(TASK.data, depth=8), tmp_path / "prepared", progress=False)
    for passes in (1, 5):
        labels = probabilities(run, longer.texts("test"), recurrent_depth=passes).argmax(axis=1)
        own = table[table["iteration"] == passes].sort_values("row")
        assert (own["right"].to_numpy() == (labels == longer.splits["test"].labels)).mean() > 0.95
    assert json.loads((run.path / "metrics.json").read_text())["recurrent_depth"] == 2
    assert set(longer.rows("test")["sentence"]).isdisjoint(data.rows("train")["sentence"])


def test_a_section_without_pointers_is_left_out_of_the_report_and_the_answer_stays() -> None:
    """Notebook 09 has the pointers in sections of their own, of which the report leaves out those that show "Skipped" alone."""
    book = nbformat.read(Path(__file__).resolve().parents[1] / "notebooks" / "09_where_depth_pays.ipynb", as_version=4)
    start = next(n for n, cell in enumerate(book.cells) if "## Does depth pay where the answer" in cell.source)
    end = next(n for n, cell in enumerate(book.cells) if "## What does a pretraining on" in cell.source)
    cells = book.cells[start:end]
    for cell in cells:
        shown = "*Skipped. This profile has no pointer task.*" if "study.show(composed_tasks.draw" in cell.source else None
        shown = "On **x** depth pays." if "composed_claims.same" in cell.source else shown
        if shown:
            cell.outputs = [nbformat.v4.new_output("display_data", {"text/markdown": shown})]
    left = "\n".join(cell.source for cell in levels(cells).chapter if cell.cell_type == "markdown")
    assert "Does depth pay where the answer" in left and "pointer" not in left.split("### Do more")[0]
