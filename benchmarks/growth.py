"""How cost grows with work: time against rows, passes and layers, and memory against the length of a text."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd
import torch

from benchmarks.measure import Row, not_measured, seconds, versions
from benchmarks.memory import forget_peak, peak_mb
from rtxlib.models import build
from rtxlib.training.device import device_name, pick_device

TIMES = (1, 2, 4, 8)  # the work, in units of the smallest
ROWS, TOKENS = 64, 16  # of a batch
LENGTHS = {"sdpa": (2048, 4096, 8192, 16384, 32768), "eager": (512, 1024, 2048, 4096, 8192)}
_MEASURE = "import sys; from benchmarks.growth import peak_bytes; print(peak_bytes(sys.argv[1], int(sys.argv[2])))"


def works() -> dict[str, Callable[[int], Callable[[], object]]]:
    """Kind of work -> a function from the number of units to a forward and backward pass that does so much work.

    The kinds are the names of stored rows, so passes are called iterations there.
    """
    device = pick_device()

    def steps(model: torch.nn.Module, rows: int = ROWS) -> Callable[[], object]:
        ids = torch.randint(5, 1000, (rows, TOKENS), device=device)
        model = model.to(device).train()

        def run() -> None:
            model(ids).logits.sum().backward()
            model.zero_grad()

        return run

    sizes = {"vocab_size": 1000}
    return {
        "rows": lambda k: steps(build("standard-2x128", **sizes), 4 * k * ROWS),
        "iterations R": lambda k: steps(build(f"recurrent-1x{2 * k}x128", residual="damped", **sizes)),
        "layers": lambda k: steps(build(f"standard-{2 * k}x128", **sizes)),
    }


def time_rows(rounds: int) -> Iterator[tuple[Row, pd.DataFrame]]:
    for what, make in works().items():
        forget_peak()
        runs = {k: make(k) for k in TIMES}
        for run in runs.values():
            run()
        taken = {k: [] for k in TIMES}
        for _ in range(3 * rounds):
            for k, run in runs.items():
                taken[k].append(1000 * seconds(run))
        least = np.array([min(taken[k]) for k in TIMES])  # other work on the machine only adds time
        slope, fixed = np.polyfit(TIMES, least, 1)
        early, late = (least[2] - least[0]) / 3, (least[3] - least[2]) / 4
        yield (
            Row(
                f"cost as {what} grow 8-fold",
                late,
                early,
                "ms a unit",
                min(early, late) / max(early, late),
                0.9,
                3 * rounds,
                device_name(pick_device()),
                versions("torch"),
                f"slope from 4 to 8 units beside that from 1 to 4; a fixed {fixed:.2f} ms and {slope:.2f} ms a unit (least "
                f"squares through the least of {3 * rounds} times each), forward and backward, width 128, "
                f"{ROWS} rows (a unit of rows: {4 * ROWS}) of {TOKENS} tokens",
                ours_mb=peak_mb(),
            ),
            pd.DataFrame({"work": what, "units": TIMES, "ms": least, "fixed_ms": fixed, "slope_ms": slope}),
        )


def peak_bytes(path: str, length: int) -> int:
    """Bytes that a forward pass over one text of ``length`` tokens adds: on a CPU to the peak of the process' resident memory.

    path: the attention, "sdpa" or "eager". The process must be a fresh one.
    """
    device = pick_device()
    model = build("standard-1x64", vocab_size=100, position="rotary", max_position_embeddings=length).eval().to(device)
    model.config._attn_implementation = path
    ids = torch.randint(5, 100, (1, length), device=device)
    with torch.inference_mode():
        model(ids[:, :16])
        _forget_peak(device)
        before = _peak(device)
        model.encoder(ids)  # every token's state, not [CLS] alone
    return _peak(device) - before


def _forget_peak(device: torch.device) -> None:
    """Restart the peak from the memory held now, because importing torch took more than a short text takes."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    else:
        forget_peak()


def _peak(device: torch.device) -> int:
    return torch.cuda.max_memory_allocated(device) if device.type == "cuda" else round(1e6 * peak_mb())


def memory_rows(rounds: int) -> Iterator[tuple[Row, pd.DataFrame]]:
    for path, expected in (("sdpa", 1.0), ("eager", 2.0)):
        if pick_device().type == "cpu" and not Path("/proc/self/clear_refs").is_file():
            name, why = f"memory against text length, {path}", "the resident peak is read from Linux's /proc"
            yield not_measured(name, "exponent", 0.9, why), pd.DataFrame()
            continue
        rows = []
        for length in LENGTHS[path]:
            measure = [sys.executable, "-c", _MEASURE, path, str(length)]
            answers = [subprocess.check_output(measure, text=True) for _ in range(min(rounds, 3))]
            rows.append(median(map(int, answers)))
        exponent = float(np.polyfit(np.log(LENGTHS[path]), np.log(rows), 1)[0])
        yield (
            Row(
                f"memory against text length, {path}",
                exponent,
                expected,
                "exponent",
                min(exponent / expected, expected / exponent),
                0.9,
                min(rounds, 3),
                device_name(pick_device()),
                versions("torch"),
                f"one layer, width 64, one text of {LENGTHS[path][0]:,} to {LENGTHS[path][-1]:,} tokens: "
                f"{rows[0] / 1e6:.0f} to {rows[-1] / 1e6:.0f} MB; ours is the fitted exponent, the peer the theory's",
            ),
            pd.DataFrame({"path": path, "tokens": LENGTHS[path], "mb": np.array(rows) / 1e6, "exponent": exponent}),
        )
