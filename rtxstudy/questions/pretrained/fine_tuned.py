"""Does a pretrained encoder know spam, and what is its pretraining worth on the headline task?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from rtxstudy import comparisons, names
from rtxstudy.absent import Absent
from rtxstudy.figures.save import Drawing
from rtxstudy.finished import Runs
from rtxstudy.numbers import with_spread
from rtxstudy.questions.accuracy import accuracy_figures
from rtxstudy.questions.pretrained import pretraining_claims
from rtxstudy.questions.pretrained.checkpoint import checkpoint

if TYPE_CHECKING:
    from rtxstudy import Study


@dataclass(frozen=True)
class Spam:
    """BERT from random weights and, where its weights are here, MiniLM fine-tuned and frozen, on the splits of the spam task."""

    runs: Runs
    scores: pd.DataFrame  # a row for each run and each baseline: model, seed, precision, recall, f1, …
    classical: pd.DataFrame  # the baselines, as the report shows them
    label: str  # of the data


@dataclass(frozen=True)
class Headline:
    """The fine-tuned encoder beside the study's encoders from random weights."""

    runs: Runs
    scores: pd.DataFrame  # a row for each run and each baseline: model, seed, accuracy, …
    differences: pd.DataFrame | Absent  # fine-tuned − each other, as comparisons.comparisons


def fine_tuned(study: Study) -> Runs | Absent:
    """The fine-tunings of the pretrained encoder on spam and on the headline task; missing runs are trained."""
    reached = study.ask(checkpoint)
    return reached if isinstance(reached, Absent) else study.run("finetuning")


def spam(study: Study) -> Spam:
    """All models on spam; without pretrained weights those from random weights alone. Missing runs are trained."""
    small, tuned = study.run("spam"), study.ask(fine_tuned)
    runs = small if isinstance(tuned, Absent) else small + tuned.where(task="spam")
    baselines = pd.concat([study.counting_words(spec.data) for spec in small.specs], ignore_index=True)
    label = small[0].metrics["data"]
    classical = baselines.drop(columns="correct").assign(data=label)
    return Spam(runs, pd.concat([runs.table, baselines], ignore_index=True), classical, label)


def draw_spam(study: Study, answer: Spam) -> Drawing:
    title = study.title(pretraining_claims.spam_title, answer.scores, otherwise="F1 on spam")
    return Drawing(
        accuracy_figures.accuracy_intervals(answer.scores.assign(data=answer.label), value="f1", title=title),
        "07_spam",
        answer.scores[["model", "seed", "precision", "recall", "f1", "accuracy", "n_test"]],
        alt="F1 on spam of BERT from scratch, of MiniLM fine-tuned and frozen, and of classical "
        "baselines, with intervals over splits.",
    )


def headline(study: Study) -> Headline:
    """The headline task with and without pretraining, paired by the seeds that both have. Missing runs are trained."""
    sizes, tuned = study.profile, study.ask(fine_tuned)
    label = study.source()["data"]
    runs, name = study.run("baseline", "recurrent"), sizes.pretrained.rsplit("/", 1)[-1]
    differences: pd.DataFrame | Absent = tuned if isinstance(tuned, Absent) else pd.DataFrame()
    if not isinstance(tuned, Absent):
        runs += tuned.where(task=sizes.data.task, data=label)
        seeds = range(min(sizes.seeds, sizes.pretrained_seeds))
        arms = [runs.where(model=model, seed=seeds) for model in (name, sizes.standard, sizes.recurrent)]
        differences = comparisons.comparisons((arms[0], arms[1]), (arms[0], arms[2]))
    scores = pd.concat([runs.table, study.counting_words().assign(data=label)], ignore_index=True)
    return Headline(runs, scores, differences)


def draw_headline(study: Study, answer: Headline) -> Drawing:
    paired = pd.DataFrame() if isinstance(answer.differences, Absent) else answer.differences
    title = study.title(pretraining_claims.worth_title, paired, otherwise="Accuracy of each model")
    return Drawing(
        accuracy_figures.accuracy_intervals(answer.scores, title=title),
        "07_pretraining",
        answer.scores[["model", "seed", "accuracy", "f1", "parameters", "n_test"]],
        alt="Test accuracy of MiniLM fine-tuned, of the study's models from random weights, and of classical baselines.",
    )


def readable_spam(scores: pd.DataFrame) -> pd.DataFrame:
    """Precision, recall and F1 of each model on spam, as mean ± standard deviation over the splits, the best F1 first."""
    models = scores.groupby("model")
    order = models["f1"].mean().sort_values(ascending=False).index
    table = {"model": list(order)}
    for name in ("precision", "recall", "f1"):
        mean, sd = models[name].mean()[order], models[name].std()[order]
        table[f"{names.column(name)} (%)"] = [with_spread(a, b) for a, b in zip(mean, sd, strict=True)]
    return pd.DataFrame(table | {"splits": models.size()[order].tolist()})
