"""How large a study is: smoke (for tests), demo (minutes on two cores), full (the real data)."""

from __future__ import annotations

import contextlib
import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from rtxlib.data.datasets import MIX, MIX_FILE, mix_file
from rtxlib.data.spec import DataSpec
from rtxlib.errors import InputError, nearest, shortened, shown
from rtxlib.models.presets import preset
from rtxlib.runs.spec import data_label
from rtxlib.training.recipe import FOR_PRETRAINED, Recipe
from rtxlib.training.recipe import recipe as named_recipe
from rtxstudy.profiles.demo import DEMO
from rtxstudy.profiles.full import FULL
from rtxstudy.profiles.profile import ComposedTask, DepthTask, LongerTexts, LoopStudy, Profile, Search, Task
from rtxstudy.profiles.smoke import SMOKE

__all__ = [
    "PROFILES", "ComposedTask", "DepthTask", "LongerTexts", "LoopStudy", "Profile", "Search", "Task", "load", "within_reach",
]  # fmt: skip

MOST_SEEDS = 1_000  # of a study; each is a training of every model in it
KEPT_RECIPES = (*FOR_PRETRAINED, "pretrain", "distill")  # names of recipes that do not train a classifier from random weights
PROFILES: dict[str, Profile] = {profile.name: profile for profile in (SMOKE, DEMO, FULL)}


def load(
    name: str,
    seeds: int | None = None,
    recipe: str | None = None,
    epochs: float | None = None,
    rows: int | None = None,
    max_length: int | None = None,
    variant: Mapping[str, Any] | None = None,
) -> Profile:
    """The profile ``name`` with some settings changed everywhere in it. None leaves the profile's own.

    Args:
        name: one of :data:`PROFILES`.
        seeds: training seeds of each arm of each study.
        recipe: name of the recipe of every run from random weights. The recipe search, the published protocol, pretrainings and
            the small encoder on spam keep theirs.
        epochs: of the same runs.
        rows: most rows of each data set.
        max_length: most tokens of a text. The study of longer texts keeps its lengths, because they are what it compares.
        variant: ModelConfig fields that change the recurrent encoder.

    Raises InputError for an unknown name or a value out of range.
    """
    if name not in PROFILES:
        raise InputError(
            f"There is no profile '{shortened(name)}'; there are {', '.join(PROFILES)}.{nearest(name, PROFILES)}"
        )
    if seeds is not None and not 1 <= seeds <= MOST_SEEDS:
        raise InputError(f"seeds must be at least 1 and at most {MOST_SEEDS:,}, not {shown(seeds)}.")
    profile, variant = PROFILES[name], dict(variant or {})
    if "block_sharing" in variant:
        raise InputError(
            "The recurrent encoder is trained with its block shared and unshared anyway; leave block_sharing out."
        )
    for sharing in ("shared", "unshared"):  # raises InputError for unknown or contradictory fields
        preset(profile.recurrent, **variant, block_sharing=sharing)
    settings = {"rows": rows, "max_length": max_length, "epochs": epochs}
    sizes = {field: value for field, value in settings.items() if value is not None}
    changed = _changed(profile, seeds, recipe, sizes)
    labels = Counter(data_label(spec) for spec in set(changed.data_sets))
    if twice := [label for label, many in labels.items() if many > 1]:
        given = " and ".join(f"{field}={value}" for field, value in sizes.items())
        raise InputError(
            f"With {given} two data sets of the profile '{name}' have one name, {twice[0]}, because nothing else told them "
            "apart; choose another number, or leave it out."
        )
    return dataclasses.replace(changed, variant=variant, recipes={} if recipe else changed.recipes)


def within_reach(profile: Profile) -> tuple[Profile, str]:
    """The profile, without the mixed inference pairs where their file is not here; then a sentence says so, which is "" else."""
    tasks = tuple(task for task in profile.depth_tasks if task.data.source != MIX)
    if len(tasks) == len(profile.depth_tasks):
        return profile, ""
    with contextlib.suppress(InputError):
        mix_file()
        return profile, ""
    why = f"The mixed inference pairs are left out, because {MIX_FILE} is not here; data/README.md says what it holds."
    return dataclasses.replace(profile, depth_tasks=tasks), why


def _changed(part: Any, seeds: int | None, recipe: str | None, sizes: Mapping[str, float]) -> Any:
    """A profile, or a part of one, with other seeds, another recipe, and other sizes of its data and recipes."""
    again = partial(_changed, seeds=seeds, recipe=recipe, sizes=sizes)
    match part:
        case tuple():
            return tuple(map(again, part))
        case dict():
            return {name: again(value) for name, value in part.items()}
        case DataSpec():
            return dataclasses.replace(part, **{field: sizes[field] for field in ("rows", "max_length") if field in sizes})
        case Recipe():
            if part.name in KEPT_RECIPES:
                return part
            epochs = {"epochs": sizes["epochs"]} if "epochs" in sizes else {}
            return named_recipe(recipe, **epochs) if recipe else dataclasses.replace(part, **epochs)
        case Search():
            return dataclasses.replace(part, data=again(part.data), seeds=seeds or part.seeds)
        case LongerTexts():
            lengths = {"max_length": part.data.max_length}
            return dataclasses.replace(_fields_changed(part, seeds, again), data=dataclasses.replace(again(part.data), **lengths))
        case _ if dataclasses.is_dataclass(part):
            return _fields_changed(part, seeds, again)
    return part


def _fields_changed(part: Any, seeds: int | None, change: Callable[[Any], Any]) -> Any:
    """A dataclass with each field changed; a field of seeds becomes ``seeds``, but for 0, which says that nothing is trained."""
    values = {field.name: getattr(part, field.name) for field in dataclasses.fields(part) if field.name != "small_recipe"}
    return dataclasses.replace(
        part, **{name: value and (seeds or value) if name.endswith("seeds") else change(value) for name, value in values.items()}
    )
