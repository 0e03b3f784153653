"""Prediction by torch, and of one text by the graph of `rtx export`, beside ONNX Runtime and OpenVINO.

A user with a CPU would take these two. One text by torch has no aim: products are less than half of its time there, and
about 900 small operations are the rest. `rtx predict RUN` answers few texts by the graph instead.

The graph of `rtx export` also stands beside the one that `optimum` exports of the same model, both in ONNX Runtime. optimum
needs an older transformers, so it lives in an environment of its own, whose programs are on the PATH:

    python -m venv E && E/bin/pip install "optimum-onnx[onnxruntime]"     # PATH=$PATH:E/bin make bench
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import torch

from benchmarks.measure import Row, not_measured, seconds
from benchmarks.peers import Peer, untouched
from benchmarks.prediction import LENGTH, SINGLE, Same, alone, in_batches, one_by_one, predicted, same_models
from benchmarks.texts import prepared, texts
from rtx.export import folder
from rtx.export.held_out import HeldOut
from rtx.export.onnx_model import to_onnx
from rtx.export.opened import Opened
from rtxlib.training.device import pick_device, pick_precision

LEVEL, ALONE = 0.95, 1 / 1.1  # the aims: of the peer's texts a second, and of its time for one text
# The peer, how people write its name, and the number formats that it has on a CPU.
RUNTIMES = (("onnxruntime", "ONNX Runtime", ("fp32",)), ("openvino", "OpenVINO", ("fp32", "bf16")))


def rows(rounds: int, short: bool) -> Iterator[Row]:
    precisions = dict.fromkeys(("fp32", pick_precision("auto", pick_device())))
    with tempfile.TemporaryDirectory() as work, Peer() as peer:
        same = same_models(prepared("sst2")[1].tokenizer, Path(work), peer)
        (Path(work) / "model.onnx").write_bytes(to_onnx(same.model.cpu()).SerializeToString())
        graph = _exported(same, Path(work) / "exported")
        same.model.to(pick_device())
        for kind, name, formats in RUNTIMES:
            if importlib.util.find_spec(kind) is None:
                yield not_measured(f"prediction beside {name}", "texts/s", LEVEL, f"{kind} is not installed")
                continue
            for precision in (each for each in formats if each in precisions):
                for source, count in (("sst2", 400), ("yelp_polarity", 60)):
                    kind_of_text, some = texts(source, count // 8 if short else count)
                    named = f"prediction, {len(some)} {kind_of_text}, {precision}, beside {name}"
                    by_torch = partial(predicted, some, same, precision)
                    yield _batches(named, some, same, by_torch, (kind, kind, precision), rounds)
                kind_of_text, some = texts("sst2", SINGLE)
                theirs = partial(peer, "runtime_alone", kind, same.folder, precision, torch.get_num_threads(), some, LENGTH)
                beside = f"{kind_of_text}, {precision}, beside {name}"
                how = ", by torch and as the graph of `rtx export`"
                yield alone(beside, some, same, precision, rounds, partial(theirs, False), None, kind, how)
                yield _by_graph(beside, some, graph, rounds, partial(theirs, True), peer.pid, kind)
        yield from _beside_optimum(same, graph, rounds, short)


def _exported(same: Same, out: Path) -> Opened:
    """What `rtx export` writes of the model, opened as `rtx predict` opens it."""
    held = HeldOut([], texts("sst2", SINGLE)[1], None, "film phrases")
    labels = list(same.model.config.id2label.values())
    folder.export(folder.Source(same.model, same.tokenizer, "BERT 6×384", labels, False, {}, LENGTH), held, out, eight=False)
    return Opened(out, torch.get_num_threads())


def _by_graph(
    beside: str, some: list[str], graph: Opened, rounds: int, theirs: Callable[[], list[float]], peer: int, package: str
) -> Row:
    def ours() -> float:
        return 1000 * median(seconds(lambda text=text: graph.answers([text])) for text in some)

    name = f"one text by the exported graph, {beside}"
    how = f"{len(some)} texts one by one, tokenising included, the median of each round; ours in fp32; BERT 6×384, same weights"
    return one_by_one(name, ours, lambda: median(theirs()), rounds, peer, ALONE, package, how)


def _beside_optimum(same: Same, graph: Opened, rounds: int, short: bool) -> Iterator[Row]:
    """Our graph as `rtx predict FOLDER` uses it, beside optimum's graph in ONNX Runtime."""
    beside, program = "beside the graph that optimum exports", shutil.which("optimum-cli")
    if program is None:
        yield not_measured(f"prediction by the exported graph {beside}", "texts/s", LEVEL, "optimum-cli is not on the PATH")
        return
    command = [program, "export", "onnx", "--task", "text-classification", "--model", str(same.folder)]
    subprocess.run([*command, str(same.folder / "optimum")], env=untouched(), check=True, capture_output=True)
    for source, count in (("sst2", 400), ("yelp_polarity", 60)):
        kind_of_text, some = texts(source, count // 8 if short else count)
        name = f"prediction by the exported graph, {len(some)} {kind_of_text}, fp32, {beside}"
        yield _batches(name, some, same, partial(graph.answers, some), ("optimum", "onnxruntime", "fp32"), rounds)
    kind_of_text, some = texts("sst2", SINGLE)
    theirs = partial(
        same.peer, "runtime_alone", "optimum", same.folder, "fp32", torch.get_num_threads(), some, LENGTH, True
    )
    yield _by_graph(f"{kind_of_text}, fp32, {beside}", some, graph, rounds, theirs, same.peer.pid, "onnxruntime")


def _batches(
    name: str,
    some: list[str],
    same: Same,
    ours: Callable[[], np.ndarray],
    runtime: tuple[str, str, str],
    rounds: int,
) -> Row:
    """Texts a second of ours beside those of a runtime: its kind (of ``peers._session``), its package and its number format."""
    kind, package, precision = runtime

    def run(size: int) -> tuple[float, np.ndarray]:
        return same.peer("runtime", kind, same.folder, precision, torch.get_num_threads(), some, size, LENGTH)

    how = "both in batches of like length, "
    return in_batches(name, ours, run, ours(), precision, rounds, same.peer, LEVEL, (package,), how)
