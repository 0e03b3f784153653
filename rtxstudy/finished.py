"""Finished runs: chosen by their metrics or their specs, and read as tables."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import pandas as pd

from rtx import archive
from rtxlib.runs import store
from rtxlib.runs.store import Run

if TYPE_CHECKING:
    from rtxlib.runs.spec import RunSpec


def core_seconds(run: Run) -> float:
    """Processor time of a run's training; NaN for a training on a GPU, where the processor only hands out the work."""
    return run.metrics["train_cpu_seconds"] if run.metrics["device"].startswith("CPU") else math.nan


@dataclass(frozen=True)
class Runs(Sequence[Run]):
    """Finished runs in the order in which they were asked for, each with the spec that asked for it.

    It is a sequence: ``runs[0]`` is a run, and ``runs[:2]`` are Runs.
    """

    runs: tuple[Run, ...]
    specs: tuple[RunSpec, ...]
    results: Path  # the published tables of a profile, for runs whose own folder lacks a table

    def __len__(self) -> int:
        return len(self.runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    @overload
    def __getitem__(self, place: int) -> Run: ...
    @overload
    def __getitem__(self, place: slice) -> Runs: ...
    def __getitem__(self, place: int | slice) -> Run | Runs:
        if isinstance(place, int):
            return self.runs[place]
        return Runs(self.runs[place], self.specs[place], self.results)

    def __add__(self, other: Runs) -> Runs:
        return Runs(self.runs + other.runs, self.specs + other.specs, self.results)

    def where(self, **conditions: Any) -> Runs:
        """The runs whose metrics have these values: ``runs.where(model="standard-6x384", seed=range(3))``.

        A range matches any of its numbers.
        """
        allowed = {name: value if isinstance(value, range) else (value,) for name, value in conditions.items()}
        return self._only([all(run.metrics[name] in values for name, values in allowed.items()) for run in self])

    def of(self, specs: Collection[RunSpec]) -> Runs:
        """The runs of these specs."""
        return self._only([spec in specs for spec in self.specs])

    def _only(self, chosen: Sequence[bool]) -> Runs:
        pairs = [pair for pair, keep in zip(zip(self.runs, self.specs, strict=True), chosen, strict=True) if keep]
        return Runs(tuple(run for run, _ in pairs), tuple(spec for _, spec in pairs), self.results)

    @property
    def table(self) -> pd.DataFrame:
        """One row per run: its key and its metrics. ``train_cpu_seconds`` is that of :func:`core_seconds`."""
        return store.runs_table(self).assign(train_cpu_seconds=[core_seconds(run) for run in self])

    @property
    def model(self) -> str:
        """The name of the model that all these runs trained. Raises ValueError when there are several."""
        (name,) = {run.metrics["model"] for run in self}
        return name

    @property
    def labels(self) -> list[str]:
        """The names of the labels that these runs give, by number."""
        return self[0].spec["label_names"]

    def part(self, name: str) -> pd.DataFrame:
        """The table ``name`` ("curves", "predictions", …) of every run, one below the other.

        Raises InputError when neither a run's folder nor the published tables have it.
        """
        return pd.concat([archive.part(run, name, self.results) for run in self], ignore_index=True)
