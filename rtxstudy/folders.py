"""Where the study writes: its tables, figures and reports, a folder for each profile."""

from __future__ import annotations

from pathlib import Path

from rtxlib.paths import root


def results_dir(profile: str) -> Path:
    """Tidy Parquet tables of a profile's results."""
    return root() / "data" / "results" / profile


def figures_dir(profile: str) -> Path:
    return root() / "figures" / profile


def reports_dir(profile: str) -> Path:
    return root() / "reports" / profile
