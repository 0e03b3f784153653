"""Does sentiment carry from each source to every other?"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import pandas as pd

from rtx.baselines.counting_words import NAME
from rtxstudy import comparisons, studies
from rtxstudy.absent import Absent
from rtxstudy.figures.save import Drawing
from rtxstudy.finished import Runs
from rtxstudy.questions.domains import domain_claims, domain_figures, further_data
from rtxstudy.statistics import summarise

if TYPE_CHECKING:
    from rtxstudy import Study


@dataclass(frozen=True)
class CrossDomain:
    """The encoders of each sentiment task and counting words, tested on all of these tasks."""

    runs: Runs
    means: pd.DataFrame  # accuracy by model, trained_on and tested_on, as statistics.summarise
    differences: pd.DataFrame  # recurrent − standard on the other texts, as comparisons.carried_over


def cross_domain(study: Study) -> CrossDomain | Absent:
    """Each model on each of the sentiment tasks; missing runs are trained."""
    tasks = studies.sentiment_tasks(study.profile)
    if not tasks:
        return Absent("This profile trains on one source of sentiment.")
    labels = [study.source(task.data)["data"] for task in tasks]
    runs = study.run("cross_domain")
    at_home = [runs.where(data=label) for label in labels]
    away, words = [], {}
    for i, j in product(range(len(tasks)), repeat=2):
        if i != j:
            away.append(study.transfer(at_home[i], tasks[j].data))
        baselines = study.counting_words(tasks[i].data, tested_on=tasks[j].data)
        words[labels[i], labels[j]] = baselines.loc[baselines["model"] == NAME, "accuracy"].item()
    means = summarise(further_data.matrix(at_home, away, words), ["model", "trained_on", "tested_on"])
    differences = comparisons.carried_over(pd.concat(away), study.profile.recurrent, study.profile.standard)
    return CrossDomain(runs, means, differences)


def draw(study: Study, cross: CrossDomain) -> Drawing:
    title = study.title(domain_claims.cross_title, cross.means, otherwise="Trained here, tested there")
    return Drawing(
        domain_figures.cross_domain(cross.means, title),
        "06_cross_domain",
        cross.means,
        alt="Accuracy of both encoders and of counting words by training data and test data.",
    )
