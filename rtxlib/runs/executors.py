"""The names of the executors, which train missing runs. This module does not load torch."""

from __future__ import annotations

import os
from importlib.util import find_spec

from rtxlib.errors import InputError, nearest, shortened

NAMES = ("local", "ray")


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
