"""The tour's measurements follow the formulas of the parts, and its figures draw their tables."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
import torch
import torch.nn.functional as F
from test_figures import on_its_page, refuses
from test_figures_loop import drawn

from rtxlib.errors import InputError
from rtxlib.models.encoder import Encoder
from rtxlib.models.presets import build, preset
from rtxstudy.figures import looks
from rtxstudy.questions.gradients.gradients import gradients_by_pass
from rtxstudy.questions.tour import tour, tour_figures

VOCABULARY = 50


def batch(rows: int = 6, length: int = 7, seed: int = 0) -> dict[str, torch.Tensor]:
    drawing = torch.Generator().manual_seed(seed)
    ids = torch.randint(1, VOCABULARY, (rows, length), generator=drawing)
    mask = torch.ones_like(ids)
    mask[0, 4:] = 0
    return {"input_ids": ids * mask, "attention_mask": mask, "labels": torch.arange(rows) % 2}


# ---------------------------------------- positions


@pytest.mark.parametrize(("head_dim", "theta"), [(64, 10_000.0), (32, 160_000.0), (2, 10_000.0)])
def test_frequencies_are_those_of_the_formula(head_dim: int, theta: float) -> None:
    table = tour.frequencies(head_dim, theta)
    wanted = theta ** (-2 * np.arange(head_dim // 2) / head_dim)
    assert table["angle"].to_numpy() == pytest.approx(wanted, rel=1e-5)
    assert (table["period"] * table["angle"]).to_numpy() == pytest.approx(2 * math.pi)


def test_a_rotation_is_a_product_with_a_complex_number() -> None:
    table = tour.rotation(16, 10_000.0, [0, 3, 7], 12)
    assert len(table) == 3 * 12
    turned = np.exp(1j * table["position"] * 10_000.0 ** (-2 * table["pair"] / 16))
    assert (table["x"] + 1j * table["y"]).to_numpy() == pytest.approx(turned.to_numpy(), abs=1e-5)


def test_a_rotated_score_depends_on_the_distance_alone_and_one_that_does_not_would_show(monkeypatch) -> None:
    assert tour.shift_error(32, 10_000.0, 40) < 1e-4
    real = tour.rotary_angles
    monkeypatch.setattr(tour, "rotary_angles", lambda *given: tuple(part.flip(-1) for part in real(*given)))
    assert tour.shift_error(32, 10_000.0, 40) < 1e-4  # other frequencies, but still a rotation
    monkeypatch.setattr(
        tour, "rotary_angles", lambda *given: tuple(part[(torch.arange(40) ** 2) % 40] for part in real(*given))
    )
    assert tour.shift_error(32, 10_000.0, 40) > 0.1


def test_the_closest_positions_are_found_among_all_pairs_of_them() -> None:
    angle = tour.frequencies(8, 10.0)["angle"].to_numpy()
    places = np.exp(1j * np.outer(np.arange(60), angle))
    apart = np.sqrt((np.abs(places[:, None] - places[None]) ** 2).mean(axis=-1)) / 2
    assert tour.closest_positions(8, 10.0, 60) == pytest.approx(apart[np.triu_indices(60, 1)].min())


def test_near_and_far_prices_distance_as_each_scheme_does() -> None:
    table = tour.near_and_far(16, 8, 10_000.0, 32).set_index(["line", "distance"])
    assert table.index.is_unique
    distance = np.arange(32)
    assert table.loc[tour.FAST, "score"].to_numpy() == pytest.approx(5 * np.cos(distance), abs=1e-4)
    slowest = 5 * np.cos(distance * 10_000.0 ** (-14 / 16))
    assert table.loc[tour.SLOW, "score"].to_numpy() == pytest.approx(slowest, abs=1e-4)
    spread = table.loc[tour.SPREAD]
    assert spread["score"].iloc[0] == pytest.approx(5, abs=1e-5) and (spread["low"] <= spread["high"]).all()
    assert (spread["low"] < spread["score"]).iloc[1:].all() and (spread["score"] < spread["high"]).iloc[1:].all()
    for slope in (2**-1, 2**-5, 2**-8):
        own = table.loc[f"ALiBi, slope 1/{1 / slope:.4g}"]
        assert own["score"].to_numpy() == pytest.approx(5 - slope * distance)
        for far in (0, 5, 31):
            scores = torch.tensor(-slope * distance)
            scores[far] += 5
            assert own["weight"][far] == pytest.approx(scores.softmax(dim=0)[far].item())
    one = tour.near_and_far(16, 1, 10_000.0, 8)
    assert one.groupby("scheme")["line"].nunique().to_dict() == {"RoPE": 3, "ALiBi": 1}


def test_dividing_by_the_root_of_the_width_keeps_softmax_from_its_edge() -> None:
    table = tour.softmax_peaks([4, 64, 256]).set_index(["head_dim", "divided"])
    for width in (4, 64, 256):
        assert table.loc[(width, True), "spread"] == pytest.approx(1, abs=0.1)
        assert table.loc[(width, False), "spread"] == pytest.approx(width**0.5 * table.loc[(width, True), "spread"])
    assert table.loc[(256, False), "peak"] > 0.85 > 0.4 > table.loc[(256, True), "peak"]
    assert table.loc[(256, False), "slope"] < 0.5 * table.loc[(256, True), "slope"]


# ---------------------------------------- norms


def test_rmsnorm_keeps_what_is_off_centre_and_layernorm_does_not() -> None:
    table = tour.norm_outputs(64, [0.0, 0.5, 3.0]).set_index("norm")
    shift = table.loc["RMSNorm", "shift"].to_numpy()
    assert table.loc["RMSNorm", "mean"].to_numpy() == pytest.approx(shift / np.sqrt(1 + shift**2), abs=1e-5)
    assert table.loc["RMSNorm", "spread"].to_numpy() == pytest.approx(1 / np.sqrt(1 + shift**2), abs=1e-5)
    assert table.loc["LayerNorm", "mean"].to_numpy() == pytest.approx([0, 0, 0], abs=1e-5)
    assert table.loc["LayerNorm", "spread"].to_numpy() == pytest.approx([1, 1, 1], abs=1e-5)


@pytest.mark.parametrize("norm", ["rmsnorm", "layernorm"])
def test_what_reaches_a_norm_is_measured_on_real_tokens(norm: str) -> None:
    encoder = Encoder(preset("recurrent-1x2x32", vocab_size=VOCABULARY, norm=norm)).train()
    with torch.no_grad():
        encoder.embeddings.token.weight += 0.03  # off centre
        encoder.embeddings.token.weight[0] = 1e6  # padding, which must not count
    given = batch()
    table = tour.norm_inputs(encoder, [given, batch(seed=1)]).set_index("norm")
    assert list(table.index) == [
        "embeddings.norm",
        "stack.blocks.0.0.attention_norm",
        "stack.blocks.0.0.feedforward_norm",
    ]
    found = []
    for one in (given, batch(seed=1)):
        ids = one["input_ids"][one["attention_mask"].bool()]
        found.append((encoder.embeddings.token.weight[ids] + encoder.embeddings.token_type.weight[0]).detach().double())
    x = torch.cat(found)
    centred = x - x.mean(dim=-1, keepdim=True)
    deviation = centred.square().mean(dim=-1).sqrt()
    own = table.loc["embeddings.norm"]
    assert own["shift"] == pytest.approx((x.mean(dim=-1).abs() / deviation).mean().item(), rel=1e-4)
    rms, layer = x / x.square().mean(dim=-1, keepdim=True).sqrt(), centred / deviation[:, None]
    assert own["difference"] == pytest.approx(((rms - layer).norm(dim=-1) / layer.norm(dim=-1)).mean().item(), rel=1e-4)
    assert encoder.training and not any(module._forward_pre_hooks for module in encoder.modules())


def test_both_norms_are_timed() -> None:
    times = tour.norm_times(16, 8)
    assert set(times) == {"rmsnorm", "layernorm"} and all(0 < taken < 1000 for taken in times.values())


# ---------------------------------------- activations and gradients


def test_activation_curves_are_the_formulas_and_their_slopes() -> None:
    table = tour.activation_curves(-3.0, 3.0).set_index("feedforward")
    x = torch.linspace(-3, 3, tour.POINTS).requires_grad_()
    gated = {"swiglu": F.silu(x) * x, "geglu": F.gelu(x) * x, "gelu": F.gelu(x), "relu": F.relu(x)}
    assert set(table.index) == set(gated)
    for kind, value in gated.items():
        assert table.loc[kind, "value"].to_numpy() == pytest.approx(value.detach().numpy(), abs=1e-5)
        slope = torch.autograd.grad(value.sum(), x, retain_graph=True)[0]
        assert table.loc[kind, "slope"].to_numpy() == pytest.approx(slope.numpy(), abs=1e-5)


def test_a_relu_shuts_half_its_units_and_the_gated_ones_have_as_many_parameters() -> None:
    table = tour.feedforwards(96).set_index("feedforward")
    assert table["shut"]["relu"] == pytest.approx(0.5, abs=0.03)
    assert (table["shut"][["swiglu", "geglu", "gelu"]] == 0).all()
    assert table["matrices"].to_dict() == {"swiglu": 3, "geglu": 3, "gelu": 2, "relu": 2}
    assert table["inner"].to_dict() == {"swiglu": 256, "geglu": 256, "gelu": 384, "relu": 384}
    assert table["parameters"]["swiglu"] == 3 * 96 * 256 + 2 * 256 + 96
    assert table["parameters"]["swiglu"] == pytest.approx(table["parameters"]["relu"], rel=0.01)


def test_the_signal_is_the_gradient_of_the_shared_layer_over_a_pass_of_it() -> None:
    given = batch()
    table = tour.gradient_signal(32, [1, 3], [0.0, 0.5], 2, [given], vocab_size=VOCABULARY).set_index(
        ["alpha", "passes", "seed"]
    )
    assert len(table) == 8 and table.index.is_unique
    assert table.xs(1, level="passes")[["signal", "first"]].to_numpy() == pytest.approx(np.ones((4, 2)))
    model = build("recurrent-1x3x32", 1, residual_scale=0.5, vocab_size=VOCABULARY).eval()
    F.cross_entropy(model(given["input_ids"], given["attention_mask"]).logits, given["labels"]).backward()
    whole = torch.cat([p.grad.flatten() for p in model.encoder.stack.blocks.parameters()]).norm().item()
    passes = gradients_by_pass(model, [given])["norm"]
    assert table.loc[(0.5, 3, 1), "signal"] == pytest.approx(whole / passes.mean(), rel=1e-4)
    assert table.loc[(0.5, 3, 1), "first"] == pytest.approx(passes[0] / passes[2], rel=1e-4)


# ---------------------------------------- figures


def signals(alphas: list[float], seeds: int) -> pd.DataFrame:
    rows = [
        (alpha, r, seed, r * (1 - 0.01 * seed), (1 + alpha) ** (r - 1) * (1 + 0.02 * seed))
        for alpha, r, seed in itertools.product(alphas, (1, 2, 4, 8), range(seeds))
    ]
    return pd.DataFrame(rows, columns=["alpha", "passes", "seed", "signal", "first"])


def turns(*bases: float) -> pd.DataFrame:
    return pd.concat([tour.frequencies(64, base).assign(base=base) for base in bases], ignore_index=True)


# name -> the figure function, its table, and its other arguments
CASES = {
    "activations": (tour_figures.activations, tour.activation_curves(-3, 3), {}),
    "rotation": (tour_figures.rotation, tour.rotation(64, 10_000.0, [0, 8, 16], 8), {}),
    "rotation, one": (tour_figures.rotation, tour.rotation(64, 10_000.0, [3], 30), {}),
    "frequencies": (tour_figures.frequencies, turns(10_000.0, 160_000.0), {"longest": 512}),
    "frequencies, one": (tour_figures.frequencies, turns(10_000.0), {"longest": 100_000}),
    "near_and_far": (tour_figures.near_and_far, tour.near_and_far(64, 8, 10_000.0, 128), {}),
    "near_and_far, one head": (tour_figures.near_and_far, tour.near_and_far(32, 1, 10_000.0, 16), {}),
    "norms": (tour_figures.norms, tour.norm_outputs(64, [0, 1, 2, 4]), {}),
    "gradient_signal": (tour_figures.gradient_signal, signals([0.0, 0.5, 1.0], 3), {}),
    "gradient_signal, one": (tour_figures.gradient_signal, signals([0.5], 1), {}),
}
NEEDED = {
    tour_figures.activations: ("feedforward", "x", "value", "slope"),
    tour_figures.rotation: ("pair", "angle", "position", "x", "y"),
    tour_figures.frequencies: ("base", "pair", "period"),
    tour_figures.near_and_far: ("line", "distance", "score", "low", "high", "weight"),
    tour_figures.norms: ("norm", "shift", "mean", "spread"),
    tour_figures.gradient_signal: ("alpha", "passes", "seed", "signal", "first"),
}


@pytest.mark.parametrize(("function", "table", "more"), CASES.values(), ids=CASES)
def test_a_figure_asks_a_question_fits_its_page_and_overlaps_no_text(function, table, more) -> None:
    _, texts = on_its_page(lambda: function(table, **more))
    for text in texts:
        assert text.get_size() >= 10 and looks.contrast(text.get_color(), "white") >= 4.5, text.get_text()


@pytest.mark.parametrize("function", NEEDED, ids=lambda function: function.__name__)
def test_an_empty_table_a_missing_column_and_a_row_that_stands_twice_are_refused(function) -> None:
    table, more = next((table, more) for drawing, table, more in CASES.values() if drawing is function)
    refuses(function, table, NEEDED[function], **more)


def test_more_lines_than_can_be_told_apart_are_refused() -> None:
    with pytest.raises(InputError, match="6 lines apart"):
        tour_figures.gradient_signal(signals([0.1 * i for i in range(7)], 1))
    with pytest.raises(InputError, match="three pairs"):
        tour_figures.rotation(tour.rotation(64, 10_000.0, [0, 1, 2, 3], 4))


def test_every_line_of_a_table_is_drawn_where_it_says() -> None:
    table = CASES["activations"][1].sample(frac=1, random_state=0)
    figure = tour_figures.activations(table)
    for ax, column in zip(figure.axes, ("value", "slope"), strict=True):
        for _, part in table.sort_values("x").groupby("feedforward"):
            assert drawn(ax, part["x"].to_numpy(), part[column].to_numpy(), aside=0)
    for name, columns in (("norms", ("mean", "spread")), ("near_and_far", ("score", "weight"))):
        function, table, _ = CASES[name]
        of, x = ("norm", "shift") if name == "norms" else ("line", "distance")
        for ax, column in zip(function(table).axes, columns, strict=True):
            for _, part in table.groupby(of):
                assert drawn(ax, part[x].to_numpy(), part[column].to_numpy(), aside=0)
    table = turns(10_000.0, 160_000.0)
    ax = tour_figures.frequencies(table, longest=512).axes[0]
    assert ax.get_yscale() == "log" and drawn(ax, [0, 1], [512, 512], looks.GREY)
    for _, part in table.groupby("base"):
        assert drawn(ax, part["pair"].to_numpy(), part["period"].to_numpy(), aside=0)


def test_the_guides_of_the_signal_are_r_its_root_and_the_gain_of_the_identity() -> None:
    table = signals([0.0, 0.5], 3)
    signal, first = tour_figures.gradient_signal(table).axes
    r = np.array([1, 2, 4, 8])
    assert drawn(signal, r, r, looks.GREY) and drawn(signal, r, r**0.5, looks.GREY)
    for alpha, part in table.groupby("alpha"):
        assert drawn(first, r, (1 + alpha) ** (r - 1), looks.GREY, aside=0)
        means = part.groupby("passes")[["signal", "first"]].mean()
        assert drawn(signal, r, means["signal"].to_numpy()) and drawn(first, r, means["first"].to_numpy())
    with pytest.raises(InputError, match="above zero in 'first'"):
        tour_figures.gradient_signal(table.assign(first=0.0))


def test_the_dots_of_a_rotation_lie_on_the_circle_of_their_pair() -> None:
    table = CASES["rotation"][1]
    for ax, (_, part) in zip(tour_figures.rotation(table).axes, table.groupby("pair"), strict=True):
        dots = [line.get_xydata()[0] for line in ax.get_lines() if line.get_marker() == "o"]
        assert np.array(dots) == pytest.approx(part[["x", "y"]].to_numpy())
        assert ax.get_aspect() == 1
