"""From a RunSpec to a finished run in the store; many of them side by side, each trained once."""

from __future__ import annotations

import dataclasses
import datetime
import os
import platform
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from rtxlib import paths
from rtxlib.data.batching import Tokens, batches, collate
from rtxlib.data.prepare import prepare
from rtxlib.data.prepared import Prepared
from rtxlib.errors import InputError
from rtxlib.evaluation import cost
from rtxlib.evaluation.metrics import classification_report
from rtxlib.experiments import store
from rtxlib.experiments.card import model_card
from rtxlib.experiments.spec import RunSpec, data_label
from rtxlib.experiments.store import Run
from rtxlib.models.heads import EncoderForSequenceClassification
from rtxlib.models.pretrained import load_classifier
from rtxlib.training.device import DTYPES, autocast, device_name, pick_device, pick_precision
from rtxlib.training.loop import train
from rtxlib.training.predict import EVALUATION_TOKENS, cross_entropy, predict_logits

PROGRESS = "progress.txt"  # the last line a training reported, in its partial folder
CLEANING = ("lowercase", "strip_html", "strip_urls", "squeeze_whitespace")
LATENCY_TEXTS = 24  # texts timed one by one, and
LATENCY_ROUNDS = 3  # how often each
SATURATED_BATCHES = 2


class TrainingRefused(InputError):
    """Runs are missing and training is switched off (``make figures``)."""


def softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities (rows, labels) of logits (rows, labels)."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def special_ids(data: Prepared) -> dict[str, int]:
    """The ids that training treats apart: padding, unknown, mask, and the two that frame a text."""
    tokenizer = data.tokenizer
    named = {
        "pad": tokenizer.pad_token_id,
        "unk": tokenizer.unk_token_id,
        "mask": tokenizer.mask_token_id,
        "cls": tokenizer.cls_token_id,
        "sep": tokenizer.sep_token_id,
    }
    return {name: number for name, number in named.items() if number is not None}


def fresh_model(spec: RunSpec, data: Prepared) -> EncoderForSequenceClassification:
    """The model of this run before its first step; the seed decides its weights."""
    config = spec.config(len(data.tokenizer), data.label_names)
    torch.manual_seed(spec.seed)
    return load_classifier(spec.model, config) if spec.pretrained else EncoderForSequenceClassification(config)


def train_run(spec: RunSpec, runs: Path, report: Callable[[str], None] = lambda line: None) -> Run:
    """Train one run and put it into the store; a run that is there already is returned as it is.

    Two processes that want the same run wait for each other and train it once. Raises InputError for what the user can
    mend: unknown names, unreachable data, a diverged loss, a full disk (what was trained is kept and gone on from).
    """
    data = prepare(spec.data, paths.prepared_dir())
    key = spec.key(data.fingerprint)
    with store.lock(runs, key):
        if run := store.load(runs, key):
            return run
        with store.writing(runs, key) as folder:

            def note(line: str) -> None:
                (folder / PROGRESS).write_text(line)
                report(line)

            _train_into(folder, key, spec, data, note)
        return store.load(runs, key)  # type: ignore[return-value]


def _train_into(folder: Path, key: str, spec: RunSpec, data: Prepared, report: Callable[[str], None]) -> None:
    device = pick_device()
    model = fresh_model(spec, data)
    checkpoint = folder / "checkpoint.safetensors"
    training = train(
        model,
        data.splits["train"],
        data.splits["validation"],
        spec.recipe,
        spec.seed,
        special_ids(data),
        device,
        checkpoint,
        report,
    )
    test = data.splits["test"]
    pad = data.tokenizer.pad_token_id
    logits = predict_logits(model, test, pad, device, training.precision)
    scores = classification_report(test.labels, logits.argmax(axis=1), data.label_names)
    kept = training.curve[training.curve["epoch"] == training.best_epoch].iloc[-1]
    config, count = model.config, cost.parameters(model)
    metrics = {
        "model": spec.name,
        "family": "pretrained" if spec.pretrained else config.family,
        "hidden_size": config.hidden_size,
        "num_hidden_layers": config.num_hidden_layers,
        "recurrent_depth": config.recurrent_depth,
        "effective_depth": config.effective_depth,
        "sharing": config.block_sharing if config.recurrent_depth > 1 else "none",
        "data": data_label(spec.data),
        "task": spec.data.task,
        "train_rows": len(data.splits["train"]),
        "train_fraction": spec.data.train_fraction,
        "lengths": spec.data.lengths,
        "recipe": spec.recipe.name,
        "seed": spec.seed,
        **{name: scores[name] for name in ("accuracy", "f1", "precision", "recall")},
        "test_loss": cross_entropy(logits, test.labels),
        "val_accuracy": float(kept["val_accuracy"]),
        "val_loss": float(kept["val_loss"]),
        "n_test": len(test),
        "parameters": count["total"],
        "embedding_parameters": count["embedding"],
        "non_embedding_parameters": count["non_embedding"],
        "size_mb": cost.size_mb(model),
        "forward_flops": cost.forward_flops(config, max(1, round(float(test.lengths.mean())))),
        "train_seconds": training.seconds,
        "train_cpu_seconds": training.cpu_seconds,
        "rows_per_second": training.rows_per_second,
        "epochs": float(training.curve["epoch"].iloc[-1]),
        "best_epoch": training.best_epoch,
        "padding_share": training.padding_share,
        "device": device_name(device),
        "machine": platform.machine(),
        "dtype": training.precision,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "fingerprint": data.fingerprint,
        "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
    model.to("cpu").save_pretrained(folder)
    data.tokenizer.save_pretrained(folder)
    (folder / "README.md").write_text(
        model_card(metrics, data.label_names, {step: getattr(spec.data, step) for step in CLEANING})
    )
    identity = {"key": key, "model": spec.name, "seed": spec.seed, "data": metrics["data"]}
    store.write_table(folder / "curves.parquet", training.curve.assign(**identity))
    predictions = pd.DataFrame({"row": np.arange(len(test)), "label": test.labels, "prediction": logits.argmax(axis=1)})
    for number, probability in enumerate(softmax(logits).T):
        predictions[f"p_{data.label_names[number]}"] = probability.astype(np.float32)
    store.write_table(folder / "predictions.parquet", predictions.assign(**identity))
    store.write_json(folder / "spec.json", spec.canonical() | {"label_names": data.label_names})
    store.write_json(folder / "metrics.json", metrics)
    checkpoint.unlink(missing_ok=True)
    (folder / PROGRESS).unlink(missing_ok=True)


def measure_latency(run: Run, test: Tokens, pad_id: int) -> Run:
    """Time a run's forward pass on texts of its test split, unless that was done, and note it in its metrics.

    Apart from training, because a clock means something only when nothing else runs. Adds ``ms_median`` and ``ms_p95``
    (batch of one), ``ms_per_text`` (full batches) and ``latency_threads``.
    """
    if run.path is None or "ms_median" in run.metrics:
        return run
    device = pick_device()
    precision = pick_precision(run.spec["recipe"]["precision"], device)
    model = EncoderForSequenceClassification.from_pretrained(run.path)
    chosen = np.linspace(0, len(test) - 1, min(LATENCY_TEXTS, len(test))).astype(int)  # spread over the split
    full = batches(test.lengths, EVALUATION_TOKENS, None, seed=None, epoch=0)
    middle = np.linspace(0, len(full) - 1, min(SATURATED_BATCHES, len(full)) + 2).round().astype(int)[1:-1]
    with autocast(precision, device):
        timing = cost.latency(
            model,
            [collate(test, chosen[i : i + 1], pad_id) for i in range(len(chosen))],
            [collate(test, full[i], pad_id) for i in middle],
            device,
            rounds=LATENCY_ROUNDS,
            autocast=None if precision == "fp32" else DTYPES[precision],
        )
    metrics = run.metrics | timing | {"latency_threads": torch.get_num_threads()}
    store.write_json(run.path / "metrics.json", metrics)
    return dataclasses.replace(run, metrics=metrics)


def lookup(specs: Sequence[RunSpec], runs: Path, results: Path | None = None) -> list[tuple[str, Run | None]]:
    """For each spec its key and, when the store or the committed results have it, its run."""
    fingerprints = {data: prepare(data, paths.prepared_dir()).fingerprint for data in {spec.data for spec in specs}}
    keys = [spec.key(fingerprints[spec.data]) for spec in specs]
    return [(key, store.load(runs, key) or (store.published(results, key) if results else None)) for key in keys]


def run(
    specs: Sequence[RunSpec],
    results: Path | None = None,
    report: Callable[[str], None] | None = None,
    timed: bool = True,
) -> list[Run]:
    """All runs of ``specs``, in their order: those in the store as they are, the others trained first.

    On a CPU each run has one core and as many run at once as there are cores, which for models this small is faster than
    one run on all cores; on a GPU they take turns. ``results``: a profile's committed tables, read when the store lacks a
    run and training is refused. ``timed``: measure the latency of those that have none. Raises TrainingRefused when runs
    are missing and ``RTX_NO_TRAINING`` is set.
    """
    runs = paths.runs_dir()
    say = report or (lambda line: print(line, flush=True))
    refused = bool(os.environ.get("RTX_NO_TRAINING"))
    found = lookup(specs, runs, results if refused else None)
    missing = {key: spec for spec, (key, run) in zip(specs, found, strict=True) if run is None}
    if missing and refused:
        raise TrainingRefused(
            f"{len(missing)} of {len(found)} runs are not in the store and training is switched off: "
            f"{', '.join(spec.title for spec in list(missing.values())[:3])}{' …' if len(missing) > 3 else ''}. "
            "Run the notebook or `rtx report` without --no-training first."
        )
    if missing:
        say(f"{len(missing)} runs to train, {len(found) - len(missing)} already in the store")
        jobs = 1 if pick_device().type == "cuda" else min(os.cpu_count() or 1, len(missing))
        if jobs == 1:
            for number, spec in enumerate(missing.values(), start=1):
                done = train_run(
                    spec, runs, lambda line, s=spec, n=number: say(f"[{n}/{len(missing)}] {s.title}: {line}")
                )
                say(_done(done, number, len(missing)))
        else:
            _train_side_by_side(missing, runs, jobs, say)
    finished = []
    for spec, (key, run) in zip(specs, found, strict=True):
        run = run or store.load(runs, key)
        if timed and run.path is not None and "ms_median" not in run.metrics:
            data = prepare(spec.data, paths.prepared_dir())
            run = measure_latency(run, data.splits["test"], data.tokenizer.pad_token_id)
        finished.append(run)
    return finished


def _done(run: Run, number: int, of: int) -> str:
    m = run.metrics
    title = f"{m['model']} on {m['data']}, seed {m['seed']}"
    return f"[{number}/{of}] {title}: accuracy {m['accuracy']:.3f} in {m['train_seconds']:.0f} s"


def _start_worker(threads: int) -> None:
    """In a worker process: its share of the cores, and no life after its parent."""
    torch.set_num_threads(threads)
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _train_side_by_side(missing: dict[str, RunSpec], runs: Path, jobs: int, say: Callable[[str], None]) -> None:
    """Train in worker processes; every few seconds say where they stand. The first failure stops the rest."""
    threads = max(1, (os.cpu_count() or 1) // jobs)
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_start_worker, initargs=(threads,))
    try:
        waiting = {pool.submit(train_run, spec, runs): spec for spec in missing.values()}
        done = 0
        while waiting:
            ready, _ = wait(waiting, timeout=10, return_when=FIRST_COMPLETED)
            for future in ready:
                del waiting[future]
                done += 1
                say(_done(future.result(), done, len(missing)))
            if not ready:
                for key, spec in missing.items():
                    file = runs / f"{key}.partial" / PROGRESS
                    if file.is_file():
                        say(f"[{done}/{len(missing)} done] {spec.title}: {file.read_text()}")
    except BrokenProcessPool as error:
        raise InputError(
            "A training process was ended from outside, most likely because memory ran out; what was trained is kept. "
            "Free some memory and run the same command again."
        ) from error
    except BaseException:
        for process in list(pool._processes.values()):  # the public way to stop them now comes with Python 3.14
            process.terminate()
        raise
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
