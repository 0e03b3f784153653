"""The handle of a notebook: runs are chosen by what they are, and what is not published is said in a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from rtxlib.errors import InputError
from rtxlib.runs.spec import RunSpec
from rtxlib.runs.store import Run
from rtxstudy import Study, published
from rtxstudy.finished import Runs
from rtxstudy.studies import specs_of


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    """A study that redraws in a home without anything."""
    monkeypatch.setenv("RTX_HOME", str(tmp_path))
    monkeypatch.setenv("RTX_NO_TRAINING", "1")
    return Study.open("smoke")


def made(study: Study, *names: str) -> list[Run]:
    """A record of each run of these studies, as training would have left it."""
    specs = dict.fromkeys(spec for name in names for spec in specs_of(name, study.profile))
    trained = {"device": "CPU, 1 thread", "train_cpu_seconds": 1.0}

    def run(number: int, spec: RunSpec) -> Run:
        metrics = {"model": spec.name, "seed": spec.seed, "accuracy": 0.5 + number / 100}
        return Run(f"key{number}", spec.canonical(), metrics | trained, None)

    return [run(number, spec) for number, spec in enumerate(specs)]


def publish(study: Study, runs: list[Run]) -> None:
    published.write_rows(
        study.results,
        "runs",
        pd.DataFrame([{"key": run.key, "spec": json.dumps(run.spec), **run.metrics} for run in runs]),
        "key",
    )


def test_runs_are_chosen_by_their_metrics_and_by_their_specs(study: Study) -> None:
    publish(study, made(study, "baseline", "recurrent"))
    runs = study.run("baseline", "recurrent")
    model = study.profile.standard
    standard = runs.where(model=model)
    assert standard.model == model and [run.metrics["seed"] for run in standard] == [0, 1]
    assert [run.metrics["seed"] for run in runs.where(model=model, seed=range(1))] == [0]
    assert runs.of(standard.specs) == standard and len(runs.where(model="none such")) == 0
    assert len(standard + runs.where(model=study.profile.recurrent)) == 4
    assert runs.table["key"].tolist() == [run.key for run in runs]
    with pytest.raises(ValueError, match="too many values"):
        _ = runs.model


def test_a_run_of_two_studies_stands_once(study: Study) -> None:
    publish(study, made(study, "baseline"))
    assert len(study.run("baseline", "baseline")) == len(study.run("baseline")) == study.profile.seeds


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda study: study.run("baseline"), "2 of 2 runs are not in the tables"),
        (lambda study: study.run("basline"), r"no study 'basline'.*baseline"),
        (lambda study: study.source(), "no published description of embedded .* run notebook 01"),
        (lambda study: study.table("loop", "composition", lambda: pytest.fail("made")), "no published table 'composition'"),
        (lambda study: study.counting_words(), "no published score of counting words"),
        (lambda study: study.findings(), "has no sources and no runs"),
    ],
)
def test_what_is_not_published_is_said_in_a_sentence(study: Study, ask, says: str) -> None:
    with pytest.raises(InputError, match=says):
        ask(study)


def test_a_table_is_made_once_and_read_by_a_redraw(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RTX_NO_TRAINING")
    table = pd.DataFrame({"passes": [1, 2], "share": [0.25, 0.75]})
    pd.testing.assert_frame_equal(Study.open("smoke").table("loop", "shares", lambda: table), table)
    pd.testing.assert_frame_equal(study.table("loop", "shares", lambda: pytest.fail("made again")), table)
    assert study.table("loop", "newer", lambda: pytest.fail("made"), optional=True).empty  # earlier reports did not have it


def test_counts_of_an_earlier_version_are_drawn_again_and_computed_again(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    """A redraw shows what was published before there were further baselines; a study that may train adds them."""
    monkeypatch.delenv("RTX_NO_TRAINING")
    training = Study.open("smoke")
    new = training.counting_words()
    assert new["model"].tolist() == ["majority class", "tf-idf + logistic regression", "nb-svm", "bag of embeddings"]
    assert new["validation_accuracy"].between(0, 1).all()
    stored = published.read(study.results, "counting_words")
    prints = " ".join([training.data(training.profile.data).fingerprint] * 2)
    old = stored[:2].drop(columns=["validation_accuracy", "learning_rate", "epochs"]).assign(fingerprints=prints)
    old.to_parquet(study.results / "counting_words.parquet")
    assert study.counting_words()["accuracy"].tolist() == new["accuracy"][:2].tolist()
    again = training.counting_words()
    clock = ["seconds", "ms_per_text"]
    pd.testing.assert_frame_equal(again.drop(columns=clock), new.drop(columns=clock))  # with a seed, so the same again
    assert len(published.read(study.results, "counting_words")) == 4  # the old rows are replaced


def test_runs_are_a_sequence(study: Study) -> None:
    publish(study, made(study, "baseline"))
    runs = study.run("baseline")
    assert isinstance(runs[:1], Runs) and runs[0].metrics["seed"] == 0 and len(runs[:0]) == 0


def test_tables_of_other_parameters_are_named(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook that was run with parameters leaves its tables beside those of the others."""
    for number, parameters in (("02", {"variant": {}, "rows": None}), ("03", {"seeds": 1})):
        of_notebook = Study.open("smoke", **parameters)
        of_notebook._number = number
        of_notebook.close()
    said = published.mixed(study.results, study.given)
    assert "notebook 03: seeds = 1" in said and "notebook 02" not in said and "this notebook: the profile's own" in said
    assert "notebook 02: the profile's own" in published.mixed(study.results, {"seeds": 1})
    again = Study.open("smoke")
    again._number = "03"
    again.close()
    assert published.mixed(study.results, study.given) == ""
