"""``rtx train``, ``params``, ``results`` and ``doctor``: train a run, count parameters, list runs, check the installation."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from rtx.cli.common import cli, data_spec, find_run, json_option, parse_labels, require_threads, settings_of, show
from rtx.cli.output import formula_note, inert
from rtxlib.errors import InputError, counted, visible

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

    `torchrun --nproc-per-node 2 -m rtx train --model M --data D` trains it in two processes, each on its share of every batch.
    """
    from rtx import training, use
    from rtxlib import paths
    from rtxlib.data.prepare import prepare
    from rtxlib.models.checkpoint_files import read_json
    from rtxlib.models.pretrained import is_pretrained
    from rtxlib.runs import store
    from rtxlib.runs.spec import RunSpec
    from rtxlib.training import parallel

    require_threads(threads)
    settings, recipe_changes = settings_of(overrides), settings_of(changes)
    taught_by = None
    if teacher is not None:
        if use.is_classifier(of_teacher := find_run(teacher)):
            raise InputError(f"{teacher} holds {of_teacher.spec['model']}, no network; --teacher takes a run of `rtx train`.")
        taught_by = RunSpec.from_canonical(of_teacher.spec)
        key = read_json(of_teacher.path / store.MARK).get("key", of_teacher.key)  # a copy may have another name than its key
        if key != taught_by.key(prepare(taught_by.data, paths.prepared_dir()).fingerprint):
            raise InputError(
                f"The data or the pretrained weights of the run {teacher} have changed since it was trained; train the teacher "
                "again."
            )
    model = training.checked_model(model, recipe, settings, recipe_changes)
    if is_pretrained(model):  # its own tokenizer comes with it
        of_data["tokenizer"] = model
    if of_data["labels"] is not None:
        of_data["labels"] = parse_labels(of_data["labels"])
    parallel.join()

    def say(line: str) -> None:
        if parallel.rank() == 0:
            click.echo(visible(line), err=True)

    source = data_spec(data, **of_data)
    trained = training.train(model, source, recipe, seed, settings, threads, taught_by, recipe_changes, say)
    if trained is not None:
        run = trained.run
        show({**run.metrics, **trained.baselines, "learned": trained.learned, "key": run.key, "run": str(run.path)}, as_json)
        if not trained.learned:
            say(trained.advice)


@cli.command()
@click.argument("model")
@set_option
@json_option
def params(model: str, overrides: tuple[str, ...], as_json: bool) -> None:
    """Count a model's parameters: in all, in the embedding matrix, and without it."""
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
    from rtx import archive
    from rtxlib import paths
    from rtxlib.runs import store

    damaged: list[str] = []
    runs = archive.every(paths.runs_dir(), damaged.append)
    for line in damaged:
        click.echo(visible(line), err=True)
    for run in runs:
        if lost := archive.lost(run):
            click.echo(visible(lost), err=True)
    table = store.runs_table(runs)
    table = table.map(lambda cell: visible(cell) if isinstance(cell, str) else cell)  # names of files and models
    if not len(table):
        where = visible(str(paths.runs_dir()))
        none = f"There is no run in {where} yet; `rtx train` or `rtx report` makes some."
        click.echo(f"No run in {where} can be read." if damaged else none, err=True)
    elif csv:
        table, changed = inert(table)
        click.echo(table.to_csv(index=False), nl=False)
        if changed:
            click.echo(formula_note(changed), err=True)
    else:
        columns = ["key", "model", "sharing", "data", "recipe", "seed", "accuracy", "f1"]
        columns += ["non_embedding_parameters", "train_seconds"]
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
        click.echo(f"{counted(len(findings), 'run')} in {visible(str(paths.runs_dir()))}, {wrong} of them damaged")
    if wrong:
        sys.exit(1)
