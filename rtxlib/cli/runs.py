"""``rtx train``, ``params``, ``results`` and ``doctor``: make runs, count, list, examine."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import click

from rtxlib.cli.common import cli, data_spec, json_option, parse_labels, settings_of, show
from rtxlib.errors import InputError


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
    help="Of the CPU. They are part of the run, since another number rounds differently: with 1, as the study has it, the "
    "same command is the same run on machines of any size; a large model has its result sooner with all cores.",
)
@click.option("--task", help="sentiment, domain or spam.")
@click.option("--text-column", help="Of a file.")
@click.option("--label-column", help="Of a file.")
@click.option("--labels", help='Of a file, JSON: {"value": "label name", …}; an empty name drops the rows.')
@click.option("--rows", type=click.IntRange(1), help="At most so many rows.")
@click.option("--max-length", type=int, help="Tokens of a text, at most (8 to 512).")
@click.option("--set", "overrides", multiple=True, metavar="FIELD=VALUE", help="A field of the model's configuration.")
@click.option("--recipe-set", "changes", multiple=True, metavar="FIELD=VALUE", help="A field of the recipe.")
@json_option
def train(
    model: str,
    data: str,
    recipe: str,
    seed: int,
    threads: int,
    task: str | None,
    text_column: str | None,
    label_column: str | None,
    labels: str | None,
    rows: int | None,
    max_length: int | None,
    overrides: tuple[str, ...],
    changes: tuple[str, ...],
    as_json: bool,
) -> None:
    """Train one model; a run that is in the store already is not trained again.

    `torchrun --nproc-per-node 2 -m rtxlib train …` trains it in two processes, each on its share of every batch.
    """
    from rtxlib import paths
    from rtxlib.models.presets import preset
    from rtxlib.models.pretrained import is_pretrained, read_config
    from rtxlib.runs.spec import RunSpec, check_overrides
    from rtxlib.runs.train import train_run
    from rtxlib.training import parallel
    from rtxlib.training.recipe import recipe as named_recipe

    cores = os.cpu_count() or 1
    if threads > 4 * cores:  # a few too many are slow, very many end the process
        raise InputError(f"--threads {threads} is too many for this machine's {cores} cores; give at most {4 * cores}.")
    chosen, settings = named_recipe(recipe, **settings_of(changes)), settings_of(overrides)
    check_overrides(settings)
    tokenizer = None
    if is_pretrained(model):  # its own tokenizer comes with it
        model = str(Path(model).expanduser().resolve()) if Path(model).expanduser().is_dir() else model
        tokenizer = model
        read_config(model, **settings)
    else:
        preset(model, **settings)  # a mistyped name should be told before any data are fetched
    if labels is not None:
        labels = parse_labels(labels)
    parallel.join()
    spec = RunSpec(
        model,
        data_spec(
            data,
            task=task,
            text_column=text_column,
            label_column=label_column,
            labels=labels,
            rows=rows,
            max_length=max_length,
            tokenizer=tokenizer,
        ),
        chosen,
        seed,
        settings,
        threads,
        parallel.processes(),
    )
    run = train_run(spec, paths.runs_dir(), lambda line: click.echo(line, err=True))
    if parallel.rank() == 0:
        show({**run.metrics, "key": run.key, "run": str(run.path)}, as_json)


@cli.command()
@click.argument("model")
@click.option("--set", "overrides", multiple=True, metavar="FIELD=VALUE", help="A field of the model's configuration.")
@json_option
def params(model: str, overrides: tuple[str, ...], as_json: bool) -> None:
    """Count a model's parameters: in all, in the token table, and without it."""
    from rtxlib.models import build
    from rtxlib.runs.cost import parameters
    from rtxlib.runs.spec import check_overrides

    settings = settings_of(overrides)
    check_overrides(settings, but=("vocab_size", "num_labels"))  # there are no data here that could decide them
    count = parameters(build(model, **settings))
    if as_json:
        click.echo(json.dumps(count))
    else:
        for name, number in count.items():
            click.echo(f"{name:14} {number:>12,}")


@cli.command()
@click.option("--csv", is_flag=True, help="All columns, comma-separated.")
def results(csv: bool) -> None:
    """The table of runs in the store."""
    from rtxlib import paths
    from rtxlib.runs import store

    table = store.runs_table(store.every(paths.runs_dir(), lambda line: click.echo(line, err=True)))
    if not len(table):
        click.echo(f"There is no run in {paths.runs_dir()} yet; `rtx train` or `rtx report` makes some.", err=True)
    elif csv:
        click.echo(table.to_csv(index=False), nl=False)
    else:
        shown = [
            "key",
            "model",
            "sharing",
            "data",
            "recipe",
            "seed",
            "accuracy",
            "f1",
            "non_embedding_parameters",
            "ms_median",
            "train_seconds",
        ]
        click.echo(table.reindex(columns=shown).to_string(index=False, float_format=lambda x: f"{x:.3f}"))


@cli.command()
def doctor() -> None:
    """Is this installation whole?"""
    from rtxlib.doctor import examine

    findings = examine()
    for finding in findings:
        click.echo(f"{'ok ' if finding['ok'] else 'BAD'}  {finding['check']:21} {finding['found']}")
    if not all(finding["ok"] for finding in findings):
        sys.exit(1)
