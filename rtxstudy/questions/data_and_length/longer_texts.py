"""Encoders that read longer texts than in training, measured once from each run's weights.

What lies beyond the training length depends on the form of the position. Rotary angles and ALiBi's distances go on by their
formulas. A learned table has a row for each position up to ``max_position_embeddings``. The rows beyond the longest training
text get no gradient, so they stay as they were drawn, only smaller by the weight decay. Beyond the table there is no row, and the
encoder refuses the text.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from rtxlib.data.prepare import Prepared
from rtxlib.data.tokenization import encode
from rtxlib.models.heads import EncoderForSequenceClassification
from rtxlib.runs.store import Run
from rtxstudy.finished import Runs
from rtxstudy.reread import labels_read
from rtxstudy.run_tables import measured_once
from rtxstudy.statistics import mean_difference, smallest_shown, summarise

# The lengths are not in the key. If a profile changes them, delete the tables.


def read_to(lengths: tuple[int, ...]) -> partial:
    """:func:`answers` at these lengths, as :meth:`rtxstudy.study.Study.measure` takes it."""
    return partial(answers, lengths=lengths)


def answers(run: Run, data: Prepared | None, results: Path | None = None, *, lengths: tuple[int, ...]) -> pd.DataFrame:
    """Whether a run labels the test texts correctly when each is cut to several lengths: one row per text and length.

    Columns: ``row``; ``tokens`` (of the whole text, with [CLS] and [SEP]); ``read`` (the most tokens that are read); ``right``;
    ``trained_to`` (the most tokens of a training text).
    """

    def measure(model: EncoderForSequenceClassification) -> pd.DataFrame:
        labels, parts = np.asarray(data.splits["test"].labels), []
        whole = np.diff(encode(data.texts("test"), data.tokenizer, None)[1])
        for length in lengths:
            right = labels_read(run, model, data, data.tokenizer, length) == labels
            parts.append(pd.DataFrame({"row": np.arange(len(labels)), "tokens": whole, "read": length, "right": right}))
        return pd.concat(parts, ignore_index=True).assign(trained_to=run.spec["data"]["max_length"])

    return measured_once(run, "longer_texts", results, measure)


def _longer(table: pd.DataFrame) -> pd.DataFrame:
    """The texts that are longer than any training text; the others are read whole at every length."""
    return table[table["tokens"] > table["trained_to"]]


def by_length(runs: Mapping[str, Runs], table: pd.DataFrame) -> pd.DataFrame:
    """Accuracy on the texts that are longer than any training text: ``model, read, mean, low, high, sd, n, texts``.

    ``runs``: name of the form of the position → its runs. The column ``model`` holds this name.
    """
    longer = _longer(table)
    names = {run.key: name for name, arm in runs.items() for run in arm}
    right = longer.assign(model=longer["key"].map(names)).groupby(["model", "seed", "read"], sort=False)["right"]
    return summarise(right.mean().reset_index(name="accuracy"), ["model", "read"]).assign(texts=longer["row"].nunique())


def differences(runs: Mapping[str, Runs], table: pd.DataFrame) -> pd.DataFrame:
    """Accuracy at each further length minus that at the training length, for each form of the position.

    ``runs``: name of the form → its runs. Only texts that are longer than any training text count. Rows and columns are those of
    :func:`rtxstudy.comparisons.compare`, without ``low_without``, and ``position`` and ``read``.
    """
    longer, rows = _longer(table), []
    for name, arm in runs.items():
        right = longer[longer["key"].isin([run.key for run in arm])]
        right_by_length = {
            length: part.pivot(index="seed", columns="row", values="right").to_numpy(dtype=float)
            for length, part in right.groupby("read")
        }
        short, *further = sorted(right_by_length)
        for length in further:
            d = right_by_length[length] - right_by_length[short]
            row = {"comparison": f"{name}, {length} tokens − {short} tokens", "data": arm[0].metrics["data"]}
            rows.append(
                row | mean_difference(d)._asdict() | {"smallest": smallest_shown(d), "position": name, "read": length}
            )
    return pd.DataFrame(rows)
