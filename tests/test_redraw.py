"""What `make figures PROFILE=full` does in a fresh clone: every figure is drawn again, from the published tables alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pandas as pd

CHECKOUT = Path(__file__).resolve().parents[1]


def with_the_tables_alone(home: Path) -> dict[str, str]:
    """The environment of a command in a home of the published tables, without run store, data and Hub."""
    shutil.copytree(CHECKOUT / "data/results/full", home / "data/results/full")
    alone = {"RTX_HOME": str(home), "HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(home / "hub")}
    return os.environ | alone


def test_every_committed_figure_is_drawn_again_from_the_committed_tables(tmp_path: Path) -> None:
    """The profile describes exactly what is committed."""
    command = [sys.executable, "-m", "rtx", "report", "--profile", "full", "--no-training"]
    done = subprocess.run(command, env=with_the_tables_alone(tmp_path), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert not (tmp_path / "data/prepared").exists() and not (tmp_path / "data/runs").exists()
    committed = {file.stem: file for file in (CHECKOUT / "figures/full").glob("*.csv")}
    assert {file.stem for file in (tmp_path / "figures/full").glob("*.svg")} == set(committed)
    for stem, file in committed.items():
        again = pd.read_csv(tmp_path / "figures/full" / f"{stem}.csv")
        pd.testing.assert_frame_equal(again, pd.read_csv(file), rtol=1e-6, atol=1e-9, obj=stem)
    for table in (CHECKOUT / "data/results/full").glob("*.parquet"):
        again = pd.read_parquet(tmp_path / "data/results/full" / table.name)
        pd.testing.assert_frame_equal(again, pd.read_parquet(table), rtol=1e-6, atol=1e-9, obj=table.name)


def test_a_notebook_runs_under_plain_papermill(tmp_path: Path) -> None:
    """No rtx and another working directory: papermill, the notebook and a parameter. All notebooks open in the same way."""
    notebook, out = CHECKOUT / "notebooks/02_baseline.ipynb", tmp_path / "out.ipynb"
    command = [sys.executable, "-m", "papermill", notebook, out, "-p", "profile", "full", "-k", "python3"]
    environment = with_the_tables_alone(tmp_path) | {"RTX_NO_TRAINING": "1"}  # what `rtx` sets for --no-training
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    code = [cell for cell in nbformat.read(out, as_version=4).cells if cell.cell_type == "code"]
    assert code and all(cell.execution_count for cell in code)
    assert not any(output.output_type == "error" for cell in code for output in cell.outputs)
