"""What does a loop cost to deploy: how small can it be, and what do fewer bits per weight cost?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from rtxstudy import published, studies, tables
from rtxstudy.absent import Absent
from rtxstudy.numbers import percent, with_ends
from rtxstudy.questions.deployment import deployed, small_vocabulary
from rtxstudy.questions.depth_gain.gains import ARMS
from rtxstudy.questions.depth_gain.three_encoders import trained_arms

if TYPE_CHECKING:
    from rtxstudy import Study


@dataclass(frozen=True)
class Deployed:
    """The three encoders of one task as they are deployed."""

    forms: pd.DataFrame  # a row for each encoder and number format, as deployed.compared
    rounding: pd.DataFrame  # the error of rounded weights by pass, as deployed.rounding


def small_vocabularies(study: Study) -> pd.DataFrame | Absent:
    """Each fine-tuned loop whose embedding matrix holds the words of its task, as :func:`small_vocabulary.against_whole`.

    Loops that were measured before, or whose weights are here; a run that was trained elsewhere left its record alone.
    """
    trained, rows = study.ask(trained_arms), []
    measured = published.keys(study.results, "small_vocabulary")
    for trio, (deep, _, loop) in zip(trained.trios, trained.arms, strict=True):
        known = all(run.path is not None or run.key in measured for run in loop)
        if known and trio.loop[0].conversion and trio.loop[0].teacher is None:
            study.measure(small_vocabulary.small_vocabulary, loop)
            rows.append({"regime": trio.regime} | small_vocabulary.against_whole(loop, deep))
    return pd.DataFrame(rows) if rows else Absent("No loop here is made of pretrained layers.")


def deployed_forms(study: Study) -> Deployed | Absent:
    """The encoders of the first task of the profile's deployed regime, in float32, bf16 and eight bits."""
    trained, chosen = study.ask(trained_arms), studies.trios(study.profile, [study.profile.deployed])[:1]
    places = [trained.trios.index(trio) for trio in chosen if trio in trained.trios]
    if not places:
        return Absent("No encoders of the regime to deploy are trained here.")
    arms = dict(zip(ARMS, trained.arms[places[0]], strict=True))
    for runs in arms.values():
        study.measure(deployed.deployed, runs)
        study.measure(deployed.times, runs)
    return Deployed(deployed.compared(arms), deployed.rounding(arms))


def readable_vocabulary(table: pd.DataFrame) -> pd.DataFrame:
    """The loops whose embedding matrix is cut, of :func:`~rtxstudy.questions.deployment.small_vocabulary.against_whole`."""
    return pd.DataFrame(
        [
            {
                "way of training": row["regime"],
                "data": row["data"],
                "six layers, all words": percent(row["deep"]),
                "loop, words of the task": percent(row["small"]),
                "difference (points)": with_ends(row["difference"], row["low"], row["high"]),
                "millions of parameters": f"{row['deep_parameters'] / 1e6:.1f} → {row['small_parameters'] / 1e6:.1f}",
                "labels changed by the cut": percent(row["changed"]),
            }
            for row in table.to_dict("records")
        ]
    )


_COLUMNS = {  # column of rtxstudy.questions.deployment.deployed.compared → its readable name and its format
    "accuracy": ("accuracy", percent),
    "megabytes": ("megabytes", "{:.1f}"),
    "ms_one": ("one text (ms)", "{:.2f}"),
    "ms_in_batch": ("a text of a batch (ms)", "{:.2f}"),
}


def readable_deployed(table: pd.DataFrame) -> pd.DataFrame:
    """A readable table of what each arm costs in each form."""
    lost = tables.differences(table)
    named = table.assign(megabytes=table["bytes"] / 1e6, **{"minus float32 (points)": lost})
    return tables.written(named[["arm", "form", "accuracy", "minus float32 (points)", *list(_COLUMNS)[1:]]], _COLUMNS)
