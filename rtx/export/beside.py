"""The graph beside a run: ``rtx predict RUN`` answers by it where starting torch takes longer than the graph."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from rtx.export import opened
from rtxlib import checksums
from rtxlib.errors import visible
from rtxlib.runs.store import Run, hashed

MOST = 50_000  # characters, of all texts together. At 100,000 torch took as long (LOG.md)


def place(run: Run) -> Path:
    """Where ``rtx export RUN`` writes without ``--out``."""
    return run.path.with_name(f"{run.path.name}.graph")


def origin(run: Run) -> str:
    """The hash of the files that decide what a run answers; "" for a run without checksums, which has no graph beside it."""
    sums = checksums.recorded(run.path) or {}
    read = {name: accepted for name, accepted in sums.items() if checksums.opened(name) and name != "metrics.json"}
    return hashed(read) if read else ""


def find(run: Run) -> opened.Opened | None:
    """The graph beside a run; None if there is none that can be used here. Raises InputError where it is damaged.

    A graph of other weights, as of an earlier model in the same folder, is not used, and standard error says so.
    """
    if not (place(run) / opened.RECORD).is_file() or importlib.util.find_spec("onnxruntime") is None:
        return None
    graph = opened.Opened(place(run))
    if graph.record.get("origin") == (origin(run) or None):
        return graph
    print(visible(f"{place(run)} was exported from other weights and is not used; delete it and export again."), file=sys.stderr)
    return None
