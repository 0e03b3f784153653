"""Notebooks 02 to 06: the standard and the recurrent encoder, and what changes between them: size, data and domain."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from rtxlib.data.spec import DataSpec
from rtxlib.models.presets import preset
from rtxlib.runs.spec import RunSpec
from rtxstudy.profiles.profile import Profile

UNSHARED = {"block_sharing": "unshared"}
RANDOM_DEPTH = {"depth_sampling": "uniform"}


def _seeds(profile: Profile, models: Iterable[str], data: DataSpec, seeds: int, **overrides: Any) -> list[RunSpec]:
    """One spec per model and seed, with the model's recipe."""
    return [RunSpec(model, data, profile.recipe_of(model), seed, overrides) for model in models for seed in range(seeds)]


def _both(profile: Profile, data: DataSpec) -> list[RunSpec]:
    """The standard and the recurrent encoder on other data than the headline's."""
    return _seeds(profile, [profile.standard, profile.recurrent], data, profile.arm_seeds)


def baseline(profile: Profile) -> list[RunSpec]:
    """Notebook 02: the standard encoder."""
    return _seeds(profile, [profile.standard], profile.data, profile.seeds)


def recurrent(profile: Profile) -> list[RunSpec]:
    """Notebook 03: the recurrent encoder, with its block shared and unshared."""
    return [
        spec
        for sharing in ({}, UNSHARED)
        for spec in _seeds(profile, [profile.recurrent], profile.data, profile.seeds, **(profile.variant | sharing))
    ]


def random_depth(profile: Profile) -> list[RunSpec]:
    """Notebook 11: an encoder that is trained with random depth on the headline task."""
    return [
        RunSpec(profile.random_depth, profile.data, profile.recipe_of(profile.random_depth), seed, RANDOM_DEPTH)
        for seed in range(profile.random_depth_seeds)
    ]


def grid(profile: Profile) -> list[RunSpec]:
    """Notebook 04: width × layers × passes; one pass is a standard encoder."""
    names = [
        f"standard-{layers}x{width}" if passes == 1 else f"recurrent-{layers}x{passes}x{width}"
        for width in profile.grid_widths
        for layers in profile.grid_layers
        for passes in profile.grid_passes
    ]
    return _seeds(profile, names, profile.grid_data or profile.data, profile.grid_seeds)


def data_size(profile: Profile) -> list[RunSpec]:
    """Notebook 04: both models on nested shares of the training rows. Shares below one have at least the least steps."""
    parts = [dataclasses.replace(profile.data, train_fraction=fraction) for fraction in profile.fractions]
    return [
        spec
        for part in parts
        for spec in (_both(profile, part) if part == profile.data else _long_enough(profile, _both(profile, part)))
    ]


def _long_enough(profile: Profile, specs: list[RunSpec]) -> list[RunSpec]:
    """The same runs with at least the optimiser steps that the profile asks for on parts of the data."""
    if profile.least_steps is None:
        return specs
    return [
        dataclasses.replace(spec, recipe=dataclasses.replace(spec.recipe, least_steps=profile.least_steps)) for spec in specs
    ]


def text_length(profile: Profile) -> list[RunSpec]:
    """Notebook 04: both models on the shortest and on the longest 30 % of the texts, with at least the least steps."""
    return [
        spec
        for lengths in ("shortest", "longest")
        for spec in _long_enough(profile, _both(profile, dataclasses.replace(profile.data, lengths=lengths)))
    ]


def matched(profile: Profile) -> dict[str, str]:
    """Standard encoders matched to the recurrent one, in parameters or in FLOPs.

    "parameters": as many layers as the recurrent block, at its width: exactly its parameters, 1/R of its arithmetic.
    "compute": as many layers as all its passes together, at its width: its arithmetic, the parameters of R blocks.
    """
    config = preset(profile.recurrent)
    return {
        "parameters": f"standard-{config.num_hidden_layers}x{config.hidden_size}",
        "compute": f"standard-{config.effective_depth}x{config.hidden_size}",
    }


def arms_of_width(profile: Profile) -> list[dict[str, str]]:
    """The encoders of notebook 05 and the reason for each: rows with the columns model and why."""
    alike = matched(profile)
    layers, passed = preset(profile.wide).effective_depth, preset(profile.deep).effective_depth
    return [
        {"model": profile.wide, "why": f"wide, with {layers} layers of its own"},
        {"model": profile.deep, "why": f"narrower and recurrent, with {passed} layers to pass through"},
        {"model": profile.standard, "why": "the standard encoder of the study"},
        {"model": profile.recurrent, "why": "the recurrent encoder of the study"},
        {"model": alike["parameters"], "why": "standard, with the recurrent encoder's width and parameters"},
        {"model": alike["compute"], "why": "standard, with the recurrent encoder's width and arithmetic"},
    ]


def width_vs_depth(profile: Profile) -> list[RunSpec]:
    """Notebook 05: the wide and the deep encoder, the two main encoders, and the matched standard encoders."""
    names = [profile.wide, profile.deep, profile.standard, profile.recurrent, *matched(profile).values()]
    return _seeds(profile, dict.fromkeys(names), profile.data, profile.arm_seeds)


def domains(profile: Profile) -> list[RunSpec]:
    """Notebook 06: which of three domains a review comes from."""
    return _both(profile, profile.domains)


def transfer(profile: Profile) -> list[RunSpec]:
    """Notebook 06: models trained on sentiment and tested on other data."""
    return _both(profile, profile.transfer_from)
