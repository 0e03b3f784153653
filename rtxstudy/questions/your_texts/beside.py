"""Candidates that are fitted beside the networks, in another process, where a core is to be had for it."""

from __future__ import annotations

import contextlib
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

    def fit(self, name: str, seconds: float) -> None:
        """Fit a candidate of about so many seconds: here and now, or in the other process if that is worth it."""
        if self.cores == 1 or seconds < WORTH:
            _fit(name, self.race)
            self.note(name)
            return
        self.collect()
        if self.pool is None:
            self.pool = workers(1, __name__)
        clock = self.race.clock.for_another_process()
        self.waiting[name] = self.pool.submit(_fit_there, name, self.race.texts, self.race.folder, clock, self.others)
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
        """Wait for what is not finished. It ends when the time does."""
        for name, future in self.waiting.items():
            self.race.clock.progress(name, "not finished yet")
            with contextlib.suppress(BrokenProcessPool):
                future.result()
        self.collect()


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
