"""Does a fine-tuned encoder gain when some of its layers are passed again, and nothing is trained?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from rtxlib.runs.spec import data_label
from rtxstudy import published, studies
from rtxstudy.absent import Absent
from rtxstudy.figures.save import Drawing
from rtxstudy.numbers import signed
from rtxstudy.questions.depth_gain.three_encoders import ThreeEncoders
from rtxstudy.questions.untrained_loop import untrained_claims, untrained_figures, window_passes

if TYPE_CHECKING:
    from rtxstudy import Study

TRAINED = "trained loop"


@dataclass(frozen=True)
class UntrainedLoop:
    """What a further pass changes in a fine-tuned encoder."""

    tried: pd.DataFrame  # every way on validation texts, as window_passes.on_validation
    changes: pd.DataFrame  # the chosen ways on test texts, as window_passes.on_test, and the trained loop beside them


def untrained_loop(study: Study, compared: ThreeEncoders) -> UntrainedLoop | Absent:
    """The profile's tasks with the whole pretrained encoder fine-tuned; its windows are passed again."""
    tasks = {data_label(data) for data in study.profile.untrained}
    trios = [three for trio, three in zip(compared.trios, compared.arms, strict=True) if trio.regime == studies.MADE]
    deep = [encoders for encoders, _, _ in trios if encoders[0].metrics["data"] in tasks]
    if not deep:
        return Absent("This profile passes no window of a fine-tuned encoder again.")
    passed = published.keys(study.results, "window_passes")
    if any(run.path is None and run.key not in passed for runs in deep for run in runs):
        return Absent("The published tables do not have the windows that are passed again.")
    measured = pd.concat([study.measure(window_passes.window_passes, runs) for runs in deep], ignore_index=True)
    loops = compared.gains[(compared.gains["regime"] == studies.MADE) & compared.gains["data"].isin(measured["data"])]
    loops = loops.rename(
        columns={"sharing_gain": "difference", "sharing_low": "low", "sharing_high": "high", "deep": "once"}
    )
    columns = ["data", "once", "difference", "low", "high", "n_seeds", "n_items"]
    changes = pd.concat([window_passes.on_test(measured), loops[columns].assign(kind=TRAINED)], ignore_index=True)
    return UntrainedLoop(window_passes.on_validation(measured), changes)


def draw(study: Study, loops: UntrainedLoop) -> Drawing:
    title = study.title(untrained_claims.title, loops.changes, otherwise="Layers passed again without training")
    return Drawing(
        untrained_figures.untrained_loop(loops.changes, loops.tried, title),
        "09_untrained_loop",
        loops.changes,
        alt="A row for each task and way of passing layers again: the change of test accuracy with its interval, and small "
        "points for the change of every window on validation texts.",
        caption="Validation texts chose the window and its passes for each seed. Intervals cover new seeds and new texts.",
    )


def readable(loops: UntrainedLoop) -> pd.DataFrame:
    """Each task and way with the windows that were chosen."""
    return pd.DataFrame(
        [
            {
                "data": row.data,
                "way": row.kind,
                "encoder itself (%)": f"{100 * row.once:.1f}",
                "test (points)": signed(row.difference),
                "from": signed(row.low),
                "to": signed(row.high),
                "validation, worst to best": "–"
                if pd.isna(row.worst)
                else f"{signed(row.worst)} to {signed(row.best)}",
                "chosen": "–" if pd.isna(row.chosen) else row.chosen,
                "seeds × texts": f"{row.n_seeds} × {row.n_items:,}",
            }
            for row in loops.changes.itertuples()
        ]
    )
