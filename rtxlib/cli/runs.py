"""``rtx train``, ``params``, ``results`` and ``doctor``: train a run, count parameters, list runs, check the installation."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import click

from rtxlib.cli.common import cli, data_spec, json_option, parse_labels, settings_of, show
from rtxlib.errors import InputError

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
    default="default",
    show_default=True,
    help="published, default, demo, smoke, small; finetune or frozen for a pretrained model.",
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
@click.option("--task", help="sentiment, domain or spam.")
@click.option("--text-column", help="A file's column of texts; 'text' by default.")
@click.option("--label-column", help="A file's column of labels; 'label' by default.")
@click.option("--labels", help='JSON for a file\'s labels: {"value": "label name", …}. An empty name drops the rows.')
@click.option("--rows", type=click.IntRange(1), help="Use at most this many rows.")
@click.option("--max-length", type=int, help="Cut texts after this many tokens (8 to 512).")
@set_option
@click.option("--recipe-set", "changes", multiple=True, metavar="FIELD=VALUE", help="Set a field of the recipe.")
@json_option
def train(
    model: str,
    data: str,
    recipe: str,
    seed: int,
    threads: int,
    overrides: tuple[str, ...],
    changes: tuple[str, ...],
    as_json: bool,
    **of_data: Any,
) -> None:
    """Train one model. A run that is already in the store is not trained again.

    `torchrun --nproc-per-node 2 -m rtxlib train …` trains it in two processes, each on its share of every batch.
    """
    from rtxlib import paths
    from rtxlib.models.presets import preset
    from rtxlib.models.pretrained import is_pretrained, read_config
    from rtxlib.runs import store
    from rtxlib.runs.spec import RunSpec, check_overrides
    from rtxlib.runs.train import train_run
    from rtxlib.training import parallel
    from rtxlib.training.recipe import recipe as named_recipe

    most = 4 * (os.cpu_count() or 1)  # a few too many threads are slow, very many end the process
    if threads > most:
        raise InputError(f"--threads {threads} is too many for this machine's {most // 4} cores; give at most {most}.")
    chosen, settings = named_recipe(recipe, **settings_of(changes)), settings_of(overrides)
    check_overrides(settings)
    if is_pretrained(model):  # its own tokenizer comes with it
        folder = Path(model).expanduser()
        model = of_data["tokenizer"] = str(folder.resolve()) if folder.is_dir() else model
        read_config(model, **settings)
    else:
        preset(model, **settings)  # so that a mistyped name is reported before any data are fetched
    if of_data["labels"] is not None:
        of_data["labels"] = parse_labels(of_data["labels"])
    parallel.join()
    store.sweep(paths.root())
    spec = RunSpec(model, data_spec(data, **of_data), chosen, seed, settings, threads, parallel.processes())
    run = train_run(spec, paths.runs_dir(), lambda line: click.echo(line, err=True))
    if parallel.rank() == 0:
        show({**run.metrics, "key": run.key, "run": str(run.path)}, as_json)


@cli.command()
@click.argument("model")
@set_option
@json_option
def params(model: str, overrides: tuple[str, ...], as_json: bool) -> None:
    """Count a model's parameters: in all, in the token table, and without it."""
    from rtxlib.models import build
    from rtxlib.runs.cost import parameters
    from rtxlib.runs.spec import check_overrides

    settings = settings_of(overrides)
    check_overrides(settings, but=("vocab_size", "num_labels"))  # in a training the data decide these
    count = parameters(build(model, **settings))
    if as_json:
        click.echo(json.dumps(count))
    else:
        for name, number in count.items():
            click.echo(f"{name:14} {number:>12,}")


@cli.command()
@click.option("--csv", is_flag=True, help="Print all columns, comma-separated.")
def results(csv: bool) -> None:
    """Print the table of the runs in the store."""
    from rtxlib import paths
    from rtxlib.runs import store

    table = store.runs_table(store.every(paths.runs_dir(), lambda line: click.echo(line, err=True)))
    if not len(table):
        click.echo(f"There is no run in {paths.runs_dir()} yet; `rtx train` or `rtx report` makes some.", err=True)
    elif csv:
        click.echo(table.to_csv(index=False), nl=False)
    else:
        shown = ["key", "model", "sharing", "data", "recipe", "seed", "accuracy", "f1"]
        shown += ["non_embedding_parameters", "ms_median", "train_seconds"]
        click.echo(table.reindex(columns=shown).to_string(index=False, float_format=lambda x: f"{x:.3f}"))


@cli.command()
def doctor() -> None:
    """Check that this installation is complete."""
    from rtxlib.doctor import examine

    findings = examine()
    for finding in findings:
        click.echo(f"{'ok ' if finding['ok'] else 'BAD'}  {finding['check']:21} {finding['found']}")
    if not all(finding["ok"] for finding in findings):
        sys.exit(1)
