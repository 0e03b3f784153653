"""What a person waits for: the first answer of ``rtx``, and a report whose runs are all in the store."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator

from benchmarks.measure import Row, not_measured, row, seconds, take_turns

HELP_SECONDS, PREDICT_SECONDS, GRAPH_SECONDS, REPORT_SECONDS = 0.5, 2.0, 0.6, 60.0
TEXT = "a fine film"
PIPELINE = """
import sys
import rtxlib.models
from transformers import pipeline
print(pipeline("text-classification", sys.argv[1])(sys.argv[2]))
"""


def _rtx() -> str:
    program = shutil.which("rtx", path=sysconfig.get_path("scripts"))
    if program is None:
        sys.exit(f"There is no rtx beside {sys.executable}; run `make setup` first.")
    return program


def rows(rounds: int, short: bool) -> Iterator[Row]:
    rtx, packages = _rtx(), ("click", "papermill", "nbconvert")

    def call(*words: str) -> subprocess.CompletedProcess:
        return subprocess.run([rtx, *words], capture_output=True, text=True)

    call("--help")  # the first call compiles the files and fills the page cache
    taken = [seconds(lambda: call("--help")) for _ in range(2 * rounds + 1)]
    settings = "a process each, files in the page cache; the peer is the limit"
    limits = [HELP_SECONDS] * len(taken)
    yield row("rtx --help", taken, limits, "s", 1.0, packages, settings, less_is_better=True)

    yield from _predict(rtx, rounds)

    name, profile = "the report again, every run in the store", "smoke" if short else "demo"
    done: list[subprocess.CompletedProcess] = []
    report = ("report", "--profile", profile, "--no-training")
    taken = [seconds(lambda: done.append(call(*report))) for _ in range(1 if short else 3)]
    if any(one.returncode for one in done):
        why = next(one for one in done if one.returncode).stderr.strip().splitlines()[-1]
        yield not_measured(name, "s", 1.0, f"make report PROFILE={profile} first ({why})")
        return
    settings = f"rtx {' '.join(report)}, all notebooks; the peer is the limit"
    yield row(name, taken, [REPORT_SECONDS] * len(taken), "s", 1.0, packages, settings, less_is_better=True)


def _predict(rtx: str, rounds: int) -> Iterator[Row]:
    """One text from the shell: a process starts, opens a small trained run, labels the text and ends."""
    with tempfile.TemporaryDirectory() as home:
        environment = os.environ | {"RTX_HOME": home}

        def call(*words: str) -> str:
            return subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout

        trained = call(rtx, "train", "--model", "standard-2x128", "--data", "embedded", "--recipe", "smoke", "--json")
        run = json.loads(trained.splitlines()[-1])["run"]
        ways = {
            "ours": lambda: seconds(lambda: call(rtx, "predict", run, TEXT)),
            "pipeline": lambda: seconds(lambda: call(sys.executable, "-c", PIPELINE, run, TEXT)),
        }
        for way in ways.values():
            way()
        taken = take_turns(ways, 2 * rounds + 1)
        call(rtx, "export", run)
        graph = [seconds(lambda: call(rtx, "predict", run, TEXT)) for _ in range(2 * rounds + 1)]
    settings = "standard-2x128; a process each, files in the page cache"
    name, packages = "rtx predict RUN TEXT, cold", ("transformers",)
    limits = [PREDICT_SECONDS] * len(taken["ours"])
    yield row(name, taken["ours"], limits, "s", 1.0, packages, f"{settings}; the peer is the limit", less_is_better=True)
    limits, how = [GRAPH_SECONDS] * len(graph), f"{settings}, after `rtx export RUN`; the peer is the limit"
    yield row(f"{name}, by the graph beside the run", graph, limits, "s", 1.0, ("onnxruntime",), how, less_is_better=True)
    yield row(f"{name}, beside pipeline", taken["ours"], taken["pipeline"], "s", 1.0, packages, settings, less_is_better=True)
