"""What depth gains, what a loop gains, and what share of the depth gain the loop keeps.

On one task three encoders of one width are compared: ``deep`` has N·R layers of its own, ``shallow`` has N, and ``loop`` passes
through the same N layers R times.

- depth gain D = accuracy of deep − accuracy of shallow
- loop gain L = accuracy of loop − accuracy of shallow
- kept L / D, the share of the depth gain that the loop keeps; only where depth pays, so where the interval of D lies above zero
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from sklearn.metrics import matthews_corrcoef

from rtx.baselines.counting_words import NAME, best
from rtxlib.errors import InputError
from rtxstudy.comparisons import compare, correct, require_same_seeds
from rtxstudy.finished import Runs
from rtxstudy.statistics import by_cluster, error_of_share, lowest_start, mean_difference, mean_squares

ARMS = ("deep", "shallow", "loop")


class Kept(NamedTuple):
    """L / D with its 95 % interval; all are NaN where depth does not pay."""

    share: float
    low: float
    high: float


def depth_gain(
    deep: Runs, shallow: Runs, loop: Runs, sentences: np.ndarray | None = None, among: np.ndarray | None = None
) -> dict[str, Any]:
    """D, L and L / D of one task, as a row of a table. The three arms have the same seeds.

    Args:
        sentences: (texts,) number of the sentence that decides the label of each test text. Texts of one sentence are then a
            cluster (:func:`rtxstudy.statistics.by_cluster`), and the intervals cover new sentences. None: each text
            stands for itself.
        among: (texts,) booleans, the test texts to take; None: all

    Columns: ``data``; ``deep``, ``shallow`` and ``loop`` (mean accuracies); ``depth_gain`` with ``depth_low`` and ``depth_high``,
    ``loop_gain`` with ``loop_low`` and ``loop_high``, and ``sharing_gain`` (loop − deep, so what sharing costs if it is below
    zero) with ``sharing_low`` and ``sharing_high`` (0.01 = one percentage point, intervals over new seeds and new texts, see
    :func:`rtxstudy.statistics.mean_difference`); ``depth_p``, ``loop_p`` and ``sharing_p``, the p-values of the three;
    ``depth_low_without``, ``loop_low_without`` and ``sharing_low_without``, the lowest start of each interval over all ways to
    leave one seed out, NaN for fewer than three seeds; ``depth_square_seeds``, ``depth_square_items``,
    ``depth_square_residual`` and so on, the mean squares (:func:`rtxstudy.statistics.mean_squares`);
    ``kept`` with ``kept_low`` and ``kept_high`` (:func:`kept`); ``n_seeds``, ``n_items`` (texts); ``deep_parameters``,
    ``shallow_parameters``, ``loop_parameters``, without the embedding matrix, and ``deep_with_table`` … with it.

    Raises InputError when the arms differ in their seeds or in their test texts.
    """
    arms = dict(zip(ARMS, (deep, shallow, loop), strict=True))
    for arm in (deep, loop):
        require_same_seeds(arm, shallow)
    right = correct(deep + shallow + loop).astype(float).reshape(3, len(shallow), -1)  # (arms, seeds, texts)
    if among is not None:
        right, sentences = right[..., among], sentences if sentences is None else sentences[among]
    of_depth, of_loop = right[0] - right[1], right[2] - right[1]
    if sentences is not None:
        of_depth, of_loop = by_cluster(of_depth, sentences), by_cluster(of_loop, sentences)
    ratio, row = kept(of_loop, of_depth), {"data": shallow[0].metrics["data"]}
    for name, d in (("depth", of_depth), ("loop", of_loop), ("sharing", of_loop - of_depth)):
        gain = mean_difference(d)
        row |= {f"{name}_gain": gain.difference, f"{name}_low": gain.low, f"{name}_high": gain.high, f"{name}_p": gain.p}
        row[f"{name}_low_without"] = lowest_start(d)
        row |= {f"{name}_square_{of}": square for of, square in mean_squares(d)._asdict().items()}
    return {
        **row,
        "kept": ratio.share,
        "kept_low": ratio.low,
        "kept_high": ratio.high,
        **{name: float(part.mean()) for name, part in zip(arms, right, strict=True)},
        **{f"{name}_parameters": int(arm[0].metrics["non_embedding_parameters"]) for name, arm in arms.items()},
        **{f"{name}_with_table": int(arm[0].metrics["parameters"]) for name, arm in arms.items()},
        "n_seeds": len(shallow),
        "n_items": right.shape[-1],
    }


def beside_words(
    deep: Runs, shallow: Runs, loop: Runs, counting: pd.DataFrame, sentences: np.ndarray | None = None
) -> dict[str, Any]:
    """Each encoder minus counting words, paired by text: further columns of a row of :func:`depth_gain`.

    Args:
        counting: of :func:`rtx.baselines.counting_words.counting_words` on the same data
        sentences: as in :func:`depth_gain`

    Columns: ``words``, the accuracy of TF-IDF with logistic regression; ``baseline`` and ``baseline_accuracy``, the baseline with
    the best validation accuracy; and for each of ``deep``, ``shallow`` and ``loop`` the differences ``deep_words_gain``,
    ``deep_words_low``, ``deep_words_high`` to the first and ``deep_baseline_…`` to the second. A baseline's one fit is paired
    with every seed.
    """
    fits = {"words": counting[counting["model"] == NAME].iloc[0], "baseline": best(counting)}
    row = {"words": fits["words"]["accuracy"], "baseline": fits["baseline"]["model"]}
    row["baseline_accuracy"] = fits["baseline"]["accuracy"]
    for arm, runs in zip(ARMS, (deep, shallow, loop), strict=True):
        right = correct(runs).astype(float)
        for name, fit in fits.items():
            d = right - np.asarray(fit["correct"], dtype=float)
            gain = mean_difference(d if sentences is None else by_cluster(d, sentences))
            row |= {f"{arm}_{name}_gain": gain.difference, f"{arm}_{name}_low": gain.low, f"{arm}_{name}_high": gain.high}
    return row


def learned(arms: Sequence[Runs]) -> bool:
    """Whether at least one arm is shown to be more accurate than the best constant answer, over new seeds and new texts.

    That is the most frequent label of the test texts. It may be another one than that of the training texts, which are balanced.
    """
    labels = arms[0][:1].part("predictions").sort_values("row")["label"]
    constant = (labels == labels.mode()[0]).to_numpy(dtype=float)
    return any(mean_difference(correct(arm) - constant).low > 0 for arm in arms)


def conversions(runs: Runs, texts: int) -> pd.DataFrame:
    """What ways to make a loop reach on the same validation texts with one seed each, and which one the study takes.

    texts: the number of validation texts. The rule is that of one standard error (Breiman et al. 1984): of all ways that come
    within one standard error of the best validation accuracy, the one with the fewest parameters; of equals the more accurate.

    Columns: ``layers``, ``passes``, ``start``, ``beside`` (what else distinguishes it, or ""), ``val_accuracy``, ``val_loss``
    (nats), ``non_embedding_parameters``, ``texts``, ``standard_error`` (of the best accuracy), and ``taken``.
    """
    usual = ("layers", "passes", "start")
    names = {"rank": "rank {}", "pass_norms": "norms of its own for each pass", "edges": "between two edges"}
    rows = []
    for run, spec in zip(runs, runs.specs, strict=True):
        others = (names[name].format(value) for name, value in spec.conversion.items() if name not in usual)
        columns = ("val_accuracy", "val_loss", "non_embedding_parameters")
        row = {name: spec.conversion[name] for name in usual} | {"beside": ", ".join(others)}
        rows.append(row | {name: run.metrics[name] for name in columns} | {"texts": texts})
    table = pd.DataFrame(rows)
    best = table["val_accuracy"].max()
    error = float(error_of_share(best, texts))
    near = table[table["val_accuracy"] >= best - error]
    choice = near.sort_values(["non_embedding_parameters", "val_accuracy"], ascending=[True, False]).index[0]
    return table.assign(standard_error=error, taken=table.index == choice)


def arms(deep: Runs, shallow: Runs, loop: Runs) -> pd.DataFrame:
    """What the three arms of one task reach and cost, one row each.

    Columns: ``data``, ``arm``, ``model``; ``accuracy`` and ``sd``, mean and standard deviation over seeds; ``matthews``, the mean
    correlation of Matthews (1975), which is 0 for any guess that does not look at the text; ``non_embedding_parameters``,
    ``parameters`` and ``forward_flops`` of a text; ``dtype``, the number formats of the trainings; and ``n_seeds``.
    """
    rows = []
    for name, arm in zip(ARMS, (deep, shallow, loop), strict=True):
        table = arm.table
        guesses = arm.part("predictions").groupby("key")
        rows.append(
            {
                "data": table["data"].iloc[0],
                "arm": name,
                "model": arm.model,
                "accuracy": table["accuracy"].mean(),
                "sd": table["accuracy"].std(),
                "matthews": np.mean([matthews_corrcoef(part["label"], part["prediction"]) for _, part in guesses]),
                **{cost: table[cost].iloc[0] for cost in ("non_embedding_parameters", "parameters", "forward_flops")},
                "dtype": ", ".join(sorted(set(table["dtype"]))),
                "n_seeds": len(arm),
            }
        )
    return pd.DataFrame(rows)


def pretrainings(deep: Runs, shallow: Runs, loop: Runs) -> pd.DataFrame:
    """What the pretrainings of three arms read, reached and cost, one row each.

    All seeds of an arm share one pretraining. The sizes are those of the fine-tuned encoder with its head for labels. Columns:
    ``arm``, ``model``, ``parameters``, ``non_embedding_parameters``, and those of :func:`rtxlib.runs.pretraining.reached`.
    """
    arms = zip(ARMS, (deep.table, shallow.table, loop.table), strict=True)
    columns = ["model", "parameters", "non_embedding_parameters"]
    of_pretraining = [name for name in shallow.table if name.startswith("pretraining_")]
    rows = [table[columns + of_pretraining].iloc[:1].assign(arm=arm) for arm, table in arms]
    return pd.concat(rows, ignore_index=True)


def own_text_gains(
    arms: Mapping[tuple[str, str], Sequence[Runs]], own_text: str, nothing: str, conversion: str
) -> pd.DataFrame:
    """What a pretraining on the study's own texts gains: rows of :func:`rtxstudy.comparisons.compare`.

    Args:
        arms: (regime, data) → the deep, the shallow and the looped encoder; what is missing is left out
        own_text, nothing, conversion: the regimes of these encoders, of the same ones from random weights, and of those that
            others have pretrained. With the last, only the deep encoder is compared.

    Further columns: ``arm``, ``accuracy`` (its mean), ``against`` (the regime of the other encoder), and ``learned``: whether
    :func:`learned` holds of both sides.
    """
    rows = []
    for (regime, data), trio in arms.items():
        if regime == own_text:
            for against, names in ((nothing, ARMS), (conversion, ARMS[:1])):
                others = arms.get((against, data), ())
                both = bool(others) and learned(trio) and learned(others)
                for name, runs, other in zip(names, trio, others, strict=False):
                    named = {"arm": name, "accuracy": float(correct(runs).mean()), "against": against, "learned": both}
                    rows.append(named | compare(runs, other))
    return pd.DataFrame(rows)


def kept(of_loop: np.ndarray, of_depth: np.ndarray) -> Kept:
    """L / D with the interval of Fieller (1954), from paired differences (seeds, items) to the shallow arm.

    A share θ lies in the interval if the interval of the mean of ``of_loop − θ·of_depth`` contains zero. L and D share the
    shallow arm, and their covariance is a part of that difference. The interval is bounded, because that of D lies above zero.

    Raises InputError when the shapes differ.
    """
    if of_loop.shape != of_depth.shape:
        raise InputError(f"The gains of loop and depth need the same seeds × items, not {of_loop.shape} and {of_depth.shape}.")
    depth = mean_difference(of_depth)
    if not depth.low > 0:
        return Kept(np.nan, np.nan, np.nan)
    share = float(of_loop.mean()) / depth.difference

    def beyond(theta: float) -> float:
        """Above zero where θ lies outside the interval."""
        gap = mean_difference(of_loop - theta * of_depth)
        return max(gap.low, -gap.high)

    return Kept(share, *(_end(beyond, share, direction) for direction in (-1, 1)))


def _end(beyond: Callable[[float], float], start: float, direction: int) -> float:
    """The value nearest to ``start`` in this direction at which ``beyond`` rises above zero."""
    if beyond(start) > -1e-12:  # nothing varies
        return start
    step = 0.1
    while beyond(start + direction * step) <= 0:
        step *= 2
    return float(brentq(beyond, *sorted((start, start + direction * step)), xtol=1e-6))
