"""A harness that looks for faults from outside: it kills, feeds and starves the ``rtx`` command, and looks at what is left.

    make faults                                                  the whole, about an hour and a half on two cores
    python -m tests.faults --seed 7 --only kill                  one kind, with other moments
    python -m tests.faults --seed 7 --case train:17              one case again, as the table names it
    python -m tests.faults --seed 7 --write-docs                 the whole, and the record's table goes into docs/reliability.md

Whole kinds go into the record, ``reports/faults.json``, beside those of other seeds.

- :mod:`kill`: ``kill -9`` at random moments, then the same command again. The bits are those of an unbroken run, and
  nothing is left behind.
- :mod:`inputs`: files, labels, texts, settings and damaged stores that hypothesis draws. The answer is right, or it is one
  sentence with exit status 2, and no file of the user's is changed.
- :mod:`system`: full disks, read-only stores, other users, few descriptors, little memory, several drivers, killed Ray nodes,
  signals, models that are swapped.
- :mod:`compare`: ``rtx compare`` on full disks, with a Hub that fails (:mod:`hub`), beside another, and after signals.
- :mod:`child`: how a command is run: in a process group of its own, under a folder of its own, with a time limit.

Each kind is a table of checks (``Check``: its name, what it does, how often). A case is one number of one check; it holds
when its function returns, and does not hold when it raises ``Broken``, which says why. Every draw comes from the seed, the
name and the number, so a case can be repeated alone. A case that cannot be tried here raises ``NotTried``, and the table
says so. Nothing leaves the machine: the Hub is switched off or on loopback, and all folders are temporary.

A few cases of each kind except :mod:`compare`, whose cases take half a minute each, run in the suite (``tests/test_faults.py``).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass


class Broken(Exception):
    """A promise that was not held. The message says what was seen."""


class NotTried(Exception):
    """A case that cannot be tried on this machine. The message says why."""


def require(holds: object, otherwise: object) -> None:
    """Raise Broken unless ``holds``."""
    if not holds:
        raise Broken(str(otherwise))


@dataclass(frozen=True)
class Check:
    """One row of the table."""

    kind: str  # kill, inputs, system or compare
    name: str  # of its cases: "train" for train:0, train:1, …
    what: str  # the row's words
    cases: int  # in a whole run
    run: Callable[[int, int], None]  # of the seed and the number of the case
    alone: bool = False  # whether its cases must not run beside others


def generator(seed: int, name: str, number: int) -> random.Random:
    """The random numbers of a case."""
    return random.Random(f"{seed} {name}:{number}")
