"""How large a study is: smoke (seconds, for tests), demo (minutes on two cores), full (the real data)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
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

    profile = _with_seeds(profile, dict(variant or {}), **counts)
    if recipe is not None or epochs is not None:
        profile = _with_recipe(profile, recipe, epochs)
    return _with_sizes(profile, rows, max_length, domain_rows)


def _with_seeds(
    profile: Profile,
    variant: dict[str, Any],
    seeds: int | None,
    grid_seeds: int | None,
    pretrained_seeds: int | None,
    loop_seeds: int | None,
    random_depth_seeds: int | None,
    depth_seeds: int | None,
) -> Profile:
    """The profile with these seeds and this variant of the recurrent encoder; the arguments are those of :func:`load`."""

    def capped(given: int | None, own: int) -> int:
        """The number of seeds that is given; without one the profile's own, and never more than ``seeds``."""
        return given or min(own, seeds or own)

    def each(studies: Iterable[Any], number: Callable[[int], int]) -> tuple[Any, ...]:
        return tuple(dataclasses.replace(study, seeds=number(study.seeds)) for study in studies)

    def asked(own: int) -> int:
        return own and (seeds or own)

    def of_depth(own: int) -> int:
        return capped(depth_seeds, own)

    search, longer, published, stars = profile.search, profile.longer, profile.published, profile.stars
    return dataclasses.replace(
        profile,
        variant=variant,
        seeds=asked(profile.seeds),
        arm_seeds=asked(profile.arm_seeds),
        component_seeds=asked(profile.component_seeds),
        plan_b_seeds=asked(profile.plan_b_seeds),
        elsewhere=each(profile.elsewhere, asked),
        unified=each(profile.unified, asked),
        stars=stars and dataclasses.replace(stars, seeds=asked(stars.seeds)),
        longer=longer and dataclasses.replace(longer, seeds=asked(longer.seeds)),
        grid_seeds=capped(grid_seeds, profile.grid_seeds),
        pretrained_seeds=capped(pretrained_seeds, profile.pretrained_seeds),
        search=search and dataclasses.replace(search, seeds=capped(None, search.seeds)),
        published=published and (published[0], capped(None, published[1])),
        depth_seeds=of_depth(profile.depth_seeds),
        exit_studies=each(profile.exit_studies, of_depth),
        composed=each(profile.composed, of_depth),
        loops=each(profile.loops, lambda own: loop_seeds or own),
        random_depth_seeds=random_depth_seeds or profile.random_depth_seeds,
    )


def _with_recipe(profile: Profile, recipe: str | None, epochs: float | None) -> Profile:
    """The profile with this recipe, and with these epochs, for its runs from random weights; None leaves its own."""
    changes = {} if epochs is None else {"epochs": epochs}

    def other(usual: Recipe | None) -> Recipe | None:
        return usual and named_recipe(recipe or usual.name, **changes)

    def each(studies: Iterable[Any], field: str = "recipe") -> tuple[Any, ...]:
        return tuple(dataclasses.replace(study, **{field: other(getattr(study, field))}) for study in studies)

    longer, stars = profile.longer, profile.stars
    return dataclasses.replace(
        profile,
        recipe=other(profile.recipe),
        recipes={} if recipe else {model: dataclasses.replace(own, **changes) for model, own in profile.recipes.items()},
        loops=each(profile.loops),
        depth_tasks=each(each(profile.depth_tasks, "nothing"), "one_layer"),
        composed=tuple(one for task in profile.composed for one in (each([task]) if task.width else [task])),
        elsewhere=each(profile.elsewhere),
        unified=each(profile.unified),
        stars=stars and dataclasses.replace(stars, recipe=other(stars.recipe)),
        longer=longer and dataclasses.replace(longer, recipe=other(longer.recipe)),
    )


def _with_sizes(profile: Profile, rows: int | None, max_length: int | None, domain_rows: int | None) -> Profile:
    """The profile with at most so many rows and tokens; the arguments are those of :func:`load`."""

    def resized(data: DataSpec, most_rows: int | None = rows) -> DataSpec:
        sizes = {"rows": most_rows, "max_length": max_length}
        return dataclasses.replace(data, **{size: value for size, value in sizes.items() if value is not None})

    def each(studies: Iterable[Any]) -> tuple[Any, ...]:
        return tuple(dataclasses.replace(study, data=resized(study.data)) for study in studies)

    def texts_resized(study: Any) -> Any:
        return study and dataclasses.replace(study, data=tuple(map(resized, study.data)))

    def fewer(data: DataSpec) -> DataSpec:
        """The data with the asked rows. The study of longer texts keeps its lengths, because they are what it compares."""
        return data if rows is None else dataclasses.replace(data, rows=rows)

    of_domains = rows if domain_rows is None else domain_rows
    search, longer, published, stars = profile.search, profile.longer, profile.published, profile.stars
    return dataclasses.replace(
        profile,
        data=resized(profile.data),
        domains=resized(profile.domains, of_domains),
        transfer_from=resized(profile.transfer_from),
        transfer_to=resized(profile.transfer_to, of_domains),
        spam=resized(profile.spam),
        loops=each(profile.loops),
        depth_tasks=each(profile.depth_tasks),
        exit_studies=each(profile.exit_studies),
        composed=each(profile.composed),
        elsewhere=each(profile.elsewhere),
        unified=each(profile.unified),
        stars=stars and dataclasses.replace(stars, data=resized(stars.data)),
        longer=longer and dataclasses.replace(longer, data=fewer(longer.data)),
        grid_data=profile.grid_data and resized(profile.grid_data),
        own_text=texts_resized(profile.own_text),
        embeddings=texts_resized(profile.embeddings),
        search=search and dataclasses.replace(search, data=resized(search.data)),
        published=published and (resized(published[0]), published[1]),
    )
