"""What is finished in a comparison, in a folder under its key, so that no candidate is trained twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from rtx.classifiers import folder as classifiers
from rtx.classifiers.folder import Classifier
from rtx.classifiers.network import Network, megabytes
from rtxlib.atomic import replacing, replacing_folder
from rtxlib.runs.store import hashed
from rtxstudy.questions.your_texts.candidates import Plan

GENERATION = 4  # raise it when a change of the code changes a candidate


@dataclass(frozen=True)
class Entry:
    """A finished candidate.

    Attributes:
        name: of the candidate
        plan: what it read in its training
        seconds: of its training, all folds together
        judged: probabilities (rows by which models are chosen, labels); in cross-validation by models that have not seen them
        test: probabilities (test rows, labels)
        mb: megabytes of its files
        folder: where it is kept
        run: of a network, the folder of its run, which holds its weights; settings: the further arguments of ``Network.load``
    """

    name: str
    plan: Plan
    seconds: float
    judged: np.ndarray
    test: np.ndarray
    mb: float
    folder: Path
    run: Path | None = None
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Training rows that it has seen."""
        return self.plan.rows

    def open(self) -> Classifier:
        return classifiers.load(self.folder) if self.run is None else Network.load(self.run, **self.settings)


def key(**what: Any) -> str:
    return hashed({"generation": GENERATION, **what})


def find(results: Path, key: str) -> Entry | None:
    """The entry of this key; None when there is none, or when it is damaged."""
    folder = results / key
    try:
        record = json.loads((folder / "record.json").read_text(encoding="utf-8"))
        answers = load_file(folder / "answers.safetensors")
        run, plan = record.pop("run"), Plan(**record.pop("plan"))
        entry = Entry(**record, **answers, plan=plan, folder=folder / "classifier", run=run and results.parent / run)
        return entry if any((entry.run or entry.folder).iterdir()) else None
    except (OSError, ValueError, KeyError, TypeError, SafetensorError):
        return None


def put(
    results: Path,
    key: str,
    classifier: Classifier | Path,
    answers: dict[str, np.ndarray],
    record: dict[str, Any],
) -> Entry:
    """Keep a finished candidate, whole or not at all.

    classifier: of a network, the folder of its run, which stays where it is. record: its name, plan and seconds, and of a
    network its settings.
    """
    with replacing_folder(results / key) as aside:
        (aside / "classifier").mkdir()
        if isinstance(classifier, Path):
            record = record | {"run": str(classifier.relative_to(results.parent)), "mb": megabytes(classifier)}
        else:
            classifiers.save(classifier, aside / "classifier")
            record = record | {"run": None, "mb": classifiers.megabytes(aside / "classifier")}
        save_file(
            {name: np.ascontiguousarray(p, dtype=np.float32) for name, p in answers.items()},
            aside / "answers.safetensors",
        )
        record = record | {"plan": asdict(record["plan"])}
        (aside / "record.json").write_text(json.dumps(record), encoding="utf-8")
    entry = find(results, key)
    assert entry is not None
    return entry


def vectors(
    file: Path, rows: int, width: int, make: Callable[[int], np.ndarray], enough: Callable[[int], bool]
) -> np.ndarray:
    """Vectors of the first rows, (at most ``rows``, width), made a piece at a time. What is made is kept, whatever ends it.

    make: from the number of the first missing row to the vectors of the next rows. enough: whether so many rows are enough.
    """
    try:
        earlier = load_file(file)["vectors"]
    except (OSError, SafetensorError):
        earlier = np.empty((0, width), np.float32)
    parts, count = [earlier], len(earlier)
    try:
        while count < rows and not enough(count):
            parts.append(make(count))
            count += len(parts[-1])
    finally:
        whole = np.concatenate(parts)
        if len(whole) > len(earlier):
            with replacing(file) as temporary:
                save_file({"vectors": whole}, temporary)
    return whole
