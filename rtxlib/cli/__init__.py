"""The ``rtx`` command. Its modules import torch and pandas only inside a command that needs them, so ``rtx --help`` is quick."""

from __future__ import annotations

import errno
import os
import sys

import click

from rtxlib.cli import data, embed, runs, use  # noqa: F401 - each adds its commands to the group
from rtxlib.cli.common import cli
from rtxlib.errors import InputError, disk_full, sentence, shortened
from rtxlib.process import tune


def main() -> None:
    """Run the command line. What the user can mend is one sentence on stderr, with exit status 2."""
    tune()
    try:
        cli.main(prog_name="rtx", standalone_mode=False)
    except InputError as error:
        click.echo(f"rtx: {sentence(str(error))}", err=True)
        sys.exit(2)
    except click.ClickException as error:
        error.message = sentence(error.message)
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo(
            "Interrupted. Finished work is kept, and a training up to its last minute; the same command goes on from there.",
            err=True,
        )
        sys.exit(130)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            name = max(str(error.filename).split(os.sep), key=len)
            click.echo(f"rtx: the name '{sentence(shortened(name))}' is too long for a file; give a shorter one.", err=True)
            sys.exit(2)
        if not disk_full(error):
            raise
        click.echo("rtx: the disk is full; free some space and give the same command again.", err=True)
        sys.exit(2)
    except UnicodeDecodeError as error:
        where = f"byte {error.object[error.start]:#04x} at position {error.start}"
        click.echo(f"rtx: the text is not UTF-8 ({where}); convert it first.", err=True)
        sys.exit(2)
