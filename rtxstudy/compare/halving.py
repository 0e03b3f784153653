"""Networks by successive halving: every one on a part of the rows, and the better half on all (Jamieson and Talwalkar 2016).

                    first round                     second round, for the better half
    one split       the first rows, a quarter       all rows, or as many as the time allows
    few rows        all folds but the first         every fold, and a last fit on all training rows

The networks of a round do not depend on one another. In this process they are trained one after another, and before each the
time that is left is looked at. On a Ray cluster all of a round are trained at the same time, so what there is time for is decided
before the round begins.
"""

from __future__ import annotations

import heapq
import json
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from rtxlib.atomic import replacing
from rtxlib.errors import InputError
from rtxstudy.compare import kept, networks
from rtxstudy.compare.candidates import CANDIDATES, NAMED, Candidate
from rtxstudy.compare.estimate import Estimate, minutes_needed
from rtxstudy.compare.networks import Learnt, Training
from rtxstudy.compare.state import Race

if TYPE_CHECKING:
    from rtxstudy.compare.on_ray import Cluster

FIRST_SHARE = 0.4  # of the time that is left, for the first round
FEWEST_FIRST = 250  # rows of the first round; where a quarter of the rows is fewer, there is none

Fold = int | None  # the fold that is held out of a training; None: none is, and it learns from the first training rows


class Halving:
    """The networks of a race. cluster: what trains them; None: this process."""

    def __init__(self, race: Race, estimate: Estimate, cluster: Cluster | None = None) -> None:
        self.race, self.texts, self.estimate, self.cluster = race, race.texts, estimate, cluster
        self.workers = cluster.workers if cluster else 1
        self.busy: list[float] = []  # on a cluster: for how many seconds the round keeps each worker busy
        self.learnt: dict[tuple[str, Fold, int], Learnt | InputError] = {}  # what the cluster has trained

    def run(self) -> None:
        race, cross = self.race, self.texts.cross_validated
        waiting = [c for c in CANDIDATES if c.kind == "network" and c.name not in race.left_out]
        n = len(race.train)
        first = n - n // 5 if cross else self.first(waiting)
        better = [candidate.name for candidate in waiting]
        if cross or first >= FEWEST_FIRST:
            scores: dict[str, float] = {}
            learn, folds = (self.one_fold, [0]) if cross else (self.trained, [None])
            for candidate, rows in self.round(waiting, lambda c: first if self.may(c, first, 1) else None, folds):
                self.attempt(candidate, lambda c=candidate, r=rows: scores.update({c.name: learn(c, r)}))
            better = sorted(scores, key=scores.__getitem__, reverse=True)[: -(-len(scores) // 2)]
            for name in scores.keys() - set(better) - race.entries.keys():
                race.left_out[name] = (
                    f"Its score after one fold, {scores[name]:.3f}, was in the lower half of the networks, so it was not trained "
                    "on the others."
                )
        folds = [*np.unique(race.fold[race.train]).tolist(), None] if cross else [None]
        for candidate, rows in self.round(map(NAMED.__getitem__, better), lambda c: self.most_rows(c, first), folds):
            if rows < n:
                race.partial[candidate.name] = rows
            self.attempt(candidate, lambda c=candidate, r=rows: self.trained(c, r))

    def round(
        self, candidates: Iterable[Candidate], rows: Callable[[Candidate], int | None], folds: list[Fold]
    ) -> Iterator[tuple[Candidate, int]]:
        """The networks of a round for which there is time, and how many rows each learns from.

        Here the time for a network is looked at when the one before has been trained. On a cluster all of them are trained
        before the first is given, and given are those that have ended when the time is over.

        Args:
            candidates: that take part
            rows: how many rows a candidate may learn from; None: there is no time for it
            folds: the trainings of each candidate
        """
        self.busy = [0.0] * self.workers
        asked = ((candidate, count) for candidate in candidates if (count := rows(candidate)) is not None)
        if self.cluster is None:
            yield from asked
            return
        asked = list(asked)
        self.learnt.update(self.cluster.train(self.trainings(asked, folds), self.race.clock))
        for candidate, count in asked:
            ended = all((candidate.name, fold, count) in self.learnt for fold in folds)
            if ended or self.race.find(candidate, count) is not None:
                yield candidate, count
        self.race.clock.check()

    def trainings(
        self, asked: list[tuple[Candidate, int]], folds: list[Fold]
    ) -> Iterator[tuple[tuple[str, Fold, int], Training]]:
        """What a cluster has to train for a round. Data that cannot be prepared are noted for :meth:`train`."""
        for candidate, count in asked:
            for fold in folds if self.race.find(candidate, count) is None else ():
                key = candidate.name, fold, count
                try:
                    yield key, self.plan(candidate, fold, count)
                except InputError as error:
                    self.learnt[key] = error

    def first(self, waiting: list[Candidate]) -> int:
        """The rows of the first round: a quarter, halved until it takes its share of the time.

        Later calls take the same, so that what is finished is found, unless there is time for more than twice as many.
        """
        race = self.race
        file = race.folder / f"first-{self.texts.fingerprint}.json"
        before = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else 0
        first, most = len(race.train) // 4, FIRST_SHARE * race.clock.left
        while first >= 2 * FEWEST_FIRST:
            seconds = [self.estimate.seconds(c, first) for c in waiting]
            if max(sum(seconds) / self.workers, *seconds, 0) <= most:
                break
            first //= 2
        if before and first <= 2 * before:
            return before
        if race.clock.left > 0:
            with replacing(file) as part:
                part.write_text(json.dumps(first), encoding="utf-8")
        return first

    def most_rows(self, candidate: Candidate, first: int) -> int | None:
        """How many rows a network learns from in the second round: all, or, without cross-validation, half and half again."""
        race, cross = self.race, self.texts.cross_validated
        rows, trainings = len(race.train), len(np.unique(race.fold[race.train])) if cross else 1
        while not self.may(candidate, rows, trainings):
            if cross or rows // 2 <= max(first, FEWEST_FIRST):
                if candidate.name in race.entries:
                    race.left_out.pop(candidate.name, None)
                    race.partial[candidate.name] = race.entries[candidate.name].rows
                return None
            rows //= 2
        race.left_out.pop(candidate.name, None)
        return rows

    def may(self, candidate: Candidate, rows: int, trainings: int) -> bool:
        """Whether a network is kept already, or may be trained in the time that is left. If not, the reason is noted.

        On a cluster the trainings of a round go to whatever worker is free first.
        """
        if self.race.find(candidate, rows) is not None:
            return True
        seconds, busy = self.estimate.seconds(candidate, rows), self.busy.copy()
        for _ in range(trainings):
            heapq.heapreplace(busy, busy[0] + seconds)
        if max(busy) <= self.race.clock.left:
            if self.cluster is not None:
                self.busy = busy
            return True
        self.race.left_out[candidate.name] = minutes_needed(max(busy))
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
        p = self.train(candidate, 0, rows).answers["test"]
        self.race.point(candidate.name, rows, p)
        return self.race.score(p, self.race.curve_judged)

    def plan(self, candidate: Candidate, fold: Fold, count: int) -> Training:
        """A training on all folds but one, whose texts it answers; or on the first ``count`` training rows."""
        race, texts = self.race, self.texts
        if fold is None:
            answered = ("test",) if texts.cross_validated else ("validation", "test")
            rows = {"train": race.train[:count], "validation": race.curve_judged, "test": texts.rows("test")}
        else:
            answered, held = ("test",), texts.judged[race.fold[texts.judged] == fold]
            rows = {"train": race.train[race.fold[race.train] != fold], "validation": held, "test": held}
        return networks.plan(candidate, texts, rows, answered, race.folder)

    def train(self, candidate: Candidate, fold: Fold, count: int) -> Learnt:
        """What a network has learnt: from the cluster, which has trained it, or by training it now."""
        clock = self.race.clock
        if self.cluster is not None:
            found = self.learnt[candidate.name, fold, count]
            if isinstance(found, InputError):
                raise found
            self.estimate.learn(candidate, found.rows, found.spent)
            return found
        clock.check()
        clock.progress(candidate.name, "preparing the texts")

        def report(line: str) -> None:
            clock.progress(candidate.name, line)
            clock.check()

        begun = time.monotonic()
        training = self.plan(candidate, fold, count)
        prepared = time.monotonic() - begun
        learnt = networks.train(training, report)
        self.estimate.learn(candidate, learnt.rows, prepared + learnt.spent)
        return learnt

    def trained(self, candidate: Candidate, count: int) -> float:
        """Keep a network that learns from the first ``count`` training rows; returns its score."""
        race, texts = self.race, self.texts
        entry, judged = race.find(candidate, count), texts.judged
        if entry is None:
            answers, seconds, of = {}, 0.0, race.fold[judged]
            if texts.cross_validated:
                answers["judged"] = np.zeros((len(judged), len(texts.label_names)))
                for fold in np.unique(of).tolist():
                    learnt = self.train(candidate, fold, count)
                    answers["judged"][of == fold] = learnt.answers["test"]
                    seconds += learnt.seconds
            learnt = self.train(candidate, None, count)
            if not texts.cross_validated:
                answers["judged"] = learnt.answers["validation"]
            answers["test"] = learnt.answers["test"]
            record = {
                "name": candidate.name,
                "rows": count,
                "seconds": seconds + learnt.seconds,
                "settings": learnt.settings,
            }
            entry = kept.put(race.results, race.key(candidate, count), learnt.run, answers, record)
        race.entries[candidate.name] = entry
        if not texts.cross_validated:
            race.point(candidate.name, count, entry.judged)
        return race.score(entry.judged, judged)
