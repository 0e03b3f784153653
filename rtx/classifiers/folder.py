"""The folder of a classifier: ``classifier.json`` names its kind and settings, the other files are JSON and safetensors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from rtx.classifiers.encoders import Frozen, Static
from rtx.classifiers.network import Network
from rtx.classifiers.simple import Cascade, Majority
from rtx.classifiers.words import WordCounts
from rtxlib.checksums import regular
from rtxlib.data.rows import Text
from rtxlib.errors import InputError, fact
from rtxlib.runs.store import CLASSIFIER

KINDS: dict[str, Any] = {
    "majority": Majority,
    "words": WordCounts,
    "static": Static,
    "frozen": Frozen,
    "network": Network,
    "cascade": Cascade,
}


class Classifier(Protocol):
    """What every kind can do."""

    @property
    def labels(self) -> int:
        """How many labels it tells apart."""

    def probabilities(self, texts: Sequence[Text]) -> np.ndarray:
        """(texts, labels) of cleaned texts, or of pairs of them."""

    def save(self, folder: Path) -> dict:
        """Write its files into a folder that exists; returns its settings, the further arguments of ``load``."""


def save(classifier: Classifier, folder: Path) -> None:
    """Write a classifier into an empty folder."""
    kind = next(name for name, classes in KINDS.items() if isinstance(classifier, classes))
    settings = classifier.save(folder)
    (folder / CLASSIFIER).write_text(json.dumps({"kind": kind, **settings}, indent=1) + "\n", encoding="utf-8")


def load(folder: Path) -> Classifier:
    """The classifier that :func:`save` wrote. Raises InputError when a file is missing or cannot be read."""
    try:
        record = json.loads(regular(folder / CLASSIFIER).read_bytes())
        return KINDS[record.pop("kind")].load(folder, **record)
    except Exception as error:  # safetensors, json and transformers raise several kinds
        raise InputError(
            f"The classifier in {folder} cannot be read ({fact(error)}); make or copy it again."
        ) from error


def megabytes(folder: Path) -> float:
    """Megabytes (10⁶ bytes) of the files that a classifier is made of."""
    files = [path for path in folder.rglob("*") if path.suffix in (".json", ".safetensors", ".txt")]
    return sum(path.stat().st_size for path in files) / 1e6
