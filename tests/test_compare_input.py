"""`rtx compare` before its race: what reaches the notebook, odd files and folders, and what is said when it ends early."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from in_process import rtx
from test_compare import told

from rtxstudy.commands import compare
from rtxstudy.compare.comparison import Comparison
from rtxstudy.report.outcomes import Outcome


@pytest.fixture
def raced(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The parameters that reach the notebook of each `rtx compare`; no notebook runs."""
    found: list[dict[str, Any]] = []

    def run(source: Path, parameters: dict[str, Any], folder: Path) -> Outcome:
        found.append(parameters)
        return Outcome("10_your_texts", "failed", 0.0, "cell 1: not run")

    monkeypatch.setattr(compare, "_run", run)
    return found


def write(folder: Path, table: pd.DataFrame, name: str = "mine.csv") -> Path:
    path = folder / name
    table.to_csv(path, index=False) if name.endswith("csv") else table.to_json(path, orient="records", lines=True)
    return path


# ---------------------------------------- what reaches the notebook


@pytest.mark.parametrize("name", ["null", "none", "label ", '"label"', 'te\nxt`"', "{seeds}", "=1"])
def test_a_column_of_any_name_is_compared(name: str, tmp_path: Path, raced: list) -> None:
    """The race opens the column that was named, and no other that looks like labels."""
    file = write(tmp_path, told(120).assign(**{name: ["x", "x", "y"] * 40}), "mine.jsonl")
    rtx("compare", file, "--text-column", "text", "--label-column", name, "--out", tmp_path / "o")
    assert Comparison.open(**raced[0]).texts.label_names == ["x", "y"]


def test_groups_of_a_column_called_none_stay_together(tmp_path: Path, raced: list) -> None:
    file = write(tmp_path, told(120).assign(none=[f"g{n % 16}" for n in range(120)]))
    rtx("compare", file, "--group-column", "none", "--out", tmp_path / "o")
    found = Comparison.open(**raced[0]).texts
    author = found.other["none"].to_numpy()
    assert pd.Series(found.table["split"].to_numpy()).groupby(author).nunique().max() == 1


def test_the_folder_that_was_named_is_written(tmp_path: Path, raced: list) -> None:
    for name in ("d ", 'd "x"', "'", "null"):
        rtx("compare", write(tmp_path, told(60)), "--out", tmp_path / name)
        assert raced[-1]["out"] == str(tmp_path / name) and (tmp_path / name / "comparison.json").is_file()
    done = rtx("compare", tmp_path / "half\udce9.csv")
    assert done.returncode == 2 and "is not UTF-8; rename it" in done.stderr


def test_a_folder_that_begins_with_a_dash_is_no_option(tmp_path: Path, raced: list, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rtx("compare", write(tmp_path, told(60)), "--out", "./-rf")
    assert Comparison.open(**raced[0]).shown == "./-rf"


# ---------------------------------------- folders


@pytest.mark.parametrize("content", ["{", "[1]", '{"path": "/x"}', '{"path": 5}', "[" * 100_000, "\xff"])
def test_a_damaged_record_of_a_comparison_is_named(content: str, tmp_path: Path, raced: list) -> None:
    (tmp_path / "o").mkdir()
    (tmp_path / "o" / "comparison.json").write_text(content, encoding="latin-1")
    done = rtx("compare", write(tmp_path, told(60)), "--out", tmp_path / "o")
    assert done.returncode == 2 and "comparison.json is damaged; delete it" in done.stderr and not raced
    assert (tmp_path / "o" / "comparison.json").read_text(encoding="latin-1") == content


@pytest.mark.parametrize("out", ["/proc/x", "/sys/x"])
def test_a_folder_that_cannot_be_made_is_named(out: str, tmp_path: Path, raced: list) -> None:
    done = rtx("compare", write(tmp_path, told(60)), "--out", out)
    assert done.returncode == 2 and f"{out} cannot be written" in done.stderr and not raced


# ---------------------------------------- an early end


def test_an_early_end_names_the_disk_or_what_there_is_to_see(tmp_path: Path) -> None:
    full = f"cell 6: OSError: [Errno 28] {os.strerror(errno.ENOSPC)}"
    page = tmp_path / "report.html"
    ends = {
        "is full; make room": Outcome("10", "failed", 1.0, full),
        f"died; {page} shows how far it came": Outcome("10", "failed", 1.0, "cell 3: the kernel died", tmp_path / "10.ipynb"),
        "died; give the same command again": Outcome("10", "failed", 1.0, "cell 3: the kernel died"),
    }
    for said, outcome in ends.items():
        assert said in str(compare._ended_early(outcome, page))
