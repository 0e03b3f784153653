"""Candidates that are fitted beside the networks, in another process, where a core is to be had for it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import torch

from rtx.process import end_workers, workers
from rtxlib.errors import InputError
from rtxstudy.questions.your_texts.candidates import NAMED
from rtxstudy.questions.your_texts.clock import Clock, OutOfTime
from rtxstudy.questions.your_texts.fitted import FIT
from rtxstudy.questions.your_texts.state import Found, Race
from rtxstudy.questions.your_texts.texts import Texts

WORTH = 15.0  # seconds of work; with less, starting another process and loading torch there takes longer
PATIENCE = 180.0  # seconds that are waited for it when the time is over; counting words is worth them


class Beside:
    """The candidates that another process fits for a race with a quarter of the threads, while this one trains networks.

    Attributes:
        cores: threads that this process may have
        others: how many of them the other process gets
        threads: how many this one uses for networks, where no other process needs one of them
    """

    def __init__(self, race: Race) -> None:
        self.race, self.cores = race, torch.get_num_threads()
        self.others = max(1, self.cores // 4)
        self.threads = self.cores
        self.pool: ProcessPoolExecutor | None = None
        self.waiting: dict[str, Future[Found]] = {}
        self.until = 0.0  # the time at which all of it is expected to be done

    def is_worth(self, seconds: float) -> bool:
        """Whether work of so many seconds goes to the other process."""
        return self.cores > 1 and seconds >= WORTH

    def slowed(self, seconds: float) -> float:
        """The seconds that networks lose to work of so many seconds, in the other process or in this one."""
        if not self.is_worth(seconds) and not self.waiting:
            return seconds
        return seconds * (1 - min(self.threads, self.cores - self.others) / self.threads)

    @property
    def borrowed(self) -> float:
        """The seconds that networks are expected to lose to what the other process has still to do."""
        return self.slowed(max(0.0, self.until - time.monotonic())) if self.waiting else 0.0

    def fit(self, name: str, seconds: float) -> None:
        """Fit a candidate of about so many seconds: here and now, or in the other process if that is worth it."""
        if not self.is_worth(seconds):
            _fit(name, self.race)
            self.note(name)
            return
        self.collect()
        self.until = max(self.until, time.monotonic()) + seconds
        work = _fit_there, name, self.race.texts, self.race.folder, self.race.clock.for_another_process(), self.others
        self.pool = self.pool or workers(1, __name__)
        try:
            self.waiting[name] = self.pool.submit(*work)
        except BrokenProcessPool:  # it was ended while it had nothing to do
            self.pool = workers(1, __name__)
            self.waiting[name] = self.pool.submit(*work)
        self.share()

    def collect(self) -> None:
        """Add what is finished to the race. When nothing is left, the networks get the other process's threads."""
        for name, future in list(self.waiting.items()):
            if not future.done():
                continue
            del self.waiting[name]
            try:
                self.race.add(future.result())
                self.note(name)
            except BrokenProcessPool:
                self.race.leave_out(name, "Its process was ended from outside, most likely because memory ran out.")
                self.pool = None  # the next candidate gets another
        self.share()

    def note(self, name: str) -> None:
        """Note by which plan a candidate was fitted on a part of the rows, so that a later call finds it."""
        entry = self.race.entries.get(name)
        if entry is not None and entry.rows < len(self.race.train):
            self.race.begin(NAMED[name], entry.plan)

    def share(self) -> None:
        """Set the threads of this process."""
        torch.set_num_threads(min(self.threads, self.cores - self.others) if self.waiting else self.threads)

    def finish(self) -> None:
        """Wait for what is not finished. It ends when the time does, or soon after it."""
        for name, future in self.waiting.items():
            self.race.clock.progress(name, "not finished yet")
            with contextlib.suppress(BrokenProcessPool, TimeoutError):
                future.result(max(0.0, self.race.clock.left) + PATIENCE)
        self.collect()
        for name in self.waiting:
            self.race.leave_out(name, "It was not finished when the minutes were over.", late=True)
        if self.waiting and self.pool is not None:
            end_workers(self.pool)


@contextlib.contextmanager
def beside(race: Race) -> Iterator[Beside]:
    """The other process of a race. At the end its work is collected, or stopped by an error."""
    other = Beside(race)
    try:
        yield other
        other.finish()
    except BaseException:
        if other.pool is not None:
            end_workers(other.pool)
        raise
    finally:
        torch.set_num_threads(other.cores)
        if other.pool is not None:
            other.pool.shutdown(wait=False, cancel_futures=True)


def _fit(name: str, race: Race) -> None:
    """Fit a candidate. Where the machine or the data do not allow it, it is left out."""
    try:
        FIT[name](race)
    except InputError as error:
        race.leave_out(name, str(error))


def _fit_there(name: str, texts: Texts, folder: Path, clock: Clock, threads: int) -> Found:
    """In the other process: fit a candidate."""
    torch.set_num_threads(threads)
    race = Race(texts, folder, clock)
    with contextlib.suppress(OutOfTime):
        _fit(name, race)
    return Found(race.entries, race.left_out, race.late, race.points)
