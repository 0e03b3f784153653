"""Which candidates are trained, on how many rows, in the time given: the cheapest first, and networks by successive halving.

Every network is first trained on a part of the rows (in cross-validation: for one fold). The better half goes on (Jamieson and
Talwalkar 2016), on all rows, or on as many as the time allows. Choices are made on the validation rows alone. What is finished is
kept, and the same command with more minutes goes on from there.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from sklearn.metrics import f1_score

from rtxlib.classifiers import linear, words
from rtxlib.classifiers.encoders import Frozen, Static, static_table
from rtxlib.classifiers.folder import Classifier
from rtxlib.classifiers.linear import Linear
from rtxlib.classifiers.simple import Majority
from rtxlib.data.tokenization import encode, pretrained_tokenizer
from rtxlib.errors import InputError, fact
from rtxlib.models import pretrained
from rtxlib.runs import cost
from rtxstudy.compare import kept, networks
from rtxstudy.compare.candidates import CANDIDATES, FROZEN, MAX_LENGTH, MINILM, NAMED, STATIC, WORDS, Candidate
from rtxstudy.compare.kept import Entry
from rtxstudy.compare.texts import Texts
from rtxstudy.evaluation.statistics import mean_difference

GUESSED_SPEED = 2e10  # floating-point operations a second and thread
START_SECONDS = 3  # of a training, whatever its size
TIMED = 32  # texts by which the speed of this machine is measured
EMBEDDING_SHARE, FIRST_SHARE = (
    0.35,
    0.4,
)  # of the time: at most for embeddings; and of what is then left for the first round
FEWEST_FIRST = 250  # rows of the first round; where a quarter of the rows is fewer, there is none
PIECE = 128  # texts that are embedded at once
CURVE = (0.125, 0.25, 0.5, 1.0)  # shares of the training rows in the learning curve
LATE = 1.1  # a training that takes the whole time and a tenth more is stopped


class OutOfTime(Exception):
    """The minutes are over, or somebody asked for the report of what is there."""


class Race:
    """A comparison under way.

    Args:
        texts: what is compared on
        folder: where everything finished is kept
        minutes: how long to train
        report: is called with one line of progress at a time

    Attributes:
        entries: the finished candidates by name
        left_out: name → why, in a sentence
        curve: the learning curve, see :attr:`curve`
        ended: "" when all was done, "time" or "asked"
    """

    def __init__(
        self, texts: Texts, folder: Path, minutes: float, report: Callable[[str], None] = lambda line: None
    ) -> None:
        self.texts, self.folder, self.say = texts, folder, report
        self.started, self.seconds = time.monotonic(), 60 * minutes
        self.entries: dict[str, Entry] = {}
        self.left_out: dict[str, str] = {}
        self.points: list[tuple[str, int, float, np.ndarray]] = []  # with the found labels of the rows that judge
        self.ended = ""
        self.speed = (
            GUESSED_SPEED * torch.get_num_threads()
        )  # floating-point operations a second, until MiniLM is measured
        self.speeds: dict[str, float] = {}  # the same of each network that was trained
        self.stop_file = folder / "stop"
        folder.mkdir(parents=True, exist_ok=True)
        self.stop_file.unlink(missing_ok=True)
        train = texts.rows("train")
        self.train = train[np.random.default_rng(0).permutation(len(train))]  # fewer rows are the first of these
        self.fold = texts.table["fold"].to_numpy()

    # ------------------------------------------------------------------------------------------------------------ time

    @property
    def left(self) -> float:
        return self.seconds - (time.monotonic() - self.started)

    def check(self, most: float = 1.0) -> None:
        """Raise OutOfTime when the time (times ``most``) is over, or a stop was asked for."""
        if self.stop_file.exists():
            self.ended = "asked"
            raise OutOfTime
        if time.monotonic() - self.started > most * self.seconds:
            self.ended = "time"
            raise OutOfTime

    def progress(self, name: str, line: str = "") -> None:
        left = max(0, int(self.left))
        self.say(f"{name}{': ' if line else ''}{line}  ({left // 60}:{left % 60:02d} left)")

    # ------------------------------------------------------------------------------------------------------------ the race

    def run(self) -> Race:
        """Train what the time allows. An interrupt or the end of the time leaves what is finished."""
        try:
            self._without_layers()
            self._with_minilm()
            self._networks()
        except OutOfTime:
            pass
        except KeyboardInterrupt:  # in JupyterLab
            self.ended = "asked"
        if self.ended:
            why = "a stop was asked for before" if self.ended == "asked" else "the minutes were over"
            for candidate in CANDIDATES:
                if candidate.name not in self.entries:
                    self.left_out.setdefault(candidate.name, f"{why[0].upper()}{why[1:]}.")
        return self

    @property
    def curve(self) -> pd.DataFrame:
        """Columns model, rows (learned from), score, and of each model's last point what it gained over the one before.

        The gain is of accuracy, with its 95 % interval: gain, low, high. It is NaN elsewhere.
        """
        numbers, rows = self.texts.numbers(self._curve_judged()), []
        points = {(name, count): (score, found) for name, count, score, found in self.points}
        for name in dict.fromkeys(name for name, _ in points):
            counts = sorted(count for of, count in points if of == name)
            for count in counts:
                gain = (np.nan,) * 3
                if count == counts[-1] and len(counts) > 1:
                    after, before = (points[name, number][1] == numbers for number in (count, counts[-2]))
                    gain = mean_difference((after.astype(float) - before)[None])[:3]
                rows.append((name, count, points[name, count][0], *gain))
        return pd.DataFrame(rows, columns=["model", "rows", "score", "gain", "low", "high"])

    def _without_layers(self) -> None:
        """The majority class and counting words, which are always there."""
        labels = len(self.texts.label_names)
        self._fitted(
            CANDIDATES[0],
            lambda rows: Majority((np.bincount(self.texts.numbers(rows), minlength=labels) / len(rows)).tolist()),
        )

        def counted(rows: np.ndarray) -> words.WordCounts:
            return words.fit(self.texts.texts(rows), self.texts.numbers(rows), labels, self.texts.unbalanced)

        try:
            self._fitted(NAMED[WORDS], counted)
            self._learn(
                WORDS, len(self.train), lambda rows: counted(rows).probabilities(self.texts.texts(self._curve_judged()))
            )
        except InputError as error:
            self.left_out[WORDS] = str(error)

    def _with_minilm(self) -> None:
        """Linear models on MiniLM's vectors."""
        if why := pretrained.out_of_reach(MINILM):
            for candidate in CANDIDATES:
                if candidate.pretrained:
                    self.left_out[candidate.name] = f"{fact(why)}."
            return
        encoder, tokenizer = pretrained.load(MINILM), pretrained_tokenizer(pretrained.find(MINILM))
        nothing = Linear(np.zeros((1, 1), np.float32), np.zeros(1, np.float32))
        self._on_vectors(NAMED[STATIC], Static(static_table(encoder), tokenizer, nothing))
        self._on_vectors(NAMED[FROZEN], Frozen(encoder, tokenizer, nothing, MAX_LENGTH))

    def _on_vectors(self, candidate: Candidate, embedder: Static | Frozen) -> None:
        judged = np.empty(0, int) if self.texts.cross_validated else self.texts.judged
        order = np.concatenate(
            [judged, self.texts.rows("test"), self.train]
        )  # training rows last: the time may cut them
        least = len(order) - len(self.train) + min(len(self.train), FEWEST_FIRST)
        least = len(order) if self.texts.cross_validated else least
        file = self.folder / "results" / f"vectors-{self.key(candidate, len(order))}.safetensors"
        begun = time.monotonic()

        def make(start: int) -> np.ndarray:
            self.progress(candidate.name, f"{start:,} of {len(order):,} texts read")
            self.check(LATE)
            return embedder.vectors(self.texts.texts(order[start : start + PIECE]))

        def enough(count: int) -> bool:
            return count >= least and time.monotonic() - begun > EMBEDDING_SHARE * self.seconds

        width = embedder.vectors(["a"]).shape[1]
        found = kept.vectors(file, len(order), width, make, enough)
        if candidate.name == FROZEN:
            self._measure(embedder)
        place = np.full(len(self.texts.table), -1)
        place[order[: len(found)]] = np.arange(len(found))
        known = self.train[place[self.train] >= 0]

        def fitted(rows: np.ndarray) -> Static | Frozen:
            numbers, labels = self.texts.numbers(rows), len(self.texts.label_names)
            return embedder.with_linear(linear.fit(found[place[rows]], numbers, labels, self.texts.unbalanced))

        def answer(classifier: Static | Frozen, rows: np.ndarray) -> np.ndarray:
            return classifier.linear.probabilities(found[place[rows]])

        self._fitted(candidate, fitted, answer, known)
        self._learn(candidate.name, len(known), lambda rows: answer(fitted(rows), self._curve_judged()))

    def _measure(self, embedder: Frozen) -> None:
        """Measure the speed of this machine by which the times of trainings are estimated."""
        sample = self.texts.texts(self.train[:TIMED])
        tokens = np.diff(encode(sample, embedder.tokenizer, MAX_LENGTH)[1]).mean()
        begun = time.monotonic()
        embedder.vectors(sample)
        each = cost.forward_flops(embedder.encoder.config, max(1, round(tokens)))
        self.speed = each * len(sample) / max(1e-3, time.monotonic() - begun)

    # ------------------------------------------------------------------------------------------------------------ one candidate

    def key(self, candidate: Candidate, rows: int) -> str:
        return kept.key(name=candidate.name, texts=self.texts.fingerprint, rows=rows, unbalanced=self.texts.unbalanced)

    def _fitted(
        self,
        candidate: Candidate,
        fit: Callable[[np.ndarray], Classifier],
        answer: Callable[[Classifier, np.ndarray], np.ndarray] | None = None,
        train: np.ndarray | None = None,
    ) -> None:
        """Keep a candidate that is fitted at once, in cross-validation once for each fold and once on all."""
        train = self.train if train is None else train
        key = self.key(candidate, len(train))
        entry = kept.find(self.folder / "results", key)
        if entry is None:
            self.progress(candidate.name, f"learning from {len(train):,} texts")
            answer = answer or (lambda classifier, rows: classifier.probabilities(self.texts.texts(rows)))
            begun, judged = time.monotonic(), self.texts.judged
            classifier = fit(train)
            if self.texts.cross_validated:
                p = np.zeros((len(judged), len(self.texts.label_names)))
                for fold in np.unique(self.fold[judged]):
                    out = self.fold[judged] == fold
                    p[out] = answer(fit(train[self.fold[train] != fold]), judged[out])
            else:
                p = answer(classifier, judged)
            answers = {"judged": p, "test": answer(classifier, self.texts.rows("test"))}
            record = {"name": candidate.name, "rows": len(train), "seconds": time.monotonic() - begun}
            entry = kept.put(self.folder / "results", key, classifier, answers, None, record)
        self.entries[candidate.name] = entry

    def _curve_judged(self) -> np.ndarray:
        judged = self.texts.judged
        return judged[self.fold[judged] == 0] if self.texts.cross_validated else judged

    def _learn(self, name: str, most: int, answer: Callable[[np.ndarray], np.ndarray]) -> None:
        """The learning curve of a cheap candidate: its score after growing parts of the training rows."""
        train = self.train[self.fold[self.train] != 0] if self.texts.cross_validated else self.train[:most]
        for share in CURVE:
            rows = train[: int(share * len(train))]
            if (
                self.stop_file.exists()
                or np.bincount(self.texts.numbers(rows), minlength=len(self.texts.label_names)).min() < 2
            ):
                continue
            whole = share == 1 and not self.texts.cross_validated
            p = self.entries[name].judged if whole else answer(rows)
            self._point(name, len(rows), p)

    def _point(self, name: str, rows: int, p: np.ndarray) -> None:
        self.points.append((name, rows, self.score(p, self._curve_judged()), p.argmax(axis=1)))

    def score(self, p: np.ndarray, rows: np.ndarray) -> float:
        """Macro-F1 where the labels are unbalanced, else accuracy."""
        numbers, found = self.texts.numbers(rows), p.argmax(axis=1)
        if self.texts.unbalanced:
            return float(f1_score(numbers, found, average="macro", zero_division=0))
        return float((numbers == found).mean())

    # ------------------------------------------------------------------------------------------------------------ networks

    def _networks(self) -> None:
        """Two rounds: every network on a part of the rows, then the better half on all, or on what the time allows."""
        waiting = [c for c in CANDIDATES if c.kind == "network" and c.name not in self.left_out]
        n, cross = len(self.train), self.texts.cross_validated
        first = n - n // 5 if cross else self._first(waiting)
        better = [candidate.name for candidate in waiting]
        if cross or first >= FEWEST_FIRST:
            scores: dict[str, float] = {}
            learn = self._one_fold if cross else self._trained
            for candidate in waiting:
                if self._may(candidate, first, 1):
                    self._try(candidate, lambda c=candidate: scores.update({c.name: learn(c, first)}))
            better = sorted(scores, key=scores.__getitem__, reverse=True)[: -(-len(scores) // 2)]
            for name in scores.keys() - set(better) - self.entries.keys():
                self.left_out[name] = f"After one fold of the rows ({scores[name]:.3f}) it was in the lower half."
        folds = len(np.unique(self.fold[self.train])) if cross else 1
        for candidate in map(NAMED.__getitem__, better):
            rows = n
            while not cross and not self._may(candidate, rows, 1) and rows // 2 > max(first, FEWEST_FIRST):
                rows //= 2
            if self._may(candidate, rows, folds):
                self.left_out.pop(candidate.name, None)
                self._try(candidate, lambda c=candidate, r=rows: self._trained(c, r))
            elif candidate.name in self.entries:
                self.left_out.pop(candidate.name, None)

    def _first(self, waiting: list[Candidate]) -> int:
        """The rows of the first round: a quarter, halved until it takes its share of the time. Later calls take the same."""
        file = self.folder / f"first-{self.texts.fingerprint}.json"
        if file.is_file():
            return int(file.read_text(encoding="utf-8"))
        first = len(self.train) // 4
        while first >= 2 * FEWEST_FIRST and sum(self._needed(c, first) for c in waiting) > FIRST_SHARE * self.left:
            first //= 2
        file.write_text(str(first), encoding="utf-8")
        return first

    def _needed(self, candidate: Candidate, rows: int) -> float:
        """Estimated seconds of a training."""
        tokens = min(MAX_LENGTH, 1.3 * self.texts.table["text"].str.count(" ").mean() + 3)
        return networks.flops(candidate, tokens, rows) / self.speeds.get(candidate.name, self.speed) + START_SECONDS

    def _may(self, candidate: Candidate, rows: int, trainings: int) -> bool:
        """Whether a network is kept already, or may be trained in the time that is left. If not, the reason is noted."""
        if kept.find(self.folder / "results", self.key(candidate, rows)) is not None:
            return True
        seconds = trainings * self._needed(candidate, rows)
        if seconds <= self.left:
            return True
        minutes = max(1, round(seconds / 60))
        self.left_out[candidate.name] = (
            f"It needs about {minutes:,} minute{'s' * (minutes > 1)}, and fewer were left; give more with --minutes."
        )
        return False

    def _try(self, candidate: Candidate, train: Callable[[], object]) -> None:
        """Train, and leave out a candidate whose training the machine or the data do not allow, such as a diverged loss."""
        try:
            train()
        except InputError as error:
            self.left_out[candidate.name] = str(error)

    def _report(self, candidate: Candidate) -> Callable[[str], None]:
        def report(line: str) -> None:
            self.progress(candidate.name, line)
            self.check(LATE)

        return report

    def _one_fold(self, candidate: Candidate, rows: int) -> float:
        judged = self._curve_judged()
        p, _ = self._fold(candidate, 0, judged)
        self._point(candidate.name, rows, p)
        return self.score(p, judged)

    def _fold(self, candidate: Candidate, fold: int, held: np.ndarray) -> tuple[np.ndarray, float]:
        """Probabilities of a fold's rows by a network that has not seen them, and the seconds of its training."""
        rows = {"train": self.train[self.fold[self.train] != fold], "validation": held, "test": held}
        network, run = self._run(candidate, rows)
        return network.probabilities(self.texts.texts(held)), run.metrics["train_seconds"]

    def _run(self, candidate: Candidate, rows: dict[str, np.ndarray]) -> tuple:
        self.check(LATE)
        self.progress(candidate.name, f"learning from {len(rows['train']):,} texts")
        begun = time.monotonic()
        network, run = networks.train(candidate, self.texts, rows, self.folder, self._report(candidate))
        spent = time.monotonic() - begun
        if spent > 5:  # it was not found, but trained
            scale = self.speeds.get(candidate.name, self.speed)
            self.speeds[candidate.name] = scale * self._needed(candidate, len(rows["train"])) / spent
        return network, run

    def _trained(self, candidate: Candidate, count: int) -> float:
        """Keep a network that learns from the first ``count`` training rows; returns its score."""
        key, judged = self.key(candidate, count), self.texts.judged
        entry = kept.find(self.folder / "results", key)
        if entry is None:
            answers, seconds = {}, 0.0
            if self.texts.cross_validated:
                answers["judged"] = np.zeros((len(judged), len(self.texts.label_names)))
                for fold in np.unique(self.fold[judged]):
                    out = self.fold[judged] == fold
                    answers["judged"][out], spent = self._fold(candidate, fold, judged[out])
                    seconds += spent
            held = judged[self.fold[judged] == 0] if self.texts.cross_validated else judged
            rows = {"train": self.train[:count], "validation": held, "test": self.texts.rows("test")}
            network, run = self._run(candidate, rows)
            answers.setdefault("judged", network.probabilities(self.texts.texts(judged)))
            answers["test"] = network.probabilities(self.texts.texts(rows["test"]))
            record = {"name": candidate.name, "rows": count, "seconds": seconds + run.metrics["train_seconds"]}
            entry = kept.put(self.folder / "results", key, network, answers, run.path, record)
        self.entries[candidate.name] = entry
        if not self.texts.cross_validated:
            self._point(candidate.name, count, entry.judged)
        return self.score(entry.judged, judged)


def single_text_seconds(
    classifier: Classifier, clean: Callable[[list[str]], list[str]], texts: list[str]
) -> list[float]:
    """Seconds that a classifier takes for each text alone, cleaning included: the median of three rounds."""
    with contextlib.suppress(IndexError):
        classifier.probabilities(clean(texts[:1]))  # warm
    rounds = []
    for _ in range(3):
        spent = []
        for text in texts:
            begun = time.perf_counter()
            classifier.probabilities(clean([text]))
            spent.append(time.perf_counter() - begun)
        rounds.append(spent)
    return np.median(rounds, axis=0).tolist()
