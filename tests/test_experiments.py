"""A run is trained once, counts only when it is complete, and is found again by its spec."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import shutil
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors import SafetensorError
from test_data_batching import padding_share

from rtx import archive, drift, use
from rtx.baselines import counting_words as classical
from rtx.executors import execute, local
from rtx.process import workers
from rtxlib import paths
from rtxlib.data import tokenization
from rtxlib.data.batching import batches
from rtxlib.data.datasets import Generated, Hub, Pooled, read_hub
from rtxlib.data.prepare import prepare
from rtxlib.errors import InputError
from rtxlib.models import EncoderForSequenceClassification, build
from rtxlib.models.pretrained import load_trained
from rtxlib.runs import store, train, trained
from rtxlib.runs.spec import RunSpec, data_label
from rtxlib.training.recipe import RECIPES
from rtxstudy import comparisons, profiles, published, studies, tables
from rtxstudy.finished import Runs

DATA = Generated(rows=240, depth=1, vocab_size=400)
SPEC = RunSpec("recurrent-1x2x32", DATA, RECIPES["smoke"], 0)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A root folder for the tests of this file, so that each run is trained once."""
    folder = tmp_path_factory.mktemp("home")
    before = os.environ.get("RTX_HOME")
    os.environ["RTX_HOME"] = str(folder)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield folder
    torch.set_num_threads(threads)
    os.environ.pop("RTX_HOME") if before is None else os.environ.update(RTX_HOME=before)


@pytest.fixture(scope="module")
def run(home):
    return train.train_run(SPEC, paths.runs_dir())


def test_the_key_follows_every_part_of_the_spec_and_nothing_else() -> None:
    key = SPEC.key("f")
    assert key == RunSpec(
        "recurrent-1x2x32", Generated(rows=240, depth=1, vocab_size=400), RECIPES["smoke"], 0
    ).key("f")
    others = [
        dataclasses.replace(SPEC, model="recurrent-1x3x32"),
        dataclasses.replace(SPEC, seed=1),
        dataclasses.replace(SPEC, overrides={"block_sharing": "unshared"}),
        dataclasses.replace(SPEC, recipe=dataclasses.replace(SPEC.recipe, learning_rate=1e-3)),
        dataclasses.replace(SPEC, data=dataclasses.replace(DATA, train_fraction=0.5)),
        dataclasses.replace(SPEC, threads=2),
    ]
    assert len({key, SPEC.key("g"), *(other.key("f") for other in others)}) == 8


def test_runs_trained_before_threads_were_part_of_the_spec_keep_their_keys() -> None:
    assert SPEC.key("f") == "ae2b328dcd7d7463"
    assert SPEC.canonical()["threads"] == 1
    with pytest.raises(InputError, match="at least one thread, not with 0"):
        dataclasses.replace(SPEC, threads=0)


def test_a_run_holds_all_that_is_promised(run) -> None:
    names = {path.name for path in run.path.iterdir()}
    assert {
        "spec.json",
        "metrics.json",
        "curves.parquet",
        "predictions.parquet",
        "model.safetensors",
        "config.json",
        "tokenizer.json",
        "README.md",
        "complete.json",
    } <= names
    assert not any(name.endswith((".bin", ".pt", ".pkl", ".tmp")) or "checkpoint" in name for name in names)
    predictions = pd.read_parquet(run.path / "predictions.parquet")
    probabilities = predictions.filter(like="p_").to_numpy()
    np.testing.assert_allclose(probabilities.sum(1), 1, atol=1e-5)
    assert (predictions["label"] == predictions["prediction"]).mean() == pytest.approx(run.metrics["accuracy"])
    assert "pipeline" in (run.path / "README.md").read_text() and "{" not in (run.path / "README.md").read_text()


def test_metrics_are_of_the_test_split_and_of_the_kept_weights(run) -> None:
    data = prepare(DATA, paths.prepared_dir())
    model = load_trained(run.path)
    rows = data.rows("test")
    right = 0
    for row in range(len(rows)):
        ids = torch.from_numpy(data.splits["test"].row(row).astype(np.int64))[None]
        right += int(model(ids).logits.argmax()) == rows["label"].iloc[row]
    assert right / len(rows) == pytest.approx(run.metrics["accuracy"])


def test_a_run_that_is_there_is_not_trained_again(run, monkeypatch) -> None:
    monkeypatch.setattr(train, "Trainer", lambda *args, **kwargs: pytest.fail("trained twice"))
    assert train.train_run(SPEC, paths.runs_dir()).metrics == run.metrics


def test_pipeline_and_auto_classes_open_a_run(run) -> None:
    from transformers import pipeline

    classify = pipeline("text-classification", str(run.path), top_k=None)
    answer = {row["label"]: row["score"] for row in classify("the film was not dull at all .")[0]}
    assert set(answer) == {"negative", "positive"}
    ours = use.predict(run, ["the film was not dull at all ."]).iloc[0]
    near = 1e-4 if run.metrics["dtype"] == "fp32" else 5e-3  # a pipeline computes in 32 bits
    assert answer["positive"] == pytest.approx(float(ours["p_positive"]), abs=near)


def test_predict_cleans_as_training_did_and_keeps_the_order(run) -> None:
    texts = ["A FINE film", "a fine   film<br />", "the parcel came late and broken", "x"]
    table = use.predict(run, texts)
    assert table["text"].tolist() == texts
    assert table["p_positive"].iloc[0] == pytest.approx(table["p_positive"].iloc[1], rel=1e-4)


def test_evaluate_scores_by_label_name_and_refuses_a_stranger(run) -> None:
    data = prepare(DATA, paths.prepared_dir()).rows("test")
    scores = use.evaluate(run, data["text"].tolist(), data["label_name"].tolist())
    assert scores["accuracy"] == pytest.approx(run.metrics["accuracy"]) and scores["n"] == len(data)
    with pytest.raises(InputError, match="'meh'"):
        use.evaluate(run, ["a film"], ["meh"])


def test_texts_that_drift_from_the_prepared_data_of_a_run_are_told(run) -> None:
    data = prepare(DATA, paths.prepared_dir()).rows("test")
    texts, labels = data["text"].tolist() * 3, data["label_name"].tolist() * 3  # of fewer nothing is said
    assert len(texts) >= drift.FEWEST and use.evaluate(run, texts, labels)["drift"]["drifted"] is False
    changed = use.evaluate(run, [f"{text} {text}" for text in texts], labels)["drift"]
    assert changed["length"]["shifted"] and changed["length"]["now"] == 2 * changed["length"]["before"]
    assert "they are longer" in drift.sentence(changed)


def test_numbers_that_drifted_little_are_written_with_the_digits_that_tell_them_apart() -> None:
    one = {"statistic": 0.3, "shifted": True}
    length, unknown = {"now": 12.5, "before": 12.0} | one, {"now": 0.004, "before": 0.002} | one
    certainty = {"now": 0.994, "before": 0.99} | one
    told = drift.sentence({"drifted": True, "length": length, "unknown": unknown, "certainty": certainty})
    assert "longer (median 12.5 words, before 12.0)" in told and "(0.4%, before 0.2%)" in told
    assert "(largest probability 0.994 on average, before 0.990)" in told


def test_a_half_written_run_does_not_count_and_is_made_whole(home, tmp_path) -> None:
    runs = tmp_path / "runs"
    key = SPEC.key(prepare(DATA, paths.prepared_dir()).fingerprint)
    (runs / key).mkdir(parents=True)
    (runs / key / "metrics.json").write_text("{}")
    assert store.load(runs, key) is None and archive.every(runs) == []
    with pytest.raises(InputError, match="so it is no run"):
        archive.find(runs, str(runs / key))
    lines: list[str] = []
    assert train.train_run(SPEC, runs, lines.append).metrics["accuracy"] >= 0
    assert [run.key for run in archive.every(runs)] == [key]
    assert (runs / f"{key}.incomplete-1" / "metrics.json").read_text() == "{}"  # nothing is lost
    assert f"{runs / key} has no complete.json" in lines[0]


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)"),
    ],
    ids=["system", "safetensors"],
)
def test_a_full_disk_is_one_sentence_and_the_next_try_goes_on(home, tmp_path, monkeypatch, error: Exception) -> None:
    runs = tmp_path / "runs"

    def full(*args, **kwargs):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(EncoderForSequenceClassification, "save_pretrained", full)
        with pytest.raises(InputError, match="disk is full"):
            train.train_run(SPEC, runs)
    assert archive.every(runs) == []
    assert train.train_run(SPEC, runs).path.is_dir()


def test_a_run_killed_a_moment_before_it_counts_is_not_listed(run, tmp_path) -> None:
    folder = store.partial(tmp_path, run.key)
    shutil.copytree(run.path, folder)
    assert (folder / store.MARK).is_file() and archive.every(tmp_path) == []


def test_those_who_write_one_file_at_once_do_not_meet(tmp_path) -> None:
    file = tmp_path / "metrics.json"
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: store.write_json(file, {"number": number, "filler": [0] * 200}), range(400)))
    assert set(json.loads(file.read_text())) == {"number", "filler"} and list(tmp_path.iterdir()) == [file]


def test_unreadable_weights_are_told_in_a_sentence(run, tmp_path) -> None:
    copy = tmp_path / run.key
    shutil.copytree(run.path, copy)
    (copy / "model.safetensors").write_bytes(b"\0" * 100)
    (copy / store.MARK).write_text("{}")  # stored before runs had checksums
    with pytest.raises(InputError, match="cannot be read"):
        use.predict(archive.find(tmp_path, run.key), ["a film"])


def test_find_takes_the_start_of_a_key_and_names_what_is_near(run) -> None:
    runs = paths.runs_dir()
    assert archive.find(runs, run.key[:5]).key == run.key
    assert archive.find(runs, str(run.path)).key == run.key
    with pytest.raises(InputError, match="There is no run 'zzz'"):
        archive.find(runs, "zzz")


def test_data_are_prepared_once_for_all_runs_of_a_list(home, monkeypatch) -> None:
    prepared, specs = [], [SPEC, dataclasses.replace(SPEC, seed=1)]

    def counted(spec, cache):
        prepared.append(spec)
        return prepare(spec, cache)

    monkeypatch.setattr(local, "cores", lambda: 1)  # so that they are trained in this process
    for room in (execute, train):
        monkeypatch.setattr(room, "prepare", counted)
    data = {}
    execute.run(specs, report=lambda line: None, data=data)
    assert prepared == [DATA] == list(data)
    execute.run(specs, data=data)
    assert prepared == [DATA]


def test_training_refused_names_what_is_missing(home, monkeypatch) -> None:
    monkeypatch.setenv("RTX_NO_TRAINING", "1")
    with pytest.raises(execute.TrainingRefused, match=r"1 of 1 run is not .* seed 77"):
        execute.run([dataclasses.replace(SPEC, seed=77)])


@pytest.fixture
def pools(monkeypatch) -> list[int]:
    """The number of workers of each pool that trains; there are two cores, and no run is too short for a pool."""
    sizes: list[int] = []

    def noted(count: int, module: str) -> ProcessPoolExecutor:
        sizes.append(count)
        return workers(count, module)

    monkeypatch.setattr(local, "workers", noted)
    monkeypatch.setattr(local, "cores", lambda: 2)
    monkeypatch.setattr(local, "FEW_ROWS", 0)
    return sizes


def test_side_by_side_equals_one_after_another(run, tmp_path, monkeypatch, pools: list[int]) -> None:
    """The workers of the pool give the numbers of a run that was trained in this process on one thread."""
    monkeypatch.setenv("RTX_HOME", str(tmp_path))
    lines: list[str] = []
    both = execute.run([SPEC, dataclasses.replace(SPEC, seed=1)], report=lines.append)
    same = ("accuracy", "test_loss", "val_loss", "fingerprint")
    assert {name: both[0].metrics[name] for name in same} == {name: run.metrics[name] for name in same}
    assert any("[2/2]" in line for line in lines)
    assert pools == [2]


def test_a_failing_run_stops_the_pool_with_its_own_sentence(home, pools: list[int]) -> None:
    bad = dataclasses.replace(SPEC, recipe=dataclasses.replace(SPEC.recipe, learning_rate=1e30, clip_norm=1e30), seed=5)
    with pytest.raises(InputError, match="diverged"):
        execute.run([bad, dataclasses.replace(bad, seed=6)], report=lambda line: None)
    assert pools == [2]


def test_published_tables_stand_in_for_a_store_without_weights(run, tmp_path) -> None:
    results = tmp_path / "results"
    published.publish("one", [run], results)
    published.publish("two", [run, run], results, notes=pd.DataFrame({"n": [1]}))
    assert len(pd.read_parquet(results / "runs.parquet")) == 1
    assert sorted(pd.read_parquet(results / "studies.parquet")["study"]) == ["one", "two"]
    assert not pd.read_parquet(results / "predictions.parquet").duplicated(["key", "row"]).any()
    (record,) = published.runs(results)
    assert record.path is None and record.metrics["accuracy"] == run.metrics["accuracy"] and record.spec == run.spec
    pd.testing.assert_frame_equal(archive.part(record, "curves", results), archive.part(run, "curves"))
    with pytest.raises(InputError, match="not its weights"):
        trained.open_run(record)


def test_a_study_that_finds_nothing_leaves_none_of_its_earlier_rows(tmp_path) -> None:
    published.publish("one", [], tmp_path, gains=pd.DataFrame({"gain": [0.1]}))
    published.publish("two", [], tmp_path, gains=pd.DataFrame({"gain": [0.2]}))
    published.publish("one", [], tmp_path, gains=pd.DataFrame())
    assert published.read(tmp_path, "gains")["study"].tolist() == ["two"]


def test_transfer_is_computed_once_and_kept(run, tmp_path) -> None:
    other = dataclasses.replace(DATA, seed=9)
    data = prepare(other, paths.prepared_dir())
    first = use.transfer(run, other, data)
    assert len(first) == 1 and first["n_test"].iloc[0] == len(data.splits["test"])
    assert use.transfer(run, other, data).equals(first)
    published.publish("transfer", [run], tmp_path)
    gone = dataclasses.replace(run, path=None)
    assert use.transfer(gone, other, data, tmp_path)["accuracy"].tolist() == first["accuracy"].tolist()
    fewer = prepare(dataclasses.replace(other, rows=200), paths.prepared_dir())
    with pytest.raises(InputError, match=r"on these texts of .* are not here"):
        use.transfer(gone, other, fewer, tmp_path)


def arm(*runs: store.Run) -> Runs:
    """Runs as a notebook has them; nothing here looks at their specs or at published tables."""
    return Runs(runs, (SPEC,) * len(runs), Path("unused"))


def test_compare_is_the_difference_of_the_accuracies(run) -> None:
    row = comparisons.compare(arm(run), arm(run))
    assert row["difference"] == 0 and row["n_items"] == run.metrics["n_test"] and np.isnan(row["low_without"])
    with pytest.raises(InputError, match=r"Seeds \[0\] of .* cannot be paired with seeds \[1\]"):
        comparisons.compare(arm(run), arm(dataclasses.replace(run, metrics=run.metrics | {"seed": 1})))


def test_runs_that_were_tested_on_other_texts_are_not_compared(run, home) -> None:
    other = train.train_run(dataclasses.replace(SPEC, data=dataclasses.replace(DATA, seed=5)), paths.runs_dir())
    with pytest.raises(InputError, match="not tested on the same texts"):
        comparisons.compare(arm(run), arm(other))


def test_over_blocks_pairs_each_loop_with_its_block_and_with_as_many_layers(monkeypatch) -> None:
    """Accuracies made up so that each answer is known: a second pass costs two texts of ten, layers of their own four."""
    right = {(1, 1): 8, (1, 2): 6, (2, 1): 2, (2, 2): 0}  # (layers, passes) -> texts right of ten

    def made(layers: int, passes: int, width: int, seed: int) -> store.Run:
        sizes = {"num_hidden_layers": layers, "recurrent_depth": passes, "hidden_size": width, "seed": seed, "data": "sst2"}
        return store.Run(f"{layers}{passes}{width}{seed}", {}, sizes, None)

    def predictions(run: store.Run, name: str, results: object) -> pd.DataFrame:
        count = right[run.metrics["num_hidden_layers"], run.metrics["recurrent_depth"]]
        return pd.DataFrame({"row": range(10), "label": 1, "prediction": [1] * count + [0] * (10 - count)})

    monkeypatch.setattr(archive, "part", predictions)
    runs = [made(*sizes, width, seed) for sizes in right for width in (32, 64) for seed in (0, 1)]
    found = comparisons.over_blocks(arm(*runs)).set_index("against")
    assert found.loc["one pass", ["passes", "blocks"]].tolist() == [2, 4]
    assert found.loc["one pass", "difference"] == pytest.approx(-0.2)
    assert found.loc["layers of their own", "blocks"] == 2  # two layers passed twice have no encoder of four beside them
    assert found.loc["layers of their own", "difference"] == pytest.approx(0.4)
    assert comparisons.over_blocks(arm(*runs).where(recurrent_depth=1)).empty


def test_a_table_of_costs_says_on_what_each_was_trained(run) -> None:
    table = store.runs_table([run])
    mixed = pd.concat([table.assign(dtype="fp32"), table.assign(dtype="bf16", seed=1, key="other")])
    device = table["device"].iloc[0]
    assert tables.costs(mixed).loc["trained on"].item() == f"{device}, bf16; {device}, fp32"


def test_counting_words_stands_beside_every_seed_with_an_interval(run) -> None:
    data = prepare(SPEC.data, paths.prepared_dir())
    counted = classical.counting_words(data)
    assert [right.mean() for right in counted["correct"]] == pytest.approx(counted["accuracy"].tolist())
    row = comparisons.against_words(arm(run), counted[counted["model"] == classical.NAME]).squeeze()
    assert row["comparison"] == f"{run.metrics['model']} − {classical.NAME}" and row["n_seeds"] == 1
    assert row["difference"] == pytest.approx(run.metrics["accuracy"] - counted["accuracy"].iloc[1])
    judged = counted.assign(validation_accuracy=[0.1, 0.2, 0.3, 0.2], accuracy=[0.9, 0.5, 0.4, 0.9])
    assert classical.best(judged)["model"] == "nb-svm"  # by validation accuracy, not by test accuracy
    beside = comparisons.against_words(arm(run), judged)
    assert beside["comparison"].tolist() == [f"{run.metrics['model']} − {name}" for name in (classical.NAME, "nb-svm")]
    old = counted[:2].drop(columns="validation_accuracy")  # as version 1 published it
    assert classical.best(old)["model"] == classical.NAME and len(comparisons.against_words(arm(run), old)) == 1
    elsewhere = prepare(dataclasses.replace(SPEC.data, seed=7), paths.prepared_dir())
    away = classical.counting_words(data, tested_on=elsewhere)
    assert len(away["correct"].iloc[0]) == len(elsewhere.splits["test"])
    with pytest.raises(InputError, match="cannot be judged by"):
        classical.counting_words(data, tested_on=prepare(dataclasses.replace(SPEC.data, task="domain"), paths.prepared_dir()))


def test_a_summary_is_written_for_reading() -> None:
    of_seeds = {"model": "m", "mean": 0.99, "low": 0.97, "high": 1.01, "sd": np.nan, "n": 3}
    written = tables.means(pd.DataFrame([{**of_seeds, "parameters": 12345.0, "forward_flops": 2e8}])).iloc[0].to_dict()
    assert list(written.values()) == ["m", "99.0\u00a0%", "97.0 to 100.0", "–", "3", "12,345", "0.2000"]
    assert list(written)[:4] == ["model", "mean accuracy", "95 % interval (%)", "± over seeds (points)"]


@pytest.mark.parametrize("name", profiles.PROFILES)
def test_every_profile_names_models_that_exist_and_distinct_runs(name: str) -> None:
    profile = profiles.load(name)
    for study in (study for group in studies.STUDIES.values() for study in group.values()):
        specs = study(profile)
        assert len(set(specs)) == len(specs)
        for spec in specs:
            assert spec.pretrained or spec.config(1000, 0, ["a", "b"]).num_labels == 2
    if name != "full":
        assert {profile.standard, profile.recurrent}.isdisjoint({"standard-6x384", "recurrent-3x2x256"})
    assert profiles.PROFILES["demo"].seeds >= 3


@pytest.mark.parametrize("name", profiles.PROFILES)
def test_the_checkpoints_that_a_profile_names_exist(hub: str, name: str) -> None:
    specs = studies.finetuning(profiles.load(name))
    assert len({spec.key("x") for spec in specs}) == len(specs)
    assert all(spec.config(1000, 0, ["a", "b"]).num_labels == 2 for spec in specs)


def test_the_pooled_pairs_are_left_out_with_a_reason_where_their_file_is_not(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("RTX_HOME", str(tmp_path))
    full = profiles.load("full")
    without, why = profiles.within_reach(full)
    assert len(full.depth_tasks) - len(without.depth_tasks) == 1 and "inference_mix.parquet is not here" in why
    assert "inference_mix" not in {task.data.source for task in without.depth_tasks}
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "inference_mix.parquet").touch()
    assert profiles.within_reach(full) == (full, "") and profiles.within_reach(profiles.load("demo"))[1] == ""


def test_matched_arms_match() -> None:
    profile = profiles.load("full")
    recurrent, parameters, compute = (
        build(name)
        for name in (profile.recurrent, studies.matched(profile)["parameters"], studies.matched(profile)["compute"])
    )
    size = [sum(p.numel() for p in model.parameters()) for model in (recurrent, parameters)]
    assert size[0] == size[1]
    assert recurrent.config.effective_depth == compute.config.effective_depth
    assert recurrent.config.hidden_size == compute.config.hidden_size


def test_unknown_profiles_and_bad_sizes_are_refused() -> None:
    with pytest.raises(InputError, match="Did you mean 'demo'"):
        profiles.load("dmeo")
    with pytest.raises(InputError, match="seeds must be at least 1"):
        profiles.load("demo", seeds=0)


def test_labels_of_data_say_what_part_it_is() -> None:
    assert data_label(dataclasses.replace(DATA, train_fraction=0.1)) == "embedded 10%"
    assert data_label(Pooled(task="domain")) == "domains"


def test_a_run_on_the_hubs_data_records_where_they_came_from(hub: str, home: Path) -> None:
    """The whole path: load_dataset, the official split, BERT's word pieces, a model with BERT's vocabulary."""
    spec = RunSpec("recurrent-1x2x32", Hub("sst2", rows=600), RECIPES["smoke"], 0)
    data = prepare(spec.data, paths.prepared_dir())
    run = train.train_run(spec, paths.runs_dir())
    assert data.provenance["revision"] and "bert-base-uncased" in data.provenance["tokenizer"]
    assert run.metrics["n_test"] == 872 and run.metrics["embedding_parameters"] == 30_522 * 32


def test_padding_stays_under_five_percent_on_the_whole_of_sst2(hub: str) -> None:
    spec = Hub("sst2")
    tokenizer, _ = tokenization.choose(rows := read_hub("sst2", None, 0), spec, tokenization.fetch(tokenization.wanted(spec)))
    lengths = np.diff(tokenization.encode(rows.part("train")["text"], tokenizer, spec.max_length)[1])
    assert len(lengths) > 60_000
    assert padding_share(lengths, batches(lengths, None, RECIPES["default"].batch_rows, seed=0, epoch=0)) < 0.05


def test_profile_takes_a_variant_and_seeds_of_its_own() -> None:
    plain, changed = profiles.load("smoke"), profiles.load("smoke", variant={"residual": "gated"})
    assert {spec.name for spec in studies.recurrent(changed)} == {
        "recurrent-1x2x32 gated",
        "recurrent-1x2x32 gated unshared",
    }
    assert studies.variants(changed) == studies.variants(plain)
    full, usual = profiles.load("full", seeds=7), profiles.load("full")
    alone = (full.seeds, full.random_depth_seeds, full.grid_seeds, full.pretrained_seeds)
    assert {*alone, *(loop.seeds for loop in full.loops)} == {7}
    assert full.search.seeds == full.component_seeds == 7 and profiles.load("full") == usual
    assert profiles.load("demo", seeds=7).component_seeds == 0  # a study that is not asked stays so
    quick = profiles.load("full", epochs=0.5, rows=500)
    assert {loop.recipe.epochs for loop in quick.loops} == {0.5} and quick.finetune == usual.finetune
    assert {loop.data.rows for loop in quick.loops} == {500} and quick.small_recipe == usual.small_recipe
    assert {spec.recipe.name for spec in studies.baseline(profiles.load("full", recipe="demo"))} == {"demo"}
    for variant, says in (
        ({"residual": "gatd"}, "Did you mean 'gated'"),
        ({"block_sharing": "unshared"}, "leave block_sharing out"),
        ({"residul": "gated"}, "Did you mean 'residual'"),
        ({"depth_sampling": "uniform"}, "one block for every depth"),  # not for the unshared arm
    ):
        with pytest.raises(InputError, match=says):
            profiles.load("smoke", variant=variant)
    with pytest.raises(InputError, match="seeds must be at least 1"):
        profiles.load("smoke", seeds=0)


def test_every_form_of_the_loop_is_another_run_of_the_same_effort() -> None:
    for profile in map(profiles.load, profiles.PROFILES):
        for loop in profile.loops:
            specs = [spec for name in studies.forms(loop) for spec in studies.form(loop, name)]
            assert len({spec.key("x") for spec in specs}) == len(specs) == len(studies.forms(loop)) * loop.seeds
            assert {(spec.recipe, spec.data, spec.model) for spec in specs} == {(loop.recipe, loop.data, specs[0].model)}


def test_one_seed_is_enough_to_estimate_what_a_pass_is_worth() -> None:
    assert all(len(studies.shapes(loop)) >= 6 for name in profiles.PROFILES for loop in profiles.load(name).loops)


def test_what_is_drawn_together_was_trained_for_as_many_passes() -> None:
    for profile in map(profiles.load, profiles.PROFILES):
        passes = {spec.config(1000, 0, ["a", "b"]).recurrent_depth for spec in studies.random_depth(profile)}
        assert passes | {loop.passes for loop in profile.loops} == passes
        assert not {spec.name for spec in studies.random_depth(profile)} & {spec.name for spec in studies.variants(profile)}
