"""The ``rtx`` command. Its modules import torch and pandas only inside a command that needs them, so ``rtx --help`` is quick."""

from __future__ import annotations

import errno
import gc
import os
import sys
from contextlib import suppress
from itertools import pairwise

INTERRUPTED = "Interrupted."
RESUME = ("train", "pretrain", "distill", "report", "notebook", "compare")  # commands that go on with a half-finished training
KEPT = f"{INTERRUPTED} Finished work is kept, and a training up to its last minute; the same command goes on from there."
LONGEST_NAME = 255  # bytes of a file's name


def main() -> None:
    """Run the command line.

    What the user can mend is one sentence on stderr, with exit status 2. Ctrl-C ends with status 130, SIGTERM with 143, and a
    reader of the output that ends early with 141. Any other exception is a mistake of this program and keeps its traceback.
    """
    try:
        _run()
        sys.stdout.flush()  # a full disk may show only now
        gc.freeze()  # else Python would look at every object once more before it ends, which takes a third of a second
    except BaseException as error:
        status = _tell(error)
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:  # Python would flush it again at its end, and complain
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        sys.exit(status)


def _run() -> None:
    """Run the command. Its modules are imported here, so that an interrupt meets :func:`main` from the first moment on."""
    from rtx import process

    process.replace_closed_streams()
    with process.signals_as_interrupts():
        from rtx.cli.commands import cli
        from rtxlib.errors import InputError

        try:
            os.getcwd()
        except OSError:
            raise InputError("The working folder is gone; change to a folder that exists.") from None
        process.tune()
        if "_RTX_COMPLETE" in os.environ:  # the shell asks for completions
            cli.main(prog_name="rtx")
        # Click's own main would report a closed pipe as status 1, and EOFError of a damaged file as an interrupt.
        with cli.make_context("rtx", sys.argv[1:]) as context:
            cli.invoke(context)


def _tell(error: BaseException) -> int | str | None:
    """Say in a sentence on stderr why the command ended, and return its exit status. An unknown error is raised again."""
    from rtx.errors import lacking, sentence
    from rtx.process import exit_status

    if isinstance(error, KeyboardInterrupt):  # perhaps in the middle of click's import, so it is told without click
        return _say(_interrupted(), exit_status(error))
    if isinstance(error, ImportError) and (lack := lacking(error)):  # perhaps of click
        return _say(f"rtx: {sentence(lack)}", 2)
    import click

    if isinstance(error, SystemExit):
        return error.code
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):  # since click 8.2; its message is the help
        return _say(error.format_message(), error.exit_code)
    if isinstance(error, click.ClickException):
        message = f"rtx: {sentence(error.format_message())}"
        if getattr(error, "ctx", None):
            message += f"{'' if message.endswith(('.', '?')) else '.'} `{error.ctx.command_path} --help` shows how it is used."
        return _say(message, error.exit_code)
    if isinstance(error, click.Abort):  # Ctrl-C while click asked something
        return _say(_interrupted(), exit_status(error))
    if isinstance(error, BrokenPipeError):
        return _say("rtx: The program that read this output has ended, so the rest is not shown.", 141)
    if (message := _mendable(error)) is None:
        raise error
    return _say(f"rtx: {message}", 2)


def _mendable(error: BaseException) -> str | None:
    """What is wrong and what to do, in a sentence; None for an error that the user cannot mend."""
    from rtx.errors import lacking, sentence
    from rtxlib.errors import InputError, shortened

    if lack := lacking(error):
        return sentence(lack)
    if isinstance(error, InputError):
        return sentence(str(error))
    if isinstance(error, UnicodeDecodeError):
        byte = f"byte {error.object[error.start]:#04x} at position {error.start}"
        return f"the text is not UTF-8 ({byte}); convert it first."
    number = getattr(error, "errno", None)
    if number == errno.ENAMETOOLONG:
        path = str(error.filename)
        name = max(path.split(os.sep), key=len)
        what, argument = ("name", name) if len(os.fsencode(name)) > LONGEST_NAME else ("path", path)
        return f"the {what} '{sentence(shortened(argument))}' is too long for a file; give a shorter one."
    if number in (errno.ENOTDIR, errno.EEXIST, errno.ELOOP):
        name = sentence(shortened(str(error.filename)))
        return f"{name} is not a folder, and one is needed there ({error.strerror}); move what is in its place."
    if isinstance(error, PermissionError) and error.filename is not None:
        name = sentence(shortened(str(error.filename)))
        return f"{name} may not be opened ({error.strerror}); ask its owner for permission, or name another."
    return None


def _say(message: str, status: int) -> int:
    """Print a sentence on stderr, as far as it can be written to, and return the exit status."""
    with suppress(OSError):
        print(message, file=sys.stderr, flush=True)
    return status


def _interrupted() -> str:
    """What to say after an interrupt: what is kept, where the command keeps something."""
    command, *given = sys.argv[1:] or [""]
    out = [one.removeprefix("--out=") for one in given if one.startswith("--out=")]
    out += [value for name, value in pairwise(given) if name == "--out"]
    shards = command in ("predict", "embed") and any(map(os.path.isdir, out))
    return KEPT if shards or command in RESUME else INTERRUPTED
