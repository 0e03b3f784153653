"""A process that computes is tuned before it loads torch, and it answers signals, limits and closed streams in a sentence."""

from __future__ import annotations

import contextlib
import errno
import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from in_process import rtx

from rtx import process
from rtx.cli import INTERRUPTED, KEPT, commands
from rtx.errors import lacking
from rtxlib.errors import InputError

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


# What a tuned process is given: on a busy machine, and where nothing else runs at that moment.
TUNED = (process.SETTINGS, process.SETTINGS | {"GOMP_SPINCOUNT": process.QUIET_SPINS})
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
    ["from rtx.cli import main; main()", "import runpy; runpy.run_module('rtx', run_name='__main__')"],
    ids=["rtx", "python -m rtx"],
)
def test_the_command_line_is_tuned(start: str, untuned: None) -> None:
    told = told_by(f"sys.argv = ['rtx', 'params', 'standard-1x32']\n{start}\n{TELL}")
    assert told["seen"] in TUNED and told["released"] < 10


@glibc
def test_a_study_is_tuned_when_it_is_opened(untuned: None) -> None:
    told = told_by("from rtxstudy import Study\nstudy = Study.open('smoke')\n" + TELL)
    assert told["seen"] in TUNED and told["released"] < 10


def report(spec: Any, runs: Path, _: Any = None, patience: float = 0) -> SimpleNamespace:
    """Stands in for a training, and puts what it finds in its process into the run's metrics."""
    from rtxlib.runs import store

    found: dict[str, Any] = {}
    exec(RELEASED, found)
    # What the system gave the program that loaded torch: for a forked worker that is the server it was forked from.
    began = [entry.partition("=") for entry in Path("/proc/self/environ").read_text().split("\0")]
    metrics = {
        "accuracy": 0.5,
        "train_seconds": 1.0,
        "process": os.getpid(),
        "released": found["released"](),
        "at_start": {name: value for name, _, value in began if name in process.SETTINGS},
    }
    with store.writing(runs, str(spec.seed)) as folder:
        store.write_json(folder / "spec.json", spec.canonical() | {"label_names": ["a", "b"]})
        store.write_json(folder / "metrics.json", metrics)
    return SimpleNamespace(metrics=metrics)


def metrics_of(runs: Path, keys: Iterable[str]) -> list[dict[str, Any]]:
    return [json.loads((runs / key / "metrics.json").read_text()) for key in keys]


WORKERS = """
import json, os, sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from test_process import metrics_of, report
from rtx.executors import local
from rtxlib.data.datasets import Generated
from rtxlib.runs.spec import RunSpec
from rtxlib.training.recipe import RECIPES
os.cpu_count = lambda: 2
local.train_run = report
specs = {{str(seed): RunSpec("standard-1x32", Generated(), RECIPES["smoke"], seed) for seed in (0, 1)}}
local.train_all(specs, Path({runs!r}), lambda line: None, {{}})
print(json.dumps({{"parent": os.getpid(), "workers": metrics_of(Path({runs!r}), specs)}}))
"""


@glibc
def test_worker_processes_are_tuned(untuned: None, tmp_path: Path) -> None:
    """In a process of its own, because workers are forked from one server a process, and other tests may have started it."""
    told = told_by(WORKERS.format(tests=str(Path(__file__).parent), runs=str(tmp_path)))
    for worker in told["workers"]:
        assert worker["process"] != told["parent"]
        assert worker["at_start"] in TUNED and worker["released"] < 10


PARENT = """
import multiprocessing, os, sys, time
from rtx import process

def work(started):
    process.start_worker()
    open(started, "w").close()
    time.sleep(1000)

if __name__ == "__mp_main__" and sys.argv[2] == "early":
    time.sleep(3)  # the worker is slow to start, as one that imports torch
if __name__ == "__main__":
    worker = multiprocessing.get_context("spawn").Process(target=work, args=(sys.argv[1],))
    worker.start()
    print(worker.pid, flush=True)
    time.sleep(1000)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="SIGKILL and /proc")
@pytest.mark.parametrize("when", ["early", "late"])
def test_a_worker_ends_with_its_parent_however_early_that_is_killed(when: str, tmp_path: Path) -> None:
    (tmp_path / "parent.py").write_text(PARENT)
    started = tmp_path / "started"
    parent = subprocess.Popen([sys.executable, tmp_path / "parent.py", started, when], stdout=subprocess.PIPE, text=True)
    worker = psutil.Process(int(parent.stdout.readline()))
    while when == "late" and not started.exists():
        time.sleep(0.05)
    parent.kill()
    parent.wait()
    try:
        psutil.wait_procs([worker], timeout=60)
        assert not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE
    finally:
        with contextlib.suppress(psutil.Error):
            worker.kill()


# ------------------------------------------------------------------------------------- what ends a command from outside


def shell(line: str) -> tuple[int, str]:
    """The exit status and the stderr of a line of bash, in which ``rtx`` is this interpreter's."""
    script = f"set -o pipefail\nrtx() {{ '{sys.executable}' -m rtx \"$@\"; }}\n{line}"
    done = subprocess.run(["bash", "-c", script], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=60)
    return done.returncode, done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="bash and its limits as on Linux")
@pytest.mark.parametrize(
    ("line", "status", "said"),
    [
        ("rtx results >&-", 2, "rtx: Standard output is closed, so no result can be shown; send it to a file"),
        ("rtx results <&- >&- 2>&-", 2, ""),
        ("rtx --help | true", 141, "rtx: The program that read this output has ended"),
        ("rtx --help > /dev/full", 2, "rtx: The disk is full"),
        ('cd "$(mktemp -d)" && rmdir "$PWD" && rtx --help', 2, "rtx: The working folder is gone"),
        ("ulimit -n 12; rtx results", 2, "rtx: This shell allows a process 12 open files, and rtx needs 64"),
        ("export RTX_HOME=$(mktemp -d); touch $RTX_HOME/data; rtx train --model standard-1x32 --data embedded", 2, "rtx: "),
        ("ulimit -v 2900000; rtx compare x.csv", 2, "rtx: This shell allows a process 2,832 MB of memory, and rtx needs "),
        ("ulimit -v 300000; rtx results", 2, "rtx: This shell allows a process 292 MB of memory, and rtx needs 2,"),
    ],
)
def test_what_the_shell_does_not_give_is_one_sentence(line: str, status: int, said: str, tmp_path: Path) -> None:
    left, err = shell(line.replace("mktemp -d", f"mktemp -d -p '{tmp_path}'"))
    assert left == status and err.startswith(said) and err.count("\n") == bool(said), err


def test_a_closed_stdin_is_empty_and_takes_no_file_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    process.replace_closed_streams()
    with sys.stdin:
        assert sys.stdin.buffer.read() == b""


@pytest.mark.parametrize(
    "sent, module, status",
    [("INT", "click", 130), ("INT", "click.decorators", 130), ("INT", "rtx.process", 130), ("TERM", "pandas", 143)],
)
def test_a_signal_while_the_command_is_loading_is_one_sentence(sent: str, module: str, status: int, tmp_path: Path) -> None:
    code = (
        "import signal, sys\nsignal.signal(signal.SIGINT, signal.default_int_handler)\nclass Sent:\n"
        f"    def find_spec(self, name, *_):\n        if name == {module!r}:\n            sys.meta_path.remove(self)\n"
        f"            signal.raise_signal(signal.SIG{sent})\n"
        "sys.meta_path.insert(0, Sent())\nsys.argv = ['rtx', 'results']\nfrom rtx.cli import main\nmain()\n"
    )
    environment = os.environ | {"RTX_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (status, "", INTERRUPTED + "\n")


@pytest.mark.parametrize("sent, raised", [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, process.Terminated)])
def test_an_interrupt_that_an_import_swallows_comes_again(
    sent: int, raised: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = f"swallows_{sent}"
    (tmp_path / f"{module}.py").write_text(
        "import os, time\ntry:\n"
        f"    os.kill(os.getpid(), {int(sent)})\n    time.sleep(9)\nexcept BaseException:\n    swallowed = True\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(process, "AGAIN", 0.05)
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}[sent]
    found = signal.signal(sent, usual)  # tests that were started in the background ignore SIGINT
    with pytest.raises(raised), process.signals_as_interrupts():
        swallows = importlib.import_module(module)
        assert swallows.swallowed
        time.sleep(9)
        pytest.fail("the interrupt did not come again")
    assert signal.signal(sent, found) == usual
    time.sleep(0.1)  # and it does not come once the block has ended


@pytest.mark.parametrize(("sent", "raised"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, process.Terminated)])
def test_an_interrupt_in_a_finaliser_comes_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], sent: signal.Signals, raised: type[BaseException]
) -> None:
    class Interrupted:
        def __del__(self) -> None:
            os.kill(os.getpid(), sent)
            time.sleep(0)

    monkeypatch.setattr(process, "AGAIN", 0.05)
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}[sent]
    found, hook, reached = signal.signal(sent, usual), sys.unraisablehook, False
    with pytest.raises(raised) as stop, process.signals_as_interrupts():
        Interrupted()
        reached = True  # Python ignored the interrupt
        time.sleep(9)
    assert reached and type(stop.value) is raised
    assert signal.signal(sent, found) == usual and sys.unraisablehook is hook
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", ["click", "filelock"])
def test_a_missing_package_is_one_sentence(name: str, tmp_path: Path) -> None:
    code = (
        f"import sys\nsys.modules[{name!r}] = None\n"
        "sys.argv = ['rtx', 'results']\nfrom rtx.cli import main\nmain()\n"
    )
    environment = os.environ | {"RTX_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    said = f"rtx: The Python package '{name}' is missing; install rtxlib again"
    assert done.returncode == 2 and done.stderr.startswith(said) and done.stderr.count("\n") == 1, done.stderr


def test_sigterm_stops_a_command_as_ctrl_c_does(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    caught = []
    found = signal.signal(signal.SIGTERM, signal.SIG_DFL)  # Ray leaves a handler of its own

    def work(*_: object) -> None:
        try:
            signal.raise_signal(signal.SIGTERM)
        except KeyboardInterrupt as stop:  # as a training does that keeps its checkpoint
            caught.append(stop)
            raise

    monkeypatch.setattr(commands.cli, "invoke", work)
    (tmp_path / "shards").mkdir()
    for said, command in (
        (INTERRUPTED, ["results"]),
        (INTERRUPTED, ["export", "RUN", "--out", tmp_path]),
        (INTERRUPTED, ["predict", tmp_path, "--file", "a.csv", "--out", tmp_path / "b.csv"]),
        (KEPT, ["predict", "RUN", "--file", tmp_path, "--out", tmp_path / "shards"]),
        (KEPT, ["embed", tmp_path, f"--out={tmp_path / 'shards'}"]),
        (KEPT, ["train"]),
    ):
        done = rtx(*command, home=tmp_path)
        assert (done.returncode, done.stderr) == (143, said + "\n") and caught
    assert signal.signal(signal.SIGTERM, found) == signal.SIG_DFL


@pytest.mark.parametrize("error", [KeyError("a mistake"), EOFError(), OSError(errno.EIO, "Input/output error")])
def test_a_mistake_of_the_program_keeps_its_traceback(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def mistaken(*_: object) -> None:
        raise error

    monkeypatch.setattr(commands.cli, "invoke", mistaken)
    with pytest.raises(type(error)):
        rtx("results")


def test_a_file_that_may_not_be_opened_is_told_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "/closed/o.csv")

    monkeypatch.setattr(commands.cli, "invoke", refused)
    done = rtx("results")
    assert done.returncode == 2 and done.stderr.startswith("rtx: /closed/o.csv may not be opened (Permission denied); ask its")


LACKS = {
    "Memory ran out": [
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:127] . DefaultCPUAllocator: can't allocate memory: you tried to …"),
        ImportError("libtorch_cpu.so: failed to map segment from shared object"),
        RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB."),
    ],
    "Too many files": [OSError(errno.EMFILE, "Too many open files"), ImportError("a.so: cannot open: Too many open files")],
    "A thread could not": [RuntimeError("can't start new thread")],
    "A library cannot be loaded (libgomp.so.1: cannot open shared object file": [
        ImportError("IMPORTANT:\n  read this\nlibgomp.so.1: cannot open shared object file: No such file or directory")
    ],
    "The disk is full": [OSError(errno.ENOSPC, "full"), Exception("No space left on device (os error 28)")],
}


@pytest.mark.parametrize(("said", "error"), [(said, error) for said, errors in LACKS.items() for error in errors])
def test_what_the_machine_lacks_is_told_and_not_what_was_made_of_it(said: str, error: Exception) -> None:
    assert lacking(error).startswith(said)
    damaged = InputError("The weights of run x cannot be read; delete it and train it again.")
    damaged.__cause__ = RuntimeError("wrapped")
    damaged.__cause__.__context__ = error
    assert said == "The disk is full" or lacking(damaged).startswith(said)


def test_a_missing_package_counts_where_an_error_came_from_it_and_not_where_a_library_can_do_without() -> None:
    error, missing = InputError("The weights cannot be read."), ModuleNotFoundError("No module named 'torch'", name="torch")
    error.__context__ = missing
    assert lacking(error) is None
    error.__cause__ = missing
    assert lacking(error).startswith("The Python package 'torch' is missing; install rtxlib again")


def test_words_of_the_user_are_not_taken_for_a_lack() -> None:
    for error in (
        InputError("There is no data 'out of memory.csv'."),
        FileNotFoundError(errno.ENOENT, "No such file or directory", "not enough memory.so: x"),
        KeyError("out of memory"),
        ValueError("invalid literal: 'bad_alloc'"),
        RuntimeError("shapes do not match"),
        ModuleNotFoundError("No module named 'rtxlib.nothing'", name="rtxlib.nothing"),
    ):
        assert lacking(error) is None
