"""The tables of the summary: what every model reaches and costs, and every comparison with its verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from rtxlib.models import preset
from rtxstudy import published, studies
from rtxstudy.figures.save import Drawing
from rtxstudy.pages.passes import answers
from rtxstudy.questions.audit import audit_claims
from rtxstudy.questions.deployment import side_by_side
from rtxstudy.questions.depth_gain import depth_claims, depth_figures
from rtxstudy.questions.passes import strip_claims, strip_figures
from rtxstudy.questions.proposal import proposal, proposal_measured
from rtxstudy.questions.summary import cost_claims, glance, noise_claims, summary_figures
from rtxstudy.statistics import summarise

if TYPE_CHECKING:
    from rtxstudy import Study

_BY = ["data", "model", "recipe", "most_epochs", "train_rows", "dtype"]


@dataclass(frozen=True)
class AnswerTables:
    """What all notebooks of the study left, read together."""

    findings: dict[str, pd.DataFrame]  # as Study.findings
    data: str  # the label of the headline data
    validation_rows: int  # of the headline data
    timed: pd.DataFrame  # times of all encoders in one session, as side_by_side.times
    models: pd.DataFrame  # what each model reaches and costs, as glance.worth_their_cost
    compared: pd.DataFrame  # every comparison with its verdict, as glance.verdicts

    @property
    def runs(self) -> pd.DataFrame:
        return self.findings["runs"]

    @property
    def gains(self) -> pd.DataFrame:
        return self.findings["depth_gains"]


def answer_tables(study: Study) -> AnswerTables:
    """Everything is read from the published tables; only times that are missing are measured."""
    findings, source, timed = study.findings(), study.source(), side_by_side.of_study(study)
    data, validation_rows = source["data"], source["validation rows"]
    predictions = published.read(study.results, "predictions")
    right = glance.answers(predictions, findings["runs"], study.counting_words(), data)
    models = glance.worth_their_cost(glance.at_a_glance(findings, data, timed), validation_rows)
    compared = glance.verdicts(findings)
    return AnswerTables(findings, data, validation_rows, timed, glance.over_texts(models, right), compared)


def draw_strip(study: Study) -> Drawing:
    """One sentence, and the answer after each pass of the transformer page's encoder."""
    flips = answers("nobody can claim that the film was not dull")
    title = study.title(strip_claims.title, flips, otherwise="The answer after each pass")
    return Drawing(strip_figures.passes_strip(flips, title), "99_strip", flips, alt=strip_figures.alt(flips))


def draw_depth(study: Study, tables: AnswerTables) -> Drawing:
    verdicts = depth_claims.shown(tables.gains)
    title = study.title(depth_claims.title, tables.gains, otherwise="What depth and passes add on each task")
    return Drawing(
        depth_figures.depth_gains(verdicts, title),
        "99_depth_gains",
        verdicts,
        alt="A row for each task and way of training, sorted by depth gain: what the deep encoder and "
        "the loop gain over the shallow one, with intervals; loop − deep, the share kept, and "
        "loop − counting words as columns.",
        caption="TF-IDF reads whole texts, also where the encoders read their beginning.",
    )


def draw_costs(study: Study, tables: AnswerTables) -> Drawing:
    title = study.title(cost_claims.title, tables.models, otherwise="Accuracy, time and size of each model")
    return Drawing(
        summary_figures.accuracy_for_cost(tables.models, title),
        "99_summary",
        tables.models,
        alt="Bubbles of accuracy against time, sized by megabytes, with intervals: pretrained encoders "
        "above, encoders from scratch below, counting words at the left.",
    )


def draw_comparisons(study: Study, tables: AnswerTables) -> Drawing:
    title = study.title(noise_claims.title, tables.compared, otherwise="The difference of each pair of models")
    return Drawing(
        summary_figures.forest(tables.compared, title, tables.data),
        "99_comparisons",
        tables.compared,
        alt="The difference in test accuracy of each pair of models with its interval, in a panel of "
        "narrow and a panel of wide intervals.",
    )


def mirrored(study: Study) -> pd.DataFrame:
    """The data sets that are a part of what was published (:func:`audit_claims.parts`)."""
    return audit_claims.parts(published.read(study.results, "sources"), published.read(study.results, "balance"))


def every_model(study: Study, tables: AnswerTables) -> pd.DataFrame:
    """Mean test accuracy of every model, data set and recipe, with its parameters."""
    runs = tables.runs.drop_duplicates("key")
    return summarise(runs, _BY, carry=["parameters", "non_embedding_parameters"])


def claims_of_the_proposal(study: Study, tables: AnswerTables) -> pd.DataFrame:
    """What the proposal claims, and what is measured of it (:func:`proposal_measured.claims`)."""
    standard, recurrent = study.profile.standard, study.profile.recurrent
    alike, passes = studies.matched(study.profile)["compute"], preset(recurrent).recurrent_depth
    promised = proposal.proposal(standard, recurrent, alike, passes, tables.data)
    return proposal_measured.claims(promised, tables.findings)
