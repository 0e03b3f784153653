"""Which recipe suits each encoder, and what does the published protocol reach?"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from rtxstudy import comparisons, studies, tables
from rtxstudy.absent import Absent
from rtxstudy.figures.save import Drawing
from rtxstudy.finished import Runs
from rtxstudy.numbers import percent
from rtxstudy.questions.accuracy import accuracy_claims, convergence, training_figures
from rtxstudy.questions.recipes import recipe_claims, recipe_figures, recipe_search

if TYPE_CHECKING:
    from rtxstudy import Study


@dataclass(frozen=True)
class RecipeTrials:
    """A search with the same trials for each encoder."""

    runs: Runs
    trials: pd.DataFrame  # every trial of both rounds, as recipe_search.trials
    best: pd.DataFrame  # means of the finals, as recipe_search.means
    calibration: pd.DataFrame  # where loss and accuracy disagree, as recipe_search.calibration
    differences: pd.DataFrame  # of test accuracy, between each two encoders with the recipe that suits each best
    usual: pd.DataFrame  # the same, with the recipe before the search


def recipe_trials(study: Study) -> RecipeTrials | Absent:
    """The two rounds of the search; missing runs are trained."""
    search = study.profile.search
    if search is None:
        return Absent("This profile searches no recipe.")
    first = study.run("first_round")
    by_trial = recipe_search.of_round(search.recipes, first)
    final = study.runs_of(studies.finals(study.profile, by_trial))
    trials = study.table(
        "recipe_search",
        "recipe_search",
        lambda: recipe_search.trials(
            by_trial,
            recipe_search.of_round(search.recipes, final),
            texts=study.source(search.data)["validation rows"],
        ),
    )
    best = recipe_search.means(trials[trials["round"] == recipe_search.FINAL])
    own = [
        final.of([spec for spec in final.specs if (spec.model, spec.recipe) == (row.arm, search.recipes[row.trial])])
        for row in best[best["chosen"]].itertuples()
    ]
    first_recipe = [spec for spec in final.specs if spec.recipe == search.recipes[0]]
    before = [final.of([spec for spec in first_recipe if spec.model == arm]) for arm in search.arms]
    differences, usual = (
        comparisons.comparisons(*((b, a) for a, b in itertools.combinations(arms, 2)), study="recipe_search")
        for arms in (own, before)
    )
    return RecipeTrials(first + final, trials, best, recipe_search.calibration(search.recipes, final), differences, usual)


def draw(study: Study, search: RecipeTrials) -> Drawing:
    title = study.title(recipe_claims.search_title, search.trials, otherwise="The trials of the search")
    return Drawing(
        recipe_figures.trials(search.trials, title),
        "02_recipe_search",
        search.trials,
        alt="Validation accuracy of each trial of the recipe search, a panel for each encoder: the "
        "first round on a share of the training texts, and the finals on all of them.",
    )


@dataclass(frozen=True)
class Protocol:
    """Both encoders under the published protocol."""

    runs: Runs
    convergence: pd.DataFrame  # as convergence.convergence
    stopping: pd.DataFrame  # as convergence.stopping


def published_protocol(study: Study) -> Protocol | Absent:
    """The runs of the published protocol; missing ones are trained."""
    if study.profile.published is None:
        return Absent("This profile does not run the published protocol.")
    runs = study.run("published_protocol")
    return Protocol(runs, convergence.convergence(runs), convergence.stopping(runs))


def draw_protocol(study: Study, protocol: Protocol) -> Drawing:
    curves = protocol.runs.part("curves")
    title = study.title(accuracy_claims.learning, curves, 2, otherwise="Loss and accuracy by epoch")
    return Drawing(
        training_figures.training_curves(curves, title),
        "02_published_protocol",
        curves,
        alt="Training and validation loss and validation accuracy of both encoders by epoch under the published protocol.",
    )


def protocol_scores(protocol: Protocol) -> pd.DataFrame:
    """What each encoder reaches under the protocol, and what its training takes: means over seeds."""
    columns = tables.SCORES | {"train_rows": ("training texts", "{:,.0f}")}
    columns |= {name: tables.COSTS[name] for name in ("epochs", "train_cpu_seconds")}
    means = protocol.runs.table.groupby("model", sort=False)[list(columns)].mean()
    return tables.written(means.reset_index(), columns)


_COLUMNS = {  # column of rtxstudy.questions.recipes.recipe_search.trials → its readable name and its format
    "val_accuracy": ("validation accuracy", percent),
    "standard_error": ("± standard error", "{:.3f}"),
    "val_loss": ("loss (nats)", "{:.3f}"),
    "epochs": ("epochs", "{:.2f}"),
    "core_seconds": ("training (s of processor time)", "{:,.0f}"),
}

_CHOSEN = {("first", True): "goes on", ("final", True): "chosen"}


def readable(table: pd.DataFrame) -> pd.DataFrame:
    """A readable table of the recipe search: every run, those of an arm and round in the order of their accuracy."""
    arms = pd.Categorical(table["arm"], table["arm"].unique())  # keep their order
    rounds = pd.Categorical(table["round"], ["first", "final"])
    ordered = table.assign(arm=arms, round=rounds, trial=table["trial"] + 1).sort_values(
        ["arm", "round", "val_accuracy"], ascending=[True, True, False]
    )
    ordered["then"] = [_CHOSEN.get(pair, "") for pair in zip(ordered["round"], ordered["chosen"], strict=True)]
    return tables.written(ordered[["arm", "round", "trial", "recipe", "changes", "seed", *_COLUMNS, "then"]], _COLUMNS)


_AFTER = {  # column of rtxstudy.questions.recipes.recipe_search.calibration → its readable name and its format
    "lowest_epoch": ("epoch of the lowest loss", "{:.2f}"),
    "lowest_loss": ("lowest loss (nats)", "{:.3f}"),
    "accuracy_then": ("accuracy then", percent),
    "last_epoch": ("last epoch", "{:.2f}"),
    "last_loss": ("loss then (nats)", "{:.3f}"),
    "last_accuracy": ("last accuracy", percent),
}


def after_the_lowest_loss(search: RecipeTrials) -> pd.DataFrame:
    """A readable table of the finals' validation loss and accuracy, where the loss is lowest and at the end."""
    return tables.written(search.calibration.assign(trial=search.calibration["trial"] + 1), _AFTER)
