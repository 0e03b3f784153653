"""How fast a training converges, and where it stops, read from the curves of finished runs."""

from __future__ import annotations

import pandas as pd

from rtxstudy import tables
from rtxstudy.finished import Runs, core_seconds
from rtxstudy.numbers import percent

NEAR = 0.01  # of accuracy; a run has converged where it comes this close to its best evaluation
ARM = ["data", "model", "recipe"]  # what the seeds of an arm have in common


def convergence(runs: Runs) -> pd.DataFrame:
    """How long each arm trains until its validation accuracy is within :data:`NEAR` of its best, one row per arm.

    The best is the highest validation accuracy at any evaluation of the same run, and the time is that of the first evaluation
    that comes so close to it. Evaluations are some steps apart, so this overstates the time by up to that distance. Columns:
    those of :data:`ARM`, ``best`` (accuracy), ``steps``, ``epochs`` and ``core_seconds`` (processor time, in proportion to the
    steps, of trainings on a CPU), the ``all_steps``, ``all_epochs`` and ``all_core_seconds`` of the whole training, all of them
    means over seeds, ``near``, ``evaluations`` (the most of a run) and ``n`` (seeds).
    """
    curves = runs.part("curves")
    rows = []
    for run in {run.key: run for run in runs}.values():
        curve = curves[curves["key"] == run.key].drop_duplicates("step").sort_values("step")
        best, last = curve["val_accuracy"].max(), curve.iloc[-1]
        reached = curve[curve["val_accuracy"] >= best - NEAR - 1e-9].iloc[0]
        cost = core_seconds(run)
        rows.append(
            {name: run.metrics[name] for name in ARM}
            | {"best": best, "steps": reached["step"], "epochs": reached["epoch"]}
            | {"core_seconds": cost * reached["step"] / last["step"], "all_steps": last["step"]}
            | {"all_epochs": last["epoch"], "all_core_seconds": cost, "evaluations": len(curve)}
        )
    arms = pd.DataFrame(rows).groupby(ARM, sort=False)
    table = arms.mean().assign(evaluations=arms["evaluations"].max(), near=NEAR, n=arms.size())
    return table.reset_index()


def stopping(runs: Runs) -> pd.DataFrame:
    """When each arm stopped, and which weights it kept, one row per arm.

    Columns: those of :data:`ARM`; ``planned`` (the most epochs of its recipe); ``patience`` (evaluations without a better loss
    after which it stops; missing: it never does); ``min_delta`` (nats by which a loss must fall to count as better); ``least``
    and ``most`` (epochs that its seeds were trained); ``early`` (seeds that stopped before the end); ``keep`` ("best" or "last"
    weights); ``kept`` (mean epoch of the weights that were kept); ``lowest_loss`` (mean epoch of the lowest validation loss); and
    ``n`` (seeds).
    """
    curves = runs.part("curves")
    rows = []
    for run, spec in {run.key: (run, spec) for run, spec in zip(runs, runs.specs, strict=True)}.values():
        trained, planned = run.metrics["epochs"], spec.recipe.epochs
        curve = curves[curves["key"] == run.key].sort_values("step")
        step = trained / curve["step"].iloc[-1]  # in epochs; the end of a training is rounded to a whole step
        rows.append(
            {name: run.metrics[name] for name in ARM}
            | {name: getattr(spec.recipe, name) for name in ("patience", "min_delta", "keep")}
            | {"planned": planned, "trained": trained}
            | {"early": trained < planned - step, "kept": run.metrics["best_epoch"]}
            | {"lowest_loss": curve.loc[curve["val_loss"].idxmin(), "epoch"]}
        )
    arms = pd.DataFrame(rows).astype({"patience": "float"}).groupby(ARM, sort=False)
    named = {name: (name, "first") for name in ("planned", "patience", "min_delta", "keep")}
    return arms.agg(
        **named,
        least=("trained", "min"),
        most=("trained", "max"),
        early=("early", "sum"),
        kept=("kept", "mean"),
        lowest_loss=("lowest_loss", "mean"),
        n=("kept", "size"),
    ).reset_index()


_COLUMNS = {  # column of rtxstudy.questions.accuracy.convergence.convergence → its readable name and its format
    "best": ("best validation accuracy", percent),
    "steps": ("steps until near it", "{:,.0f}"),
    "epochs": ("epochs", "{:.2f}"),
    "core_seconds": ("core-seconds", "{:,.0f}"),
    "all_steps": ("steps in all", "{:,.0f}"),
    "all_epochs": ("epochs in all", "{:.2f}"),
    "all_core_seconds": ("core-seconds in all", "{:,.0f}"),
    "n": ("seeds", "{:.0f}"),
}


def readable(table: pd.DataFrame) -> pd.DataFrame:
    """A readable table of how long each arm trains until it comes within a point of its best validation accuracy."""
    return tables.written(table[["data", "model", "recipe", *_COLUMNS]], _COLUMNS)
