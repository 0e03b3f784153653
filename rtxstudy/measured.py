"""Tables measured once from a run's weights and kept beside the run, so that figures do not need the weights.

For a run that is known only from the committed tables (its ``path`` is None), the stored table is returned; ``data`` is then
not used and may be None. Every table also names its run: key, model, seed, data. In stored tables the column ``iteration`` is
the number of a pass and ``iterations`` the number of passes. Both names are part of the stored format; everything else says
*pass*.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from rtx.latency import EVALUATION_TOKENS, Batch, inputs
from rtxlib import paths
from rtxlib.data.batching import Tokens, batches, collate
from rtxlib.data.compose import MOST_STEPS
from rtxlib.data.prepare import Prepared, prepare
from rtxlib.errors import InputError
from rtxlib.models.early_exit import CRITERIA
from rtxlib.models.heads import EncoderForSequenceClassification
from rtxlib.runs.spec import RunSpec
from rtxlib.runs.store import Run
from rtxlib.runs.train import fresh_model
from rtxlib.training.device import autocast, device_name, pick_device, pick_precision, training_threads
from rtxstudy.questions.early_exit import bounded_exits as bounded
from rtxstudy.questions.early_exit import exits
from rtxstudy.questions.gradients.gradients import gradients_by_parameter, gradients_by_pass, gradients_of_states
from rtxstudy.questions.passes.states import states_by_pass
from rtxstudy.run_tables import keep, measured_once, named

# These constants are not in the key. If you change one, delete the tables.
GRADIENT_ROWS = 512  # training texts on which gradients are measured
FURTHEST = 12  # passes for which a shared block is followed
FURTHER_ROWS = 18_000  # composed rows of which the test split is measured with more steps and passes than in training
TOLERANCE = 0.005  # share of validation labels that early exit may change
CONFIDENCES = (0.6, 0.75, 0.9)  # thresholds of "confidence" that are measured beside the calibrated one, for a curve
CHANGES = (0.2, 0.5, 0.8)  # thresholds of "change" for a curve, as quantiles of the validation scores
TIMED_TEXTS = 400  # most test texts that are timed; accuracy is measured on all test texts
BATCH, BATCHES = 32, 16  # texts of a batch, and most batches, with which exits of bounded risk are timed
THREADS = 2  # CPU threads with which they are timed


# ---------------------------------------- gradients and states


def gradients(run: Run, data: Prepared | None, results: Path | None = None) -> pd.DataFrame:
    """How much each pass contributes to the gradient of a trained run's block: :func:`gradients_by_pass`."""
    return measured_once(run, "gradients", results, lambda model: gradients_by_pass(model, _training_sample(data)))


def parameter_gradients(run: Run, data: Prepared | None, results: Path | None = None) -> pd.DataFrame:
    """The gradient of each parameter of a trained run, by pass: :func:`gradients_by_parameter`."""
    return measured_once(
        run, "parameter_gradients", results, lambda model: gradients_by_parameter(model, _training_sample(data))
    )


def state_gradients(run: Run, data: Prepared | None, results: Path | None = None) -> pd.DataFrame:
    """How much of the gradient reaches the state after each pass, before training (``weights`` "initial") and after ("trained").

    See :func:`gradients_of_states`.
    """

    def measure(model: EncoderForSequenceClassification) -> pd.DataFrame:
        sample = _training_sample(data)
        return _before_and_after(run, model, data, lambda either: gradients_of_states(either, sample))

    return measured_once(run, "state_gradients", results, measure)


def states(run: Run, data: Prepared | None, results: Path | None = None) -> pd.DataFrame:
    """The state after each pass on the test texts, before training (``weights`` "initial") and after ("trained").

    A shared block is passed :data:`FURTHEST` times, which is further than in training. See :func:`states_by_pass`.
    """

    def measure(model: EncoderForSequenceClassification) -> pd.DataFrame:
        texts, _ = _batches(data.splits["test"], data.tokenizer.pad_token_id)
        passes = FURTHEST if model.config.block_sharing == "shared" else model.config.recurrent_depth
        return _before_and_after(run, model, data, lambda either: states_by_pass(either, texts, passes))

    return measured_once(run, "states", results, measure)


# ---------------------------------------- more steps and more passes than in training


def further_passes(run: Run, data: Prepared | None, results: Path | None = None) -> pd.DataFrame:
    """Whether a shared block labels composed texts correctly after each of :data:`FURTHEST` passes: one row per text and pass.

    The texts are composed of the phrases of the test split, as those of ``data`` are, and ask for up to ``MOST_STEPS`` steps.
    Columns: ``row``, ``depth`` (steps), ``sentence`` (that decides the text), ``iteration`` (the pass), ``right``, and
    ``trained_steps`` and ``trained_passes``, the most steps and passes of the training.

    Raises InputError when the texts cannot be prepared with the run's tokenizer.
    """

    def measure(model: EncoderForSequenceClassification) -> pd.DataFrame:
        longer = dataclasses.replace(
            data.spec, depth=MOST_STEPS, rows=min(data.spec.rows or FURTHER_ROWS, FURTHER_ROWS)
        )
        texts = prepare(longer, paths.prepared_dir(), progress=False)
        if texts.tokenizer.get_vocab() != data.tokenizer.get_vocab():
            raise InputError(
                "The texts of more steps have another tokenizer than the run; name a tokenizer in the data."
            )
        device = pick_device()
        test_batches, order = _batches(texts.splits["test"], texts.tokenizer.pad_token_id)
        with autocast(pick_precision(run.spec["recipe"]["precision"], device), device):
            predicted = exits.decode_passes(model.to(device), test_batches, FURTHEST).predictions  # (texts, passes)
        right = predicted == texts.splits["test"].labels[order][:, None]
        most = {"trained_steps": data.spec.depth, "trained_passes": model.config.recurrent_depth}
        about = texts.rows("test")[["depth", "sentence"]].iloc[order].assign(**most)
        parts = [
            about.assign(row=order, iteration=number, right=right[:, number - 1]) for number in range(1, FURTHEST + 1)
        ]
        return pd.concat(parts).sort_values(["iteration", "row"], ignore_index=True)

    return measured_once(run, "further_passes", results, measure)


# ---------------------------------------- early exit


def early_exits(run: Run, data: Prepared | None, results: Path | None = None) -> pd.DataFrame:
    """Accuracy and time of early exit on the test texts: one row per way to run the model.

    - ``criterion``: a criterion of early exit, or "fixed" for the same number of passes for all texts;
    - ``setting``: the threshold, or the number of passes;
    - ``chosen``: whether the threshold is the calibrated one. It may change at most :data:`TOLERANCE` of the labels of the
      validation texts;
    - ``passes`` (mean), ``accuracy``, ``ms_per_text`` (all ways timed in turns), ``device``.

    The run also keeps the table "exit_predictions" with one row per text:

    - ``row``, ``label``;
    - ``fixed``: the label after R passes;
    - ``<criterion>``: the label at the chosen threshold of this criterion;
    - ``passes_<criterion>``: the number of passes at that threshold.
    """

    def measure(model: EncoderForSequenceClassification) -> pd.DataFrame:
        ways, predictions = _measure_exits(run, model, data)
        # measured_once writes the table of ways afterwards. It marks both tables as complete, so the labels are written first.
        keep(run, "exit_predictions", named(run, predictions))
        return ways

    return measured_once(run, "exits", results, measure)


class _Way(NamedTuple):
    """One way to run a model."""

    criterion: str  # "fixed", or one of CRITERIA
    setting: float  # the number of passes, or the threshold
    chosen: bool = False  # whether the threshold is the calibrated one


def _measure_exits(
    run: Run, model: EncoderForSequenceClassification, data: Prepared
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The two tables of :func:`early_exits`, without the run's name."""
    device = pick_device()
    precision = pick_precision(run.spec["recipe"]["precision"], device)
    model.to(device)
    pad, passes = data.tokenizer.pad_token_id, model.config.recurrent_depth
    validation, _ = _batches(data.splits["validation"], pad)
    test, order = _batches(data.splits["test"], pad)
    spread = np.linspace(0, len(order) - 1, min(TIMED_TEXTS, len(order))).astype(int)
    timed, _ = _batches(data.splits["test"], pad, spread)
    with autocast(precision, device):
        ways = _ways(exits.decode_passes(model, validation), passes)
        arguments = [exits.arguments(way.criterion, way.setting) for way in ways]
        test = [inputs(batch, device) for batch in test]
        outcomes = [exits.outcome(model, test, each) for each in arguments]
        milliseconds = exits.milliseconds(model, [inputs(batch, device) for batch in timed], arguments)

    labels = data.splits["test"].labels[order]
    rows, predictions = [], pd.DataFrame({"row": order, "label": labels})
    for way, (answers, depths), ms in zip(ways, outcomes, milliseconds, strict=True):
        rows.append((*way, depths.mean(), (answers == labels).mean(), ms))
        if way.chosen:
            predictions[way.criterion], predictions[f"passes_{way.criterion}"] = answers, depths
        elif way == _Way("fixed", passes):
            predictions["fixed"] = answers
    columns = ["criterion", "setting", "chosen", "passes", "accuracy", "ms_per_text"]
    table = pd.DataFrame(rows, columns=columns).assign(device=f"{device_name(device)}, {precision}")
    return table, predictions.sort_values("row", ignore_index=True)


def _ways(validated: exits.Decoded, passes: int) -> list[_Way]:
    """Every fixed number of passes; for each criterion, a few thresholds for a curve and the calibrated threshold."""
    thresholds = {
        "confidence": CONFIDENCES,
        "agreement": np.arange(1, passes) / passes,
        "change": np.unique(np.quantile(validated.scores["change"][:, :-1], CHANGES)),
    }
    ways = [_Way("fixed", number) for number in range(1, passes + 1)]
    for criterion in CRITERIA:
        calibrated = exits.calibrate(validated.scores[criterion], validated.predictions, TOLERANCE)
        ways += [_Way(criterion, float(threshold)) for threshold in thresholds[criterion]]
        ways.append(_Way(criterion, calibrated, chosen=True))
    return ways


def bounded_exits(run: Run, data: Prepared | None, results: Path | None = None) -> pd.DataFrame:
    """Early exit of bounded risk on the test texts: one row per way to run the model, as :func:`bounded_exits.judged` gives them.

    Beside them stand ``ms_per_text``, in batches of :data:`BATCH` texts of similar length with :data:`THREADS` threads on a CPU,
    and ``device``. Labels and passes are read from one run of all passes; in 16 bits a smaller batch may round differently. The
    run also keeps the table "bounded_exit_predictions" with one row per text: ``row``, ``label``, and the label of each way.
    """

    def measure(model: EncoderForSequenceClassification) -> pd.DataFrame:
        ways, predictions = _measure_bounded(run, model, data)
        keep(run, "bounded_exit_predictions", named(run, predictions))  # before the table that marks both as complete
        return ways

    return measured_once(run, "bounded_exits", results, measure)


def _measure_bounded(
    run: Run, model: EncoderForSequenceClassification, data: Prepared
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The two tables of :func:`bounded_exits`, without the run's name."""
    device = pick_device()
    precision = pick_precision(run.spec["recipe"]["precision"], device)
    model.to(device)
    pad, test = data.tokenizer.pad_token_id, data.splits["test"]
    spread = np.linspace(0, len(test) - 1, min(BATCH * BATCHES, len(test))).astype(int)
    alike = np.argsort(test.lengths, kind="stable")[spread]  # of every length
    timed = [inputs(collate(test, alike[start : start + BATCH], pad), device) for start in range(0, len(alike), BATCH)]
    decoded = {}
    with autocast(precision, device):
        for split in ("validation", "test"):
            texts, order = _batches(data.splits[split], pad)
            decoded[split] = exits.decode_passes(model, texts), data.splits[split].labels[order]
        ways = bounded.ways(*decoded["validation"])
        with training_threads(THREADS):
            milliseconds = exits.milliseconds(model, timed, [exits.arguments(way.criterion, way.setting) for way in ways])
            machine = f"{device_name(device)}, {precision}"
    table, predictions = bounded.judged(ways, *decoded["test"])
    return (
        table.assign(ms_per_text=milliseconds, device=machine),
        predictions.assign(row=order).sort_values("row", ignore_index=True),
    )


# ---------------------------------------- helpers of all tables


def _before_and_after(
    run: Run,
    model: EncoderForSequenceClassification,
    data: Prepared,
    measure: Callable[[EncoderForSequenceClassification], pd.DataFrame],
) -> pd.DataFrame:
    """The table of the model before training above that of the trained one; the column ``weights`` names the two."""
    initial, trained = measure(fresh_model(RunSpec.from_canonical(run.spec), data)), measure(model)
    return pd.concat([initial.assign(weights="initial"), trained.assign(weights="trained")], ignore_index=True)


def _batches(tokens: Tokens, pad_id: int, rows: np.ndarray | None = None) -> tuple[list[Batch], np.ndarray]:
    """Batches of texts of similar length, and the rows in the order of the batches."""
    rows = np.arange(len(tokens)) if rows is None else rows
    pieces = [rows[part] for part in batches(tokens.lengths[rows], EVALUATION_TOKENS, None, seed=None, epoch=0)]
    return [collate(tokens, piece, pad_id) for piece in pieces], np.concatenate(pieces)


def _training_sample(data: Prepared) -> list[Batch]:
    """:data:`GRADIENT_ROWS` training texts, the same for every run on these data."""
    training = data.splits["train"]
    rows = np.sort(np.random.default_rng(0).permutation(len(training))[:GRADIENT_ROWS])
    return _batches(training, data.tokenizer.pad_token_id, rows)[0]
