"""Notebooks 03, 04 and 05: the recurrent encoder with one thing changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rtxlib.models.presets import preset
from rtxlib.runs.spec import RunSpec
from rtxstudy.profiles.profile import Profile


def components(profile: Profile) -> dict[str, dict[str, Any]]:
    """Name → the ModelConfig fields that it changes. The first one is the study's own encoder.

    A gated feed-forward has three matrices and a plain one two. "GELU, as many parameters" is therefore wider inside.
    """
    inner = preset(profile.recurrent).resolved_intermediate_size
    return {
        "the study's own": {},
        "LayerNorm": {"norm": "layernorm"},
        "GELU": {"feedforward": "gelu"},
        "GELU, as many parameters": {"feedforward": "gelu", "intermediate_size": 3 * inner // 2},
        "learned positions": {"position": "learned"},
        "sinusoidal positions": {"position": "sinusoidal"},
        "ALiBi": {"position": "alibi"},
        "no positions": {"position": "none"},
        "post-norm": {"norm_placement": "post"},
    }


def plan_b(profile: Profile) -> dict[str, dict[str, Any]]:
    """Name → the ModelConfig fields that it changes. The first one is the study's own encoder.

    The others are what the proposal wants to try if the recurrent encoder loses: an α of each pass that is learned, and a light
    layer of its own before each later pass. Its feed-forward is as wide as the encoder, a quarter of the block's.
    """
    width = preset(profile.recurrent).hidden_size
    learned, conditioning = {"residual": "learned"}, {"conditioning_size": width}
    return {
        "the study's own": {},
        "learned α": learned,
        "conditioning": conditioning,
        "learned α and conditioning": learned | conditioning,
    }


def switched(
    profile: Profile, changes: Callable[[Profile], dict[str, dict[str, Any]]], name: str, seeds: int
) -> list[RunSpec]:
    """The runs of one entry of :func:`components` or :func:`plan_b` on the headline data."""
    words = profile.variant | changes(profile)[name]
    return [RunSpec(profile.recurrent, profile.data, profile.recipe, seed, words) for seed in range(seeds)]


def component_runs(profile: Profile) -> list[RunSpec]:
    """Notebook 05: every entry of :func:`components`."""
    return [
        spec for name in components(profile) for spec in switched(profile, components, name, profile.component_seeds)
    ]


def plan_b_runs(profile: Profile) -> list[RunSpec]:
    """Notebook 03: every entry of :func:`plan_b`."""
    return [spec for name in plan_b(profile) for spec in switched(profile, plan_b, name, profile.plan_b_seeds)]


POSITIONS: dict[str, dict[str, Any]] = {
    "rotary": {},  # the study's own
    "ALiBi": {"position": "alibi"},
    "learned": {"position": "learned"},
}


def with_position(profile: Profile, name: str) -> list[RunSpec]:
    """Notebook 04: the recurrent encoder with one of :data:`POSITIONS`, trained on short texts.

    Empty where the profile has no study of longer texts.
    """
    how = profile.longer
    if how is None:
        return []
    recipe = how.recipe or profile.recipe
    return [RunSpec(profile.recurrent, how.data, recipe, seed, POSITIONS[name]) for seed in range(how.seeds)]


def longer_texts(profile: Profile) -> list[RunSpec]:
    """Notebook 04: the recurrent encoder with each of :data:`POSITIONS`, trained on short texts."""
    return [spec for name in POSITIONS for spec in with_position(profile, name)]
