"""Notebooks 03 and 06: the study's encoders on further data, and tested on the data of one another."""

from __future__ import annotations

from collections.abc import Iterable

from rtxlib.runs.spec import RunSpec
from rtxstudy.profiles.profile import Profile, Task
from rtxstudy.questions.accuracy.accuracy_runs import matched


def on_task(profile: Profile, task: Task, models: Iterable[str]) -> list[RunSpec]:
    """The runs of some models on the data of a task: one per model and seed."""
    return [
        RunSpec(model, task.data, task.recipe or profile.recipe_of(model), seed)
        for model in dict.fromkeys(models)
        for seed in range(task.seeds)
    ]


def elsewhere(profile: Profile) -> list[RunSpec]:
    """Notebook 03: the two main encoders, and the standard encoders matched to the recurrent one, on other sentiment data."""
    models = [profile.standard, profile.recurrent, *matched(profile).values()]
    return [spec for task in profile.elsewhere for spec in on_task(profile, task, models)]


def unified(profile: Profile) -> list[RunSpec]:
    """Notebook 06: the two main encoders on the pooled domains, on each of their tasks."""
    return [spec for task in profile.unified for spec in on_task(profile, task, [profile.standard, profile.recurrent])]


def stars(profile: Profile) -> list[RunSpec]:
    """Notebook 06: the two main encoders on reviews of one star and of four and five; none where the profile has no such task."""
    return on_task(profile, profile.stars, [profile.standard, profile.recurrent]) if profile.stars else []


def sentiment_tasks(profile: Profile) -> list[Task]:
    """The data sets whose encoders are tested on one another: the headline data first."""
    return [Task(profile.data, profile.arm_seeds), *profile.elsewhere] if profile.cross_domain else []


def cross_domain(profile: Profile) -> list[RunSpec]:
    """Notebook 06: the two main encoders on each of :func:`sentiment_tasks`."""
    models = [profile.standard, profile.recurrent]
    return [spec for task in sentiment_tasks(profile) for spec in on_task(profile, task, models)]
