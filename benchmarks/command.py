"""What a person waits for: the first answer of ``rtx``, and a report whose runs are all there."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from statistics import median

from benchmarks.measure import Row, not_measured, seconds, versions
from rtxlib.training.device import device_name, pick_device

HELP_SECONDS, REPORT_SECONDS = 0.5, 90.0


def _rtx() -> str:
    found = shutil.which("rtx", path=sysconfig.get_path("scripts"))
    if found is None:
        sys.exit(f"There is no rtx beside {sys.executable}; run `make setup` first.")
    return found


def _beside_limit(name: str, taken: list[float], limit: float, settings: str) -> Row:
    """A row whose peer is a limit in seconds."""
    return Row(
        name,
        median(taken),
        limit,
        "s",
        limit / median(taken),
        1.0,
        len(taken),
        device_name(pick_device()),
        versions("click", "papermill", "nbconvert"),
        settings,
        (limit / max(taken), limit / min(taken)),
    )


def rows(rounds: int, short: bool) -> Iterator[Row]:
    rtx = _rtx()
    call = lambda *words: subprocess.run([rtx, *words], capture_output=True, text=True)  # noqa: E731
    call("--help")  # the files are read once, and compiled
    taken = [seconds(lambda: call("--help")) for _ in range(2 * rounds + 1)]
    yield _beside_limit(
        "rtx --help", taken, HELP_SECONDS, "a process each, files in the page cache; the peer is the limit"
    )
    name, profile = "the report again, every run in the store", "smoke" if short else "demo"
    done: list[subprocess.CompletedProcess] = []
    taken = [
        seconds(lambda: done.append(call("report", "--profile", profile, "--no-training")))
        for _ in range(1 if short else 3)
    ]
    if any(one.returncode for one in done):
        why = next(one for one in done if one.returncode).stderr.strip().splitlines()[-1]
        yield not_measured(name, "s", 1.0, f"make report PROFILE={profile} first ({why})")
        return
    yield _beside_limit(
        name,
        taken,
        REPORT_SECONDS,
        f"rtx report --profile {profile} --no-training, all notebooks; the peer is the limit",
    )
