"""Where things lie: one root, and a named folder for each kind of thing made under it."""

from __future__ import annotations

import os
from pathlib import Path

from rtxlib.errors import InputError

_MARK = Path("notebooks") / "01_data_preparation.ipynb"  # what tells a checkout from any other folder


def root() -> Path:
    """The folder that holds data, figures and reports.

    ``$RTX_HOME`` when set; else the checkout that contains the working directory; else the checkout this package is
    installed from; else ``~/.local/share/rtxlib``, so that the installed package works without a checkout. Raises
    InputError when ``$RTX_HOME`` can be no folder.
    """
    if home := os.environ.get("RTX_HOME"):
        try:
            folder = Path(home).expanduser().resolve()
        except RuntimeError:  # ~somebody
            raise InputError(f"RTX_HOME={home} names a home folder that is not there.") from None
        if folder.exists() and not folder.is_dir():
            raise InputError(f"RTX_HOME={home} is not a folder; name one, or unset it.")
        return folder
    here = Path.cwd()
    for folder in (here, *here.parents, Path(__file__).resolve().parents[1]):
        if (folder / _MARK).is_file():
            return folder
    return Path.home() / ".local" / "share" / "rtxlib"


def notebooks_dir() -> Path:
    """The notebooks of the root, or those of the checkout this package is installed from."""
    here = root()
    return (here if (here / _MARK).is_file() else Path(__file__).resolve().parents[1]) / "notebooks"


def prepared_dir() -> Path:
    """Tokenised data, one folder a fingerprint; ignored by git."""
    return root() / "data" / "prepared"


def runs_dir() -> Path:
    """The run store: weights and records, one folder a key; ignored by git."""
    return root() / "data" / "runs"


def results_dir(profile: str) -> Path:
    """Tidy Parquet of what a profile found."""
    return root() / "data" / "results" / profile


def figures_dir(profile: str) -> Path:
    return root() / "figures" / profile


def reports_dir(profile: str) -> Path:
    return root() / "reports" / profile
