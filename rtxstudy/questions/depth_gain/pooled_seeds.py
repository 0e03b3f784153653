"""What the verdicts are if the noise of seeds is pooled over the comparisons that are made of one pretrained encoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from rtxstudy.absent import Absent
from rtxstudy.numbers import with_ends
from rtxstudy.questions.depth_gain.depth_claims import shown, way
from rtxstudy.questions.depth_gain.depth_tables import p_value
from rtxstudy.questions.depth_gain.verdicts import VERDICTS
from rtxstudy.statistics import FEWEST_SEEDS, MeanSquares, pooled

if TYPE_CHECKING:
    from rtxstudy import Study
    from rtxstudy.questions.depth_gain.three_encoders import ThreeEncoders

KINDS = ("depth", "loop", "sharing")  # the differences of a comparison


@dataclass(frozen=True)
class Pooled:
    """The comparisons with pooled noise of seeds."""

    ratios: dict[str, float]  # of each of KINDS the mean square of seeds over the residual one
    rows: pd.DataFrame  # the pooled comparisons, as depth_claims.shown, with ``before``: their verdict without pooling


def pool(gains: pd.DataFrame) -> Pooled | None:
    """``gains``: of :func:`rtxstudy.questions.depth_gain.gains.depth_gain`; None where fewer than two comparisons can be pooled.

    The comparisons from scratch keep their own noise: there some trainings fail, so that seeds vary far more on one task than on
    another. Holm's correction is over all comparisons. The rule that leaves one seed out is not applied, because pooling answers
    the same doubt.
    """
    before = shown(gains)
    of_minilm = before["way"].str.startswith("MiniLM") & (before["n_seeds"] >= FEWEST_SEEDS)
    if of_minilm.sum() < 2:
        return None
    part, table = gains[of_minilm], gains.copy()
    seeds, ratios = part["n_seeds"].to_numpy(), {}
    for kind in KINDS:
        squares = [MeanSquares(*row) for row in part[[f"{kind}_square_{of}" for of in MeanSquares._fields]].to_numpy()]
        ratios[kind], found = pooled(part[f"{kind}_gain"].to_numpy(), squares, seeds)
        for end in found:
            table.loc[of_minilm, f"{kind}_{end}"] = found[end].to_numpy()
    table["sharing_low_without"] = table["sharing_low"]
    after = shown(table).assign(before=before["verdict"])
    return Pooled(ratios, after[of_minilm])


def pooled_seeds(study: Study, compared: ThreeEncoders) -> Pooled | Absent:
    """The comparisons of a study with pooled noise of seeds."""
    return pool(compared.gains) or Absent("Too few comparisons are made of a pretrained encoder.")


def readable(found: Pooled) -> pd.DataFrame:
    """A readable table, in points."""
    rows = found.rows.sort_values("depth_gain", ascending=False)
    return pd.DataFrame(
        [
            {
                "task": one["data"],
                "trained": way(one["regime"]),
                "depth gain (points)": with_ends(one["depth_gain"], one["depth_low"], one["depth_high"]),
                "Holm's p": p_value(one["depth_holm"]),
                "loop − deep (points)": with_ends(one["sharing_gain"], one["sharing_low"], one["sharing_high"]),
                "verdict": VERDICTS[one["verdict"]],
                "without pooling": "the same" if one["before"] == one["verdict"] else VERDICTS[one["before"]],
            }
            for one in rows.to_dict("records")
        ]
    )
