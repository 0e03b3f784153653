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
from rtxstudy.names import short
from rtxstudy.questions.domains import domain_claims, domain_figures
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
    runs = study.run("cross_domain")
    columns = ["model", "trained_on", "tested_on", "seed", "accuracy"]
    scores, words = [], []
    sources = {study.source(task.data)["data"]: task.data for task in tasks}
    for (home, learned), (away, judged) in product(sources.items(), repeat=2):
        # Also at home from the weights that are tested away: a published run may have been trained elsewhere.
        scores.append(study.transfer(runs.where(data=home), judged))
        baselines = study.counting_words(learned, tested_on=judged)
        words.append((NAME, home, away, 0, baselines.loc[baselines["model"] == NAME, "accuracy"].item()))
    every = pd.concat(scores, ignore_index=True)
    means = summarise(pd.concat([every[columns], pd.DataFrame(words, columns=columns)]), ["model", "trained_on", "tested_on"])
    elsewhere = every[every["trained_on"] != every["tested_on"]]
    differences = comparisons.carried_over(elsewhere, study.profile.recurrent, study.profile.standard)
    return CrossDomain(runs, means, differences)


def draw(study: Study, cross: CrossDomain) -> Drawing:
    title = study.title(domain_claims.cross_title, cross.means, otherwise="Trained here, tested there")
    named = cross.means.assign(**{side: cross.means[side].map(short) for side in ("trained_on", "tested_on")})
    return Drawing(
        domain_figures.cross_domain(named, title),
        "06_cross_domain",
        cross.means,
        alt="Accuracy of both encoders and of counting words by training data and test data.",
    )
