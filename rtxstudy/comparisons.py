"""Paired accuracy differences between two models.

Differences are paired by seed and by test text.

An arm is a :class:`rtxstudy.finished.Runs`: the runs of one model on one data set, one per seed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from rtx import archive
from rtx.baselines.counting_words import NAME, best
from rtxlib.errors import InputError
from rtxstudy.finished import Runs
from rtxstudy.statistics import (
    FEWEST_SEEDS,
    difference_of_accuracies,
    lowest_start,
    mean_difference,
    paired_difference,
    smallest_shown,
)


def correct(runs: Runs) -> np.ndarray:
    """Which test texts each run labels correctly: booleans (runs, texts).

    Raises InputError when the runs were not tested on the same texts.
    """
    tables = [archive.part(run, "predictions", runs.results).sort_values("row") for run in runs]
    labels = tables[0]["label"].to_numpy()
    if not all(np.array_equal(table["label"], labels) for table in tables):
        keys = ", ".join(run.key for run in runs)
        raise InputError(f"{keys} were not tested on the same texts, so they cannot be compared.")
    return np.stack([(table["prediction"] == labels).to_numpy() for table in tables])


def require_same_seeds(a: Runs, b: Runs) -> None:
    """Raise InputError unless the runs of two arms have the same seeds in the same order."""
    seeds = [[run.metrics["seed"] for run in runs] for runs in (a, b)]
    if seeds[0] != seeds[1]:
        raise InputError(f"Seeds {seeds[0]} of {a.model} cannot be paired with seeds {seeds[1]} of {b.model}.")


def compare(a: Runs, b: Runs) -> dict[str, Any]:
    """The accuracy of the runs ``a`` minus that of ``b``, seed by seed and text by text, as a row of a table.

    Columns: ``comparison`` ("A − B"), ``data``, ``difference`` (0.01 = one percentage point), ``low`` and ``high`` (95 %
    interval), ``p``, ``n_seeds``, ``n_items`` (test texts), ``low_without``: the smallest ``low`` over all leave-one-seed-out
    fits, NaN for fewer than three seeds; and ``smallest``: the smallest difference that so many seeds and texts would show four
    times in five (:func:`rtxstudy.statistics.smallest_shown`).

    Raises InputError when the two arms differ in their seeds or in their test texts.
    """
    require_same_seeds(a, b)
    right = correct(a + b)
    pair = right[: len(a)], right[len(a) :]
    differences = pair[0].astype(float) - pair[1]
    return {
        "comparison": f"{a.model} − {b.model}",
        "data": a[0].metrics["data"],
        **paired_difference(*pair)._asdict(),
        "low_without": lowest_start(differences),
        "smallest": smallest_shown(differences),
    }


def comparisons(*pairs: tuple[Runs, Runs], **columns: Any) -> pd.DataFrame:
    """One row of :func:`compare` per pair of arms; ``columns`` are added to each row."""
    return pd.DataFrame([compare(a, b) | columns for a, b in pairs])


def carried_over(scores: pd.DataFrame, a: str, b: str) -> pd.DataFrame:
    """The accuracy of model ``a`` minus that of ``b`` on data that they were not trained on; a row for each pair of data sets.

    ``scores``: ``model``, ``seed``, ``trained_on``, ``tested_on``, ``accuracy``, ``n_test``, as
    :meth:`rtxstudy.study.Study.transfer` gives them; only seeds that both models have count. Columns: ``comparison``, ``data``
    (the source of the training texts, and that of the test texts) and those of
    :func:`rtxstudy.statistics.difference_of_accuracies`.
    """
    rows = []
    for (home, away), part in scores.groupby(["trained_on", "tested_on"], sort=False):
        by_seed = part.pivot(index="seed", columns="model", values="accuracy")[[a, b]].dropna()
        difference = difference_of_accuracies(by_seed[a].to_numpy(), by_seed[b].to_numpy(), int(part["n_test"].min()))
        rows.append({"comparison": f"{a} − {b}", "data": f"{away}, after training on {home}", **difference._asdict()})
    return pd.DataFrame(rows)


def against_first(arms: Mapping[str, Runs]) -> pd.DataFrame:
    """One row of :func:`compare` for each arm but the first: its accuracy minus that of the first arm, of the same seeds.

    ``arms``: name → runs. The column ``form`` holds the name.
    """
    (_, first), *others = arms.items()
    return pd.concat([comparisons((arm, first), form=name) for name, arm in others], ignore_index=True)


def against_words(runs: Runs, counting: pd.DataFrame) -> pd.DataFrame:
    """The accuracy of the runs minus that of TF-IDF with logistic regression, and minus that of the best baseline.

    ``counting``: from :func:`rtx.baselines.counting_words.counting_words` on the same data. The best baseline is the one with the
    best validation accuracy; it has a row of its own only if it is not TF-IDF. A baseline's single fit is paired with every seed.
    Columns: those of :func:`compare`, without ``low_without``.
    """
    named = counting[counting["model"] == NAME].iloc[0]
    fits = {fit["model"]: fit for fit in (named, best(counting))}
    return pd.DataFrame([against_fit(runs, fit) for fit in fits.values()])


def against_fit(runs: Runs, fit: pd.Series) -> dict[str, Any]:
    """The accuracy of the runs minus that of one classical baseline, whose single fit is paired with every seed.

    ``fit``: a row of :func:`rtx.baselines.counting_words.counting_words` on the same data. Columns: those of :func:`compare`,
    without ``low_without``.
    """
    right = correct(runs)
    of_fit = np.broadcast_to(np.asarray(fit["correct"], dtype=bool), right.shape)
    row = {"comparison": f"{runs.model} − {fit['model']}", "data": runs[0].metrics["data"]}
    return row | paired_difference(right, of_fit)._asdict() | {"smallest": smallest_shown(right.astype(float) - of_fit)}


def over_blocks(runs: Runs) -> pd.DataFrame:
    """The effect of more passes on accuracy, over all blocks (layers × width) of a grid at once.

    Each number of passes R has two rows, one for each comparison:

    - "one pass": the same block passed once, with the same parameters and 1/R of the arithmetic;
    - "layers of their own": a standard encoder of R times the layers, with the same arithmetic and the parameters of R blocks.

    Columns: ``passes``, ``against`` (the comparison), ``blocks``, ``difference`` (accuracy, 0.01 = one percentage point),
    ``low``, ``high``, ``p``, ``n_items``, ``data``, ``smallest`` (as in :func:`compare`, with blocks in place of seeds), and
    ``seeds``, the fewest training seeds of a block's difference.

    A block's difference is the mean of the paired differences over its seeds. Blocks are the random effect in place of seeds
    (:func:`rtxstudy.statistics.mean_difference`). The interval covers new blocks and new texts.
    Raises InputError when the runs were not tested on the same texts.
    """
    axes = ("num_hidden_layers", "recurrent_depth", "hidden_size", "seed")
    places = [tuple(run.metrics[axis] for axis in axes) for run in runs]
    by_place = dict(zip(places, correct(runs).astype(float), strict=True))
    rows = []
    for passes in sorted({passes for _, passes, _, _ in by_place if passes > 1}):
        for against, growth in (("one pass", 1), ("layers of their own", passes)):
            differences: dict[tuple[int, int], list[np.ndarray]] = {}
            for (layers, own_passes, width, seed), right in by_place.items():
                other = by_place.get((layers * growth, 1, width, seed))
                if own_passes == passes and other is not None:
                    differences.setdefault((layers, width), []).append(right - other)
            if differences:
                d = np.stack([np.mean(seeds, axis=0) for seeds in differences.values()])
                effect = mean_difference(d)._asdict()
                names = {"passes": passes, "against": against, "blocks": effect.pop("n_seeds")}
                fewest = min(map(len, differences.values()))
                also = {"data": runs[0].metrics["data"], "smallest": smallest_shown(d), "seeds": fewest}
                rows.append(names | effect | also)
    return pd.DataFrame(rows)


def finds(differences: pd.DataFrame) -> bool:
    """Whether at least one comparison of at least three seeds has an interval that excludes zero.

    ``differences``: rows of the functions above.
    """
    nonzero = (differences["low"] > 0) | (differences["high"] < 0)
    return bool((nonzero & (differences["n_seeds"] >= FEWEST_SEEDS)).any())
