"""Can a text leave a loop early, at a bounded risk? A loop of pretrained layers that is trained with random depth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from rtxstudy import measured, tables
from rtxstudy.absent import Absent
from rtxstudy.figures.save import Drawing
from rtxstudy.finished import Runs
from rtxstudy.numbers import percent
from rtxstudy.questions.depth_gain.three_encoders import trained_arms
from rtxstudy.questions.early_exit import bounded_exits, exit_claims, exit_figures
from rtxstudy.questions.pretrained.checkpoint import checkpoint

if TYPE_CHECKING:
    from rtxstudy import Study


@dataclass(frozen=True)
class LeavingEarly:
    """The loops that are read after each pass, and what leaving early gives and costs."""

    runs: Runs
    device: str  # on which times were measured
    exits: pd.DataFrame  # every way of leaving, as bounded_exits.against_all_passes
    weaker: pd.DataFrame  # the loops beside those trained for a fixed number of passes, as bounded_exits.beside_plain_loop


def leaving_early(study: Study) -> LeavingEarly | Absent:
    """The loops with random depth; missing runs are trained and measured."""
    if isinstance(absent := study.ask(checkpoint), Absent):
        return absent
    if not study.profile.exit_studies:
        return Absent("This profile has no study of leaving early.")
    runs = study.run("leaving_early")
    ways = study.measure(measured.bounded_exits, runs)
    exits = bounded_exits.against_all_passes(ways, runs.part("bounded_exit_predictions"))
    loops = [arms[-1] for arms in study.ask(trained_arms).arms]
    return LeavingEarly(runs, ways["device"].iloc[0], exits, bounded_exits.beside_plain_loop(runs, loops))


def draw(study: Study, leaving: LeavingEarly) -> Drawing:
    title = study.title(exit_claims.title, leaving.exits, otherwise="Accuracy and time of leaving early")
    return Drawing(
        exit_figures.bounded_exits(leaving.exits, title),
        "12_leaving_early",
        leaving.exits,
        alt="Test accuracy against measured milliseconds per text: a line through the fixed "
        "numbers of passes, and marks for the ways of leaving early.",
        caption=f"Measured on {leaving.device}, in batches of {measured.BATCH}. Numbers beside the marks: mean passes.",
    )


_COLUMNS = {  # column of rtxstudy.questions.early_exit.bounded_exits.against_all_passes → its readable name and its format
    "passes": ("passes", "{:.2f}"),
    "accuracy": ("accuracy", percent),
    "risk": ("risk (%)", lambda risk: f"{100 * risk:.2f}"),
    "throughput": ("throughput (all passes = 1)", "{:.2f}"),
}

_BOUNDS = {"": "fixed", "validated": "fixed, chosen", "controlled": "expected risk bounded", "certified": "risk certified"}


def readable(table: pd.DataFrame) -> pd.DataFrame:
    """A readable table of fixed passes and early exits: accuracy, its difference to all passes in percentage points, and risk."""
    named = table.assign(
        **{"leave by": table["criterion"].where(table["criterion"] != "fixed", "–"), "kind": table["bound"].map(_BOUNDS)},
        **{"accuracy − all passes (points)": tables.differences(table)},
    )
    columns = ["data", "leave by", "kind", "passes", "accuracy", "accuracy − all passes (points)", "risk", "throughput"]
    return tables.written(named[columns], _COLUMNS)
