"""Is the recurrent encoder as accurate as the standard one on the headline data, with a shared block and with an unshared one?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from rtxstudy import comparisons
from rtxstudy.confusion import confusion_counts
from rtxstudy.figures.save import Drawing
from rtxstudy.finished import Runs
from rtxstudy.questions.accuracy import accuracy_claims, accuracy_figures, training_figures

if TYPE_CHECKING:
    from rtxstudy import Study


@dataclass(frozen=True)
class Sharing:
    """The standard encoder, and the recurrent one with its block shared and unshared."""

    study: str  # under which this is published: with a variant it is a study of its own
    runs: Runs
    shared: Runs
    unshared: Runs
    scores: pd.DataFrame  # a row for each run and each baseline: model, seed, accuracy, …
    differences: pd.DataFrame  # of each pair, and of the shared encoder and counting words; as comparisons.comparisons


def sharing(study: Study) -> Sharing:
    """The three encoders; missing runs are trained."""
    runs, baselines = study.run("baseline", "recurrent"), study.counting_words()
    standard, shared, unshared = (runs.where(sharing=word) for word in ("none", "shared", "unshared"))
    pairs = [(shared, standard), (unshared, standard), (shared, unshared)]
    differences = [comparisons.comparisons(*pairs), comparisons.against_words(shared, baselines)]
    return Sharing(
        f"recurrent {shared.model}" if study.profile.variant else "recurrent",
        runs,
        shared,
        unshared,
        pd.concat([runs.table, baselines], ignore_index=True),
        pd.concat(differences, ignore_index=True),
    )


def draw_accuracy(study: Study, compared: Sharing) -> Drawing:
    title = study.title(accuracy_claims.sharing_title, compared.differences, otherwise="Accuracy of each model")
    return Drawing(
        accuracy_figures.accuracy_intervals(compared.scores, title=title),
        "03_accuracy",
        compared.scores[["model", "seed", "accuracy"]],
        alt="Test accuracy of the standard encoder, the recurrent encoder with shared and with "
        "unshared block, and classical baselines.",
        caption="Small points are seeds; the bar is the 95 % interval of their mean.",
    )


def draw_differences(study: Study, compared: Sharing) -> Drawing:
    return Drawing(
        accuracy_figures.paired_differences(compared.differences, "Differences of each pair of models"),
        "03_differences",
        compared.differences,
        alt="Differences in test accuracy between the shared, the unshared and the standard encoder, "
        "and from counting words, with 95 % intervals.",
        caption="Paired by seed and by test text; the interval covers new seeds and new texts.",
    )


def draw_curves(study: Study, compared: Sharing) -> Drawing:
    curves = compared.runs.part("curves")
    title = study.title(accuracy_claims.learning, curves, 3, otherwise="Loss and accuracy by epoch")
    return Drawing(
        training_figures.training_curves(curves, title),
        "03_training_curves",
        curves,
        alt="Training and validation loss and validation accuracy of the three encoders by epoch.",
    )


def draw_confusion(study: Study, compared: Sharing) -> Drawing:
    counts = confusion_counts(compared.shared.part("predictions"), compared.shared.labels)
    title = study.title(accuracy_claims.confusion_title, counts, otherwise="Labels given")
    return Drawing(
        accuracy_figures.confusion(counts, title=title),
        "03_confusion",
        counts,
        alt=f"Confusion matrix of {compared.shared.model} on the test split, seeds pooled.",
    )
