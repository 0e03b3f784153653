"""Which form of the loop learns best, and does the proposal's plan B help?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from statsmodels.stats.multitest import multipletests

from rtxstudy import comparisons, studies, tables
from rtxstudy.absent import Absent
from rtxstudy.figures.save import Drawing
from rtxstudy.finished import Runs
from rtxstudy.names import short
from rtxstudy.numbers import between, percent, with_ends
from rtxstudy.profiles import LoopStudy
from rtxstudy.questions.accuracy import accuracy_claims, accuracy_figures
from rtxstudy.questions.forms import form_claims
from rtxstudy.statistics import FEWEST_SEEDS

if TYPE_CHECKING:
    from rtxstudy import Study

BASE = "from_second"  # the study's own form
CHANGES = {  # form → what it changes; F is the layer, h the state of the tokens
    BASE: "the study's own form: h ← F(h) + α·h from the second pass on, with α = ½",
    "α = 0.25": "α is 0.25",
    "α = 1": "α is 1",
    "unshared": "every pass has a layer of its own",
    "none": "h ← F(h): a standard encoder whose layers are tied",
    "every": "h ← F(h) + α·h on every pass, the first included",
    "learned": "α of each pass is learned, between 0 and 1; also on the first pass",
    "damped": "h ← h + α(F(h) − h), a step of length α towards F(h); also on the first pass",
    "gated": "a learned gate between 0 and 1 mixes h and F(h) value by value; also on the first pass",
    "input_injection": "what entered the loop is added again before each later pass",
    "loop_norm": "a norm after each pass",
    "sandwich": "a norm before and after each sub-layer",
    "iteration_embedding": "a vector for each pass, so that the block knows which pass it is in",
    "conditioning": "a light layer of its own before each later pass",
    "prelude_and_coda": "one layer before the loop and one after it, each passed once",
    "factorised": "token vectors of a quarter of the width, widened by a matrix (ALBERT)",
    "random_depth": "trained with a random number of passes, from one to all",
}


@dataclass(frozen=True)
class LoopForms:
    """Every ablation of the loop: its forms, its shapes, and random depth."""

    runs: Runs
    arms: Mapping[tuple[LoopStudy, str], Runs]  # (place, form) → its runs
    differences: pd.DataFrame  # each form − the base, as comparisons.comparisons, with form
    results: pd.DataFrame  # a row for each run, with form


@dataclass(frozen=True)
class PlanB:
    """The recurrent encoder with a learned α, with conditioning and with both."""

    runs: Runs
    differences: pd.DataFrame  # each form − the study's own, as comparisons.against_first
    results: pd.DataFrame  # a row for each run, with form

    @property
    def published(self) -> pd.DataFrame:
        """The differences with the columns of other comparisons."""
        return self.differences.drop(columns="form")


def loop_forms(study: Study) -> LoopForms:
    """Every form on every place; missing runs are trained."""
    runs = study.run("variants", "depths", "random_depth")
    arms = {
        (place, form): runs.of(studies.form(place, form)) for place in study.profile.loops for form in studies.forms(place)
    }
    differences = [
        comparisons.comparisons((arm, arms[place, BASE]), form=form) for (place, form), arm in arms.items() if form != BASE
    ]
    results = pd.concat([arm.table.assign(form=form) for (_, form), arm in arms.items()])
    return LoopForms(runs, arms, pd.concat(differences, ignore_index=True), results)


def explained(differences: pd.DataFrame) -> pd.DataFrame:
    """Each form, the base first: what it changes, and its difference from the base on each data set that it was trained on."""
    told = pd.DataFrame({"form": [BASE, *differences["form"].unique()]})
    told["what it changes"] = told["form"].map(CHANGES)
    for data, part in differences.groupby("data", sort=False):
        by_form = {one.form: with_ends(one.difference, one.low, one.high) for one in part.itertuples()}
        seeds = between(part["n_seeds"], ".0f")
        told[f"{short(str(data))} (points, {seeds} seeds)"] = [by_form.get(form, "–") for form in told["form"]]
    return told


def corrected(forms: LoopForms) -> pd.DataFrame:
    """The differences with ``holm``, their p-values with Holm's correction over the forms of a place with enough seeds."""
    table, enough = forms.differences.assign(holm=np.nan), forms.differences["n_seeds"] >= FEWEST_SEEDS
    for _, part in table[enough].groupby("data"):
        table.loc[part.index, "holm"] = multipletests(part["p"], method="holm")[1]
    return table


def draw(study: Study, forms: LoopForms, number: int) -> Drawing:
    """The forms on one place; ``number`` counts the places from 1."""
    data = study.source(study.profile.loops[number - 1].data)["data"]
    part = forms.differences[forms.differences["data"] == data]
    title = study.title(form_claims.title, part, data, otherwise=f"Each form on {data}")
    return Drawing(
        accuracy_figures.paired_differences(part.assign(comparison=part["form"]), title),
        f"03_forms_{number}",
        part,
        alt=f"Test accuracy of each form of the loop minus that of the base on {data}, with 95 % intervals.",
        caption="Paired by seed and by test text. Of twenty forms without a difference, about one would exclude zero.",
        finds=comparisons.finds(part),
    )


def plan_b(study: Study) -> PlanB | Absent:
    """The forms of the proposal's plan B; missing runs are trained."""
    arms = studies.plan_b_arms(study.profile)
    if not arms:
        return Absent("This profile does not train plan B.")
    runs = study.run("plan_b")
    of_form = {form: runs.of(specs) for form, specs in arms.items()}
    results = pd.concat([arm.table.assign(form=form) for form, arm in of_form.items()])
    return PlanB(runs, comparisons.against_first(of_form), results)


def draw_plan_b(study: Study, plan: PlanB) -> Drawing:
    title = study.title(accuracy_claims.switches, plan.differences, "plan B", otherwise="Plan B minus the study's own")
    return Drawing(
        accuracy_figures.paired_differences(plan.differences.assign(comparison=plan.differences["form"]), title),
        "03_plan_b",
        plan.differences,
        alt="Test accuracy of the recurrent encoder with a learned α, with conditioning and with both, "
        "minus that of the study's own, with 95 % intervals.",
        caption="Paired by seed and by test text; the interval covers new seeds and new texts.",
        finds=comparisons.finds(plan.differences),
    )


_COLUMNS = {  # column of the runs table → its readable name and its format
    "accuracy": ("accuracy", percent),
    "non_embedding_parameters": ("parameters of its layers", "{:,.0f}"),
    "forward_flops": ("billion operations per text", "{:.4f}"),
}


def readable(runs: pd.DataFrame) -> pd.DataFrame:
    """Accuracy, size and arithmetic of each form of the loop: means over its runs, one row per ``data`` and ``form``.

    The time of training is left out, because the forms were trained on several machines.
    """
    return tables.written(runs.groupby(["data", "form"], sort=False)[list(_COLUMNS)].mean().reset_index(), _COLUMNS)
