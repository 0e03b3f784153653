"""``rtx predict`` and ``rtx evaluate``: put a trained run to use."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rtxlib.cli.common import cli, json_option, parse_labels, read_texts, show
from rtxlib.cli.output import FORMATS, refuse_to_replace, write_whole
from rtxlib.errors import InputError, shortened

if TYPE_CHECKING:
    from rtxlib.models import EarlyExit
    from rtxlib.runs.store import Run


def _find(run: str) -> Run:
    """The run a person names. Raises InputError where there is none, or the name cannot be one."""
    from rtxlib import paths
    from rtxlib.runs import store

    if not run.strip():
        raise InputError("RUN is empty; `rtx results` lists the runs there are.")
    try:
        return store.find(paths.runs_dir(), run)
    except OSError as error:  # a name that is too long, say
        raise InputError(
            f"The run '{shortened(run)}' cannot be opened ({error.strerror}); `rtx results` lists the runs there are."
        ) from error


def _is_file_name(text: str) -> bool:
    """Whether a person surely meant a file: one word that ends as files of texts do."""
    from rtxlib.data.files import SUFFIXES

    return text.split() == [text] and Path(text).suffix.lower() in (*SUFFIXES, ".txt")


def _is_file(text: str) -> bool:
    """Whether a person who gave this alone meant a file, or a folder by mistake."""
    return _is_file_name(text) or (bool(Path(text).suffix or os.sep in text) and os.path.exists(text))


def _label_values(names: Sequence[str]) -> dict[str, str]:
    """Value in a file -> label name: the name as training reads it, or its number where no name is itself a number."""
    from rtxlib.data.rows import label_text

    values = {label_text(name): name for name in names}
    if any(re.fullmatch(r"[+-]?\d+(\.\d+)?", value) for value in values):
        return values
    return {str(number): name for number, name in enumerate(names)} | values


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
    from rtxlib.data.files import decode, text_lines, whole
    from rtxlib.runs import use

    found = _find(run)
    if texts and file is not None:
        raise InputError("Give either texts or --file, not both.")
    if len(texts) == 1 and _is_file(texts[0]):
        file, texts = texts[0], ()
    if named := [text for text in texts if _is_file_name(text)]:
        raise InputError(f"'{named[0]}' names a file; give one file at a time, and no texts beside it.")
    if file is not None:
        if out is not None:
            refuse_to_replace(file, out)
        table, column = read_texts(file, text_column)
        texts = tuple(table[column].fillna("").astype(str))
    elif texts in ((), ("-",)):
        texts = tuple(text_lines(decode(sys.stdin.buffer.read(), "Standard input", "the input")))
    else:
        texts = tuple(map(whole, texts))  # bytes that are not UTF-8 come as halves of surrogate pairs
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
    """Score a trained RUN on a labelled FILE. Labels are read as in training; rows without one are left out."""
    from rtxlib.data.files import require_column
    from rtxlib.data.rows import label_text
    from rtxlib.runs import use

    found = _find(run)
    table, column = read_texts(file, text_column)
    require_column(table, label_column, Path(file).name, "--label-column")
    if labels is None:
        mapping = _label_values(found.spec["label_names"])
    else:
        mapping = {label_text(value): name.strip() for value, name in parse_labels(labels).items()}
    values = table[label_column].map(label_text)
    if unknown := sorted(set(values) - {"", *mapping}):
        raise InputError(
            f"The labels {', '.join(map(repr, unknown[:5]))} are none of {', '.join(mapping)}; map them with --labels."
        )
    names = values.map({"": ""} | mapping)
    kept = names != ""
    if not kept.any():
        raise InputError(f"No row of {Path(file).name} has a label in the column '{label_column}'.")
    if left_out := int((~kept).sum()):
        click.echo(f"{left_out:,} of {len(table):,} rows have no label and are left out", err=True)
    show(use.evaluate(found, table[column][kept].tolist(), names[kept].tolist()), as_json)
