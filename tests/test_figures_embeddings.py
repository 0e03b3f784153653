"""The figures of pretrained encoders draw what their tables say, overlap nothing, and refuse what they cannot draw."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from test_figures import on_its_page, texts_of

from rtxlib.errors import InputError
from rtxstudy.names import said
from rtxstudy.questions.pretrained import embedding_figures

SENTENCES = [
    "The film is a quiet triumph, tender and funny.",
    "I walked out after an hour: the plot made no sense at all, and the acting was worse than anything I have seen.",
    "The waiter was rude.",
    "Wonderful little restaurant with the friendliest staff in town.",
    "The battery died after $5 of use, and the $10 case broke.",
    "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft " * 3,
]
GROUPS = ["movies", "movies", "local business", "local business", "online shopping", "online shopping"]


def similar(n: int, least: float = -0.3) -> pd.DataFrame:
    rng = np.random.default_rng(n)
    values = rng.uniform(least, 1, (n, n))
    values = (values + values.T) / 2
    np.fill_diagonal(values, 1)
    names = [f"{SENTENCES[i % 6]} {i}" if i >= 6 else SENTENCES[i] for i in range(n)]
    return pd.DataFrame(values, index=names, columns=names)


def grouped(n: int) -> list[str]:
    return [GROUPS[6 * i // n] for i in range(n)]


def precisions(ks: tuple[int, ...], panels: tuple[str, ...]) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rows = []
    for panel in panels:
        for model in ("all-MiniLM-L6-v2", "ModernBERT-base, mean of states", "tf-idf"):
            rows += [(model, k, panel, (m := rng.uniform(0.4, 0.9)), m - 0.02, m + 0.02, 3000) for k in ks]
        rows += [("chance", k, panel, 1 / 3, np.nan, np.nan, 3000) for k in ks]
    return pd.DataFrame(rows, columns=["model", "k", "panel", "mean", "low", "high", "n"])


def reaching(length: int, layers: int, window: int | None = None, every: int = 3) -> pd.DataFrame:
    token = np.arange(1, length + 1)
    parts = []
    for layer in range(layers):
        half = length if window is None or layer % every == 0 else window // 2
        ends = {"first": np.maximum(token - half, 1), "last": np.minimum(token + half, length)}
        parts.append(pd.DataFrame({"layer": layer + 1, "token": token, **ends}))
    return pd.concat(parts, ignore_index=True)


def side_by_side() -> pd.DataFrame:
    tables = [reaching(192, 6).assign(model="all-MiniLM-L6-v2"), reaching(192, 22, 128).assign(model="ModernBERT-base")]
    return pd.concat(tables, ignore_index=True)


def lengths(**of_models: list[float]) -> pd.DataFrame:
    parts = [
        pd.DataFrame({"model": name, "layer": range(len(norms)), "norm": norms}) for name, norms in of_models.items()
    ]
    return pd.concat(parts, ignore_index=True)


FLAT = [0.47, 0.58, 0.57, 0.57, 0.61, 0.56, 0.42]
NORMS = lengths(**{"all-MiniLM-L6-v2": FLAT, "ModernBERT-base": np.geomspace(0.9, 40, 23), "bert-base": [0.8] * 13})

CASES = {
    "heat map, six": lambda: embedding_figures.similarity_heatmap(similar(6)),
    "heat map, two": lambda: embedding_figures.similarity_heatmap(similar(2, 0), ["a", "b"]),
    "heat map, twelve in groups": lambda: embedding_figures.similarity_heatmap(similar(12), grouped(12)),
    "heat map, twelve, none negative": lambda: embedding_figures.similarity_heatmap(similar(12, 0), grouped(12)),
    "heat map, as many as there may be": lambda: embedding_figures.similarity_heatmap(similar(36), grouped(36)),
    "retrieval": lambda: embedding_figures.retrieval(precisions((1, 10), ("same domain", "same sentiment"))),
    "retrieval, long names": lambda: embedding_figures.retrieval(
        precisions(
            (1, 10), ("the same domain · my own reviews of 2023 and some more of 2024", "the same sentiment · sst2")
        )
    ),
    "retrieval, one k": lambda: embedding_figures.retrieval(precisions((10,), ("same domain",))),
    "reach, two models": lambda: embedding_figures.attention_reach(side_by_side()),
    "reach, two layers": lambda: embedding_figures.attention_reach(reaching(192, 2, 128)),
    "reach, one": lambda: embedding_figures.attention_reach(reaching(30, 6)),
    "norms": lambda: embedding_figures.norms_by_layer(NORMS),
    "norms, one": lambda: embedding_figures.norms_by_layer(lengths(**{"all-MiniLM-L6-v2": FLAT})),
}


@pytest.mark.parametrize("draw", CASES.values(), ids=CASES)
def test_a_figure_asks_a_question_fits_its_page_and_overlaps_no_text(draw) -> None:
    figure, texts = on_its_page(draw)
    for text in texts:
        assert text.get_size() >= (8 if text in figure.axes[0].texts else 10), text.get_text()  # cells may shrink


# ---------------------------------------- the heat map


def test_up_to_twelve_sentences_have_their_values_written_and_more_have_none() -> None:
    table = similar(12)
    table.iloc[0, 1] = -0.004  # neither −.00 nor −0
    written = [text.get_text() for text in embedding_figures.similarity_heatmap(table).axes[0].texts]
    expected = [f"{value:.2f}".replace("0.", ".").replace("-", "−") for value in table.to_numpy().flat]
    assert len(written) == 144
    assert written == [{"1.00": "1", "−.00": ".00"}.get(word, word) for word in expected]
    assert not embedding_figures.similarity_heatmap(similar(13)).axes[0].texts


def test_values_stay_within_their_cells() -> None:
    figure = embedding_figures.similarity_heatmap(similar(12, -1), grouped(12))
    ax = figure.axes[0]
    cells = [box for text, box in texts_of(figure) if text in ax.texts]
    assert max(box[2] - box[0] for box in cells) <= ax.get_window_extent().width / 12


def test_a_value_has_one_colour_in_every_figure_and_the_scale_shows_red_only_where_it_is_needed() -> None:
    both, above = (embedding_figures.similarity_heatmap(table) for table in (similar(6, -1), similar(6, 0)))
    for figure in (both, above):
        mesh = figure.axes[0].collections[0]
        assert mesh.get_clim() == (-1, 1) and to_hex(mesh.cmap(mesh.norm(0.0))) == "#f6f7f7"
    assert both.axes[1].get_xlim() == (-1, 1) and above.axes[1].get_xlim() == (0, 1)


def test_sentences_are_cut_at_words_and_dollars_are_no_formula() -> None:
    ticks = embedding_figures.similarity_heatmap(similar(6)).axes[0].get_yticklabels()
    labels = [text.get_text() for text in ticks]
    assert not any(text.get_parse_math() for text in ticks)
    assert [label.split("\u2007")[1 if i < 9 else 0] for i, label in enumerate(labels)] == list("123456")
    plain = [" ".join(label.replace("\u2007", " ").split()[1:]) for label in labels]
    assert plain[0] == SENTENCES[0] and plain[2] == SENTENCES[2]
    assert plain[1].endswith(" …") and SENTENCES[1].startswith(plain[1].removesuffix(" …") + " ")
    assert plain[4].startswith("The battery died after $5 of use")
    assert all(label.count("\n") <= 1 for label in labels)


def test_each_sentence_carries_the_mark_of_its_group() -> None:
    names = ["b", "a", "b", "c", "c", "a"]
    figure = embedding_figures.similarity_heatmap(similar(6), names)
    marks = [line for line in figure.axes[0].get_lines() if len(line.get_xdata()) == 1]
    key = {handle.get_label(): handle for handle in figure.legends[0].legend_handles}
    assert list(key) == ["b", "a", "c"] and len({handle.get_marker() for handle in key.values()}) == 3
    for mark, name in zip(marks, names, strict=True):
        assert (mark.get_marker(), mark.get_color()) == (key[name].get_marker(), key[name].get_color())


@pytest.mark.parametrize(
    ("table", "groups", "says"),
    [
        (similar(4).iloc[:0], None, "empty"),
        (similar(4).iloc[:, ::-1], None, "in one order"),
        (similar(4).iloc[:3], None, "in one order"),
        (similar(4) * 2, None, "beyond ±1"),
        (similar(4).where(lambda x: x < 1), None, "missing"),
        (similar(37), None, "at most 36"),
        (similar(4), ["a"], "4 sentences but 1 groups"),
        (similar(8), list("abcdefgh"), "at most 6"),
    ],
)
def test_a_heat_map_that_would_mislead_is_refused(table: pd.DataFrame, groups: list[str] | None, says: str) -> None:
    with pytest.raises(InputError, match=says):
        embedding_figures.similarity_heatmap(table, groups)


# ---------------------------------------- retrieval


def test_marks_stand_at_the_means_in_the_order_of_k_and_chance_is_a_line() -> None:
    table = precisions((10, 1), ("domain", "sentiment"))
    for ax, (_, part) in zip(embedding_figures.retrieval(table).axes, table.groupby("panel", sort=False), strict=True):
        shown = part[part["model"] != "chance"].sort_values("k", kind="stable")
        marks = [line.get_xdata()[0] for line in ax.get_lines() if len(line.get_xdata()) == 1]
        assert marks == shown["mean"].tolist()
        bars = [tuple(line.get_xdata()) for line in ax.get_lines() if len(set(line.get_xdata())) == 2]
        assert bars == list(zip(shown["low"], shown["high"], strict=True))
        assert [label.get_text() for label in ax.get_yticklabels()] == [
            f"{said(model)}, k = {k}" for model, k in zip(shown["model"], shown["k"], strict=True)
        ]
        dashed = [line for line in ax.get_lines() if line.get_linestyle() == "--"]
        assert [set(line.get_xdata()) for line in dashed] == [{1 / 3}]


def test_without_chance_the_note_speaks_of_none() -> None:
    table = precisions((5,), ("domain",))
    notes = [
        figure.texts[1].get_text() for figure in map(embedding_figures.retrieval, (table, table[table["model"] != "chance"]))
    ]
    assert "chance" in notes[0] and "chance" not in notes[1] and "5 nearest" in notes[1]


# ---------------------------------------- reach and norms


def test_layers_that_see_alike_share_a_panel_and_the_picture_is_the_table() -> None:
    figure = embedding_figures.attention_reach(side_by_side())
    titles = [ax.get_title(loc="left").replace("\n", " ").replace("\xa0", " ") for ax in figure.axes]
    assert titles == [
        "all-MiniLM-L6-v2 6 layers: 1 to 6",
        "ModernBERT-base 8 layers: 1, 4, 7, … 22",
        "ModernBERT-base 14 layers: 2, 3, 5, … 21",
    ]
    pictures = [ax.get_images()[0].get_array() for ax in figure.axes]
    distance = np.abs(np.arange(192) - np.arange(192)[:, None])
    assert pictures[0].all() and pictures[1].all() and (pictures[2] == (distance <= 64)).all()


def test_runs_apart_are_drawn_apart_and_rows_are_those_that_look() -> None:
    table = pd.DataFrame(
        [(1, 1, 1, 1), (1, 1, 3, 3), (1, 2, 2, 3), (1, 3, 3, 3)], columns=["layer", "token", "first", "last"]
    )
    picture = embedding_figures.attention_reach(table).axes[0].get_images()[0].get_array()
    assert picture.tolist() == [[True, False, True], [False, True, True], [False, False, True]]


def test_lines_are_the_norms_and_the_axis_turns_logarithmic_when_they_span_much() -> None:
    ax = embedding_figures.norms_by_layer(NORMS.sample(frac=1, random_state=0)).axes[0]
    drawn = {tuple(line.get_ydata()) for line in ax.get_lines()}
    assert drawn == {tuple(part["norm"]) for _, part in NORMS.groupby("model")}
    assert {note.get_text() for note in ax.texts} >= {said(model) for model in NORMS["model"]}
    assert ax.get_yscale() == "log"
    flat = embedding_figures.norms_by_layer(lengths(**{"all-MiniLM-L6-v2": FLAT})).axes[0]
    assert flat.get_yscale() == "linear" and flat.get_ylim()[0] == 0


NEEDED = {
    embedding_figures.retrieval: (precisions((5,), ("domain",)), ("model", "k", "panel", "mean", "low", "high", "n")),
    embedding_figures.attention_reach: (reaching(9, 2), ("layer", "token", "first", "last")),
    embedding_figures.norms_by_layer: (NORMS, ("model", "layer", "norm")),
}


@pytest.mark.parametrize("function", NEEDED, ids=lambda function: function.__name__)
def test_an_empty_table_and_a_missing_column_are_refused_by_name(function) -> None:
    table, columns = NEEDED[function]
    with pytest.raises(InputError, match="empty"):
        function(table.iloc[:0])
    for column in columns:
        with pytest.raises(InputError, match=f"'{column}'"):
            function(table.rename(columns={column: f"{column}s"}))


def test_what_stands_twice_or_is_chance_alone_is_refused() -> None:
    table = precisions((5,), ("domain",))
    with pytest.raises(InputError, match="domain, all-MiniLM-L6-v2, 5' twice"):
        embedding_figures.retrieval(pd.concat([table, table.iloc[:1]]))
    with pytest.raises(InputError, match="empty"):
        embedding_figures.retrieval(table[table["model"] == "chance"])
    with pytest.raises(InputError, match="all-MiniLM-L6-v2, 0' twice"):
        embedding_figures.norms_by_layer(pd.concat([NORMS, NORMS.iloc[:1]]))
