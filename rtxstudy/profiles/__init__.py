"""How large a study is: smoke (seconds, for tests), demo (minutes on two cores), full (the real data)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from rtxlib.data.spec import DataSpec
from rtxlib.errors import InputError, nearest, shortened, shown
from rtxlib.models.presets import preset
from rtxlib.training.recipe import Recipe
from rtxlib.training.recipe import recipe as named_recipe
from rtxstudy.profiles.demo import DEMO
from rtxstudy.profiles.full import FULL
from rtxstudy.profiles.profile import ComposedTask, DepthTask, LongerTexts, LoopStudy, Profile, Search, Task
from rtxstudy.profiles.smoke import SMOKE

__all__ = ["PROFILES", "ComposedTask", "DepthTask", "LongerTexts", "LoopStudy", "Profile", "Search", "Task", "load"]

MOST_SEEDS = 1_000  # of a study; each is a training of every model in it
PROFILES: dict[str, Profile] = {profile.name: profile for profile in (SMOKE, DEMO, FULL)}


def load(
    name: str,
    seeds: int | None = None,
    recipe: str | None = None,
    rows: int | None = None,
    max_length: int | None = None,
    epochs: float | None = None,
    domain_rows: int | None = None,
    pretrained_seeds: int | None = None,
    grid_seeds: int | None = None,
    loop_seeds: int | None = None,
    random_depth_seeds: int | None = None,
    depth_seeds: int | None = None,
    variant: Mapping[str, Any] | None = None,
) -> Profile:
    """The profile ``name`` with the given settings changed. None leaves the profile's own value.

    Args:
        name: one of :data:`PROFILES`.
        seeds: seeds of every study except the ablations of the loop and random depth.
        recipe: name of the recipe of every run except the spam and fine-tuning runs, which keep their own. The recipe search and
            the published protocol keep theirs, too.
        rows: most rows of each data set.
        max_length: most tokens of a text.
        epochs: epochs of every run except the spam and fine-tuning runs, in place of the recipe's. Pretrainings, the recipe
            search and the published protocol keep theirs.
        domain_rows: most rows of the domain task and of the data on which transfer is tested, in place of ``rows``.
        pretrained_seeds: seeds of each spam and fine-tuning run; default: the profile's value, at most ``seeds``.
        grid_seeds: seeds of a grid cell; default: the profile's value, at most ``seeds``.
        loop_seeds: seeds of each ablation of the loop.
        random_depth_seeds: seeds of the encoder that is trained with random depth.
        depth_seeds: seeds of each arm of notebook 09; default: the profile's value, at most ``seeds``.
        variant: ModelConfig fields that change the recurrent encoder.

    Raises InputError for an unknown name or a value out of range.
    """
    if name not in PROFILES:
        raise InputError(
            f"There is no profile '{shortened(name)}'; there are {', '.join(PROFILES)}.{nearest(name, PROFILES)}"
        )
    profile = PROFILES[name]
    counts = {
        "seeds": seeds,
        "grid_seeds": grid_seeds,
        "pretrained_seeds": pretrained_seeds,
        "loop_seeds": loop_seeds,
        "random_depth_seeds": random_depth_seeds,
        "depth_seeds": depth_seeds,
    }
    for setting, value in counts.items():
        if value is not None and not 1 <= value <= MOST_SEEDS:
            raise InputError(f"{setting} must be at least 1 and at most {MOST_SEEDS:,}, not {shown(value)}.")

    if "block_sharing" in (variant or {}):
        raise InputError(
            "The recurrent encoder is trained with its block shared and unshared anyway; leave block_sharing out."
        )
    for sharing in ("shared", "unshared"):  # raises InputError for unknown or contradictory fields
        preset(profile.recurrent, **(variant or {}), block_sharing=sharing)

    def capped(given: int | None, own: int) -> int:
        """The number of seeds that is given; without one the profile's own, and never more than ``seeds``."""
        return given or min(own, seeds or own)

    profile = dataclasses.replace(
        profile,
        seeds=seeds or profile.seeds,
        arm_seeds=seeds or profile.arm_seeds,
        variant=dict(variant or {}),
        grid_seeds=capped(grid_seeds, profile.grid_seeds),
        pretrained_seeds=capped(pretrained_seeds, profile.pretrained_seeds),
        random_depth_seeds=random_depth_seeds or profile.random_depth_seeds,
        depth_seeds=capped(depth_seeds, profile.depth_seeds),
        loops=tuple(dataclasses.replace(loop, seeds=loop_seeds or loop.seeds) for loop in profile.loops),
        exit_studies=tuple(
            dataclasses.replace(one, seeds=capped(depth_seeds, one.seeds)) for one in profile.exit_studies
        ),
        composed=tuple(dataclasses.replace(task, seeds=capped(depth_seeds, task.seeds)) for task in profile.composed),
        search=profile.search and dataclasses.replace(profile.search, seeds=capped(None, profile.search.seeds)),
        elsewhere=tuple(dataclasses.replace(task, seeds=seeds or task.seeds) for task in profile.elsewhere),
        unified=tuple(dataclasses.replace(task, seeds=seeds or task.seeds) for task in profile.unified),
        component_seeds=profile.component_seeds and (seeds or profile.component_seeds),
        plan_b_seeds=profile.plan_b_seeds and (seeds or profile.plan_b_seeds),
        longer=profile.longer and dataclasses.replace(profile.longer, seeds=seeds or profile.longer.seeds),
    )
    if recipe is not None or epochs is not None:
        changes = {} if epochs is None else {"epochs": epochs}

        def other(usual: Recipe) -> Recipe:
            return named_recipe(recipe or usual.name, **changes)

        loops = tuple(dataclasses.replace(loop, recipe=other(loop.recipe)) for loop in profile.loops)
        tasks = tuple(
            dataclasses.replace(task, nothing=task.nothing and other(task.nothing)) for task in profile.depth_tasks
        )
        composed = tuple(
            dataclasses.replace(task, recipe=other(task.recipe)) if task.width else task for task in profile.composed
        )
        own = {} if recipe else {model: dataclasses.replace(one, **changes) for model, one in profile.recipes.items()}
        profile = dataclasses.replace(
            profile, recipe=other(profile.recipe), recipes=own, loops=loops, depth_tasks=tasks, composed=composed
        )
        further = {
            name: tuple(dataclasses.replace(task, recipe=task.recipe and other(task.recipe)) for task in getattr(profile, name))
            for name in ("elsewhere", "unified")
        }
        if profile.longer and profile.longer.recipe:
            further["longer"] = dataclasses.replace(profile.longer, recipe=other(profile.longer.recipe))
        profile = dataclasses.replace(profile, **further)

    def resized(data: DataSpec, most_rows: int | None = rows) -> DataSpec:
        sizes = {"rows": most_rows, "max_length": max_length}
        return dataclasses.replace(data, **{size: value for size, value in sizes.items() if value is not None})

    def each_resized(studies: Iterable[Any]) -> tuple[Any, ...]:
        return tuple(dataclasses.replace(study, data=resized(study.data)) for study in studies)

    def texts_resized(study: Any) -> Any:
        return study and dataclasses.replace(study, data=tuple(map(resized, study.data)))

    def fewer(data: DataSpec) -> DataSpec:
        """The data with the asked rows. The study of longer texts keeps its lengths, because they are what it compares."""
        return data if rows is None else dataclasses.replace(data, rows=rows)

    of_domains = rows if domain_rows is None else domain_rows
    return dataclasses.replace(
        profile,
        data=resized(profile.data),
        domains=resized(profile.domains, of_domains),
        transfer_from=resized(profile.transfer_from),
        transfer_to=resized(profile.transfer_to, of_domains),
        spam=resized(profile.spam),
        loops=each_resized(profile.loops),
        depth_tasks=each_resized(profile.depth_tasks),
        exit_studies=each_resized(profile.exit_studies),
        composed=each_resized(profile.composed),
        elsewhere=each_resized(profile.elsewhere),
        unified=each_resized(profile.unified),
        longer=profile.longer and dataclasses.replace(profile.longer, data=fewer(profile.longer.data)),
        grid_data=profile.grid_data and resized(profile.grid_data),
        own_text=texts_resized(profile.own_text),
        embeddings=texts_resized(profile.embeddings),
        search=profile.search and dataclasses.replace(profile.search, data=resized(profile.search.data)),
        published=profile.published and (resized(profile.published[0]), capped(None, profile.published[1])),
    )
