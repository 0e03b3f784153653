"""Notebooks 03 and 11: variants of the loop, and the worth of a pass."""

from __future__ import annotations

from typing import Any

from rtxlib.runs.spec import RunSpec
from rtxstudy.profiles.profile import ComposedTask, LoopStudy, Profile
from rtxstudy.questions.accuracy.accuracy_runs import RANDOM_DEPTH, UNSHARED


def forms(loop: LoopStudy) -> dict[str, dict[str, Any]]:
    """Variant name → the ModelConfig fields that it changes."""
    return {
        "from_second": {},  # the study's own loop: a residual from the second pass on, with α = ½
        **{f"α = {alpha:g}": {"residual_scale": alpha} for alpha in loop.alphas},
        "unshared": UNSHARED,
        **{residual: {"residual": residual} for residual in ("none", "every", "learned", "damped", "gated")},
        "input_injection": {"input_injection": True},
        "loop_norm": {"loop_norm": True},
        "sandwich": {"norm_placement": "sandwich"},
        "iteration_embedding": {"iteration_embedding": True},
        "conditioning": {"conditioning_size": loop.width},  # a quarter of the feed-forward's inner width
        "prelude_and_coda": {"prelude_layers": 1, "coda_layers": 1},
        "factorised": {"embedding_size": loop.width // 4},
        "random_depth": RANDOM_DEPTH,
    }


def form(loop: LoopStudy, name: str) -> list[RunSpec]:
    """The runs of one of :func:`forms`: one layer, passed ``loop.passes`` times."""
    model = f"recurrent-1x{loop.passes}x{loop.width}"
    return [RunSpec(model, loop.data, loop.recipe, seed, forms(loop)[name]) for seed in range(loop.seeds)]


def variants(profile: Profile) -> list[RunSpec]:
    """Notebook 03: every variant of the loop, in each ablation of the profile."""
    return [spec for loop in profile.loops for name in forms(loop) for spec in form(loop, name)]


def shape(loop: LoopStudy | ComposedTask, layers: int, passes: int) -> list[RunSpec]:
    """Notebooks 03 and 09: a standard encoder (one pass), or a loop that equals a deeper one except for weight sharing.

    Without a residual across passes, N layers passed R times *are* a standard encoder of N·R layers with shared weights.
    """
    if passes == 1:
        model, words = f"standard-{layers}x{loop.width}", {}
    else:
        model, words = f"recurrent-{layers}x{passes}x{loop.width}", {"residual": "none"}
    return [RunSpec(model, loop.data, loop.recipe, seed, words) for seed in range(loop.seeds)]


def shapes(loop: LoopStudy) -> list[tuple[int, int]]:
    """(layers, passes) of every compared model, standard encoders first."""
    return [*((layers, 1) for layers in loop.layers), *loop.shapes]


def depths(profile: Profile) -> list[RunSpec]:
    """Notebook 11: encoders of several layers and loops of several passes, to estimate the worth of a pass."""
    return [spec for loop in profile.loops for sizes in shapes(loop) for spec in shape(loop, *sizes)]
