"""When a text may leave the loop: every pass decoded once, thresholds from validation data, and what leaving costs and saves."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from rtxlib.errors import InputError
from rtxlib.models.early_exit import CRITERIA, Settling
from rtxlib.models.heads import EncoderForSequenceClassification
from rtxlib.runs.cost import Batch, inputs, synchroniser

CANDIDATES = 400  # thresholds tried at most


class Decoded(NamedTuple):
    """What each pass makes of each text: logits (rows, passes, labels), and of each criterion the scores (rows, passes)."""

    logits: np.ndarray
    scores: dict[str, np.ndarray]

    @property
    def predictions(self) -> np.ndarray:
        """(rows, passes) label numbers."""
        return self.logits.argmax(axis=-1)


@torch.inference_mode()
def decode_passes(model: EncoderForSequenceClassification, batches: Sequence[Batch]) -> Decoded:
    """Every pass decoded, in one run of R passes; rows in the order of the batches.

    batches: each with ``input_ids`` (B, T) and ``attention_mask`` (B, T) or None. The model must be in evaluation mode.
    """
    logits: list[torch.Tensor] = []
    scores: dict[str, list[torch.Tensor]] = {criterion: [] for criterion in CRITERIA}
    encoder = model.encoder
    for batch in batches:
        ids, mask = inputs(batch, model.device).values()
        states = encoder(ids, mask, output_hidden_states=True).pass_states
        views = encoder.views(ids.shape[1], mask, ids.device)
        found = [model.decode(h, mask, views).float() for h in states[1:]]
        pooled = [encoder.summary(h, mask) for h in states]
        logits.append(torch.stack(found, dim=1))
        for criterion, of_batches in scores.items():
            settling = Settling(criterion, len(found), pooled[0])
            each = [settling.score(*after) for after in zip(found, pooled[1:], strict=True)]
            of_batches.append(torch.stack(each, dim=1))
    return Decoded(
        torch.cat(logits).cpu().numpy(),
        {criterion: torch.cat(of_batches).float().cpu().numpy() for criterion, of_batches in scores.items()},
    )


def leave(scores: np.ndarray, threshold: float) -> np.ndarray:
    """After how many passes each text leaves (rows,): the first whose score (rows, passes) is above the threshold, else all."""
    passed = scores > threshold
    passed[:, -1] = True
    return passed.argmax(axis=1) + 1


def calibrate(scores: np.ndarray, predictions: np.ndarray, tolerance: float) -> float:
    """The lowest threshold from which on leaving early changes at most this share of the labels.

    scores, predictions: (rows, passes) of validation texts. A changed label is one that all passes would have given
    otherwise; no label need be known, and accuracy can fall by no more than what changed. Raises InputError for a
    tolerance outside 0 to 1, or without texts.
    """
    if not 0 <= tolerance <= 1 or not len(scores):
        raise InputError(f"Calibration needs texts and a tolerance between 0 and 1, not {len(scores)} and {tolerance}.")
    seen = np.unique(np.append(scores[:, :-1], [0.0, 1.0]))
    tried = seen[np.linspace(0, len(seen) - 1, min(CANDIDATES, len(seen))).round().astype(int)]
    rows = np.arange(len(scores))
    for lower, threshold in zip(tried[-2::-1], tried[:0:-1], strict=True):
        changed = predictions[rows, leave(scores, lower) - 1] != predictions[:, -1]
        if changed.mean() > tolerance:
            return float(threshold)
    return float(tried[0])


@torch.inference_mode()
def outcome(
    model: EncoderForSequenceClassification, batches: Sequence[Batch], way: dict
) -> tuple[np.ndarray, np.ndarray]:
    """Labels and passes (rows,) of texts run one way, rows in the order of the batches; see :func:`milliseconds`."""
    labels, passes = [], []
    for batch in batches:
        out = model(batch["input_ids"], batch["attention_mask"], **way)
        labels.append(out.logits.argmax(dim=-1))
        everyone = way.get("recurrent_depth", model.config.recurrent_depth)
        passes.append(torch.full_like(labels[-1], everyone) if out.passes is None else out.passes)
    return torch.cat(labels).cpu().numpy(), torch.cat(passes).cpu().numpy()


def milliseconds(
    model: EncoderForSequenceClassification, batches: Sequence[Batch], ways: Sequence[dict], rounds: int = 3
) -> list[float]:
    """Milliseconds a text of each way to run the model: median over rounds in which all ways take turns.

    ways: keyword arguments of the model, ``{"recurrent_depth": 2}`` or ``{"early_exit": EarlyExit(…)}``; each is run once
    before the clock starts. batches: on the model's device. The model must be in evaluation mode.
    """
    texts = sum(len(batch["input_ids"]) for batch in batches)
    wait = synchroniser(model.device)
    taken = np.empty((rounds + 1, len(ways)))
    with torch.inference_mode():
        for turn in range(rounds + 1):
            for number, way in enumerate(ways):
                wait()
                started = time.perf_counter()
                for batch in batches:
                    model(batch["input_ids"], batch["attention_mask"], **way)
                wait()
                taken[turn, number] = time.perf_counter() - started
    return (1000 * np.median(taken[1:], axis=0) / texts).tolist()
