"""``rtx predict`` and ``rtx evaluate``: put a trained run to use."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rtxlib.cli.common import cli, json_option, parse_labels, read_texts, show
from rtxlib.cli.output import FORMATS, write_whole
from rtxlib.errors import InputError, nearest

if TYPE_CHECKING:
    from rtxlib.models import EarlyExit

def _rule(written: str) -> EarlyExit:
    """``"confidence:0.9"`` as the rule it means."""
    from rtxlib.models import EarlyExit

    criterion, _, threshold = written.partition(":")
    try:
        number = float(threshold)
    except ValueError:
        raise InputError(f"An early exit is written criterion:threshold (confidence:0.9), not '{written}'.") from None
    return EarlyExit(criterion, number)


@cli.command()
@click.argument("run")
@click.argument("texts", nargs=-1)
@click.option("--file", "file", help="A text file (one a line) or a CSV, TSV, JSONL or Parquet table.")
@click.option("--text-column", help="Of a table; 'text' by default.")
@click.option("--out", type=click.Path(dir_okay=False), help="Write CSV, JSONL or Parquet, by the ending.")
@click.option(
    "--passes", type=click.IntRange(1), help="Of a recurrent model: so many instead of those it was trained for."
)
@click.option(
    "--early-exit",
    metavar="CRITERION:THRESHOLD",
    help="Let a text leave the loop when its label is settled, confidence:0.9 say; also agreement and change.",
)
@json_option
def predict(
    run: str,
    texts: tuple[str, ...],
    file: str | None,
    text_column: str | None,
    out: str | None,
    passes: int | None,
    early_exit: str | None,
    as_json: bool,
) -> None:
    """Label texts with a trained RUN: the arguments, a file, or the lines of standard input."""
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
        table, column = read_texts(file, text_column)
        texts = tuple(table[column].fillna("").astype(str))
    if not any(text.strip() for text in texts):
        raise InputError("There is no text to label; give one as an argument, a file, or lines on standard input.")
    if out is not None and Path(out).suffix[1:] not in FORMATS:  # told before a model is loaded
        raise InputError(f"'{out}' must end in .{', .'.join(FORMATS)}.")
    if (passes or early_exit) and found.metrics["recurrent_depth"] == 1:
        raise InputError(f"{found.metrics['model']} has one pass; --passes and --early-exit are for recurrent models.")
    way = {} if passes is None else {"recurrent_depth": passes}
    if early_exit is not None:
        way["early_exit"] = _rule(early_exit)
    answers = use.predict(found, texts, **way)
    if out is not None:
        write_whole(Path(out), lambda path: FORMATS[Path(out).suffix[1:]](answers, path))
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
@json_option
def evaluate(
    run: str, file: str, text_column: str | None, label_column: str, labels: str | None, as_json: bool
) -> None:
    """Score a trained RUN on a labelled FILE."""
    from rtxlib import paths
    from rtxlib.experiments import store, use

    found = store.find(paths.runs_dir(), run)
    if not Path(file).is_file():
        raise InputError(f"There is no file '{file}'.")
    table, column = read_texts(file, text_column)
    if label_column not in table.columns:
        raise InputError(
            f"{file} has no column '{label_column}'; it has {', '.join(map(str, table.columns))}."
            f"{nearest(label_column, map(str, table.columns))} Name it with --label-column."
        )
    values = table[label_column].astype(str)
    names = found.spec["label_names"]
    mapping = (
        parse_labels(labels)
        if labels
        else {str(number): name for number, name in enumerate(names)} | {n: n for n in names}
    )
    if unknown := sorted(set(values) - set(mapping)):
        raise InputError(
            f"The labels {', '.join(map(repr, unknown[:5]))} are none of {', '.join(mapping)}; map them with --labels."
        )
    show(use.evaluate(found, table[column].fillna("").astype(str).tolist(), values.map(mapping).tolist()), as_json)
