"""Tables written for reading: every column under a person's word for it, every number in its format."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from statsmodels.stats.multitest import multipletests

COSTS = {  # a column of the runs table → what a person calls it, and how it is written
    "parameters": ("parameters", "{:,.0f}"),
    "embedding_parameters": ("… in the token table", "{:,.0f}"),
    "non_embedding_parameters": ("… outside the token table", "{:,.0f}"),
    "size_mb": ("size of the weights (MB)", "{:.1f}"),
    "forward_flops": ("operations of a forward pass (GFLOP)", "{:.4f}"),
    "ms_median": ("one text, median (ms)", "{:.2f}"),
    "ms_p95": ("one text, 95th percentile (ms)", "{:.2f}"),
    "ms_per_text": ("full batches, each text (ms)", "{:.3f}"),
    "latency_threads": ("… with so many threads", "{:.0f}"),
    "train_seconds": ("training, wall clock (s)", "{:,.0f}"),
    "train_cpu_seconds": ("training, processor time (s)", "{:,.0f}"),
    "rows_per_second": ("training, texts a second", "{:,.0f}"),
    "padding_share": ("tokens spent on padding", "{:.2%}"),
    "epochs": ("epochs", "{:.2f}"),
}


def _written(table: pd.DataFrame, words: dict[str, tuple[str, str]]) -> pd.DataFrame:
    """Columns that ``words`` knows renamed and written out, operations in billions, "–" where there is nothing; others stay."""
    written = {}
    for column, values in table.items():
        label, form = words.get(column, (column.replace("_", " "), None))
        values = values / 1e9 if column == "forward_flops" else values
        written[label] = values if form is None else values.map(form.format).where(values.notna(), "–")
    return pd.DataFrame(written)


def costs(runs: pd.DataFrame) -> pd.DataFrame:
    """What each model costs, written for reading: a row a measure, a column a model, medians over its runs.

    The last row says on which device each was trained and in which number format, for times of different ones are not comparable.
    """
    models = runs.groupby("model", sort=False)
    written = _written(models[list(COSTS)].median(), COSTS)
    written["trained on"] = models.apply(lambda own: "; ".join(sorted(set(own["device"] + ", " + own["dtype"]))))
    return written.T.rename_axis("measure")


MEANS = {  # a column of a summary → what a person calls it, and how it is written
    "mean": ("mean accuracy", "{:.3f}"),
    "low": ("95 % from", "{:.3f}"),
    "high": ("to", "{:.3f}"),
    "sd": ("± over seeds", "{:.3f}"),
    "n": ("seeds", "{:.0f}"),
}


def means(summary: pd.DataFrame) -> pd.DataFrame:
    """A table of :func:`rtxstudy.evaluation.statistics.summarise` written for reading, its intervals cut at 0 and 1.

    Columns that :data:`MEANS` and :data:`COSTS` know are renamed and written out, "–" where there is nothing; others stay.
    """
    return _written(summary.assign(low=summary["low"].clip(lower=0), high=summary["high"].clip(upper=1)), MEANS | COSTS)


FORMS = {  # a column of the runs table → what a person calls it, and how it is written
    "accuracy": ("accuracy", "{:.3f}"),
    "non_embedding_parameters": ("parameters outside the token table", "{:,.0f}"),
    "forward_flops": ("billion operations per text", "{:.4f}"),
    "train_cpu_seconds": ("training (s of processor time)", "{:.0f}"),
}


def forms(runs: pd.DataFrame) -> pd.DataFrame:
    """What each form of the loop reaches and costs, written for reading: means over its runs, by ``data`` and ``form``."""
    return _written(runs.groupby(["data", "form"], sort=False)[list(FORMS)].mean().reset_index(), FORMS)


def comparisons(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of :func:`rtxstudy.evaluation.comparisons.compare` written for reading, in percentage points.

    "p (Holm)" is adjusted for the number of rows (Holm 1979).
    """
    points = {"difference": "difference (points)", "low": "95 % from", "high": "to"}
    counts = {"n_seeds": "seeds", "n_items": "texts"}
    holm = multipletests(rows["p"], method="holm")[1]
    table = rows.assign(**{"p (Holm)": holm}).rename(columns=points | counts)
    for column in points.values():
        table[column] = [f"{100 * value:+.1f}".replace("-", "−") if pd.notna(value) else "–" for value in table[column]]
    for column in ("p", "p (Holm)"):
        table[column] = ["–" if pd.isna(p) else "< 0.001" if p < 0.001 else f"{p:.3f}" for p in table[column]]
    table["texts"] = table["texts"].map("{:,}".format)
    return table[["study", "comparison", "data", *points.values(), "p", "p (Holm)", *counts.values()]]


def figures(folder: Path) -> pd.DataFrame:
    """The figures in a folder, each with its notebook, its drawings and its numbers."""
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
