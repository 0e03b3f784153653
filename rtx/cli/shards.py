"""What ``rtx predict`` and ``rtx embed`` do with a folder of shards."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from rtx.cli.common import show
from rtx.cli.output import FORMATS
from rtx.process import exit_status
from rtxlib.errors import InputError, visible

executor_option = click.option(
    "--executor",
    metavar="local|ray",
    help="What works on a folder's shards: processes here, or a Ray cluster. Without it RTX_EXECUTOR decides, else local.",
)
workers_option = click.option(
    "--workers",
    type=click.IntRange(1),
    help="How many processes work on a folder; one for each core by default, and one on a GPU.",
)


def is_folder(file: str | None, out: Path | str | None) -> bool:
    """Whether this is a folder whose shards are wanted. Raises InputError when --out then names no folder."""
    if file is None or not os.path.isdir(file):
        return False
    if out is None:
        raise InputError(f"{file} is a folder, and the answers to its shards need --out, a folder to write.")
    if Path(out).suffix[1:].lower() in FORMATS:
        raise InputError(f"{file} is a folder, so --out must name a folder, not the file '{out}'.")
    return True


def require_no_folder_options(executor: str | None, workers: int | None) -> None:
    """Raise InputError when an option of folders is given for texts or a file."""
    for option, value in (("--executor", executor), ("--workers", workers)):
        if value is not None:
            raise InputError(f"{option} is for a folder of shards; leave it out, or name a folder.")


def work(
    command: str,
    folder: str,
    out: Path | str,
    model: str,
    executor: str | None,
    workers: int | None,
    force: bool,
    as_json: bool,
    **fields: Any,
) -> None:
    """Write the shards of a folder and show what was done. fields: of :class:`rtx.shards.job.Job`."""
    if force:
        raise InputError("--force is for a file; a folder goes on from its finished shards, so delete those to be done again.")
    from tqdm import tqdm

    from rtx.shards import answers, drive
    from rtx.shards.job import Job
    from rtx.shards.worker import Outcome

    # Not resolved as elsewhere: on another machine a link may lead to another place.
    model = os.path.abspath(os.path.expanduser(model)) if os.path.isdir(os.path.expanduser(model)) else model
    version = answers.version(command, model)
    job = Job(command, os.path.abspath(folder), os.path.abspath(out), model, version, **fields)
    every = 0.2 if sys.stderr.isatty() else 30  # seconds; a terminal redraws the line, a log keeps each
    rows = 0
    with tqdm(unit=" shards", file=sys.stderr, mininterval=every, delay=1) as bar:

        def report(outcome: Outcome, ended: int, total: int) -> None:
            nonlocal rows
            rows += outcome.rows
            bar.total = total
            bar.set_postfix_str(f"{rows:,} texts", refresh=False)
            bar.update(ended - bar.n)

        try:
            record = drive.work(job, executor, workers, report)
        except KeyboardInterrupt as stop:
            bar.close()
            click.echo(f"Interrupted; {visible(job.out)} keeps the finished shards, and the same command goes on.", err=True)
            sys.exit(exit_status(stop))
    show(record, as_json)
