"""The exception for mistakes that a user can mend, and helpers for its sentences."""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable


class InputError(ValueError):
    """Something that the user gave is wrong. The message is one sentence that says what is wrong and what to do.

    The command line prints the message without a stack trace and exits with status 2.
    """


READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)  # errors of writing into a folder that is read-only or another user's
_FULL = (errno.ENOSPC, errno.EDQUOT)
_LONGEST = 200  # characters of a name that a sentence shows


def disk_full(error: BaseException | None) -> bool:
    """Whether a full disk or a full quota is the cause of an error.

    The Hub's libraries wrap the original error, and safetensors gives the error number only in its message: "… (os error 28)".
    """
    while error is not None:
        if getattr(error, "errno", None) in _FULL or any(f"(os error {number})" in str(error) for number in _FULL):
            return True
        error = error.__cause__ or error.__context__
    return False


def shortened(name: str) -> str:
    """A name as a sentence shows it. It is cut, because somebody may have pasted a whole text by mistake."""
    return name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…"


def nearest(name: str, known: Iterable[str]) -> str:
    """``" Did you mean 'sst2'?"`` if a known name is close to ``name``, else an empty string."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f" Did you mean '{close[0]}'?" if close else ""
