"""What a comparison has so far: the finished candidates, why others are left out, and the learning curves."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from rtxlib.atomic import replacing
from rtxstudy.questions.your_texts import choice, finished_candidates, plans
from rtxstudy.questions.your_texts.candidates import NAMED, Candidate, Plan
from rtxstudy.questions.your_texts.clock import Clock
from rtxstudy.questions.your_texts.finished_candidates import Entry
from rtxstudy.questions.your_texts.texts import Texts

MOST_OF_A_DOUBLING = 0.05  # of the score, that is believed of twice the rows; a curve of few texts is rough


@dataclass
class Found:
    """What came of some candidates, in this process or in another.

    Attributes:
        entries: the finished candidates by name
        left_out: name → why, in a sentence
        late: those for which there was no time
        points: of the learning curves: name, rows, score, and the found labels of :attr:`Race.curve_judged`
    """

    entries: dict[str, Entry] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    late: set[str] = field(default_factory=set)
    points: list[tuple[str, int, float, np.ndarray]] = field(default_factory=list)


@dataclass(frozen=True)
class Outlook:
    """What more minutes are expected to bring, where the most promising candidate could not be trained whole.

    Attributes:
        model: the candidate
        minutes: with which it is trained whole
        gain: of the score; None: nothing is known
        source: where the gain is known from, as the beginning of a sentence
        train_texts: that it then learns from
    """

    model: str
    minutes: int
    gain: float | None
    source: str
    train_texts: int


class Race(Found):
    """A comparison under way; :func:`rtxstudy.questions.your_texts.race.run` runs it.

    Args:
        texts: what is compared on
        folder: where everything finished is kept
        clock: the time that there is

    Attributes:
        curves: whether candidates get learning curves
        quiet: whether nothing else computed on this machine, so that a time can be measured on it
        needed: name → seconds of its whole training, of those that could not be trained whole
        outlook: what more minutes are expected to bring; None: nothing
        favourite: the network that public files of about this size let expect to win, as it was trained; "": there is none
        train: (training rows,) in a random order; fewer rows are the first of these
        fold: (rows,) the fold of each row of the texts
    """

    curves = True

    def __init__(self, texts: Texts, folder: Path, clock: Clock) -> None:
        super().__init__()
        folder.mkdir(parents=True, exist_ok=True)
        self.texts, self.folder, self.clock = texts, folder, clock
        self.quiet = True
        self.needed: dict[str, float] = {}
        self.outlook: Outlook | None = None
        self.favourite = ""
        train = texts.rows("train")
        self.train = train[np.random.default_rng(0).permutation(len(train))]
        self.fold = texts.table["fold"].to_numpy()

    def finish(self, entry: Entry) -> None:
        """Add a finished candidate, and say what it reached."""
        self.entries[entry.name] = entry
        reached = self.score(entry.judged, self.texts.judged)
        self.clock.announce(f"{entry.name:22} {reached:.3f} {self.texts.judged_by} on {len(self.texts.judged):,} held-out texts")

    def add(self, other: Found) -> None:
        """Add what another process has found."""
        for entry in other.entries.values():
            self.finish(entry)
        self.left_out |= other.left_out
        self.late |= other.late
        self.points += other.points

    def leave_out(self, name: str, why: str, late: bool = False) -> None:
        self.left_out[name] = why
        if late:
            self.late.add(name)

    @property
    def partial(self) -> dict[str, int]:
        """Name → rows that a finished candidate learned from, where the time was too short for all."""
        return {name: entry.rows for name, entry in self.entries.items() if entry.rows < len(self.train)}

    @property
    def shortened(self) -> dict[str, str]:
        """Name → how its training on all rows was shorter than a whole one."""
        whole = {name: entry for name, entry in self.entries.items() if entry.rows >= len(self.train)}
        ways = {name: plans.shortened(entry.plan, NAMED[name], entry.rows) for name, entry in whole.items()}
        return {name: way for name, way in ways.items() if way}

    @property
    def ended(self) -> str:
        """ "" when all was done, "time" or "asked"."""
        return self.clock.ended or ("time" if self.partial or self.late or self.shortened else "")

    @property
    def results(self) -> Path:
        return self.folder / "results"

    @property
    def folds(self) -> list[int]:
        """The folds of a cross-validation; none where there is a validation split."""
        return np.unique(self.fold[self.train]).tolist() if self.texts.cross_validated else []

    @property
    def not_tried(self) -> list[str]:
        """The candidates that more time would have trained."""
        return [name for name in self.left_out if name in self.late]

    def key(self, candidate: Candidate, plan: Plan) -> str:
        return finished_candidates.key(
            name=candidate.name, texts=self.texts.fingerprint, plan=asdict(plan), unbalanced=self.texts.unbalanced
        )

    def find(self, candidate: Candidate, plan: Plan) -> Entry | None:
        """A finished candidate that was trained by this plan."""
        return finished_candidates.find(self.results, self.key(candidate, plan))

    # ------------------------------------------------------------------------------------------------------------ plans

    @property
    def _plans_file(self) -> Path:
        return self.folder / f"plans-{self.texts.fingerprint}.json"

    def begun(self, candidate: Candidate) -> list[Plan]:
        """The plans by which a training of this candidate has begun, in this call or an earlier one."""
        if not self._plans_file.is_file():
            return []
        of_names = json.loads(self._plans_file.read_text(encoding="utf-8"))
        return [Plan(**plan) for plan in of_names.get(candidate.name, [])]

    def begin(self, candidate: Candidate, plan: Plan) -> None:
        """Note that a training begins, so that a later call goes on with it."""
        if plan in self.begun(candidate):
            return
        of_names = json.loads(self._plans_file.read_text(encoding="utf-8")) if self._plans_file.is_file() else {}
        of_names.setdefault(candidate.name, []).append(asdict(plan))
        with replacing(self._plans_file) as part:
            part.write_text(json.dumps(of_names), encoding="utf-8")

    # ------------------------------------------------------------------------------------------------------------ scores

    def score(self, p: np.ndarray, rows: np.ndarray) -> float:
        """As :func:`choice.score`. p: (rows, labels)."""
        return choice.score(self.texts, p, rows)

    @property
    def curve_judged(self) -> np.ndarray:
        """The rows by which points of a learning curve are judged; in cross-validation those of the first fold."""
        judged = self.texts.judged
        return judged[self.fold[judged] == 0] if self.texts.cross_validated else judged

    def gain_of_a_doubling(self) -> float | None:
        """What the cheap candidates' scores gained at last from twice the rows, on average; None without learning curves."""
        gains = []
        for _, part in self.curve.groupby("model"):
            last = part.sort_values("rows").tail(2)
            if len(last) == 2:
                gains.append(np.diff(last["score"])[0] / np.diff(np.log2(last["rows"]))[0])
        return float(np.clip(np.mean(gains), 0, MOST_OF_A_DOUBLING)) if gains else None

    def point(self, name: str, rows: int, p: np.ndarray) -> None:
        """Note what a candidate reached after so many rows. p: (:attr:`curve_judged`, labels)."""
        self.points.append((name, rows, self.score(p, self.curve_judged), p.argmax(axis=1)))

    @property
    def curve(self) -> pd.DataFrame:
        """Columns model, rows (learned from), score, and of each model's last point what it gained over the one before.

        The gain is of the score, with its 95 % interval over groups of texts: gain, low, high. It is NaN elsewhere.
        """
        rows, group = [], self.texts.table["group"].to_numpy()[self.curve_judged]
        points = {(name, count): (score, guesses) for name, count, score, guesses in self.points}
        for name in dict.fromkeys(name for name, _ in points):
            counts = sorted(count for model, count in points if model == name)
            for count in counts:
                gain = (np.nan,) * 3
                if count == counts[-1] and len(counts) > 1 and len(np.unique(group)) > 1:
                    after, before = (points[name, number][1] for number in (count, counts[-2]))
                    gain = choice.difference(self.texts, after, before, self.curve_judged)
                rows.append((name, count, points[name, count][0], *gain))
        return pd.DataFrame(rows, columns=["model", "rows", "score", "gain", "low", "high"])
