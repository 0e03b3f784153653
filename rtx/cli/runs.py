"""``rtx train``, ``params``, ``results`` and ``doctor``: train a run, count parameters, list runs, check the installation."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rtx.cli.common import cli, data_spec, find_run, json_option, parse_labels, require_threads, settings_of, show
from rtx.cli.output import formula_note, inert
from rtxlib.errors import InputError, visible

if TYPE_CHECKING:
    from rtxlib.data.prepared import Prepared
    from rtxlib.runs.store import Run

FEW_TESTS = 30  # test texts; the accuracy on fewer is uncertain by more than 0.09 (standard error of a half)
MANY_LABELS = 200  # whose words take a while to count
COUNTED_ROWS = 100_000  # training rows in which words are counted at most; more take minutes and gigabytes

set_option = click.option(
    "--set", "overrides", multiple=True, metavar="FIELD=VALUE", help="Set a field of the model's configuration."
)


@cli.command()
@click.option(
    "--model",
    required=True,
    help="standard-<layers>x<width>, recurrent-<layers>x<passes>x<width>, another preset, or a pretrained model's "
    "Hub id or folder.",
)
@click.option("--data", required=True, help="A source (sst2, embedded, …) or a CSV, TSV, JSONL or Parquet file.")
@click.option(
    "--recipe",
    help="published, default, demo, smoke, few, small or medium; finetune or frozen for a pretrained model. "
    "Without it the number of training rows decides, and a pretrained model is fine-tuned.",
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0, 2**63 - 1))
@click.option(
    "--threads",
    default=1,
    show_default=True,
    type=click.IntRange(1),
    help="CPU threads. The number is part of the run, because another number rounds differently. With 1, as in the study, "
    "the same command is the same run on every machine; with all cores a large model is trained sooner.",
)
@click.option("--task", help="The task of the data: sentiment, domain, spam, stars, inference, acceptability, same or pointer.")
@click.option("--text-column", help="A file's column of texts; 'text' by default.")
@click.option("--text-pair-column", help="A file's column of second texts, where each row is a pair of texts.")
@click.option("--label-column", help="A file's column of labels; 'label' by default.")
@click.option("--labels", help='JSON for a file\'s labels: {"value": "label name", …}. An empty name drops the rows.')
@click.option("--rows", type=click.IntRange(1), help="Use at most this many rows.")
@click.option("--max-length", type=int, help="Cut texts after this many tokens (8 to 512).")
@click.option(
    "--teacher",
    metavar="RUN",
    help="A run with the same labels, whose answers the model learns beside the labels (half and half, or --recipe-set "
    "distillation=SHARE).",
)
@set_option
@click.option("--recipe-set", "changes", multiple=True, metavar="FIELD=VALUE", help="Set a field of the recipe.")
@json_option
def train(
    model: str,
    data: str,
    recipe: str | None,
    seed: int,
    threads: int,
    teacher: str | None,
    overrides: tuple[str, ...],
    changes: tuple[str, ...],
    as_json: bool,
    **of_data: Any,
) -> None:
    """Train one model. A run that is already in the store is not trained again.

    Beside the run's own scores it prints the test accuracy of the majority class and of counting words.

    `torchrun --nproc-per-node 2 -m rtx train …` trains it in two processes, each on its share of every batch.
    """
    from rtxlib import paths
    from rtxlib.data.prepare import prepare
    from rtxlib.models.presets import CHECKPOINTS, preset
    from rtxlib.models.pretrained import is_pretrained, read_config
    from rtxlib.runs import store
    from rtxlib.runs.spec import RunSpec, check_overrides, check_weights
    from rtxlib.runs.train import train_run
    from rtxlib.training import parallel
    from rtxlib.training.recipe import fitting
    from rtxlib.training.recipe import recipe as named_recipe

    require_threads(threads)
    settings, of_recipe = settings_of(overrides), settings_of(changes)
    taught_by = None
    if teacher is not None:
        taught_by = RunSpec.from_canonical(find_run(teacher).spec)
        of_recipe = {"distillation": 0.5} | of_recipe
    check_overrides(settings)
    check_weights(model, named_recipe(recipe or "default", **of_recipe))  # a mistake is reported before any data are fetched
    if is_pretrained(model):  # its own tokenizer comes with it
        folder = Path(model).expanduser()
        model = of_data["tokenizer"] = folder.resolve().as_posix() if folder.is_dir() else model
        read_config(model, **settings)
    else:
        preset(model, **settings)  # so that a mistyped name is reported before any data are fetched
    if of_data["labels"] is not None:
        of_data["labels"] = parse_labels(of_data["labels"])
    parallel.join()

    def say(line: str) -> None:
        if parallel.rank() == 0:
            click.echo(visible(line), err=True)

    if model in CHECKPOINTS:
        say(f"{model} starts from random weights; with pretrained ones it is --model {CHECKPOINTS[model]}")
    store.sweep(paths.root())
    source = data_spec(data, **of_data)
    prepared = prepare(source, paths.prepared_dir())
    for note in prepared.provenance["notes"]:
        say(f"data: {note}")
    steps = prepared.filters.set_index("step")
    if cut := int(steps["rows_changed"].get(f"texts cut to {source.max_length} tokens", 0)):
        longer = "1 text is longer" if cut == 1 else f"{cut:,} texts are longer"
        say(f"data: {longer} than {source.max_length} tokens; only the beginning is read (--max-length, at most 512)")
    rows = len(prepared.splits["train"])
    fit = fitting(rows, is_pretrained(model))
    chosen = named_recipe(recipe or fit, **of_recipe)
    if recipe is None:
        why = "pretrained weights" if is_pretrained(model) else f"{rows:,} training rows"
        say(f"{why}: recipe {fit} ({chosen.epochs:g} epochs, {chosen.batch_rows} rows in a step); --recipe takes another")
    spec = RunSpec(model, source, chosen, seed, settings, threads, parallel.processes(), teacher=taught_by)
    run = train_run(spec, paths.runs_dir(), say, data=prepared)
    if parallel.rank() > 0:
        return
    beside = _beside(prepared, say)
    beside["learned"] = run.metrics["accuracy"] > beside["majority_accuracy"]
    show({**run.metrics, **beside, "key": run.key, "run": str(run.path)}, as_json)
    if not beside["learned"]:
        say(_not_learned(run, beside, recipe if recipe != fit else None))


def _beside(data: Prepared, say: Callable[[str], None]) -> dict[str, Any]:
    """The test accuracy of the majority class and of counting words; the latter is None where no words can be counted."""
    import numpy as np

    from rtx.baselines.counting_words import baseline, majority

    labels = {split: np.asarray(tokens.labels) for split, tokens in data.splits.items()}
    texts = {split: data.texts(split) for split in data.splits}
    if (rows := len(labels["train"])) > COUNTED_ROWS:
        say(f"counting words, to compare, in {COUNTED_ROWS:,} of the {rows:,} training rows")
        drawn = np.random.default_rng(0).permutation(rows)[:COUNTED_ROWS]
        texts["train"], labels["train"] = [texts["train"][row] for row in drawn], labels["train"][drawn]
    else:
        many = len(data.label_names)
        say("counting words, to compare" + (f"; with {many:,} labels this may take minutes" if many > MANY_LABELS else ""))
    accuracy = {
        "majority_accuracy": majority(labels["train"], labels["test"], data.label_names)["accuracy"],
        "counting_words_accuracy": None,
    }
    try:
        splits = ("train", "test", "validation")
        fitted = baseline(*(part for split in splits for part in (texts[split], labels[split])), data.label_names)
        accuracy["counting_words_accuracy"] = fitted["accuracy"]
    except InputError as error:
        say(f"Words cannot be counted here: {error}")
    return accuracy


def _not_learned(run: Run, beside: Mapping[str, Any], named: str | None) -> str:
    """What to try after a run that is no better than the majority class. named: a recipe that the user chose, if any."""
    from rtxlib.models.presets import CHECKPOINTS

    metrics, words = run.metrics, beside["counting_words_accuracy"]
    tries = [f"more epochs (--recipe-set epochs={max(2, round(2 * run.spec['recipe']['epochs']))})", "more rows"]
    if named is not None:
        tries.insert(0, f"another recipe than {named} (without --recipe the number of rows decides)")
    if metrics["family"] == "pretrained":
        tries.append(f"another learning rate (--recipe-set learning_rate={run.spec['recipe']['learning_rate'] / 2:g})")
    else:
        tries.append(f"a pretrained encoder (--model {CHECKPOINTS['minilm-l6']})")
    sentence = f"{metrics['model']} has not learned to tell the labels apart"
    if metrics["n_test"] < FEW_TESTS:
        sentence = f"{metrics['n_test']} test texts are too few to tell whether {metrics['model']} has learned"
    texts = "1 test text" if metrics["n_test"] == 1 else f"{metrics['n_test']:,} test texts"
    return (
        f"{sentence}: its accuracy on {texts} is {metrics['accuracy']:.3f}, that of the majority class "
        f"{beside['majority_accuracy']:.3f}"
        f"{'' if words is None else f', that of counting words {words:.3f}'}. "
        f"Try {', '.join(tries[:-1])} or {tries[-1]}."
    )


@cli.command()
@click.argument("model")
@set_option
@json_option
def params(model: str, overrides: tuple[str, ...], as_json: bool) -> None:
    """Count a model's parameters: in all, in the token table, and without it."""
    from rtxlib.models.presets import preset
    from rtxlib.models.size import parameter_count
    from rtxlib.runs.spec import check_overrides

    settings = settings_of(overrides)
    check_overrides(settings, but=("vocab_size", "num_labels"))  # in a training the data decide these
    count = parameter_count(preset(model, **settings))  # without building it: it may be larger than memory
    if as_json:
        click.echo(json.dumps(count))
    else:
        for name, number in count.items():
            click.echo(f"{name:14} {number:>12,}")


@cli.command()
@click.option("--csv", is_flag=True, help="Print all columns, comma-separated.")
def results(csv: bool) -> None:
    """Print the table of the runs in the store.

    Runs with damaged records are left out, and runs that lack a file are named. `rtx doctor --store` checks every file.
    """
    from rtxlib import paths
    from rtxlib.runs import store

    runs = store.every(paths.runs_dir(), lambda line: click.echo(visible(line), err=True))
    for run in runs:
        if lost := store.lost(run):
            click.echo(visible(lost), err=True)
    table = store.runs_table(runs)
    table = table.map(lambda cell: visible(cell) if isinstance(cell, str) else cell)  # names of files and models
    if not len(table):
        click.echo(f"There is no run in {visible(str(paths.runs_dir()))} yet; `rtx train` or `rtx report` makes some.", err=True)
    elif csv:
        table, changed = inert(table)
        click.echo(table.to_csv(index=False), nl=False)
        if changed:
            click.echo(formula_note(changed), err=True)
    else:
        columns = ["key", "model", "sharing", "data", "recipe", "seed", "accuracy", "f1"]
        columns += ["non_embedding_parameters", "ms_median", "train_seconds"]
        click.echo(table.reindex(columns=columns).to_string(index=False, float_format=lambda x: f"{x:.3f}"))


@cli.command()
@click.option("--store", "of_store", is_flag=True, help="Check every run of the store instead, and name the damaged ones.")
def doctor(of_store: bool) -> None:
    """Check that this installation is complete.

    With --store, compare the files of every finished run with their checksums and account for every tensor. Nothing is changed
    or deleted. The exit status is 1 when something is wrong.
    """
    from rtx.doctor import examine, examine_store
    from rtxlib import paths

    findings = examine_store(paths.runs_dir()) if of_store else examine()
    for finding in findings:
        click.echo(f"{'ok ' if finding['ok'] else 'BAD'}  {visible(finding['check']):21} {visible(finding['found'])}")
    wrong = sum(not finding["ok"] for finding in findings)
    if of_store:
        click.echo(f"{len(findings)} runs in {visible(str(paths.runs_dir()))}, {wrong} of them damaged")
    if wrong:
        sys.exit(1)
