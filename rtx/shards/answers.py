"""The model of a job, opened once: a function from texts to the columns that are added to them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rtx.export import opened
from rtx.shards.job import Job
from rtx.shards.piece import Columns
from rtxlib import checksums
from rtxlib.errors import InputError

if TYPE_CHECKING:
    from rtxlib.data.rows import Text
    from rtxlib.runs.store import Run

DECIDING = (".safetensors", "config.json", "tokenizer.json", "classifier.json")  # the files of a run that tell it from another
Answer = Callable[[list["Text"]], Columns]


def open_model(job: Job, threads: int = 0) -> Answer:
    """The columns of a piece as a function of its texts: ``predicted`` and ``p_<label>``, or ``embedding``.

    threads: of an exported graph; 0: all cores. Raises InputError when the model cannot be opened or is another than the job's.
    """
    if (here := version(job.command, job.model)) != job.version:
        raise InputError(f"{job.model} is another model here ({here}, not {job.version}); copy it to every machine.")
    return _classifier(job, threads) if job.command == "predict" else _embedder(job, threads)


def version(command: str, model: str) -> str:
    """What tells the model from another: the checksum of its graph or weights, its commit on the Hub, or the key of the run."""
    if exported := opened.find(model):
        return exported.version
    if command == "embed":
        from rtxlib.models import pretrained

        return pretrained.version(model)
    run = _run(model)
    sums = checksums.recorded(run.path) or {}  # of an earlier version, it has none
    weights = {name: digest for name, digest in sums.items() if name.endswith(DECIDING)}
    return f"{run.key} {hashlib.sha256(json.dumps(weights, sort_keys=True).encode()).hexdigest()[:16]}"


def _run(folder: str) -> Run:
    from rtxlib.runs import store

    run = store.load(Path(folder).parent, Path(folder).name)
    if run is None:
        raise InputError(f"There is no run in {folder}; it must lie where every machine sees it.")
    return run


def _classifier(job: Job, threads: int) -> Answer:
    way: dict[str, object] = {} if job.passes is None else {"recurrent_depth": job.passes}
    if job.early_exit is not None:
        from rtx.use import early_exit

        way["early_exit"] = early_exit(job.early_exit)
    if exported := opened.find(job.model, threads):
        names, probabilities = exported.spec["label_names"], exported.probabilities
    else:
        from rtx import use

        run = _run(job.model)
        names, probabilities = run.spec["label_names"], use.opened(run)

    def answer(texts: list[Text]) -> Columns:
        p = _finite(probabilities(texts, **way), job)
        return {"predicted": [names[i] for i in p.argmax(axis=1)]} | {f"p_{name}": p[:, i] for i, name in enumerate(names)}

    return answer


def _embedder(job: Job, threads: int) -> Answer:
    if exported := opened.find(job.model, threads):
        vectors = exported.embed
    else:
        from rtx.embedding import embed
        from rtxlib.data.tokenization import pretrained_tokenizer
        from rtxlib.models import pretrained

        encoder = pretrained.load(job.model, job.weights)
        tokenizer = pretrained_tokenizer(pretrained.find(job.model))
        vectors = lambda texts: embed(texts, encoder, tokenizer)  # noqa: E731
    return lambda texts: {"embedding": _finite(vectors(texts), job)}


def _finite(values: np.ndarray, job: Job) -> np.ndarray:
    if not np.isfinite(values).all():
        raise InputError(f"{job.model} answers with numbers that are not finite, so it is damaged; copy or make it again.")
    return values.astype(np.float32, copy=False)
