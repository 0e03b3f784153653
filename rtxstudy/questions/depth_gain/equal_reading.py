"""The encoders beside counting words that reads the same tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from rtxstudy import names
from rtxstudy.absent import Absent
from rtxstudy.numbers import percent, with_ends
from rtxstudy.questions.depth_gain import gains
from rtxstudy.questions.depth_gain.depth_claims import way
from rtxstudy.questions.depth_gain.three_encoders import ThreeEncoders
from rtxstudy.same_tokens import same_tokens

if TYPE_CHECKING:
    from rtxstudy import Study


def beside(study: Study, compared: ThreeEncoders) -> pd.DataFrame | Absent:
    """Deep encoder and loop minus TF-IDF on the same tokens, a row for each comparison of a task that is cut.

    Columns: ``data``, ``way``, ``cut`` and ``limit`` as in :func:`rtxstudy.same_tokens.same_tokens`, ``whole_words`` (accuracy of
    TF-IDF on whole texts), and those of :func:`rtxstudy.questions.depth_gain.gains.beside_words` on the same tokens.
    """
    table = study.ask(same_tokens)
    fits = {} if table.empty else dict(iter(table.groupby("data")))
    rows = []
    for trio, three, gain in zip(compared.trios, compared.arms, compared.gains.to_dict("records"), strict=False):
        if (of_task := fits.get(gain["data"])) is not None:
            row = {"data": names.short(gain["data"]), "way": way(trio.regime), "whole_words": gain["words"]}
            rows.append(row | of_task[["cut", "limit"]].iloc[0].to_dict() | gains.beside_words(*three, of_task))
    return pd.DataFrame(rows) if rows else Absent("The texts of this profile's tasks are not cut, or were not counted again.")


def readable(table: pd.DataFrame) -> pd.DataFrame:
    """A readable table of :func:`beside`, in points."""
    return pd.DataFrame(
        [
            {
                "task": one["data"],
                "trained": one["way"],
                "test texts cut": f"{100 * one['cut']:.0f} % at {one['limit']:.0f} tokens",
                "TF-IDF, whole texts": percent(one["whole_words"]),
                "TF-IDF, same tokens": percent(one["words"]),
                "deep − TF-IDF, same tokens": with_ends(*(one[f"deep_words_{end}"] for end in ("gain", "low", "high"))),
                "loop − TF-IDF, same tokens": with_ends(*(one[f"loop_words_{end}"] for end in ("gain", "low", "high"))),
            }
            for one in table.to_dict("records")
        ]
    )
