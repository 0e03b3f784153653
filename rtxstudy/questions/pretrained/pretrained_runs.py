"""Notebook 07: encoders that others have pretrained."""

from __future__ import annotations

import dataclasses

from rtxlib.data.spec import DataSpec
from rtxlib.runs.spec import RunSpec
from rtxlib.training.recipe import RECIPES
from rtxstudy.profiles.profile import Profile


def _splits(profile: Profile) -> list[DataSpec]:
    """The spam data, split by seed. One split per seed, because one test split has too few spam messages."""
    return [dataclasses.replace(profile.spam, seed=seed) for seed in range(profile.pretrained_seeds)]


def spam(profile: Profile) -> list[RunSpec]:
    """Notebook 07: a small BERT is trained from scratch on spam."""
    return [RunSpec(profile.small, data, profile.small_recipe, data.seed) for data in _splits(profile)]


def finetuning(profile: Profile) -> list[RunSpec]:
    """Notebook 07: the pretrained encoder on spam, whole and frozen, and on the headline task, with its own tokenizer."""
    frozen = dataclasses.replace(RECIPES["frozen"], epochs=profile.finetune_spam.epochs)
    tasks = [(data, recipe, data.seed) for recipe in (profile.finetune_spam, frozen) for data in _splits(profile)]
    tasks += [(profile.data, profile.finetune, seed) for seed in range(profile.pretrained_seeds)]
    return [
        RunSpec(profile.pretrained, dataclasses.replace(data, tokenizer=profile.pretrained), recipe, seed)
        for data, recipe, seed in tasks
    ]
