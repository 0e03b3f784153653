"""Networks by successive halving: every one on a part of the rows, and the better half on all (Jamieson and Talwalkar 2016).

In cross-validation the first round is one fold. The second round takes all rows, or as many as the time allows.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from rtxlib.classifiers.network import Network
from rtxlib.errors import InputError
from rtxlib.runs.store import Run
from rtxstudy.compare import kept, networks
from rtxstudy.compare.candidates import CANDIDATES, NAMED, Candidate
from rtxstudy.compare.estimate import Estimate, minutes_needed
from rtxstudy.compare.state import Race

FIRST_SHARE = 0.4  # of the time that is left, for the first round
FEWEST_FIRST = 250  # rows of the first round; where a quarter of the rows is fewer, there is none


class Halving:
    """The networks of a race."""

    def __init__(self, race: Race, estimate: Estimate) -> None:
        self.race, self.texts, self.estimate = race, race.texts, estimate

    def run(self) -> None:
        race, cross = self.race, self.texts.cross_validated
        waiting = [c for c in CANDIDATES if c.kind == "network" and c.name not in race.left_out]
        n = len(race.train)
        first = n - n // 5 if cross else self.first(waiting)
        better = [candidate.name for candidate in waiting]
        if cross or first >= FEWEST_FIRST:
            scores: dict[str, float] = {}
            learn = self.one_fold if cross else self.trained
            for candidate in waiting:
                if self.may(candidate, first, 1):
                    self.attempt(candidate, lambda c=candidate: scores.update({c.name: learn(c, first)}))
            better = sorted(scores, key=scores.__getitem__, reverse=True)[: -(-len(scores) // 2)]
            for name in scores.keys() - set(better) - race.entries.keys():
                race.left_out[name] = f"After one fold of the rows ({scores[name]:.3f}) it was in the lower half."
        folds = len(np.unique(race.fold[race.train])) if cross else 1
        for candidate in map(NAMED.__getitem__, better):
            rows = n
            while not cross and not self.may(candidate, rows, 1) and rows // 2 > max(first, FEWEST_FIRST):
                rows //= 2
            if self.may(candidate, rows, folds):
                race.left_out.pop(candidate.name, None)
                if rows < n:
                    race.partial[candidate.name] = rows
                self.attempt(candidate, lambda c=candidate, r=rows: self.trained(c, r))
            elif candidate.name in race.entries:
                race.left_out.pop(candidate.name, None)

    def first(self, waiting: list[Candidate]) -> int:
        """The rows of the first round: a quarter, halved until it takes its share of the time.

        Later calls take the same, so that what is finished is found, unless there is time for more than twice as many.
        """
        race = self.race
        file = race.folder / f"first-{self.texts.fingerprint}.json"
        before = int(file.read_text(encoding="utf-8")) if file.is_file() else 0
        first, most = len(race.train) // 4, FIRST_SHARE * race.clock.left
        while first >= 2 * FEWEST_FIRST and sum(self.estimate.seconds(c, first) for c in waiting) > most:
            first //= 2
        if before and first <= 2 * before:
            return before
        if race.clock.left > 0:
            file.write_text(str(first), encoding="utf-8")
        return first

    def may(self, candidate: Candidate, rows: int, trainings: int) -> bool:
        """Whether a network is kept already, or may be trained in the time that is left. If not, the reason is noted."""
        if self.race.find(candidate, rows) is not None:
            return True
        seconds = trainings * self.estimate.seconds(candidate, rows)
        if seconds <= self.race.clock.left:
            return True
        self.race.left_out[candidate.name] = minutes_needed(seconds)
        self.race.late.add(candidate.name)
        return False

    def attempt(self, candidate: Candidate, train: Callable[[], object]) -> None:
        """Train, and leave out a candidate whose training the machine or the data do not allow, such as a diverged loss."""
        try:
            train()
        except InputError as error:
            self.race.left_out[candidate.name] = str(error)

    def one_fold(self, candidate: Candidate, rows: int) -> float:
        """The score of a network that learns from all folds but the first."""
        judged = self.race.curve_judged
        p, _ = self.fold(candidate, 0, judged)
        self.race.point(candidate.name, rows, p)
        return self.race.score(p, judged)

    def fold(self, candidate: Candidate, fold: int, held: np.ndarray) -> tuple[np.ndarray, float]:
        """Probabilities of a fold's rows by a network that has not seen them, and the seconds of its training."""
        train = self.race.train
        rows = {"train": train[self.race.fold[train] != fold], "validation": held, "test": held}
        network, run = self.train(candidate, rows)
        return network.probabilities(self.texts.texts(held)), run.metrics["train_seconds"]

    def train(self, candidate: Candidate, rows: dict[str, np.ndarray]) -> tuple[Network, Run]:
        clock = self.race.clock
        clock.check()
        clock.progress(candidate.name, f"learning from {len(rows['train']):,} texts")

        def report(line: str) -> None:
            clock.progress(candidate.name, line)
            clock.check()

        begun = time.monotonic()
        network, run = networks.train(candidate, self.texts, rows, self.race.folder, report)
        self.estimate.learn(candidate, len(rows["train"]), time.monotonic() - begun)
        return network, run

    def trained(self, candidate: Candidate, count: int) -> float:
        """Keep a network that learns from the first ``count`` training rows; returns its score."""
        race, texts = self.race, self.texts
        entry, judged = race.find(candidate, count), texts.judged
        if entry is None:
            answers, seconds, of = {}, 0.0, race.fold[judged]
            if texts.cross_validated:
                answers["judged"] = np.zeros((len(judged), len(texts.label_names)))
                for fold in np.unique(of):
                    answers["judged"][of == fold], spent = self.fold(candidate, fold, judged[of == fold])
                    seconds += spent
            held = judged[of == 0] if texts.cross_validated else judged
            rows = {"train": race.train[:count], "validation": held, "test": texts.rows("test")}
            network, run = self.train(candidate, rows)
            if not texts.cross_validated:
                answers["judged"] = network.probabilities(texts.texts(judged))
            answers["test"] = network.probabilities(texts.texts(rows["test"]))
            record = {"name": candidate.name, "rows": count, "seconds": seconds + run.metrics["train_seconds"]}
            entry = kept.put(race.results, race.key(candidate, count), network, answers, run.path, record)
        race.entries[candidate.name] = entry
        if not texts.cross_validated:
            race.point(candidate.name, count, entry.judged)
        return race.score(entry.judged, judged)
