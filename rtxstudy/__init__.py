"""The study: what the notebooks call to run, compare, draw and report."""

from typing import Any


def __getattr__(name: str) -> Any:
    """``from rtxstudy import Study``, loaded when it is asked for, so that ``rtx --help`` answers at once."""
    if name == "Study":
        from rtxstudy.study import Study

        return Study
    raise AttributeError(f"module 'rtxstudy' has no attribute '{name}'")
