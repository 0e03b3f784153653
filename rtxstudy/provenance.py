"""The provenance of a notebook's numbers: the block at the end of each notebook."""

from __future__ import annotations

import html
import platform
import subprocess
import time
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("rtxlib", "torch", "transformers", "datasets", "tokenizers", "numpy", "pandas", "scikit-learn", "papermill")
# The paths that make a checkout dirty. The results are not among them, because a run changes them.
CODE = (":/rtxlib", ":/rtx", ":/rtxstudy", ":/notebooks", ":/pyproject.toml", ":/constraints.txt")


class Provenance(dict[str, Any]):
    """A dictionary that a notebook shows as a table of two columns."""

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><th scope="row">{html.escape(name.replace("_", " "))}</th>'
            f"<td>{'<br>'.join(map(html.escape, _lines(value)))}</td></tr>"
            for name, value in self.items()
        )
        return f'<table class="provenance"><caption>Provenance</caption><tbody>{rows}</tbody></table>'


def block(
    parameters: Mapping[str, Any],
    data: Mapping[str, Any] | None,
    started: float,
    seeds: Iterable[int] | None = None,
) -> Provenance:
    """Code, parameters, seeds, data, machine, versions and time behind the numbers of a notebook.

    ``started``: ``time.time()`` of the notebook's first cell. ``data`` identifies the data, for example
    ``prepared.provenance | {"fingerprint": prepared.fingerprint}``; None if the notebook reads none.
    """
    import torch

    device = torch.cuda.get_device_name() if torch.cuda.is_available() else processor()
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    return Provenance(
        **_commit(Path(__file__).parent),
        parameters=dict(parameters),
        seeds=list(seeds) if seeds is not None else None,
        data=dict(data) if data is not None else None,
        device=device,
        threads=torch.get_num_threads(),
        system=f"{platform.system()} {platform.machine()}",
        versions=versions,
        started=time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(started)),
        wall_seconds=round(time.time() - started, 1),
    )


def _commit(folder: Path) -> dict[str, str | bool | None]:
    """The commit of this package's checkout, and whether the code differs from it. Both are None without a checkout."""

    def git(*arguments: str) -> str:
        command = ("git", "-C", str(folder), *arguments)
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout.strip()

    try:
        # git ls-files fails if this package is installed inside the repository of another project
        git("ls-files", "--error-unmatch", Path(__file__).name)
        changed = git("status", "--porcelain", "--", *CODE)
        return {"commit": git("rev-parse", "HEAD"), "dirty": bool(changed)}
    except (OSError, subprocess.SubprocessError):
        return {"commit": None, "dirty": None}


def processor() -> str:
    """The processor's name. On Linux it stands in /proc/cpuinfo, which ``platform`` does not read."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _lines(value: Any) -> list[str]:
    """One line, or a line for each entry if all entries have entries of their own, as data sets have."""
    if isinstance(value, Mapping) and value and all(isinstance(item, Mapping) for item in value.values()):
        return [f"{key}: {_text(item)}" for key, item in value.items()]
    return [_text(value)]


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_text(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    return {"None": "none", "True": "yes", "False": "no"}.get(str(value), str(value))
