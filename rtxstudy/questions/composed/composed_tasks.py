"""Does depth pay where the answer must be computed? Tasks composed of real phrases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from rtxstudy import measured, studies
from rtxstudy.absent import Absent
from rtxstudy.figures.save import Drawing
from rtxstudy.finished import Runs
from rtxstudy.profiles import ComposedTask
from rtxstudy.questions.composed import composed_figures, composed_tables
from rtxstudy.questions.depth_gain.gains import learned
from rtxstudy.questions.forms import loop_tables
from rtxstudy.questions.passes import pass_claims, worth, worth_figures
from rtxstudy.questions.pretrained.checkpoint import checkpoint

if TYPE_CHECKING:
    from rtxstudy import Study

SHOWN_PASSES = (1, 2, 3, 4, 6, 8, 12)


@dataclass(frozen=True)
class Composed:
    """The encoders of every composed task. The keys of all dictionaries are the labels of the tasks' data."""

    tasks: Mapping[str, ComposedTask]
    runs: Runs
    arms: Mapping[str, list[Runs]]  # the deep encoder, the shallow one and the loop
    deciding: pd.DataFrame  # as composed_tables.deciding
    baselines: Mapping[str, pd.DataFrame]  # as Study.counting_words
    gains: pd.DataFrame  # a row for each task, as composed_tables.gains, with regime and learned
    steps: pd.DataFrame  # accuracy of each arm by the number of steps, as composed_tables.by_steps
    pointers: int  # the number of tasks that ask for pointers to be followed
    sources: pd.DataFrame  # a row for each task, as Study.source


@dataclass(frozen=True)
class Pointers:
    """The composed tasks that ask for pointers to be followed."""

    steps: pd.DataFrame  # accuracy by number of steps, as composed_tables.by_steps
    levels: pd.DataFrame  # what counting words reaches, as composed_tables.word_levels
    gains: pd.DataFrame  # depth gain by number of steps, as composed_tables.gains_by_steps
    passes: pd.DataFrame  # accuracy with further passes at test time, as composed_tables.by_passes


def composed_tasks(study: Study) -> Composed | Absent:
    """The composed tasks of the profile; missing runs are trained."""
    composed = study.profile.composed
    if not composed:
        return Absent("This profile has no composed tasks.")
    if why := study.out_of_reach(composed[0].data):
        return Absent(why)
    if any(task.width is None for task in composed) and isinstance(absent := study.ask(checkpoint), Absent):
        return absent
    tasks = {study.source(task.data)["data"]: task for task in composed}
    runs = study.run("composed")
    trios = {label: studies.composed_trio(study.profile, task) for label, task in tasks.items()}
    arms = {label: [runs.of(arm) for arm in trio[1:]] for label, trio in trios.items()}
    deciding = study.table(
        "composed",
        "composed_texts",
        lambda: composed_tables.deciding({label: study.data(task.data) for label, task in tasks.items()}),
    )
    baselines = {label: study.counting_words(task.data) for label, task in tasks.items()}
    gains = composed_tables.gains(arms, deciding, baselines)
    gains["regime"] = [trio.regime for trio in trios.values()]
    gains["learned"] = [learned(three) for three in arms.values()]
    sources = pd.DataFrame([study.source(task.data) for task in tasks.values()])
    sources["labels"] = sources["labels"].map(", ".join)
    steps, followed = composed_tables.by_steps(arms, deciding), [task for task in composed if task.data.task == "pointer"]
    return Composed(tasks, runs, arms, deciding, baselines, gains, steps, len(followed), sources)


def phrase_level(study: Study, composed: Composed) -> pd.Series:
    """How well single phrases are judged, which bounds what can be reached (:func:`composed_tables.phrase_level`)."""
    seed = study.profile.composed[0].data.seed
    return study.table("composed", "composed_phrases", lambda: composed_tables.phrase_level(seed)).iloc[0]


def pointers(study: Study, composed: Composed) -> Pointers | Absent:
    """The pointer tasks: accuracy by steps, and with more passes at test time than in training."""
    arms = {label: three for label, three in composed.arms.items() if composed.tasks[label].data.task == "pointer"}
    if not arms:
        return Absent("This profile has no pointer task.")
    further = [
        study.measure(
            measured.further_passes, three[-1] + composed.runs.of(studies.composed_random_depth(composed.tasks[label]))
        )
        for label, three in arms.items()
    ]
    return Pointers(
        composed.steps[composed.steps["data"].isin(list(arms))],
        composed_tables.word_levels({label: composed.baselines[label] for label in arms}),
        composed_tables.gains_by_steps(arms, composed.deciding),
        composed_tables.by_passes(pd.concat(further)),
    )


def draw_steps(study: Study, followed: Pointers) -> Drawing:
    return Drawing(
        composed_figures.accuracy_by_steps(followed.steps, followed.levels),
        "09_composed_steps",
        followed.steps,
        alt="Accuracy of a deep, a shallow and a looped encoder against the number of pointers that "
        "have to be followed, beside the level of counting words.",
        caption="The intervals cover new seeds and new sentences.",
    )


def draw_passes(study: Study, followed: Pointers) -> Drawing:
    return Drawing(
        composed_figures.accuracy_by_passes(followed.passes[followed.passes["passes"].isin(SHOWN_PASSES)]),
        "09_composed_passes",
        followed.passes,
        alt="Accuracy of two loops against the number of pointers that have to be followed, one line "
        "for each number of passes at test time.",
        caption="The intervals cover new seeds and new sentences.",
    )


@dataclass(frozen=True)
class Worth:
    """What a pass is worth on the composed tasks."""

    errors: pd.DataFrame  # test error of each encoder by layers passed through, as worth.errors
    fits: pd.DataFrame  # φ of each task, as loop_tables.worth


def composed_worth(study: Study, composed: Composed) -> Worth | Absent:
    """The law of notebook 11 fitted to the composed tasks whose encoders have many depths."""
    tested = [
        worth.errors(composed.runs.of(studies.composed_shape(study.profile, task, *shape)))
        for task in composed.tasks.values()
        if task.width is not None
        for shape in studies.composed_shapes(task)
    ]
    if not tested:
        return Absent("No composed task here has encoders of many depths.")
    errors = pd.concat(tested, ignore_index=True)
    baselines = pd.concat([table.assign(data=label) for label, table in composed.baselines.items()])
    fits = loop_tables.worth(errors, baselines)
    return fits if isinstance(fits, Absent) else Worth(errors, fits)


def draw_worth(study: Study, law: Worth) -> Drawing:
    title = study.title(pass_claims.worth_title, law.fits, otherwise="Test error by layers passed through")
    return Drawing(
        worth_figures.worth(law.errors, law.fits, title),
        "09_composed_worth",
        law.errors,
        alt="Test error on the composed tasks by number of layers passed through, for standard "
        "encoders and for loops, with the fitted curves.",
        caption="Intervals count runs as independent.",
    )
