"""Readable tables of what depth gains, and of the encoders behind it."""

from __future__ import annotations

import pandas as pd

from rtx.baselines.counting_words import MAJORITY, NAME, SECOND_ALONE, best
from rtxstudy import names, tables
from rtxstudy.finished import Runs
from rtxstudy.numbers import percent, with_ends
from rtxstudy.questions.depth_gain import gains

_CONVERSIONS = {  # column of rtxstudy.questions.depth_gain.gains.conversions → its readable name and its format
    "beside": ("what else", "{}"),
    "val_accuracy": ("validation accuracy", percent),
    "val_loss": ("loss (nats)", "{:.4f}"),
    "non_embedding_parameters": ("parameters of its layers", "{:,.0f}"),
}


def conversions(table: pd.DataFrame) -> pd.DataFrame:
    """A readable table of the ways to make a loop, in the order of their validation accuracy."""
    ordered = table.sort_values("val_accuracy", ascending=False)
    return tables.written(ordered[["layers", "passes", "start", *_CONVERSIONS]], _CONVERSIONS)


def counting_words(table: pd.DataFrame) -> pd.DataFrame:
    """What counting words reaches on each task; ``table``: the baselines of all tasks, with the column ``data``."""
    rows = []
    for data, part in table.groupby("data", sort=False):
        fits = part.set_index("model")
        chosen = best(part)
        second = fits["accuracy"].get(SECOND_ALONE)
        rows.append(
            {
                "task": data,
                "test texts": f"{part['n_test'].iloc[0]:,}",
                "most frequent label": percent(fits["accuracy"][MAJORITY]),
                "TF-IDF": percent(fits["accuracy"][NAME]),
                "best on validation texts": f"{names.short(chosen['model'])}, {percent(chosen['accuracy'])}",
                "second text alone": "–" if second is None else percent(second),
            }
        )
    return pd.DataFrame(rows)


_ARMS = {  # column of rtxstudy.questions.depth_gain.gains.arms → its readable name and its format
    "matthews": ("Matthews", "{:.3f}"),
    "non_embedding_parameters": ("parameters of its layers", "{:,.0f}"),
}


def arms(table: pd.DataFrame) -> pd.DataFrame:
    """A readable table of the deep, the shallow and the looped encoder of each task."""
    spread = [f"{100 * mean:.1f} ± {100 * sd:.1f}" for mean, sd in zip(table["accuracy"], table["sd"], strict=True)]
    named = table.assign(encoder=table["arm"], **{"accuracy (%)": spread, "number format": table["dtype"]})
    return tables.written(named[["regime", "data", "encoder", "accuracy (%)", *_ARMS, "number format"]], _ARMS)


_PRETRAININGS = {  # column of rtxstudy.questions.depth_gain.gains.pretrainings → its readable name and its format
    "parameters": ("parameters", "{:,.0f}"),
    "non_embedding_parameters": ("… outside the token table", "{:,.0f}"),
    "pretraining_words": ("words of the texts", "{:,.0f}"),
    "pretraining_tokens_seen": ("tokens seen", "{:,.0f}"),
    "pretraining_val_loss": ("loss of hidden tokens (nats)", "{:.2f}"),
    "pretraining_val_accuracy": ("accuracy of hidden tokens", percent),
    "pretraining_seconds": ("wall clock (s)", "{:,.0f}"),
}


def pretrainings(three: list[Runs]) -> pd.DataFrame:
    """A readable table of the pretrainings on the study's own texts; ``three``: the deep, the shallow and the looped encoder."""
    return tables.written(gains.pretrainings(*three)[["arm", "model", *_PRETRAININGS]], _PRETRAININGS)


def own_text(table: pd.DataFrame) -> pd.DataFrame:
    """A readable table of :func:`rtxstudy.questions.depth_gain.gains.own_text_gains`."""
    return pd.DataFrame(
        [
            {
                "data": row["data"],
                "encoder": row["arm"],
                "accuracy": percent(row["accuracy"]),
                "compared with the same": row["against"],
                "difference (points)": with_ends(row["difference"], row["low"], row["high"]),
                "seeds": row["n_seeds"],
                "test texts": f"{row['n_items']:,}",
            }
            for row in table.to_dict("records")
        ]
    )
