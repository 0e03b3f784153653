"""What the loop does, of finished runs: measured once and kept beside each run, so that figures need no weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from rtxlib.data.batching import Tokens, batches, collate
from rtxlib.data.prepared import Prepared
from rtxlib.models.early_exit import CRITERIA, EarlyExit
from rtxlib.models.heads import EncoderForSequenceClassification
from rtxlib.runs import store
from rtxlib.runs.cost import Batch, inputs
from rtxlib.runs.spec import RunSpec
from rtxlib.runs.store import Run
from rtxlib.runs.train import fresh_model
from rtxlib.training.device import autocast, device_name, pick_device, pick_precision
from rtxlib.training.predict import EVALUATION_TOKENS
from rtxstudy.evaluation import exits
from rtxstudy.evaluation import gradients as dynamics
from rtxstudy.evaluation.states import states_by_pass
from rtxstudy.evaluation.statistics import paired_difference

GRADIENT_ROWS = 512  # training texts that gradients are measured on
FURTHEST = 12  # passes that a shared block is followed for
TOLERANCE = 0.005  # share of validation labels that leaving early may change
TIMED = {  # thresholds that are timed beside the calibrated ones: enough for a curve
    "confidence": (0.6, 0.75, 0.9),
    "change": (0.2, 0.5, 0.8),  # quantiles of the validation scores
}
TIMED_TEXTS = 400  # at most, spread over the test texts; labels are those of all


def _named(run: Run, table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(key=run.key, **{column: run.metrics[column] for column in ("model", "seed", "data")})


def _beside(
    run: Run, name: str, results: Path | None, measure: Callable[[EncoderForSequenceClassification], pd.DataFrame]
) -> pd.DataFrame:
    """The table ``name`` of a run: the one kept beside it, else what ``measure`` makes of its model, kept from now on.

    The constants above are in no run's key: whoever changes one deletes the tables that were measured with it.
    """
    if run.path is None or (run.path / f"{name}.parquet").is_file():
        return store.part(run, name, results)
    table = _named(run, measure(EncoderForSequenceClassification.from_pretrained(run.path).eval()))
    store.write_table(run.path / f"{name}.parquet", table)
    return table


def _batches(tokens: Tokens, pad_id: int, rows: np.ndarray | None = None) -> tuple[list[Batch], np.ndarray]:
    """Batches of like length, and the rows in the order in which they stand in them."""
    rows = np.arange(len(tokens)) if rows is None else rows
    pieces = [rows[part] for part in batches(tokens.lengths[rows], EVALUATION_TOKENS, None, seed=None, epoch=0)]
    return [collate(tokens, piece, pad_id) for piece in pieces], np.concatenate(pieces)


def _training_sample(data: Prepared) -> list[Batch]:
    training = data.splits["train"]
    rows = np.sort(np.random.default_rng(0).permutation(len(training))[:GRADIENT_ROWS])
    return _batches(training, data.tokenizer.pad_token_id, rows)[0]


def gradients(run: Run, data: Prepared, results: Path | None = None) -> pd.DataFrame:
    """How much each pass contributes to the gradient of a trained run's block: :func:`dynamics.gradients_by_pass`.

    Like every table here it also names its run: key, model, seed, data.
    """
    return _beside(
        run, "gradients", results, lambda model: dynamics.gradients_by_pass(model, _training_sample(data))
    )


def parameter_gradients(run: Run, data: Prepared, results: Path | None = None) -> pd.DataFrame:
    """The same for each parameter by itself: :func:`dynamics.gradients_by_parameter`."""
    return _beside(
        run,
        "parameter_gradients",
        results,
        lambda model: dynamics.gradients_by_parameter(model, _training_sample(data)),
    )


def state_gradients(spec: RunSpec, run: Run, data: Prepared, results: Path | None = None) -> pd.DataFrame:
    """What of the gradient reaches the state after each pass, before training (``weights`` "initial") and after ("trained").

    See :func:`dynamics.gradients_of_states`.
    """

    def measure(model: EncoderForSequenceClassification) -> pd.DataFrame:
        sample = _training_sample(data)
        each = {"initial": fresh_model(spec, data), "trained": model}
        tables = [dynamics.gradients_of_states(of, sample).assign(weights=name) for name, of in each.items()]
        return pd.concat(tables, ignore_index=True)

    return _beside(run, "state_gradients", results, measure)


def states(spec: RunSpec, run: Run, data: Prepared, results: Path | None = None) -> pd.DataFrame:
    """The state after each pass on the test texts, before training (``weights`` "initial") and after ("trained").

    A shared block is passed :data:`FURTHEST` times, further than it was trained for. See :func:`states_by_pass`.
    """

    def measure(model: EncoderForSequenceClassification) -> pd.DataFrame:
        texts, _ = _batches(data.splits["test"], data.tokenizer.pad_token_id)
        depth = FURTHEST if model.config.block_sharing == "shared" else model.config.recurrent_depth
        untrained = fresh_model(spec, data)
        each = {
            "initial": states_by_pass(untrained, texts, depth),
            "trained": states_by_pass(model, texts, depth),
        }
        return pd.concat([table.assign(weights=name) for name, table in each.items()], ignore_index=True)

    return _beside(run, "states", results, measure)


def early_exits(run: Run, data: Prepared, results: Path | None = None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What leaving early costs and saves on the test texts: the ways to run a model, and the labels each gives.

    The first table has one row a way: ``criterion`` ("fixed": the same number of passes for all texts), ``setting`` (that
    number, or the threshold), ``chosen`` (the threshold calibrated on validation texts, for a change of at most
    :data:`TOLERANCE` of their labels), mean ``passes``, ``accuracy``, ``ms_per_text`` (all ways timed in turns), ``device``.
    The second one row a text: ``row``, ``label``, ``fixed``, the label after R passes, and for each criterion the label
    ``<criterion>`` at the chosen threshold and ``passes_<criterion>``.
    """

    def measure(model: EncoderForSequenceClassification) -> pd.DataFrame:
        ways, predictions = _ways(run, model, data)
        # before the table of ways, which says that all was measured
        store.write_table(run.path / "exit_predictions.parquet", _named(run, predictions))
        return ways

    return _beside(run, "exits", results, measure), store.part(run, "exit_predictions", results)


def _ways(run: Run, model: EncoderForSequenceClassification, data: Prepared) -> tuple[pd.DataFrame, pd.DataFrame]:
    device, pad = pick_device(), data.tokenizer.pad_token_id
    precision = pick_precision(run.spec["recipe"]["precision"], device)
    model.to(device)
    test, order = _batches(data.splits["test"], pad)
    labels, depth = data.splits["test"].labels[order], model.config.recurrent_depth
    with autocast(precision, device):
        validated = exits.decode_passes(model, _batches(data.splits["validation"], pad)[0])
        ways = [("fixed", passes, False) for passes in range(1, depth + 1)]
        for criterion in CRITERIA:
            scores = validated.scores[criterion]
            calibrated = exits.calibrate(scores, validated.predictions, TOLERANCE)
            timed = {
                "confidence": TIMED["confidence"],
                "agreement": np.arange(1, depth) / depth,
                "change": np.unique(np.quantile(scores[:, :-1], TIMED["change"])),
            }[criterion]
            ways += [(criterion, float(threshold), False) for threshold in timed] + [(criterion, calibrated, True)]
        given = [
            {"recurrent_depth": setting} if criterion == "fixed" else {"early_exit": EarlyExit(criterion, setting)}
            for criterion, setting, _ in ways
        ]
        test = [inputs(batch, device) for batch in test]
        outcomes = [exits.outcome(model, test, way) for way in given]
        spread = np.linspace(0, len(order) - 1, min(TIMED_TEXTS, len(order))).astype(int)
        some = [inputs(batch, device) for batch in _batches(data.splits["test"], pad, spread)[0]]
        taken = exits.milliseconds(model, some, given)
    table, predictions = [], pd.DataFrame({"row": order, "label": labels})
    for (criterion, setting, chosen), (found, passes), ms in zip(ways, outcomes, taken, strict=True):
        table.append((criterion, setting, chosen, passes.mean(), (found == labels).mean(), ms))
        if chosen:
            predictions[criterion], predictions[f"passes_{criterion}"] = found, passes
        elif criterion == "fixed" and setting == depth:
            predictions["fixed"] = found
    columns = ["criterion", "setting", "chosen", "passes", "accuracy", "ms_per_text"]
    ways_table = pd.DataFrame(table, columns=columns).assign(device=f"{device_name(device)}, {precision}")
    return ways_table, predictions.sort_values("row", ignore_index=True)


def exit_differences(ways: pd.DataFrame, predictions: pd.DataFrame) -> pd.DataFrame:
    """Each calibrated exit against all passes: one row a model and criterion, over its seeds.

    Tables as :func:`early_exits` gives them, of several runs. Columns: model, data, criterion, ``throughput`` (texts a second
    over those with all passes in the same rounds, mean over seeds, and ``throughput_least``), ``passes``, and the paired
    ``difference`` of accuracies with low, high, p, n_seeds, n_items. Then what it must be worth its while against:
    ``fixed_passes``, the fewest passes for every text that are on average no less accurate than the exit (missing where
    none are), with ``fixed_throughput`` and ``fixed_difference`` against all passes. That number is read off the test texts
    themselves, which flatters it, where thresholds come from validation texts.
    """
    rows = []
    for (data, model), own in predictions.groupby(["data", "model"], sort=False):
        of_seed = [part.sort_values("row") for _, part in own.groupby("seed")]
        timed = ways[(ways["data"] == data) & (ways["model"] == model)]
        fixed = timed[timed["criterion"] == "fixed"]
        full = fixed.sort_values("setting").groupby("seed")["ms_per_text"].last()
        accuracy = fixed.groupby("setting")["accuracy"].mean()
        for criterion in CRITERIA:
            right = [np.stack([part["label"] == part[way] for part in of_seed]) for way in (criterion, "fixed")]
            chosen = timed[timed["chosen"] & (timed["criterion"] == criterion)].set_index("seed")
            faster = full / chosen["ms_per_text"]
            as_good = accuracy.index[accuracy >= chosen["accuracy"].mean()]
            fewest = as_good.min()  # NaN where there are none
            fewest_took = fixed[fixed["setting"] == fewest].set_index("seed")["ms_per_text"]
            rows.append(
                {
                    "model": model,
                    "data": data,
                    "criterion": criterion,
                    "throughput": faster.mean(),
                    "throughput_least": faster.min(),
                    "passes": chosen["passes"].mean(),
                    **paired_difference(*right)._asdict(),
                    "fixed_passes": fewest,
                    "fixed_throughput": (full / fewest_took).mean(),
                    "fixed_difference": accuracy.get(fewest, np.nan) - accuracy.iloc[-1],
                }
            )
    return pd.DataFrame(rows)


def by_composition(runs: Sequence[Run], data: Prepared, results: Path | None = None) -> pd.DataFrame:
    """Accuracy of runs on the embedded test texts, by the operators that a text's verdict is composed of.

    Columns: model, seed, layers, iterations, depth (0, 1, …), accuracy, n (texts).
    """
    composed = data.rows("test")["depth"]
    parts = []
    for run in runs:
        found = store.part(run, "predictions", results).sort_values("row")
        right = (found["label"] == found["prediction"]).groupby(composed.to_numpy()[found["row"]])
        part = right.agg(accuracy="mean", n="size").rename_axis("depth").reset_index()
        m = run.metrics
        parts.append(
            part.assign(
                model=m["model"], seed=m["seed"], layers=m["num_hidden_layers"], iterations=m["recurrent_depth"]
            )
        )
    return pd.concat(parts, ignore_index=True)


def errors(runs: Sequence[Run]) -> pd.DataFrame:
    """What :func:`rtxstudy.evaluation.worth.worth_of_passes` reads: model, data, layers, iterations, seed, error."""
    table = store.runs_table(runs).rename(columns={"num_hidden_layers": "layers", "recurrent_depth": "iterations"})
    return table.assign(error=1 - table["accuracy"])[["model", "data", "layers", "iterations", "seed", "error"]]
