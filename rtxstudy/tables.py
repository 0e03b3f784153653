"""Tidy tables out of finished runs: what the notebooks show and the figures draw."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from rtxlib.errors import InputError
from rtxlib.runs import store
from rtxlib.runs.counting_words import NAME, counting_words  # noqa: F401 - notebooks call tables.counting_words
from rtxlib.runs.store import Run
from rtxstudy.evaluation.statistics import mean_difference, paired_difference


def gather(runs: Sequence[Run], name: str, results: Path | None = None) -> pd.DataFrame:
    """The table ``name`` ("curves", "predictions") of all these runs, one below the other."""
    return pd.concat([store.part(run, name, results) for run in runs], ignore_index=True)


def of_model(runs: Sequence[Run], model: str) -> list[Run]:
    """The runs of one model, by seed."""
    return sorted((run for run in runs if run.metrics["model"] == model), key=lambda run: run.metrics["seed"])


def _right(runs: Sequence[Run], results: Path | None) -> np.ndarray:
    """Which test rows each run got right: booleans (runs, rows).

    Raises InputError when the runs were not tested on the same rows.
    """
    tables = [store.part(run, "predictions", results).sort_values("row") for run in runs]
    labels = tables[0]["label"].to_numpy()
    if not all(np.array_equal(table["label"], labels) for table in tables):
        raise InputError(f"{', '.join(run.key for run in runs)} were not tested on the same texts, so they cannot be compared.")
    return np.stack([(table["prediction"] == labels).to_numpy() for table in tables])


def compare(a: Sequence[Run], b: Sequence[Run], results: Path | None = None) -> dict[str, float | str | int]:
    """Accuracy of the runs ``a`` minus that of ``b``, seed by seed and text by text, as a row of a table.

    Columns: comparison ("A − B"), data, difference, low, high, p, n_seeds, n_items; and low_without, the lowest that ``low``
    becomes when any one seed is left out, NaN for fewer than three. Raises InputError when seeds or test texts of the two are
    not the same in the same order.
    """
    names = a[0].metrics["model"], b[0].metrics["model"]
    seeds = [[run.metrics["seed"] for run in runs] for runs in (a, b)]
    if seeds[0] != seeds[1]:
        raise InputError(f"Seeds {seeds[0]} of {names[0]} cannot be paired with seeds {seeds[1]} of {names[1]}.")
    right = _right([*a, *b], results)
    pair = right[: len(a)], right[len(a) :]
    found = paired_difference(*pair)
    fewer = [paired_difference(*(np.delete(side, seed, axis=0) for side in pair)) for seed in range(len(a) if len(a) > 2 else 0)]
    return {
        "comparison": f"{names[0]} − {names[1]}",
        "data": a[0].metrics["data"],
        **found._asdict(),
        "low_without": min((part.low for part in fewer), default=np.nan),
    }


def over_blocks(runs: Sequence[Run], results: Path | None = None) -> pd.DataFrame:
    """What more passes do to a block of layers, over all blocks (layers × width) of a grid at once.

    One row for each number of passes R and what it is set against: the block passed once, which has the same parameters
    and 1/R of the arithmetic, and a standard encoder of R times the layers, which has the same arithmetic and R blocks'
    parameters. Columns: passes, against ("one pass" or "layers of their own"), blocks, difference (accuracy, 0.01 = a
    percentage point), low, high, p, n_items, data.

    A block's difference is the mean over its seeds, paired; blocks stand where seeds do in
    :func:`rtxstudy.evaluation.statistics.mean_difference`, so the interval covers other blocks such as these and other texts.
    Raises InputError when the runs were not tested on the same texts.
    """
    axes = ("num_hidden_layers", "recurrent_depth", "hidden_size", "seed")
    places = [tuple(run.metrics[axis] for axis in axes) for run in runs]
    right = dict(zip(places, _right(runs, results).astype(float), strict=True))
    rows = []
    for passes in sorted({depth for _, depth, _, _ in right if depth > 1}):
        for against, growth in (("one pass", 1), ("layers of their own", passes)):
            differences: dict[tuple[int, int], list[np.ndarray]] = {}
            for (layers, depth, width, seed), own in right.items():
                other = right.get((layers * growth, 1, width, seed))
                if depth == passes and other is not None:
                    differences.setdefault((layers, width), []).append(own - other)
            if differences:
                found = mean_difference(np.stack([np.mean(seeds, axis=0) for seeds in differences.values()]))._asdict()
                names = {"passes": passes, "against": against, "blocks": found.pop("n_seeds")}
                rows.append(names | found | {"data": runs[0].metrics["data"]})
    return pd.DataFrame(rows)


def against_words(runs: Sequence[Run], counting: pd.DataFrame, results: Path | None = None) -> dict[str, float | str | int]:
    """Accuracy of the runs minus that of TF-IDF with logistic regression, as :func:`compare` gives it.

    ``counting``: from :func:`counting_words` on the same data; its one fit stands beside every seed.
    """
    words = counting[counting["model"] == NAME].iloc[0]
    right = _right(runs, results)
    difference = paired_difference(right, np.broadcast_to(words["correct"], right.shape))
    metrics = runs[0].metrics
    return {"comparison": f"{metrics['model']} − {words['model']}", "data": metrics["data"], **difference._asdict()}


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


def findings(results: Path) -> dict[str, pd.DataFrame]:
    """What the studies of a profile left: "sources", "runs" (one row a study and run), "comparisons", "classical", of the
    loop "worth" and "early_exits", and of the grid "over_blocks", empty where it was not run.

    Runs say beside the ``epochs`` they took the ``most_epochs`` their recipe allows, by which runs of one recipe's name differ.

    Raises InputError when the notebooks before have left nothing.
    """
    names = ("sources", "runs", "studies", "comparisons", "classical", "worth", "early_exits")
    needed = {name: results / f"{name}.parquet" for name in names}
    if absent := [name for name, file in needed.items() if not file.is_file()]:
        raise InputError(f"{results} has no {' and no '.join(absent)}; run notebooks 01 to 06 of this profile first.")
    read = {name: store.read_table(file) for name, file in needed.items()}
    grid = results / "over_blocks.parquet"
    read["over_blocks"] = store.read_table(grid) if grid.is_file() else pd.DataFrame()
    runs = read["studies"].merge(read["runs"], on="key")
    return read | {"runs": runs.assign(most_epochs=[json.loads(spec)["recipe"]["epochs"] for spec in runs["spec"]])}
