"""What the study's proposal and the notes before it claim, and what the published tables measure of it.

A claim is a region in which a measured value should lie. It holds if the whole 95 % interval lies inside, and does not hold if
the whole interval lies outside. Other intervals settle nothing, and neither do fewer than three seeds, or two sides that were
trained on different kinds of device (docs/findings.md says how much these may differ). A count has no interval.

The claims themselves stand in :mod:`rtxstudy.questions.proposal.proposal`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from rtxstudy.statistics import FEWEST_SEEDS

Tables = Mapping[str, pd.DataFrame]  # the published tables by their names; a table may be missing

HOLDS, FAILS, OPEN, UNMEASURED = "holds", "does not hold", "not settled", "not measured"


class Measured(NamedTuple):
    """A measured value with its 95 % interval, and the seeds and texts behind it; NaN where there is none of them."""

    value: float
    low: float = np.nan
    high: float = np.nan
    n_seeds: float = np.nan
    n_items: float = np.nan
    one_machine: bool = True  # whether both sides of a difference were trained on the same kind of device


@dataclass(frozen=True)
class Claim:
    """One claim, and how it is measured."""

    claim: str
    where: str  # the document that says it, and its section
    how: str  # what is measured
    unit: str  # "" (a ratio), "million", "points", "minutes"
    least: float  # the region of the claim, in the unit (points: 0.01 is one point); −∞ and ∞ where it has no end
    most: float
    measure: Callable[[Tables], Measured | None]  # None: the tables do not have it


def of_runs(
    column: str, model: str, data: str, scale: float = 1.0, published_on_gpu: bool = False
) -> Callable[[Tables], Measured | None]:
    """The median of a column over the runs of a model on some data, times ``scale``.

    published_on_gpu: over those of the published protocol on a GPU alone.
    """

    def measure(tables: Tables) -> Measured | None:
        runs = tables["runs"].drop_duplicates("key")
        if published_on_gpu:
            runs = runs[~runs["device"].str.startswith("CPU") & (runs["recipe"] == "published")]
        values = runs.loc[(runs["model"] == model) & (runs["data"] == data), column].dropna()
        return Measured(float(values.median()) * scale) if len(values) else None

    return measure


def ratio(
    numerator: Callable[[Tables], Measured | None], denominator: Callable[[Tables], Measured | None]
) -> Callable[[Tables], Measured | None]:
    """One measured value over another."""

    def measure(tables: Tables) -> Measured | None:
        above, below = numerator(tables), denominator(tables)
        return None if above is None or below is None else Measured(above.value / below.value)

    return measure


def difference(
    a: str, b: str, data: str | None = None, study: str | None = None, table: str = "comparisons"
) -> Callable[[Tables], Measured | None]:
    """The accuracy of ``a`` minus that of ``b`` in a table of comparisons, whichever of them it names first.

    data, study: the rows to look at. Of several rows the one with the most seeds counts, the last one if several are equal.
    """

    def measure(tables: Tables) -> Measured | None:
        every = tables.get(table)
        if every is None or every.empty:
            return None
        for name, value in (("data", data), ("study", study)):
            every = every if value is None else every[every[name] == value]
        for name, sign in ((f"{a} − {b}", 1), (f"{b} − {a}", -1)):
            rows = every[every["comparison"] == name].sort_values("n_seeds", kind="stable")
            if len(rows):
                row = rows.iloc[-1]
                ends = sorted((sign * row["low"], sign * row["high"]))
                of_a, of_b = (_on_gpu(tables, model, row["data"]) for model in (a, b))
                one_machine = of_a == of_b or not (of_a and of_b)  # unknown runs are taken for those of one machine
                return Measured(sign * row["difference"], *ends, row["n_seeds"], row["n_items"], one_machine)
        return None

    return measure


def _on_gpu(tables: Tables, model: str, data: str) -> set[bool]:
    """Whether the runs of a model on some data were trained on a GPU: on none, on all, or some of them."""
    runs = tables["runs"] if "runs" in tables else pd.DataFrame(columns=["model", "data", "device"])
    return {not device.startswith("CPU") for device in runs.loc[(runs["model"] == model) & (runs["data"] == data), "device"]}


def norm_time(tables: Tables) -> Measured | None:
    """The time of RMSNorm over that of LayerNorm, forward and backward, as notebook 08 measured it."""
    table = tables.get("tour_norm_times")
    if table is None or table.empty:
        return None
    ms = table.set_index("norm")["ms"]
    return Measured(float(ms["rmsnorm"] / ms["layernorm"]))


def outcome(claim: Claim, measured: Measured | None) -> str:
    """One of :data:`HOLDS`, :data:`FAILS`, :data:`OPEN` and :data:`UNMEASURED`."""
    if measured is None:
        return UNMEASURED
    if (np.isfinite(measured.n_seeds) and measured.n_seeds < FEWEST_SEEDS) or not measured.one_machine:
        return OPEN
    low, high = (measured.value, measured.value) if np.isnan(measured.low) else (measured.low, measured.high)
    if claim.least <= low and high <= claim.most:
        return HOLDS
    return FAILS if high < claim.least or low > claim.most else OPEN


def claims(every: list[Claim], tables: Tables) -> pd.DataFrame:
    """One row per claim: claim, where, how, unit, least, most, value, low, high, n_seeds, n_items, outcome.

    NaN where nothing is measured. An end of the region that is open is infinite.
    """
    rows: list[dict[str, Any]] = []
    for claim in every:
        measured = claim.measure(tables)
        named = {name: getattr(claim, name) for name in ("claim", "where", "how", "unit", "least", "most")}
        found = (measured or Measured(np.nan))._asdict()
        if not found.pop("one_machine"):
            named["how"] += "; one side was trained on a GPU, which may change as much"
        rows.append(named | found | {"outcome": outcome(claim, measured)})
    return pd.DataFrame(rows)
