"""The ``rtx`` command in a process group of its own, under a folder of its own, with a limit of seconds.

``rtx`` runs a command in one of two ways. A cold process is ``python -m rtx``, as a user starts it. A warm process is forked
from one that has loaded the libraries already, so a case takes a second instead of six, and random moments fall into the work
and not into ``import torch``.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import json
import multiprocessing
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import pandas as pd
import psutil

from . import Broken, require

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 20  # a command that takes longer hangs, unless its check says otherwise; more on a busy machine
LONGEST = 600  # characters of a sentence
LONGEST_ARGUMENT = 1 << 17  # bytes that Linux allows
MEMORY = 12 << 30  # bytes of address space, so that no case takes the machine's memory
WATCHED = ("home", "tmp", "runtime")  # where a command may leave files behind
TIMES = re.compile(r"second|^ms_|finished|time|date|^latency_|^files$")  # columns and entries that differ between equal runs
DRAWN = {".html", ".ipynb", ".svg", ".pdf", ".png", ".md", ".lock"}  # they show times, so only their presence is compared
_PRELOADED = [
    *("rtx.cli", "rtx.cli.commands", "rtx.doctor", "rtxlib.runs.train", "rtx.use", "rtx.executors.execute"),
    *("rtxlib.data.prepare", "rtxlib.data.synthetic", "rtx.embedding", "rtxlib.models.pretrained", "torch"),
    *("torch._dynamo", "tqdm", "pyarrow.parquet", "sklearn.linear_model", "rtxstudy.commands.report", "rtxstudy.profiles"),
    *("rtxstudy.report.notebooks", "rtxstudy.commands.compare", "rtxstudy.questions.your_texts.comparison"),
    "rtxstudy.questions.your_texts.texts",
]
_warm = multiprocessing.get_context("forkserver")
_starting = threading.Lock()


@dataclass
class Place:
    """The folders of one case. Everything that a command writes lies in them."""

    folder: Path
    variables: dict[str, str] = field(default_factory=dict)  # of the environment, beside those of ``environment``

    def __post_init__(self) -> None:
        for name in (*WATCHED, "work", "user"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)

    home = property(lambda self: self.folder / "home")
    work = property(lambda self: self.folder / "work")  # the working directory, with the user's files
    runs = property(lambda self: self.home / "data" / "runs")

    def environment(self) -> dict[str, str]:
        """Nothing of the caller's but the path: no proxy, no token, no setting of the study."""
        return {
            **{"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "LANG": "C.UTF-8", "OMP_NUM_THREADS": "1"},
            **{"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "CUDA_VISIBLE_DEVICES": ""},
            **{"RAY_USAGE_STATS_ENABLED": "0", "TOKENIZERS_PARALLELISM": "false", "PYTHONDONTWRITEBYTECODE": "1"},
            **{"HOME": str(self.folder / "user"), "HF_HOME": str(self.folder / "user" / "hf")},
            **{"MPLCONFIGDIR": str(Path(tempfile.gettempdir()) / f"faults-matplotlib-{os.getuid()}")},  # one cache of fonts
            **{"RTX_HOME": str(self.home), "TMPDIR": str(self.folder / "tmp")},
            **{"JUPYTER_RUNTIME_DIR": str(self.folder / "runtime"), **self.variables},
        }

    def files(self) -> set[str]:
        """The files under the watched folders."""
        every = (path for name in WATCHED for path in (self.folder / name).rglob("*"))
        return {str(path.relative_to(self.folder)) for path in every if path.is_symlink() or not path.is_dir()}


@contextlib.contextmanager
def place(template: Path | None = None) -> Iterator[Place]:
    """A temporary place, which begins as a copy of a template. It is removed afterwards, with every process that uses it."""
    folder = Path(tempfile.mkdtemp(prefix="faults-"))
    try:
        if template is not None:
            shutil.copytree(template, folder, dirs_exist_ok=True, symlinks=True)
        yield Place(folder)
    finally:
        for process in users(folder):
            with contextlib.suppress(psutil.Error):
                process.kill()
        shutil.rmtree(folder, ignore_errors=True)


def users(folder: Path) -> list[psutil.Process]:
    """The living processes whose RTX_HOME lies in a folder."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get("RTX_HOME", "").startswith(str(folder)) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


@dataclass
class Outcome:
    """How a command ended. status: as the shell counts it, 128 + the signal's number after a signal; None after the limit."""

    status: int | None
    out: str
    err: str
    seconds: float
    killed: bool = False  # whether it was still running at the moment at which the signal was sent

    def last_json(self) -> Any:
        return json.loads(self.out.strip().splitlines()[-1])


def rtx(
    at: Place,
    *arguments: object,
    given: bytes = b"",
    cold: bool = False,
    limit: float = SECONDS,
    moment: float | None = None,
    sent: int = signal.SIGKILL,
    alone: bool = False,
    first: Callable[[], object] | None = None,
    within: Sequence[str] = (),
) -> Outcome:
    """Run one command to its end, its limit, or a moment at which its process group gets a signal.

    Args:
        at: its folders
        arguments: of ``rtx``
        given: standard input
        cold: start Python anew
        limit: seconds after which its process group is killed, if the machine has a core for it
        moment: seconds after which the signal is sent
        sent: the signal
        alone: send it to the process alone, as a system does that kills one process, and not to its group
        first: is called in the process before the command; a warm process wants a function that can be pickled
        within: a command before Python's, such as ``setpriv``; it makes the process cold
    """
    words = [word if isinstance(word, bytes) else str(word).encode("utf-8", "surrogatepass") for word in arguments]
    streams = [at.folder / name for name in ("stdin", "stdout", "stderr")]
    streams[0].write_bytes(given)
    began = time.monotonic()
    if within or (cold and max(map(len, words)) < LONGEST_ARGUMENT):
        with streams[0].open("rb") as stdin, streams[1].open("wb") as stdout, streams[2].open("wb") as stderr:
            process = subprocess.Popen(
                [*within, sys.executable, "-m", "rtx", *words],
                env=at.environment(),
                cwd=at.work,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                preexec_fn=functools.partial(_begin, first),
            )
        join, alive, status = _waiter(process), lambda: process.poll() is None, lambda: process.returncode
    else:
        process = _warm.Process(target=_forked, args=(words, at.environment(), at.work, streams, first))
        with _starting, mock.patch.dict(os.environ, at.environment(), clear=True):
            process.start()
            # Otherwise a start in another thread polls it, and whoever polls second reads 255 (multiprocessing's _cleanup).
            multiprocessing.process._children.discard(process)
        join, alive, status = process.join, process.is_alive, lambda: process.exitcode
    killed = False
    if moment is not None:
        join(max(0.0, began + moment - time.monotonic()))
        if killed := alive():
            _send(process.pid, sent, alone)
    join(limit * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)))
    if hung := alive():
        _send(process.pid, signal.SIGKILL)
        join(10)
    code = status()
    out, err = (path.read_bytes().decode(errors="replace") for path in streams[1:])
    number = None if hung or code is None else 128 - code if code < 0 else code
    return Outcome(number, out, err, time.monotonic() - began, killed)


def _waiter(process: subprocess.Popen) -> Callable[[float], None]:
    def join(seconds: float) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)

    return join


def _send(pid: int, number: int, alone: bool = False) -> None:
    """To the process group or to the process alone, once it has begun: before that it may ignore SIGINT, as the harness does."""
    own = Path("/proc/self/cmdline").read_bytes()  # a fork of this process shows it until it becomes another program
    with contextlib.suppress(ProcessLookupError, FileNotFoundError):
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            if os.getpgid(pid) == pid and Path(f"/proc/{pid}/cmdline").read_bytes() != own:
                break
            time.sleep(0.002)
        (os.kill if alone else os.killpg)(pid, number)


def _begin(first: Callable[[], object] | None) -> None:
    """Before the command: Ctrl-C as in a terminal, a group of its own, and no more memory than the machine can spare."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.setsid()  # by this the harness knows that a signal would meet the command
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    if first is not None:
        first()


def _forked(words: list[bytes], environment: dict[str, str], work: Path, streams: list[Path], first: Any) -> None:
    """``python -m rtx`` in a fork: the same streams, signals, exit status and farewell."""
    os.chdir(work)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None
    for number, path in enumerate(streams):
        os.dup2(os.open(path, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, closefd=False)
    status = 0
    try:
        _begin(first)
        from rtx.cli import main

        sys.argv = ["rtx", *map(os.fsdecode, words)]
        main()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        status = 1
    with contextlib.suppress(Exception):
        atexit._run_exitfuncs()
        sys.stdout.flush()
    os._exit(status)


def warm_up() -> None:
    """Start the process from which the warm ones are forked. It takes some seconds, once."""
    with _starting, tempfile.TemporaryDirectory() as folder:
        _warm.set_forkserver_preload(_PRELOADED)
        with mock.patch.dict(os.environ, Place(Path(folder)).environment(), clear=True):
            multiprocessing.forkserver.ensure_running()
            process = _warm.Process(target=int)
            process.start()
            process.join()


# ---------------------------------------- what is expected of an outcome

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def one_sentence(outcome: Outcome) -> None:
    """A refusal is one sentence with status 2, and never a traceback, a hang or a silent end."""
    last = outcome.err.strip().rpartition("\n\n")[2].splitlines() or [""]
    said = next((line for line in reversed(last) if line.startswith(("rtx: ", "Error: "))), "")
    shown = outcome.err[-700:] or "nothing on stderr"
    require(outcome.status is not None, f"it hung: no end after {outcome.seconds:.0f} s")
    require(outcome.status == 2, f"exit status {outcome.status}: {shown}")
    calm(outcome)
    require(said, f"no sentence: {shown}")
    require(len(outcome.err.strip().splitlines()[-1]) <= LONGEST, f"a sentence of {len(last[-1])} characters: {shown}")


def calm(outcome: Outcome) -> None:
    """No traceback and no control characters on stderr, whatever the status. A bar of progress may return its carriage."""
    require("Traceback" not in outcome.err, f"a traceback: {outcome.err[-700:]}")
    require(not _CONTROL.search(outcome.err.replace("\r", "")), f"control characters: {outcome.err[-300:]!r}")


def succeeded(outcome: Outcome) -> Outcome:
    """Status 0, or Broken with what the command said."""
    require(outcome.status == 0, f"exit status {outcome.status} after {outcome.seconds:.0f} s: {outcome.err[-700:]}")
    return outcome


def fine_or_one_sentence(outcome: Outcome) -> None:
    if outcome.status == 0:
        calm(outcome)
    else:
        one_sentence(outcome)


def clean_store(at: Place) -> None:
    """``rtx doctor --store`` finds no damage."""
    told = rtx(at, "doctor", "--store")
    require(told.status == 0, f"doctor --store: exit status {told.status}: {told.out[-300:]}{told.err[-300:]}")


def nothing_left(at: Place, reference: Iterable[str]) -> None:
    """The files are those of an unbroken run, and no process goes on."""
    until = time.monotonic() + 5
    while (living := users(at.folder)) and time.monotonic() < until:
        time.sleep(0.1)
    require(not living, f"processes are left: {living}")
    have, reference = at.files(), set(reference)
    require(have <= reference, f"left behind: {sorted(have - reference)[:6]}")
    require(reference <= have, f"missing: {sorted(reference - have)[:6]}")


def sums(*folders: Path) -> dict[str, str]:
    """The SHA-256 of every file under folders, without locks; a link counts as what it points to, by name."""
    found = {}
    for path in (path for folder in folders for path in sorted(folder.rglob("*"))):
        if path.is_symlink():
            found[str(path)] = f"link to {os.readlink(path)}"
        elif path.is_file() and path.suffix != ".lock":
            found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
        elif not path.is_dir() and path.suffix != ".lock":
            found[str(path)] = "special"
    return found


def same(ours: Path, theirs: Path) -> None:
    """Two folders hold equal files: tables and records apart from times, drawings and pages by name, all others by bytes."""
    for file in sorted(path for path in theirs.rglob("*") if path.is_file() and path.suffix not in DRAWN):
        other = ours / file.relative_to(theirs)
        require(other.is_file(), f"{other.name} is missing")
        require(_content(file) == _content(other), f"{file.relative_to(theirs)} differs from that of an unbroken run")


def _content(file: Path) -> object:
    if file.suffix in (".parquet", ".csv"):
        table = pd.read_parquet(file) if file.suffix == ".parquet" else pd.read_csv(file)
        kept = table[[column for column in table if not TIMES.search(column)]]
        return kept.map(str).sort_values(list(kept), kind="stable").to_csv(index=False)
    if file.suffix == ".json":
        content = _timeless(json.loads(file.read_text()))
        if file.name == ".rtx.json":  # of answered shards: it names their folder, which lies elsewhere in each case
            content.pop("folder", None)
        return content
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.name != "SHA256SUMS" else None


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _timeless(entry) for name, entry in value.items() if not TIMES.search(name)}
    return [_timeless(entry) for entry in value] if isinstance(value, list) else value


def once(make: Callable[[Path], None]) -> Callable[[], Path]:
    """A folder that ``make`` fills when it is first wanted; it stays for the session."""
    lock, found = threading.Lock(), []

    def get() -> Path:
        with lock:
            if not found:
                folder = Path(tempfile.mkdtemp(prefix="faults-once-"))
                atexit.register(shutil.rmtree, folder, ignore_errors=True)
                make(folder)
                found.append(folder)
        return found[0]

    return get


@once
def encoder(folder: Path) -> None:
    """A tiny exported encoder with its tokenizer, made without a Hub."""
    code = """
import sys, torch
from rtxlib.data import tokenization
from rtxlib.models import Encoder, pretrained, preset
tokenizer = tokenization.train(["the film was dull", "the staff were kind and the soup was hot"], 100)
sizes = {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64, "vocab_size": len(tokenizer)}
torch.manual_seed(0)
pretrained.save(Encoder(preset("minilm-l3", **sizes)), sys.argv[1], tokenizer)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder / "encoder")], env=Place(folder).environment(), capture_output=True, text=True
    )
    if done.returncode:
        raise Broken(f"no encoder could be exported: {done.stderr[-700:]}")
