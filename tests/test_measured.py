"""What is measured of a run is measured once, kept beside it, and found again in the committed tables without its weights."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from rtx import archive
from rtxlib import paths
from rtxlib.data.datasets import Generated
from rtxlib.data.prepare import Prepared, prepare
from rtxlib.models import EarlyExit
from rtxlib.models.pretrained import load_trained
from rtxlib.runs import train, trained
from rtxlib.runs.spec import RunSpec
from rtxlib.runs.store import Run
from rtxlib.training.recipe import RECIPES
from rtxstudy import measured, published, run_tables
from rtxstudy.finished import Runs
from rtxstudy.questions.deployment import deployed, side_by_side
from rtxstudy.questions.early_exit import bounded_exits, exits
from rtxstudy.questions.early_exit.exits import exit_differences
from rtxstudy.questions.passes.worth import by_composition

RANDOM = RunSpec(
    "recurrent-1x3x32",
    Generated(rows=240, depth=1, vocab_size=400),
    dataclasses.replace(RECIPES["smoke"], precision="fp32"),  # in 16 bits a batch rounds differently from a single text
    0,
    overrides={"depth_sampling": "uniform"},
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A trained run in a root of its own, shared by the tests of this file."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RTX_HOME", str(tmp_path_factory.mktemp("home")))
        yield train.train_run(RANDOM, paths.runs_dir())
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def data(run) -> Prepared:
    return prepare(RANDOM.data, paths.prepared_dir())


def tables(run: Run, data: Prepared | None, results: Path | None = None) -> dict[str, pd.DataFrame]:
    """Every table that is measured of a run, by the name it is stored under."""
    ways = measured.early_exits(run, data, results)
    predictions = archive.part(run, "exit_predictions", results)
    of_bounds = measured.bounded_exits(run, data, results)
    return {
        "states": measured.states(run, data, results),
        "gradients": measured.gradients(run, data, results),
        "parameter_gradients": measured.parameter_gradients(run, data, results),
        "state_gradients": measured.state_gradients(run, data, results),
        "exits": ways,
        "exit_predictions": predictions,
        "deployed": deployed.deployed(run, data, results),
        "deployed_predictions": archive.part(run, "deployed_predictions", results),
        "deployed_times": deployed.times(run, data, results),
        "rounding": archive.part(run, "rounding", results),
        "bounded_exits": of_bounds,
        "bounded_exit_predictions": archive.part(run, "bounded_exit_predictions", results),
    }


def test_what_is_measured_of_a_run_is_measured_once_and_kept(run, data, monkeypatch) -> None:
    first = tables(run, data)
    monkeypatch.setattr(run_tables, "open_model", lambda *_: pytest.fail("measured twice"))
    for name, table in tables(run, data).items():
        pd.testing.assert_frame_equal(table, first[name])
        assert set(table["key"]) == {run.key} and name in published.TABLES
    states = first["states"]
    assert set(states["weights"]) == {"initial", "trained"} and states["iteration"].max() == measured.FURTHEST
    last = states[(states["weights"] == "trained") & (states["iteration"] == 3)]
    assert last["accuracy"].iloc[0] == pytest.approx(run.metrics["accuracy"])


def test_a_run_known_from_the_committed_tables_alone_needs_neither_weights_nor_data(run, data, tmp_path) -> None:
    first = tables(run, data)
    published.publish("loop", [run], tmp_path)
    (known,) = published.runs(tmp_path)
    assert known.path is None
    for name, table in tables(known, None, tmp_path).items():
        pd.testing.assert_frame_equal(table, first[name])


def test_encoders_are_timed_in_turns_without_their_weights(data) -> None:
    wide = dataclasses.replace(RANDOM, model="recurrent-1x6x128")
    table = side_by_side.times({"small": (RANDOM, data), "large": (wide, data)}, rounds=2).set_index("model")
    assert list(table.index) == ["small", "large"] and (table["n"] == len(data.splits["test"])).all()
    assert table.loc["large", "ms_in_batch"] > table.loc["small", "ms_in_batch"] > 0
    for column in ("ms_one", "ms_in_batch"):
        assert (table[f"{column}_low"] <= table[column]).all() and (table[column] <= table[f"{column}_high"]).all()


def test_a_deployed_encoder_keeps_its_labels_in_float32_and_a_quarter_of_its_bytes_in_eight_bits(run, data) -> None:
    runs = Runs((run,), (RANDOM,), Path("unused"))
    for measure in (deployed.deployed, deployed.times):
        measure(run, data)
    forms = deployed.compared({"loop": runs}).set_index("form")
    assert list(forms.index) == list(deployed.FORMS) and (forms[["ms_one", "ms_in_batch"]] > 0).all(axis=None)
    assert forms.loc["float32, ONNX", "difference"] == 0
    assert forms.loc[deployed.FLOAT, "accuracy"] == pytest.approx(run.metrics["accuracy"])
    assert forms.loc[deployed.FLOAT, "bytes"] == 4 * run.metrics["parameters"] == 2 * forms.loc["bf16, torch", "bytes"]
    assert forms.loc[deployed.EIGHT, "bytes"] < 0.6 * forms.loc[deployed.FLOAT, "bytes"]  # the nodes weigh as much as the weights
    rounded = deployed.rounding({"loop": runs})
    assert rounded["passes"].tolist() == [1, 2, 3] and (rounded["error"] > 0).all()


def test_early_exits_of_a_run_are_those_of_its_model(run, data) -> None:
    ways, predictions = measured.early_exits(run, data), archive.part(run, "exit_predictions")
    fixed = ways[ways["criterion"] == "fixed"]
    assert fixed["passes"].tolist() == [1, 2, 3] and (ways["ms_per_text"] > 0).all()
    assert fixed["accuracy"].iloc[-1] == pytest.approx(run.metrics["accuracy"])
    chosen = ways[ways["chosen"]]
    assert chosen["criterion"].tolist() == ["confidence", "agreement", "change"]
    model = load_trained(run.path)
    test = data.splits["test"]
    for row in chosen.itertuples():
        rule = EarlyExit(row.criterion, row.setting)
        for text in range(0, len(test), 7):
            left = model(torch.tensor(test.row(text)[None].astype("int64")), early_exit=rule)
            kept = predictions.set_index("row").loc[text]
            assert (int(left.passes), int(left.logits.argmax())) == (kept[f"passes_{row.criterion}"], kept[row.criterion])
        right = (predictions["label"] == predictions[row.criterion]).mean()
        assert right == pytest.approx(row.accuracy)
    saved = exit_differences(ways, predictions)
    for row in saved.itertuples():
        own = chosen[chosen["criterion"] == row.criterion].iloc[0]
        assert row.difference == pytest.approx(own["accuracy"] - fixed["accuracy"].iloc[-1])
        assert row.throughput == pytest.approx(fixed["ms_per_text"].iloc[-1] / own["ms_per_text"])
        as_good = fixed[fixed["accuracy"] >= own["accuracy"]]
        if as_good.empty:
            assert np.isnan([row.fixed_passes, row.fixed_throughput, row.fixed_difference]).all()
            continue
        fewest = as_good.iloc[0]
        assert row.fixed_passes == fewest["setting"]
        assert row.fixed_throughput == pytest.approx(fixed["ms_per_text"].iloc[-1] / fewest["ms_per_text"])
        assert row.fixed_difference == pytest.approx(fewest["accuracy"] - fixed["accuracy"].iloc[-1])


def test_exits_of_bounded_risk_are_those_of_the_model(run, data, monkeypatch) -> None:
    """With a bound that so few texts can meet, texts leave, and on paper as in the model."""
    monkeypatch.setattr(bounded_exits, "RISK", 0.2)
    ways, predictions = measured._measure_bounded(run, trained.open_model(run), data)
    left = ways[ways["bound"] == "controlled"]
    assert (left["passes"] < 3).any() and (ways["ms_per_text"] > 0).all()
    fixed = ways[ways["bound"] == ""]
    assert fixed["passes"].tolist() == [1, 2, 3] and fixed["risk"].iloc[-1] == 0
    assert fixed["accuracy"].iloc[-1] == pytest.approx(run.metrics["accuracy"])
    model, test = trained.open_model(run), data.splits["test"]
    assert predictions["label"].tolist() == test.labels.tolist()
    for row in ways.itertuples():
        way = exits.arguments(row.criterion, row.setting)
        for text in range(0, len(test), 5):
            label = int(model(torch.tensor(test.row(text)[None].astype("int64")), **way).logits.argmax())
            assert label == predictions[row.way].iloc[text]


def test_early_exits_that_were_broken_off_are_measured_again(run, data) -> None:
    """Only the table of ways counts as done, and it is written last."""
    measured.early_exits(run, data)
    (run.path / "exits.parquet").unlink()
    ways, predictions = measured.early_exits(run, data), archive.part(run, "exit_predictions")
    assert len(ways) and len(predictions) == len(data.splits["test"])


def test_accuracy_by_composition_is_that_of_the_texts_of_each_depth(run, data) -> None:
    table = by_composition([run], data)
    assert table["depth"].tolist() == [0, 1] and table["n"].sum() == len(data.splits["test"])
    assert (table["accuracy"] * table["n"]).sum() / table["n"].sum() == pytest.approx(run.metrics["accuracy"])
    assert table["n"].tolist() == data.rows("test")["depth"].value_counts().sort_index().tolist()
