"""The ``rtx`` command: a thin door to the library. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import sys

import click

from rtxlib.cli import data, embed, runs, use  # noqa: F401 - each hangs its commands on the group
from rtxlib.cli.common import cli
from rtxlib.errors import InputError, disk_full


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
        click.echo(
            "Interrupted; finished work is kept, a training up to its last minute, and the same command goes on from there.",
            err=True,
        )
        sys.exit(130)
    except OSError as error:
        if not disk_full(error):
            raise
        click.echo("rtx: the disk is full; free some space and give the same command again.", err=True)
        sys.exit(2)
    except UnicodeDecodeError as error:
        click.echo(
            f"rtx: the text is not UTF-8 (byte {error.object[error.start]:#04x} at position {error.start}); convert it first.",
            err=True,
        )
        sys.exit(2)
