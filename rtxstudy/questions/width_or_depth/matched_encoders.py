"""Do further layers or passes pay? The recurrent encoder beside standard ones with its parameters and its arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from rtxstudy import comparisons, studies
from rtxstudy.absent import Absent
from rtxstudy.figures.save import Drawing
from rtxstudy.finished import Runs
from rtxstudy.questions.accuracy import accuracy_claims, accuracy_figures, tradeoff_figures
from rtxstudy.questions.deployment import side_by_side
from rtxstudy.statistics import summarise

if TYPE_CHECKING:
    from rtxstudy import Study

_COSTS = ["parameters", "non_embedding_parameters", "size_mb", "forward_flops"]


@dataclass(frozen=True)
class Matched:
    """The encoders of the study and those that are matched to the recurrent one."""

    runs: Runs
    differences: pd.DataFrame  # first − second of each pair, as comparisons.comparisons
    means: pd.DataFrame  # accuracy and costs of each encoder, as statistics.summarise and side_by_side.with_times


@dataclass(frozen=True)
class Components:
    """The recurrent encoder with one component changed at a time."""

    runs: Runs
    differences: pd.DataFrame  # changed − as it is, as comparisons.against_first
    means: pd.DataFrame  # accuracy and costs, as statistics.summarise, with component

    @property
    def published(self) -> pd.DataFrame:
        """The differences with the columns of other comparisons."""
        return self.differences.drop(columns="form")


def matched_encoders(study: Study) -> Matched:
    """The pairs of encoders that tell width, depth and sharing apart; missing runs are trained."""
    runs, sizes, matched = study.run("width_vs_depth"), study.profile, studies.matched(study.profile)
    pairs = dict.fromkeys(
        [
            (sizes.wide, sizes.deep),
            (sizes.recurrent, matched["parameters"]),
            (sizes.recurrent, matched["compute"]),
            (matched["compute"], matched["parameters"]),
            (matched["parameters"], sizes.standard),
            (sizes.recurrent, sizes.standard),
        ]
    )
    arms = ([runs.where(model=name) for name in pair] for pair in pairs)
    means = side_by_side.with_times(study, summarise(runs.table, ["model", "family"], carry=_COSTS))
    return Matched(runs, comparisons.comparisons(*arms), means)


def draw_differences(study: Study, matched: Matched) -> Drawing:
    title = study.title(accuracy_claims.depth_title, matched.differences, otherwise="Differences of the pairs")
    return Drawing(
        accuracy_figures.paired_differences(matched.differences, title),
        "05_differences",
        matched.differences,
        alt="Differences in accuracy: wide against narrow and recurrent, recurrent against the "
        "standard encoders matched to it, and those two.",
        caption="Paired by seed and by test text; the interval covers new seeds and new texts.",
    )


def draw_per_million(study: Study, matched: Matched) -> Drawing:
    title = study.title(accuracy_claims.per_million_title, matched.means, otherwise="Accuracy per parameter")
    return Drawing(
        tradeoff_figures.accuracy_per_million(matched.means, title),
        "05_accuracy_per_million",
        matched.means,
        alt="Accuracy in percentage points over millions of parameters, with and without the embedding matrix.",
        caption="The ratio favours small encoders: read it beside the accuracy itself.",
    )


def draw_latency(study: Study, matched: Matched) -> Drawing:
    title = study.title(accuracy_claims.latency_title, matched.means, otherwise="Time and arithmetic")
    return Drawing(
        tradeoff_figures.latency_against_flops(matched.means, title=title),
        "05_latency_against_flops",
        matched.means,
        alt="Inference time for one text against the floating-point operations of its forward pass.",
    )


def components(study: Study) -> Components | Absent:
    """The recurrent encoder with each component changed; missing runs are trained."""
    switches = studies.component_arms(study.profile)
    if not switches:
        return Absent("This profile changes no components.")
    runs = study.run("components")
    arms = {name: runs.of(specs) for name, specs in switches.items()}
    results = pd.concat([arm.table.assign(component=name) for name, arm in arms.items()])
    reached = summarise(results, ["component"], carry=["non_embedding_parameters"])
    return Components(runs, comparisons.against_first(arms), reached)


def draw_components(study: Study, changed: Components) -> Drawing:
    title = study.title(
        accuracy_claims.switches, changed.differences, "its components", otherwise="One component changed"
    )
    return Drawing(
        accuracy_figures.paired_differences(changed.differences.assign(comparison=changed.differences["form"]), title),
        "05_components",
        changed.differences,
        alt="Test accuracy of the recurrent encoder with one component changed minus that of the "
        "study's own, with 95 % intervals.",
        caption="Paired by seed and by test text; the interval covers new seeds and new texts.",
        finds=comparisons.finds(changed.differences),
    )
