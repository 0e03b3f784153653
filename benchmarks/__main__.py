"""``make bench``: every comparison, printed as a table; kept in ``reports/benchmarks.json``, of a GPU in ``benchmarks_gpu.json``.

    python -m benchmarks [training finetuning pretraining prediction runtimes embedding growth command pages]
                         [--rounds 3] [--short]

A call keeps the rows that it does not measure again. Each file has a process of its own, because a process that has trained for
an hour is slower than a fresh one. On a busy machine the ratios still hold; the rates do not.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import importlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from benchmarks import growth
from benchmarks.measure import Row, verdict
from rtxlib import paths
from rtxlib.errors import InputError, nearest
from rtxlib.runs import store
from rtxlib.training.device import device_name, pick_device, pick_precision
from rtxstudy import folders, provenance
from rtxstudy.figures.save import save
from rtxstudy.questions.deployment import growth_figures

FILES = {"cpu": "benchmarks.json", "cuda": "benchmarks_gpu.json"}
ROOMS = ("training", "finetuning", "pretraining", "prediction", "runtimes", "embedding", "growth", "command", "pages")


def rows_of(room: str, rounds: int, short: bool) -> Iterator[Row]:
    """The rows of one file; growth also draws its figures."""
    if room != "growth":
        yield from importlib.import_module(f"benchmarks.{room}").rows(rounds, short)
        return
    for measured, draw, stem, alt in (
        (growth.time_rows, growth_figures.time_by_work, "time_by_work", "Time of a training step against units of work"),
        (growth.memory_rows, growth_figures.memory_by_length, "memory_by_length", "Memory against the length of a text"),
    ):
        tables = []
        for row, table in measured(rounds):
            yield row
            tables.append(table)
        table = pd.concat(tables, ignore_index=True)
        if table.empty:
            continue
        save(draw(table), stem, table, folders.figures_dir("benchmarks"), alt)


def line(row: dict[str, Any]) -> str:
    """One line of the table."""

    def number(value: float | None, width: int = 9) -> str:
        return f"{'–':>{width}}" if value is None else f"{value:{width}.{2 if abs(value) < 100 else 0}f}"

    outcome = verdict(row["ratio"], row["aim"]) or ("no aim" if row["ratio"] else "not measured")
    return (
        f"{row['name']:72} {number(row['ours'])} {number(row['peer'])} {row['unit']:9} {number(row['ratio'], 6)} "
        f"{number(row['aim'], 6)} {outcome:12} {row['n']:3}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Time rtxlib beside its peers.")
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help=", ".join(ROOMS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--short", action="store_true", help="little work, to see whether everything runs; not saved")
    arguments = parser.parse_args()
    for room in arguments.rooms:
        if room not in ROOMS:
            raise InputError(f"There are no benchmarks '{room}'; there are {', '.join(ROOMS)}.{nearest(room, ROOMS)}")
    if arguments.rounds < 1:
        raise InputError(f"--rounds must be at least 1, not {arguments.rounds}.")
    rooms = arguments.rooms or list(ROOMS)
    if len(rooms) > 1:
        given = ["--rounds", str(arguments.rounds), *["--short"] * arguments.short]
        codes = {room: subprocess.run([sys.executable, "-m", "benchmarks", room, *given]).returncode for room in rooms}
        if failed := [f"{room} ({code})" for room, code in codes.items() if code]:
            sys.exit(f"These rooms did not end well, and their rows are those of before: {', '.join(failed)}.")
        return
    file = paths.root() / "reports" / FILES[pick_device().type]
    earlier: list[dict[str, Any]] = json.loads(file.read_text())["rows"] if file.is_file() else []
    print(f"{'':72} {'ours':>9} {'peer':>9} {'unit':9} {'ratio':>6} {'aim':>6} {'':12} {'n':>3}")
    (room,), measured = rooms, {}
    for row in rows_of(room, arguments.rounds, arguments.short):
        record = dataclasses.asdict(row) | {"room": room, "measured": f"{datetime.date.today()}", "machine": machine()}
        print(line(record), flush=True)
        print(f"    {record['settings']}", flush=True)
        measured[row.name] = record
        if not arguments.short:
            write(file, [*(row for row in earlier if row["name"] not in measured), *measured.values()])
    # The name of a row holds the peer's best batch size, so an earlier run may have left a row of another name.
    if not arguments.short:
        write(file, [*(row for row in earlier if row["room"] != room), *measured.values()])


def write(file: Path, rows: list[dict[str, Any]]) -> None:
    """Write the file atomically, rooms in their order."""
    file.parent.mkdir(parents=True, exist_ok=True)
    ordered = sorted(rows, key=lambda row: ROOMS.index(row["room"]))
    store.write_json(file, {"rows": ordered})


def machine() -> str:
    """The machine that the numbers come from: processors of one name may differ in their instructions."""
    device, cpu = pick_device(), torch.device("cpu")
    gpu = f"{device_name(device)}, " if device.type == "cuda" else ""
    processor = f"{provenance.processor()} ({torch.backends.cpu.get_cpu_capability()}, {pick_precision('auto', cpu)})"
    return f"{gpu}{processor}, {os.cpu_count()} cores, Python {platform.python_version()}, {platform.system()}"


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        sys.exit(str(error))
