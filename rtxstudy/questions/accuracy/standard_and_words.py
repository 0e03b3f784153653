"""How good is the standard encoder, and how far does one get without a neural network?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from rtxlib.runs.spec import RunSpec
from rtxstudy import comparisons
from rtxstudy.confusion import confusion_counts
from rtxstudy.figures.save import Drawing
from rtxstudy.finished import Runs
from rtxstudy.questions.accuracy import accuracy_claims, accuracy_figures, training_figures
from rtxstudy.questions.anatomy import blueprint_figures, blueprints

if TYPE_CHECKING:
    from rtxstudy import Study


@dataclass(frozen=True)
class Standard:
    """The standard encoder beside classifiers without a neural network."""

    runs: Runs
    baselines: pd.DataFrame  # as Study.counting_words
    scores: pd.DataFrame  # a row for each run and each baseline: model, seed, accuracy, …
    differences: pd.DataFrame  # the encoder − counting words, as comparisons.against_words
    classical: pd.DataFrame  # the baselines, as the report shows them


def standard(study: Study) -> Standard:
    """The standard encoder on the headline data; missing runs are trained."""
    runs, baselines = study.run("baseline"), study.counting_words()
    scores = pd.concat([runs.table, baselines], ignore_index=True)
    classical = baselines.drop(columns="correct").assign(data=study.source()["data"])
    return Standard(runs, baselines, scores, comparisons.against_words(runs, baselines), classical)


def draw_accuracy(study: Study, compared: Standard) -> Drawing:
    title = study.title(accuracy_claims.beside_words, compared.differences, otherwise="Accuracy of each model")
    return Drawing(
        accuracy_figures.accuracy_intervals(compared.scores, title=title),
        "02_accuracy",
        compared.scores[["model", "seed", "accuracy", "f1", "precision", "recall"]],
        alt="Test accuracy of the standard encoder and of classical baselines.",
        caption="Small points are seeds; the bar is the 95 % interval of their mean.",
    )


def draw_curves(study: Study, compared: Standard) -> Drawing:
    runs, curves = compared.runs, compared.runs.part("curves")
    title = study.title(accuracy_claims.learning, curves, 1, otherwise="Loss and accuracy by epoch")
    return Drawing(
        training_figures.training_curves(curves, title),
        "02_training_curves",
        curves,
        alt=f"Training and validation loss and validation accuracy of {runs.model} by epoch, "
        f"a line for each of {len(runs)} seeds.",
    )


def draw_confusion(study: Study, compared: Standard) -> Drawing:
    counts = confusion_counts(compared.runs.part("predictions"), compared.runs.labels)
    title = study.title(accuracy_claims.confusion_title, counts, otherwise="Labels given")
    return Drawing(
        accuracy_figures.confusion(counts, title=title),
        "02_confusion",
        counts,
        alt=f"Confusion matrix of {compared.runs.model} on the test split, seeds pooled.",
    )


def draw_blueprints(study: Study, compared: Standard, mine: str | None) -> Drawing:
    """The encoders of the study, and the model ``mine`` beside them if there is one."""
    models = dict.fromkeys(filter(None, [study.profile.standard, study.profile.recurrent, mine]))
    table = blueprints.blueprints({model: model for model in models}, vocab_size=int(study.source()["vocabulary"]))
    return Drawing(
        blueprint_figures.blueprints(table),
        "02_blueprints",
        table,
        alt=f"Drawings of {' and '.join(models)} side by side: embedding, what each layer has, a strip "
        "of all layers, and how a text becomes one vector.",
    )


def beside_mine(study: Study, compared: Standard, mine: str | None) -> pd.DataFrame:
    """What the standard encoder and the model ``mine`` reach and cost; ``mine`` is trained with one seed if it is new."""
    sizes, runs = study.profile, compared.runs
    if mine:
        runs = runs + study.runs_of([RunSpec(mine, sizes.data, sizes.recipe_of(mine), 0)])
    return runs.table[["model", "seed", "accuracy", "parameters", "train_seconds"]]
