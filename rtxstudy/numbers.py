"""Numbers as people read them: the character − for a minus, accuracies in per cent, differences in percentage points."""

from __future__ import annotations

import math
from collections.abc import Iterable

NBSP = "\N{NO-BREAK SPACE}"


def number(value: float, spec: str) -> str:
    """``value`` in the format ``spec``, with the character −."""
    return format(value, spec).replace("-", "−")


def percent(share: float, decimals: int = 1) -> str:
    """An accuracy: 0.8945 → "89.4 %"."""
    return f"{100 * share:.{decimals}f}{NBSP}%"


def with_spread(mean: float, sd: float) -> str:
    """An accuracy in per cent with its standard deviation, if it has one: "89.4 ± 0.3"."""
    return f"{100 * mean:.1f}" if math.isnan(sd) else f"{100 * mean:.1f} ± {100 * sd:.1f}"


def signed(difference: float) -> str:
    """A difference of accuracies in percentage points, without the word: "+1.3". Zero has no sign."""
    written = number(100 * difference, "+.1f")
    return "0.0" if written in ("+0.0", "−0.0") else written


def ends(low: float, high: float) -> str:
    """The ends of the interval of a difference: "−1.0 to +0.9"; "–" where there is none."""
    return "–" if math.isnan(low) else f"{_end(low)} to {_end(high)}"


def _end(value: float) -> str:
    """An end of an interval. One decimal would say zero of an end that excludes it, so that end has two."""
    return number(100 * value, "+.2f") if 0.00005 <= abs(value) < 0.0005 else signed(value)


def with_ends(difference: float, low: float, high: float) -> str:
    """A difference in percentage points with its interval, if it has one: "+1.3 (+0.4 to +2.2)"."""
    return signed(difference) if math.isnan(low) else f"{signed(difference)} ({ends(low, high)})"


def aside(difference: float, low: float, high: float) -> str:
    """The same inside brackets: "+1.3, +0.4 to +2.2"."""
    return signed(difference) if math.isnan(low) else f"{signed(difference)}, {ends(low, high)}"


def interval(low: float, high: float) -> str:
    """The interval of a difference of accuracies, in percentage points: "95 % interval −1.0 to +0.9"."""
    return f"95 % interval {ends(low, high)}"


def margin_points(margin: float) -> str:
    """A margin of accuracy: "1 point", "0.5 points"."""
    size = number(round(100 * margin, 6), "g")
    return f"{size} point{'' if size == '1' else 's'}"


def higher(difference: float) -> str:
    """A difference of accuracies for "its accuracy is …": "0.1 points lower", or "the same to 0.1 points"."""
    size = f"{100 * abs(difference):.1f} points"
    if size == "0.0 points":
        return "the same to 0.1 points"
    return f"{size} {'higher' if difference > 0 else 'lower'}"


def between(values: Iterable[float], spec: str) -> str:
    """The range of some values, "0.14 to 0.22", or one number if both ends read alike."""
    values = list(values)
    low, high = number(min(values), spec), number(max(values), spec)
    return low if low == high else f"{low} to {high}"


def milliseconds(value: float) -> str:
    """A time: "0.52 ms", "51 ms"."""
    return f"{value:.2g} ms" if value < 10 else f"{value:,.0f} ms"


def megabytes(value: float) -> str:
    """A size in units of 10⁶ bytes: "91 MB", "3.5 MB", "<0.1 MB"."""
    digits = "<0.1" if value < 0.1 else f"{value:.1f}" if value < 10 else f"{value:,.0f}"
    return f"{digits}{NBSP}MB"
