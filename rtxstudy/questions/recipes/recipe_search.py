"""The trials of the recipe search: what each reached on validation texts, and which one is chosen. Test texts play no part."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pandas as pd

from rtxlib.training.recipe import Recipe
from rtxstudy.finished import Runs, core_seconds
from rtxstudy.statistics import error_of_share

FIRST, FINAL = "first", "final"  # the rounds
BEST = {"val_accuracy": False, "val_loss": True, "trial": True}  # what decides among trials → whether less is better
_WORDS = {  # field of Recipe → what a value means; a field that is not named here is written as it is
    "learning_rate": "learning rate {:g}",
    "epochs": "epochs {:g}",
    "batch_rows": "batches of {:,}",
    "dropout": "dropout {:g}",
    "word_dropout": "word dropout {:g}",
    "label_smoothing": "label smoothing {:g}",
    "average": "mean weights of the last {percent:.0f} % of the steps",
    "embedding_initializer_range": "token vectors start with standard deviation {:g}",
    "output_initializer": "output projections start {}",
    "keep": "the {} weights are kept",
    "evaluations_per_epoch": "evaluations per epoch {}",
}


def changes_in_words(recipe: Recipe, before: Recipe) -> str:
    """In what a recipe differs from the one before it: "epochs 2, dropout 0.3". Without a difference it is "nothing"."""
    parts = []
    for name, value in dataclasses.asdict(recipe).items():
        if name == "name" or value == getattr(before, name):
            continue
        text = value.replace("_", " ") if isinstance(value, str) else value
        percent = 100 * value if isinstance(value, float) else None
        parts.append(_WORDS.get(name, f"{name} {{}}").format(text, percent=percent))
    return ", ".join(parts) or "nothing"


def of_round(recipes: Sequence[Recipe], runs: Runs) -> pd.DataFrame:
    """What the trials of one round reached, one row per run. ``recipes``: those of all trials; the others change the first one.

    Columns: ``arm``; ``trial``, its number from 0; ``recipe``, its name; ``changes`` in words; ``seed``; ``val_accuracy`` and
    ``val_loss`` (nats) of the weights that were kept; ``epochs``; and ``core_seconds``, the processor time of the training.
    """
    rows = []
    for run, spec in zip(runs, runs.specs, strict=True):
        trial = recipes.index(spec.recipe)
        row = {"arm": spec.model, "trial": trial, "recipe": spec.recipe.name, "seed": spec.seed}
        row |= {"changes": changes_in_words(spec.recipe, recipes[0])}
        row |= {name: run.metrics[name] for name in ("val_accuracy", "val_loss", "epochs")}
        rows.append(row | {"core_seconds": core_seconds(run)})
    return pd.DataFrame(rows)


def trials(first: pd.DataFrame, finals: pd.DataFrame, texts: int) -> pd.DataFrame:
    """The whole search, one row per run; ``first`` and ``finals`` as :func:`of_round` gives them.

    Further columns: ``round`` ("first" or "final"); ``texts``, the validation texts that judge a run; ``standard_error`` of the
    accuracy over new texts, √(a(1 − a)/n); and ``chosen``: in the first round whether the trial goes on to the finals, in the
    finals whether its recipe is that of the arm. The finals choose the highest mean accuracy over seeds. The lower mean loss
    decides between equal ones.
    """
    table = pd.concat([first.assign(round=FIRST), finals.assign(round=FINAL)], ignore_index=True)
    table = table.assign(texts=texts, standard_error=error_of_share(table["val_accuracy"], texts))
    best = means(table[table["round"] == FINAL]).query("chosen")
    went_on = {FIRST: set(zip(finals["arm"], finals["trial"], strict=True))}
    went_on[FINAL] = set(zip(best["arm"], best["trial"], strict=True))
    pairs = zip(table["round"], table["arm"], table["trial"], strict=True)
    return table.assign(chosen=[(arm, trial) in went_on[name] for name, arm, trial in pairs])


def means(finals: pd.DataFrame) -> pd.DataFrame:
    """The finals as means over seeds, best first in each arm, and ``chosen``, the best one of an arm.

    ``finals``: the rows of the finals in :func:`trials`. ``standard_error`` is that of the mean accuracy over new texts. It does
    not shrink with more seeds, because all of them are judged on the same texts.
    """
    by = ["arm", "trial", "recipe", "changes", "texts"]
    table = finals.groupby(by, sort=False, as_index=False).agg(
        val_accuracy=("val_accuracy", "mean"),
        val_loss=("val_loss", "mean"),
        core_seconds=("core_seconds", "sum"),
        seeds=("seed", "size"),
    )
    table["standard_error"] = error_of_share(table["val_accuracy"], table["texts"])
    ordered = [
        part.sort_values(list(BEST), ascending=list(BEST.values())) for _, part in table.groupby("arm", sort=False)
    ]
    table = pd.concat(ordered, ignore_index=True)
    return table.assign(chosen=~table["arm"].duplicated())


def calibration(recipes: Sequence[Recipe], finals: Runs) -> pd.DataFrame:
    """What happens after the lowest validation loss: one row per arm and trial of the finals, from their mean curves over seeds.

    Columns: ``arm``, ``trial``, ``recipe``; ``lowest_epoch``, ``lowest_loss`` (nats) and ``accuracy_then``; ``last_epoch``,
    ``last_loss`` and ``last_accuracy`` of the last evaluation; and ``kind``: "falls" where the loss is lowest at the end,
    "calibration" where the loss rises and the accuracy too (more texts are right, and wrong ones are wrong with more certainty),
    "overfitting" where the loss rises and the accuracy does not.
    """
    curves = finals.part("curves").set_index("key")
    rows = []
    for arm in dict.fromkeys(spec.model for spec in finals.specs):
        for trial, recipe in enumerate(recipes):
            mine = [(spec.model, spec.recipe) == (arm, recipe) for spec in finals.specs]
            keys = [run.key for run, is_mine in zip(finals, mine, strict=True) if is_mine]
            if not keys:  # it did not go on to the finals
                continue
            curve = curves.loc[keys].groupby("step")[["epoch", "val_loss", "val_accuracy"]].mean()
            then, last = curve.loc[curve["val_loss"].idxmin()], curve.iloc[-1]
            kind = "calibration" if last["val_accuracy"] > then["val_accuracy"] else "overfitting"
            kind = kind if last["val_loss"] > then["val_loss"] else "falls"
            row = {"arm": arm, "trial": trial, "recipe": recipe.name, "lowest_epoch": then["epoch"]}
            row |= {"lowest_loss": then["val_loss"], "accuracy_then": then["val_accuracy"], "last_epoch": last["epoch"]}
            rows.append(row | {"last_loss": last["val_loss"], "last_accuracy": last["val_accuracy"], "kind": kind})
    return pd.DataFrame(rows)
