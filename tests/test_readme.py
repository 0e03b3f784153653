"""The README and the pages of docs/ hold what they promise: commands, Python, links, and numbers of the committed tables."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pandas as pd
import pytest

from rtx.cli.commands import cli
from rtxlib.training.recipe import RECIPES
from rtxstudy import readme
from rtxstudy.figures.save import save
from rtxstudy.questions.anatomy import architecture_figures
from rtxstudy.readme import blocks, method_page

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EACH_PAGE = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


def code_spans(page: Path) -> list[str]:
    """What stands between single backquotes on a page, outside its blocks of code."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL))


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("page", readme.PAGES)
def test_the_generated_parts_of_a_page_are_those_of_the_committed_tables(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert text.count("<!-- begin: ") == len(readme.BLOCK.findall(text)) > 0
    assert readme.filled(text) == text


def test_every_generated_part_stands_on_one_page() -> None:
    found = [
        name for page in readme.PAGES for name, _ in readme.BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    ]
    assert sorted(name for name in found if not name.startswith(readme.CLAIMS)) == sorted(readme.BLOCKS)
    questions = {name.removeprefix(readme.CLAIMS).replace(" ", "_") for name in found if name.startswith(readme.CLAIMS)}
    published = set(pd.read_parquet(ROOT / "data/results/full/claims.parquet")["question"])
    assert questions <= published


def test_the_table_of_recipes_follows_the_recipes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A recipe that changes makes docs/method.md differ from what is generated, which the test of the generated parts finds."""
    page = (ROOT / "docs/method.md").read_text(encoding="utf-8")
    rows = {line.split("`")[1]: line for line in method_page.recipes().splitlines()[2:]}
    assert {"default", "small", "demo", "finetune", "pretrain"} <= set(rows) and all(row in page for row in rows.values())
    assert "| 0.0005 | cosine, 6 % warm-up | 128 | 1 |" in rows["default"] and "40,000 rows or more" in rows["default"]
    assert "| the last |" in rows["finetune"] and "2,000 to 10,000 rows" in rows["small"]
    for field, value in {"learning_rate": 7e-4, "schedule": "linear", "batch_rows": 64, "epochs": 2, "dropout": 0.3}.items():
        changed = dataclasses.replace(RECIPES["default"], **{field: value})
        monkeypatch.setitem(RECIPES, "default", changed)
        assert readme.filled(page) != page, field
        monkeypatch.undo()
    monkeypatch.setitem(RECIPES, "small", dataclasses.replace(RECIPES["small"], keep="last"))
    assert readme.filled(page) != page


def test_the_memory_of_a_comparison_is_that_of_the_benchmark() -> None:
    rows = json.loads((ROOT / "reports/benchmark_compare.json").read_text(encoding="utf-8"))["rows"]
    held = [row["peak_mb"] / 1000 for row in rows if row["tool"] == "ours"]
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert f"A comparison held {min(held):.0f} to {max(held):.1f} GB of memory in our measurements." in text


def test_the_drawing_is_the_one_its_code_draws(tmp_path: Path) -> None:
    save(architecture_figures.architecture(), "architecture", architecture_figures.STACKS, tmp_path, architecture_figures.ALT)
    for ending in ("svg", "csv"):
        drawn = (tmp_path / f"architecture.{ending}").read_bytes()
        assert drawn == (ROOT / "figures" / f"architecture.{ending}").read_bytes()


@pytest.mark.parametrize(
    ("table", "column", "value", "gone"),
    [
        ("depth_gains", "depth_p", 0.9, "Depth pays on"),
        ("depth_gains", "deep_words_low", 0.001, "**On Yelp** TF-IDF on whole reviews"),
        ("comparisons", "low", -0.001, "MiniLM is ahead on SST-2"),
    ],
)
def test_a_finding_that_the_tables_no_longer_support_is_not_printed(
    monkeypatch: pytest.MonkeyPatch, table: str, column: str, value: float, gone: str
) -> None:
    changed = dict(blocks.findings())
    changed[table] = changed[table].assign(**{column: value})
    assert gone in blocks.what_we_found().replace("\n ", "")
    monkeypatch.setattr(blocks, "findings", lambda: changed)
    assert gone not in blocks.what_we_found().replace("\n ", "")


def test_the_table_of_models_holds_means_over_the_seeds_of_the_committed_runs() -> None:
    runs = pd.read_parquet(ROOT / "data" / "results" / "full" / "runs.parquet").query("data == 'sst2'")
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in blocks.models_on_sst2().splitlines()[2:]]
    of_model = {line[0]: line[1] for line in lines}
    for model, name in (("standard-6x384", "Standard 6×384"), ("recurrent-3x2x256", "Recurrent 3×2×256")):
        own = runs[runs["model"] == model]["accuracy"]
        assert of_model[name] == f"{100 * own.mean():.1f} ± {100 * own.std():.1f}"


@EACH_PAGE
def test_every_file_that_a_page_points_to_is_there(page: Path) -> None:
    links = re.findall(r"\]\((?!http)([^)#]+)\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_page_of_the_docs_is_linked_from_the_readme() -> None:
    assert [page.name for page in PAGES[1:] if f"(docs/{page.name})" not in PAGES[0].read_text(encoding="utf-8")] == []


@EACH_PAGE
def test_every_command_of_a_page_is_understood(page: Path) -> None:
    """Each ``rtx …`` is parsed as it is written, up to the point where it would run."""
    for span in code_spans(page):
        words = shlex.split(span.replace("…", ""))
        if "-m" in words and "rtx" in words:
            words = words[words.index("rtx") :]  # torchrun … -m rtx train
        words = [word for word in words if not re.match(r"[A-Z_]+=", word)]
        if words[:1] != ["rtx"] or len(words) == 1:
            continue
        command, arguments = cli, words[1:]
        context = click.Context(cli, info_name="rtx")
        while isinstance(command, click.Group) and arguments and not arguments[0].isupper():
            name, *arguments = arguments
            command = command.get_command(context, name)
            assert command is not None, span
        if isinstance(command, click.Group):
            continue  # `rtx COMMAND --help`
        complete = len(arguments) > 0  # `rtx report` alone may name a command that wants arguments
        context = command.make_context(command.name, list(arguments), resilient_parsing=not complete or "…" in span)
        assert not context.args, span


@EACH_PAGE
def test_every_make_target_of_a_page_exists(page: Path) -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert (
        set(re.findall(r"(?:`|^)make (\w+)(?![\w=])", page.read_text(encoding="utf-8"), flags=re.MULTILINE)) <= targets
    )


@EACH_PAGE
def test_what_the_python_of_a_page_imports_exists(page: Path) -> None:
    for block in python_blocks(page):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom):
                module = importlib.import_module(node.module)
                for name in node.names:
                    assert hasattr(module, name.name) or importlib.import_module(f"{node.module}.{name.name}")


def test_the_python_of_the_readme_runs_as_printed(tmp_path: Path) -> None:
    (block,) = python_blocks(PAGES[0])
    assert len([line for line in block.splitlines() if line.strip()]) == 10
    done = subprocess.run([sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    printed = re.search(r"```python\n.*?```\n\n```\n(.*?)\n```", PAGES[0].read_text(encoding="utf-8"), flags=re.DOTALL)
    assert done.stdout.strip() == printed[1]  # the page shows what it prints
    assert (tmp_path / "my-encoder" / "config.json").is_file()


def test_the_drawing_shows_six_layers_twice_and_fits_its_page() -> None:
    figure = architecture_figures.architecture()
    figure.draw_without_rendering()
    words = [text.get_text() for text in figure.axes[0].texts]
    assert sum(word.startswith("layer ") for word in words) == 12 and words.count("layer 6") == 1
    assert {"6 layers of their own", "a block of 3 layers, passed twice", "pass 1", "pass 2"} <= set(words)
    width, height = figure.get_size_inches() * figure.dpi
    boxes = [text.get_window_extent().extents for text in (*figure.axes[0].texts, *figure.texts)]
    assert all(box[0] >= 0 and box[1] >= 0 and box[2] <= width and box[3] <= height for box in boxes)
