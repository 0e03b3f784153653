"""What a trained encoder costs to deploy: its bytes, its time and its accuracy in float32, in bf16, and in eight bits.

torch computes float32 and bf16, ONNX Runtime computes float32 and eight bits (:mod:`rtx.export`). A loop reads the same
rounded weights in every pass, so an error of rounding may grow from pass to pass.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import torch
from onnxruntime import InferenceSession
from torch import nn

from rtx import archive
from rtx.export import folder, quantize
from rtx.export.held_out import HeldOut
from rtx.export.onnx_model import to_onnx
from rtx.export.standalone import Exported
from rtx.latency import Batch, inputs
from rtxlib.data.batching import Tokens, collate
from rtxlib.data.prepare import Prepared
from rtxlib.models.heads import EncoderForSequenceClassification
from rtxlib.runs.store import Run
from rtxlib.training.device import autocast, device_name, training_threads
from rtxlib.training.predict import predict_logits
from rtxstudy.finished import Runs
from rtxstudy.run_tables import keep, measured_once, named
from rtxstudy.statistics import paired_difference

FLOAT, EIGHT = "float32, torch", "eight bits, ONNX"
FORMS = (FLOAT, "bf16, torch", "float32, ONNX", EIGHT)
PRECISIONS = ("fp32", "bf16")  # of torch
ROUNDED_TEXTS = 400  # most test texts on which the error of rounding is measured
TIMED_TEXTS = 64  # most test texts that are timed, one by one and in one batch
THREADS, ROUNDS = 2, 5
CPU = torch.device("cpu")


def deployed(run: Run, data: Prepared | None, results: Path | None = None) -> pd.DataFrame:
    """One row per form of a run's classifier; ``data`` may be None for a published run. Everything is computed on the CPU.

    Columns: ``form`` (:data:`FORMS`), ``bytes`` (of the weights; for ONNX of the graph), ``towards_weights`` (of the calibration
    of eight bits). The run also keeps

    - "deployed_predictions", one row per test text: ``row``, ``label``, and the label that each form gives;
    - "rounding", one row per number of passes: ``passes``, and ``error``: the root mean square of what eight bits change in a
      text's mean state after so many passes and all further layers, divided by the standard deviation of the states.

    Raises InputError where the float32 graph does not agree with the model.
    """

    def measure(_: EncoderForSequenceClassification) -> pd.DataFrame:
        source, test, pad = folder.of_run(run), data.splits["test"], data.tokenizer.pad_token_id
        model = source.model.eval()
        texts = HeldOut(data.texts("validation"), data.texts("test"), test.labels, f"the test split of {data.spec.source}")
        with TemporaryDirectory() as aside:
            # This also checks the labels of the float32 graph.
            record = folder.export(source, texts, Path(aside) / "eight", eight=True)
            rounded = Exported(Path(aside) / "eight")(data.texts("test"))
        exact, bf16 = (predict_logits(model, test, pad, CPU, precision) for precision in PRECISIONS)
        labels = {form: logits.argmax(axis=1) for form, logits in zip(FORMS, (exact, bf16, exact, rounded), strict=True)}
        predictions = pd.DataFrame({"row": np.arange(len(test)), "label": test.labels} | labels)
        keep(run, "deployed_predictions", named(run, predictions))
        keep(run, "rounding", named(run, _rounding(source, data, record["towards_weights"])))
        weights = sum(p.numel() for p in model.parameters())
        sizes = [4 * weights, 2 * weights, record["size_float32"], record["size"]]
        return pd.DataFrame({"form": FORMS, "bytes": sizes, "towards_weights": record["towards_weights"]})

    return measured_once(run, "deployed", results, measure)


def times(run: Run, data: Prepared | None, results: Path | None = None) -> pd.DataFrame:
    """How long each form takes, of a run that :func:`deployed` has measured; ``data`` may be None for a published run.

    Columns: ``form``; ``ms_one``: a text by itself, without its tokenization, the median over texts and rounds;
    ``ms_in_batch``: a text in a batch of ``TIMED_TEXTS``; ``device``.
    """

    def measure(_: EncoderForSequenceClassification) -> pd.DataFrame:
        source, towards = folder.of_run(run), archive.part(run, "deployed", results)["towards_weights"].iloc[0]
        model, pad = source.model.eval(), data.tokenizer.pad_token_id
        calibration = quantize.Calibration(_largest(model, data), towards)
        graphs = [_session(to_onnx(model, source.pairs, how)) for how in (None, calibration)]
        with training_threads(THREADS), torch.inference_mode():
            machine = device_name(CPU)
            one, in_batch = _milliseconds(model, graphs, data.splits["test"], pad)
        return pd.DataFrame({"form": FORMS, "ms_one": one, "ms_in_batch": in_batch, "device": machine})

    return measured_once(run, "deployed_times", results, measure)


def _milliseconds(
    model: EncoderForSequenceClassification, graphs: Sequence[InferenceSession], test: Tokens, pad: int
) -> list[list[float]]:
    """Milliseconds for a text by itself, and for a text in a batch, of each form. All forms take turns in every round."""
    rows = np.linspace(0, len(test) - 1, min(TIMED_TEXTS, len(test))).astype(int)

    def by_torch(batch: Batch, precision: str) -> None:
        with autocast(precision, CPU):
            model(**inputs(batch, CPU))

    def by_graph(batch: Batch, graph: InferenceSession) -> None:
        graph.run(None, _feed(graph, batch, model.config.recurrent_depth))

    ways = [partial(by_torch, precision=precision) for precision in PRECISIONS]
    ways += [partial(by_graph, graph=graph) for graph in graphs]
    medians = []
    for size in (1, len(rows)):
        batches = [collate(test, rows[start : start + size], pad) for start in range(0, len(rows), size)]
        seconds = np.empty((ROUNDS + 1, len(ways), len(batches)))
        for turn, (number, way), (place, batch) in product(range(ROUNDS + 1), enumerate(ways), enumerate(batches)):
            started = time.perf_counter()
            way(batch)
            seconds[turn, number, place] = time.perf_counter() - started
        medians.append((1000 / size * np.median(seconds[1:], axis=(0, 2))).tolist())  # the first round warms up
    return medians


def _rounding(source: folder.Source, data: Prepared, towards: float) -> pd.DataFrame:
    """The table "rounding" of :func:`deployed`. towards: how much the calibration moves into the weights."""
    config, encoder, pad = source.config, source.model.encoder, data.tokenizer.pad_token_id
    largest, test = _largest(encoder, data), data.splits["test"]
    rows = np.linspace(0, len(test) - 1, min(ROUNDED_TEXTS, len(test))).astype(int)
    batches = [collate(test, rows[start : start + 1], pad) for start in range(len(rows))]

    def states(calibration: quantize.Calibration | None) -> np.ndarray:
        session = _session(to_onnx(encoder, source.pairs, calibration))
        return np.concatenate([session.run(None, _feed(session, text, config.recurrent_depth))[0] for text in batches])

    trained, errors = config.recurrent_depth, []
    try:
        for passes in range(1, trained + 1):
            config.recurrent_depth = passes  # the graph is written for so many passes
            exact, rounded = states(None), states(quantize.Calibration(largest, towards))
            errors.append(float(np.sqrt(np.square(rounded - exact).mean() / exact.var(axis=0).mean())))
    finally:
        config.recurrent_depth = trained
    return pd.DataFrame({"passes": range(1, trained + 1), "error": errors})


def _largest(model: nn.Module, data: Prepared) -> dict[str, np.ndarray]:
    """The largest inputs of each map on the validation texts that calibrate an export."""
    validation, pad = data.splits["validation"], data.tokenizer.pad_token_id
    rows = range(min(len(validation), folder.CALIBRATION))
    return quantize.largest_inputs(model, (inputs(collate(validation, np.array([row]), pad), CPU) for row in rows))


def _session(graph: onnx.ModelProto) -> InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    return InferenceSession(graph.SerializeToString(), options, providers=["CPUExecutionProvider"])


def _feed(session: InferenceSession, batch: Batch, passes: int) -> dict[str, np.ndarray]:
    """A batch as the inputs of a graph. Without padding a batch has no mask, but a graph always reads one."""
    feed = {name: x.numpy() for name, x in inputs(batch, CPU).items() if x is not None}
    feed |= {"attention_mask": feed.get("attention_mask", np.ones_like(feed["input_ids"])), "passes": np.array(passes)}
    return {each.name: feed[each.name] for each in session.get_inputs()}


def compared(arms: Mapping[str, Runs]) -> pd.DataFrame:
    """Every form of every arm as a row; ``arms``: name → runs of one task, measured by :func:`deployed` and :func:`times`.

    Columns: ``arm``, ``form``, ``data``; ``accuracy``, ``bytes``, ``ms_one``, ``ms_in_batch`` and ``whole_bytes``, the bytes
    in float32 (means over seeds);
    ``difference``: the accuracy minus that of the same arm in float32 (0.01 = one percentage point) with ``low`` and ``high``
    (95 % interval over new seeds and new texts), ``n_seeds`` and ``n_items`` (texts); ``device``.
    """
    rows = []
    for arm, runs in arms.items():
        costs = runs.part("deployed").merge(runs.part("deployed_times"), on=["key", "form"])
        labels = [table.sort_values("row") for _, table in runs.part("deployed_predictions").groupby("key", sort=False)]
        right = {form: np.stack([table[form] == table["label"] for table in labels]) for form in FORMS}
        for form in FORMS:
            mean = costs[costs["form"] == form][["bytes", "ms_one", "ms_in_batch"]].mean()
            difference = paired_difference(right[form], right[FLOAT])._asdict()
            about = {"arm": arm, "form": form, "data": runs[0].metrics["data"], "accuracy": right[form].mean()}
            whole = costs.loc[costs["form"] == FLOAT, "bytes"].mean()
            rows.append(about | mean.to_dict() | {"whole_bytes": whole} | difference | {"device": costs["device"].iloc[0]})
    return pd.DataFrame(rows)


def rounding(arms: Mapping[str, Runs]) -> pd.DataFrame:
    """The error of rounding after each number of passes, mean over seeds: ``arm, passes, error, n_seeds``."""
    tables = [runs.part("rounding").assign(arm=arm) for arm, runs in arms.items()]
    if not tables:
        return pd.DataFrame()
    errors = pd.concat(tables).groupby(["arm", "passes"], sort=False)["error"]
    return errors.agg(error="mean", n_seeds="size").reset_index()
