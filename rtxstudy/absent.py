"""A question that is not asked here, and the reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Absent:
    """What a question answers that this profile does not ask, or whose data or weights are out of reach.

    Any part of it is the same absent answer, so a notebook names the parts of an answer without asking whether there is one:
    ``study.show`` prints the reason once, and ``study.say``, ``study.tabulate``, ``study.ask`` and ``study.publish`` do nothing.
    """

    why: str  # one sentence, such as "This profile has no unified set."

    def __getattr__(self, name: str) -> Absent:
        if name.startswith("_"):  # Python and Jupyter look for special methods
            raise AttributeError(name)
        return self

    def __getitem__(self, part: object) -> Absent:
        return self

    def __iter__(self) -> None:
        raise TypeError(f"There is nothing to go through. {self.why}")


def first_absent(answers: Iterable[object]) -> Absent | None:
    """The first of ``answers`` that is absent; None if all are there."""
    return next((answer for answer in answers if isinstance(answer, Absent)), None)
