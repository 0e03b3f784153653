"""How accurate the models are: accuracies with intervals, paired differences, confusion matrices."""

from __future__ import annotations

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from rtxlib.errors import InputError
from rtxstudy import names
from rtxstudy.figures.checks import one_row_each, require
from rtxstudy.figures.labels import bare_rows, beside
from rtxstudy.figures.looks import DASHED, GREY, INK, looks, on
from rtxstudy.figures.notes import interval_note, signed, with_interval
from rtxstudy.figures.scales import Percent, grid, within_shares
from rtxstudy.figures.style import BODY, canvas, styled
from rtxstudy.figures.wrapping import extent
from rtxstudy.numbers import percent, with_ends
from rtxstudy.statistics import FEWEST_SEEDS, summarise

_CLEAR = "#0072b2"  # of a difference whose interval excludes zero


@styled
def accuracy_intervals(
    runs: pd.DataFrame, value: str = "accuracy", title: str = "How accurate is each model, and how sure is that?"
) -> Figure:
    """One row per model, best first: every seed as a small point, their mean, and its 95 % t-interval over seeds.

    ``runs``: ``model``, ``seed``, ``value`` (0..1), one row per run; optionally ``data`` (one panel for each) and
    ``n_test``. The best model without a neural network ("tf-idf" or "majority" in its name) also draws a line down
    its panel. A majority class far below all others is named at the edge, so that the other marks keep their room. A
    model with fewer than three runs has no interval. A row without ``data`` belongs to the only data set of the table. Raises
    ``InputError`` for a missing column, an empty table, or a seed that occurs twice.
    """
    require(runs, ("model", "seed", value), "accuracy_intervals")
    if "data" in runs and runs["data"].isna().any():  # counting words has no data of its own
        if runs["data"].nunique() != 1:
            raise InputError(
                "The figure 'accuracy_intervals' has rows without 'data' beside several; say which is theirs."
            )
        runs = runs.assign(data=runs["data"].dropna().iloc[0])
    by = ["data", "model"] if "data" in runs else ["model"]
    panels = list(runs.groupby("data", sort=False)) if "data" in runs else [("", runs)]
    sizes = [part["model"].nunique() for _, part in panels]
    look = looks(runs["model"])
    uncertain = interval_note(summarise(runs, by, value)["n"])
    note = f"Large marks: mean; small points: each seed; {uncertain}" if "bars" in uncertain else uncertain.capitalize()
    if any(style.family == "classical" for style in look.values()):
        note += "; dashed: the best without a neural network"
    figure, axes = canvas(
        title,
        f"{note}.",
        0.3 + 0.3 * len(panels) + 0.4 * sum(sizes),
        rows=len(panels),
        height_ratios=[size + 0.6 for size in sizes],
    )
    for ax, (name, part) in zip(axes[:, 0], panels, strict=True):
        rows = summarise(part, ["model"], value).sort_values("mean", ascending=False, kind="stable")
        classical = np.array([look[model].family == "classical" for model in rows["model"]])
        edge = _edge(rows)
        best = rows.loc[classical, "mean"].max()  # NaN without any
        if best >= (edge or 0):
            ax.axvline(best, color=GREY, linewidth=1, linestyle=DASHED, zorder=1)
        for y, row in enumerate(rows.itertuples(index=False)):
            colour, marker = look[row.model].colour, look[row.model].marker
            words = with_interval(row.mean, row.low, row.high)
            drawn = edge is None or row.mean >= edge
            if drawn and row.n > 1:
                seeds = part.loc[part["model"] == row.model, value]
                small = {"markersize": 5.5, "alpha": 0.75, "markeredgewidth": 0}
                ax.plot(seeds, np.full(row.n, y + 0.27), ".", color=colour, **small)
                ax.plot([row.low, row.high], [y, y], color=colour, linewidth=2.2, solid_capstyle="butt")
            beside(ax, y, f"{words}, n = {row.n}")
            if drawn:
                few = row.n < FEWEST_SEEDS and look[row.model].family != "classical"
                edge_of = {"markeredgecolor": colour, "markerfacecolor": "white", "markeredgewidth": 1.5}
                filled = {"markeredgecolor": "white", "markeredgewidth": 0.8}
                ax.plot(row.mean, y, marker, color=colour, markersize=8, **(edge_of if few else filled))
            else:
                ax.annotate(
                    "◂ far below",
                    (0, y),
                    (2, 0),
                    xycoords=("axes fraction", "data"),
                    textcoords="offset points",
                    va="center_baseline",
                    color=GREY,
                )
        bare_rows(ax, rows["model"])
        ax.margins(x=0.08)
        within_shares(ax.xaxis)
        ax.locator_params(axis="x", nbins=5)
        ax.xaxis.set_major_formatter(Percent())
        grid(ax, "x")
        if name:
            tests = part["n_test"].dropna().unique() if "n_test" in part else []
            size = f", {int(tests[0]):,} test texts" if len(tests) == 1 else ""
            ax.set_title(f"{name}{size}", loc="left", weight="bold")
    axes[-1, 0].set_xlabel(f"{names.COLUMNS.get(value, value.replace('_', ' '))} on the test texts (%)")
    return figure


def _edge(rows: pd.DataFrame) -> float | None:
    """The least mean that is drawn as a mark; None if all are. A majority class below it would squeeze the others."""
    floor = rows["model"].str.contains("majority")
    ends = rows.loc[~floor, ["mean", "low", "high"]].to_numpy()
    if not floor.any() or not len(ends):
        return None
    edge = np.nanmin(ends) - max(np.nanmax(ends) - np.nanmin(ends), 0.05)
    return float(edge) if (rows.loc[floor, "mean"] < edge).any() else None


@styled
def paired_differences(table: pd.DataFrame, title: str = "Is the difference larger than the noise?") -> Figure:
    """Differences in accuracy with their intervals about a line at zero; filled where the interval excludes zero.

    ``table``: ``comparison`` ("A − B": positive means that A is the more accurate), ``difference``, ``low``, ``high``
    (0.01 = one percentage point), ``n_seeds``, ``n_items``, as
    :func:`rtxstudy.statistics.paired_difference` gives them. A row without ``low`` is drawn without an
    interval. Raises ``InputError`` for a missing column, an empty table, or a comparison that occurs twice.
    """
    columns = ("comparison", "difference", "low", "high", "n_seeds", "n_items")
    require(table, columns, "paired_differences")
    one_row_each(table, ("comparison",), "paired_differences")
    sizes = [
        f"{seeds}\xa0seed{'s' if seeds > 1 else ''}\xa0×\xa0{items:,}\xa0texts"
        for seeds, items in zip(table["n_seeds"], table["n_items"], strict=True)
    ]
    same = len(set(sizes)) == 1
    n_of_all = f" (n\xa0=\xa0{sizes[0]})" if same else ""
    few = ", from three seeds on" if (table["n_seeds"] < FEWEST_SEEDS).any() else ""
    figure, axes = canvas(
        title,
        f"95\N{NO-BREAK SPACE}% intervals over seeds and test texts{n_of_all}; filled where zero lies outside{few}.",
        0.45 + (0.56 if same else 0.66) * len(table),
    )
    ax = axes[0, 0]
    ax.axvline(0, color=INK, linewidth=1)
    words = {
        "textcoords": "offset points",
        "annotation_clip": False,
        "xycoords": ("axes fraction", "data"),
        "va": "bottom",
        "bbox": {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 0.6},
    }
    for y, (row, n) in enumerate(zip(table.itertuples(index=False), sizes, strict=True)):
        bounded = np.isfinite(row.low)
        clear = bounded and (row.low > 0 or row.high < 0) and row.n_seeds >= FEWEST_SEEDS
        colour = _CLEAR if clear else GREY
        numbers = with_ends(row.difference, row.low, row.high)
        if bounded:
            ax.plot([row.low, row.high], [y, y], color=colour, linewidth=2.2, solid_capstyle="butt")
        ax.plot(
            row.difference,
            y,
            "o",
            color=colour,
            markersize=8,
            markeredgewidth=1.6,
            markerfacecolor=colour if clear else "white",
        )
        ax.annotate(str(row.comparison), (0, y), (0, 9), **words)
        ax.annotate(numbers if same else f"{numbers}\n{n}", (1, y), (0, 9 if same else 6), ha="right", **words)
    values = table[["difference", "low", "high"]].to_numpy(dtype=float)
    reach = max(float(np.nanmax(np.abs(values))), 0.001) * 1.12  # zero in the middle, so that neither side looks larger
    ax.set(xlim=(-reach, reach), ylim=(len(table) - 0.6, -0.75), yticks=[])
    ax.set_xlabel("difference in accuracy (percentage points)")
    ax.locator_params(axis="x", nbins=7)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: signed(value, "0")))
    grid(ax, "x")
    ax.spines["left"].set_visible(False)
    return figure


@styled
def confusion(
    table: pd.DataFrame,
    title: str = "Which classes are mistaken for which?",
    note: str = "Share of each true class, and number of texts (all seeds together).",
) -> Figure:
    """One matrix per model: the share of each true class (rows) predicted as each class (columns), and the count.

    ``table``: ``truth``, ``prediction``, ``rows`` (counts over all seeds) and optionally ``model``, as
    :func:`rtxstudy.confusion.confusion_counts` gives them. Raises ``InputError`` for a missing column, an
    empty table, or a pair of classes that occurs twice.
    """
    require(table, ("truth", "prediction", "rows"), "confusion")
    one_row_each(table, [c for c in ("model", "truth", "prediction") if c in table], "confusion")
    panels = list(table.groupby("model", sort=False)) if "model" in table else [("", table)]
    names = list(dict.fromkeys([*table["truth"], *table["prediction"]]))
    columns = min(2, len(panels))
    lines = -(-len(panels) // columns)
    room = (400 if columns == 1 else 185) / len(names)  # width of a cell in points, roughly
    whole = [str(name) for name in names]
    broken = [name.replace(" ", "\n") for name in whole]
    upright = any(extent(name, BODY)[0] > room or name.count("\n") > 1 for name in broken)  # no room below a column
    words = whole if upright else broken
    longest = max(extent(word, BODY)[0] for word in words) / 72 if upright else 0.0  # inches below the matrix
    figure, axes = canvas(
        title,
        note,
        0.6 + lines * max(2.5 if columns == 2 else 3.4, 0.4 * len(names)) + longest,
        rows=lines,
        columns=columns,
        sharex=True,
        sharey=True,
    )
    for place, ax in enumerate(axes.flat):
        if place >= len(panels):
            ax.set_visible(False)
            continue
        model, part = panels[place]
        counts = part.pivot(index="truth", columns="prediction", values="rows").reindex(index=names, columns=names)
        counts = counts.fillna(0).to_numpy()
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        sns.heatmap(
            shares,
            ax=ax,
            vmin=0,
            vmax=1,
            cmap="Blues",
            cbar=False,
            linewidths=1.5,
            linecolor="white",
            xticklabels=words,
            yticklabels=words,
        )
        for (i, j), part_of_class in np.ndenumerate(shares):
            if not counts[i, j]:
                continue
            cell = f"{percent(part_of_class)}\n{int(counts[i, j]):,}"
            ax.text(
                j + 0.5,
                i + 0.5,
                cell,
                ha="center",
                va="center",
                color=on(colormaps["Blues"](part_of_class)[:3]),
                size=BODY if extent(cell, BODY)[0] < room - 4 else 8.0,
            )
        ax.set(
            xlabel="predicted" if place + columns >= len(panels) else "",
            ylabel="true class" if place % columns == 0 else "",
        )
        ax.tick_params(length=0, rotation=0, labelbottom=place + columns >= len(panels))
        ax.tick_params("x", rotation=90 if upright else 0)
        ax.set_title(str(model), loc="left", weight="bold")
    return figure
