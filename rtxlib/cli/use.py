"""``rtx predict`` and ``rtx evaluate``: label or score texts with a trained run."""

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
    """The run of this key, start of a key, or folder. Raises InputError when there is none."""
    from rtxlib import paths
    from rtxlib.runs import store

    if not run.strip():
        raise InputError("RUN is empty; `rtx results` lists the runs there are.")
    try:
        return store.find(paths.runs_dir(), run)
    except OSError as error:  # for example a name that is too long
        raise InputError(
            f"The run '{shortened(run)}' cannot be opened ({error.strerror}); `rtx results` lists the runs there are."
        ) from error


def _is_file_name(text: str) -> bool:
    """Whether this can only be meant as a file: one word with the ending of a table or a text file."""
    from rtxlib.data.files import SUFFIXES

    return text.split() == [text] and Path(text).suffix.lower() in (*SUFFIXES, ".txt")


def _is_file(text: str) -> bool:
    """Whether this, as the only argument, names a file (or by mistake a folder)."""
    return _is_file_name(text) or (bool(Path(text).suffix or os.sep in text) and os.path.exists(text))


def _label_values(names: Sequence[str]) -> dict[str, str]:
    """Value in a file → label name. A file may also number the labels, unless a label's name is itself a number."""
    from rtxlib.data.rows import label_text

    values = {label_text(name): name for name in names}
    if any(re.fullmatch(r"[+-]?\d+(\.\d+)?", value) for value in values):
        return values
    return {str(number): name for number, name in enumerate(names)} | values


def _rule(written: str) -> EarlyExit:
    """The early exit written as ``"confidence:0.9"``."""
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
@click.option("--file", help="A text file with one text per line, or a CSV, TSV, JSONL or Parquet table.")
@click.option("--text-column", help="A table's column of texts; 'text' by default.")
@click.option("--out", type=click.Path(dir_okay=False), help="Write a CSV, JSONL or Parquet file, by its ending.")
@click.option("--passes", type=click.IntRange(1), help="Passes of a recurrent model, instead of its trained number.")
@click.option(
    "--early-exit",
    metavar="CRITERION:THRESHOLD",
    help="Let a text leave the loop when its label is settled, as in confidence:0.9. The criteria are confidence, "
    "agreement and change.",
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
    from rtxlib.runs import use

    found = _find(run)
    texts = _texts_to_label(texts, file, text_column, out)
    if out is not None and Path(out).suffix[1:] not in FORMATS:  # reported before a model is loaded
        raise InputError(f"'{out}' must end in .{', .'.join(FORMATS)}.")
    if (passes or early_exit) and found.metrics["recurrent_depth"] == 1:
        raise InputError(f"{found.metrics['model']} has one pass; --passes and --early-exit are for recurrent models.")
    how = {} if passes is None else {"recurrent_depth": passes}
    if early_exit is not None:
        how["early_exit"] = _rule(early_exit)
    answers = use.predict(found, texts, **how)
    if out is not None:
        write_whole(Path(out), lambda path: FORMATS[Path(out).suffix[1:]](answers, path))
        click.echo(f"{len(answers)} texts labelled, written to {out}", err=True)
    elif as_json:
        names = found.spec["label_names"]
        for row in answers.astype({f"p_{name}": float for name in names}).to_dict("records"):
            probabilities = {name: row[f"p_{name}"] for name in names}
            answer = {"text": row["text"], "label": row["label"], "probabilities": probabilities}
            click.echo(json.dumps(answer, ensure_ascii=False))
    else:
        for row in answers.to_dict("records"):
            click.echo(f"{row['label']:12} {row['p_' + row['label']]:.3f}  {row['text']}")


def _texts_to_label(texts: tuple[str, ...], file: str | None, column: str | None, out: str | None) -> tuple[str, ...]:
    """The texts that ``rtx predict`` was given: arguments, a table's column, or the lines of a file or of standard input."""
    from rtxlib.data.files import decode, text_lines, whole

    if texts and file is not None:
        raise InputError("Give either texts or --file, not both.")
    if len(texts) == 1 and _is_file(texts[0]):
        file, texts = texts[0], ()
    if named := [text for text in texts if _is_file_name(text)]:
        raise InputError(f"'{named[0]}' names a file; give one file at a time, and no texts beside it.")
    if file is not None:
        if out is not None:
            refuse_to_replace(file, out)
        table, column = read_texts(file, column)
        texts = tuple(table[column].fillna("").astype(str))
    elif texts in ((), ("-",)):
        texts = tuple(text_lines(decode(sys.stdin.buffer.read(), "Standard input", "the input")))
    else:
        texts = tuple(map(whole, texts))  # the shell's bytes that are not UTF-8 arrive as halves of surrogate pairs
    if not any(text.strip() for text in texts):
        raise InputError("There is no text to label; give one as an argument, a file, or lines on standard input.")
    return texts


@cli.command()
@click.argument("run")
@click.argument("file")
@click.option("--text-column", help="The column of texts; 'text' by default.")
@click.option("--label-column", default="label", show_default=True, help="The column of labels.")
@click.option("--labels", help='JSON: {"value in the file": "label name", …}.')
@json_option
def evaluate(
    run: str, file: str, text_column: str | None, label_column: str, labels: str | None, as_json: bool
) -> None:
    """Score a trained RUN on a labelled FILE.

    Labels are read as in training. Rows without a label are left out.
    """
    from rtxlib.data.files import require_column
    from rtxlib.data.rows import label_text
    from rtxlib.runs import use

    found = _find(run)
    table, column = read_texts(file, text_column, label_column)
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
