"""Do the comparisons hold on further data: the unified set of three domains, and one-star against good reviews?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from rtxstudy import comparisons
from rtxstudy.absent import Absent
from rtxstudy.figures.save import Drawing
from rtxstudy.finished import Runs
from rtxstudy.profiles import Task
from rtxstudy.questions.accuracy import accuracy_figures
from rtxstudy.questions.domains import domain_claims, further_data

if TYPE_CHECKING:
    from rtxstudy import Study


@dataclass(frozen=True)
class Further:
    """Both encoders on one or several tasks, beside classifiers without a neural network."""

    runs: Runs
    scores: pd.DataFrame  # a row for each run and each baseline: data, model, seed, accuracy, …
    differences: pd.DataFrame  # of the two encoders, and of each and the best baseline, for each task; as comparisons.comparisons
    sources: pd.DataFrame  # a row for each task: data and the rows of each split


def unified_set(study: Study) -> Further | Absent:
    """The domain and the sentiment of all three domains in one set; missing runs are trained."""
    if not study.profile.unified:
        return Absent("This profile has no unified set.")
    return _further(study, "unified", study.profile.unified)


def stars(study: Study) -> Further | Absent:
    """Amazon reviews of one star against four and five; missing runs are trained."""
    if study.profile.stars is None:
        return Absent("This profile does not read Amazon reviews with stars.")
    return _further(study, "stars", [study.profile.stars])


def _further(study: Study, name: str, tasks: Sequence[Task]) -> Further:
    runs, sources = study.run(name), pd.DataFrame([study.source(task.data) for task in tasks])
    scores, differences = [runs.table], []
    for task, label in zip(tasks, sources["data"], strict=True):
        baselines = study.counting_words(task.data)
        pair = [runs.where(data=label, model=model) for model in (study.profile.recurrent, study.profile.standard)]
        differences += [comparisons.comparisons(pair), *(further_data.against_best_words(arm, baselines) for arm in pair)]
        scores.append(baselines.assign(data=label))
    described = sources[["data", "train rows", "validation rows", "test rows"]]
    return Further(runs, pd.concat(scores, ignore_index=True), pd.concat(differences, ignore_index=True), described)


def sizes(sources: pd.DataFrame) -> pd.DataFrame:
    """A readable table of :attr:`Further.sources`."""
    return sources.map(lambda value: value if isinstance(value, str) else f"{value:,}")


def draw_unified(study: Study, further: Further) -> Drawing:
    return _draw(study, further, "06_unified", "the unified set", "the unified set, for the domain and for the sentiment")


def draw_stars(study: Study, further: Further) -> Drawing:
    return _draw(study, further, "06_stars", "one star against four and five", "Amazon reviews of one star against four and five")


def _draw(study: Study, further: Further, stem: str, where: str, what: str) -> Drawing:
    title = study.title(domain_claims.pair_title, further.differences, otherwise=f"Accuracy on {where}")
    return Drawing(
        accuracy_figures.accuracy_intervals(further.scores, title=title),
        stem,
        further.scores[["data", "model", "seed", "accuracy", "f1", "n_test"]],
        alt=f"Test accuracy of both encoders and of classical baselines on {what}.",
        caption="Small points are seeds; the bar is the 95 % interval of their mean.",
    )
