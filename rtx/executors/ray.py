"""Where work is done: on this machine ("local") or on a Ray cluster ("ray"). This module does not load torch."""

from __future__ import annotations

import logging
import os
import re
import socket
from importlib.util import find_spec
from typing import Any

from rtx import process
from rtxlib import paths
from rtxlib.errors import InputError, nearest, shortened

NAMES = ("local", "ray")
ANSWER_SECONDS = 10.0  # to wait for the first answer of a cluster
OBJECT_STORE = 100 * 2**20  # bytes; driver and workers exchange only small objects
NOT_ON_A_NODE = "rtxlib cannot be imported on a node of the cluster; install it on all of them, in the same version."


def known(name: str | None = None) -> str:
    """The name of an executor: ``name`` if it is given, else ``RTX_EXECUTOR``, else "local".

    Raises InputError for an unknown name, and for "ray" when Ray is not installed.
    """
    name = name or os.environ.get("RTX_EXECUTOR") or "local"
    if name not in NAMES:
        raise InputError(f"There is no executor '{shortened(name)}'; there are {', '.join(NAMES)}.{nearest(name, NAMES)}")
    if name == "ray" and find_spec("ray") is None:
        raise InputError("The executor 'ray' needs Ray, which is not installed: `pip install 'rtxlib[ray]'`.")
    return name


def connect(most_threads: int) -> None:
    """Connect this process to the cluster of ``RAY_ADDRESS``, or start a cluster on this machine that ends with the process."""
    import ray

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    common: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR, "runtime_env": environment()}
    address = os.environ.get("RAY_ADDRESS")
    if not address:
        cores = max(process.cores(), most_threads)
        try:
            ray.init("local", num_cpus=cores, include_dashboard=False, object_store_memory=OBJECT_STORE, **common)
        except Exception as error:  # Ray raises a bare Exception when its processes take half a minute to start
            raise InputError(
                f"Ray did not start here ({first_line(error)}); try again when the machine is less busy, or use the "
                "executor 'local'."
            ) from error
        return
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    try:
        if colon:  # Ray itself tries for minutes to reach an address that does not answer
            socket.create_connection((host.strip("[]"), int(port)), ANSWER_SECONDS).close()
        ray.init(address, **common)
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(
            f"There is no Ray cluster to work with at RAY_ADDRESS={address} ({first_line(error)}); start one with "
            "`ray start --head`, or unset RAY_ADDRESS to use this machine alone."
        ) from error


def lacks_us(error: BaseException) -> bool:
    """Whether a worker failed because a package of this project is missing on its node; then :data:`NOT_ON_A_NODE` says so."""
    return re.search(r"No module named '(rtx|rtxlib|rtxstudy)\b", str(error)) is not None


def first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0]


def environment() -> dict[str, dict[str, str]]:
    """A ``runtime_env`` with the environment variables that workers need.

    The Hub's token is left out, because Ray shows the ``runtime_env`` to others. A node that needs the token must have it in
    its own environment.
    """
    names = [name for name in os.environ if name.startswith("HF_") and "TOKEN" not in name]
    variables = {name: os.environ[name] for name in (*names, "TRANSFORMERS_OFFLINE", "PYTHONPATH") if name in os.environ}
    return {"env_vars": variables | process.environment() | {"RTX_HOME": str(paths.root())}}
