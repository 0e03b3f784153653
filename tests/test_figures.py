"""Every figure draws what its table says, overlaps nothing, refuses what it cannot draw, and is saved to the byte."""

from __future__ import annotations

import base64
import itertools
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text

from rtxlib.errors import InputError
from rtxstudy.confusion import confusion_counts
from rtxstudy.figures import labels, looks, notes, save, style, wrapping
from rtxstudy.pareto import frontier
from rtxstudy.questions.accuracy import accuracy_figures as accuracy
from rtxstudy.questions.accuracy import interactive_figures, tradeoff_figures, training_figures
from rtxstudy.questions.audit import audit_figures as data
from rtxstudy.questions.domains import domain_figures, format_figures
from rtxstudy.questions.gradients import gradient_figures
from rtxstudy.questions.sizes import size_figures
from rtxstudy.statistics import summarise

TWO = ["standard-6x384", "recurrent-3x2x256"]
TWELVE = [
    *TWO,
    "standard-2x64",
    "standard-4x64",
    "standard-12x128",
    "standard-3x256",
    "recurrent-1x2x64",
    "recurrent-1x6x64",
    "recurrent-2x3x128",
    "recurrent-3x2x256 unshared",
    "recurrent-6x2x128",
    "tf-idf + logistic regression",
]


def runs_of(models: list[str], seeds: int, where: tuple[str, ...] = ("embedded",)) -> pd.DataFrame:
    rng = np.random.default_rng(len(models) * 10 + seeds)
    rows = [
        (place, model, seed, 0.82 + 0.01 * rng.normal() + 0.004 * rng.normal(), 872)
        for place, model in itertools.product(where, models)
        for seed in range(1 if "tf-idf" in model else seeds)
    ]
    return pd.DataFrame(rows, columns=["data", "model", "seed", "accuracy", "n_test"])


def summary_of(models: list[str], seeds: int) -> pd.DataFrame:
    rng = np.random.default_rng(seeds)
    table = summarise(runs_of(models, seeds), ["model"])
    size = np.exp(rng.normal(15, 1, len(table)))
    times = np.exp(rng.normal(1, 0.7, len(table)))
    return table.assign(
        parameters=size.astype(int),
        non_embedding_parameters=(size / 3).astype(int),
        ms_one=times,
        ms_one_low=0.9 * times,
        ms_one_high=1.3 * times,
        ms_in_batch=times / 5,
        forward_flops=4e7 * times * np.exp(rng.normal(0, 0.4, len(table))),
    )


def curves_of(models: list[str], seeds: int) -> pd.DataFrame:
    rows = [
        (model, seed, epoch, 0.7 / epoch, 0.5 + 0.01 * i + 0.001 * seed, 0.8 - 0.001 * i + 0.01 * epoch)
        for i, model in enumerate(models)
        for seed in range(seeds)
        for epoch in range(1, 6 - (seed == 1))
    ]
    return pd.DataFrame(rows, columns=["model", "seed", "epoch", "train_loss", "val_loss", "val_accuracy"])


def confusion_of(models: list[str], names: list[str]) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    parts = [
        pd.DataFrame(rng.integers(0, len(names), (400, 2)), columns=["label", "prediction"]).assign(model=model)
        for model in models
    ]
    return confusion_counts(pd.concat(parts), names)


def grid_of(depths: tuple[int, ...], seeds: int) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    cells = [c for c in itertools.product((64, 128, 256), (1, 2, 3), depths) if c != (256, 3, depths[-1])]
    table = pd.DataFrame(cells, columns=["hidden_size", "num_hidden_layers", "recurrent_depth"])
    return table.assign(mean=rng.uniform(0.8, 0.85, len(table)), n=seeds, parameters=table["hidden_size"] * 20_011)


def gradients_of(models: list[str], seeds: int) -> pd.DataFrame:
    rows = [(m, s, i, 0.3 * i + 0.01 * s, i / 10) for m in models for s in range(seeds) for i in (1, 2, 3, 4)]
    return pd.DataFrame(rows, columns=["model", "seed", "iteration", "norm", "share"])


def at(table: pd.DataFrame, column: str, values: tuple) -> pd.DataFrame:
    return pd.concat([table.assign(**{column: value}) for value in values], ignore_index=True)


def crossed(models: list[str], seeds: int) -> pd.DataFrame:
    """A matrix of three data sets, by the names that they have in the study."""
    names = ("sst2", "yelp_polarity official test to 128 tokens", "amazon_polarity official test to 128 tokens")
    parts = [at(summary_of(models, seeds).assign(trained_on=one), "tested_on", names) for one in names]
    return pd.concat(parts, ignore_index=True)


LENGTHS = pd.DataFrame({"split": ["train"] * 40 + ["test"] * 40, "tokens": [*range(3, 43)] * 2, "rows": 7})
BALANCE = pd.DataFrame(
    [
        (s, n, k)
        for s in ("train", "validation", "test")
        for n, k in (("movies", 50), ("local business", 45), ("spam", 3))
    ],
    columns=["split", "label_name", "rows"],
)
AUDIT = pd.DataFrame(
    [
        ("duplicate texts", "train", "", 371, 0.0055),
        ("duplicate texts", "test", "", 0, 0.0),
        ("same text, different labels", "train", "", 5, 0.0001),
        ("same text", "test", "train", 2, 0.0023),
        ("same text", "validation", "train", 0, 0.0),
        ("inside", "train", "test", 1769, 0.0263),
        ("inside, 1–3 words", "train", "test", 1729, 0.0257),
        ("inside, 4–7 words", "train", "test", 40, 0.0006),
        ("leak", "train", "test", 40, 0.0006),
    ],
    columns=["check", "left", "right", "rows", "share"],
)
FUNNEL = pd.DataFrame(
    [("read", 67349, 0, 67349), ("HTML removed", 67349, 120, 67349), ("empty dropped", 67349, 0, 60010)],
    columns=["step", "rows_in", "rows_changed", "rows_out"],
)
DIFFERENCES = pd.DataFrame(
    [
        ("recurrent-3x2x256 − standard-6x384", -0.004, -0.015, 0.007, 5, 872),
        ("recurrent-3x2x256 − tf-idf", 0.012, 0.003, 0.021, 5, 872),
        ("one seed alone", 0.01, np.nan, np.nan, 1, 872),
    ],
    columns=["comparison", "difference", "low", "high", "n_seeds", "n_items"],
)


# what is drawn: a name, the figure function, its table
def control_of() -> pd.DataFrame:
    """What format alone and words alone tell of the domain."""
    inputs = {
        "nothing": ["one label for all"],
        "format": ["length", "signs", "length and signs", "length and signs of uniform texts"],
        "words": ["words and signs", "words without signs", "a few words without signs"],
    }
    rows = [{"of": of, "input": read} for of, every in inputs.items() for read in every]
    accuracy = np.linspace(0.34, 0.96, len(rows))
    return pd.DataFrame(rows).assign(accuracy=accuracy, low=accuracy - 0.04, high=accuracy + 0.04, n_test=558, words=10)


CASES = [
    ("length_histogram", data.length_histogram, LENGTHS),
    ("label_balance", data.label_balance, BALANCE),
    ("overlap", data.overlap, AUDIT),
    ("filter_funnel", data.filter_funnel, FUNNEL),
    ("training_curves", training_figures.training_curves, curves_of(TWO, 3)),
    ("training_curves, one seed, twelve", training_figures.training_curves, curves_of(TWELVE, 1)),
    ("accuracy_intervals", accuracy.accuracy_intervals, runs_of(TWELVE, 5)),
    ("accuracy_intervals, two data", accuracy.accuracy_intervals, runs_of(TWO, 3, ("sst2", "yelp"))),
    ("accuracy_intervals, one seed", accuracy.accuracy_intervals, runs_of(TWO, 1)),
    ("paired_differences", accuracy.paired_differences, DIFFERENCES),
    ("confusion", accuracy.confusion, confusion_of(TWO, ["movies", "local business", "online shopping"])),
    ("confusion, one", accuracy.confusion, confusion_of(TWO[:1], ["negative", "positive"])),
    ("confusion, ten labels", accuracy.confusion, confusion_of(TWO[:1], [f"{name} {n}" for name in "abcde" for n in (0, 1)])),
    ("confusion, ten long labels", accuracy.confusion, confusion_of(TWO[:1], [f"a long name of {n}" for n in range(10)])),
    ("bubble", tradeoff_figures.bubble, summary_of(TWO, 3)),
    ("bubble, twelve, one seed", tradeoff_figures.bubble, summary_of(TWELVE, 1)),
    ("pareto_frontier", tradeoff_figures.pareto_frontier, summary_of(TWELVE, 3)),
    ("accuracy_per_million", tradeoff_figures.accuracy_per_million, summary_of(TWELVE, 3)),
    ("latency_against_flops", tradeoff_figures.latency_against_flops, summary_of(TWELVE, 3)),
    ("data_size", size_figures.data_size, at(summary_of(TWO, 3), "train_rows", (600, 3000, 6000))),
    ("text_length", size_figures.text_length, at(summary_of(TWELVE, 1), "lengths", ("longest", "all", "shortest"))),
    ("longer_texts", size_figures.longer_texts, at(summary_of(TWO, 3), "read", (64, 128, 256))),
    ("grid_heat_map", size_figures.grid_heat_map, grid_of((1, 2, 4), 3)),
    ("gradient_by_pass", gradient_figures.gradient_by_pass, gradients_of(["recurrent-1x4x64", "x unshared"], 3)),
    ("gradient_by_pass, one seed", gradient_figures.gradient_by_pass, gradients_of(["recurrent-1x4x64"], 1)),
    ("format_control", format_figures.format_control, control_of()),
    ("transfer", domain_figures.transfer, at(summary_of(TWO, 3).assign(trained_on="sst2"), "tested_on", ("sst2", "yelp"))),
    ("cross_domain", domain_figures.cross_domain, crossed([*TWO, "tf-idf + logistic regression"], 3)),
]
IDS = [case[0] for case in CASES]


def texts_of(figure: Figure) -> list[tuple[Text, np.ndarray]]:
    """Every text that a figure shows, and its box in pixels (left, bottom, right, top)."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    beyond = set()  # ticks outside the limits hold a label too, which is never drawn
    for axis in itertools.chain.from_iterable((ax.xaxis, ax.yaxis) for ax in figure.axes):
        low, high = sorted(axis.get_view_interval())
        ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
        beyond |= {tick.label1 for tick in ticks if not low - 1e-9 <= tick.get_loc() <= high + 1e-9}
    return [
        (text, text.get_window_extent(canvas.get_renderer()).extents)
        for text in figure.findobj(Text)
        if text.get_text().strip() and text.get_visible() and text not in beyond
        if text.axes is None or text.axes.get_visible()
    ]


def overlapping(boxes: list[tuple[Text, np.ndarray]], slack: float = 1.5) -> list[tuple[str, str]]:
    """Pairs of texts whose boxes share more than ``slack`` pixels both ways."""
    return [
        (a.get_text(), b.get_text())
        for (a, one), (b, two) in itertools.combinations(boxes, 2)
        if (np.minimum(one[2:], two[2:]) - np.maximum(one[:2], two[:2]) > slack).all()
    ]


def on_its_page(draw: Callable[[], Figure]) -> tuple[Figure, list[Text]]:
    """The figure and its texts, once it is seen to ask a question, fit its page, and overlap no text."""
    before = dict(mpl.rcParams)
    figure = draw()
    assert dict(mpl.rcParams) == before, "a figure must not change the settings of others"
    assert figure.get_figwidth() in (6.4, style.WIDE) and figure.get_figheight() < 9
    texts = texts_of(figure)
    assert any(text.get_text().endswith("?") and text.get_weight() == "bold" for text, _ in texts)
    assert overlapping(texts) == []
    width, height = figure.get_size_inches() * figure.dpi
    for text, box in texts:
        assert box[0] >= -1 and box[1] >= -1 and box[2] <= width + 1 and box[3] <= height + 1, text.get_text()
    return figure, [text for text, _ in texts]


def refuses(draw: Callable[..., Figure], table: pd.DataFrame, needed: Sequence[str], **more: object) -> None:
    """See that a figure refuses an empty table, one that lacks a column it needs, and a row that stands twice."""
    with pytest.raises(InputError, match="empty"):
        draw(table.iloc[:0], **more)
    for column in needed:
        with pytest.raises(InputError, match=f"'{column}'"):
            draw(table.drop(columns=column), **more)
    with pytest.raises(InputError, match="twice"):
        draw(pd.concat([table, table.iloc[:1]]), **more)


@pytest.mark.parametrize(("name", "function", "table"), CASES, ids=IDS)
def test_a_figure_asks_a_question_fits_its_page_and_overlaps_no_text(name, function, table):
    figure, texts = on_its_page(lambda: function(table))
    assert figure.get_facecolor() == (1, 1, 1, 1)
    for text in texts:
        assert text.get_size() >= (8 if "\n" in text.get_text() else 10), (
            text.get_text()
        )  # cells of a matrix may shrink


NEEDED = {
    data.length_histogram: ("split", "tokens"),
    data.label_balance: ("split", "label_name", "rows"),
    data.overlap: ("check", "left", "right", "rows", "share"),
    data.filter_funnel: ("step", "rows_in", "rows_changed", "rows_out"),
    training_figures.training_curves: ("model", "seed", "epoch", "train_loss", "val_loss", "val_accuracy"),
    accuracy.accuracy_intervals: ("model", "seed", "accuracy"),
    accuracy.paired_differences: ("comparison", "difference", "low", "high", "n_seeds", "n_items"),
    accuracy.confusion: ("truth", "prediction", "rows"),
    tradeoff_figures.bubble: ("model", "mean", "low", "high", "n", "parameters", "ms_one"),
    tradeoff_figures.pareto_frontier: ("model", "mean", "low", "high", "n", "ms_one"),
    tradeoff_figures.accuracy_per_million: ("model", "mean", "low", "high", "n", "parameters", "non_embedding_parameters"),
    tradeoff_figures.latency_against_flops: ("model", "forward_flops", "ms_one", "ms_one_low", "ms_one_high"),
    size_figures.data_size: ("model", "train_rows", "mean", "low", "high", "n"),
    size_figures.text_length: ("model", "lengths", "mean", "low", "high", "n"),
    size_figures.longer_texts: ("model", "read", "mean", "low", "high", "n"),
    size_figures.grid_heat_map: ("hidden_size", "num_hidden_layers", "recurrent_depth", "mean", "n"),
    gradient_figures.gradient_by_pass: ("model", "seed", "iteration", "norm", "share"),
    domain_figures.transfer: ("model", "trained_on", "tested_on", "mean", "low", "high", "n"),
    domain_figures.cross_domain: ("model", "trained_on", "tested_on", "mean", "n"),
    format_figures.format_control: ("of", "input", "accuracy", "low", "high", "n_test", "words"),
}


@pytest.mark.parametrize("function", NEEDED, ids=lambda function: function.__name__)
def test_an_empty_table_and_a_missing_column_are_refused_by_name(function):
    table = next(table for _, drawn, table in CASES if drawn is function)
    with pytest.raises(InputError, match="empty"):
        function(table.iloc[:0])
    for column in NEEDED[function]:
        with pytest.raises(InputError, match=f"'{column}'.* Did you mean '{column}s'"):
            function(table.rename(columns={column: f"{column}s"}))


def test_a_model_that_stands_twice_is_refused_rather_than_drawn_over_itself():
    table = summary_of(TWO, 3)
    drawn = [tradeoff_figures.bubble, tradeoff_figures.pareto_frontier, tradeoff_figures.accuracy_per_million]
    for function in (*drawn, interactive_figures.bubble):
        with pytest.raises(InputError, match="'standard-6x384' twice"):
            function(pd.concat([table, table.iloc[:1]]))
    with pytest.raises(InputError, match="occurs twice"):
        accuracy.accuracy_intervals(pd.concat([runs_of(TWO, 2)] * 2))


@pytest.mark.parametrize("points", range(2, 13, 2))
@pytest.mark.parametrize("crowd", [0.02, 0.1, 0.3])
def test_labels_of_scattered_and_crowded_points_neither_overlap_nor_leave_the_axes(points, crowd):
    rng = np.random.default_rng(points)
    figure, axes = style.canvas("Crowded?", "", 4.0)
    ax = axes[0, 0]
    ax.set(xlim=(0, 1), ylim=(0, 1))
    x, y = 0.5 + crowd * rng.normal(size=(2, points)).clip(-1.4, 1.4)
    words = [f"{i}×{2 * i}×256 · 1{i}.0M" for i in range(points)]
    written = labels.place(ax, x, y, words, [6.0] * points, ["black"] * points)
    boxes = [(text, box) for text, box in texts_of(figure) if text in written]
    assert len(boxes) == points and overlapping(boxes, 0.5) == []
    frame = ax.get_window_extent().extents
    for _, box in boxes:
        assert (box[:2] >= frame[:2] - 1).all() and (box[2:] <= frame[2:] + 1).all()


def test_labels_at_the_ends_of_lines_keep_their_order_and_their_distance():
    figure, axes = style.canvas("Ends?", "", 3.0)
    ax = axes[0, 0]
    ax.set(ylim=(0, 1))
    heights = [0.5, 0.501, 0.502, 0.9, 0.499]
    written = labels.at_line_ends(ax, heights, [f"line {i}" for i in range(5)], ["black"] * 5)
    labels.spread(ax, written)
    assert overlapping([(t, b) for t, b in texts_of(figure) if t in written], 0.5) == []
    assert [label.get_text() for label in written] == ["line 4", "line 0", "line 1", "line 2", "line 3"]
    assert abs(written[-1].xyann[1]) < 1e-6, "a label with room stays at its line"


def test_the_dots_are_the_seeds_and_their_mean_and_one_seed_has_no_bar():
    runs = runs_of(["standard-2x64", "recurrent-1x2x64"], 4)
    ax = accuracy.accuracy_intervals(runs).axes[0]
    drawn = [line.get_xdata() for line in ax.get_lines()]
    for _, part in runs.groupby("model"):
        assert any(np.allclose(np.sort(x), np.sort(part["accuracy"])) for x in drawn if len(x) == 4)
        assert any(np.allclose(x, part["accuracy"].mean()) for x in drawn if len(x) == 1)
    single = accuracy.accuracy_intervals(runs[runs["seed"] == 0]).axes[0]
    assert all(len(line.get_xdata()) == 1 for line in single.get_lines())


def test_baselines_without_data_join_the_only_data_there_are_and_a_far_one_is_named_at_the_edge():
    runs = pd.concat(
        [runs_of(TWO, 3), pd.DataFrame({"model": ["majority class"], "seed": [0], "accuracy": [0.5]})],
        ignore_index=True,
    )
    ax = accuracy.accuracy_intervals(runs).axes[0]
    assert "Most frequent label" in [label.get_text() for label in ax.get_yticklabels()]
    assert ax.get_xlim()[0] > 0.7 and any("far below" in text.get_text() for text in ax.texts)
    assert any(text.get_text() == "50.0, n = 1" for text in ax.texts)
    thrice = pd.DataFrame({"model": ["majority class"] * 3, "seed": range(3), "accuracy": [0.0] * 3})
    ax = accuracy.accuracy_intervals(pd.concat([runs_of(TWO, 3), thrice])).axes[0]
    assert ax.get_xlim()[0] > 0.7 and any(text.get_text() == "0.0 (0.0 to 0.0), n = 3" for text in ax.texts)
    with pytest.raises(InputError, match="without 'data'"):
        accuracy.accuracy_intervals(pd.concat([runs, runs_of(TWO, 3, ("yelp",))]))


def test_bubbles_have_areas_in_proportion_to_parameters():
    table = summary_of(TWELVE, 3)
    disc = tradeoff_figures.bubble(table).axes[0].collections[0]
    assert np.allclose(disc.get_sizes() / table["parameters"], disc.get_sizes()[0] / table["parameters"][0])
    assert np.allclose(disc.get_offsets(), table[["ms_one", "mean"]])


def test_models_on_the_frontier_are_solid_and_all_others_hollow():
    table = summary_of(TWELVE, 3)
    best = table[frontier(table, ["ms_one"], ["mean"])]
    marks = [line for line in tradeoff_figures.pareto_frontier(table).axes[0].get_lines() if len(line.get_xdata()) == 1]
    solid = sorted(line.get_xdata()[0] for line in marks if to_hex(line.get_markerfacecolor()) != "#ffffff")
    assert np.allclose(solid, sorted(best["ms_one"])) and len(marks) == len(table) > len(solid)


def test_a_model_without_a_cost_is_left_out_and_named():
    table = summary_of(TWELVE, 3)
    table.loc[table["model"].str.startswith("tf-idf"), "ms_one"] = np.nan
    words = " ".join(text.get_text().replace("\n", " ") for text in tradeoff_figures.bubble(table).texts)
    assert "Not shown, for want of a cost: TF-IDF." in words
    with pytest.raises(InputError, match="no model with a value above zero"):
        tradeoff_figures.bubble(table.assign(ms_one=np.nan))


def test_parts_of_a_check_are_segments_of_its_bar_and_no_lines_of_their_own():
    ax = data.overlap(AUDIT).axes[0]
    assert sum(label.get_text() == "train in test" for label in ax.get_yticklabels()) == 2  # inside, leak
    widths = sorted(round(bar.get_width(), 4) for bar in ax.patches)
    assert widths == [0.0001, 0.0006, 0.0006, 0.0023, 0.0055, 0.0257, 0.0263]
    assert {"same text, different labels", "none: test"} <= {text.get_text() for text in ax.texts}


def test_colours_of_text_can_be_read_and_families_differ_by_marker_too():
    found = looks.looks(["standard-2x64", "recurrent-1x2x64", "recurrent-1x2x64 unshared", "majority class", "mine"])
    assert [seen.family for seen in found.values()] == ["standard", "recurrent", "unshared", "classical", "other"]
    assert len({seen.marker for seen in found.values()}) == len({seen.colour for seen in found.values()}) == 5
    for seen in looks.looks(TWELVE).values():
        assert looks.contrast(looks.ink(seen.shade), "white") >= 4.5
    assert looks.contrast("black", "white") == pytest.approx(21)
    assert [looks.short(name) for name in ("standard-6x384", "recurrent-3x2x256 mixed", "bert-base")] == [
        "6×384",
        "3×2×256 mixed",
        "bert-base",
    ]


def test_numbers_are_written_as_people_read_them():
    assert [notes.count(n) for n in (578, 709_000, 1_810_000, 25_912_706, 3e9)] == [
        "578",
        "709k",
        "1.81M",
        "25.9M",
        "3.00G",
    ]
    shares = [notes.share(s).replace("\xa0", " ") for s in (0, 0.00003, 0.0006, 0.0257, 1)]
    assert shares == ["0.0 %", "<0.01 %", "0.06 %", "2.6 %", "100.0 %"]
    assert notes.interval_note([5, 5]) == "bars: 95\xa0%\xa0interval over seeds (n\xa0=\xa05)"
    assert notes.interval_note([1, 3, 5]).endswith("(n\xa0=\xa03\xa0to\xa05), none for fewer than 3 seeds")
    assert notes.interval_note([1]) == "one seed each, so no interval"
    assert notes.interval_note([2, 2]) == "2 seeds each, so no interval"
    assert notes.with_interval(0.809, 0.8049, 0.8131) == "80.9 (80.5 to 81.3)"
    assert notes.with_interval(0.96, 0.92, 1.003) == "96.0 (92.0 to 100.0)" and notes.with_interval(0.9, np.nan, np.nan) == "90.0"


@pytest.mark.parametrize(("most", "kind", "mime"), [(10**9, "svg", "svg+xml"), (10, "png", "png")])
def test_saving_twice_gives_the_same_bytes_and_the_html_carries_the_alt_text(most, kind, mime, tmp_path, monkeypatch):
    """A small drawing is shown as it is, a large one as an image; both lie in the folder."""
    monkeypatch.setattr(save, "MOST_SVG", most)
    table = summary_of(TWO, 3)
    shown = [
        save.save(
            tradeoff_figures.bubble(table), "bubble", table, tmp_path / folder, alt='Two models, "one" <small>', caption="n = 3"
        )
        for folder in ("one", "two")
    ]
    for ending in ("svg", "pdf", "png", "csv"):
        one, two = ((tmp_path / folder / f"bubble.{ending}").read_bytes() for folder in ("one", "two"))
        assert one == two and one, ending
    assert sorted(file.name for file in (tmp_path / "one").iterdir()) == [
        f"bubble.{k}" for k in ("csv", "pdf", "png", "svg")
    ]
    html = shown[0]._repr_html_()
    assert html.startswith(
        f'<figure><img alt="Two models, &quot;one&quot; &lt;small&gt;" src="data:image/{mime};base64,'
    )
    assert html.endswith("<figcaption>n = 3</figcaption></figure>")
    drawn = html.split("base64,")[1].split('"')[0]
    assert base64.b64decode(drawn) == (tmp_path / "one" / f"bubble.{kind}").read_bytes()
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "one" / "bubble.csv"), table, rtol=1e-9)


def test_a_large_drawing_is_shown_as_png(tmp_path, monkeypatch):
    monkeypatch.setattr(save, "MOST_SVG", 1000)
    shown = save.save(data.label_balance(BALANCE), "balance", BALANCE, tmp_path, alt="three splits")
    assert 'src="data:image/png;base64,iVBOR' in shown._repr_html_() and "figcaption" not in shown._repr_html_()


def test_a_wide_figure_is_shown_wider_and_its_letters_are_as_large(tmp_path):
    shown = []
    for inches in (style.WIDTH, style.WIDE):
        figure, _ = style.canvas("title", "note", 2.0, width=inches)
        shown.append(save.save(figure, "figure", BALANCE, tmp_path, alt="an empty one")._repr_html_())
    pixels = [float(re.search(r' width="(\d+)"', html)[1]) for html in shown]
    assert [html.startswith('<figure class="wide">') for html in shown] == [False, True]
    assert pixels[1] / pixels[0] == pytest.approx(style.WIDE / style.WIDTH, rel=0.01)


def test_a_failed_write_leaves_neither_half_a_file_nor_the_old_one_changed(tmp_path, monkeypatch):
    table = BALANCE
    save.save(data.label_balance(table), "balance", table, tmp_path, alt="three splits")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}

    def full(self, data):
        self.touch()
        raise OSError("No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        save.save(data.label_balance(table, title="Another question?"), "balance", table, tmp_path, alt="three splits")
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


@pytest.mark.parametrize(("stem", "alt"), [("balance", "  "), ("../balance", "three splits")])
def test_a_figure_without_alt_text_or_with_a_path_for_a_name_is_refused(tmp_path, stem, alt):
    with pytest.raises(InputError):
        save.save(data.label_balance(BALANCE), stem, BALANCE, tmp_path, alt=alt)


@pytest.mark.parametrize("seeds", [1, 3])
def test_the_interactive_bubble_tells_every_number_on_hover_and_asks_for_nothing_from_the_network(seeds):
    table = summary_of(TWELVE, seeds)
    figure = interactive_figures.bubble(table)
    hover = [words for trace in figure.data if trace.hovertext for words in trace.hovertext]
    assert len(hover) == len(table) and all("million parameters" in words and "GFLOP" in words for words in hover)
    assert all(("[" in words) == (seeds > 1 and "tf-idf" not in words) for words in hover)
    told = json.loads(figure.to_json())
    assert "width" not in told["layout"] and told["layout"]["title"]["text"].endswith("?</b>")
    assert "http" not in json.dumps(told)
    areas = np.concatenate([trace.marker.size for trace in figure.data if trace.hovertext])
    assert sorted(areas) == sorted(table["parameters"]) and figure.data[0].marker.sizemode == "area"


def test_text_is_wrapped_evenly_within_its_width_and_keeps_no_break_spaces():
    text = "Marks are means over the seeds of a model and bars are intervals (n\xa0=\xa05)."
    lines = wrapping.wrap(text, 200, 10)
    assert " ".join(lines) == text and max(wrapping.extent(line, 10)[0] for line in lines) <= 200
    assert min(len(line) for line in lines) > 0.5 * max(len(line) for line in lines)
    assert wrapping.wrap("", 200, 10) == []


def test_the_table_of_a_figure_computes_nothing_in_a_spreadsheet(tmp_path: Path) -> None:
    """A figure may show the labels of a user's file."""
    table = BALANCE.assign(label_name='=HYPERLINK("http://x")')
    save.save(data.label_balance(BALANCE), "balance", table, tmp_path, alt="three splits")
    written = pd.read_csv(tmp_path / "balance.csv")
    assert set(written["label_name"]) == {"'=HYPERLINK(\"http://x\")"}
    assert written.drop(columns="label_name").equals(BALANCE.drop(columns="label_name"))
