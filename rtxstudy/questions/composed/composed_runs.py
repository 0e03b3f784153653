"""Notebook 09: the encoders of the tasks whose answer must be computed."""

from __future__ import annotations

from rtxlib.runs.spec import RunSpec
from rtxstudy.profiles.profile import ComposedTask, Profile
from rtxstudy.questions.accuracy.accuracy_runs import RANDOM_DEPTH
from rtxstudy.questions.depth_gain.depth_runs import MADE_LOWER, SCRATCH, Trio, made_of
from rtxstudy.questions.forms.loop_runs import shape


def composed_shape(profile: Profile, task: ComposedTask, layers: int, passes: int) -> list[RunSpec]:
    """Notebook 09: a standard encoder (one pass) or a loop for a composed task.

    It has random weights, or is made of the lower layers of the pretrained encoder.
    """
    if task.width is not None:
        return shape(task, layers, passes)
    whole = (layers, passes) == (task.layers * task.passes, 1)
    conversion = {} if whole else {"layers": layers, "passes": passes, "start": "lower"}
    return [made_of(profile, task.data, task.recipe, seed, **conversion) for seed in range(task.seeds)]


def composed_trio(profile: Profile, task: ComposedTask) -> Trio:
    """Notebook 09: the deep, the shallow and the looped encoder of a composed task."""
    n, passes = task.layers, task.passes
    regime = SCRATCH if task.width is not None else MADE_LOWER
    return Trio(regime, *(composed_shape(profile, task, *sizes) for sizes in ((n * passes, 1), (n, 1), (n, passes))))


def composed_shapes(task: ComposedTask) -> list[tuple[int, int]]:
    """(layers, passes) of each encoder of a composed task that is trained with a fixed depth, standard encoders first."""
    n, passes = task.layers, task.passes
    alone = sorted({n, n * passes, *task.alone})
    return list(dict.fromkeys([*((layers, 1) for layers in alone), (n, passes), *task.loops]))


def composed_random_depth(task: ComposedTask) -> list[RunSpec]:
    """Notebook 09: the loop of a composed task, trained with random depth; empty where the task has none."""
    if task.random_passes is None:
        return []
    model, words = f"recurrent-{task.layers}x{task.random_passes}x{task.width}", {"residual": "none"} | RANDOM_DEPTH
    return [RunSpec(model, task.data, task.recipe, seed, words) for seed in range(task.seeds)]


def composed(profile: Profile) -> list[RunSpec]:
    """Notebook 09: every encoder of the tasks whose answer must be computed."""
    of_shapes = [
        spec
        for task in profile.composed
        for sizes in composed_shapes(task)
        for spec in composed_shape(profile, task, *sizes)
    ]
    return of_shapes + [spec for task in profile.composed for spec in composed_random_depth(task)]
