"""Every process that computes is tuned before it loads torch, and importing the package changes nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rtxlib import process

# A worker process imports this file to find `report` below. It has been tuned by then, and has not loaded torch.
AT_IMPORT = {"torch": "torch" in sys.modules, "settings": {name: os.environ.get(name) for name in process.SETTINGS}}

# Runs first in a process: it notes the settings at the moment at which torch loads its first module. (Other libraries look
# for torch itself, to know whether it is installed.)
WATCH = """
import os, sys
seen = []
class Watch:
    def find_spec(self, name, *_):
        if name.startswith("torch.") and not seen:
            seen.append({n: os.environ.get(n) for n in %r})
sys.meta_path.insert(0, Watch())
""" % list(process.SETTINGS)  # noqa: UP031 - the program has braces

# The megabytes that go back to the system with a tensor of 64 MB; none do where freed memory is kept.
RELEASED = """
def released():
    import torch
    def held(): return next(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith("VmRSS")) / 1024
    tensor = torch.ones(1 << 24)
    before = held()
    del tensor
    return before - held()
"""
glibc = pytest.mark.skipif(sys.platform != "linux", reason="the memory setting is glibc's")


@pytest.fixture
def untuned(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An environment without the settings that the tests' own process has been given."""
    for name in process.SETTINGS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RTX_HOME", str(tmp_path))


def told_by(code: str) -> dict[str, Any]:
    """The JSON in the last line that a program prints."""
    done = subprocess.run([sys.executable, "-c", WATCH + RELEASED + code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


TELL = "import json; print(json.dumps({'seen': seen[0], 'released': released()}))\n"


@pytest.mark.parametrize("program", ["rtx", "python"])
def test_importing_the_package_changes_nothing(program: str, untuned: None) -> None:
    code = (
        f"import json; sys.argv = [{program!r}]; before = dict(os.environ)\nimport rtxlib\n"
        "print(json.dumps({'same': before == dict(os.environ), 'torch': 'torch' in sys.modules}))\n"
    )
    assert told_by(code) == {"same": True, "torch": False}


def test_transformers_knows_the_architecture_after_importing_the_models() -> None:
    code = (
        "import json, rtxlib.models\nfrom transformers import AutoConfig, AutoModelForSequenceClassification\n"
        "config = AutoConfig.for_model(rtxlib.models.ModelConfig.model_type)\n"
        "print(json.dumps({'class': config.__class__.__module__}))\n"
    )
    assert told_by(code) == {"class": "rtxlib.models.config"}


@glibc
def test_an_untuned_process_returns_freed_memory(untuned: None) -> None:
    """Otherwise the tests below would prove nothing."""
    assert told_by("import json; print(json.dumps({'released': released()}))")["released"] > 50


@glibc
@pytest.mark.parametrize(
    "start",
    ["from rtxlib.cli import main; main()", "import runpy; runpy.run_module('rtxlib', run_name='__main__')"],
    ids=["rtx", "python -m rtxlib"],
)
def test_the_command_line_is_tuned(start: str, untuned: None) -> None:
    told = told_by(f"sys.argv = ['rtx', 'params', 'standard-1x32']\n{start}\n{TELL}")
    assert told["seen"] == process.SETTINGS and told["released"] < 10


@glibc
def test_a_study_is_tuned_when_it_is_opened(untuned: None) -> None:
    told = told_by("from rtxstudy import Study\nstudy = Study.open('smoke')\n" + TELL)
    assert told["seen"] == process.SETTINGS and told["released"] < 10


@pytest.fixture
def specs() -> dict[str, Any]:
    """Two runs by their keys; their seeds are the keys."""
    from rtxlib.data.spec import DataSpec
    from rtxlib.runs.spec import RunSpec
    from rtxlib.training.recipe import RECIPES

    return {str(seed): RunSpec("standard-1x32", DataSpec(), RECIPES["smoke"], seed) for seed in (0, 1)}


def report(spec: Any, runs: Path, _: Any = None, patience: float = 0) -> SimpleNamespace:
    """Stands in for a training, and puts what it finds in its process into the run's metrics."""
    from rtxlib.runs import store

    found: dict[str, Any] = {}
    exec(RELEASED, found)
    began = [entry.partition("=") for entry in Path("/proc/self/environ").read_text().split("\0")]
    metrics = {
        **{"accuracy": 0.5, "train_seconds": 1.0, "process": os.getpid(), "released": found["released"]()},
        **{"at_import": AT_IMPORT, "at_start": {name: value for name, _, value in began if name in process.SETTINGS}},
    }
    with store.writing(runs, str(spec.seed)) as folder:
        store.write_json(folder / "spec.json", spec.canonical())
        store.write_json(folder / "metrics.json", metrics)
    return SimpleNamespace(metrics=metrics)


def metrics_of(runs: Path, keys: Iterable[str]) -> list[dict[str, Any]]:
    return [json.loads((runs / key / "metrics.json").read_text()) for key in keys]


@glibc
def test_worker_processes_are_tuned(
    untuned: None, specs: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rtxlib.runs import local

    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(local, "train_run", report)
    local.train_all(specs, tmp_path, lambda line: None, {})
    for told in metrics_of(tmp_path, specs):
        assert told["process"] != os.getpid() and told["at_start"] == {}
        assert told["at_import"] == {"torch": False, "settings": process.SETTINGS} and told["released"] < 10
