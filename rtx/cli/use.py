"""``rtx predict`` and ``rtx evaluate``: label or score texts with a trained run."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rtx.cli import shards
from rtx.cli.common import cli, find_run, is_table, json_option, parse_labels, read_texts, show, text_lines
from rtx.cli.output import FORMATS, check_out, force_option, json_line, write_table
from rtx.process import imports
from rtxlib.errors import InputError, counted, few, shortened, visible

if TYPE_CHECKING:
    import pandas as pd

    from rtx.export.opened import Opened
    from rtxlib.data.rows import Text
    from rtxlib.runs.store import Run

pair_option = click.option(
    "--text-pair-column", help="A table's column of second texts, for a RUN on pairs; 'text_pair' by default."
)


def _is_file_name(text: str) -> bool:
    """Whether this can only be meant as a file: one word with the ending of a table or a text file."""
    from rtxlib.data.files import SUFFIXES

    return text.split() == [text] and Path(text).suffix.lower() in (*SUFFIXES, ".txt")


def _is_file(text: str) -> bool:
    """Whether this names a file (or by mistake a folder)."""
    return _is_file_name(text) or (bool(Path(text).suffix or os.sep in text or text in (".", "..")) and os.path.exists(text))


def _label_values(run: Run) -> dict[str, str]:
    """Value in a file → label name, or "" for a value whose rows are left out: as the run's own data were read.

    Where these had the names themselves, a file may also number the labels, unless a label's name is itself a number.
    """
    from rtxlib.data.datasets import from_record, label_values
    from rtxlib.data.rows import label_text

    names = run.spec["label_names"]
    values = {label_text(name): name for name in names}
    if (read := label_values(from_record(run.spec["data"]))) is not None:
        return values | {label_text(value): name for value, name in read.items()}
    if any(re.fullmatch(r"[+-]?\d+(\.\d+)?", value) for value in values):
        return values
    return {str(number): name for number, name in enumerate(names)} | values


@cli.command()
@click.argument("run")
@click.argument("texts", nargs=-1)
@click.option(
    "--file",
    help="A text file with one text per line, a CSV, TSV, JSONL or Parquet table, or a folder of Parquet or JSONL files; - is "
    "standard input.",
)
@click.option("--text-column", help="A table's column of texts; 'text' by default.")
@pair_option
@click.option("--out", help="Write a CSV, JSONL or Parquet file, by its ending; for a folder, a folder.")
@force_option
@click.option("--passes", type=click.IntRange(1), help="Passes of a recurrent model, instead of its trained number.")
@click.option(
    "--early-exit",
    metavar="CRITERION:THRESHOLD",
    help="Let a text leave the loop when its label is settled, as in confidence:0.9. The criteria are confidence, "
    "agreement and change.",
)
@shards.executor_option
@shards.workers_option
@json_option
def predict(
    run: str,
    texts: tuple[str, ...],
    file: str | None,
    text_column: str | None,
    text_pair_column: str | None,
    out: str | None,
    force: bool,
    passes: int | None,
    early_exit: str | None,
    executor: str | None,
    workers: int | None,
    as_json: bool,
) -> None:
    """Label texts with a trained RUN, or the folder of `rtx export`: the arguments, a file, or the lines of standard input.

    A RUN on pairs of texts labels two arguments or the rows of a table. A folder of Parquet or JSONL files is labelled file by
    file into the folder --out; the same command goes on where one was stopped.

    The answers to a table have all of its columns, then `predicted` and `p_<label>` for each label. The answers to other texts
    have `text`, `label` and `p_<label>`. With --json the probabilities are one object.
    """
    from rtx.export import opened

    opened_run = opened.find(run) or find_run(run)
    table_out = out is None or Path(out).suffix[1:].lower() in FORMATS
    texts, file = _file_among(texts, file, folders=not table_out)
    pair_column = _pair_column(opened_run, text_pair_column)
    _require_loop(opened_run, passes, early_exit)
    rule = None
    if early_exit is not None:
        from rtx import use

        rule = use.early_exit(early_exit)
    if shards.is_folder(file, out):
        model = str(opened_run.folder if hasattr(opened_run, "exported") else opened_run.path)
        columns = {"text_column": text_column or "text", "text_pair_column": pair_column}
        way = {"passes": passes, "early_exit": early_exit}
        return shards.work("predict", file, out, model, executor, workers, force, as_json, **way, **columns)
    shards.require_no_folder_options(executor, workers)
    if not table_out:  # reported before a model is loaded
        raise InputError(f"'{out}' must end in .{', .'.join(FORMATS)}.")
    if out is not None:
        check_out(out, force, file)
    texts, table = _texts_to_label(texts, file, text_column, pair_column)
    if table is not None and (out is not None or as_json):
        _check_columns(table, opened_run.spec["label_names"], out)
    way = {name: value for name, value in (("recurrent_depth", passes), ("early_exit", rule)) if value is not None}
    answers = _answers(opened_run, texts, way)
    if table is not None:
        answers = answers.rename(columns={"label": "predicted"})
    _show(answers, table, out, as_json)


def _show(answers: pd.DataFrame, table: pd.DataFrame | None, out: str | None, as_json: bool) -> None:
    """Write the answers beside the columns of their table, or print them as JSON or as lines to read."""
    label = "label" if table is None else "predicted"
    probabilities = [column for column in answers.loc[:, label:] if column != label]
    if out is not None:
        write_table(Path(out), answers if table is None else table.join(answers.loc[:, label:]))
        click.echo(f"{counted(len(answers), 'text')} labelled, written to {visible(out)}", err=True)
    elif as_json:
        columns = answers.loc[:, :label].drop(columns=label) if table is None else table
        answers = answers.astype(dict.fromkeys(probabilities, float))
        for cells, answer in zip(columns.to_dict("records"), answers.to_dict("records"), strict=True):
            shares = {column.removeprefix("p_"): answer[column] for column in probabilities}
            click.echo(json_line({**cells, label: answer[label], "probabilities": shares}))
    else:
        for answer in answers.to_dict("records"):
            text = " / ".join(visible(answer[column]) for column in ("text", "text_pair") if column in answer)
            click.echo(f"{visible(answer[label]):12} {answer['p_' + answer[label]]:.3f}  {text}")


def _require_loop(run: Run | Opened, passes: int | None, early_exit: str | None) -> None:
    if (passes or early_exit) and run.metrics["recurrent_depth"] == 1:
        raise InputError(f"{run.metrics['model']} has one pass; --passes and --early-exit are for recurrent models.")


def _answers(run: Run | Opened, texts: list[Text], how: Mapping[str, Any]) -> pd.DataFrame:
    """The table of answers. An exported folder, also one beside the run, needs no torch, which rtx.use imports."""
    if hasattr(run, "exported"):
        return run.predict(texts, **how)
    from rtx.export import beside

    characters = sum(len(text) if isinstance(text, str) else sum(map(len, text)) for text in texts)
    if not how and characters <= beside.MOST and (graph := beside.find(run)) is not None:
        return graph.predict(texts)
    with imports():
        from rtx import use

    return use.predict(run, texts, **how)


def _check_columns(table: pd.DataFrame, label_names: Sequence[str], out: str | None) -> None:
    """Raise InputError when a table has a column that its answers would add, or one twice where only CSV can hold it."""
    columns = list(table.columns)
    added = {"predicted", *(["probabilities"] if out is None else [f"p_{name}" for name in label_names])}
    for name in columns:
        if name in added:
            raise InputError(
                f"The file has a column '{shortened(name)}' of its own, and the answers would add another; rename it."
            )
    if len(set(columns)) < len(columns) and not (out is not None and out.lower().endswith(".csv")):
        name = next(name for name, times in Counter(columns).items() if times > 1)
        raise InputError(
            f"The file has more than one column '{shortened(name)}', which only CSV can hold; rename one, or write a .csv "
            "file with --out."
        )


def _file_among(texts: tuple[str, ...], file: str | None, folders: bool) -> tuple[tuple[str, ...], str | None]:
    """The texts and the file that the arguments and ``--file`` of ``rtx predict`` mean.

    folders: whether a word that names a folder means the folder, because --out names no table.
    """
    if texts and file is not None:
        raise InputError("Give either texts or --file, not both.")
    if file == "-":
        return (), None
    if len(texts) == 1 and (_is_file(texts[0]) or (folders and os.path.isdir(texts[0]))):
        file, texts = texts[0], ()
    if named := [text for text in texts if _is_file(text)]:
        what = "folder" if os.path.isdir(named[0]) else "file"
        raise InputError(f"'{shortened(named[0])}' names a {what}; give one file at a time, and no texts beside it.")
    return texts, file


def _pair_column(run: Run | Opened, asked: str | None) -> str | None:
    """The column of second texts that a run needs; None for a run on single texts."""
    if run.pairs:
        return asked or "text_pair"
    if asked is not None:
        raise InputError(f"{run.metrics['model']} was trained on single texts; leave --text-pair-column out.")
    return None


def _texts_to_label(
    texts: tuple[str, ...], file: str | None, column: str | None, pair_column: str | None
) -> tuple[list[Text], pd.DataFrame | None]:
    """The texts to label: arguments, a table's columns, or the lines of a file or of standard input; and the table, if any."""
    from rtxlib.data.files import decode, whole

    table = None
    if file is None and column is not None:
        raise InputError("--text-column names a column of a file, and the texts are not in one; leave it out.")
    if file is not None:
        rows, read = read_texts(file, column, pair_column)
        table = rows.reset_index(drop=True) if is_table(file) else None
    elif pair_column is not None:
        if len(texts) != 2:
            raise InputError(
                f"This run labels pairs of texts; give a first and a second text as two arguments, not {len(texts)}, or a table."
            )
        read = [tuple(map(whole, texts))]
    elif texts in ((), ("-",)):
        read = text_lines(decode(sys.stdin.buffer.read(), "Standard input", "the input"))
    else:
        read = list(map(whole, texts))  # the shell's bytes that are not UTF-8 arrive as halves of surrogate pairs
    if not any("".join(text).strip() for text in read):
        raise InputError("There is no text to label; give one as an argument, a file, or lines on standard input.")
    return read, table


@cli.command()
@click.argument("run")
@click.argument("file")
@click.option("--text-column", help="The column of texts; 'text' by default.")
@pair_option
@click.option("--label-column", default="label", show_default=True, help="The column of labels.")
@click.option("--labels", help='JSON: {"value in the file": "label name", …}.')
@json_option
def evaluate(
    run: str,
    file: str,
    text_column: str | None,
    text_pair_column: str | None,
    label_column: str,
    labels: str | None,
    as_json: bool,
) -> None:
    """Score a trained RUN on a labelled FILE.

    Labels are read as in training. Rows without a label are left out. Texts that the run was trained on, or chosen on
    (validation), are scored apart, under names that end in _seen.
    """
    from rtx import drift, use
    from rtxlib.data.files import require_column
    from rtxlib.data.rows import label_text

    stored = find_run(run)
    table, texts = read_texts(file, text_column, _pair_column(stored, text_pair_column), label_column)
    require_column(table, label_column, Path(file).name, "--label-column")
    if labels is None:
        mapping = _label_values(stored)
    else:
        mapping = {label_text(value): name.strip() for value, name in parse_labels(labels).items()}
        if wrong := sorted(set(mapping.values()) - {"", *stored.spec["label_names"]}):
            raise InputError(f"--labels names {few(wrong)}, and the run knows {few(stored.spec['label_names'], 12)}.")
    values = table[label_column].map(label_text)
    if unknown := sorted(set(values) - {"", *mapping}):
        raise InputError(
            f"The labels {few(unknown)} are none of {few(mapping)}; map them with --labels."
        )
    if labels is None and (numbers := sorted({value for value in values if value.isdigit() and mapping[value] != value})):
        read = ", ".join(f"{number} is read as '{mapping[number]}'" for number in numbers[:12])
        click.echo(visible(f"{read}; --labels says otherwise"), err=True)
    names = values.map({"": ""} | mapping)
    labelled = names != ""
    if not labelled.any():
        raise InputError(f"No row of {Path(file).name} has a label in the column '{label_column}'.")
    if left_out := int((~labelled).sum()):
        verbs = ("has", "is") if left_out == 1 else ("have", "are")
        click.echo(f"{left_out:,} of {len(table):,} rows {verbs[0]} no label and {verbs[1]} left out", err=True)
    scores = use.evaluate(stored, list(compress(texts, labelled)), names[labelled].tolist())
    shift = scores.pop("drift", None)
    show(scores | ({"drift": shift} if as_json and shift is not None else {}), as_json)
    click.echo(_honesty(scores), err=True, nl=False)
    if shift is not None:
        click.echo(drift.sentence(shift), err=True)


def _honesty(scores: Mapping[str, Any]) -> str:
    """What the scores are worth, in a line; nothing if the run has seen none of the texts."""
    if not scores["overlap_checked"]:
        return (
            "It was not checked whether the run was trained on these texts: neither its folder nor data/prepared tells its "
            "training texts.\n"
        )
    seen = scores.get("n_seen", 0)
    whole = seen + scores["n"]
    known = f"The run was trained on {scores['in_training']:,} of the {counted(whole, 'text')}"
    if scores["in_validation"]:
        known += f" and chosen on {scores['in_validation']:,}"
    if not seen:
        return ""
    if not scores["n"]:
        return f"{known}: no score here is honest, because the run has seen every text. Score it on other texts.\n"
    return f"{known}. accuracy is that of the other {scores['n']:,}, accuracy_seen that of these {seen:,}.\n"
