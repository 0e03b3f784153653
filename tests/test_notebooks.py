"""The study's own notebooks: whole through rtx and under plain papermill, and a page that opens without a network."""

from __future__ import annotations

import ast
import html
import json
import os
import re
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import papermill
import pytest
from in_process import rtx
from test_packaging import EXTRAS, NEEDED
from test_packaging import environment as installed

from rtxstudy import profiles, studies
from rtxstudy.report import notebooks

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
STEMS = list(notebooks.NOTEBOOKS)
OF_MINILM = {"leaving_early", "composed"}  # studies that begin with its weights, which a machine without the Hub lacks


def environment(home: Path, **more: str) -> dict[str, str]:
    return {**os.environ, "RTX_HOME": str(home), "OMP_NUM_THREADS": "1", **more}


@pytest.fixture(scope="module")
def report(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder in which the `rtx report --profile smoke` of an installed wheel has run, without a checkout."""
    folder = tmp_path_factory.mktemp("report")
    done = installed(folder, wheel, NEEDED + EXTRAS["study"])("report", "--profile", "smoke")
    assert done.returncode == 0, done.stderr[-3000:]
    return folder / "empty"


@pytest.mark.parametrize("stem", STEMS)
def test_notebook_is_committed_clean_and_defines_nothing(stem: str) -> None:
    book = nbformat.read(FOLDER / f"{stem}.ipynb", as_version=4)
    nbformat.validate(book)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert all(cell.execution_count is None and not cell.outputs for cell in code)
    assert sum("parameters" in cell.metadata.get("tags", []) for cell in code) == 1
    assert not any(
        line.startswith(("class ", "def ", "for epoch")) for cell in code for line in cell.source.splitlines()
    )
    assert all(len(line) <= 100 for cell in code for line in cell.source.splitlines())
    decides = (ast.If, ast.IfExp, ast.BoolOp)  # what a profile leaves out is an absent answer, and no case of a notebook
    for cell in code:
        assert not any(isinstance(node, decides) for node in ast.walk(ast.parse(cell.source))), cell.source
        assert len(cell.source.splitlines()) <= 12 or "parameters" in cell.metadata.get("tags", []), cell.source
        body = ast.parse(cell.source).body  # a cell shows the value of its last expression alone
        silent = [node for node in body[:-1] if re.match(r"study\.(say|show|tabulate|write)\(", ast.unparse(node))]
        assert not silent, cell.source
    opened = [ast.parse(cell.source) for cell in code[1:3]]  # the cells after the parameters
    imports = [node for tree in opened for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert 1 <= len(imports) <= 4
    (opening,) = (cell for cell in code if "Study.open(" in cell.source)
    assert len(opening.source.splitlines()) <= 10
    assert book.metadata.kernelspec.name == "python3"
    assert notebooks.read_parameters(FOLDER / f"{stem}.ipynb")


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_papermill_shows_every_parameter_of_a_notebook(path: Path) -> None:
    """What `papermill --help-notebook` lists is what is checked: names, types, defaults, and a sentence on each."""
    shown = papermill.inspect_notebook(str(path))
    checked = notebooks.read_parameters(path)
    assert [parameter.name for parameter in checked] == list(shown) and shown
    for parameter in checked:
        found = shown[parameter.name]
        assert found["inferred_type_name"] == parameter.annotation
        assert ast.literal_eval(found["default"]) == parameter.default
        assert found["help"] == parameter.description != ""


@pytest.mark.parametrize("stem", STEMS)
def test_a_paragraph_stands_before_each_figure(stem: str) -> None:
    cells = nbformat.read(FOLDER / f"{stem}.ipynb", as_version=4).cells
    for before, cell in pairwise(cells):
        if cell.cell_type == "code" and "study.show(" in cell.source:
            paragraph = [line for line in before.source.splitlines() if line and not line.startswith("#")]
            assert before.cell_type == "markdown" and len(" ".join(paragraph)) > 100, cell.source


@pytest.mark.parametrize("stem", STEMS)
def test_a_committed_execution_is_of_the_committed_notebook(stem: str) -> None:
    """What the committed report shows was computed by the code that is committed beside it."""
    executed = nbformat.read(FOLDER.parent / "reports/full/notebooks" / f"{stem}.ipynb", as_version=4)
    source = nbformat.read(FOLDER / f"{stem}.ipynb", as_version=4)
    injected = [cell.source for cell in executed.cells if "injected-parameters" not in cell.metadata.get("tags", [])]
    assert injected == [cell.source for cell in source.cells]
    assert executed.metadata.rtx["completed"] is True


def test_the_committed_notebooks_show_no_text_of_sst2(hub: str) -> None:
    """The cells of every table that they show, against every phrase of more than three words."""
    folder = FOLDER.parents[1] / "shared/hub/datasets/stanfordnlp/sst2"  # which the Hub of the tests serves
    phrases = pd.concat([pd.read_parquet(file)["sentence"] for file in folder.rglob("*.parquet")])
    texts = {" ".join(text.lower().split()) for text in phrases if len(text.split()) > 3}
    assert len(texts) > 10_000
    for stem in STEMS:
        book = nbformat.read(FOLDER.parent / "reports/full/notebooks" / f"{stem}.ipynb", as_version=4)
        pages = [output.get("data", {}).get("text/html", "") for cell in book.cells for output in cell.get("outputs", [])]
        cells = [html.unescape(cell) for page in pages for cell in re.findall(r"<td[^>]*>(.*?)</td>", page, re.DOTALL)]
        assert not {" ".join(cell.lower().split()) for cell in cells} & texts, stem


def test_the_doctor_of_the_installed_wheel_finds_the_study(report: Path) -> None:
    done = subprocess.run([report.parent / "venv/bin/rtx", "doctor"], cwd=report, capture_output=True, text=True)
    assert done.returncode == 0 and "matplotlib" in done.stdout and "not installed" not in done.stdout


def test_every_notebook_finished(report: Path) -> None:
    outcomes = json.loads((report / "reports/smoke/outcomes.json").read_text())
    assert {outcome["name"]: outcome["status"] for outcome in outcomes} == dict.fromkeys(STEMS, "done")


def test_the_report_is_made_where_it_was_asked_for(report: Path) -> None:
    assert sorted(file.stem for file in (report / "reports/smoke/notebooks").iterdir()) == STEMS
    assert (report / "reports/smoke/report.html").is_file()


def test_each_profile_makes_things_in_its_own_place(report: Path) -> None:
    assert {folder.name for folder in report.iterdir()} == {"data", "figures", "reports"}
    assert {folder.name for folder in (report / "data").iterdir()} == {"prepared", "pretrained", "results", "runs"}
    assert [folder.name for folder in (report / "data/results").iterdir()] == ["smoke"]
    for drawing in (report / "figures/smoke").glob("*.svg"):
        assert all(drawing.with_suffix(ending).stat().st_size > 0 for ending in (".pdf", ".png", ".csv"))


def test_every_notebook_left_its_figures_and_tables(report: Path) -> None:
    figures = {file.stem for file in (report / "figures/smoke").glob("*.svg")}
    drawn = {"01", "02", "03", "04", "05", "06", "07", "08", "09", "11", "99"}  # 12 draws nothing without MiniLM's weights
    assert {stem[:2] for stem in figures} - {"12"} == drawn
    assert {"04_bubble", "04_pareto_time", "03_gradient_by_iteration", "01_overlap", "07_spam"} <= figures
    assert {"03_forms_1", "11_accuracy_by_iteration", "11_early_exit", "11_stability", "11_composition", "11_worth"} <= figures
    results = report / "data/results/smoke"
    runs = pd.read_parquet(results / "runs.parquet")
    assert runs["key"].is_unique and runs["accuracy"].between(0, 1).all()
    studies = pd.read_parquet(results / "studies.parquet")
    timed = pd.read_parquet(results / "side_by_side.parquet")
    assert timed["model"].is_unique and (timed[["ms_one", "ms_in_batch"]] > 0).all(axis=None)
    for stem in ("04_bubble", "05_latency_against_flops", "99_summary"):  # every time of an encoder is of that one table
        drawn = pd.read_csv(report / f"figures/smoke/{stem}.csv").merge(timed, on="model", suffixes=("", "_of_table"))
        for cost in {"ms_one", "ms_in_batch"} & set(drawn):
            assert len(drawn) > 1 and np.allclose(drawn[cost], drawn[f"{cost}_of_table"]), stem
    assert set(studies["study"]) - OF_MINILM == {
        "baseline",
        "recipe_search",
        "published_protocol",
        "loop",
        "recurrent",
        "sensitivity",
        "width_vs_depth",
        "domains",
        "transfer",
        "spam",
        "pretraining",
        "where_depth_pays",
        "elsewhere",
        "plan_b",
        "longer_texts",
        "components",
        "unified",
        "cross_domain",
        "stars",
    }
    assert set(pd.read_parquet(results / "carried_over.parquet")["study"]) == {"transfer", "cross_domain"}
    assert "tf-idf + logistic regression" in set(pd.read_parquet(results / "classical.parquet")["model"])


def shown_by(notebook: Path) -> list[str]:
    """The Markdown that an executed notebook's cells show."""
    outputs = [output for cell in nbformat.read(notebook, as_version=4).cells for output in cell.get("outputs", [])]
    return [output.data["text/markdown"] for output in outputs if "text/markdown" in output.get("data", {})]


def test_pretrained_weights_are_used_where_they_can_be_had(hub: str, report: Path) -> None:
    runs = pd.read_parquet(report / "data/results/smoke/runs.parquet")
    assert {"all-MiniLM-L6-v2", "all-MiniLM-L6-v2 frozen", "bert-tiny"} <= set(runs["model"])
    figures = {file.stem for file in (report / "figures/smoke").glob("*.svg")}
    assert {"07_similarity", "12_leaving_early", "12_retrieval"} <= figures
    assert set(pd.read_parquet(report / "data/results/smoke/studies.parquet")["study"]) >= OF_MINILM
    small = pd.read_parquet(report / "data/results/smoke/small_vocabularies.parquet").iloc[0]
    # the rows that the loop's embedding matrix loses, 384 wide, are all that it loses
    assert small["loop_parameters"] - small["small_parameters"] == 384 * (30_522 - small["pieces"]) > 0
    notebook = next((report / "reports/smoke").rglob("07_pretrained_encoders.ipynb"))
    shown = shown_by(notebook)
    assert shown and not any("Skipped" in text for text in shown)
    assert "loaded 103 of 104 tensors" in notebook.read_text()


def test_without_weights_notebook_07_says_what_it_skipped_and_does_the_rest(report: Path, tmp_path: Path) -> None:
    shutil.copytree(report / "data" / "runs", tmp_path / "data" / "runs")
    done = subprocess.run(
        [sys.executable, "-m", "rtx", "notebook", "07", "--profile", "smoke"],
        env=environment(tmp_path, HF_ENDPOINT="http://127.0.0.1:9", HF_HOME=str(tmp_path / "empty")),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    shown = shown_by(next((tmp_path / "reports/smoke").rglob("07_pretrained_encoders.ipynb")))
    (skipped,) = (text for text in shown if "Skipped. It needs pretrained weights" in text)  # the reason is said once
    assert "could be read neither from the Hub nor from its cache" in skipped
    assert (tmp_path / "figures/smoke/07_spam.svg").is_file()
    assert not (tmp_path / "figures/smoke/07_similarity.svg").exists()


def test_a_variant_is_a_notebook_parameter() -> None:
    written = "{residual: gated, residual_scale: 0.3, loop_norm: true}"
    given = notebooks.check(FOLDER / "03_recurrent.ipynb", {"variant": written}, text=True)
    assert given["variant"] == {"residual": "gated", "residual_scale": 0.3, "loop_norm": True}
    names = {spec.name for spec in studies.recurrent(profiles.load("smoke", **given))}
    assert "recurrent-1x2x32 gated residual_scale=0.3 loop_norm=True" in names


def test_training_is_refused_in_an_empty_store(tmp_path: Path) -> None:
    done = rtx("notebook", "02", "--profile", "smoke", "--no-training", home=tmp_path)
    assert done.returncode == 1 and "training is switched off" in done.stderr


def test_dry_run_counts_the_runs_and_trains_none(report: Path, tmp_path: Path) -> None:
    for home, in_store in ((report, True), (tmp_path, False)):
        done = rtx("report", "--profile", "smoke", "--dry-run", home=home)
        assert done.returncode == 0, done.stderr
        assert ("\n0 runs to train" in done.stdout) == in_store and re.search("minutes? of training", done.stdout)
    assert not (tmp_path / "data/runs").exists() or not list((tmp_path / "data/runs").glob("*/complete.json"))


@pytest.mark.parametrize("stem", ["02_baseline", "99_report"])
def test_notebook_runs_under_plain_papermill(stem: str, report: Path, tmp_path: Path) -> None:
    """No rtx, another working directory: only papermill, the notebook, and a parameter. All notebooks open in the same way.

    The store holds no run, only the published tables: a published run counts as done.
    """
    shutil.copytree(report / "data" / "results", tmp_path / "data" / "results")
    out = tmp_path / "out.ipynb"
    command = (sys.executable, "-m", "papermill", str(FOLDER / f"{stem}.ipynb"), str(out))
    done = subprocess.run(
        [*command, "-p", "profile", "smoke", "-k", "python3"],
        env=environment(tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    outputs = [output for cell in nbformat.read(out, as_version=4).cells for output in cell.get("outputs", ())]
    assert outputs and not [output for output in outputs if output.output_type == "error"]
    assert not list((tmp_path / "data").glob("runs/*/complete.json"))
    both = [pd.read_parquet(home / "data/results/smoke/runs.parquet") for home in (report, tmp_path)]
    pd.testing.assert_frame_equal(*both)


def test_the_report_opens_offline_and_draws_everything(report: Path, browser) -> None:
    """No request leaves the page, nothing complains, every picture and chart is there, on a desk and on a phone."""
    page = report / "reports/smoke/report.html"
    assert page.stat().st_size < 1.1e7
    requests, complaints = [], []
    browser_page = browser.new_context(offline=True).new_page()
    browser_page.on("request", lambda request: requests.append(request.url))
    browser_page.on(
        "console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None
    )
    browser_page.on("pageerror", lambda error: complaints.append(str(error)))
    browser_page.goto(page.as_uri())
    browser_page.wait_for_selector("main img")
    assert [url for url in requests if not url.startswith(("file:", "data:", "blob:", "about:"))] == []
    assert complaints == []
    drawn = browser_page.evaluate(
        "Promise.all([...document.images].map(async image => {"
        " image.loading = 'eager'; await image.decode(); return image.naturalWidth > 0 && image.alt.length > 10 }))"
    )
    assert len(drawn) >= 20 and all(drawn)
    assert "where does depth pay, and what does a loop keep?" in browser_page.inner_text("main").lower()
    for width in (1280, 390):
        browser_page.set_viewport_size({"width": width, "height": 900})
        # charts are drawn anew a moment after the window changes
        too_wide = "document.documentElement.scrollWidth > innerWidth"
        for _ in range(50):
            if not browser_page.evaluate(too_wide):
                break
            browser_page.wait_for_timeout(200)
        assert not browser_page.evaluate(too_wide)
