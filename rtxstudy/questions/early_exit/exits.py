"""Measure early exit: decode every pass once, calibrate thresholds on validation texts, and time every way to run a model.

*Leaving* after a pass means that a text's label is read there and its later passes are not computed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch

from rtx.latency import Batch, inputs, synchroniser
from rtxlib.errors import InputError
from rtxlib.models.early_exit import CRITERIA, EarlyExit, Settling
from rtxlib.models.heads import EncoderForSequenceClassification
from rtxstudy.statistics import paired_difference

CANDIDATES = 400  # thresholds tried at most
ROUNDS = 3  # timed rounds, after one untimed


class Decoded(NamedTuple):
    """The result of every pass for every text: logits (rows, passes, labels), and scores (rows, passes) by criterion."""

    logits: np.ndarray
    scores: dict[str, np.ndarray]

    @property
    def predictions(self) -> np.ndarray:
        """(rows, passes) label numbers."""
        return self.logits.argmax(axis=-1)


@torch.inference_mode()
def decode_passes(
    model: EncoderForSequenceClassification, batches: Sequence[Batch], passes: int | None = None
) -> Decoded:
    """The logits and scores after every pass, from one run of all passes; rows in the order of the batches.

    batches: each with ``input_ids`` (B, T) and ``attention_mask`` (B, T) or None. passes: how many; None: R. The model must be in
    evaluation mode.
    """
    logits: list[torch.Tensor] = []
    scores: dict[str, list[torch.Tensor]] = {criterion: [] for criterion in CRITERIA}
    encoder = model.encoder
    for batch in batches:
        moved = inputs(batch, model.device)
        ids, mask = moved["input_ids"], moved["attention_mask"]
        states = encoder(**moved, recurrent_depth=passes, output_hidden_states=True).pass_states
        context = encoder.context(ids.shape[1], mask, ids.device)
        pass_logits = [model.decode(h, mask, context).float() for h in states[1:]]
        pooled = [encoder.summary(h, mask) for h in states]
        logits.append(torch.stack(pass_logits, dim=1))
        for criterion, of_batches in scores.items():
            settling = Settling(criterion, len(pass_logits), pooled[0])
            by_pass = [settling.score(*after) for after in zip(pass_logits, pooled[1:], strict=True)]
            of_batches.append(torch.stack(by_pass, dim=1))
    return Decoded(
        torch.cat(logits).cpu().numpy(),
        {criterion: torch.cat(of_batches).float().cpu().numpy() for criterion, of_batches in scores.items()},
    )


def leave(scores: np.ndarray, threshold: float) -> np.ndarray:
    """The pass (rows,) after which each text leaves: the first whose score (rows, passes) exceeds the threshold, or the last."""
    passed = scores > threshold
    passed[:, -1] = True
    return passed.argmax(axis=1) + 1


def calibrate(scores: np.ndarray, predictions: np.ndarray, tolerance: float) -> float:
    """The lowest threshold t such that every threshold ≥ t changes at most ``tolerance`` of the labels.

    scores, predictions: (rows, passes) of validation texts. A label counts as changed if it differs from the label after all
    passes. True labels are not needed, and accuracy cannot fall by more than the share changed. At most :data:`CANDIDATES`
    thresholds are tried. Raises InputError for a tolerance outside 0 to 1, or without texts.
    """
    if not 0 <= tolerance <= 1 or not len(scores):
        raise InputError(f"Calibration needs texts and a tolerance between 0 and 1, not {len(scores)} and {tolerance}.")
    values = np.unique(np.append(scores[:, :-1], [0.0, 1.0]))
    tried = values[np.linspace(0, len(values) - 1, min(CANDIDATES, len(values))).round().astype(int)]
    rows = np.arange(len(scores))
    lowest = tried[-1]
    for threshold in tried[-2::-1]:  # from high to low
        changed = predictions[rows, leave(scores, threshold) - 1] != predictions[:, -1]
        if changed.mean() > tolerance:
            break
        lowest = threshold
    return float(lowest)


def arguments(criterion: str, setting: float) -> dict[str, Any]:
    """The model's keyword arguments for one way to run it. setting: the number of passes if "fixed", else the threshold."""
    return {"recurrent_depth": int(setting)} if criterion == "fixed" else {"early_exit": EarlyExit(criterion, setting)}


@torch.inference_mode()
def outcome(
    model: EncoderForSequenceClassification, batches: Sequence[Batch], way: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray]:
    """Labels and numbers of passes (rows,) of one way to run the model; rows in the order of the batches.

    way: see :func:`milliseconds`.
    """
    labels, passes = [], []
    for batch in batches:
        out = model(**inputs(batch, model.device), **way)
        labels.append(out.logits.argmax(dim=-1))
        fixed = way.get("recurrent_depth", model.config.recurrent_depth)
        passes.append(torch.full_like(labels[-1], fixed) if out.passes is None else out.passes)
    return torch.cat(labels).cpu().numpy(), torch.cat(passes).cpu().numpy()


def milliseconds(
    model: EncoderForSequenceClassification, batches: Sequence[Batch], ways: Sequence[dict[str, Any]]
) -> list[float]:
    """Milliseconds per text of each way to run the model: the median over :data:`ROUNDS` rounds.

    All ways take turns in every round, and each runs once before the clock starts. The model must be in evaluation mode.

    ways: keyword arguments of the model, ``{"recurrent_depth": 2}`` or ``{"early_exit": EarlyExit(…)}``. batches: on the
    model's device.
    """
    texts = sum(len(batch["input_ids"]) for batch in batches)
    wait = synchroniser(model.device)
    seconds = np.empty((ROUNDS + 1, len(ways)))
    with torch.inference_mode():
        for turn in range(ROUNDS + 1):
            for number, way in enumerate(ways):
                wait()
                started = time.perf_counter()
                for batch in batches:
                    model(**inputs(batch, model.device), **way)
                wait()
                seconds[turn, number] = time.perf_counter() - started
    return (1000 * np.median(seconds[1:], axis=0) / texts).tolist()


def exit_differences(ways: pd.DataFrame, predictions: pd.DataFrame) -> pd.DataFrame:
    """Each calibrated early exit compared with all passes: one row per model and criterion, over its seeds.

    ways, predictions: the two tables of :func:`rtxstudy.measured.early_exits`, of several runs. Columns:

    - ``model``, ``data``, ``criterion``; ``accuracy``: with all passes, mean over seeds;
    - ``throughput``: texts per second relative to all passes in the same rounds, mean over seeds;
    - ``throughput_least``: the same for the slowest seed;
    - ``passes``: mean over texts and seeds;
    - ``difference``, ``low``, ``high``, ``p``, ``n_seeds``, ``n_items``: the paired difference of accuracies
      (:func:`rtxstudy.statistics.paired_difference`);
    - ``fixed_passes``: the smallest fixed number of passes whose mean accuracy is at least the exit's; NaN if there is none.
      It is chosen on test texts, so it is optimistic. The thresholds are chosen on validation texts;
    - ``fixed_throughput``: its texts per second relative to all passes;
    - ``fixed_difference``: its accuracy minus that of all passes.
    """
    rows = []
    for (data, model), answers in predictions.groupby(["data", "model"], sort=False):
        by_seed = [part.sort_values("row") for _, part in answers.groupby("seed")]
        timed = ways[(ways["data"] == data) & (ways["model"] == model)]
        fixed = timed[timed["criterion"] == "fixed"]
        all_passes_took = fixed.sort_values("setting").groupby("seed")["ms_per_text"].last()
        accuracy = fixed.groupby("setting")["accuracy"].mean()
        for criterion in CRITERIA:
            chosen = timed[timed["chosen"] & (timed["criterion"] == criterion)].set_index("seed")
            throughput = all_passes_took / chosen["ms_per_text"]
            early, late = (np.stack([part["label"] == part[column] for part in by_seed]) for column in (criterion, "fixed"))
            fewest = accuracy.index[accuracy >= chosen["accuracy"].mean()].min()  # NaN if there is none
            fewest_took = fixed[fixed["setting"] == fewest].set_index("seed")["ms_per_text"]
            rows.append(
                {
                    "model": model,
                    "data": data,
                    "criterion": criterion,
                    "accuracy": accuracy.iloc[-1],
                    "throughput": throughput.mean(),
                    "throughput_least": throughput.min(),
                    "passes": chosen["passes"].mean(),
                    **paired_difference(early, late)._asdict(),
                    "fixed_passes": fewest,
                    "fixed_throughput": (all_passes_took / fewest_took).mean(),
                    "fixed_difference": accuracy.get(fewest, np.nan) - accuracy.iloc[-1],
                }
            )
    return pd.DataFrame(rows)
