"""What a run of the tests says about tests that it could not run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ONE = "tests/test_report_html.py::test_it_opens_offline_and_everything_has_drawn"


def without_a_browser(tmp_path: Path, **environment: str) -> subprocess.CompletedProcess:
    """A run of one test where no Chromium is to be found."""
    found = {name: value for name, value in os.environ.items() if name not in ("CHROMIUM", "RTX_REQUIRE")}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", ONE]
    return subprocess.run(
        command, cwd=ROOT, env=found | {"PATH": str(tmp_path)} | environment, capture_output=True, text=True
    )


def test_the_last_line_names_what_was_skipped_and_the_command_that_brings_it(tmp_path: Path) -> None:
    done = without_a_browser(tmp_path)
    assert done.returncode == 0, done.stdout
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("Skipped: "))
    assert line == "Skipped: 4 need Chromium. To run them: sudo apt-get install -y chromium && make test"


def test_where_it_is_asked_for_a_skipped_test_is_a_failure(tmp_path: Path) -> None:
    done = without_a_browser(tmp_path, RTX_REQUIRE="browser")
    assert done.returncode == 1 and "needs Chromium" in done.stdout
