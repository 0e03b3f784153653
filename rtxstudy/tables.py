"""Tables with readable column names and formatted numbers."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd
from statsmodels.stats.multitest import multipletests

from rtxstudy import names
from rtxstudy.numbers import percent, with_ends

# The times of an answer stand in one table of the report, measured in one session, and are left out of every other table.
TIMES = ("ms_one", "ms_one_low", "ms_one_high", "ms_in_batch")
COSTS = {  # column of the runs table → its readable name and its format
    "parameters": ("parameters", "{:,.0f}"),
    "embedding_parameters": ("parameters in the embedding matrix", "{:,.0f}"),
    "non_embedding_parameters": ("parameters outside the embedding matrix", "{:,.0f}"),
    "size_mb": ("size of the weights (MB)", "{:.1f}"),
    "forward_flops": ("operations of a forward pass (GFLOP)", "{:.4f}"),
    "train_cpu_seconds": ("training, processor time (s)", "{:,.0f}"),
    "rows_per_second": ("training, texts a second", "{:,.0f}"),
    "padding_share": ("tokens spent on padding", lambda share: percent(share, 2)),
    "epochs": ("epochs", "{:.2f}"),
}

Format = str | Callable[[float], str] | None


def written(table: pd.DataFrame, words: Mapping[str, tuple[str, Format]]) -> pd.DataFrame:
    """Rename and format the columns in ``words``. FLOPs are shown in billions and missing values as –. Other columns stay."""
    written = {}
    for column, values in table.items():
        label, form = words.get(column, (names.column(column), None))
        values = values / 1e9 if column == "forward_flops" else values
        write = form.format if isinstance(form, str) else form
        written[label] = values if write is None else values.map(write).where(values.notna(), "–")
    return pd.DataFrame(written)


def costs(runs: pd.DataFrame) -> pd.DataFrame:
    """The costs of each model, as medians over its runs. One row per measure, one column per model.

    The last row names the device and the number format of the training. Times on different devices or formats are not
    comparable.
    """
    models = runs.groupby("model", sort=False)
    medians = written(models[list(COSTS)].median(), COSTS)
    medians["trained on"] = models.apply(lambda part: "; ".join(sorted(set(part["device"] + ", " + part["dtype"]))))
    return medians.T.rename_axis("measure")


MEANS = {  # column of a summary → its readable name and its format
    "mean": ("mean accuracy", percent),
    "interval": ("95 % interval (%)", None),
    "sd": ("± over seeds (points)", lambda sd: f"{100 * sd:.1f}"),
    "n": ("seeds", "{:.0f}"),
    "most_epochs": ("most epochs", "{:g}"),
    "train_rows": ("training texts", "{:,.0f}"),
    "dtype": ("number format", None),
}


def means(summary: pd.DataFrame) -> pd.DataFrame:
    """A readable table of :func:`rtxstudy.statistics.summarise`. Its intervals are cut at 0 and 1.

    The columns in :data:`MEANS` and :data:`COSTS` are renamed and formatted, missing values are shown as –. Other columns stay,
    but for the times of an answer.
    """
    low, high = summary["low"].clip(lower=0), summary["high"].clip(upper=1)
    interval = ["–" if pd.isna(a) else f"{100 * a:.1f} to {100 * b:.1f}" for a, b in zip(low, high, strict=True)]
    table = summary.drop(columns=["low", "high", *TIMES], errors="ignore")
    table.insert(list(table).index("mean") + 1, "interval", interval)
    return written(table, MEANS | COSTS)


SCORES = {
    "accuracy": ("accuracy", percent),
    "f1": ("F1", percent),
    "precision": ("precision", percent),
    "recall": ("recall", percent),
}


def measures(runs: pd.DataFrame) -> pd.DataFrame:
    """Accuracy, F1, precision and recall of each model: means over its runs."""
    models = runs.groupby("model", sort=False)
    return written(models[list(SCORES)].mean().reset_index().assign(seeds=models.size().to_numpy()), SCORES)


def baselines(counting: pd.DataFrame) -> pd.DataFrame:
    """A readable table of :func:`rtx.baselines.counting_words.counting_words` on one data set."""
    words = SCORES | {"validation_accuracy": ("validation", percent), "seconds": ("training (s)", "{:.1f}")}
    return written(counting.filter(["model", *words]), words)


def comparisons(rows: pd.DataFrame) -> pd.DataFrame:
    """A readable table of rows of :func:`rtxstudy.comparisons.compare`, in percentage points.

    "p (Holm)" is adjusted for the number of rows (Holm 1979). The smallest detectable difference is
    the smallest difference that its seeds and texts would show four times in five.
    """
    points = {"difference": "difference (points)", "low": "low", "high": "high"}
    shows = "smallest detectable (points)"  # tables of earlier reports do not have this column
    rows = rows.assign(**{shows: [f"{100 * v:.1f}" if pd.notna(v) else "–" for v in rows.get("smallest", [None] * len(rows))]})
    counts = {"n_seeds": "seeds", "n_items": "texts"}
    holm = multipletests(rows["p"], method="holm")[1]
    table = rows.assign(**{"p (Holm)": holm}).rename(columns=points | counts)
    for column in points.values():
        table[column] = [f"{100 * value:+.1f}".replace("-", "−") if pd.notna(value) else "–" for value in table[column]]
    for column in ("p", "p (Holm)"):
        table[column] = ["–" if pd.isna(p) else "< 0.001" if p < 0.001 else f"{p:.3f}" for p in table[column]]
    table["study"] = table["study"].str.replace("_", " ")
    table["texts"] = table["texts"].map("{:,}".format)
    ends = zip(table["low"], table["high"], strict=True)
    table["95 % interval"] = [low if low == "–" else f"{low} to {high}" for low, high in ends]
    order = ["comparison", "data", points["difference"], "95 % interval", "p (Holm)", *counts.values(), "p", shows, "study"]
    return table[order]


def differences(table: pd.DataFrame) -> list[str]:
    """The columns difference, low and high of each row as :func:`rtxstudy.numbers.with_ends` writes them."""
    return [with_ends(*each) for each in zip(table["difference"], table["low"], table["high"], strict=True)]


def classical(table: pd.DataFrame) -> pd.DataFrame:
    """A readable table of the baselines without a neural network: means over the splits of a data set."""
    scores = ["accuracy", "f1", "precision", "recall", "n_test"]
    means_ = table.groupby(["data", "model"], sort=False)[scores].mean().reset_index()
    return written(means_, {name: (names.column(name), percent) for name in scores[:-1]} | {"n_test": ("test texts", "{:,.0f}")})


def named(by_id: Mapping[str, names.Name]) -> pd.DataFrame:
    """The short and the long name of every data set and model, with its id."""
    return pd.DataFrame(
        [
            {"name": name.short, "what it is": name.long, "id": f"<code>{html.escape(id_)}</code>"}
            for id_, name in sorted(by_id.items(), key=lambda item: item[1].short)
        ]
    )


def figures(folder: Path) -> pd.DataFrame:
    """The figures in a folder: one row per figure, with its notebook, its drawings and its numbers."""
    return pd.DataFrame(
        [
            {
                "figure": file.stem,
                "notebook": file.stem.partition("_")[0],
                "drawing": f"{file.stem}.svg · .pdf · .png",
                "numbers": f"{file.stem}.csv",
            }
            for file in sorted(folder.glob("*.svg"))
        ]
    )
