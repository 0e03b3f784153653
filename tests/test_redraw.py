"""What `make figures PROFILE=full` does in a fresh clone: every figure is drawn again, from the published tables alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd

CHECKOUT = Path(__file__).resolve().parents[1]


def test_every_committed_figure_is_drawn_again_from_the_committed_tables(tmp_path: Path) -> None:
    """The home has no run store and no data, and the Hub is out of reach. The profile describes exactly what is committed."""
    results = tmp_path / "data/results/full"
    shutil.copytree(CHECKOUT / "data/results/full", results)
    alone = {"RTX_HOME": str(tmp_path), "HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path / "hub")}
    command = [sys.executable, "-m", "rtx", "report", "--profile", "full", "--no-training"]
    done = subprocess.run(command, env=os.environ | alone, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert not (tmp_path / "data/prepared").exists() and not (tmp_path / "data/runs").exists()
    committed = {file.stem: file for file in (CHECKOUT / "figures/full").glob("*.csv")}
    assert {file.stem for file in (tmp_path / "figures/full").glob("*.svg")} == set(committed)
    for stem, file in committed.items():
        again = pd.read_csv(tmp_path / "figures/full" / f"{stem}.csv")
        pd.testing.assert_frame_equal(again, pd.read_csv(file), rtol=1e-6, atol=1e-9, obj=stem)
    for table in (CHECKOUT / "data/results/full").glob("*.parquet"):
        assert (results / table.name).read_bytes() == table.read_bytes(), table.name
