"""What won on public files: which candidates may win on a file of so many rows, labels and tokens, and in which order.

The table ``prior.json`` was measured by ``python -m benchmarks.prior``. Each row says on which machine, with how many draws of
the training rows, and on how many test texts. Scores are read as the difference to counting words on the same rows, so that easy
and hard files can be averaged.
"""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from rtxstudy.questions.your_texts.candidates import FINE_TUNED, FROM_SCRATCH, NAMED, WORDS

FILE = Path(__file__).with_name("prior.json")
MAX_LENGTH = 128  # word pieces of a text that the networks of the table read, and that its average counts
NEAREST = 4  # settings that an expectation is averaged over
FARTHEST = 3.0  # doublings of rows, labels and tokens together; a setting that is farther away says nothing
WITHIN = 0.02  # of the best expected score; what is expected further behind is not trained


@cache
def table() -> pd.DataFrame:
    """Columns data, rows, labels, tokens, model, gain.

    tokens: of a text cut at :data:`MAX_LENGTH`, on average. gain: accuracy above that of counting words.
    """
    columns = ["data", "rows", "labels", "tokens", "model", "accuracy"]
    rows = pd.DataFrame(json.loads(FILE.read_text(encoding="utf-8"))["rows"], columns=columns)
    words = rows[rows["model"] == WORDS].set_index(["data", "rows"])["accuracy"]
    base = words.reindex(pd.MultiIndex.from_frame(rows[["data", "rows"]])).to_numpy()
    return rows.assign(gain=rows["accuracy"] - base).dropna(subset=["gain"])


def expected(rows: int, labels: int, tokens: float) -> dict[str, float]:
    """Model → the accuracy above counting words that it is expected to have, averaged over the nearest measured settings.

    The distance of two settings is that of the logarithms (base 2) of their rows, labels and tokens. A setting counts by
    2 to the power of minus its distance, and not at all beyond :data:`FARTHEST`. Not every model was measured in every setting,
    so what is averaged is a model's difference to fine-tuned MiniLM in the same setting. Of a model without such a setting
    nothing is expected. More rows than any setting has count as the most that one has.
    """
    measured, setting = table(), ["data", "rows"]
    reference = measured[measured["model"] == FINE_TUNED].set_index(setting)["gain"]
    apart = measured["gain"] - reference.reindex(pd.MultiIndex.from_frame(measured[setting])).to_numpy()
    place = np.log2(measured[["rows", "labels", "tokens"]].to_numpy(float))
    rows = min(rows, measured["rows"].max())
    distance = np.abs(place - [math.log2(rows), math.log2(labels), math.log2(tokens)]).sum(axis=1)
    near = measured.assign(distance=distance, apart=apart)[distance <= FARTHEST].dropna(subset=["apart"])

    def mean(model: str, column: str) -> float:
        nearest = near[near["model"] == model].nsmallest(NEAREST, "distance")
        return float(np.average(nearest[column], weights=2.0 ** -nearest["distance"]))

    if near.empty:
        return {}
    level = mean(FINE_TUNED, "gain")
    return {str(model): level + mean(model, "apart") for model in near["model"].unique()}


def order(names: list[str], rows: int, labels: int, tokens: float) -> tuple[list[str], dict[str, str]]:
    """The candidates that may win, the most promising first, and why the others are left out.

    A candidate that was not measured near this size comes after the others; an encoder from scratch is left out there, if a
    pretrained one is among ``names``. Only what is among ``names`` is compared with, so that without MiniLM the encoders from
    scratch compete with counting words alone.
    """
    gains = expected(rows, labels, tokens)
    best = max([gains[name] for name in names if name in gains] + [0.0])
    may, left_out = [], {}
    pretrained = any(NAMED[name].pretrained for name in names if name in NAMED)
    for name in names:
        behind = best - gains.get(name, best)
        if pretrained and name in FROM_SCRATCH and name not in gains:
            left_out[name] = "It was measured on no public file near in rows, labels and length; --all trains it."
        elif behind > WITHIN:
            left_out[name] = (
                f"On the public files nearest in rows, labels and length it was {100 * behind:.0f} points behind the best; --all "
                "trains it anyway."
            )
        else:
            may.append(name)
    return sorted(may, key=lambda name: gains.get(name, -1.0), reverse=True), left_out
