"""Numbers and intervals as the notes and labels of figures write them."""

from __future__ import annotations

import math
from collections.abc import Iterable

from rtxstudy.numbers import percent
from rtxstudy.statistics import FEWEST_SEEDS


def interval_note(counts: Iterable[int], mark: str = "bars") -> str:
    """What the marks of uncertainty are, from the number of seeds of each mean.

    ``bars: 95 % interval over seeds (n = 5)``, or that so few seeds have no interval.
    """
    counts = {int(number) for number in counts}
    enough = {number for number in counts if number >= FEWEST_SEEDS}
    if not enough:
        return f"{'one seed' if counts == {1} else _range(counts) + ' seeds'} each, so no interval"
    few = f", none for fewer than {FEWEST_SEEDS} seeds" if counts - enough else ""
    return f"{mark}: 95\xa0%\xa0interval over seeds (n\xa0=\xa0{_range(enough)}){few}"


def seeds_note(counts: Iterable[int]) -> str:
    """``small points: each seed (n = 5)``, or that there is one seed each."""
    counts = {int(number) for number in counts}
    return "one seed each" if counts == {1} else f"small points: each seed (n\xa0=\xa0{_range(counts)})"


def _range(counts: set[int]) -> str:
    return f"{min(counts)}" if len(counts) == 1 else f"{min(counts)}\xa0to\xa0{max(counts)}"


def count(number: float) -> str:
    """A large number with three digits: ``10972162`` → ``11.0M``."""
    for size, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            scaled = number / size
            return f"{scaled:.{0 if scaled >= 100 else 1 if scaled >= 10 else 2}f}{unit}"
    return f"{number:.0f}"


def share(value: float) -> str:
    """A share of 0..1 in per cent. Only zero itself is written as 0.0 %."""
    if value == 0 or value >= 0.0095:
        return percent(value)
    return percent(value, 2) if value >= 0.0001 else f"<{percent(0.0001, 2)}"


def with_interval(mean: float, low: float, high: float) -> str:
    """A share of 0..1 in per cent with its interval: ``80.9 (80.5 to 81.3)``; the mean alone where an end is missing.

    A t-interval can reach beyond 0 and 1, where no share lies; such an end is written as 0 or 100.
    """
    words = f"{100 * mean:.1f}"
    return words if math.isnan(low) or math.isnan(high) else f"{words} ({100 * max(low, 0):.1f} to {100 * min(high, 1):.1f})"


def signed(share: float, zero: str = "0.0") -> str:
    """0.0123 → ``+1.2`` percentage points."""
    words = f"{100 * abs(share):.1f}"
    return zero if float(words) == 0 else f"{'+' if share > 0 else '−'}{words}"
