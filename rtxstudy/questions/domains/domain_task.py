"""Which domain is it? Both encoders and counting words on the task of three domains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from rtxstudy import comparisons
from rtxstudy.confusion import confusion_counts
from rtxstudy.figures.save import Drawing
from rtxstudy.finished import Runs
from rtxstudy.questions.accuracy import accuracy_figures
from rtxstudy.questions.domains import domain_claims

if TYPE_CHECKING:
    from rtxstudy import Study


@dataclass(frozen=True)
class DomainTask:
    """The runs of both encoders beside classifiers without a neural network."""

    runs: Runs
    scores: pd.DataFrame  # a row for each run and each baseline: model, seed, accuracy, f1, …
    differences: pd.DataFrame  # of the two encoders, and of each encoder and counting words; as comparisons.comparisons
    classical: pd.DataFrame  # the baselines, as the report shows them
    steps: int  # optimiser steps of the longest training


def domain_task(study: Study) -> DomainTask:
    """Both encoders on the domain task; missing runs are trained."""
    sizes = study.profile
    runs, baselines = study.run("domains"), study.counting_words(sizes.domains)
    standard, recurrent = (runs.where(model=name) for name in (sizes.standard, sizes.recurrent))
    parts = [comparisons.comparisons((recurrent, standard))]
    parts += [comparisons.against_words(arm, baselines) for arm in (standard, recurrent)]
    differences = pd.concat(parts, ignore_index=True)
    scores = pd.concat([runs.table, baselines], ignore_index=True)
    classical = baselines.drop(columns="correct").assign(data=study.source(sizes.domains)["data"])
    return DomainTask(runs, scores, differences, classical, int(runs.part("curves")["step"].max()))


def draw_accuracy(study: Study, task: DomainTask) -> Drawing:
    title = study.title(domain_claims.title, task.differences, otherwise="Accuracy on the domain task")
    return Drawing(
        accuracy_figures.accuracy_intervals(task.scores, title=title),
        "06_domain_accuracy",
        task.scores[["model", "seed", "accuracy", "f1"]],
        alt="Test accuracy of both encoders and of classical baselines on the three-class domain task.",
        caption="Small points are seeds; the bar is the 95 % interval of their mean.",
    )


def draw_confusion(study: Study, task: DomainTask) -> Drawing:
    counts = confusion_counts(task.runs.part("predictions"), task.runs.labels)
    title = study.title(domain_claims.confusion_title, counts, otherwise="Domains given")
    return Drawing(
        accuracy_figures.confusion(counts, title=title),
        "06_domain_confusion",
        counts,
        alt="Confusion matrices of both encoders on the domain task, seeds pooled.",
    )
