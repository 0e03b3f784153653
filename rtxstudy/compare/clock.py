"""The time that a comparison has, and whether somebody asked for its end."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

LATE = 1.1  # a training that takes the whole time and a tenth more is stopped


class OutOfTime(Exception):
    """The minutes are over, or somebody asked for the report of what is there."""


class Clock:
    """Counts the seconds from its making.

    Args:
        minutes: that there are
        stop_file: a file whose presence asks for the end
        say: is called with one line of progress at a time

    Attributes:
        ended: "" while there is time, "time" or "asked" once :meth:`check` has raised
    """

    def __init__(self, minutes: float, stop_file: Path, say: Callable[[str], None] = lambda line: None) -> None:
        self.started, self.seconds, self.stop_file, self.say = time.monotonic(), 60 * minutes, stop_file, say
        self.ended = ""

    @property
    def left(self) -> float:
        """Seconds; below zero when the time is over."""
        return self.seconds - (time.monotonic() - self.started)

    @property
    def asked(self) -> bool:
        return self.stop_file.exists()

    def check(self, most: float = LATE) -> None:
        """Raise OutOfTime when the time (times ``most``) is over, or an end was asked for."""
        if self.asked:
            self.ended = "asked"
            raise OutOfTime
        if time.monotonic() - self.started > most * self.seconds:
            self.ended = "time"
            raise OutOfTime

    def progress(self, name: str, line: str = "") -> None:
        left = max(0, int(self.left))
        self.say(f"{name}{': ' if line else ''}{line}  ({left // 60}:{left % 60:02d} left)")
