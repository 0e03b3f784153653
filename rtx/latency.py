"""The time that a model takes for a text."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
import torch

from rtxlib.errors import InputError
from rtxlib.models.encoder import EncoderBase
from rtxlib.models.kernels import prepacked
from rtxlib.training.device import autocast, evaluating

Batch = dict[str, torch.Tensor | None]
EVALUATION_TOKENS = 8192  # padded tokens of a full batch; the widest model here then needs less than a gigabyte
_WARM_UP = 3  # further untimed passes of the first batch of each list


def latency(
    model: EncoderBase,
    single: Sequence[Batch],
    saturated: Sequence[Batch],
    device: torch.device | str,
    *,
    rounds: int,
    precision: str = "fp32",
) -> dict[str, float]:
    """Milliseconds of a forward pass: ``ms_median`` and ``ms_p95`` at batch size 1, ``ms_per_text`` with full batches.

    Before the clock starts, batches are moved to the device, weights are prepacked, every batch is run once, and the first batch
    of each list three more times. The device is synchronised around each timed pass. The model is moved to ``device``, timed
    in evaluation mode, and left in the mode it had.

    Args:
        model: the model to time
        single: batches of one text. Each is timed once per round; median and 95th percentile are over texts × rounds.
        saturated: batches that keep the device busy. ``ms_per_text`` is the median over the rounds of all their time, divided
            by the number of all their rows.
        device: where the model is timed
        rounds: how often each batch is timed
        precision: of matrix products: fp32, bf16 or fp16

    A batch holds ``input_ids`` (B, T) and ``attention_mask`` (B, T) or None, and of pairs also ``token_type_ids``. Its other
    entries are ignored.

    Raises:
        InputError: a list is empty, or ``single`` holds a larger batch.
    """
    device = torch.device(device)
    if not single or not saturated or rounds < 1:
        raise InputError("Latency needs at least one batch of one text, one full batch and one round.")
    if any(len(batch["input_ids"]) != 1 for batch in single):
        raise InputError("The batches for the latency at batch size 1 must hold one text each.")
    held = [[inputs(batch, device) for batch in batches] for batches in (single, saturated)]
    wait = synchroniser(device)

    def timed(batch: Batch) -> float:
        wait()
        start = time.perf_counter()
        model(**batch)
        wait()
        return 1000 * (time.perf_counter() - start)

    model.to(device)
    with evaluating(model), torch.inference_mode(), autocast(precision, device), prepacked(model):
        for batches in held:
            for batch in [*batches, *batches[:1] * _WARM_UP]:
                timed(batch)
        ones = [timed(batch) for _ in range(rounds) for batch in held[0]]
        full = [sum(timed(batch) for batch in held[1]) for _ in range(rounds)]
    rows = sum(len(batch["input_ids"]) for batch in saturated)
    return {
        "ms_median": float(np.median(ones)),
        "ms_p95": float(np.quantile(ones, 0.95)),
        "ms_per_text": float(np.median(full) / rows),
    }


def inputs(batch: Batch, device: torch.device) -> Batch:
    """The entries of a batch that a model reads, on the device."""
    mask, types = batch.get("attention_mask"), batch.get("token_type_ids")  # the types are of pairs alone
    read = {"input_ids": batch["input_ids"].to(device), "attention_mask": None if mask is None else mask.to(device)}
    return read if types is None else read | {"token_type_ids": types.to(device)}


def synchroniser(device: torch.device) -> Callable[[], object]:
    """A function that waits until the device has finished. A CPU is always finished when a call returns."""
    return (lambda: None) if device.type == "cpu" else (lambda: torch.accelerator.synchronize(device))
