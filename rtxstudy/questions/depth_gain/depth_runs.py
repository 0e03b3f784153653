"""Notebook 09: a deep encoder, a shallow one and a loop on each task, in each regime."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from rtx.distillation import Distillation
from rtxlib.data.spec import DataSpec
from rtxlib.runs.pretraining import Pretraining
from rtxlib.runs.spec import RunSpec
from rtxlib.training.recipe import Recipe
from rtxstudy.profiles.conversions import LOWER
from rtxstudy.profiles.profile import DepthTask, LoopStudy, Profile
from rtxstudy.questions.accuracy.accuracy_runs import matched
from rtxstudy.questions.forms.loop_runs import shape

# Names of regimes
SCRATCH, OWN_TEXT = "from scratch", "own text first"
MADE, MADE_LOWER = "made from a pretrained encoder", "made of its lower layers"


class Trio(NamedTuple):
    """The three arms of one task in one regime, with the same seeds."""

    regime: str
    deep: list[RunSpec]  # N·R layers of their own
    shallow: list[RunSpec]  # N layers
    loop: list[RunSpec]  # the same N layers, passed R times


def _from_scratch(profile: Profile, task: DepthTask, recipe: Recipe) -> Trio:
    """Encoders of one width with random weights.

    Without a residual across passes the loop differs from the deep encoder in sharing alone. On the headline data each encoder
    has its own recipe of the profile, unless the task asks for another recipe than the profile's.
    """
    alike = matched(profile)
    arms = ((alike["compute"], {}), (alike["parameters"], {}), (profile.recurrent, {"residual": "none"}))
    seeds, headline = range(profile.depth_seeds), (task.data, recipe) == (profile.data, profile.recipe)

    def arm(model: str, words: dict[str, Any]) -> list[RunSpec]:
        model_recipe = profile.recipe_of(model) if headline else recipe
        return [RunSpec(model, task.data, model_recipe, seed, words) for seed in seeds]

    return Trio(SCRATCH, *(arm(*each) for each in arms))


def _one_layer(profile: Profile, task: DepthTask, recipe: Recipe) -> Trio:
    """The narrow encoders of notebook 03, or as narrow ones: one layer, passed once or several times, and several layers."""
    loops = {loop.data: (loop.width, loop.passes) for loop in profile.loops}
    width, passes = task.narrow or loops[task.data]
    loop = LoopStudy(task.data, recipe, width, passes, layers=(), shapes=(), seeds=profile.depth_seeds)
    arms = (shape(loop, loop.passes, 1), shape(loop, 1, 1), shape(loop, 1, loop.passes))
    return Trio(f"from scratch, one layer, {loop.width} wide", *arms)


def _own_text(profile: Profile, task: DepthTask, recipe: Recipe) -> Trio:
    """The encoders of :func:`_from_scratch` with a factorised embedding matrix, pretrained on the study's own texts first.

    The three pretrainings have the same words, optimiser steps and seed. The seeds of the runs vary the fine-tuning alone. The
    words leave out the evaluation texts of every task of this regime, and of the data that the profile names for it.
    """
    own_text, alike = profile.own_text, matched(profile)
    tokenizer, table = own_text.data[0].tokenizer, {"embedding_size": own_text.embedding_size}
    evaluated = (*(each.data for each in profile.depth_tasks if each.own_text), *own_text.kept_out)
    data, *others = (dataclasses.replace(each, tokenizer=tokenizer) for each in (task.data, *evaluated))
    # In an order of their own: the order of the tasks changes no key.
    kept_out = tuple(sorted(set(others), key=lambda spec: (spec.source, str(spec))))

    def arm(model: str, words: dict[str, Any], hidden_tokens: Recipe = own_text.recipe) -> list[RunSpec]:
        first = Pretraining(model, own_text.data, hidden_tokens, kept_out, overrides=words, length=own_text.length)
        return [RunSpec(model, data, recipe, seed, words, pretraining=first) for seed in range(profile.depth_seeds)]

    loop = arm(profile.recurrent, table | {"residual": "none"}, own_text.loop_recipe)
    return Trio(OWN_TEXT, arm(alike["compute"], table), arm(alike["parameters"], table), loop)


def made_of(profile: Profile, data: DataSpec, recipe: Recipe, seed: int, **conversion: Any) -> RunSpec:
    data_spec = dataclasses.replace(data, tokenizer=profile.pretrained)
    return RunSpec(profile.pretrained, data_spec, recipe, seed, conversion=conversion)


def _made(profile: Profile, task: DepthTask, recipe: Recipe) -> Trio:
    """The whole pretrained encoder, the study's loop made from it, and the loop's layers passed once."""
    return _around(profile.conversions[0], MADE, profile, task, recipe)


def _lower(profile: Profile, task: DepthTask, recipe: Recipe) -> Trio:
    """The same with a loop of the encoder's lower layers."""
    return _around(LOWER, MADE_LOWER, profile, task, recipe)


def _around(loop: dict[str, Any], regime: str, profile: Profile, task: DepthTask, recipe: Recipe) -> Trio:
    arms, seeds = ({}, loop | {"passes": 1}, loop), range(profile.depth_seeds)
    return Trio(regime, *([made_of(profile, task.data, recipe, seed, **arm) for seed in seeds] for arm in arms))


def _taught(profile: Profile, task: DepthTask, recipe: Recipe) -> Trio:
    """The same; the shallow encoder and the loop also learn from the fine-tuned deep one with their seed."""
    plain = _made(profile, task, dataclasses.replace(recipe, distillation=0.0))
    students = (
        [
            dataclasses.replace(spec, recipe=recipe, teacher=teacher)
            for spec, teacher in zip(arm, plain.deep, strict=True)
        ]
        for arm in (plain.shallow, plain.loop)
    )
    return Trio("made, and taught by the deep one", plain.deep, *students)


# Field of DepthTask → the arms of its regime
REGIMES: dict[str, Callable[[Profile, DepthTask, Recipe], Trio]] = {
    "scratch": _from_scratch,
    "one_layer": _one_layer,
    "own_text": _own_text,
    "made": _made,
    "lower": _lower,
    "taught": _taught,
}
WITHOUT_WEIGHTS = ("scratch", "one_layer", "own_text")  # the regimes that need no pretrained weights from elsewhere


def trios(profile: Profile, regimes: Iterable[str] = REGIMES) -> list[Trio]:
    """Notebook 09: the arms of every task, regime by regime."""
    return [
        REGIMES[regime](profile, task, recipe)
        for regime in regimes
        for task in profile.depth_tasks
        if (recipe := getattr(task, regime)) is not None
    ]


def where_depth_pays(profile: Profile) -> list[RunSpec]:
    """Notebook 09: encoders from random weights, deep, shallow and looped, some of them pretrained on the study's own texts.

    Runs of one seed stand together where they are pretrained, so that workers pretrain different encoders at the same time.
    """
    scratch = [spec for trio in trios(profile, ["scratch", "one_layer"]) for arm in trio[1:] for spec in arm]
    own_text = [spec for trio in trios(profile, ["own_text"]) for arms in zip(*trio[1:], strict=True) for spec in arms]
    return scratch + own_text


def converted(profile: Profile) -> list[RunSpec]:
    """Notebook 09: the same arms, made from a pretrained encoder. Regimes of one task share the deep one."""
    specs = [spec for trio in trios(profile, ["made", "lower", "taught"]) for arm in trio[1:] for spec in arm]
    return list(dict.fromkeys(specs))


def conversions(profile: Profile) -> list[RunSpec]:
    """Notebook 09: every way to make a loop, with one seed on the first task."""
    task = profile.depth_tasks[0]
    return [made_of(profile, task.data, task.made, 0, **way) for way in profile.conversions if task.made]


def distillations(profile: Profile) -> list[Distillation]:
    """Notebook 12: the loop, and its layers passed once, learn the embeddings of the whole pretrained encoder.

    The texts that notebook 12 searches are kept out. Without an embedding study in the profile there are none.
    """
    how, loop = profile.embeddings, profile.conversions[0]
    if how is None:
        return []
    searched = (profile.domains, profile.data)
    return [
        Distillation(
            profile.pretrained,
            profile.pretrained,
            how.data,
            how.recipe,
            searched,
            conversion=conversion,
            length=how.length,
        )
        for conversion in (loop | {"passes": 1}, loop)
    ]


def leaving_early(profile: Profile) -> list[RunSpec]:
    """Notebook 12: loops made of pretrained layers, trained with random depth, which texts may leave early."""
    return [
        made_of(profile, one.data, one.recipe, seed, **one.conversion)
        for one in profile.exit_studies
        for seed in range(one.seeds)
    ]
