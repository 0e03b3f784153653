"""The encoders beside counting words that reads the same tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from rtx.baselines.counting_words import NAME
from rtxstudy import names
from rtxstudy.absent import Absent
from rtxstudy.comparisons import against_fit
from rtxstudy.numbers import percent, with_ends
from rtxstudy.questions.depth_gain.depth_claims import way
from rtxstudy.questions.depth_gain.three_encoders import ThreeEncoders
from rtxstudy.same_tokens import same_tokens

if TYPE_CHECKING:
    from rtxstudy import Study


def beside(study: Study, compared: ThreeEncoders) -> pd.DataFrame | Absent:
    """Deep encoder and loop minus TF-IDF on the same tokens, a row for each comparison of a task that is cut.

    Columns: ``data``, ``way``, ``cut``, ``limit``, ``words`` (accuracy of TF-IDF on whole texts), ``cut_words`` (on the same
    tokens), and for ``deep`` and ``loop`` ``…_gain``, ``…_low`` and ``…_high``.
    """
    table = study.ask(same_tokens)
    fits = {} if table.empty else {fit["data"]: fit for fit in table[table["model"] == NAME].to_dict("records")}
    rows = []
    for trio, (deep, _, loop), gain in zip(compared.trios, compared.arms, compared.gains.to_dict("records"), strict=False):
        if (fit := fits.get(gain["data"])) is None:
            continue
        row = {"data": names.short(gain["data"]), "way": way(trio.regime), "cut": fit["cut"], "limit": fit["limit"]}
        row |= {"words": gain["words"], "cut_words": fit["accuracy"]}
        for arm, runs in (("deep", deep), ("loop", loop)):
            difference = against_fit(runs, pd.Series(fit))
            row |= {f"{arm}_gain": difference["difference"], f"{arm}_low": difference["low"], f"{arm}_high": difference["high"]}
        rows.append(row)
    return pd.DataFrame(rows) if rows else Absent("The texts of this profile's tasks are not cut, or were not counted again.")


def readable(table: pd.DataFrame) -> pd.DataFrame:
    """A readable table of :func:`beside`, in points."""
    return pd.DataFrame(
        [
            {
                "task": one["data"],
                "trained": one["way"],
                "test texts cut": f"{100 * one['cut']:.0f} % at {one['limit']:.0f} tokens",
                "TF-IDF, whole texts": percent(one["words"]),
                "TF-IDF, same tokens": percent(one["cut_words"]),
                "deep − TF-IDF, same tokens": with_ends(one["deep_gain"], one["deep_low"], one["deep_high"]),
                "loop − TF-IDF, same tokens": with_ends(one["loop_gain"], one["loop_low"], one["loop_high"]),
            }
            for one in table.to_dict("records")
        ]
    )
