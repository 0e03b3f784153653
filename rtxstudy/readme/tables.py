"""What the README and docs/findings.md read of the committed tables, and how it is written."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from rtxstudy.evaluation.statistics import mean_difference
from rtxstudy.studies import MADE
from rtxstudy.numbers import number, signed

ROOT = Path(__file__).resolve().parents[2]

STANDARD, RECURRENT, ONCE, DEEP = "standard-6x384", "recurrent-3x2x256", "standard-3x256", "standard-6x256"
WORDS, MINILM = "tf-idf + logistic regression", "all-MiniLM-L6-v2"
LOOP = f"{MINILM} 2×2 lower between edges"
MARGIN = 0.01  # of accuracy that a replacement may lose


@cache
def table(name: str) -> pd.DataFrame:
    """A committed table of the full profile."""
    return pd.read_parquet(ROOT / "data" / "results" / "full" / f"{name}.parquet")


def runs(model: str, data: str = "sst2") -> pd.DataFrame:
    """The runs of a model, one row per seed."""
    every = table("runs")
    return every[(every["model"] == model) & (every["data"] == data)].sort_values("seed")


def comparison(pair: str, data: str = "sst2") -> pd.Series:
    """The comparison ``"a − b"`` of two models; where several studies hold it, the one with the most seeds."""
    every = table("comparisons")
    found = every[(every["comparison"] == pair) & (every["data"] == data)]
    return found.sort_values("n_seeds", kind="stable").iloc[-1]


def words_counted(data: str = "sst2") -> pd.DataFrame:
    """The rows of TF-IDF with logistic regression, one per split."""
    every = table("classical")
    return every[(every["model"] == WORDS) & (every["data"] == data)]


def of_task(name: str, data: str, regime: str = MADE) -> pd.Series:
    """The row of a table of notebook 09 that is of one task and one regime."""
    every = table(name)
    return every[(every["data"] == data) & (every["regime"] == regime)].iloc[0]


def side_by_side(model: str, column: str) -> float:
    """A time of the table ``side_by_side``, whose encoders were timed in one session."""
    return float(table("side_by_side").set_index("model").loc[model, column])


def correct(model: str) -> np.ndarray:
    """1.0 where a run labels a test text of SST-2 rightly, else 0.0: (seeds, texts)."""
    every = table("predictions")
    own = every[(every["model"] == model) & (every["data"] == "sst2")]
    right = own.assign(right=(own["prediction"] == own["label"]).astype(float))
    return right.pivot(index="seed", columns="row", values="right").to_numpy()


def starts_without_a_seed() -> np.ndarray:
    """Where the interval of recurrent minus standard begins on SST-2 without each of the seeds in turn."""
    apart = correct(RECURRENT) - correct(STANDARD)
    return np.array([mean_difference(np.delete(apart, seed, axis=0)).low for seed in range(len(apart))])


def markdown(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def percent(share: float) -> str:
    return f"{number(100 * share, '.0f')} %"


def kept(row: Mapping[str, float]) -> str:
    """The share of a depth gain that a loop keeps, with its interval."""
    share, low, high = (percent(row[name]) for name in ("kept", "kept_low", "kept_high"))
    return f"{share} ({low} to {high})"


def interval(row: Mapping[str, float]) -> str:
    return f"{signed(row['low'])} to {signed(row['high'])}"


def accuracy(own: pd.DataFrame, decimals: int) -> str:
    """Mean ± standard deviation over seeds."""
    return f"{own['accuracy'].mean():.{decimals}f} ± {own['accuracy'].std():.{decimals}f}"


def wrapped(paragraph: str, indent: str = "") -> str:
    return textwrap.fill(paragraph, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def compared(rows: Iterable[pd.Series]) -> str:
    """Comparisons in points, one row each."""
    return markdown(
        ["first − second", "data", "difference in points", "95 % interval", "seeds", "test texts"],
        (
            [row["comparison"], row["data"], signed(row["difference"]), interval(row), row["n_seeds"], row["n_items"]]
            for row in rows
        ),
    )
