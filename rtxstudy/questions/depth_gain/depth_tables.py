"""Readable tables of what depth gains, and of the encoders behind it."""

from __future__ import annotations

import math

import pandas as pd

from rtx.baselines.counting_words import MAJORITY, NAME, SECOND_ALONE, best
from rtxstudy import names, tables
from rtxstudy.finished import Runs
from rtxstudy.numbers import percent, with_ends, with_spread
from rtxstudy.questions.depth_gain import gains
from rtxstudy.questions.depth_gain.depth_claims import shown
from rtxstudy.questions.depth_gain.verdicts import MARGIN, VERDICTS

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
    spread = [with_spread(mean, sd) for mean, sd in zip(table["accuracy"], table["sd"], strict=True)]
    named = table.assign(encoder=table["arm"], **{"accuracy (%)": spread, "number format": table["dtype"]})
    return tables.written(named[["regime", "data", "encoder", "accuracy (%)", *_ARMS, "number format"]], _ARMS)


_PRETRAININGS = {  # column of rtxstudy.questions.depth_gain.gains.pretrainings → its readable name and its format
    "parameters": ("parameters", "{:,.0f}"),
    "non_embedding_parameters": ("parameters outside the embedding matrix", "{:,.0f}"),
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
                "compared with": row["against"] + ("" if row["learned"] else " (not both learned)"),
                "difference (points)": with_ends(row["difference"], row["low"], row["high"]),
                "seeds": row["n_seeds"],
                "test texts": f"{row['n_items']:,}",
            }
            for row in table.to_dict("records")
        ]
    )


_REPLACED = {"replaces": "yes", "loses": "no", "below": "less accurate", "not settled": "not settled"}


def per_data_set(gains: pd.DataFrame) -> pd.DataFrame:
    """The study's question for each data set: does depth pay there, and where it does, does a loop replace it?"""
    table = shown(gains).sort_values("depth_gain", ascending=False)
    rows = []
    for data, part in table[table["depth_holm"].notna()].groupby("data", sort=False):
        pays = part[part["pays"]]
        rows.append(
            {
                "data set": data,
                "does depth pay?": "; ".join(
                    f"yes, {way}: {with_ends(*gain)}"
                    for way, *gain in pays[["way", "depth_gain", "depth_low", "depth_high"]].itertuples(index=False)
                )
                or "not shown",
                "does a loop replace it?": "; ".join(
                    f"{_REPLACED[verdict]}, keeps {100 * share:.0f} %"
                    for verdict, share in pays[["verdict", "kept"]].itertuples(index=False)
                )
                or "no gain is shown",
                "ways of training": len(part),
            }
        )
    return pd.DataFrame(rows)


def readable(gains: pd.DataFrame) -> pd.DataFrame:
    """One row per task and way of training: the three accuracies, the differences in points, what is kept, and the verdict."""
    table = shown(gains).sort_values("depth_gain", ascending=False)
    return pd.DataFrame(
        [
            {
                "task": one["data"],
                "trained": one["way"],
                "deep, shallow, loop (%)": ", ".join(f"{100 * one[arm]:.1f}" for arm in ("deep", "shallow", "loop")),
                "depth gain (points)": with_ends(one["depth_gain"], one["depth_low"], one["depth_high"]),
                "loop − deep (points)": with_ends(one["sharing_gain"], one["sharing_low"], one["sharing_high"]),
                "verdict": VERDICTS[one["verdict"]],
                "kept": kept(one),
                "Holm's p": p_value(one["depth_holm"]),
                "loop gain (points)": with_ends(one["loop_gain"], one["loop_low"], one["loop_high"]),
                "above −1 with each seed left out": _without(one["sharing_low_without"]),
                "chosen": one.get("selected") or "–",
                "seeds × texts": f"{one['n_seeds']} × {one['n_items']:,}",
            }
            for one in table.to_dict("records")
        ]
    )


def p_value(p: float) -> str:
    if pd.isna(p):
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.2g}"


def beside_words(gains: pd.DataFrame) -> pd.DataFrame:
    """One row per task and way of training: the deep encoder and the loop minus counting words, in points."""
    table = shown(gains).sort_values("depth_gain", ascending=False)
    return pd.DataFrame(
        [
            {
                "task": one["data"],
                "trained": one["way"],
                "TF-IDF": percent(one["words"]),
                "deep − TF-IDF": with_ends(one["deep_words_gain"], one["deep_words_low"], one["deep_words_high"]),
                "loop − TF-IDF": with_ends(one["loop_words_gain"], one["loop_words_low"], one["loop_words_high"]),
                "best baseline on validation rows": f"{names.short(one['baseline'])}, {percent(one['baseline_accuracy'])}",
                "loop − best baseline": with_ends(
                    one["loop_baseline_gain"], one["loop_baseline_low"], one["loop_baseline_high"]
                ),
            }
            for one in table.to_dict("records")
        ]
    )


def kept(one: dict) -> str:
    """The share of the depth gain that a loop keeps, with Fieller's interval, where depth pays."""
    if not one["pays"]:
        return "–"
    return f"{100 * one['kept']:.0f} % ({100 * one['kept_low']:.0f} to {100 * one['kept_high']:.0f})"


def _without(low: float) -> str:
    """Whether an interval from which each seed was left out once begins above the margin; "–" with too few seeds."""
    return "–" if math.isnan(low) else "yes" if low > -MARGIN else "no"
