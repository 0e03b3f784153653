"""What the user asks of the model to take."""

from __future__ import annotations

from dataclasses import dataclass

from rtxlib.errors import InputError


@dataclass(frozen=True)
class Limits:
    """A score at most ``margin`` below that of the best, at most so many megabytes, and at most so many milliseconds for a text.

    Raises InputError for a margin below 0 and for a limit of 0 or less.
    """

    margin: float = 0.01
    max_mb: float | None = None
    max_ms: float | None = None

    def __post_init__(self) -> None:
        if not self.margin >= 0 or any(most is not None and not most > 0 for most in (self.max_mb, self.max_ms)):
            raise InputError("A margin is 0 or more, and a limit of megabytes or milliseconds is above 0.")
