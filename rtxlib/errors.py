"""The one exception for what a user can mend, how sentences show names, and what the system's refusals mean."""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable


class InputError(ValueError):
    """Something the user gave is wrong; the message is one sentence that says what and what to do.

    The command line prints the message alone, without a stack trace, and exits with 2.
    """


READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)  # how the system refuses to write into another's folder
_FULL = (errno.ENOSPC, errno.EDQUOT)
_LONGEST = 200  # characters of a name that a sentence shows


def disk_full(error: BaseException | None) -> bool:
    """Whether a full disk, or a full quota, lies behind an error.

    The Hub's libraries wrap what stopped them, and safetensors has no number but in its words: "… (os error 28)".
    """
    while error is not None:
        if getattr(error, "errno", None) in _FULL or any(f"(os error {number})" in str(error) for number in _FULL):
            return True
        error = error.__cause__ or error.__context__
    return False


def shortened(name: str) -> str:
    """A name as a sentence shows it: what was pasted by mistake may be a whole text."""
    return name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…"


def nearest(name: str, known: Iterable[str]) -> str:
    """``" Did you mean 'sst2'?"`` when a known name is close to ``name``, else an empty string."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f" Did you mean '{close[0]}'?" if close else ""
