"""The exception for mistakes that a user can mend, and helpers for its sentences."""

from __future__ import annotations

import difflib
import errno
import re
from collections.abc import Iterable, Iterator


class InputError(ValueError):
    """Something that the user gave is wrong. The message is one sentence that says what is wrong and what to do.

    The command line prints the message without a stack trace and exits with status 2.
    """


READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)  # errors of writing into a folder that is read-only or another user's
FULL = (errno.ENOSPC, errno.EDQUOT)
_OURS = ("rtxlib", "rtx", "rtxstudy")  # a module of ours that is missing is a mistake of this program
_NO_ROOM = re.compile(r"\d+ requested and \d+ written")  # of np.save, whose error has no number
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
_LONGEST = 200  # characters of a name that a sentence shows
_ADVICE = re.compile(r"[;:] (?:copy|fetch|name|put|such a file|a file must) .*", re.DOTALL)
STEERING = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def disk_full(error: BaseException | None) -> bool:
    """Whether a full disk or a full quota is the cause of an error.

    The Hub's libraries wrap the original error. safetensors and tokenizers give the error number only in their message:
    "… (os error 28)". numpy gives none.
    """
    for cause in _chain(error):
        if getattr(cause, "errno", None) in FULL or any(f"(os error {number})" in str(cause) for number in FULL):
            return True
        if type(cause) is OSError and cause.errno is None and _NO_ROOM.search(str(cause)):
            return True
    return False


def lacking(error: BaseException) -> str | None:
    """What the machine lacked, in a sentence that says what to do, if that is the cause of an error; else None.

    An InputError may have taken it for something else, such as a damaged file. What an InputError says about a full disk is
    kept.
    """
    if disk_full(error) and not isinstance(error, InputError):
        return "The disk is full; free some space and give the same command again."
    for cause in _chain(error, implied=False):  # a library may be handling the lack of a package that it can do without
        if isinstance(cause, ModuleNotFoundError) and cause.name and cause.name.partition(".")[0] not in _OURS:
            return (
                f"The Python package '{cause.name}' is missing; install rtxlib again, in an environment of its own "
                "(in a checkout: `make setup`)."
            )
    for cause in _chain(error):
        number, words = getattr(cause, "errno", None), ""
        if isinstance(cause, MemoryError):
            number = errno.ENOMEM
        elif number is None and not isinstance(cause, ValueError | LookupError):  # these may quote the user
            words = str(cause)
        for numbers, pattern, sentence in _LACKS:
            if number in numbers or (match := re.search(f".*(?:{pattern}).*", words)):
                return sentence.format("" if number in numbers else shortened(match[0].strip()))
    return None


def _chain(error: BaseException | None, implied: bool = True) -> Iterator[BaseException]:
    """An error, and those that led to it. implied: also those that were only being handled when the next was raised."""
    while error is not None:
        yield error
        error = error.__cause__ or (error.__context__ if implied else None)


def shortened(name: str, longest: int = _LONGEST) -> str:
    """A name as a sentence shows it. It is cut, because somebody may have pasted a whole text by mistake."""
    return name if len(name) <= longest else f"{name[:longest]}…"


def shown(value: object) -> str:
    """A value as a sentence shows it: its repr, cut as in :func:`shortened`."""
    try:
        return shortened(repr(value))
    except ValueError:  # Python does not write a whole number of more than 4,300 digits
        return "a number of thousands of digits"


def few(values: Iterable[object], most: int = 5) -> str:
    """The first of some values, each cut to 30 characters, as a sentence lists them: ``'a', 'b' and 3 more``."""
    every = list(values)
    words = ", ".join(shortened(repr(value), 30) for value in every[:most])
    return f"{words} and {len(every) - most:,} more" if len(every) > most else words


def visible(text: str) -> str:
    """The text with characters that steer a terminal written as escapes: ESC becomes ``\\x1b``, a line feed ``\\n``.

    These are the control characters (C0, DEL and C1), Unicode's line and paragraph separators, the characters that change the
    direction of writing (Unicode's Bidi_Control), and lone surrogates, which cannot be written at all.
    """
    return STEERING.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def fact(error: object) -> str:
    """What the sentence of an error says is wrong, without its advice, to be quoted in a sentence that has its own."""
    return _ADVICE.sub("", str(error)).rstrip(".")


def sentence(error: str) -> str:
    """The message of an error as a terminal shows it: visible, and short even if it quotes something endless."""
    words = re.sub(r"\S{500,}", lambda word: shortened(word[0]), error)
    return visible(shortened(words, 4000))


def nearest(name: str, known: Iterable[str]) -> str:
    """``" Did you mean 'sst2'?"`` if a known name is close to ``name``, else an empty string."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.65)
    return f" Did you mean '{close[0]}'?" if close else ""
