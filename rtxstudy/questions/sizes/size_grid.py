"""What does each size of an encoder cost, how accurate is it, and what does a further pass buy?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from rtxstudy import comparisons, tables
from rtxstudy.figures.save import Drawing
from rtxstudy.finished import Runs
from rtxstudy.pareto import frontier
from rtxstudy.questions.accuracy import tradeoff_figures
from rtxstudy.questions.deployment import side_by_side
from rtxstudy.questions.sizes import size_claims, size_figures
from rtxstudy.statistics import summarise

if TYPE_CHECKING:
    from rtxstudy import Study

_SIZES = ["hidden_size", "num_hidden_layers", "recurrent_depth", "effective_depth"]
_COSTS = ["parameters", "non_embedding_parameters", "forward_flops"]


@dataclass(frozen=True)
class Grid:
    """Encoders of every width, number of layers and number of passes."""

    runs: Runs
    means: pd.DataFrame  # accuracy and costs of each cell, as statistics.summarise and side_by_side.with_times
    blocks: pd.DataFrame  # what further passes buy over all blocks, as comparisons.over_blocks
    trained_on: str  # in words


def size_grid(study: Study) -> Grid:
    """The cells of the grid; missing runs are trained."""
    runs = study.run("grid")
    means = side_by_side.with_times(study, summarise(runs.table, ["model", "family", *_SIZES], carry=_COSTS))
    trained_on = f"{runs[0].metrics['train_rows']:,} training texts of {runs[0].metrics['data']}"
    return Grid(runs, means, comparisons.over_blocks(runs), trained_on)


def draw_bubble(study: Study, grid: Grid) -> Drawing:
    title = study.title(size_claims.bubble_title, grid.means, otherwise="Accuracy, time and size")
    return Drawing(
        tradeoff_figures.bubble(grid.means, title=title),
        "04_bubble",
        grid.means,
        alt="Bubble plot: inference time across, mean test accuracy up, bubble area in proportion to the parameters.",
        caption="One text at a time; area is all parameters, embedding matrix included.",
    )


def draw_time(study: Study, grid: Grid) -> Drawing:
    return _frontier(study, grid, "ms_one", "time", "04_pareto_time", "inference time")


def draw_parameters(study: Study, grid: Grid) -> Drawing:
    where = "parameters without the embedding matrix"
    return _frontier(study, grid, "non_embedding_parameters", "parameters", "04_pareto_parameters", where)


def _frontier(study: Study, grid: Grid, cost: str, word: str, stem: str, where: str) -> Drawing:
    best = frontier(grid.means, minimise=[cost], maximise=["mean"])
    title = study.title(size_claims.frontier_title, grid.means, best, word, otherwise=f"Accuracy against {word}")
    return Drawing(
        tradeoff_figures.pareto_frontier(grid.means, cost=cost, title=title),
        stem,
        grid.means,
        alt=f"Accuracy against {where}; the models that no other beats on both counts form a staircase.",
    )


def draw_grid(study: Study, grid: Grid) -> Drawing:
    title = study.title(size_claims.grid_title, grid.means, otherwise="Accuracy over the grid")
    return Drawing(
        size_figures.grid_heat_map(grid.means, title),
        "04_grid",
        grid.means,
        alt="Mean accuracy over width and layers, a panel for each number of passes.",
    )


def readable_blocks(table: pd.DataFrame) -> pd.DataFrame:
    """A readable table of :func:`rtxstudy.comparisons.over_blocks`, in percentage points."""
    return pd.DataFrame(
        {
            "first − second": [f"{row.passes} passes − {row.against}" for row in table.itertuples()],
            "difference (points)": tables.differences(table),
            "blocks": table["blocks"],
            "seeds of a block": table.get("seeds", 1),
            "smallest detectable (points)": [f"{100 * value:.1f}" for value in table["smallest"]],
        }
    )
