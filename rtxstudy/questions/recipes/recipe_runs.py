"""Notebook 02: the search for a recipe of each encoder, and the published protocol."""

from __future__ import annotations

import dataclasses

import pandas as pd

from rtxlib.runs.spec import RunSpec
from rtxlib.training.recipe import RECIPES
from rtxstudy.profiles.profile import Profile
from rtxstudy.questions.recipes.recipe_search import BEST


def first_round(profile: Profile) -> list[RunSpec]:
    """Every trial of every arm once, on a share of the training rows. Without a search in the profile there is none."""
    search = profile.search
    if search is None:
        return []
    part = dataclasses.replace(search.data, train_fraction=search.share)
    return [RunSpec(arm, part, recipe) for arm in search.arms for recipe in search.recipes]


def finals(profile: Profile, first: pd.DataFrame | None = None) -> list[RunSpec]:
    """The best trials of each arm and its first trial, on all training rows and with several seeds.

    ``first``: the first round, with the columns ``arm``, ``trial`` (its number, from 0), ``val_accuracy`` and ``val_loss``. The
    accuracy decides, then the loss, then the order of the trials. Without ``first``, the trials with the most epochs stand for
    the best: the finals then cost at most about as much as these.
    """
    search = profile.search
    if search is None:
        return []
    recipes = search.recipes
    if first is None:
        order = sorted(range(1, len(recipes)), key=lambda trial: -recipes[trial].epochs)
        ranks = dict.fromkeys(search.arms, order)
    else:
        ranked = first.sort_values(list(BEST), ascending=list(BEST.values()))
        ranks = {arm: ranked.loc[ranked["arm"] == arm, "trial"].tolist() for arm in search.arms}
    return [
        RunSpec(arm, search.data, recipes[trial], seed)
        for arm in search.arms
        for trial in sorted({0, *ranks[arm][: search.finalists]})
        for seed in range(search.seeds)
    ]


def published_protocol(profile: Profile) -> list[RunSpec]:
    """Both encoders with the recipe `published`. Its source pads every text to 128 tokens, and this study does not."""
    if profile.published is None:
        return []
    models, seeds = (profile.standard, profile.recurrent), range(profile.published.seeds)
    return [RunSpec(model, profile.published.data, RECIPES["published"], seed) for model in models for seed in seeds]
