"""The most frequent label for every text, and a cascade: a cheap classifier answers where it is sure, another elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rtxlib.data.rows import Text

if TYPE_CHECKING:
    from rtx.classifiers.folder import Classifier


@dataclass(frozen=True)
class Majority:
    """The shares (labels,) of the labels in training, as the answer to every text."""

    shares: list[float]

    @property
    def labels(self) -> int:
        return len(self.shares)

    def probabilities(self, texts: Sequence[Text]) -> np.ndarray:
        return np.tile(np.asarray(self.shares), (len(texts), 1))

    def save(self, folder: Path) -> dict:
        return {"shares": self.shares}

    @classmethod
    def load(cls, folder: Path, shares: list[float]) -> Majority:
        return cls(shares)


@dataclass(frozen=True)
class Cascade:
    """``first`` answers a text whose largest probability is at least ``threshold``, and ``second`` all others."""

    first: Classifier
    second: Classifier
    threshold: float

    @property
    def labels(self) -> int:
        return self.first.labels

    def probabilities(self, texts: Sequence[Text]) -> np.ndarray:
        p = self.first.probabilities(texts)
        unsure = np.flatnonzero(p.max(axis=1) < self.threshold)
        if len(unsure):
            p[unsure] = self.second.probabilities([texts[row] for row in unsure])
        return p

    def save(self, folder: Path) -> dict:
        from rtx.classifiers.folder import save

        for name, part in (("first", self.first), ("second", self.second)):
            (folder / name).mkdir()
            save(part, folder / name)
        return {"threshold": self.threshold}

    @classmethod
    def load(cls, folder: Path, threshold: float) -> Cascade:
        from rtx.classifiers.folder import load

        return cls(load(folder / "first"), load(folder / "second"), threshold)
