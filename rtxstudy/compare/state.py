"""What a comparison has so far: the finished candidates, why others are left out, and the learning curves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import f1_score

from rtxstudy.compare import kept
from rtxstudy.compare.candidates import Candidate
from rtxstudy.compare.clock import Clock
from rtxstudy.compare.kept import Entry
from rtxstudy.compare.texts import Texts
from rtxstudy.evaluation.statistics import by_cluster, mean_difference


class Race:
    """A comparison under way; :func:`rtxstudy.compare.race.run` runs it.

    Args:
        texts: what is compared on
        folder: where everything finished is kept
        minutes: how long to train
        say: is called with one line of progress at a time

    Attributes:
        entries: the finished candidates by name
        left_out: name → why, in a sentence
        late: those for which there was no time; some of them may have been trained on fewer rows
        partial: name → the rows that a finished candidate learned from, where the time was too short for all
        quiet: whether no training may still run on this machine, so that a time can be measured on it
        train: (training rows,) in a random order; fewer rows are the first of these
        fold: (rows,) the fold of each row of the texts
    """

    def __init__(
        self, texts: Texts, folder: Path, minutes: float, say: Callable[[str], None] = lambda line: None
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.texts, self.folder, self.clock = texts, folder, Clock(minutes, folder / "stop", say)
        self.entries: dict[str, Entry] = {}
        self.left_out: dict[str, str] = {}
        self.late: set[str] = set()
        self.partial: dict[str, int] = {}
        self.quiet = True
        self.points: list[tuple[str, int, float, np.ndarray]] = []  # with the found labels of :attr:`curve_judged`
        train = texts.rows("train")
        self.train = train[np.random.default_rng(0).permutation(len(train))]
        self.fold = texts.table["fold"].to_numpy()

    @property
    def ended(self) -> str:
        """ "" when all was done, "time" or "asked"."""
        return self.clock.ended or ("time" if self.partial else "")

    @property
    def results(self) -> Path:
        return self.folder / "results"

    @property
    def not_tried(self) -> list[str]:
        """The candidates that more time would have trained."""
        return [name for name in self.left_out if name in self.late]

    def key(self, candidate: Candidate, rows: int) -> str:
        return kept.key(name=candidate.name, texts=self.texts.fingerprint, rows=rows, unbalanced=self.texts.unbalanced)

    def find(self, candidate: Candidate, rows: int) -> Entry | None:
        """A finished candidate that learned from so many rows."""
        return kept.find(self.results, self.key(candidate, rows))

    def score(self, p: np.ndarray, rows: np.ndarray) -> float:
        """Macro-F1 where the labels are unbalanced, else accuracy. p: (rows, labels)."""
        numbers, found = self.texts.numbers(rows), p.argmax(axis=1)
        if self.texts.unbalanced:
            return float(f1_score(numbers, found, average="macro", zero_division=0))
        return float((numbers == found).mean())

    # ------------------------------------------------------------------------------------------------------------ learning curves

    @property
    def curve_judged(self) -> np.ndarray:
        """The rows by which points of a learning curve are judged; in cross-validation those of the first fold."""
        judged = self.texts.judged
        return judged[self.fold[judged] == 0] if self.texts.cross_validated else judged

    def point(self, name: str, rows: int, p: np.ndarray) -> None:
        """Note what a candidate reached after so many rows. p: (:attr:`curve_judged`, labels)."""
        self.points.append((name, rows, self.score(p, self.curve_judged), p.argmax(axis=1)))

    @property
    def curve(self) -> pd.DataFrame:
        """Columns model, rows (learned from), score, and of each model's last point what it gained over the one before.

        The gain is of accuracy, with its 95 % interval over groups of texts: gain, low, high. It is NaN elsewhere.
        """
        numbers, rows = self.texts.numbers(self.curve_judged), []
        group = self.texts.table["group"].to_numpy()[self.curve_judged]
        points = {(name, count): (score, found) for name, count, score, found in self.points}
        for name in dict.fromkeys(name for name, _ in points):
            counts = sorted(count for of, count in points if of == name)
            for count in counts:
                gain = (np.nan,) * 3
                if count == counts[-1] and len(counts) > 1 and len(np.unique(group)) > 1:
                    after, before = (points[name, number][1] == numbers for number in (count, counts[-2]))
                    gain = mean_difference(by_cluster((after.astype(float) - before)[None], group))[:3]
                rows.append((name, count, points[name, count][0], *gain))
        return pd.DataFrame(rows, columns=["model", "rows", "score", "gain", "low", "high"])
