"""Training a candidate that is a network, as an ordinary run in a store of its own."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rtx import archive
from rtx.classifiers.network import Network
from rtxlib.data import audit, tokenization
from rtxlib.data.datasets import File
from rtxlib.data.prepare import Prepared, read, write
from rtxlib.data.rows import Rows
from rtxlib.errors import InputError
from rtxlib.models import pretrained
from rtxlib.runs.spec import RunSpec
from rtxlib.runs.train import train_run
from rtxlib.training.device import training_threads
from rtxstudy.questions.your_texts.candidates import Candidate, Plan
from rtxstudy.questions.your_texts.rows import CLEANING
from rtxstudy.questions.your_texts.texts import Texts


def prepare(texts: Texts, rows: dict[str, np.ndarray], tokenizer: str, max_length: int, folder: Path) -> Prepared:
    """The data of a run: token ids of the rows of each split, at most ``max_length`` of each text.

    tokenizer: a pretrained model's name, or "wordpiece" for a vocabulary of the training rows. Prepared once per ``folder``.
    """
    whole = max(len(rows["train"]), len(texts.rows("train")))
    spec = File(
        path=texts.name,
        text_column=texts.columns.text,
        text_pair_column=texts.columns.pair,
        label_column=texts.columns.label,
        max_length=max_length,
        tokenizer=tokenizer,
        train_fraction=round(len(rows["train"]) / whole, 4),
        **CLEANING,
    )
    named = repr([spec, texts.fingerprint, *((name, part.tolist()) for name, part in rows.items())])
    place = folder / hashlib.sha256(named.encode()).hexdigest()[:16]
    if (prepared_data := read(place, spec)) is not None:
        return prepared_data
    parts = [
        texts.table.iloc[index][[*texts.text_columns, "label"]].assign(domain="", split=name) for name, index in rows.items()
    ]
    table = pd.concat(parts, ignore_index=True)
    table["label"] = [texts.label_names[number] for number in table["label"]]
    data = Rows(table, texts.label_names)
    if "/" in tokenizer:
        chosen = tokenization.pretrained_tokenizer(pretrained.find(tokenizer))
    else:
        learnt = [text for column in data.text_columns for text in data.part("train")[column]]
        chosen = tokenization.train(learnt, spec.vocab_size, spec.lowercase)
    arrays = tokenization.tokenise(data, spec, chosen)
    provenance = {"source": texts.name, "revision": texts.fingerprint, "tokenizer": tokenizer, "notes": [], "revisions": {}}
    write(place, spec, data, arrays, chosen, provenance, pd.DataFrame(columns=audit.COLUMNS))
    prepared_data = read(place, spec)
    assert prepared_data is not None
    return prepared_data


@dataclass(frozen=True)
class Training:
    """A training of a network, complete: every process that sees its two folders can do it.

    Attributes:
        spec: the run
        data: the folder of its prepared data
        runs: the store
        answered: the splits whose texts the network answers in the end
    """

    spec: RunSpec
    data: Path
    runs: Path
    answered: tuple[str, ...]


@dataclass(frozen=True)
class Learnt:
    """What came of a training.

    Attributes:
        run: the folder of the run
        settings: how its network is opened: the further arguments of ``Network.load``
        answers: of each answered split the probabilities (rows, labels)
        seconds: of the training, whenever that was
        epochs: that it took
    """

    run: Path
    settings: dict[str, Any]
    answers: dict[str, np.ndarray]
    seconds: float
    epochs: float


def training(
    candidate: Candidate,
    plan: Plan,
    texts: Texts,
    rows: dict[str, np.ndarray],
    answered: tuple[str, ...],
    folder: Path,
) -> Training:
    """The training of a candidate by a plan, with its data prepared. rows: of each split. folder: for the data and the store."""
    tokenizer = candidate.model if candidate.pretrained else "wordpiece"
    data = prepare(texts, rows, tokenizer, plan.max_length, folder / "data")
    recipe = candidate.recipe(plan, texts.unbalanced)
    if texts.cross_validated and not candidate.pretrained:  # the rows that would end it are scored, or learned from
        recipe = dataclasses.replace(recipe, patience=None, keep="last")
    spec = RunSpec(
        candidate.model, data.spec, recipe, threads=plan.threads, conversion=dict(candidate.conversion)
    )
    return Training(spec, data.folder, folder / "runs", answered)


def train(training: Training, report: Callable[[str], None]) -> Learnt:
    """Train a network and let it answer; a run that is in the store already is not trained again.

    report: is called with lines of progress, and may raise to stop the training, which can then go on.
    """
    data = read(training.data, training.spec.data)
    if data is None:
        raise InputError(f"The prepared data in {training.data} are not whole; delete the folder and start again.")
    run = train_run(training.spec, training.runs, report, data=data)
    assert run.path is not None
    settings = {"max_length": training.spec.data.max_length, "precision": training.spec.recipe.precision}
    network = Network.load(run.path, **settings)
    answers = {"test": archive.answers(run)}
    with training_threads(training.spec.threads):
        for split in set(training.answered) - {"test"}:
            answers[split] = network.probabilities(data.texts(split))
    return Learnt(run.path, settings, answers, run.metrics["train_seconds"], run.metrics["epochs"])
