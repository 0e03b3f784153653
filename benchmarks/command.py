"""What a person waits for: the first answer of ``rtx``, and a report whose runs are all in the store."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator

from benchmarks.measure import Row, not_measured, row, seconds

HELP_SECONDS, REPORT_SECONDS = 0.5, 90.0


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
