"""Train one run and put it into the store."""

from __future__ import annotations

import contextlib
import datetime
import itertools
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from filelock import Timeout
from scipy.special import softmax

from rtxlib import paths
from rtxlib.data.clean import switches
from rtxlib.data.prepare import Prepared, prepare
from rtxlib.data.tokenization import load_tokenizer, special_ids
from rtxlib.errors import InputError
from rtxlib.models.config import ModelConfig
from rtxlib.models.convert import loop_config, to_loop
from rtxlib.models.heads import EncoderForSequenceClassification
from rtxlib.models.pretrained import load, with_head
from rtxlib.models.size import MATRICES, forward_flops, parameter_count, parameters, require_room, size_mb
from rtxlib.runs import seen, store
from rtxlib.runs.card import model_card
from rtxlib.runs.metrics import classification_report
from rtxlib.runs.pretraining import pretrain, reached
from rtxlib.runs.spec import RunSpec, check_weights, data_label
from rtxlib.runs.store import Run
from rtxlib.runs.trained import open_run, probabilities
from rtxlib.training import parallel
from rtxlib.training.device import DTYPES, device_name, pick_device, pick_precision, training_threads
from rtxlib.training.predict import cross_entropy, predict_logits
from rtxlib.training.recipe import Recipe
from rtxlib.training.step_rows import StepRows
from rtxlib.training.trainer import Trained, Trainer

TURN_SECONDS = 60.0  # seconds that process 0 waits for the lock between two messages to the other processes


def model_config(spec: RunSpec, data: Prepared) -> ModelConfig:
    """The configuration of the model that a run trains: that of :meth:`RunSpec.config`, made into a loop if the run says so."""
    config = spec.config(len(data.tokenizer), data.tokenizer.pad_token_id, data.label_names)
    if not spec.conversion:
        return config
    return loop_config(config, **{name: value for name, value in spec.conversion.items() if name != "start"})


def fresh_model(
    spec: RunSpec, data: Prepared, report: Callable[[str], None] = lambda line: None
) -> EncoderForSequenceClassification:
    """The model of a run before its first step. The seed decides its random weights. A missing pretraining is done first."""
    config = spec.config(len(data.tokenizer), data.tokenizer.pad_token_id, data.label_names)
    if spec.pretraining is not None:
        folder = pretrain(spec.pretraining, spec.pretraining.folder, report)
        torch.manual_seed(spec.seed)
        if load_tokenizer(folder).get_vocab() != data.tokenizer.get_vocab():
            raise InputError(f"{spec.title}: the data and the pretraining have different tokenizers; give both the same one.")
        return with_head(load(str(folder), config=config))
    torch.manual_seed(spec.seed)
    if not spec.pretrained:
        return EncoderForSequenceClassification(config)
    encoder = load(spec.model, config=config)
    report(f"{spec.model}: {encoder.loaded}")
    return with_head(to_loop(encoder, **spec.conversion) if spec.conversion else encoder)


def train_run(
    spec: RunSpec,
    runs: Path,
    report: Callable[[str], None] = lambda line: None,
    patience: float = -1,
    data: Prepared | None = None,
) -> Run:
    """Train one run and put it into the store. A run that is in the store already is not trained again.

    Two processes that want the same run wait for each other and train it once. Processes that were started together
    (``torchrun``) train it together, and each returns it.

    Args:
        spec: the run
        runs: the store
        report: is called with lines of progress
        patience: seconds to wait for another process that is training the run; negative: without end
        data: the prepared data of ``spec.data``; None: they are prepared here

    Raises:
        filelock.Timeout: another process is still training the run after ``patience`` seconds.
        InputError: something the user can mend, such as an unknown name, a recipe for pretrained weights on a model without
            them, data out of reach, a diverged loss, a damaged run, a store that cannot be written, or a full disk. What was
            trained so far is kept, and the next call resumes it.
    """
    if spec.pretraining is None:
        check_weights(spec.model, spec.recipe)
    data = data or prepare(spec.data, paths.prepared_dir())
    key, first = spec.key(data.fingerprint), parallel.rank() == 0
    if spec.processes != parallel.processes():
        wanted = "1 process" if spec.processes == 1 else f"{spec.processes} processes"
        raise InputError(
            f"{spec.title} is a run of {wanted}, and {parallel.processes()} started; "
            f"use torchrun --nproc-per-node {spec.processes}."
        )
    if run := _finished(runs, key):  # a read-only store cannot be locked, so look first
        return run
    _require_room(spec, data)
    with contextlib.ExitStack() as held:
        _take_lock(held, runs, key, patience, report)
        if run := _finished(runs, key):  # the process that held the lock before has trained it
            return run
        # Process 0 makes the folder in which the run is trained, and then makes it the run.
        place = store.writing(runs, key, report) if first else contextlib.nullcontext(store.partial(runs, key))
        with place as folder:

            def note(line: str) -> None:
                if first:
                    (folder / store.PROGRESS).write_text(line, encoding="utf-8")
                    report(line)

            with training_threads(spec.threads):
                _train_into(folder, key, spec, data, note)
        parallel.barrier()  # process 0 has written the run
        return store.load(runs, key)  # type: ignore[return-value]


def training_bytes(config: ModelConfig, recipe: Recipe, tokens: int, precision: str) -> tuple[int, int]:
    """Bytes of memory that a training needs at least: per parameter, and for the activations of a micro-batch of ``tokens``.

    A parameter takes 8 bytes, for its weight and for the best weights so far. If it is trained it takes 12 more, for its
    gradient and AdamW's two moments. A layer keeps for each token at least its input, both norms' output, queries, keys, values
    and the attended values (7d numbers), and what its feed-forward holds inside (km, see
    :func:`rtxlib.models.size.forward_flops`).
    """
    if recipe.freeze_encoder:
        return 8, 0
    layer = 7 * config.hidden_size + MATRICES[config.feedforward] * config.resolved_intermediate_size
    return 20, tokens * config.effective_depth * layer * DTYPES[precision].itemsize


def _require_room(spec: RunSpec, data: Prepared) -> None:
    """Raise InputError if the texts do not fit into the model, or the training not into the memory of this machine or its GPU."""
    device, split = pick_device(), data.splits["train"]
    if not len(split):  # told by the trainer
        return
    # The micro-batches of the first steps stand for all. Each of several processes takes its share of one.
    step_rows = StepRows(split, spec.recipe, spec.seed, device)
    first = itertools.islice(step_rows, 20)
    tokens = max(step_rows.computed(rows) for pieces in first for rows in pieces) // spec.processes
    config = model_config(spec, data)
    longest = max(int(tokens.lengths.max()) for tokens in data.splits.values() if len(tokens))
    if longest > config.max_position_embeddings:
        raise InputError(
            f"The longest text has {longest} tokens and the model {config.max_position_embeddings} positions; give it "
            f"max_position_embeddings={longest}, or cut the texts with --max-length (max_length in Python)."
        )
    each, activations = training_bytes(config, spec.recipe, tokens, pick_precision(spec.recipe.precision, device))
    advice = "take a smaller model"
    if activations > each * parameter_count(config)["total"]:
        advice += f", or smaller batches (batch_rows, batch_tokens) than of {tokens:,} tokens"
    require_room(spec.name, config, "training", each, activations, advice, device)


def _finished(runs: Path, key: str) -> Run | None:
    """The run if it is in the store. Process 0 looks and tells the others.

    Raises InputError when the run is damaged: it is neither trained again nor deleted unless its user deletes it.
    """

    def stored() -> bool:
        if (run := store.load(runs, key)) is None:
            return False
        open_run(run)
        store.verify(run, lambda name: name != store.CARD and not store.measured_later(name))
        return True

    return store.load(runs, key) if parallel.agree(stored) else None


def _take_lock(
    held: contextlib.ExitStack, runs: Path, key: str, patience: float, report: Callable[[str], None]
) -> None:
    """Take the run's lock in process 0, until ``held`` is closed.

    Process 0 polls, so no process waits longer than torch.distributed allows.
    """
    if parallel.processes() == 1:
        held.enter_context(store.hold(runs, key, patience, report))
        return

    def take() -> bool:
        try:
            held.enter_context(store.hold(runs, key, TURN_SECONDS, report))
        except Timeout:
            return False
        return True

    while not parallel.agree(take):
        pass


def _train_into(folder: Path, key: str, spec: RunSpec, data: Prepared, report: Callable[[str], None]) -> None:
    """Train a run, evaluate it on the test split, and write all its files into ``folder``."""
    device = pick_device()
    if device.type == "cuda":
        torch.cuda.init()
        torch.cuda.empty_cache()  # memory cached by an earlier run of this process must not count as this run's
        torch.cuda.reset_peak_memory_stats(device)
    model = fresh_model(spec, data, report)
    checkpoint = folder / "checkpoint.safetensors"
    splits = data.splits["train"], data.splits["validation"]
    taught = None if spec.teacher is None else _teaching(spec.teacher, folder.parent, data, report)
    ids = special_ids(data.tokenizer)
    trained = Trainer(model, *splits, spec.recipe, spec.seed, ids, device, checkpoint, report, taught).run()
    if parallel.rank() > 0:  # process 0 evaluates and writes
        return
    logits = predict_logits(model, data.splits["test"], data.tokenizer.pad_token_id, device, trained.precision)
    metrics = _metrics(spec, data, model, trained, logits, device)
    _write(folder, key, spec, data, model, trained, logits, metrics)
    checkpoint.unlink(missing_ok=True)
    (folder / store.PROGRESS).unlink(missing_ok=True)


def _teaching(teacher: RunSpec, runs: Path, data: Prepared, report: Callable[[str], None]) -> np.ndarray:
    """The teacher's logarithms of probabilities of the training texts, (training rows, labels).

    A teacher that is not in the store is trained first. Raises InputError when it knows other labels, or when it was trained on
    other data that hold a test text of these.
    """
    of_teacher = data if teacher.data == data.spec else prepare(teacher.data, paths.prepared_dir())
    run = train_run(teacher, runs, report, data=of_teacher)
    if of_teacher.label_names != data.label_names:
        raise InputError(
            f"The teacher knows the labels {', '.join(of_teacher.label_names)} and the data have {', '.join(data.label_names)}; "
            "take a teacher of the same labels."
        )
    if of_teacher.fingerprint != data.fingerprint:
        splits = seen.splits_of(run, data.texts("test"))
        if splits is None or (known := int((splits != "").sum())):
            many = "may have seen" if splits is None else f"has seen {known:,} of"
            raise InputError(f"The teacher {many} the test texts of these data, so its student's score would be too good.")
    return np.log(np.maximum(probabilities(run, data.texts("train")), np.finfo(np.float32).tiny))


def _metrics(
    spec: RunSpec,
    data: Prepared,
    model: EncoderForSequenceClassification,
    trained: Trained,
    logits: np.ndarray,
    device: torch.device,
) -> dict[str, Any]:
    """What a run is called, what it reached on the test split, and what it cost. logits: (test rows, labels)."""
    test, config, count = data.splits["test"], model.config, parameters(model)
    scores = classification_report(test.labels, logits.argmax(axis=1), data.label_names)
    best_row = trained.curve[trained.curve["epoch"] == trained.best_epoch].iloc[-1]
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
        "val_accuracy": float(best_row["val_accuracy"]),
        "val_loss": float(best_row["val_loss"]),
        "n_test": len(test),
        "parameters": count["total"],
        "embedding_parameters": count["embedding"],
        "non_embedding_parameters": count["non_embedding"],
        "size_mb": size_mb(model),
        "forward_flops": forward_flops(config, max(1, round(float(test.lengths.mean())))),
        "train_seconds": trained.seconds,
        "train_cpu_seconds": trained.cpu_seconds,
        "rows_per_second": trained.rows_per_second,
        "epochs": float(trained.curve["epoch"].iloc[-1]),
        "best_epoch": trained.best_epoch,
        "padding_share": trained.padding_share,
        "device": device_name(device),
        "machine": platform.machine(),
        "dtype": trained.precision,
        "threads": spec.threads,
        "processes": spec.processes,
        "torch": torch.__version__,
        "fingerprint": data.fingerprint,
        "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
    if spec.pretraining is not None:
        metrics |= reached(spec.pretraining)
    if device.type == "cuda":  # memory reserved by the allocator; other runs cannot use it
        metrics["peak_memory_mb"] = torch.cuda.max_memory_reserved(device) / 2**20
        metrics["device_memory_mb"] = torch.cuda.get_device_properties(device).total_memory / 2**20
    return metrics


def _write(
    folder: Path,
    key: str,
    spec: RunSpec,
    data: Prepared,
    model: EncoderForSequenceClassification,
    trained: Trained,
    logits: np.ndarray,
    metrics: dict[str, Any],
) -> None:
    """Write the files of a finished run: weights, tokenizer, model card, tables and records."""
    model.to("cpu").save_pretrained(folder)
    data.tokenizer.save_pretrained(folder)
    cleaning = switches(spec.data)
    (folder / store.CARD).write_text(model_card(metrics, data.label_names, cleaning, spec.data.pairs), encoding="utf-8")
    identity = {"key": key, "model": spec.name, "seed": spec.seed, "data": metrics["data"]}
    store.write_table(folder / "curves.parquet", trained.curve.assign(**identity))
    labels = data.splits["test"].labels
    predictions = pd.DataFrame({"row": np.arange(len(labels)), "label": labels, "prediction": logits.argmax(axis=1)})
    p = pd.DataFrame(softmax(logits, axis=1), columns=[f"p_{name}" for name in data.label_names])
    named = pd.DataFrame(identity, predictions.index)
    store.write_table(folder / "predictions.parquet", pd.concat([predictions, p, named], axis=1))
    seen.write(folder, [data.texts(split) for split in seen.SPLITS])
    store.write_json(folder / "spec.json", spec.canonical() | {"label_names": data.label_names})
    store.write_json(folder / "metrics.json", metrics)
    mode = (folder / "metrics.json").stat().st_mode  # safetensors writes mode 600; use the mode of the other files
    for file in folder.glob("*.safetensors"):
        file.chmod(mode)
