"""The time that a comparison has, and whether somebody asked for its end."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

STAYS = "· "  # a line that begins so is not drawn over by the next
Say = Callable[[str], object]
LATE = 1.1  # a training that takes the whole time and a tenth more is stopped


def silent(line: str) -> None:
    """Say nothing. It is a function with a name, because a clock travels to another process."""


class OutOfTime(Exception):
    """The minutes are over, or somebody asked for the report of what is there."""


class Clock:
    """Counts the seconds from its making.

    Args:
        minutes: that there are
        stop_file: a file whose presence asks for the end
        say: is called with one line of progress at a time
        spent: seconds of the minutes that are gone, or kept for what follows

    Attributes:
        ended: "" while there is time, "time" or "asked" once :meth:`check` has raised
    """

    def __init__(self, minutes: float, stop_file: Path, say: Say = silent, spent: float = 0.0) -> None:
        self.started, self.seconds, self.stop_file, self.say = time.monotonic() - spent, 60 * minutes, stop_file, say
        self.ended = ""

    def for_another_process(self) -> Clock:
        """The same time, without the lines of progress. A monotonic clock is the same for all processes of a machine."""
        other = Clock(0, self.stop_file)
        other.started, other.seconds = self.started, self.seconds
        return other

    @property
    def left(self) -> float:
        """Seconds; below zero when the time is over."""
        return self.seconds - (time.monotonic() - self.started)

    @property
    def asked(self) -> bool:
        return self.stop_file.exists()

    def check(self) -> None:
        """Raise OutOfTime when the time (times ``LATE``) is over, or an end was asked for."""
        if self.asked:
            self.ended = "asked"
            raise OutOfTime
        if time.monotonic() - self.started > LATE * self.seconds:
            self.ended = "time"
            raise OutOfTime

    def announce(self, line: str) -> None:
        """Say a line that stays."""
        self.say(f"{STAYS}{line}")

    def progress(self, name: str, line: str = "") -> None:
        seconds = max(0, int(self.left))
        self.say(f"{name}{': ' if line else ''}{line}  ({seconds // 60}:{seconds % 60:02d} left)")
