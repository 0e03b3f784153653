"""Which candidates are trained in the time given, in which order, and how long each.

Cheap candidates come first. The networks follow; those that did best on public files of about this size come first (``prior``).
The first network, the favourite, gets 60 % of the minutes if it can be trained whole in them, and another one can learn in the
rest. Otherwise the favourite gets nine tenths of the time that is left. What is computed beside it is counted off its time.
Choices are made on the validation rows alone, or by cross-validation. What is finished is kept, and the same command with more
minutes goes on from there.
"""

from __future__ import annotations

import contextlib
import dataclasses
import heapq
import math
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from rtxlib.errors import InputError, fact
from rtxstudy import checkpoints
from rtxstudy.questions.your_texts import finished_candidates, networks, plans, prior
from rtxstudy.questions.your_texts.beside import Beside, beside
from rtxstudy.questions.your_texts.candidates import (
    CANDIDATES,
    FINE_TUNED,
    FROZEN,
    MAJORITY,
    MINILM,
    NAMED,
    STATIC,
    TUNED,
    WORDS,
    Candidate,
    Plan,
)
from rtxstudy.questions.your_texts.clock import Clock, OutOfTime, Say, silent
from rtxstudy.questions.your_texts.fitted import FEWEST_EMBEDDED, FIT
from rtxstudy.questions.your_texts.networks import Learnt, Training
from rtxstudy.questions.your_texts.on_ray import Cluster, connected
from rtxstudy.questions.your_texts.state import Outlook, Race
from rtxstudy.questions.your_texts.texts import Texts
from rtxstudy.questions.your_texts.training_time import SHORTEST, START_SECONDS, Estimate
from rtxstudy.questions.your_texts.tuned import unfit, with_pairs

FAVOURITE_SHARE = 0.6  # of the minutes
NEXT_SHARE = 0.9  # of what is left, because a time is estimated
WORD_SECONDS = 3e-5  # of counting a word of a text, of one of so many fits with two labels
MORE_LABELS = 0.5  # of that time, for each further label
VECTOR_SECONDS = 1e-3  # of averaging the vectors of a text
Fold = int | None  # the fold that is held out of a training; None: none is, and it learns from the plan's rows


def run(
    texts: Texts,
    folder: Path,
    minutes: float,
    say: Say = silent,
    executor: str = "local",
    every: bool = False,
    spent: float = 0.0,
    max_mb: float | None = None,
) -> Race:
    """Train what the time allows. An interrupt or the end of the time leaves what is finished.

    Args:
        texts: what is compared on
        folder: where everything finished is kept
        minutes: how long to train
        say: is called with one line of progress at a time
        executor: what trains the networks, this process ("local") or a Ray cluster ("ray"); all else is done here
        every: whether candidates are trained, too, that did badly on public files of about this size
        spent: seconds of the minutes that are gone, or kept for what follows
        max_mb: megabytes of a model that may be taken; larger networks are trained with ``every`` alone

    Raises InputError when there is no cluster.
    """
    race = Race(texts, folder, Clock(minutes, folder / "stop", say, spent))
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(connected(folder / "runs")) if executor == "ray" else None
        other = stack.enter_context(beside(race))
        turns = Turns(race, other, cluster)
        try:
            turns.cheap()
            turns.networks(every, max_mb)
        except OutOfTime:
            pass
        except KeyboardInterrupt:  # in JupyterLab
            race.clock.ended = "asked"
            race.clock.stop_file.touch()
        turns.take_finished()
        race.quiet = cluster is None or cluster.idle()
    if race.clock.asked:  # perhaps while only the other process worked
        race.clock.ended = "asked"
    race.clock.stop_file.unlink(missing_ok=True)  # the wish is met, and a later call goes on
    why = "The comparison was stopped before it was trained." if race.clock.ended == "asked" else "The minutes were over."
    for candidate in CANDIDATES:
        if candidate.name not in race.entries and candidate.name not in race.left_out:
            race.leave_out(candidate.name, why, late=True)
    race.outlook = turns.outlook()
    race.favourite = "" if texts.pairs else turns.still_favourite()
    return race


class Turns:
    """The turns of the candidates of a race. other: what is fitted beside; cluster: what trains networks; None: this process."""

    def __init__(self, race: Race, other: Beside, cluster: Cluster | None = None) -> None:
        self.race, self.texts, self.other, self.cluster = race, race.texts, other, cluster
        self.estimate = Estimate(race.texts)
        self.trained: dict[tuple[str, Fold, Plan], Learnt | InputError] = {}  # by the cluster
        self.favourite = ""  # the network that is expected to win
        self.revived: set[str] = set()  # networks from scratch that got their turn because MiniLM failed; each gets one
        self.later: list[tuple[str, float]] = []  # cheap candidates for the other process, and their seconds

    @property
    def setting(self) -> tuple[int, int, float]:
        """Training rows, labels, and tokens of a text: what the table of public files is asked with."""
        return len(self.race.train), len(self.texts.label_names), self.estimate.tokens(prior.MAX_LENGTH)

    # ------------------------------------------------------------------------------------------------------------ cheap ones

    def cheap(self) -> None:
        """The majority class, counting words, and static word vectors: here, or after :meth:`networks` has measured this machine.

        The speed would be measured too low while another process works.
        """
        FIT[MAJORITY](self.race)
        fits = 2 + len(self.race.folds)  # with the learning curve
        labels = 1 + MORE_LABELS * (len(self.texts.label_names) - 2)
        costs = {WORDS: WORD_SECONDS * int(self.texts.words.sum()) * fits * labels}
        if why := checkpoints.out_of_reach(MINILM):
            for candidate in CANDIDATES:
                if candidate.pretrained:
                    self.race.leave_out(candidate.name, f"{fact(why)}.")
        else:
            costs[STATIC] = VECTOR_SECONDS * len(self.texts.table)
        for name, seconds in costs.items():
            if self.other.is_worth(seconds):
                self.later.append((name, seconds))
            else:
                self.other.fit(name, seconds)

    # ------------------------------------------------------------------------------------------------------------ networks

    def networks(self, every: bool, max_mb: float | None = None) -> None:
        """All others, in their order; without ``every`` neither those that public files speak against nor too large ones."""
        race, rows = self.race, len(self.race.train)
        waiting = [c.name for c in CANDIDATES if c.kind in ("tuned", "network", "vectors") and c.name != STATIC]
        waiting = [name for name in waiting if name not in race.left_out]
        if TUNED in waiting and (why := unfit(race)):
            race.leave_out(TUNED, why)
            waiting.remove(TUNED)
        may, left_out = prior.order(waiting, *self.setting)
        if not every:
            race.left_out |= left_out
        waiting = [*may, *left_out] if every else may
        if max_mb is not None and not every:
            for name in [name for name in waiting if self.estimate.megabytes(NAMED[name]) > max_mb]:
                race.leave_out(name, f"It has more than {max_mb:g} megabytes, which --max-mb excludes; --all trains it.")
                waiting.remove(name)
        try:
            self.measure(waiting)
        finally:  # also without a minute
            for name, seconds in self.later:
                self.other.fit(name, seconds)
        frozen = FROZEN in waiting
        waiting = [name for name in waiting if name != FROZEN]
        self.favourite = waiting[0] if waiting else ""
        embedding = self.estimate.seconds(NAMED[FROZEN], Plan(rows)) if frozen else 0.0
        lost = self.other.slowed(embedding)
        if frozen and (self.cluster is not None or not waiting or self.has_time(NAMED[self.favourite], lost)):
            self.other.fit(FROZEN, embedding)  # beside the networks
            frozen = False
        if self.cluster is not None:
            self.on_cluster([NAMED[name] for name in waiting])
            return
        favourite = True
        while waiting:
            self.other.collect()
            race.clock.check()
            candidate = NAMED[waiting.pop(0)]
            shares = favourite and self.has_time(candidate) and self.another_fits(waiting)
            most = self.share if shares else NEXT_SHARE * race.clock.left
            favourite = self.turn(candidate, most - self.other.borrowed) is None and favourite
            waiting += self.refuted(waiting)
        fewest = Plan(rows if self.texts.cross_validated else min(rows, FEWEST_EMBEDDED))
        if frozen and self.estimate.seconds(NAMED[FROZEN], fewest) < NEXT_SHARE * race.clock.left:
            self.other.fit(FROZEN, 0.0)  # here and now, with all threads; the time may leave rows out

    def measure(self, names: list[str]) -> None:
        """Measure the speed of this machine, and with how many threads it is highest, where one of the networks is MiniLM's."""
        clock, cores = self.race.clock, self.other.cores
        clock.check()
        if any(NAMED[name].pretrained for name in names):
            clock.progress("MiniLM", "measuring the speed of this machine")
            self.other.threads = self.estimate.measure(self.race.train, {cores, max(1, cores // 2)}, clock.check)

    @property
    def share(self) -> float:
        """Seconds that the favourite may use where they are enough for it (:meth:`has_time`)."""
        return min(FAVOURITE_SHARE * self.race.clock.seconds, self.race.clock.left)

    def has_time(self, candidate: Candidate, lost: float = 0.0) -> bool:
        """Whether the favourite's share of the minutes is enough for it: a longer training is expected to gain nothing.

        lost: seconds that it would lose to what is not begun yet.
        """
        plan = self.fitting(candidate, self.share - self.other.borrowed - lost)
        return plan is not None and self.loss(candidate, plan) <= plans.ALIKE

    def another_fits(self, names: list[str]) -> bool:
        """Whether one of these networks can be trained well enough in what the favourite leaves; else nobody would use it."""
        race, rows = self.race, len(self.race.train)
        seconds = NEXT_SHARE * (race.clock.left - self.share)
        found = [(NAMED[name], plans.choose(NAMED[name], rows, seconds, self.trainings, self.estimate)) for name in names]
        return any(plan is not None and self.loss(candidate, plan) <= prior.WITHIN for candidate, plan in found)

    def turn(self, candidate: Candidate, seconds: float) -> Plan | None:
        """Train a candidate if it fits into so many seconds. Returns its plan; None where it does not fit."""
        plan = self.plan(candidate, seconds)
        if plan is None:
            return None
        try:
            self.train_by(candidate, plan)
        except InputError as error:  # the machine or the data do not allow it, such as a diverged loss
            self.race.leave_out(candidate.name, str(error))
        return plan

    def take_finished(self) -> None:
        """Add the candidates that an earlier call has finished, and to whose turn this one did not come."""
        race = self.race
        for candidate in CANDIDATES:
            if candidate.name in race.entries or (candidate.name in race.left_out and candidate.name not in race.late):
                continue
            if finished := self.finished(candidate):
                self.train_by(candidate, finished[0])
                self.note_needed(candidate, finished[0])

    def outlook(self) -> Outlook | None:
        """What more minutes are expected to bring, where the favourite was not trained whole."""
        race, name, rows, source = self.race, self.favourite, len(self.race.train), "Public files suggest"
        if name not in race.needed:
            return None
        if name in race.entries:
            plan, slope = race.entries[name].plan, race.gain_of_a_doubling()
            scores = {one: race.score(entry.judged, self.texts.judged) for one, entry in race.entries.items()}
            expected = scores[name] + plans.loss(plan, NAMED[name], rows, self.estimate)
            if slope is not None and plan.rows < rows:  # the curve is of cheap models, and is believed of the next doubling alone
                source = "The learning curve suggests"
                expected += (slope - plans.HALF_THE_ROWS) * min(1.0, math.log2(rows / plan.rows))
            gain = max(0.0, expected - max(scores.values()))
        else:
            gains, right = prior.expected(*self.setting), {one: self.right(one) for one in race.entries}
            gain = max(0.0, gains[name] + right[WORDS] - max(right.values())) if name in gains and WORDS in right else None
        least = math.floor(race.clock.seconds / 60) + 1  # what is known to be too little is never advised
        minutes = max(least, math.ceil(race.needed[name] / FAVOURITE_SHARE / 60))
        return Outlook(name, minutes, gain, source, rows)

    def still_favourite(self) -> str:
        """The favourite, if public files expect it to be the best of the finished models as it was trained; "" if not."""
        gains = {
            name: gain - self.loss(NAMED[name], self.race.entries[name].plan)
            for name, gain in prior.expected(*self.setting).items()
            if name in self.race.entries
        }
        best = max(gains, key=lambda name: (gains[name], name), default="")
        return best if best == self.favourite else ""

    def right(self, name: str) -> float:
        """The accuracy of a finished candidate on the judged rows; public files are compared by it."""
        return float((self.race.entries[name].judged.argmax(axis=1) == self.texts.numbers(self.texts.judged)).mean())

    def refuted(self, waiting: list[str]) -> list[str]:
        """The networks from scratch that may win after all, because MiniLM is below counting words, as on another language.

        Where MiniLM learned from a part of the rows, it is compared with counting words on no more of them.
        """
        race = self.race
        if not {FINE_TUNED, WORDS} <= race.entries.keys():
            return []
        minilm, words = (race.score(race.entries[name].judged, self.texts.judged) for name in (FINE_TUNED, WORDS))
        if FINE_TUNED in race.partial:
            points = [(rows, score) for name, rows, score, _ in race.points if name == WORDS and rows <= race.partial[FINE_TUNED]]
            words = max(points, default=(0, 0.0))[1]
        scratch = [c.name for c in CANDIDATES if c.kind == "network" and not c.pretrained and c.name in race.left_out]
        again = [name for name in scratch if name not in self.revived]
        if minilm >= words or set(again) & (set(waiting) | race.late):
            return []
        self.revived |= set(again)
        for name in again:
            del race.left_out[name]
        return again

    # ------------------------------------------------------------------------------------------------------------ plans

    @property
    def trainings(self) -> int:
        """How often a candidate is trained: for each fold, and once on all rows."""
        return 1 + len(self.race.folds)

    def loss(self, candidate: Candidate, plan: Plan) -> float:
        """The score that a plan is expected to lose against the whole training on all rows."""
        return plans.loss(plan, candidate, len(self.race.train), self.estimate)

    def note_needed(self, candidate: Candidate, plan: Plan | None) -> None:
        """Note the seconds of a candidate's whole training, where its plan is not nearly as good as that."""
        if plan is None or self.loss(candidate, plan) > plans.ALIKE:
            whole = plans.whole(candidate, len(self.race.train))
            self.race.needed[candidate.name] = self.estimate.seconds(candidate, whole, self.trainings)

    def finished(self, candidate: Candidate) -> list[Plan]:
        """The plans of a candidate whose trainings are finished, in this call or an earlier one, the best first."""
        begun = dict.fromkeys([*self.race.begun(candidate), Plan(len(self.race.train))])
        found = [plan for plan in begun if self.race.find(candidate, plan) is not None]
        return sorted(found, key=lambda plan: self.loss(candidate, plan))

    def fitting(self, candidate: Candidate, seconds: float) -> Plan | None:
        """The plan by which a candidate learns most in so many seconds; None where none fits.

        A finished training is taken unless a better one fits. Beside a favourite that is finished, a candidate that would read so
        few rows that it is expected to fall far behind is not trained: its score would say nothing of it.
        """
        race, rows, finished = self.race, len(self.race.train), self.finished(candidate)
        begun = set(race.begun(candidate)) - set(finished)
        chosen = plans.choose(candidate, rows, seconds, self.trainings, self.estimate, begun)
        second = self.favourite in race.entries and candidate.name != self.favourite
        if chosen is not None and chosen.rows < rows and second and self.loss(candidate, chosen) > prior.WITHIN:
            chosen = None
        if finished and (chosen is None or self.loss(candidate, finished[0]) - plans.ALIKE <= self.loss(candidate, chosen)):
            chosen = finished[0]
        return chosen

    def plan(self, candidate: Candidate, seconds: float) -> Plan | None:
        """What a candidate is trained by; None where it does not fit, and then the reason is noted."""
        race, begun = self.race, self.race.begun(candidate)
        chosen = self.fitting(candidate, seconds)
        self.note_needed(candidate, chosen)
        if chosen is None:
            minutes = max(1, round(race.needed[candidate.name] / 60))
            race.leave_out(
                candidate.name,
                f"It needs about {minutes:,} minute{'s' * (minutes > 1)}, and less time was left; give more with --minutes.",
                late=True,
            )
            return None
        if chosen not in begun and candidate.kind == "network":
            chosen = dataclasses.replace(chosen, threads=torch.get_num_threads())
        race.begin(candidate, chosen)
        return chosen

    # ------------------------------------------------------------------------------------------------------------ training

    def train_by(self, candidate: Candidate, plan: Plan) -> None:
        """Train a candidate by a plan and keep it. What is kept already is found."""
        race, texts = self.race, self.texts
        race.left_out.pop(candidate.name, None)
        race.late.discard(candidate.name)
        if candidate.kind == "tuned":
            with_pairs(race, plan)
            return
        entry, judged = race.find(candidate, plan), texts.judged
        if entry is None:
            answers, seconds, folds = {}, 0.0, race.fold[judged]
            if texts.cross_validated:
                answers["judged"] = np.zeros((len(judged), len(texts.label_names)))
                for fold in race.folds:
                    learnt = self.learn(candidate, fold, plan)
                    answers["judged"][folds == fold] = learnt.answers["test"]
                    seconds += learnt.seconds
            learnt = self.learn(candidate, None, plan)
            if not texts.cross_validated:
                answers["judged"] = learnt.answers["validation"]
            answers["test"] = learnt.answers["test"]
            record = {
                "name": candidate.name,
                "plan": plan,
                "seconds": seconds + learnt.seconds,
                "settings": learnt.settings,
            }
            entry = finished_candidates.put(race.results, race.key(candidate, plan), learnt.run, answers, record)
        race.finish(entry)
        if not texts.cross_validated:
            race.point(candidate.name, plan.rows, entry.judged)

    def training(self, candidate: Candidate, fold: Fold, plan: Plan) -> Training:
        """A training on all folds but one, whose texts it answers; or on the plan's rows."""
        race, texts = self.race, self.texts
        if fold is None:
            answered = ("test",) if texts.cross_validated else ("validation", "test")
            rows = {"train": race.train[: plan.rows], "validation": race.curve_judged, "test": texts.rows("test")}
        else:
            answered, fold_rows = ("test",), texts.judged[race.fold[texts.judged] == fold]
            rows = {"train": race.train[race.fold[race.train] != fold], "validation": fold_rows, "test": fold_rows}
        return networks.training(candidate, plan, texts, rows, answered, race.folder)

    def learn(self, candidate: Candidate, fold: Fold, plan: Plan) -> Learnt:
        """What a network has learnt: from the cluster, which has trained it, or by training it now."""
        clock = self.race.clock
        if self.cluster is not None:
            learnt = self.trained[candidate.name, fold, plan]
            if isinstance(learnt, InputError):
                raise learnt
            return learnt
        clock.check()
        clock.progress(candidate.name, "preparing the texts")

        def report(line: str) -> None:
            clock.progress(candidate.name, line)
            self.other.collect()
            clock.check()

        begun = time.monotonic()
        learnt = networks.train(self.training(candidate, fold, plan), report)
        spent = time.monotonic() - begun
        if spent > SHORTEST + START_SECONDS:  # it was trained; where it went on, the time before counts, too
            whole = candidate.recipe(plan).epochs / learnt.epochs  # more than one where it stopped on a plateau
            self.estimate.learn(candidate, plan, whole * max(spent, learnt.seconds))
        return learnt

    # ------------------------------------------------------------------------------------------------------------ on a cluster

    def on_cluster(self, waiting: list[Candidate]) -> None:
        """All networks at the same time: those for whose trainings the workers have time, the most promising first."""
        race, workers = self.race, self.cluster.workers
        busy, pairs = [0.0] * workers, []  # seconds of each worker
        for candidate in [one for one in waiting if one.kind == "tuned"]:  # here, before the workers' time is planned
            self.turn(candidate, NEXT_SHARE * race.clock.left)
        for candidate in [one for one in waiting if one.kind == "network"]:
            rounds = -(-self.trainings // workers)  # of a candidate on workers that have nothing else to do
            plan = self.plan(candidate, (race.clock.left - busy[0]) / rounds * self.trainings)
            if plan is None:
                continue
            pairs.append((candidate, plan))
            if race.find(candidate, plan) is None:
                for _ in range(self.trainings):
                    heapq.heapreplace(busy, busy[0] + self.estimate.seconds(candidate, plan, self.trainings) / self.trainings)
        self.trained |= self.cluster.train(self.trainings_of(pairs), race.clock)
        for candidate, plan in pairs:
            folds: list[Fold] = [*race.folds, None]
            if race.find(candidate, plan) is None and not all((candidate.name, fold, plan) in self.trained for fold in folds):
                continue  # stopped before its end
            try:
                self.train_by(candidate, plan)
            except InputError as error:
                race.leave_out(candidate.name, str(error))
        race.clock.check()
        if again := self.refuted([]):
            self.on_cluster([NAMED[name] for name in again])

    def trainings_of(
        self, pairs: list[tuple[Candidate, Plan]]
    ) -> Iterator[tuple[tuple[str, Fold, Plan], Training]]:
        """What a cluster has to train. Data that cannot be prepared are noted for :meth:`learn`."""
        folds: list[Fold] = [*self.race.folds, None]
        for candidate, plan in pairs:
            for fold in folds if self.race.find(candidate, plan) is None else ():
                key = candidate.name, fold, plan
                try:
                    yield key, self.training(candidate, fold, plan)
                except InputError as error:
                    self.trained[key] = error
