"""Checks of the installation. Each says what it found; only what stops the work counts as a failure."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rtxlib import paths
from rtxlib.errors import InputError

NVIDIA = Path("/dev/nvidia0")  # a driver made it
FREE_GB = 2.0  # a study's prepared data, runs and report fit in this


def packages(extra: str = "") -> tuple[dict[str, str], list[str]]:
    """The packages that rtxlib needs, or that an extra adds: those installed (name → version), and those missing or too old."""
    from packaging.requirements import Requirement

    installed, missing = {}, []
    for requirement in map(Requirement, importlib.metadata.requires("rtxlib") or ()):
        marker = requirement.marker
        if (marker is None) == bool(extra) or (marker is not None and not marker.evaluate({"extra": extra})):
            continue
        try:
            version = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            version = "0"
        if requirement.specifier.contains(version, prereleases=True):
            installed[requirement.name] = version
        else:
            missing.append(f"{requirement.name}{requirement.specifier}")
    return installed, missing


def _rtxlib() -> str:
    installed, missing = packages()
    if missing:
        raise RuntimeError(f"{', '.join(missing)} is missing or too old; install rtxlib again (in a checkout: `make setup`)")
    return f"Python {sys.version.split()[0]}, " + ", ".join(f"{name} {version}" for name, version in installed.items())


def _study() -> str:
    """The study is an extra, so its absence is not a failure."""
    installed, missing = packages("study")
    if missing:
        return f'not installed ({", ".join(missing)}); `pip install "rtxlib[study]"` adds rtx compare, report, notebook and pages'
    return ", ".join(f"{name} {version}" for name, version in installed.items())


def _device() -> str:
    import torch

    from rtxlib.training.device import device_name, pick_device, pick_precision

    device = pick_device()
    unused = ""
    if device.type == "cpu" and (shutil.which("nvidia-smi") or NVIDIA.exists()):
        unused = "; an NVIDIA GPU is here that this torch cannot use, see https://pytorch.org/get-started for a build with CUDA"
    precision = pick_precision("auto", device)
    return f"{device_name(device)}, trains in {precision}; {os.cpu_count()} cores, torch {torch.__version__}{unused}"


def _disk() -> str:
    folder = paths.root()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(b"x")
    free = shutil.disk_usage(folder).free / 1e9
    if free < FREE_GB:
        raise RuntimeError(f"only {free:.1f} GB free in {folder}; the study needs about {FREE_GB:.0f}")
    return f"{folder} is writable, {free:.0f} GB free"


def _cache() -> str:
    from huggingface_hub.constants import HF_HUB_CACHE

    folder = Path(HF_HUB_CACHE)
    repos = sorted(path.name for path in folder.glob("*--*")) if folder.is_dir() else []
    return f"{folder}: {len(repos)} {'repository' if len(repos) == 1 else 'repositories'}"


def _hub() -> str:
    """An unreachable Hub is not a failure, because the demo needs no network."""
    from huggingface_hub.constants import ENDPOINT, HF_HUB_OFFLINE

    from rtxlib.hub import revision

    if HF_HUB_OFFLINE:
        return "not asked, because HF_HUB_OFFLINE is set"
    try:
        answers = revision("stanfordnlp/sst2") is not None
    except InputError as error:
        return str(error)
    return f"{ENDPOINT} answers" if answers else f"{ENDPOINT} is not within reach; embedded data and cached repositories work"


def _passes() -> str:
    import torch

    from rtxlib.models import build
    from rtxlib.training.device import autocast, pick_device, pick_precision

    start, device = time.perf_counter(), pick_device()
    model = build("recurrent-1x2x64", vocab_size=100).to(device)
    with autocast(pick_precision("auto", device), device):
        ids = torch.randint(1, 100, (4, 12), device=device)
        loss = model(ids, labels=torch.tensor([0, 1, 0, 1], device=device)).loss
    loss.backward()
    norm = sum(float(p.grad.norm()) ** 2 for p in model.parameters() if p.grad is not None) ** 0.5
    if not (torch.isfinite(loss) and 0 < norm < float("inf")):
        raise RuntimeError(f"a forward and backward pass gave loss {loss.item()} and gradient norm {norm}")
    return f"loss {loss.item():.3f}, gradient norm {norm:.3f}, {1000 * (time.perf_counter() - start):.0f} ms"


CHECKS: dict[str, Callable[[], str]] = {
    "rtxlib": _rtxlib,
    "study": _study,
    "device": _device,
    "disk": _disk,
    "cache": _cache,
    "hub": _hub,
    "forward and backward": _passes,
}


def examine() -> list[dict[str, str | bool]]:
    """The ``check``, ``ok`` and ``found`` of every check."""
    findings = []
    for name, check in CHECKS.items():
        try:
            findings.append({"check": name, "ok": True, "found": check()})
        except Exception as error:  # any error is a finding
            findings.append({"check": name, "ok": False, "found": f"{type(error).__name__}: {error}"})
    return findings


def examine_store(runs: Path) -> list[dict[str, str | bool]]:
    """The ``check`` (a run's key), ``ok`` and ``found`` of every run of a store. Nothing is changed.

    Every file is compared with its checksum, the records are read, and every tensor is accounted for.
    """
    from rtx.export import opened
    from rtxlib.runs import store

    names = sorted(path.name for path in runs.glob("*") if path.is_dir() and not path.name.startswith("."))
    findings = []
    for name in names:
        if name.endswith(store.PARTIAL) or (runs / name / opened.RECORD).is_file():  # in training; a graph beside its run
            continue
        try:
            findings.append({"check": name, "ok": True, "found": _run(runs, name)})
        except InputError as error:
            findings.append({"check": name, "ok": False, "found": str(error)})
    return findings


def _run(runs: Path, key: str) -> str:
    """What is stored of a whole run. Raises InputError for a damaged one."""
    from rtxlib import checksums
    from rtxlib.runs import store, trained

    if (run := store.load(runs, key)) is None:
        if not any((runs / key / name).exists() for name in store.RECORDS):
            raise InputError(f"{runs / key} holds no run; move it elsewhere.")
        raise store.damaged(key, runs / key, f"it has no {checksums.MARK}")
    trained.open_run(run)
    store.verify(run, lambda name: name != store.CARD)
    description = f"{run.metrics.get('model')} on {run.metrics.get('data')}, seed {run.metrics.get('seed')}"
    if checksums.recorded(run.path) is None:
        return f"{description}; it carries no checksums, because an earlier version stored it, and its tensors are complete"
    return description + (f"; its {store.CARD} was edited" if checksums.damage(run.path, store.CARD.__eq__) else "")
