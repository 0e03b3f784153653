"""The ``rtx`` command: a thin door to the library. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import inspect
import json
import os
import sys
from pathlib import Path
from typing import Any

import click

from rtxlib.errors import InputError, nearest

PROFILE_NAMES = ("smoke", "demo", "full")  # rtxlib.experiments.profiles has them too; reading it would load torch


class _Commands(click.Group):
    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            raise click.UsageError(f"There is no command '{args[0]}'.{nearest(args[0], self.commands)}")
        return super().resolve_command(ctx, args)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="rtxlib")
def cli() -> None:
    """When does a recurrent transformer replace a deeper standard one, and what does it cost?

    Start with `rtx report`: the whole study at demo size, about ten minutes on two cores.
    """


_profile = click.option("--profile", default="demo", show_default=True, help=f"How large: {', '.join(PROFILE_NAMES)}.")
_parameter = click.option(
    "-p", "--parameter", "parameters", multiple=True, metavar="NAME=VALUE", help="A notebook's parameter."
)
_json = click.option("--json", "as_json", is_flag=True, help="Machine-readable; the last line is JSON.")


def _known_profile(name: str) -> str:
    if name not in PROFILE_NAMES:
        raise InputError(
            f"There is no profile '{name}'; there are {', '.join(PROFILE_NAMES)}.{nearest(name, PROFILE_NAMES)}"
        )
    return name


def _run_notebooks(
    names: list[str] | None, profile: str, parameters: tuple[str, ...], training: bool, title: str
) -> None:
    """Execute, make the page of all that is there, say where it lies, and fail when a notebook failed."""
    from rtxlib import paths
    from rtxlib.report import notebooks

    out = paths.reports_dir(profile)
    outcomes = notebooks.run(names, _known_profile(profile), notebooks.pairs(parameters), out, training=training)
    from rtxlib.report import html

    executed = [outcome.path for outcome in notebooks.read_outcomes(out) if outcome.path]
    if executed:
        page = html.build(executed, out / "report.html", title, outcomes)
        click.echo(f"report   {page}\nfigures  {paths.figures_dir(profile)}\nresults  {paths.results_dir(profile)}")
    if any(outcome.status != "done" for outcome in outcomes):
        for outcome in outcomes:
            if outcome.status != "done":
                click.echo(f"{outcome.name} {outcome.status}: {outcome.error}", err=True)
        sys.exit(1)


TITLE = "Recurrent or standard? Transformers for text classification"


@cli.command()
@_profile
@_parameter
@click.option("--notebooks", "names", metavar="01,02,…", help="Only these notebooks, and the page of all there are.")
@click.option("--no-training", is_flag=True, help="Redraw from the run store; fail where a run is missing.")
@click.option(
    "--dry-run", is_flag=True, help="How many runs there would be and how long they would take; trains nothing."
)
def report(profile: str, parameters: tuple[str, ...], names: str | None, no_training: bool, dry_run: bool) -> None:
    """Run the notebooks and make the report."""
    chosen = names.split(",") if names else None
    if not dry_run:
        return _run_notebooks(chosen, profile, parameters, not no_training, TITLE)
    _known_profile(profile)
    from rtxlib.experiments import estimate, profiles
    from rtxlib.report import notebooks

    sources = notebooks.find(chosen)
    given: dict[str, Any] = {}
    for checked in notebooks.plan(sources, profile, notebooks.pairs(parameters)).values():
        given |= checked
    sizes = {name: given[name] for name in given if name in inspect.signature(profiles.load).parameters}
    table = estimate.plan(profiles.load(profile, **sizes), sources)
    click.echo(table.to_string(index=False, float_format=lambda x: f"{x:.1f}"))
    click.echo(
        f"{table['to_train'].sum()} runs to train, {table['in_store'].sum()} in the store; "
        f"about {table['minutes'].sum():.0f} minutes of training on this device"
    )


@cli.command()
@click.argument("name")
@_profile
@_parameter
@click.option("--no-training", is_flag=True, help="Use the run store alone.")
def notebook(name: str, profile: str, parameters: tuple[str, ...], no_training: bool) -> None:
    """Run one notebook: `rtx notebook 03 -p seeds=3`."""
    _run_notebooks([name], profile, parameters, not no_training, TITLE)


def _data_spec(data: str, **fields: Any) -> Any:
    """The DataSpec of a name or of a file; None leaves a field's default."""
    from rtxlib.data.sources import HUB
    from rtxlib.data.spec import DataSpec

    given = {field: value for field, value in fields.items() if value is not None}
    known = ("embedded", "domains", *HUB)
    if data in known:
        return DataSpec(source=data, **given)
    if Path(data).suffix.lower() in (".csv", ".tsv", ".jsonl", ".parquet") or Path(data).exists():
        if not Path(data).is_file():
            raise InputError(f"There is no file '{data}'.")
        return DataSpec(source="file", path=str(Path(data).resolve()), **given)
    raise InputError(f"There is no data '{data}'; name a file, or one of {', '.join(known)}.{nearest(data, known)}")


def _settings(texts: tuple[str, ...]) -> dict[str, Any]:
    """``name=value`` pairs with JSON values; a bare word is a string."""
    settings = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"'{text}' is not NAME=VALUE.")
        try:
            settings[name] = json.loads(value)
        except json.JSONDecodeError:
            settings[name] = value
    return settings


@cli.command()
@click.option("--model", required=True, help="standard-<layers>x<width> or recurrent-<layers>x<iterations>x<width>.")
@click.option("--data", required=True, help="A source (sst2, embedded, …) or a CSV, TSV, JSONL or Parquet file.")
@click.option("--recipe", default="default", show_default=True, help="published, default, demo or smoke.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0))
@click.option("--task", help="sentiment, domain or spam.")
@click.option("--text-column", help="Of a file.")
@click.option("--label-column", help="Of a file.")
@click.option("--labels", help='Of a file, JSON: {"value": "label name", …}; an empty name drops the rows.')
@click.option("--rows", type=click.IntRange(1), help="At most so many rows.")
@click.option("--max-length", type=int, help="Tokens of a text, at most (8 to 512).")
@click.option("--set", "overrides", multiple=True, metavar="FIELD=VALUE", help="A field of the model's configuration.")
@click.option("--recipe-set", "changes", multiple=True, metavar="FIELD=VALUE", help="A field of the recipe.")
@_json
def train(
    model: str,
    data: str,
    recipe: str,
    seed: int,
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
    """Train one model; a run that is in the store already is not trained again."""
    from rtxlib import paths
    from rtxlib.experiments.execute import train_run
    from rtxlib.experiments.spec import RunSpec
    from rtxlib.models.presets import preset
    from rtxlib.training.recipe import recipe as named_recipe

    chosen, settings = named_recipe(recipe, **_settings(changes)), _settings(overrides)
    preset(model, **settings)  # a mistyped name should be told before any data are fetched
    if labels is not None:
        labels = _parse_labels(labels)
    spec = RunSpec(
        model,
        _data_spec(
            data,
            task=task,
            text_column=text_column,
            label_column=label_column,
            labels=labels,
            rows=rows,
            max_length=max_length,
        ),
        chosen,
        seed,
        settings,
    )
    run = train_run(spec, paths.runs_dir(), lambda line: click.echo(line, err=True))
    _show({**run.metrics, "key": run.key, "run": str(run.path)}, as_json)


def _parse_labels(text: str) -> dict[str, str]:
    try:
        labels = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f'--labels is not JSON ({error}); write it like \'{{"1": "good", "0": "bad"}}\'.') from None
    if not isinstance(labels, dict):
        raise InputError("--labels must be a JSON object from values in the file to label names.")
    return {str(value): str(name) for value, name in labels.items()}


def _show(record: dict[str, Any], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(record))
    else:
        for name, value in record.items():
            click.echo(f"{name:26} {value:.4f}" if isinstance(value, float) else f"{name:26} {value}")


def _read_table(path: str, column: str | None) -> tuple[Any, str]:
    """A table and its text column; a text file is a table of its lines."""
    import pandas as pd

    from rtxlib.data.files import read_table

    if Path(path).suffix.lower() in ("", ".txt"):
        lines = Path(path).read_bytes().decode("utf-8", errors="strict").splitlines()
        return pd.DataFrame({"text": lines}), "text"
    table = read_table(path)
    column = column or "text"
    if column not in table.columns:
        raise InputError(
            f"{path} has no column '{column}'; it has {', '.join(map(str, table.columns))}."
            f"{nearest(column, map(str, table.columns))} Name it with --text-column."
        )
    return table, column


@cli.command()
@click.argument("run")
@click.argument("texts", nargs=-1)
@click.option("--file", "file", help="A text file (one a line) or a CSV, TSV, JSONL or Parquet table.")
@click.option("--text-column", help="Of a table; 'text' by default.")
@click.option("--out", type=click.Path(dir_okay=False), help="Write CSV, JSONL or Parquet, by the ending.")
@_json
def predict(
    run: str, texts: tuple[str, ...], file: str | None, text_column: str | None, out: str | None, as_json: bool
) -> None:
    """Label texts with a trained RUN: the arguments, a file, or the lines of standard input."""
    import pandas as pd

    from rtxlib import paths
    from rtxlib.experiments import store, use

    found = store.find(paths.runs_dir(), run)
    if len(texts) == 1 and file is None and Path(texts[0]).suffix and Path(texts[0]).is_file():
        file, texts = texts[0], ()
    if texts == ("-",) or (not texts and file is None):
        texts = tuple(sys.stdin.buffer.read().decode("utf-8").splitlines())
    if file is not None:
        if not Path(file).is_file():
            raise InputError(f"There is no file '{file}'.")
        table, column = _read_table(file, text_column)
        texts = tuple(table[column].fillna("").astype(str))
    if not any(text.strip() for text in texts):
        raise InputError("There is no text to label; give one as an argument, a file, or lines on standard input.")
    answers = use.predict(found, texts)
    if out is not None:
        writers = {".csv": pd.DataFrame.to_csv, ".parquet": pd.DataFrame.to_parquet}
        temporary = Path(out).with_name(f".{Path(out).name}.tmp")
        if Path(out).suffix == ".jsonl":
            answers.to_json(temporary, orient="records", lines=True, force_ascii=False)
        elif write := writers.get(Path(out).suffix):
            write(answers, temporary, index=False)
        else:
            raise InputError(f"'{out}' must end in .csv, .jsonl or .parquet.")
        os.replace(temporary, out)
        click.echo(f"{len(answers)} texts labelled, written to {out}", err=True)
    elif as_json:
        names = found.spec["label_names"]
        rows = [
            {"text": row["text"], "label": row["label"], "probabilities": {name: row[f"p_{name}"] for name in names}}
            for row in answers.astype({f"p_{name}": float for name in names}).to_dict("records")
        ]
        for row in rows:
            click.echo(json.dumps(row, ensure_ascii=False))
    else:
        for row in answers.to_dict("records"):
            click.echo(f"{row['label']:12} {row['p_' + row['label']]:.3f}  {row['text']}")


@cli.command()
@click.argument("run")
@click.argument("file")
@click.option("--text-column", help="'text' by default.")
@click.option("--label-column", default="label", show_default=True)
@click.option("--labels", help='JSON: {"value in the file": "label name", …}.')
@_json
def evaluate(
    run: str, file: str, text_column: str | None, label_column: str, labels: str | None, as_json: bool
) -> None:
    """Score a trained RUN on a labelled FILE."""
    from rtxlib import paths
    from rtxlib.experiments import store, use

    found = store.find(paths.runs_dir(), run)
    if not Path(file).is_file():
        raise InputError(f"There is no file '{file}'.")
    table, column = _read_table(file, text_column)
    if label_column not in table.columns:
        raise InputError(
            f"{file} has no column '{label_column}'; it has {', '.join(map(str, table.columns))}."
            f"{nearest(label_column, map(str, table.columns))} Name it with --label-column."
        )
    values = table[label_column].astype(str)
    names = found.spec["label_names"]
    mapping = (
        _parse_labels(labels)
        if labels
        else {str(number): name for number, name in enumerate(names)} | {n: n for n in names}
    )
    if unknown := sorted(set(values) - set(mapping)):
        raise InputError(
            f"The labels {', '.join(map(repr, unknown[:5]))} are none of {', '.join(mapping)}; map them with --labels."
        )
    _show(use.evaluate(found, table[column].fillna("").astype(str).tolist(), values.map(mapping).tolist()), as_json)


@cli.command()
@click.argument("model")
@click.option("--set", "overrides", multiple=True, metavar="FIELD=VALUE", help="A field of the model's configuration.")
@_json
def params(model: str, overrides: tuple[str, ...], as_json: bool) -> None:
    """Count a model's parameters: in all, in the token table, and without it."""
    from rtxlib.evaluation.cost import parameters
    from rtxlib.models import build

    count = parameters(build(model, **_settings(overrides)))
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
    from rtxlib.experiments import store

    table = store.runs_table(store.every(paths.runs_dir()))
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


def main() -> None:
    """Run the command line; what the user can mend is one sentence on stderr and exit status 2."""
    try:
        cli.main(prog_name="rtx", standalone_mode=False)
    except InputError as error:
        click.echo(f"rtx: {error}", err=True)
        sys.exit(2)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted; finished work is kept, and the same command goes on from there.", err=True)
        sys.exit(130)
    except BrokenPipeError:  # the reader (head, less) has seen enough
        sys.stdout = None
        sys.exit(0)
    except UnicodeDecodeError as error:
        click.echo(
            f"rtx: the text is not UTF-8 (byte {error.object[error.start]:#04x} at position {error.start}); convert it first.",
            err=True,
        )
        sys.exit(2)
