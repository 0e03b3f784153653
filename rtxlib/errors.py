"""The one exception for what a user can mend, and the nearest spelling of a mistyped name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """Something the user gave is wrong; the message is one sentence that says what and what to do.

    The command line prints the message alone, without a stack trace, and exits with 2.
    """


def nearest(name: str, known: Iterable[str]) -> str:
    """``" Did you mean 'sst2'?"`` when a known name is close to ``name``, else an empty string."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f" Did you mean '{close[0]}'?" if close else ""
