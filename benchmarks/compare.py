"""What a user would take instead of ``rtx compare``: SetFit, fastText with autotune, model2vec's classifier, AutoGluon, MiniLM
fine-tuned by transformers' Trainer, and counting words by scikit-learn.

    python -m benchmarks.compare [--minutes 5] [--data sst2-64 sms …] [--draws 0 1 2] [--tools ours setfit …]
                                 [--setfit PYTHON] [--fasttext PYTHON] [--model2vec PYTHON] [--autogluon PYTHON]

The last two run in this environment. Each other peer lives in one of its own, because its release may need other versions of the
same libraries. PYTHON is the interpreter of that environment. A peer without one is named as not measured. How the environments
are made:

    python -m venv E && E/bin/pip install setfit                            # --setfit E/bin/python
    python -m venv E && E/bin/pip install fasttext-wheel "numpy<2"          # --fasttext E/bin/python
    python -m venv E && E/bin/pip install "model2vec[distill,quantization,train]"   # --model2vec E/bin/python
    python -m venv E && E/bin/pip install autogluon.multimodal              # --autogluon E/bin/python

All tools get the same training and test rows, the same minutes and the same number of threads, one after another. The rows of the
table go to ``reports/benchmark_compare.json``; a call keeps those that it does not measure again. The machine must be quiet.
``python -m benchmarks.scale --write`` puts the table into docs/speed.md.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.__main__ import machine
from benchmarks.classify import TOOLS, write
from benchmarks.memory import of_commands
from benchmarks.peers import untouched
from benchmarks.rows import DATA, Data, require_known, rows_of
from rtxlib import paths
from rtxlib.errors import InputError
from rtxlib.runs import store

FILE = paths.root() / "reports" / "benchmark_compare.json"
PROGRAM = Path(__file__).with_name("classify.py")
HERE = ("ours", "finetuned", "words")  # tools that this environment holds
LATE = 4.0  # times the minutes after which a tool is stopped
AVERAGED = ("accuracy", "macro_f1", "seconds", "peak_mb", "mb", "texts_per_second")
EIGHT = ("accuracy", "macro_f1", "mb", "texts_per_second")  # of our model in eight bits
POINTS_BEHIND = 0.005  # that ours may be below the best of the others at equal minutes
FEW_FASTER = 3.0  # times SetFit's texts a second
VERDICT = ("data", "minutes", "aim", "beside", "the best of", "points (± standard error)", "times its texts/s", "result")


def measured(python: str, tool: str, data: Data, draw: int, minutes: float) -> dict[str, Any]:
    """The row of one tool on one data set. Where it could not be measured, the row says why."""
    train, test = rows_of(data, draw)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        for name, table in (("train", train), ("test", test)):
            write(work / f"{name}.csv", (table["text"].tolist(), table["label"].tolist()))
        command = [python, str(PROGRAM), tool, *(str(work / f"{name}.csv") for name in ("train", "test"))]
        command += [str(minutes), str(work / "work")]
        if tool == "ours":  # the package is imported from this checkout
            command[1:2] = ["-m", "benchmarks.classify"]
        peaks: list[float] = []
        try:
            with of_commands(peaks):
                environment = None if tool == "ours" else untouched()
                limit = 60 * LATE * max(1.0, minutes)
                done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=limit)
        except subprocess.TimeoutExpired:
            return {"why": f"stopped after {LATE:g} times the minutes"}
    if done.returncode < 0:
        return {"why": f"it was ended by signal {-done.returncode}, most likely because memory ran out"}
    if done.returncode:
        return {"why": (done.stderr.strip().splitlines() or ["it ended without a word"])[-1]}
    return json.loads(done.stdout.strip().splitlines()[-1]) | {"train_rows": len(train), "peak_mb": peaks[0]}


def there(python: str | None, tool: str) -> str:
    """ "" when the tool can be imported by this Python; else why not."""
    if python is None:
        return f"not measured: no environment was named with --{tool}"
    tried = subprocess.run([python, str(PROGRAM), "--try", tool], capture_output=True, text=True)
    return f"not measured: {tried.stderr.strip().splitlines()[-1]}" if tried.returncode else ""


def means(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each data set, number of minutes and tool: numbers are means over the draws, ``n`` of them.

    ``spread``: the standard deviation of the accuracy over the draws; None of a single one. ``by_draw``: the accuracy of each.
    """
    joined = []
    for name, minutes, tool in dict.fromkeys((row["data"], row["minutes"], row["tool"]) for row in rows):
        every = [row for row in rows if (row["data"], row["minutes"], row["tool"]) == (name, minutes, tool)]
        same = [row for row in every if "accuracy" in row]
        if not same:
            joined.append(every[-1])
            continue
        numbers = {key: statistics.mean(row[key] for row in same) for key in AVERAGED}
        spread = statistics.stdev(row["accuracy"] for row in same) if len(same) > 1 else None
        eight = [row["eight_bits"] for row in same if "eight_bits" in row]
        in_all = len(eight) == len(same)
        numbers["eight_bits"] = {key: statistics.mean(one[key] for one in eight) for key in EIGHT} if in_all else None
        draws = Counter(row["settings"] for row in same)
        took = "; ".join(f"{n} draw{'s' * (n > 1)}: {how}" for how, n in draws.items()) if len(draws) > 1 else next(iter(draws))
        by_draw = {row["draw"]: row["accuracy"] for row in same}
        joined.append(same[0] | numbers | {"settings": took, "n": len(same), "spread": spread, "by_draw": by_draw})
    order = {name: place for place, name in enumerate((*DATA, *TOOLS))}
    return sorted(joined, key=lambda row: (row["minutes"], order[row["data"]], order[row["tool"]]))


def verdicts(rows: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """The fields of :data:`VERDICT` for each aim, data set and number of minutes that a peer has. rows: of :func:`means`."""
    found = []
    for name, minutes in dict.fromkeys((row["data"], row["minutes"]) for row in rows):
        same = [row for row in rows if (row["data"], row["minutes"]) == (name, minutes) and "accuracy" in row]
        by_tool = {row["tool"]: row for row in same}
        peers = {tool: row for tool, row in by_tool.items() if tool != "ours"}
        if "ours" not in by_tool or not peers:
            continue
        ours, where = by_tool["ours"], (name, f"{minutes:g}")
        best = max(peers, key=lambda tool: peers[tool]["accuracy"])
        gain, word = beside(ours, peers[best], -100 * POINTS_BEHIND)
        found.append((*where, "accuracy", best, ", ".join(peers), gain, "–", word))
        if "setfit" not in by_tool:
            continue
        setfit = by_tool["setfit"]
        for aim, one in (("speed", ours), ("speed in eight bits", ours["eight_bits"])):
            if one is None:
                continue
            ratio = one["texts_per_second"] / setfit["texts_per_second"]
            points = statistics.mean(_gains(ours, setfit)) + 100 * (one["accuracy"] - ours["accuracy"])
            word = "met" if ratio >= FEW_FASTER and points >= -100 * POINTS_BEHIND else "missed"
            found.append((*where, aim, "setfit", "–", f"{points:+.1f}", f"{ratio:.1f}", word))
        if DATA[name].each is not None:
            gain, word = beside(ours, setfit, 0.0)
            found.append((*where, "few labels", "setfit", "–", gain, "–", word))
    return found


def beside(ours: dict[str, Any], other: dict[str, Any], least: float) -> tuple[str, str]:
    """The difference of two rows of :func:`means` in points, ± its standard error, and whether it is at least ``least``.

    It is of their common draws where they have any. Three draws or more give a standard error. An aim missed by less than two of
    them is missed within the noise.
    """
    gains = _gains(ours, other)
    gain = statistics.mean(gains)
    error = statistics.stdev(gains) / len(gains) ** 0.5 if len(gains) >= 3 else 0.0
    said = f"{gain:+.1f}" + (f" ± {error:.1f} (n = {len(gains)})" if error else "")
    word = "met" if gain >= least else "missed within the noise" if gain + 2 * error >= least else "missed"
    return said, word


def _gains(ours: dict[str, Any], other: dict[str, Any]) -> list[float]:
    """Points between two rows in each of their common draws; where they have none, between their means."""
    draws = ours["by_draw"].keys() & other["by_draw"].keys()
    return [100 * (ours["by_draw"][draw] - other["by_draw"][draw]) for draw in draws] or [
        100 * (ours["accuracy"] - other["accuracy"])
    ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description="rtx compare beside its peers.")
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--data", nargs="+", default=list(DATA), help=", ".join(DATA))
    parser.add_argument("--draws", nargs="+", type=int, default=[0], help="which draws of the training rows")
    parser.add_argument("--tools", nargs="+", default=list(TOOLS), choices=TOOLS)
    parser.add_argument("--out", type=Path, default=FILE)
    for tool in TOOLS:
        if tool not in HERE:
            parser.add_argument(f"--{tool}", metavar="PYTHON", help=f"the Python of {tool}'s environment")
    arguments = parser.parse_args()
    require_known(arguments.data, DATA)
    pythons = {tool: sys.executable if tool in HERE else getattr(arguments, tool) for tool in TOOLS}
    missing = {tool: why for tool in arguments.tools if tool not in HERE and (why := there(pythons[tool], tool))}
    rows = json.loads(arguments.out.read_text())["rows"] if arguments.out.is_file() else []
    for name, draw, tool in itertools.product(arguments.data, arguments.draws, arguments.tools):
        absent = missing.get(tool)
        result = {"why": absent} if absent else measured(pythons[tool], tool, DATA[name], draw, arguments.minutes)
        what = {"data": name, "draw": draw, "tool": tool, "minutes": arguments.minutes}
        row = what | {"measured": f"{datetime.date.today()}", "machine": machine(), **result}
        earlier = [old for old in rows if what.items() <= old.items()]
        if not (absent and earlier):
            rows = [old for old in rows if old not in earlier] + [row]
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        store.write_json(arguments.out, {"rows": rows})
        print(line(row), flush=True)
    print("\n".join(" | ".join(one) for one in (VERDICT, *verdicts(means(rows)))))


def line(row: dict[str, Any]) -> str:
    """A row as a line of the output."""
    if "accuracy" not in row:
        return f"{row['data']:22} {row['tool']:10} {row['why']}"
    return (
        f"{row['data']:22} {row['tool']:10} {row['accuracy']:.3f} F1 {row['macro_f1']:.3f} "
        f"{row['seconds'] / 60:6.1f} min {row['peak_mb']:7.0f} MB memory "
        f"{row['mb']:7.1f} MB {row['texts_per_second']:8.0f} texts/s   {row['settings']}"
    )


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        sys.exit(str(error))
