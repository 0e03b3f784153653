"""From a RunSpec to a finished run in the store, trained once; and a list of them, those that are missing trained first."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import os
import platform
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from filelock import Timeout

from rtxlib import paths
from rtxlib.data.batching import Tokens, batches, collate
from rtxlib.data.prepare import prepare
from rtxlib.data.prepared import Prepared
from rtxlib.errors import InputError
from rtxlib.models.heads import EncoderForSequenceClassification
from rtxlib.models.pretrained import load_classifier
from rtxlib.process import release_freed_memory
from rtxlib.runs import cluster, cost, executors, local, store
from rtxlib.runs.card import model_card
from rtxlib.runs.metrics import classification_report
from rtxlib.runs.spec import RunSpec, data_label
from rtxlib.runs.store import Run
from rtxlib.training import parallel
from rtxlib.training.device import DTYPES, device_name, pick_device, pick_precision
from rtxlib.training.loop import train
from rtxlib.training.predict import EVALUATION_TOKENS, cross_entropy, predict_logits

CLEANING = ("lowercase", "strip_html", "strip_urls", "squeeze_whitespace")
TURN_SECONDS = 60.0  # that process 0 waits for a run before it tells the others that it goes on waiting
LATENCY_TEXTS = 24  # texts timed one by one, and
LATENCY_ROUNDS = 3  # how often each
SATURATED_BATCHES = 2
EXECUTORS = {"local": local.train_all, "ray": cluster.train_all}  # by their names in executors.NAMES


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
    config = spec.config(len(data.tokenizer), data.tokenizer.pad_token_id, data.label_names)
    torch.manual_seed(spec.seed)
    return load_classifier(spec.model, config) if spec.pretrained else EncoderForSequenceClassification(config)


def train_run(
    spec: RunSpec, runs: Path, report: Callable[[str], None] = lambda line: None, patience: float = -1
) -> Run:
    """Train one run and put it into the store; a run that is there already is returned as it is.

    Two processes that want the same run wait for each other and train it once; those that were started together
    (``torchrun``) train it together, and each returns it. ``patience``: seconds to wait for another
    that has it in hand, without end when negative. Raises filelock.Timeout when they are over, and InputError for what the
    user can mend: unknown names, unreachable data, a diverged loss, a damaged run, a store that cannot be written, a full disk
    (what was trained is kept and gone on from).
    """
    data = prepare(spec.data, paths.prepared_dir())
    key, first, device = spec.key(data.fingerprint), parallel.rank() == 0, pick_device()
    if spec.processes != parallel.processes():
        raise InputError(
            f"{spec.title} is a run of {spec.processes} process{'es' * (spec.processes > 1)}, and {parallel.processes()} "
            f"started; use torchrun --nproc-per-node {spec.processes}."
        )

    def finished() -> Run | None:
        there = parallel.from_first(lambda: [float(store.load(runs, key) is not None)], 1, device)[0]
        return store.load(runs, key) if there else None

    if run := finished():  # asked before the lock, which a store that may only be read does not give
        return run
    with contextlib.ExitStack() as held:

        def take() -> bool:
            """Take the run's lock, in process 0; several come back and ask again, for torch ends who waits long for a message."""
            several = spec.processes > 1
            try:
                held.enter_context(store.hold(runs, key, TURN_SECONDS if several else patience, report))
            except Timeout:
                if not several:
                    raise
                return False
            return True

        while not parallel.from_first(lambda: [float(take())], 1, device)[0]:
            pass
        if run := finished():  # whoever had the lock before has trained it
            return run
        with store.writing(runs, key) if first else contextlib.nullcontext(store.partial(runs, key)) as folder:

            def note(line: str) -> None:
                if first:
                    (folder / store.PROGRESS).write_text(line, encoding="utf-8")
                    report(line)

            before = torch.get_num_threads()
            torch.set_num_threads(spec.threads)
            try:
                _train_into(folder, key, spec, data, note)
            finally:
                torch.set_num_threads(before)
                release_freed_memory()
        parallel.from_first(lambda: [0.0], 1, device)  # until process 0 has written the run
        return store.load(runs, key)  # type: ignore[return-value]


def _train_into(folder: Path, key: str, spec: RunSpec, data: Prepared, report: Callable[[str], None]) -> None:
    device = pick_device()
    on_gpu = device.type == "cuda"
    if on_gpu:
        torch.cuda.init()
        torch.cuda.empty_cache()  # what an earlier run of this process left would count as this one's
        torch.cuda.reset_peak_memory_stats(device)
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
    if parallel.rank() > 0:  # process 0 judges and writes
        return
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
        "threads": spec.threads,
        "processes": spec.processes,
        "torch": torch.__version__,
        "fingerprint": data.fingerprint,
        "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
    if on_gpu:  # what the allocator held, which is what other runs on the same GPU cannot have
        metrics["peak_memory_mb"] = torch.cuda.max_memory_reserved(device) / 2**20
        metrics["device_memory_mb"] = torch.cuda.get_device_properties(device).total_memory / 2**20
    model.to("cpu").save_pretrained(folder)
    data.tokenizer.save_pretrained(folder)
    (folder / "README.md").write_text(
        model_card(metrics, data.label_names, {step: getattr(spec.data, step) for step in CLEANING}), encoding="utf-8"
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
    (folder / store.PROGRESS).unlink(missing_ok=True)
    mode = (folder / "metrics.json").stat().st_mode  # the umask's; safetensors lets nobody but the owner read weights
    for file in folder.glob("*.safetensors"):
        file.chmod(mode)


def measure_latency(run: Run, test: Tokens, pad_id: int) -> Run:
    """Time a run's forward pass on texts of its test split, unless that was done, and note it in its metrics.

    Apart from training, because a clock means something only when nothing else runs. Adds ``ms_median`` and ``ms_p95``
    (batch of one), ``ms_per_text`` (full batches), ``latency_device`` and ``latency_threads``.
    """
    if run.path is None or "ms_median" in run.metrics:
        return run
    device = pick_device()
    precision = pick_precision(run.spec["recipe"]["precision"], device)
    model = EncoderForSequenceClassification.from_pretrained(run.path)
    chosen = np.linspace(0, len(test) - 1, min(LATENCY_TEXTS, len(test))).astype(int)  # spread over the split
    full = batches(test.lengths, EVALUATION_TOKENS, None, seed=None, epoch=0)
    middle = np.linspace(0, len(full) - 1, min(SATURATED_BATCHES, len(full)) + 2).round().astype(int)[1:-1]
    timing = cost.latency(
        model,
        [collate(test, chosen[i : i + 1], pad_id) for i in range(len(chosen))],
        [collate(test, full[i], pad_id) for i in middle],
        device,
        rounds=LATENCY_ROUNDS,
        autocast=None if precision == "fp32" else DTYPES[precision],
    )
    on = {"latency_device": device_name(device), "latency_threads": torch.get_num_threads()}
    metrics = run.metrics | timing | on
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
    executor: str | None = None,
) -> list[Run]:
    """All runs of ``specs``, in their order: those in the store as they are, the others trained first.

    ``results``: a profile's committed tables, read when the store lacks a run and training is refused. ``timed``: measure
    the latency of those that have none. ``executor``: who trains, "local" (:mod:`local`) or "ray" (:mod:`cluster`); without
    it ``RTX_EXECUTOR`` says who, else it is "local". Raises TrainingRefused when runs are missing and ``RTX_NO_TRAINING`` is
    set, and InputError for an unknown executor and for runs that failed.
    """
    train_all = EXECUTORS[executors.known(executor)]
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
        train_all(missing, runs, train_run, say)
    finished = []
    for spec, (key, run) in zip(specs, found, strict=True):
        run = run or store.load(runs, key)
        if timed and run.path is not None and "ms_median" not in run.metrics:
            data = prepare(spec.data, paths.prepared_dir())
            run = measure_latency(run, data.splits["test"], data.tokenizer.pad_token_id)
        finished.append(run)
    return finished
