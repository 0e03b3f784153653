"""The figures of the loop, of depth and of early exits draw what their tables say, and refuse what they cannot draw."""

from __future__ import annotations

import itertools

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from test_figures import on_its_page, refuses

from rtxlib.errors import InputError
from rtxstudy.figures import looks, notes
from rtxstudy.questions.early_exit import exit_figures
from rtxstudy.questions.forms import loop_figures
from rtxstudy.questions.gradients import gradient_figures
from rtxstudy.questions.passes import worth_figures

SHARED, UNSHARED, STANDARD = "recurrent-3x2x256", "recurrent-3x2x256 unshared", "standard-4x384"
MANY = [SHARED, UNSHARED, STANDARD, "recurrent-1x4x64", "recurrent-1x6x64", "standard-6x64", "recurrent-2x3x128 gated"]
FORMS = ["none", "every", "from_second", "learned", "damped", "gated", "loop_norm", "input_injection"]
MEASURES = ["norm", "cosine", "distance", "token_correlation", "accuracy", "entropy"]


def noise(*keys: object) -> float:
    """About 1, the same for the same keys."""
    return 1 + 0.03 * np.sin(sum(map(hash, map(float, keys))) * 12.9898)


def by_layer(models: list[str], seeds: int) -> pd.DataFrame:
    rows = [
        (model, seed, place, 1 + (place - 1) // 3 if "recurrent" in model else 1, (1 + i) * 0.8**place * noise(seed, i))
        for i, model in enumerate(models)
        for seed in range(seeds)
        for place in range(1, 5 if "standard-4" in model else 7)
    ]
    return pd.DataFrame(rows, columns=["model", "seed", "depth", "iteration", "norm"])


def bounds(models: list[str], seeds: int) -> pd.DataFrame:
    rows = [
        (
            model,
            seed,
            t,
            r := (0.9 + 0.2 * i) ** (4 - t) * noise(seed),
            0.8 ** (4 - t) * r,
            0.5 ** (4 - t),
            1.5 ** (4 - t),
        )
        for i, model in enumerate(models)
        for seed in range(seeds)
        for t in range(5)
    ]
    return pd.DataFrame(rows, columns=["model", "seed", "iteration", "ratio", "least", "bound", "gain"])


def states(models: list[str], seeds: int) -> pd.DataFrame:
    rows = []
    for (i, model), seed, t in itertools.product(enumerate(models), range(seeds), range(5)):
        values = np.array([1.5 ** (t + i), 0.6 + 0.08 * t, 1.2 / (t + 1), 0.1 + 0.1 * t, 0.7 + 0.03 * t, 0.8 - 0.1 * t])
        values *= noise(seed, i, t)
        if t == 0:
            values[[1, 2, 4, 5]] = np.nan
        rows.append((model, seed, t, *values))
    return pd.DataFrame(rows, columns=["model", "seed", "iteration", *MEASURES])


def growth(forms: list[str], seeds: int, weights: tuple[str, ...] = ("initial", "trained")) -> pd.DataFrame:
    rows = [
        (form, word, seed, t, (1 + 0.08 * i) ** t * noise(seed, i))
        for (i, form), word, seed, t in itertools.product(enumerate(forms), weights, range(seeds), range(1, 13))
    ]
    return pd.DataFrame(rows, columns=["form", "weights", "seed", "iteration", "norm"])


def read_out(data: list[str], models: list[str], seeds: int) -> pd.DataFrame:
    rows = [
        (name, model, seed, t, (0.8 - 0.02 * i - 0.3 * 0.5**t) * noise(seed, t))
        for name, (i, model), seed, t in itertools.product(data, enumerate(models), range(seeds), range(1, 13))
    ]
    return pd.DataFrame(rows, columns=["data", "model", "seed", "iteration", "accuracy"])


def composed(passes: list[int], seeds: int) -> pd.DataFrame:
    rows = []
    for r, seed, level in itertools.product(passes, range(seeds), range(7)):
        accuracy = (0.5 + 0.5 / (1 + np.exp(level - 1 - np.log2(r)))) * noise(seed)
        rows.append(("fixed parameters", f"recurrent-1x{r}x64", r, 1, level, seed, min(accuracy, 1.0)))
        rows.append(("fixed arithmetic", f"recurrent-{8 // r}x{r}x64", r, 8 // r, level, seed, 0.97 - 0.05 * level))
    return pd.DataFrame(rows, columns=["arm", "model", "iterations", "layers", "depth", "seed", "accuracy"])


def errors(data: list[str], seeds: int, phi: float = 0.6) -> pd.DataFrame:
    shapes = [(1, 1), (2, 1), (4, 1), (8, 1), (12, 1), (1, 2), (1, 4), (1, 8), (2, 4), (3, 2)]
    rows = [
        (name, f"{n}x{r}", n, r, seed, (0.15 + 0.08 * (n * r**phi) ** -0.7) * noise(seed, n, r))
        for name, (n, r), seed in itertools.product(data, shapes, range(seeds))
    ]
    return pd.DataFrame(rows, columns=["data", "model", "layers", "iterations", "seed", "error"])


def fitted(data: list[str], phi: float = 0.6, low: float = 0.41, high: float = 0.9) -> pd.DataFrame:
    rows = [(name, phi, low, high, 0.15, 0.08, 0.7, 42) for name in data]
    return pd.DataFrame(rows, columns=["data", "phi", "low", "high", "E", "A", "beta", "n"])


def leaving(seeds: int) -> pd.DataFrame:
    rows = []
    for seed in range(seeds):
        for r in range(1, 7):
            rows.append(("fixed", r, r, 0.2 + 0.3 * r, (0.82 - 0.1 / r) * noise(seed), False, seed))
        for i, criterion in enumerate(("confidence", "agreement", "change")):
            for threshold in (0.1, 0.3, 0.5, 0.7, 0.9):
                took = 1 + 5 * threshold
                accuracy = (0.822 - 0.06 / took - 0.004 * i) * noise(seed)
                rows.append((criterion, threshold, took, 0.25 + 0.31 * took, accuracy, False, seed))
            threshold = 0.4 + 0.01 * seed + 0.1 * i  # each seed its own
            took = 1 + 5 * threshold
            rows.append((criterion, threshold, took, 0.25 + 0.31 * took, 0.81 * noise(seed), True, seed))
    columns = ["criterion", "setting", "passes", "ms_per_text", "accuracy", "chosen", "seed"]
    return pd.DataFrame(rows, columns=columns).assign(model="recurrent-1x6x128")


def bounded(seeds: int = 3) -> pd.DataFrame:
    """Four fixed numbers of passes, and an exit for each criterion and bound."""
    rows = [("fixed_" + str(r), "fixed", "", r, 0.7 - 0.06 / r) for r in range(1, 5)] + [("fixed", "fixed", "validated", 3, 0.68)]
    for i, criterion in enumerate(("confidence", "agreement", "change")):
        for j, bound in enumerate(("controlled", "certified")):
            rows.append((f"{criterion}_{bound}", criterion, bound, 2 + 0.5 * i + 0.2 * j, 0.682 + 0.002 * j))
    table = pd.DataFrame(rows, columns=["way", "criterion", "bound", "passes", "accuracy"])
    ends = {"low": table["accuracy"] - 0.685 - 0.003, "high": table["accuracy"] - 0.685 + 0.003}
    return table.assign(model="m", data="mnli", ms_per_text=1 + 2 * table["passes"], at_most=0.005, n_seeds=seeds, **ends)


def with_data(table: pd.DataFrame, *names: str) -> pd.DataFrame:
    return pd.concat([table.assign(data=name) for name in names], ignore_index=True)


OVERFLOWN = growth(FORMS, 3)
OVERFLOWN.loc[(OVERFLOWN["form"] == "every") & (OVERFLOWN["iteration"] > 8), "norm"] = np.inf
CERTAIN = read_out(["sst2"], [SHARED], 3).assign(accuracy=0.999)

# what is drawn: the figure function, its table, and what else it takes
CASES = {
    "gradient_by_layer": (gradient_figures.gradient_by_layer, by_layer([STANDARD, SHARED, UNSHARED], 3), {}),
    "gradient_by_layer, one": (gradient_figures.gradient_by_layer, by_layer([SHARED], 1), {}),
    "gradient_by_layer, many": (gradient_figures.gradient_by_layer, by_layer(MANY, 2), {}),
    "gradient_bound": (gradient_figures.gradient_bound, bounds([SHARED], 3), {}),
    "gradient_bound, one seed": (gradient_figures.gradient_bound, bounds([SHARED, UNSHARED], 1), {}),
    "gradient_bound, many": (gradient_figures.gradient_bound, bounds([f"{SHARED} and a word or two", *MANY[3:]], 3), {}),
    "states_by_pass": (loop_figures.states_by_pass, states([SHARED, UNSHARED, STANDARD], 3), {}),
    "states_by_pass, one seed": (loop_figures.states_by_pass, states([SHARED], 1), {}),
    "states_by_pass, kin": (loop_figures.states_by_pass, states([f"{SHARED} {form}" for form in FORMS[:4]], 3), {}),
    "stability": (loop_figures.stability, growth(FORMS, 3), {"alpha": 0.5, "trained_depth": 4}),
    "stability, overflown": (loop_figures.stability, OVERFLOWN, {"alpha": 0.5, "trained_depth": 4}),
    "stability, one": (loop_figures.stability, growth(["damped"], 1, ("trained",)), {"alpha": 0.5, "trained_depth": 1}),
    "accuracy_by_pass": (worth_figures.accuracy_by_pass, read_out(["a", "b"], MANY[:3], 3), {"trained_depth": 4}),
    "accuracy_by_pass, many": (worth_figures.accuracy_by_pass, read_out(["a"], MANY, 1), {"trained_depth": 4}),
    "accuracy_by_pass, near 100": (worth_figures.accuracy_by_pass, CERTAIN, {"trained_depth": 4}),
    "composition": (worth_figures.composition, composed([1, 2, 4, 8], 3), {}),
    "composition, one seed": (worth_figures.composition, composed([2, 8], 1), {}),
    "worth": (worth_figures.worth, errors(["sst2", "yelp"], 3), {"fits": fitted(["sst2", "yelp"])}),
    "worth, one seed": (worth_figures.worth, errors(["sst2"], 1), {"fits": fitted(["sst2"], np.nan, np.nan, np.nan)}),
    "exits": (exit_figures.exits, leaving(3), {}),
    "exits, one seed": (exit_figures.exits, leaving(1), {}),
    "worth, three data": (worth_figures.worth, errors(["a", "b", "c"], 3), {"fits": fitted(["a", "b", "c"])}),
    "exits, three data": (exit_figures.exits, with_data(leaving(3), "sst2", "yelp", "amazon"), {}),
    "exits, two data": (exit_figures.exits, with_data(leaving(3), "sst2", "yelp"), {}),
    "bounded_exits": (exit_figures.bounded_exits, bounded(), {}),
    "bounded_exits, two data": (exit_figures.bounded_exits, with_data(bounded(), "mnli", "cola"), {}),
}
NEEDED = {
    gradient_figures.gradient_by_layer: ("model", "seed", "depth", "iteration", "norm"),
    gradient_figures.gradient_bound: ("model", "seed", "iteration", "ratio", "least", "bound", "gain"),
    loop_figures.states_by_pass: ("model", "seed", "iteration", *MEASURES),
    loop_figures.stability: ("form", "weights", "seed", "iteration", "norm"),
    worth_figures.accuracy_by_pass: ("data", "model", "seed", "iteration", "accuracy"),
    worth_figures.composition: ("arm", "iterations", "layers", "depth", "seed", "accuracy"),
    worth_figures.worth: ("data", "model", "layers", "iterations", "seed", "error"),
    exit_figures.exits: ("model", "seed", "criterion", "setting", "passes", "ms_per_text", "accuracy", "chosen"),
    exit_figures.bounded_exits: (
        "data", "model", "way", "criterion", "bound", "passes", "ms_per_text", "accuracy", "low", "at_most"
    ),
}


def drawn(ax: Axes, x: np.ndarray, y: np.ndarray, colour: str | None = None, aside: float = 0.1) -> bool:
    """Whether some line of the axes runs through these points; it may stand aside a little."""
    return any(
        len(line.get_xdata()) == len(x)
        and np.allclose(line.get_ydata(), y)
        and np.allclose(line.get_xdata(), x, atol=aside)
        and (colour is None or line.get_color() == colour)
        for line in ax.get_lines()
    )


def words_of(figure: mpl.figure.Figure) -> str:
    return " ".join(text.get_text().replace("\n", " ") for text in figure.texts)


@pytest.mark.parametrize(("function", "table", "more"), CASES.values(), ids=CASES)
def test_a_figure_asks_a_question_fits_its_page_and_overlaps_no_text(function, table, more) -> None:
    _, texts = on_its_page(lambda: function(table, **more))
    for text in texts:
        assert text.get_size() >= 10, text.get_text()


@pytest.mark.parametrize("function", NEEDED, ids=lambda function: function.__name__)
def test_an_empty_table_a_missing_column_and_a_run_that_stands_twice_are_refused(function) -> None:
    table, more = next((table, more) for drawing, table, more in CASES.values() if drawing is function)
    refuses(function, table, NEEDED[function], **more)


# ---------------------------------------- what the loop does


def test_gradients_by_layer_are_means_in_order_and_later_layers_of_a_pass_are_hollow() -> None:
    table = by_layer([STANDARD, SHARED], 3)
    ax = gradient_figures.gradient_by_layer(table.sample(frac=1, random_state=0)).axes[0]
    for _, runs in table.groupby("model"):
        means = runs.groupby("depth")["norm"].mean()
        assert drawn(ax, means.index.to_numpy(), means.to_numpy(), aside=0)
        assert drawn_points(ax, runs["depth"], runs["norm"])
    hollow = [line.get_xdata() for line in ax.get_lines() if line.get_markerfacecolor() == "white"]
    assert sorted(np.concatenate(hollow)) == [2, 3, 5, 6]
    assert "hollow" in words_of(ax.figure)
    assert "hollow" not in words_of(gradient_figures.gradient_by_layer(by_layer([STANDARD], 1)))


def drawn_points(ax: Axes, x: pd.Series, y: pd.Series) -> bool:
    wanted = sorted(zip(x, y, strict=True))
    small = [line for line in ax.get_lines() if line.get_marker() == "."]
    return any(
        np.allclose(sorted(zip(*line.get_data(), strict=True)), wanted)
        for line in small
        if len(x) == len(line.get_xdata())
    )


def test_the_bound_is_grey_beside_the_mean_ratio_and_the_least_text_of_any_seed() -> None:
    table = bounds([SHARED, UNSHARED], 3)
    figure = gradient_figures.gradient_bound(table)
    (key,) = figure.legends
    assert [text.get_text() for text in key.get_texts()] == ["mean", "least text", "bound claimed", "identity's gain"]
    for ax, (name, runs) in zip(figure.axes, table.groupby("model", sort=False), strict=True):
        of = runs.groupby("iteration")
        assert ax.get_title(loc="left") == name and ax.get_yscale() == "log"
        assert drawn(ax, range(5), of["ratio"].mean(), looks.looks([name])[name].shade)
        assert drawn(ax, range(5), of["least"].min())
        assert drawn(ax, range(5), 0.5 ** (4 - np.arange(5)), looks.GREY)
        assert drawn(ax, range(5), 1.5 ** (4 - np.arange(5)), looks.GREY)
    with pytest.raises(InputError, match="above zero in 'least'"):
        gradient_figures.gradient_bound(table.assign(least=0.0))
    gradient_figures.gradient_bound(table.assign(bound=table["bound"].where(table["iteration"] > 0, 0.0)))  # promises nothing


def test_each_measure_has_a_panel_and_one_that_was_never_taken_has_none() -> None:
    table = states([SHARED, UNSHARED], 3)
    figure = loop_figures.states_by_pass(table)
    for ax, column in zip(figure.axes, MEASURES, strict=True):
        for _, runs in table.groupby("model"):
            means = runs.dropna(subset=column).groupby("iteration")[column].mean()
            assert drawn(ax, means.index.to_numpy(), means.to_numpy(), aside=0)
    fewer = loop_figures.states_by_pass(table.assign(accuracy=np.nan))
    shown = [ax.get_title(loc="left") for ax in fewer.axes if ax.get_visible()]
    assert len(shown) == 5 and not any("accuracy" in words for words in shown)
    with pytest.raises(InputError, match="no values"):
        loop_figures.states_by_pass(table.assign(**dict.fromkeys(MEASURES, np.nan)))
    with pytest.raises(InputError, match="four models"):
        loop_figures.states_by_pass(states(MANY[:5], 1))


def test_models_of_one_family_are_told_apart_in_the_key_by_the_filling_of_their_marks() -> None:
    handles = loop_figures.states_by_pass(states([f"{SHARED} {form}" for form in FORMS[:4]], 1)).legends[0].legend_handles
    assert len({(line.get_fillstyle(), line.get_markerfacecolor() == "white") for line in handles}) == 4


def test_a_form_that_overflows_for_any_seed_is_drawn_up_to_there_and_marked() -> None:
    table = growth(["every", "damped"], 3)
    table.loc[(table["form"] == "every") & (table["iteration"] > 7) & (table["seed"] == 1), "norm"] = np.inf
    table.loc[(table["form"] == "every") & (table["iteration"] == 6) & (table["weights"] == "trained"), "norm"] = np.nan
    figure = loop_figures.stability(table, alpha=0.5, trained_depth=4)
    for ax, last, word in zip(figure.axes, (7, 5), ("initial", "trained"), strict=True):
        rows = table[(table["weights"] == word) & (table["iteration"] <= last) & (table["form"] == "every")]
        means = np.exp(np.log(rows["norm"]).groupby(rows["iteration"]).mean())
        assert drawn(ax, range(1, last + 1), means, aside=0)
        assert [line.get_xdata()[0] for line in ax.get_lines() if line.get_marker() == "x"] == [last]
        assert {text.get_text() for text in ax.texts} >= {f"every (to {last})", "damped", "(1 + α)^t"}
        assert drawn(ax, range(1, 13), means.iloc[0] * 1.5 ** np.arange(12), looks.GREY, aside=0)
    assert "cross" in words_of(figure)
    assert "cross" not in words_of(loop_figures.stability(growth(["every"], 1), alpha=0.5, trained_depth=4))
    table.loc[(table["form"] == "damped") & (table["weights"] == "trained"), "norm"] = 2 * loop_figures.CEILING
    assert "from the first pass on: damped after training." in words_of(
        loop_figures.stability(table, alpha=0.5, trained_depth=4)
    )
    assert "dashed" not in words_of(loop_figures.stability(growth(["damped"], 1), alpha=0.5, trained_depth=4))
    with pytest.raises(InputError, match="empty"):
        loop_figures.stability(table.assign(norm=np.inf), alpha=0.5, trained_depth=4)


def test_forms_differ_in_colour_or_line_and_all_in_their_marker_and_unknown_ones_take_what_is_free() -> None:
    seen = loop_figures._forms(pd.Series([*FORMS[:6], "mine", "yours"]))
    assert len(seen) == len({marker for *_, marker in seen.values()}) == 8
    assert len({(colour, line) for colour, line, _ in seen.values()}) == 8
    with pytest.raises(InputError, match="8 forms"):
        loop_figures.stability(growth([*FORMS, "mine"], 1), alpha=0.5, trained_depth=4)
    with pytest.raises(InputError, match="Did you mean 'trained'"):
        loop_figures.stability(growth(["every"], 1, ("traind",)), alpha=0.5, trained_depth=4)
    with pytest.raises(InputError, match="above zero"):
        loop_figures.stability(growth(FORMS, 1).assign(norm=0.0), alpha=0.5, trained_depth=4)


# ---------------------------------------- what depth is worth


def test_accuracy_by_pass_marks_the_passes_trained_and_has_no_tick_above_a_hundred() -> None:
    table = read_out(["sst2", "yelp"], [SHARED, UNSHARED], 3)
    figure = worth_figures.accuracy_by_pass(table, trained_depth=4)
    for ax, (name, part) in zip(figure.axes, table.groupby("data"), strict=True):
        assert ax.get_title(loc="left") == name
        assert any(list(line.get_xdata()) == [4, 4] for line in ax.get_lines())
        for _, runs in part.groupby("model"):
            assert drawn(ax, range(1, 13), runs.groupby("iteration")["accuracy"].mean())
    assert any(text.get_text() == "trained up to 4 passes" for text in figure.axes[0].texts)
    near = worth_figures.accuracy_by_pass(CERTAIN, trained_depth=4).axes[0]
    assert near.get_ylim()[1] > 1 and max(near.get_yticks()) <= 1 + 1e-9


def test_two_seeds_draw_their_mean_alone_and_no_interval_leaves_the_shares() -> None:
    table = read_out(["a"], [SHARED], 2)
    apart = table.assign(accuracy=0.7 + 0.1 * table["seed"])  # Student's interval of these two would be 0.11 to 1.39
    figure = worth_figures.accuracy_by_pass(apart, trained_depth=4)
    low, high = figure.axes[0].get_ylim()
    assert low > 0.6 and high < 0.9 and "2 seeds each, so no interval" in words_of(figure)
    wide = read_out(["a"], [SHARED], 3)
    wide["accuracy"] = 0.5 + 0.45 * wide["seed"] / 2
    (bars,) = worth_figures.accuracy_by_pass(wide, trained_depth=4).axes[0].collections
    assert np.concatenate(bars.get_segments())[:, 1].max() <= 1
    entropy = states([SHARED], 3).assign(entropy=lambda t: 0.5 + 0.25 * t["seed"])
    (band,) = loop_figures.states_by_pass(entropy).axes[-1].collections
    assert band.get_paths()[0].vertices[:, 1].max() <= 1


def test_lines_of_composition_darken_with_the_passes_and_are_named_after_what_varies() -> None:
    table = composed([1, 2, 4, 8], 3)
    parameters, arithmetic = worth_figures.composition(table).axes
    assert {text.get_text() for text in parameters.texts} == {"R = 1", "R = 2", "R = 4", "R = 8"}
    names = {"8 layers × 1", "4 layers × 2", "2 layers × 4", "1 layer × 8"}
    assert {text.get_text() for text in arithmetic.texts} == names
    assert arithmetic.get_title(loc="left") == "fixed arithmetic: layers × passes = 8"
    shades = [looks.contrast(line.get_color(), "white") for line in parameters.get_lines()]
    assert shades == sorted(shades) and len({line.get_marker() for line in parameters.get_lines()}) == 4
    for ax, (_, arm) in zip((parameters, arithmetic), table.groupby("arm", sort=False), strict=True):
        for _, runs in arm.groupby("iterations"):
            assert drawn(ax, range(7), runs.groupby("depth")["accuracy"].mean(), aside=0.12)
    with pytest.raises(InputError, match="8 numbers"):
        worth_figures.composition(composed([*range(1, 10)], 1))


def test_worth_draws_the_law_for_layers_of_their_own_and_for_one_layer_passed_again() -> None:
    table, fits = errors(["sst2"], 3), fitted(["sst2"])
    ax = worth_figures.worth(table, fits).axes[0]
    assert ax.get_title(loc="left") == "sst2: φ = 0.60 (0.41 to 0.90), n = 42"
    curves = [line for line in ax.get_lines() if len(line.get_xdata()) > 20 and line.get_marker() == "None"]
    own, loops = looks.looks(["standard", "recurrent"]).values()
    for line, exponent, seen in zip(curves, (1, 0.6), (own, loops), strict=True):
        x, y = line.get_data()
        assert line.get_color() == seen.colour and x[0] == 1 and x[-1] == pytest.approx(12)
        assert np.allclose(y, 0.15 + 0.08 * (x**exponent) ** -0.7)
    marks = {line.get_marker(): line for line in ax.get_lines() if line.get_marker() in "oD"}
    for marker, wanted in (("o", table["iterations"] == 1), ("D", table["iterations"] > 1)):
        means = table[wanted].groupby(["layers", "iterations"], sort=False)["error"].mean()
        x, y = marks[marker].get_data()
        assert np.allclose(y, means) and np.allclose(x, [n * r for n, r in means.index])
    assert {text.get_text() for text in ax.texts if text.get_text()} == {"1×2", "1×4", "1×8", "2×4", "3×2"}
    alone = worth_figures.worth(table, fitted(["sst2"], phi=1.0)).axes[0]
    assert sum(len(line.get_xdata()) > 20 and line.get_marker() == "None" for line in alone.get_lines()) == 1


@pytest.mark.parametrize(
    ("phi", "low", "high", "words"),
    [
        (0.62, -np.inf, 0.9, "φ = 0.62 (0.90 or less)"),
        (0.62, 0.1, np.nan, "φ = 0.62 (0.10 or more)"),
        (0.62, -np.inf, np.inf, "φ = 0.62 (without limits)"),
        (-0.1, -0.4, 0.2, "φ = −0.10 (−0.40 to 0.20)"),
        (np.nan, np.nan, np.nan, "φ is not determined"),
    ],
)
def test_an_exponent_is_told_as_far_as_the_data_determine_it(phi, low, high, words) -> None:
    ax = worth_figures.worth(errors(["sst2"], 1), fitted(["sst2"], phi, low, high)).axes[0]
    assert ax.get_title(loc="left") == f"sst2: {words}, n = 42"


def test_a_fit_must_be_there_once_for_each_data_set() -> None:
    table = errors(["sst2", "yelp"], 1)
    with pytest.raises(InputError, match="no fit for 'yelp'"):
        worth_figures.worth(table, fitted(["sst2"]))
    with pytest.raises(InputError, match="'sst2' twice"):
        worth_figures.worth(table, fitted(["sst2", "sst2", "yelp"]))
    for column in ("phi", "low", "high", "E", "A", "beta", "n"):
        with pytest.raises(InputError, match=f"'{column}'"):
            worth_figures.worth(table, fitted(["sst2", "yelp"]).drop(columns=column))


# ---------------------------------------- early exits


def test_lines_of_exits_run_through_means_over_seeds_and_the_chosen_threshold_stands_out() -> None:
    table = leaving(3)
    ax = exit_figures.exits(table).axes[0]
    for criterion, runs in table[~table["chosen"]].groupby("criterion"):
        means = runs.groupby("setting")[["ms_per_text", "accuracy"]].mean()
        assert drawn(ax, means["ms_per_text"], means["accuracy"], exit_figures._CRITERIA[criterion][0], aside=1e-9)
    chosen = table[table["chosen"]].groupby("criterion")[["ms_per_text", "accuracy", "passes"]].mean()
    large = [line for line in ax.get_lines() if line.get_markersize() > 10]
    assert len(large) == 3
    for row in chosen.itertuples():
        assert any(np.allclose([*line.get_xdata(), *line.get_ydata()], row[1:3]) for line in large)
    words = [text.get_text() for text in ax.texts if text.get_text()]
    assert sorted(words) == sorted(["1 pass", *"23456", *(f"{passes:.1f} passes" for passes in chosen["passes"])])


def test_thresholds_of_each_seeds_own_are_matched_by_their_order() -> None:
    table = leaving(3)
    own = (table["criterion"] == "change") & ~table["chosen"]
    table.loc[own, "setting"] += 0.01 * table.loc[own, "seed"]
    line = next(
        line for line in exit_figures.exits(table).axes[0].get_lines() if line.get_marker() == "^" and line.get_markersize() < 10
    )
    assert len(line.get_xdata()) == 5


def test_a_choice_that_is_one_of_the_settings_is_no_second_point_of_its_line() -> None:
    table = leaving(2)
    table = table[~table["chosen"]].assign(
        chosen=lambda rows: (rows["criterion"] == "change") & (rows["setting"] == 0.5)
    )
    ax = exit_figures.exits(table).axes[0]
    line = next(line for line in ax.get_lines() if line.get_marker() == "^" and line.get_markersize() < 10)
    assert len(line.get_xdata()) == 5
    assert sum(line.get_markersize() > 10 for line in ax.get_lines()) == 1


def test_bounded_exits_draws_fixed_passes_as_a_line_and_certified_exits_as_open_marks() -> None:
    table = bounded()
    ax = exit_figures.bounded_exits(table).axes[0]
    fixed = table[table["bound"] == ""]
    assert drawn(ax, fixed["ms_per_text"], fixed["accuracy"], exit_figures._CRITERIA["fixed"][0], aside=1e-9)
    for row in table[table["bound"].isin(("controlled", "certified"))].itertuples():
        colour, marker, _, _ = exit_figures._CRITERIA[row.criterion]
        (mark,) = (
            line
            for line in ax.get_lines()
            if line.get_marker() == marker and line.get_color() == colour and line.get_xdata()[0] == row.ms_per_text
        )
        assert mark.get_ydata()[0] == row.accuracy and (mark.get_markerfacecolor() == "white") == (row.bound == "certified")
    assert any(np.allclose(line.get_ydata(), fixed["accuracy"].iloc[-1] - 0.005) for line in ax.get_lines())


def test_exits_refuses_a_second_choice_a_chosen_depth_an_unknown_criterion_and_no_time() -> None:
    table = leaving(2)
    with pytest.raises(InputError, match="twice"):
        exit_figures.exits(table.assign(chosen=table["criterion"] == "change"))
    with pytest.raises(InputError, match="chosen 'fixed'"):
        exit_figures.exits(
            table[~table["chosen"]].assign(chosen=lambda rows: (rows["criterion"] == "fixed") & (rows["setting"] == 2))
        )
    with pytest.raises(InputError, match="Did you mean 'confidence'"):
        exit_figures.exits(table.assign(criterion="confident"))
    with pytest.raises(InputError, match="'ms_per_text'"):
        exit_figures.exits(table.assign(ms_per_text=np.nan))


def test_a_panel_is_named_after_its_data_and_where_there_are_several_its_model() -> None:
    table = with_data(leaving(1), "sst2", "yelp")
    assert [ax.get_title(loc="left") for ax in exit_figures.exits(table).axes] == ["sst2", "yelp"]
    two = pd.concat([leaving(1), leaving(1).assign(model="recurrent-1x6x64")])
    assert [ax.get_title(loc="left") for ax in exit_figures.exits(two).axes] == ["recurrent-1x6x128", "recurrent-1x6x64"]


def test_the_note_on_seeds_says_how_many() -> None:
    assert notes.seeds_note([1, 1]) == "one seed each"
    assert notes.seeds_note([5]) == "small points: each seed (n\xa0=\xa05)"
    assert notes.seeds_note([3, 1]) == "small points: each seed (n\xa0=\xa01\xa0to\xa03)"
