"""Does sentiment carry to other texts? Models learn it on one source and are tested on another, unchanged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from rtx.baselines.counting_words import MAJORITY
from rtxstudy import comparisons
from rtxstudy.figures.save import Drawing
from rtxstudy.finished import Runs
from rtxstudy.questions.domains import domain_claims, domain_figures
from rtxstudy.statistics import summarise

if TYPE_CHECKING:
    from rtxstudy import Study


@dataclass(frozen=True)
class Carried:
    """Both encoders and the baselines that count terms, on the texts of their training's source and on others."""

    runs: Runs
    home: str  # the source of the training texts
    away: str  # the other source
    means: pd.DataFrame  # accuracy by model, trained_on and tested_on, as statistics.summarise
    differences: pd.DataFrame  # recurrent − standard on the other texts, as comparisons.carried_over


def carried_sentiment(study: Study) -> Carried:
    """The models of the transfer study on both sources; missing runs are trained."""
    sizes = study.profile
    home, away = study.source(sizes.transfer_from)["data"], study.source(sizes.transfer_to)["data"]
    runs = study.run("transfer")
    there = study.transfer(runs, sizes.transfer_to)
    parts = [runs.table.assign(trained_on=home, tested_on=home), there]
    for spec, name in ((sizes.transfer_from, home), (sizes.transfer_to, away)):
        baselines = study.counting_words(sizes.transfer_from, tested_on=spec)
        parts.append(baselines[baselines["model"] != MAJORITY].assign(trained_on=home, tested_on=name))
    columns = ["model", "seed", "trained_on", "tested_on", "accuracy", "f1", "n_test"]
    means = summarise(pd.concat(parts, ignore_index=True)[columns], ["model", "trained_on", "tested_on"])
    return Carried(runs, home, away, means, comparisons.carried_over(there, sizes.recurrent, sizes.standard))


def draw(study: Study, carried: Carried) -> Drawing:
    title = study.title(domain_claims.carried_title, carried.means, otherwise="Accuracy here and there")
    return Drawing(
        domain_figures.transfer(carried.means, title),
        "06_transfer",
        carried.means,
        alt=f"Accuracy of both encoders and of classical baselines on {carried.home}, where they were trained, "
        f"and on {carried.away}.",
    )
