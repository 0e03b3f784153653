"""What does each part of an encoder do? The measurements of the tour, each with its figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd
import torch
from IPython.display import HTML
from pandas.io.formats.style import Styler

from rtxlib.models import Encoder, preset
from rtxstudy import names, naming
from rtxstudy.figures.save import Drawing
from rtxstudy.numbers import number, percent
from rtxstudy.pages import static
from rtxstudy.questions.anatomy import anatomy, shapes
from rtxstudy.questions.gradients import gradient_figures
from rtxstudy.questions.tour import fresh, tour, tour_claims, tour_figures

if TYPE_CHECKING:
    from rtxstudy import Study

FOLLOWED, TEXTS, LENGTH = "bert-base", 32, 128  # whose shapes are followed
SHAPES = f"{TEXTS} texts of {LENGTH} tokens through {FOLLOWED}"
NEAR, FAR = 1, 100  # tokens between two like tokens
PASSES = 6  # of the networks whose gradients are measured
ALPHAS, DEPTHS = (0.0, 0.5, 1.0), (1, 2, 3, 4, 6, 8)


def setting(study: Study) -> pd.DataFrame:
    """What the tour is measured on: one row."""
    sizes, loop = study.profile, study.profile.loops[-1]
    config = preset(sizes.recurrent)
    row = {"recurrent encoder": sizes.recurrent, "heads": config.num_attention_heads, "numbers of a head": config.head_dim}
    row |= {"data behind gradients": study.source(loop.data)["data"], "texts of these": fresh.TEXTS}
    return pd.DataFrame([row | {"fresh networks of each kind": loop.seeds}])


def page(name: str, **opened_with: str) -> HTML:
    """A page of :mod:`rtxstudy.pages` within the notebook, opened with these values of its fields."""
    return HTML(f"<div>{static.iframe(name, opened_with)}</div>")


def parts(study: Study) -> pd.DataFrame:
    """The parts of BERT and of the study's recurrent encoder: a row for each part, a column for each encoder."""
    with torch.device("meta"):
        bert = Encoder(preset("bert-base"))
    recurrent = study.profile.recurrent
    columns = {"BERT-base": anatomy.anatomy(bert), recurrent: anatomy.anatomy(Encoder(preset(recurrent)))}
    return pd.DataFrame(columns).rename_axis("part").reset_index()


def traced_shapes(study: Study) -> pd.DataFrame:
    """The shapes that a batch takes on its way through BERT, with the share of the parameters of each step."""
    steps = shapes.trace(FOLLOWED, TEXTS, LENGTH, num_labels=2)
    return steps.assign(share=steps["parameters"] / steps["parameters"].sum())


def readable_shapes(steps: pd.DataFrame) -> Styler:
    return steps.style.format({"numbers": "{:,}", "parameters": "{:,}", "share": percent})


def softmax_peaks(study: Study) -> pd.DataFrame:
    """How sharp attention is with and without the division by √dₖ (:func:`tour.softmax_peaks`)."""
    return tour.softmax_peaks([8, preset(study.profile.recurrent).head_dim, 256])


def readable_peaks(peaks: pd.DataFrame) -> Styler:
    columns = {"head_dim": "dₖ", "divided": "scores", "peak": "largest weight"}
    named = peaks.assign(divided=peaks["divided"].map({False: "raw", True: "÷ √dₖ"})).rename(columns=columns)
    return named.style.format({"spread": "{:.2f}", "largest weight": lambda share: percent(share, 0), "slope": "{:.4f}"})


def activations(study: Study) -> pd.DataFrame:
    """Value and slope of four units (:func:`tour.activation_curves`)."""
    return study.table("tour", "tour_activations", lambda: tour.activation_curves(-3, 3))


def draw_activations(study: Study, curves: pd.DataFrame) -> Drawing:
    title = study.title(tour_claims.activations_title, curves, otherwise="Units and their slopes")
    return Drawing(
        tour_figures.activations(curves, title),
        "08_activations",
        curves,
        alt="Value and slope of SwiGLU, GeGLU, GELU and ReLU units between −3 and 3: the gated ones "
        "grow like a square, ReLU is flat below 0.",
    )


def feedforwards(study: Study) -> pd.DataFrame:
    """Fresh feed-forwards of the width of the study's recurrent encoder, on vectors as a norm leaves them."""
    return tour.feedforwards(preset(study.profile.recurrent).hidden_size)


def readable_feedforwards(kinds: pd.DataFrame) -> Styler:
    return kinds.style.format({"parameters": "{:,}", "shut": percent})


def draw_rotation(study: Study) -> Drawing:
    config = preset(study.profile.recurrent)
    pairs = config.head_dim // 2
    turned = study.table(
        "tour",
        "tour_rotation",
        lambda: tour.rotation(config.head_dim, config.rope_theta, [0, pairs // 4, pairs // 2], 8),
    )
    return Drawing(
        tour_figures.rotation(
            turned, study.title(tour_claims.rotation_title, turned, otherwise="Pairs that are turned")
        ),
        "08_rotation",
        turned,
        alt="Three circles: where the arrow of a fast, a slower and a slow pair points at positions 0 to 7.",
    )


@dataclass(frozen=True)
class Rotary:
    """How rotary positions tell positions apart."""

    frequencies: pd.DataFrame  # the period of each pair, for each base
    periods: pd.Series  # of the study's own base
    longest: int  # tokens of the longest text
    error: float  # of a score when both tokens are moved, as tour.shift_error
    closest: float  # the smallest distance of two positions, as tour.closest_positions


def rotary(study: Study) -> Rotary:
    config = preset(study.profile.recurrent)
    theta, longest = config.rope_theta, config.max_position_embeddings
    bases = sorted({theta, preset("modernbert-base").rope_theta})

    def measure() -> pd.DataFrame:
        tables = [tour.frequencies(config.head_dim, base).assign(base=base) for base in bases]
        return pd.concat(tables, ignore_index=True)

    frequencies = study.table("tour", "tour_frequencies", measure)
    return Rotary(
        frequencies,
        frequencies[frequencies["base"] == theta]["period"],
        longest,
        tour.shift_error(config.head_dim, theta, 128),
        tour.closest_positions(config.head_dim, theta, longest),
    )


def draw_frequencies(study: Study, turning: Rotary) -> Drawing:
    title = study.title(
        tour_claims.frequencies_title, turning.frequencies, turning.longest, otherwise="Tokens of a full turn"
    )
    return Drawing(
        tour_figures.frequencies(turning.frequencies, longest=turning.longest, title=title),
        "08_frequencies",
        turning.frequencies,
        alt="Tokens that each pair takes for a full turn, from about 6 for the first to tens of "
        f"thousands for the last, beside the longest text of {turning.longest} tokens.",
    )


@dataclass(frozen=True)
class Distances:
    """Score and attention of two like tokens by their distance, with RoPE and with ALiBi."""

    by_distance: pd.DataFrame  # as tour.near_and_far
    scores: pd.DataFrame  # line × "score 1 away", "score 100 away"
    weights: pd.DataFrame  # line × "attention 1 away", "attention 100 away"
    most: float  # the largest score
    heads: int  # of ALiBi


def distances(study: Study) -> Distances:
    config, heads = preset(study.profile.recurrent), preset("transformer-base").num_attention_heads
    table = study.table(
        "tour", "tour_distances", lambda: tour.near_and_far(config.head_dim, heads, config.rope_theta, 128)
    )
    lines = list(table["line"].unique())
    ends = table[table["distance"].isin([NEAR, FAR])]
    scores, weights = (ends.pivot(index="line", columns="distance", values=value).loc[lines] for value in ("score", "weight"))
    scores, weights = scores.rename(columns="score {} away".format), weights.rename(columns="attention {} away".format)
    return Distances(table, scores, weights, table["score"].max(), heads)


def draw_distances(study: Study, apart: Distances) -> Drawing:
    title = study.title(
        tour_claims.far_title, apart.scores, apart.most, FAR, tour.SLOW, otherwise="Score by distance"
    )
    return Drawing(
        tour_figures.near_and_far(apart.by_distance, title),
        "08_near_and_far",
        apart.by_distance,
        alt="Score and attention weight of a like token by distance: constant when the slowest pair "
        "holds the likeness, swinging for the fastest, falling for random queries, and falling in a straight line under "
        "ALiBi, steeply or gently by head.",
        caption=f"ALiBi with {apart.heads} heads, of which the steepest, a middle one and the gentlest are shown.",
    )


def readable_distances(apart: Distances) -> Styler:
    written = dict.fromkeys(apart.scores, lambda score: number(score, ".2f")) | dict.fromkeys(apart.weights, percent)
    return apart.scores.join(apart.weights).rename_axis(columns=None).reset_index().style.format(written)


def draw_norms(study: Study) -> Drawing:
    width = preset(study.profile.recurrent).hidden_size
    moved = study.table(
        "tour", "tour_norms", lambda: tour.norm_outputs(width, [0, 0.25, 0.5, 1, 1.5, 2, 3, 4])
    )
    return Drawing(
        tour_figures.norms(moved, study.title(tour_claims.norms_title, moved, otherwise="What each norm returns")),
        "08_norms",
        moved,
        alt="Mean and standard deviation of a vector's entries after RMSNorm and LayerNorm, by how "
        "far its entries were moved: LayerNorm always gives 0 and 1.",
    )


def norm_inputs(study: Study) -> pd.DataFrame:
    """What reaches the norms of a fresh network (:func:`fresh.norm_inputs`)."""
    loop = study.profile.loops[-1]
    return study.table(
        "tour", "tour_norm_inputs", lambda: fresh.norm_inputs(study.profile.recurrent, {}, study.data(loop.data))
    )


def norm_times(study: Study) -> pd.DataFrame:
    """Milliseconds of both norms: norm, ms."""
    width = preset(study.profile.recurrent).hidden_size
    return study.table(
        "tour",
        "tour_norm_times",
        lambda: pd.DataFrame(tour.norm_times(width, 4096).items(), columns=["norm", "ms"]),
    )


@dataclass(frozen=True)
class GradientPaths:
    """The gradient that arrives at each layer of fresh networks."""

    plain: pd.DataFrame  # without a norm before the read-out: model, seed, depth, norm
    ends: pd.DataFrame  # (norm before the read-out, model) × first layer passed, last, ratio
    standard: str
    shared: str


def gradient_paths(study: Study) -> GradientPaths:
    loop = study.profile.loops[-1]
    standard, shared = f"standard-{PASSES}x{loop.width}", f"recurrent-1x{PASSES}x{loop.width}"
    unshared = f"{shared} unshared"
    models = {standard: {}, shared: {}, unshared: {"block_sharing": "unshared"}}
    names.know({model: naming.of_preset(model) for model in (standard, shared)})
    names.know({unshared: names.Name(*(f"{name}, unshared" for name in naming.of_preset(shared)))})
    arriving = study.table(
        "tour", "tour_gradient_paths", lambda: fresh.gradient_paths(models, loop.seeds, study.data(loop.data))
    )
    means = arriving.groupby(["final_norm", "model", "depth"], sort=False)["norm"].mean().unstack("depth")
    ends = means[[1, PASSES]].set_axis(["first layer passed", "last"], axis=1)
    ends["ratio"] = ends["first layer passed"] / ends["last"]
    ends = ends.rename(index={False: "no norm", True: "norm"}).rename_axis(["before the read-out", "model"])
    plain = arriving[~arriving["final_norm"]].drop(columns="final_norm")
    return GradientPaths(plain, ends, standard, shared)


def draw_gradient_paths(study: Study, arriving: GradientPaths) -> Drawing:
    title = study.title(tour_claims.gradients_title, arriving.plain, arriving.shared, otherwise="Gradient by layer")
    return Drawing(
        gradient_figures.gradient_by_layer(arriving.plain, title),
        "08_gradient_paths",
        arriving.plain,
        alt="Norm of the gradient that arrives at each of six layers of fresh standard, shared and unshared encoders.",
    )


def readable_ends(arriving: GradientPaths) -> Styler:
    written = {"first layer passed": "{:.4f}", "last": "{:.4f}", "ratio": "{:.1f}"}
    return arriving.ends.rename(index=names.short, level="model").reset_index().style.format(written)


def gradient_signal(study: Study) -> pd.DataFrame:
    """How the gradient of a shared layer grows with its passes (:func:`fresh.gradient_signal`)."""
    loop = study.profile.loops[-1]
    return study.table(
        "tour",
        "tour_gradient_signal",
        lambda: fresh.gradient_signal(loop.width, DEPTHS, ALPHAS, loop.seeds, study.data(loop.data)),
    )


def draw_signal(study: Study, signal: pd.DataFrame) -> Drawing:
    title = study.title(tour_claims.signal_title, signal, DEPTHS[-1], otherwise="Gradient by passes")
    return Drawing(
        tour_figures.gradient_signal(signal, title),
        "08_gradient_signal",
        signal,
        alt="Gradient of a shared layer in units of one pass's contribution, and the first pass's "
        "contribution over the last's, by number of passes and α.",
    )
