"""The models of the summary at a glance, and every comparison of the study with its verdict."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from rtx.baselines.counting_words import FITS, MAJORITY
from rtxstudy.statistics import FEWEST_SEEDS, MARGIN, error_of_share, mean_difference, summarise

STUDIES = ("baseline", "recurrent", "width_vs_depth", "pretraining")  # those with runs on the headline data
COSTS = ["parameters", "non_embedding_parameters"]
TIMES = ["ms_one", "ms_in_batch", "dtype"]
VERDICTS = ("first", "second", "alike", "open", "few seeds", "not learned")


def at_a_glance(tables: Mapping[str, pd.DataFrame], data: str, timed: pd.DataFrame | None = None) -> pd.DataFrame:
    """One row per model on the headline data, the most accurate first; the baselines without a neural network among them.

    The encoders that notebook 09 made of a pretrained one are among them, too.

    ``tables``: of :func:`rtxstudy.published.findings`. ``timed``: of
    :func:`rtxstudy.questions.deployment.side_by_side.of_study`; None: no times of encoders. Columns: ``model``, ``family``,
    ``mean``, ``low``, ``high``, ``sd``, ``n`` (accuracy over seeds), ``validation`` (mean validation accuracy), ``parameters``,
    ``non_embedding_parameters``, ``ms_one`` (a text by itself; not measured for a baseline), ``ms_in_batch`` (a text in a full
    batch), ``dtype`` (the number format of the times; none for a baseline) and ``learned`` (:func:`above_majority`).
    """
    runs = _headline_runs(tables["runs"], data)
    encoders = summarise(runs, ["model", "family"], carry=COSTS)
    encoders["validation"] = encoders["model"].map(runs.groupby("model")["val_accuracy"].mean())
    times = pd.DataFrame(columns=["model", *TIMES]) if timed is None or timed.empty else timed[["model", *TIMES]]
    encoders = encoders.merge(times, on="model", how="left")
    counted = tables["classical"]
    counted = counted[(counted["data"] == data) & counted["model"].isin(FITS)].drop_duplicates("model")
    baselines = counted[["model", "family", "accuracy", "validation_accuracy", "parameters", "ms_per_text"]]
    names = {"accuracy": "mean", "validation_accuracy": "validation", "ms_per_text": "ms_in_batch"}
    baselines = baselines.rename(columns=names)
    table = pd.concat([encoders, baselines.assign(n=1)], ignore_index=True)
    least = majority(tables["classical"], data)
    texts = runs["n_test"].iloc[0]
    table["learned"] = [above_majority(mean, least, texts) for mean in table["mean"]]
    return table.sort_values("mean", ascending=False, kind="stable", ignore_index=True)


def _headline_runs(runs: pd.DataFrame, data: str) -> pd.DataFrame:
    """The runs on the headline data, each once: those of :data:`STUDIES`, and the converted ones of notebook 09."""
    converted = np.array([bool(json.loads(spec).get("conversion")) for spec in runs["spec"]])
    conversions = (runs["study"] == "where_depth_pays") & converted
    return runs[(runs["study"].isin(STUDIES) | conversions) & (runs["data"] == data)].drop_duplicates("key")


SAME_TIME = 1.25  # two times whose ratio is smaller are not told apart


def worth_their_cost(table: pd.DataFrame, validation_rows: int) -> pd.DataFrame:
    """Which models of :func:`at_a_glance` are worth their cost: a frontier over validation accuracy, time and megabytes.

    Two accuracies are told apart if they differ by more than the standard error of their difference over new validation texts,
    √(e₁² + e₂²) with e = √(p(1 − p)/n). The models join from the smallest to the largest; of equal ones the faster comes first. A
    model joins if it is told to be more accurate than each member that takes no more megabytes and no more time (up to
    :data:`SAME_TIME`). So test texts choose nothing. A model without a time does not join.

    Columns that are added: ``megabytes`` (of float32 weights), ``validation_error`` (the standard error), ``frontier`` (whether
    it joined) and ``like`` (ids of the models whose validation accuracy is not told apart from its own, joined by ", ").
    """
    error = error_of_share(table["validation"], validation_rows)
    table = table.assign(megabytes=table["parameters"] * 4 / 1e6, validation_error=error, frontier=False)

    def told_better(a: int, b: int) -> bool:
        margin = np.hypot(table["validation_error"][a], table["validation_error"][b])
        return bool(table["validation"][a] - table["validation"][b] > margin)

    members: list[int] = []
    for a in table[table["ms_in_batch"].notna()].sort_values(["megabytes", "ms_in_batch"], kind="stable").index:
        cheaper = [b for b in members if table["ms_in_batch"][b] <= SAME_TIME * table["ms_in_batch"][a]]
        if table["learned"][a] and all(told_better(a, b) for b in cheaper):
            members.append(a)
    table.loc[members, "frontier"] = True
    table["like"] = [
        ", ".join(table["model"][b] for b in table.index if b != a and not told_better(a, b) and not told_better(b, a))
        for a in table.index
    ]
    return table


def over_texts(table: pd.DataFrame, right: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """The table with the ends of intervals over new seeds and new texts: ``text_low`` and ``text_high`` (0..1).

    right: model → whether each run labels each test text rightly, (seeds, texts)
    """
    intervals = [mean_difference(np.atleast_2d(right[model]).astype(float)) for model in table["model"]]
    return table.assign(text_low=[one.low for one in intervals], text_high=[min(one.high, 1.0) for one in intervals])


def answers(predictions: pd.DataFrame, runs: pd.DataFrame, counted: pd.DataFrame, data: str) -> dict[str, np.ndarray]:
    """Model → (seeds, texts) booleans: which test texts each run of :func:`at_a_glance` labels rightly, and each baseline.

    predictions: the published ones. counted: of :func:`rtx.baselines.counting_words.counting_words` on the same data.
    """
    keys = _headline_runs(runs, data).groupby("model")["key"].agg(list)
    rows = predictions[predictions["key"].isin([key for some in keys for key in some])]
    right = rows.assign(right=rows["prediction"] == rows["label"]).pivot(index="key", columns="row", values="right")
    by_model = {model: right.loc[some].to_numpy(dtype=bool) for model, some in keys.items()}
    return by_model | {fit["model"]: np.asarray(fit["correct"], dtype=bool)[None] for fit in counted.to_dict("records")}


def majority(classical: pd.DataFrame, data: str) -> float:
    """The accuracy of the majority class of the training texts on these data, or on the data that they are a part of.

    NaN if it is not known.
    """
    least = classical[classical["model"] == MAJORITY].drop_duplicates("data").set_index("data")["accuracy"]
    return float(least.get(data, least.get(data.partition(" ")[0], np.nan)))


def above_majority(accuracy: float, least: float, texts: int) -> bool:
    """Whether an accuracy on so many texts lies more than two standard errors above the majority class. An unknown class: yes."""
    if np.isnan(least):
        return True
    return bool(accuracy - least > 2 * np.sqrt(max(least * (1 - least), 1e-12) / texts))


def learned(reached: pd.DataFrame, counted: pd.DataFrame) -> list[bool]:
    """For each row of ``reached`` (``data``, ``accuracy``): whether it is above the majority class of its data.

    ``counted``: rows of :func:`rtx.baselines.counting_words.counting_words` with the column ``data``.
    """
    texts = counted.groupby("data")["n_test"].first()
    rows = zip(reached["data"], reached["accuracy"], strict=True)
    return [above_majority(accuracy, majority(counted, data), texts.get(data, 1)) for data, accuracy in rows]


def verdicts(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Every comparison of the study once, with its ``verdict``, one of :data:`VERDICTS`.

    "first" and "second": that model is the more accurate. "alike": the whole interval lies within :data:`MARGIN`. "open": the
    interval contains zero and reaches beyond the margin. "few seeds": fewer than three. "not learned": neither model is above the
    majority class, so their difference says nothing.
    """
    rows = tables["comparisons"].sort_values("n_seeds", ascending=False, kind="stable")
    rows = rows.drop_duplicates(["comparison", "data"]).sort_index().reset_index(drop=True)
    runs = tables["runs"].drop_duplicates("key").groupby(["data", "model"])["accuracy"].mean().to_dict()
    runs |= tables["classical"].groupby(["data", "model"])["accuracy"].mean().to_dict()
    return rows.assign(verdict=[_verdict(row, runs, tables["classical"]) for row in rows.to_dict("records")])


def _verdict(row: dict[str, Any], accuracy: dict[tuple[str, str], float], classical: pd.DataFrame) -> str:
    least = majority(classical, row["data"])
    arms = [accuracy.get((row["data"], model), np.nan) for model in row["comparison"].split(" − ")]
    finite = [arm for arm in arms if not np.isnan(arm)]
    if finite and not any(above_majority(arm, least, row["n_items"]) for arm in finite):
        return "not learned"
    if row["n_seeds"] < FEWEST_SEEDS or np.isnan(row["low"]):
        return "few seeds"
    if row["low"] > 0 or row["high"] < 0:
        return "first" if row["low"] > 0 else "second"
    return "alike" if row["low"] > -MARGIN and row["high"] < MARGIN else "open"


def readable(table: pd.DataFrame) -> pd.DataFrame:
    """A readable table of :func:`rtxstudy.questions.summary.glance.worth_their_cost`: what each model reaches and costs."""
    spread = ["" if pd.isna(sd) else f" ± {100 * sd:.1f}" for sd in table["sd"]]
    return pd.DataFrame(
        {
            "model": table["model"],
            "accuracy (%)": [f"{100 * mean:.1f}{sd}" for mean, sd in zip(table["mean"], spread, strict=True)],
            "one text (ms)": table["ms_one"].map(_ms),
            "a text in a batch (ms)": table["ms_in_batch"].map(_ms),
            "megabytes": [f"{megabytes:.1f}" for megabytes in table["megabytes"]],
            "validation (%)": [
                f"{100 * value:.1f} ± {100 * error:.1f}"
                for value, error in zip(table["validation"], table["validation_error"], strict=True)
            ],
            "worth its cost": ["yes" if on else "–" for on in table["frontier"]],
            "seeds": [f"{int(row.n)}" if row.family != "classical" else "–" for row in table.itertuples()],
            "million parameters": [f"{n / 1e6:.1f}" for n in table["parameters"]],
            "… of its layers": ["–" if pd.isna(n) else f"{n / 1e6:.1f}" for n in table["non_embedding_parameters"]],
        }
    )


def _ms(time: float) -> str:
    return "–" if pd.isna(time) else f"{time:#.2g}".removesuffix(".")
