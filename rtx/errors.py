"""How a command tells an error: what the machine lacked, and a message that is fit for a terminal."""

from __future__ import annotations

import errno
import re

from rtxlib.errors import InputError, causes, disk_full, shortened, visible

_OURS = ("rtxlib", "rtx", "rtxstudy")  # a module of ours that is missing is a mistake of this program
_LACKS = (  # error numbers, words of libraries whose errors have no number, what to say
    (
        (errno.EMFILE, errno.ENFILE),
        "[Tt]oo many open files",
        "Too many files are open at once; raise the limit, as with `ulimit -n 1024`.",
    ),
    (
        (errno.EFBIG,),
        "File too large",
        "A file would be larger than this shell allows; raise the limit, as with `ulimit -f unlimited`.",
    ),
    (
        (errno.ENOMEM,),
        "can't allocate memory|[Cc]annot allocate memory|not enough memory|out of memory|bad_alloc|failed to map segment",
        "Memory ran out; free some, raise a limit that was set with `ulimit -v`, or use a smaller model, batch or file.",
    ),
    (
        (),
        "can't start new thread|launch worker thread",
        "A thread could not be started; raise the limits that were set with `ulimit -u` and `ulimit -v`.",
    ),
    (
        (),
        r"\.so[.\d]*: .|DLL load failed",
        "A library cannot be loaded ({}); install rtxlib again, in an environment of its own.",
    ),
)


def lacking(error: BaseException) -> str | None:
    """What the machine lacked, in a sentence that says what to do, if that is the cause of an error; else None.

    The causes of an InputError count, too, because it may have mistaken the lack for something else, such as a damaged file. Only
    its sentence on a full disk is kept.
    """
    if disk_full(error) and not isinstance(error, InputError):
        return "The disk is full; free some space and give the same command again."
    for cause in causes(error, implied=False):  # a library may be handling the lack of a package that it can do without
        if isinstance(cause, ModuleNotFoundError) and cause.name and cause.name.partition(".")[0] not in _OURS:
            return (
                f"The Python package '{cause.name}' is missing; install rtxlib again, in an environment of its own "
                "(in a checkout: `make setup`)."
            )
    for cause in causes(error):
        number, words = getattr(cause, "errno", None), ""
        if isinstance(cause, MemoryError):
            number = errno.ENOMEM
        elif number is None and not isinstance(cause, ValueError | LookupError):  # these may quote the user
            words = str(cause)
        for numbers, pattern, sentence in _LACKS:
            if number in numbers or (match := re.search(f".*(?:{pattern}).*", words)):
                return sentence.format("" if number in numbers else shortened(match[0].strip()))
    return None


def sentence(error: str) -> str:
    """The message of an error as a terminal shows it: visible, and short even if it quotes something endless."""
    words = re.sub(r"\S{500,}", lambda word: shortened(word[0]), error)
    return visible(shortened(words, 4000))
