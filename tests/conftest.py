"""A Hub on loopback for the whole session, and no other: no test ever reaches the real one.

huggingface_hub and datasets read their environment when they are imported, so it is set here, before any test module is.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import socket
import tempfile
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"
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
)
for name in ("HF_HUB_OFFLINE", "HF_DATASETS_CACHE", "HF_HUB_CACHE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE"):
    os.environ.pop(name, None)


@pytest.fixture(scope="session")
def hub() -> str:
    """The address of the loopback Hub, which HF_ENDPOINT names already; HF_HOME is an empty cache."""
    if not _HUB.is_dir():
        pytest.skip(f"the real data are not here ({_HUB.parent.name}/{_HUB.name} beside the checkout)")
    return os.environ["HF_ENDPOINT"]


@pytest.fixture(scope="session")
def prepared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder of prepared data for the session, so that no two tests prepare the same twice."""
    return tmp_path_factory.mktemp("prepared")
