"""Notebooks 03, 04 and 05: the recurrent encoder with one thing changed."""

from __future__ import annotations

from typing import Any

from rtxlib.models.presets import preset
from rtxlib.runs.spec import RunSpec
from rtxstudy.profiles.profile import LongerTexts, Profile, Task


def components(profile: Profile) -> dict[str, dict[str, Any]]:
    """Name → the ModelConfig fields that it changes. The first one is the study's own encoder.

    A gated feed-forward has three matrices and a plain one two. "GELU, as many parameters" is therefore wider inside. Sinusoids
    are of size 1 and the study's token vectors of size 0.02, so they are also added to vectors of size 1, as by Vaswani et al.
    (2017): drawn with standard deviation 1/√d and multiplied by √d.
    """
    own = preset(profile.recurrent)
    size_one = {"embedding_scale": True, "embedding_initializer_range": own.hidden_size**-0.5}
    return {
        "the study's own": {},
        "LayerNorm": {"norm": "layernorm"},
        "GELU": {"feedforward": "gelu"},
        "GELU, as many parameters": {"feedforward": "gelu", "intermediate_size": 3 * own.resolved_intermediate_size // 2},
        "learned positions": {"position": "learned"},
        "sinusoidal positions": {"position": "sinusoidal"},
        "sinusoidal positions, tokens of their size": {"position": "sinusoidal"} | size_one,
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


def component_arms(profile: Profile) -> dict[str, list[RunSpec]]:
    """Notebook 05: name → the runs of each entry of :func:`components` on the headline data; empty without seeds for them."""
    return _headline(profile, components(profile), profile.component_seeds)


def plan_b_arms(profile: Profile) -> dict[str, list[RunSpec]]:
    """Notebook 03: name → the runs of each entry of :func:`plan_b` on the headline data; empty without seeds for them."""
    return _headline(profile, plan_b(profile), profile.plan_b_seeds)


def _headline(profile: Profile, changes: dict[str, dict[str, Any]], seeds: int) -> dict[str, list[RunSpec]]:
    varied = {name: profile.variant | words for name, words in changes.items()}
    return _arms(profile, Task(profile.data, seeds), varied) if seeds else {}


def _arms(profile: Profile, task: Task | LongerTexts, changes: dict[str, dict[str, Any]]) -> dict[str, list[RunSpec]]:
    """Name → the runs of the recurrent encoder with these changes, on the data of a task."""
    model, recipe = profile.recurrent, task.recipe or profile.recipe_of(profile.recurrent)
    return {
        name: [RunSpec(model, task.data, recipe, seed, words) for seed in range(task.seeds)]
        for name, words in changes.items()
    }


POSITIONS: dict[str, dict[str, Any]] = {
    "rotary": {},  # the study's own
    "ALiBi": {"position": "alibi"},
    "learned": {"position": "learned"},
}


def position_arms(profile: Profile) -> dict[str, list[RunSpec]]:
    """Notebook 04: name → the runs of the recurrent encoder with each of :data:`POSITIONS`, trained on short texts.

    Empty where the profile has no study of longer texts.
    """
    return _arms(profile, profile.longer, POSITIONS) if profile.longer else {}
