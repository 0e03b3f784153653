"""Train one model as ``rtx train`` does: choose its recipe, train it, and hold it against two baselines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rtx import archive
from rtx.baselines.counting_words import baseline, majority
from rtx.model_names import whole
from rtxlib import paths
from rtxlib.data.prepare import Prepared, prepare
from rtxlib.data.spec import DataSpec
from rtxlib.errors import InputError, counted
from rtxlib.models.presets import CHECKPOINTS, preset
from rtxlib.models.pretrained import is_pretrained, read_config
from rtxlib.runs.spec import RunSpec, check_overrides, check_weights
from rtxlib.runs.store import Run
from rtxlib.runs.train import train_run
from rtxlib.training import parallel
from rtxlib.training.recipe import recipe as named_recipe

FEW_TESTS = 30  # test texts; the accuracy on fewer is uncertain by more than 0.09 (standard error of a half)
MANY_LABELS = 200  # whose words take a while to count
BY_ROWS = {2_000: "few", 10_000: "small", 40_000: "medium"}  # fewer training rows than this -> recipe (LOG.md)
COUNTED_ROWS = 100_000  # training rows in which words are counted at most; more take minutes and gigabytes


def fitting(rows: int, pretrained: bool) -> str:
    """The name of the recipe for a model on so many training rows. pretrained: whether it starts from pretrained weights."""
    if pretrained:
        return "finetune"
    return next((name for limit, name in BY_ROWS.items() if rows < limit), "default")


@dataclass(frozen=True)
class TrainedRun:
    """A finished run beside its baselines."""

    run: Run
    baselines: dict[str, float | None]  # test accuracies: majority_accuracy; counting_words_accuracy, None where none count
    recipe: str | None  # the recipe that the user chose against the number of rows

    @property
    def learned(self) -> bool:
        """Whether the run is better than the most frequent label."""
        return self.run.metrics["accuracy"] > self.baselines["majority_accuracy"]

    @property
    def advice(self) -> str:
        """What to try after a run that is no better than the most frequent label."""
        metrics, recipe = self.run.metrics, self.run.spec["recipe"]
        attempts = [f"more epochs (--recipe-set epochs={max(2, round(2 * recipe['epochs']))})", "more rows"]
        if self.recipe is not None:
            attempts.insert(0, f"another recipe than {self.recipe} (without --recipe the number of rows decides)")
        if metrics["family"] == "pretrained":
            attempts.append(f"another learning rate (--recipe-set learning_rate={recipe['learning_rate'] / 2:g})")
        else:
            attempts.append(f"a pretrained encoder (--model {CHECKPOINTS['minilm-l6']})")
        texts = counted(metrics["n_test"], "test text")
        sentence = f"{metrics['model']} has not learned to tell the labels apart"
        if metrics["n_test"] < FEW_TESTS:
            are = "is" if metrics["n_test"] == 1 else "are"
            sentence = f"{texts} {are} too few to tell whether {metrics['model']} has learned"
        words = self.baselines["counting_words_accuracy"]
        return (
            f"{sentence}: its accuracy on {texts} is {metrics['accuracy']:.3f}, that of the majority class "
            f"{self.baselines['majority_accuracy']:.3f}"
            f"{'' if words is None else f', that of counting words {words:.3f}'}. "
            f"Try {', '.join(attempts[:-1])} or {attempts[-1]}."
        )


def checked_model(model: str, recipe: str | None, settings: Mapping[str, Any], changes: Mapping[str, Any]) -> str:
    """The model's name as the store knows it: a folder's whole path, else the name itself. No data are read.

    Raises InputError for an unknown model or recipe, for settings that do not fit, and for a recipe that needs pretrained weights
    where there are none.
    """
    check_overrides(settings)
    check_weights(model, named_recipe(recipe or "default", **changes))
    if not is_pretrained(model):
        preset(model, **settings)
        return model
    model = whole(model)
    read_config(model, **settings)
    return model


def train(
    model: str,
    source: DataSpec,
    recipe: str | None,
    seed: int,
    settings: Mapping[str, Any],
    threads: int,
    teacher: RunSpec | None,
    changes: Mapping[str, Any],
    say: Callable[[str], None],
) -> TrainedRun | None:
    """Train a model (:func:`checked_model`), or take the same run from the store.

    Of several processes only the first returns the run; the others return None.

    recipe: a recipe's name; None chooses by the number of training rows. changes: fields of the recipe.
    """
    if model in CHECKPOINTS:
        say(f"{model} starts from random weights; with pretrained ones it is --model {CHECKPOINTS[model]}")
    archive.sweep(paths.root())
    prepared = prepare(source, paths.prepared_dir())
    for note in _notes(prepared, source.max_length):
        say(f"data: {note}")
    rows = len(prepared.splits["train"])
    fit = fitting(rows, is_pretrained(model))
    with_teacher = {} if teacher is None else {"distillation": 0.5}
    chosen = named_recipe(recipe or fit, **{**with_teacher, **changes})
    if recipe is None:
        why = "pretrained weights" if is_pretrained(model) else f"{rows:,} training rows"
        say(f"{why}: recipe {fit} ({chosen.epochs:g} epochs, {chosen.batch_rows} rows in a step); --recipe takes another")
    spec = RunSpec(model, source, chosen, seed, dict(settings), threads, parallel.processes(), teacher=teacher)
    run = train_run(spec, paths.runs_dir(), say, data=prepared)
    if parallel.rank() > 0:
        return None
    return TrainedRun(run, baselines(prepared, say), recipe if recipe != fit else None)


def _notes(prepared: Prepared, max_length: int) -> list[str]:
    notes = list(prepared.provenance["notes"])
    steps = prepared.filters.set_index("step")
    if cut := int(steps["rows_changed"].get(f"texts cut to {max_length} tokens", 0)):
        longer = "1 text is longer" if cut == 1 else f"{cut:,} texts are longer"
        notes.append(f"{longer} than {max_length} tokens; only the beginning is read (--max-length, at most 512)")
    return notes


def baselines(prepared: Prepared, say: Callable[[str], None]) -> dict[str, float | None]:
    """The test accuracy of the majority class and of counting words; the latter is None where no words can be counted."""
    labels = {split: np.asarray(tokens.labels) for split, tokens in prepared.splits.items()}
    texts = {split: prepared.texts(split) for split in prepared.splits}
    if (rows := len(labels["train"])) > COUNTED_ROWS:
        say(f"counting words, to compare, in {COUNTED_ROWS:,} of the {rows:,} training rows")
        sample = np.random.default_rng(0).permutation(rows)[:COUNTED_ROWS]
        texts["train"], labels["train"] = [texts["train"][row] for row in sample], labels["train"][sample]
    else:
        many = len(prepared.label_names)
        say("counting words, to compare" + (f"; with {many:,} labels this may take minutes" if many > MANY_LABELS else ""))
    accuracy: dict[str, float | None] = {
        "majority_accuracy": majority(labels["train"], labels["test"], prepared.label_names)["accuracy"],
        "counting_words_accuracy": None,
    }
    try:
        splits = ("train", "test", "validation")
        counted = baseline(*(part for split in splits for part in (texts[split], labels[split])), prepared.label_names)
        accuracy["counting_words_accuracy"] = counted["accuracy"]
    except InputError as error:
        say(f"Words cannot be counted here: {error}")
    return accuracy
