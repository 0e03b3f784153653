"""The ``rtx`` command inside the process of the tests: loading torch again for each would take most of the time."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from rtx.cli import main


def rtx(*arguments: object, given: bytes = b"", home: Path | None = None) -> SimpleNamespace:
    """Run one command; given: standard input; home: RTX_HOME, else as it is. Returns returncode, stdout and stderr."""
    out, err, status = io.StringIO(), io.StringIO(), 0
    with (
        mock.patch.object(sys, "argv", ["rtx", *map(str, arguments)]),
        mock.patch.object(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(given))),
        mock.patch.dict(os.environ, {} if home is None else {"RTX_HOME": str(home)}),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as end:
            status = end.code
    return SimpleNamespace(returncode=status, stdout=out.getvalue(), stderr=err.getvalue())


def exported(where: Path) -> str:
    """Train a small loop of any depth, export it as ``graph``, and write its key to ``run``, all in ``where``; the key."""
    small = ("--data", "embedded", "--rows", "240", "--recipe", "smoke", "--set", "depth_sampling=uniform")
    done = rtx("train", "--model", "recurrent-1x2x32", *small, "--json", home=where)
    assert done.returncode == 0, done.stderr
    run = json.loads(done.stdout.splitlines()[-1])["key"]
    (where / "run").write_text(run)
    done = rtx("export", run, "--out", where / "graph", home=where)
    assert done.returncode == 0, done.stderr
    return run
