"""The named experiments: each turns a profile into the list of runs that answers one question."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

from rtxlib.data.spec import DataSpec
from rtxlib.experiments.profiles import Profile
from rtxlib.experiments.spec import RunSpec
from rtxlib.models.presets import preset
from rtxlib.training.recipe import RECIPES

UNSHARED = {"block_sharing": "unshared"}


def _seeds(
    profile: Profile, models: Iterable[str], data: DataSpec, seeds: int | None = None, **overrides: str
) -> list[RunSpec]:
    return [
        RunSpec(model, data, profile.recipe, seed, overrides)
        for model in models
        for seed in range(seeds or profile.seeds)
    ]


def baseline(profile: Profile) -> list[RunSpec]:
    """Notebook 02: the standard encoder."""
    return _seeds(profile, [profile.standard], profile.data)


def recurrent(profile: Profile) -> list[RunSpec]:
    """Notebook 03: the recurrent encoder, its block shared and unshared."""
    return _seeds(profile, [profile.recurrent], profile.data) + _seeds(
        profile, [profile.recurrent], profile.data, **UNSHARED
    )


def grid(profile: Profile) -> list[RunSpec]:
    """Notebook 04: width × layers × iterations; one iteration is the standard encoder."""
    names = [
        f"standard-{layers}x{width}" if depth == 1 else f"recurrent-{layers}x{depth}x{width}"
        for width in profile.grid_widths
        for layers in profile.grid_layers
        for depth in profile.grid_depths
    ]
    return _seeds(profile, names, profile.data, profile.grid_seeds)


def data_size(profile: Profile) -> list[RunSpec]:
    """Notebook 04: both models on nested shares of the training rows."""
    return [
        spec
        for fraction in profile.fractions
        for spec in _seeds(
            profile, [profile.standard, profile.recurrent], dataclasses.replace(profile.data, train_fraction=fraction)
        )
    ]


def text_length(profile: Profile) -> list[RunSpec]:
    """Notebook 04: both models on the shortest and on the longest 30 % of the texts."""
    return [
        spec
        for lengths in ("shortest", "longest")
        for spec in _seeds(
            profile, [profile.standard, profile.recurrent], dataclasses.replace(profile.data, lengths=lengths)
        )
    ]


def matched(profile: Profile) -> dict[str, str]:
    """Standard encoders that take one advantage each away from the comparison with the recurrent one.

    "parameters": as many layers as the recurrent block, at its width: exactly its parameters, 1/R of its arithmetic.
    "compute": as many layers as the recurrent encoder passes through, at its width: its arithmetic, R blocks' parameters.
    """
    config = preset(profile.recurrent)
    return {
        "parameters": f"standard-{config.num_hidden_layers}x{config.hidden_size}",
        "compute": f"standard-{config.effective_depth}x{config.hidden_size}",
    }


def width_vs_depth(profile: Profile) -> list[RunSpec]:
    """Notebook 05: wide against deep, and the standard encoders matched to the recurrent one."""
    names = [profile.wide, profile.deep, profile.standard, profile.recurrent, *matched(profile).values()]
    return _seeds(profile, dict.fromkeys(names), profile.data)


def domains(profile: Profile) -> list[RunSpec]:
    """Notebook 06: which of three domains a review comes from."""
    return _seeds(profile, [profile.standard, profile.recurrent], profile.domains)


def transfer(profile: Profile) -> list[RunSpec]:
    """Notebook 06: the models whose sentiment is tried on other data."""
    return _seeds(profile, [profile.standard, profile.recurrent], profile.transfer_from)


def _splits(profile: Profile) -> list[DataSpec]:
    """The spam data split anew for each seed: one test split holds too few spam messages to tell models apart."""
    return [dataclasses.replace(profile.spam, seed=seed) for seed in range(profile.pretrained_seeds)]


def spam(profile: Profile) -> list[RunSpec]:
    """Notebook 07: a small BERT learns spam from nothing."""
    return [RunSpec(profile.small, data, profile.small_recipe, data.seed) for data in _splits(profile)]


def finetuning(profile: Profile) -> list[RunSpec]:
    """Notebook 07: the pretrained encoder on spam, whole and frozen, and on the headline task; its tokenizer goes with it."""
    frozen = dataclasses.replace(RECIPES["frozen"], epochs=profile.finetune_spam.epochs)
    tasks = [(data, recipe, data.seed) for recipe in (profile.finetune_spam, frozen) for data in _splits(profile)]
    tasks += [(profile.data, profile.finetune, seed) for seed in range(profile.pretrained_seeds)]
    return [
        RunSpec(profile.pretrained, dataclasses.replace(data, tokenizer=profile.pretrained), recipe, seed)
        for data, recipe, seed in tasks
    ]


STUDIES: dict[str, dict[str, Callable[[Profile], list[RunSpec]]]] = {
    "02_baseline": {"baseline": baseline},
    "03_recurrent": {"baseline": baseline, "recurrent": recurrent},
    "04_sensitivity": {"grid": grid, "data_size": data_size, "text_length": text_length},
    "05_width_vs_depth": {"width_vs_depth": width_vs_depth},
    "06_domain_classification": {"domains": domains, "transfer": transfer},
    "07_pretrained_encoders": {"spam": spam, "finetuning": finetuning, "baseline": baseline, "recurrent": recurrent},
}
