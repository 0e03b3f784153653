"""Figures of the data: lengths, labels, overlap between splits, and what each cleaning step dropped."""

from __future__ import annotations

import itertools
import textwrap

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from rtxstudy.figures.checks import require
from rtxstudy.figures.labels import bare_rows, side_label
from rtxstudy.figures.looks import GREY, INK, on, square
from rtxstudy.figures.notes import share
from rtxstudy.figures.scales import Percent, grid
from rtxstudy.figures.style import BODY, WIDTH, canvas, styled
from rtxstudy.figures.wrapping import extent
from rtxstudy.numbers import percent

BLUE, PALE, AMBER = "#3a8fc0", "#f7e4d8", "#d55e00"
_SEGMENTS = ("#a6cfe8", "#3a8fc0", "#17537a", "#0b2b40")  # of a bar in parts, light to dark
_LABEL_COLOURS = ("#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442", "#0072b2", "#d55e00", "#999999")


@styled
def length_histogram(
    table: pd.DataFrame, limit: int | None = None, by: str = "split", title: str = "How long are the texts?"
) -> Figure:
    """Distribution of lengths in tokens: one histogram for each value of ``by``, with its n and its median.

    ``table``: ``by``, ``tokens``, and ``rows`` if it holds counts rather than one row per text. ``limit``: the
    length at which texts are cut, drawn as a line with the share of texts that reach it. Raises ``InputError`` for a
    missing column or an empty table.
    """
    require(table, (by, "tokens"), "length_histogram")
    groups = list(dict.fromkeys(table[by]))
    longest = int(table["tokens"].max())
    step = max(1, round(longest / 64))
    edges = np.arange(0.5, longest + step + 0.5, step)
    steps = f", in steps of {step}" if step > 1 else ""
    figure, axes = canvas(
        title,
        f"Share of texts by number of tokens{steps}; [CLS] and [SEP] are counted.",
        0.35 + 0.95 * len(groups),
        rows=len(groups),
        sharex=True,
        sharey=True,
    )
    for ax, group in zip(axes[:, 0], groups, strict=True):
        part = table[table[by] == group].sort_values("tokens")
        tokens = part["tokens"].to_numpy()
        weight = part["rows"].to_numpy() if "rows" in part else np.ones(len(part))
        median = tokens[np.searchsorted(np.cumsum(weight), weight.sum() / 2)]
        heights, _ = np.histogram(tokens, edges, weights=weight / weight.sum())
        ax.stairs(heights, edges, fill=True, color=BLUE, linewidth=0)
        words = f"{group}: n = {int(weight.sum()):,}, median {median}"
        if limit is not None:
            ax.axvline(limit, color=AMBER, linewidth=1.2, linestyle=(0, (4, 2)))
            words += f", {share(weight[tokens >= limit].sum() / weight.sum())} at the limit of {limit}"
        ax.set_title(words, loc="left")
        ax.set_xlim(0, max(edges[-1], limit or 0) + step)
        ax.locator_params(axis="y", nbins=3)
        ax.yaxis.set_major_formatter(Percent())
        grid(ax, "y")
    axes[-1, 0].set_xlabel("length (tokens)")
    side_label(figure, "texts (%)")
    return figure


@styled
def label_balance(table: pd.DataFrame, by: str = "split", title: str = "Are the classes balanced?") -> Figure:
    """Share of each label within each value of ``by``, as one bar in parts. A part too small for its name has a key.

    ``table``: ``by``, ``label_name``, ``rows`` (counts). Raises ``InputError`` for a missing column or an empty
    table.
    """
    require(table, (by, "label_name", "rows"), "label_balance")
    groups, labels = list(dict.fromkeys(table[by])), list(dict.fromkeys(table["label_name"]))
    counts = table.pivot_table(index=by, columns="label_name", values="rows", aggfunc="sum", fill_value=0)
    counts = counts.reindex(index=groups, columns=labels, fill_value=0)
    shares = counts.div(counts.sum(axis=1), axis=0)
    room = WIDTH * 72 - 130  # width of a whole bar in points, roughly
    colours = dict(zip(labels, itertools.cycle(_LABEL_COLOURS), strict=False))

    def inside(label: str, part: float) -> str:
        choices = (f"{label} {percent(part)}", percent(part), percent(part, 0), "")
        return next(words for words in choices if extent(words, BODY)[0] < part * room - 4 or not words)

    unnamed = any(not inside(label, part).startswith(str(label)) for label in labels for part in shares[label])
    key = [square(colour, name) for name, colour in colours.items()]
    figure, axes = canvas(title, "", 0.45 + 0.42 * len(groups), key=key if unnamed else ())
    ax = axes[0, 0]
    start = np.zeros(len(groups))
    for label in labels:
        parts = shares[label].to_numpy()
        colour = colours[label]
        ax.barh(range(len(groups)), parts, left=start, color=colour, edgecolor="white", linewidth=1.5, height=0.72)
        for y, (left, part) in enumerate(zip(start, parts, strict=True)):
            ax.text(left + part / 2, y, inside(label, part), ha="center", va="center_baseline", color=on(colour))
        start = start + parts
    bare_rows(ax, [f"{group}\nn = {int(counts.loc[group].sum()):,}" for group in groups])
    ax.set(xlim=(0, 1), xlabel="share of rows (%)")
    ax.xaxis.set_major_formatter(Percent())
    return figure


@styled
def overlap(table: pd.DataFrame, title: str = "Do texts of one split recur in another?") -> Figure:
    """The checks of the audit as bars, grouped by check: the share of rows that each check finds, and their number.

    ``table``: ``check``, ``left``, ``right`` (empty for a check of one split), ``rows`` (found), ``share`` (0..1 of
    the left split's rows). A check called "inside, 1–3 words" is a part of the check "inside" and is drawn as a
    segment of its bar. Splits in which a check finds nothing share one line. Raises ``InputError`` for a missing
    column or an empty table.
    """
    require(table, ("check", "left", "right", "rows", "share"), "overlap")
    keys = set(zip(table["check"], table["left"], table["right"], strict=True))
    check_parts = table["check"].str.rpartition(", ")  # columns 0 and 2: the parent check, the part of it
    is_part = [key in keys for key in zip(check_parts[0], table["left"], table["right"], strict=True)]
    segments = table.assign(parent=check_parts[0], part=check_parts[2])[is_part]
    shades = dict(zip(segments["part"].unique(), _SEGMENTS, strict=False))
    lines: list[tuple[str, str, pd.Series | None]] = []  # check, words, what was found
    for check, rows in table[np.logical_not(is_part)].groupby("check", sort=False):
        hits = rows[rows["rows"] > 0]
        rest = [_pair(row) for _, row in rows[rows["rows"] == 0].iterrows()]
        lines += [(check, "", None), *((check, _pair(row), row) for _, row in hits.iterrows())]
        if rest:
            names = f"none: {', '.join(rest)}" if len(rest) <= 2 else f"none in the other {len(rest)}"
            lines.append((check, "none" if hits.empty else names, None))
    key = [square(colour, name) for name, colour in shades.items()]
    figure, axes = canvas(
        title,
        "Share of a split's rows that each check finds, and their number.",
        0.2 + 0.235 * len(lines),
        key=key,
    )
    ax, ticks = axes[0, 0], []
    for y, (check, words, row) in enumerate(lines):
        if row is None:
            ax.annotate(
                words or str(check),
                (0, y),
                (4, 0),
                textcoords="offset points",
                va="center_baseline",
                color=GREY if words else INK,
                weight="normal" if words else "bold",
            )
            continue
        ticks.append((y, words))
        ax.barh(y, row["share"], color=AMBER, height=0.62)
        mine = segments[(segments[["parent", "left", "right"]] == (check, row["left"], row["right"])).all(axis=1)]
        starts = mine["share"].cumsum() - mine["share"]
        ax.barh([y] * len(mine), mine["share"], left=starts, color=[shades[part] for part in mine["part"]], height=0.62)
        label = f"{share(row['share'])} ({int(row['rows']):,})"
        ax.annotate(label, (row["share"], y), (5, 0), textcoords="offset points", va="center_baseline")
    ax.axvline(0, color="#9a9a9a", linewidth=0.8)
    ax.set_yticks([y for y, _ in ticks], [words for _, words in ticks])
    ax.set(xlim=(0, max(float(table["share"].max()), 1e-4) * 1.4), ylim=(len(lines) - 0.4, -0.7), xticks=[])
    ax.tick_params(axis="y", length=0)
    ax.spines[["left", "bottom"]].set_visible(False)  # no scale: every bar has its number beside it
    return figure


def _pair(row: pd.Series) -> str:
    """The splits of a row of the audit: ``train in test``, or ``train`` for a check of one split."""
    left, right = row["left"], row["right"]
    return str(left) if pd.isna(right) or right in ("", left) else f"{left} in {right}"


@styled
def filter_funnel(table: pd.DataFrame, title: str = "What did each cleaning step take away?") -> Figure:
    """Rows left after each cleaning step, in order. The outlined part is what it dropped; a label says what it changed.

    ``table``: ``step``, ``rows_in``, ``rows_changed``, ``rows_out``. Raises ``InputError`` for a missing column or
    an empty table.
    """
    require(table, ("step", "rows_in", "rows_changed", "rows_out"), "filter_funnel")
    figure, axes = canvas(
        title,
        "Rows left after each step, from top to bottom; the outlined part is what it dropped.",
        0.2 + 0.34 * len(table),
    )
    ax = axes[0, 0]
    for y, row in enumerate(table.itertuples(index=False)):
        dropped = row.rows_in - row.rows_out
        ax.barh(y, row.rows_out, color=BLUE, height=0.66)
        if dropped > 0:
            ax.barh(y, dropped, left=row.rows_out, facecolor=PALE, edgecolor=AMBER, linewidth=0.9, height=0.66)
        words = [f"{int(row.rows_out):,}"]
        words += [f"{int(dropped):,} dropped"] if dropped > 0 else []
        words += [f"{int(row.rows_changed):,} changed"] if row.rows_changed > 0 else []
        ax.annotate(" · ".join(words), (row.rows_in, y), (5, 0), textcoords="offset points", va="center_baseline")
    bare_rows(ax, [textwrap.fill(str(step), 26) for step in table["step"]])
    ax.set(xlim=(0, float(table["rows_in"].max()) * 2.6), xticks=[])
    ax.spines["bottom"].set_visible(False)
    return figure
