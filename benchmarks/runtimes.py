"""Prediction by torch beside ONNX Runtime and OpenVINO, which a user with a CPU would take."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import torch

from benchmarks.measure import Row, fastest, not_measured, row, seconds, take_turns
from benchmarks.peers import Peer
from benchmarks.prediction import LENGTH, SINGLE, SIZES, Same, alone, predicted, same_models
from benchmarks.texts import prepared, texts
from rtx.export.onnx_model import to_onnx
from rtxlib.training.device import pick_device, pick_precision

LEVEL, ALONE = 0.95, 1 / 1.1  # the aims: of the peer's texts a second, and of its time for one text
# The peer, how people write its name, and the number formats that it has on a CPU.
RUNTIMES = (("onnxruntime", "ONNX Runtime", ("fp32",)), ("openvino", "OpenVINO", ("fp32", "bf16")))


def rows(rounds: int, short: bool) -> Iterator[Row]:
    precisions = dict.fromkeys(("fp32", pick_precision("auto", pick_device())))
    with tempfile.TemporaryDirectory() as folder, Peer() as peer:
        same = same_models(prepared("sst2")[1].tokenizer, Path(folder), peer)
        (Path(folder) / "model.onnx").write_bytes(to_onnx(same.model.cpu()).SerializeToString())
        same.model.to(pick_device())
        for kind, name, formats in RUNTIMES:
            if importlib.util.find_spec(kind) is None:
                yield not_measured(f"prediction beside {name}", "texts/s", LEVEL, f"{kind} is not installed")
                continue
            for precision in (each for each in formats if each in precisions):
                for source, count in (("sst2", 400), ("yelp_polarity", 60)):
                    kind_of_text, some = texts(source, count // 8 if short else count)
                    yield _throughput(f"{len(some)} {kind_of_text}", some, same, (kind, name), precision, rounds)
                kind_of_text, some = texts("sst2", SINGLE)
                theirs = partial(peer, "runtime_alone", kind, same.folder, precision, torch.get_num_threads(), some, LENGTH)
                kind_of_text, how = f"{kind_of_text}, {precision}, beside {name}", ", by torch and as the graph of `rtx export`"
                yield alone(kind_of_text, some, same, precision, rounds, theirs, ALONE, kind, how)


def _throughput(kind_of_text: str, some: list[str], same: Same, runtime: tuple[str, str], precision: str, rounds: int) -> Row:
    (kind, name), threads = runtime, torch.get_num_threads()
    ours = partial(predicted, some, same, precision)

    def run(size: int) -> tuple[float, np.ndarray]:
        return same.peer("runtime", kind, same.folder, precision, threads, some, size, LENGTH)

    size = fastest(run, SIZES, ours(), 1e-4 if precision == "fp32" else 0.2, name)
    ways = {"ours": lambda: len(some) / seconds(ours), "peer": lambda: len(some) / run(size)[0]}
    rates = take_turns(ways, rounds)
    return row(
        f"prediction, {kind_of_text}, {precision}, beside {name}",
        rates["ours"],
        rates["peer"],
        "texts/s",
        LEVEL,
        (kind,),
        f"BERT 6×384 with the same weights and outputs, by torch and as the graph of `rtx export`, tokenising included, both in "
        f"batches of like length, at most {LENGTH} tokens; the peer in its fastest batches of {SIZES[0]} to {SIZES[-1]} "
        f"({size}); {threads} threads",
    )
