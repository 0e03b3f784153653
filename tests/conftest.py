"""A Hub on loopback for the whole session, and no other: no test ever reaches the real one.

huggingface_hub and datasets read their environment when they are imported, so it is set here, before any test module is.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from rtx import process

# A shell lets its background jobs ignore Ctrl-C. The commands that tests start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

_ROOT = Path(__file__).resolve().parents[1]
SHARED = _ROOT.parent / "shared"
_HUB, _TOOL = SHARED / "hub", SHARED / "tools" / "local_hub.py"


def _serve() -> int:
    """The port of a server of the real data; where they are missing, a port that refuses every connection."""
    if not (_HUB.is_dir() and _TOOL.is_file()):
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            return closed.getsockname()[1]
    spec = importlib.util.spec_from_file_location("local_hub", _TOOL)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    handler = type("QuietHub", (tool.Hub,), {"root": _HUB.resolve(), "log_message": lambda *_: None})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


_HOME = tempfile.mkdtemp(prefix="hf-home-")
atexit.register(shutil.rmtree, _HOME, ignore_errors=True)
os.environ.update(
    HF_ENDPOINT=f"http://127.0.0.1:{_serve()}",
    HF_HOME=_HOME,
    HF_HUB_DISABLE_XET="1",
    HF_HUB_DISABLE_TELEMETRY="1",
    HF_HUB_DISABLE_PROGRESS_BARS="1",
    CUDA_VISIBLE_DEVICES="",  # bits are compared, which a GPU does not repeat; `rtx doctor` tries the GPU
)
if "PYTEST_XDIST_WORKER" in os.environ:  # files run side by side: a core each, or their threads wait for one another
    os.environ.setdefault("OMP_NUM_THREADS", "1")
process.tune()  # before any test loads torch
for name in ("HF_HUB_OFFLINE", "HF_DATASETS_CACHE", "HF_HUB_CACHE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE"):
    os.environ.pop(name, None)


# Word in RTX_REQUIRE → what a skipped test needs, and the Debian package that brings it.
_NEEDED = {"browser": ("Chromium", "chromium"), "node": ("Node 20 or newer", "nodejs")}
_REAL_DATA = f"the real data ({_HUB.parent.name}/{_HUB.name} beside the checkout)"


def _missing(what: str) -> None:
    """Skip for want of something, unless RTX_REQUIRE names it: continuous integration must not skip."""
    needed = _NEEDED[what][0] if what in _NEEDED else _REAL_DATA
    (pytest.fail if what in os.environ.get("RTX_REQUIRE", "").split(",") else pytest.skip)(f"needs {needed}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files begin first: two of three workers would wait for the last of them in the end."""
    longest = ("test_redraw.py", "test_ray.py", "test_notebooks.py")
    items.sort(key=lambda item: -longest.index(item.path.name) if item.path.name in longest else 1)


@pytest.hookimpl(wrapper=True, tryfirst=True)  # the outermost wrapper writes last
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """One line at the end: how many tests were skipped for want of what, and the command that brings it."""
    yield
    reasons = [str(report.longrepr[2]) for report in terminalreporter.stats.get("skipped", ())]
    counts = {needed: sum(reason.endswith(f"needs {needed}") for reason in reasons)
              for needed in (*(needed for needed, _ in _NEEDED.values()), _REAL_DATA)}  # fmt: skip
    packages = [package for needed, package in _NEEDED.values() if counts[needed]]
    if any(counts.values()):
        skipped = ", ".join(f"{count} need {needed}" for needed, count in counts.items() if count)
        remedy = f" To run them: sudo apt-get install -y {' '.join(packages)} && make test" if packages else ""
        terminalreporter.write_line(f"Skipped: {skipped}.{remedy}")


@pytest.fixture(scope="session")
def hub() -> str:
    """The address of the loopback Hub, which HF_ENDPOINT names already; HF_HOME is an empty cache."""
    if not _HUB.is_dir():
        _missing("hub")
    return os.environ["HF_ENDPOINT"]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Headless Chromium, with nothing in it that asks the network of its own accord."""
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if not chromium:
        _missing("browser")
    from playwright.sync_api import sync_playwright

    quiet = ["background-networking", "component-update", "sync", "gpu"]
    arguments = ["--no-sandbox", "--no-first-run", *(f"--disable-{name}" for name in quiet)]
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=arguments)
        yield running
        running.close()


@pytest.fixture(scope="session")
def node() -> str:
    """The path of Node, which tests the modules of the pages."""
    path = shutil.which("node")
    if not path:
        _missing("node")
    return path


@pytest.fixture(scope="session")
def prepared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder of prepared data for the session, so that no two tests prepare the same twice."""
    return tmp_path_factory.mktemp("prepared")


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built once for all workers, from the source distribution of a copy, since a build leaves files behind."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # beside the folders of the workers
        shared = shared.parent
    with FileLock(shared / "wheel.lock"):
        made = list((shared / "wheel").glob("*.whl"))
        return made[0] if made else _build(shared / "wheel")


def _build(folder: Path) -> Path:
    folder.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(_ROOT / name, folder)
    for name in ("rtxlib", "rtx", "rtxstudy", "notebooks"):
        shutil.copytree(_ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints"))

    def build(what: str, source: Path) -> Path:
        code = f"from setuptools import build_meta; build_meta.build_{what}({str(folder)!r})"
        done = subprocess.run([sys.executable, "-c", code], cwd=source, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
        return next(folder.glob("*.whl" if what == "wheel" else "*.tar.gz"))

    with tarfile.open(build("sdist", folder)) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    return build("wheel", next((folder / "unpacked").iterdir()))
