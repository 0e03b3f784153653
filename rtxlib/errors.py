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
_NO_ROOM = re.compile(r"\d+ requested and \d+ written")  # of np.save, whose error has no number
_LONGEST = 200  # characters of a name that a sentence shows
_ADVICE = re.compile(r"[;:] (?:copy|fetch|name|put|such a file|a file must) .*", re.DOTALL)
STEERING = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def disk_full(error: BaseException | None) -> bool:
    """Whether a full disk or a full quota is the cause of an error.

    The Hub's libraries wrap the original error. safetensors and tokenizers give the error number only in their message:
    "… (os error 28)". numpy gives none.
    """
    for cause in causes(error):
        if getattr(cause, "errno", None) in FULL or any(f"(os error {number})" in str(cause) for number in FULL):
            return True
        if type(cause) is OSError and cause.errno is None and _NO_ROOM.search(str(cause)):
            return True
    return False


def causes(error: BaseException | None, implied: bool = True) -> Iterator[BaseException]:
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


def counted(n: int, noun: str) -> str:
    """A count with its noun: "1 seed", "5 seeds"."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


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


def nearest(name: str, known: Iterable[str]) -> str:
    """``" Did you mean 'sst2'?"`` if a known name is close to ``name``, else an empty string."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.65)
    return f" Did you mean '{close[0]}'?" if close else ""
