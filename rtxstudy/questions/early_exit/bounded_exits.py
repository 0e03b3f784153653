"""Early exit whose risk is bounded, beside fixed numbers of passes: chosen on validation texts, judged on test texts.

The risk is the share of texts that full depth gets right and the exit gets wrong
(:mod:`rtxstudy.questions.early_exit.exit_risk`). Each threshold has its own bound; none covers several thresholds at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from rtxlib.models.early_exit import CRITERIA
from rtxstudy.comparisons import compare
from rtxstudy.finished import Runs
from rtxstudy.questions.early_exit import exit_risk
from rtxstudy.questions.early_exit.exits import Decoded, leave
from rtxstudy.statistics import paired_difference

RISK = 0.005  # the bound, and what a fixed number of passes may lose on validation texts
BOUNDS = {"controlled": exit_risk.controlled, "certified": exit_risk.certified}
# The bounds need thresholds that do not depend on the texts. They are denser near 1, where scores of a trained model lie.
THRESHOLDS = np.append(1 - np.logspace(0, -4, 400), 1.0)


_OF_PASSES = ("passes", "depth_sampling")  # arguments of rtxlib.models.convert.to_loop; the others say what the layers are


class Way(NamedTuple):
    """One way to run a model."""

    way: str  # its name: "fixed_2", "fixed", "confidence_controlled", …; the same for all seeds
    criterion: str  # "fixed", or one of CRITERIA
    bound: str  # one of BOUNDS; "validated": the fixed passes chosen on validation texts; "": fixed passes that nobody chose
    setting: float  # the number of passes, or the threshold


def ways(validated: Decoded, labels: np.ndarray) -> list[Way]:
    """Every fixed number of passes, the one chosen on validation texts, and the threshold of each criterion and bound.

    labels: (rows,) the true labels of the validation texts. The chosen number is the fewest passes whose accuracy is at most
    :data:`RISK` below that of all passes.
    """
    right = validated.predictions == labels[:, None]  # (rows, passes)
    accuracy = right.mean(axis=0)
    fewest = int(np.argmax(accuracy >= accuracy[-1] - RISK)) + 1
    options = [Way(f"fixed_{number}", "fixed", "", number) for number in range(1, len(accuracy) + 1)]
    options.append(Way("fixed", "fixed", "validated", fewest))
    for criterion in CRITERIA:
        losses = exit_risk.exit_losses(validated.scores[criterion], right, THRESHOLDS)
        for bound, rule in BOUNDS.items():
            options.append(Way(f"{criterion}_{bound}", criterion, bound, rule(losses, THRESHOLDS, RISK)))
    return options


def judged(options: list[Way], tested: Decoded, labels: np.ndarray) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What the ways do on test texts, from the results of every pass: a row per way, and a row per text.

    labels: (rows,) the true labels. The first table has ``way``, ``criterion``, ``bound``, ``setting``, mean ``passes``,
    ``accuracy`` and ``risk``; for exits also what :func:`exit_risk.check_bound` finds on the test texts: ``mean_risk``,
    ``share_above``, ``share_all_above``, ``mean_passes`` and ``splits``. The second has ``label`` and each way's label.
    """
    predictions, rows, table = tested.predictions, np.arange(len(labels)), []
    right, by_text = predictions == labels[:, None], {"label": labels}
    for way in options:
        if way.criterion == "fixed":
            depths, checked = np.full(len(rows), int(way.setting)), {}
        else:
            scores = tested.scores[way.criterion]
            depths = leave(scores, way.setting)
            checked = exit_risk.check_bound(scores, right, THRESHOLDS, way.bound, RISK)._asdict()
        exit_right = right[rows, depths - 1]
        reached = {"passes": depths.mean(), "accuracy": exit_right.mean(), "risk": (right[:, -1] & ~exit_right).mean()}
        table.append(way._asdict() | reached | checked)
        by_text[way.way] = predictions[rows, depths - 1]
    return pd.DataFrame(table), pd.DataFrame(by_text)


def against_all_passes(table: pd.DataFrame, predictions: pd.DataFrame) -> pd.DataFrame:
    """Each way compared with all passes: one row per data set, model and way, over its seeds.

    table, predictions: the two tables of :func:`rtxstudy.measured.bounded_exits`, of several runs. Columns:

    - ``data``, ``model``, ``way``, ``criterion``, ``bound``; ``most``, R; ``at_most``, :data:`RISK`; ``chance``, with which a
      certified threshold may exceed it;
    - means over seeds of ``passes``, ``accuracy``, ``risk``, ``ms_per_text``, ``mean_risk``, ``share_above``,
      ``share_all_above`` and ``splits``;
    - ``throughput``: texts per second relative to all passes in the same rounds, mean over seeds; ``throughput_least``: of the
      slowest seed; ``beside_fixed``: relative to the fixed passes chosen on validation texts;
    - ``difference``, ``low``, ``high``, ``p``, ``n_seeds``, ``n_items``: the accuracy minus that of all passes, paired by seed
      and text (:func:`rtxstudy.statistics.paired_difference`).
    """
    means = ["passes", "accuracy", "risk", "ms_per_text", "mean_risk", "share_above", "share_all_above", "splits"]
    rows = []
    for (data, model), of_model in table.groupby(["data", "model"], sort=False):
        texts = predictions[(predictions["data"] == data) & (predictions["model"] == model)]
        by_seed = {seed: part.sort_values("row") for seed, part in texts.groupby("seed")}
        most = int(of_model.loc[of_model["bound"] == "", "setting"].max())
        took = {way: part.set_index("seed")["ms_per_text"] for way, part in of_model.groupby("way")}

        def right(way: str, by_seed: dict[int, pd.DataFrame] = by_seed) -> np.ndarray:
            return np.stack([part["label"] == part[way] for part in by_seed.values()])

        for way, runs in of_model.groupby("way", sort=False):
            throughput = took[f"fixed_{most}"] / took[way]
            rows.append(
                {
                    **{"data": data, "model": model, "way": way},
                    **{name: runs[name].iloc[0] for name in ("criterion", "bound")},
                    **{"most": most, "at_most": RISK, "chance": exit_risk.CHANCE},
                    **runs[means].mean(),
                    "throughput": throughput.mean(),
                    "throughput_least": throughput.min(),
                    "beside_fixed": (took["fixed"] / took[way]).mean(),
                    **paired_difference(right(way), right(f"fixed_{most}"))._asdict(),
                }
            )
    return pd.DataFrame(rows)


def beside_plain_loop(leaving: Runs, loops: Sequence[Runs]) -> pd.DataFrame:
    """The encoders that texts may leave, at full depth, beside the loop of the same layers that has a fixed number of passes.

    leaving: runs of one or more data sets. loops: arms; those of other data or layers, and those with a teacher, are left out.
    One row per data set and loop: ``accuracy``, ``passes`` and ``epochs`` of the first, the same with ``plain_`` of the loop, and
    the columns of :func:`rtxstudy.comparisons.compare` (first minus loop, over the seeds that both have).
    """
    rows = []
    for loop in loops:
        arm = leaving.where(data=loop[0].metrics["data"]) if len(loop) else loop
        if not len(arm) or _layers(arm) != _layers(loop) or loop.specs[0].teacher is not None:
            continue
        seeds = range(min(len(arm), len(loop)))
        first, plain = (runs.where(seed=seeds) for runs in (arm, loop))
        rows.append(
            compare(first, plain) | _trained(first) | {f"plain_{name}": value for name, value in _trained(plain).items()}
        )
    return pd.DataFrame(rows)


def _layers(runs: Runs) -> dict[str, Any]:
    """Which layers of the pretrained encoder a loop is made of: its conversion without what says how often they are passed."""
    return {name: value for name, value in runs.specs[0].conversion.items() if name not in _OF_PASSES}


def _trained(runs: Runs) -> dict[str, float]:
    spec = runs.specs[0]
    return {
        "accuracy": float(runs.table["accuracy"].mean()),
        "passes": spec.conversion["passes"],
        "epochs": spec.recipe.epochs,
    }
