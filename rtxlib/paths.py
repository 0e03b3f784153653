"""Where files lie: one root, and under it one folder for each kind of file."""

from __future__ import annotations

import os
from pathlib import Path

from rtxlib.errors import InputError


def root() -> Path:
    """The folder that holds data, figures and reports.

    It is ``$RTX_HOME`` when that is set, else the checkout, else the working directory. Raises InputError when ``$RTX_HOME``
    is empty or cannot be a folder.
    """
    home = os.environ.get("RTX_HOME")
    if home is not None:
        if not home.strip():  # a script's variable without a value; another folder would be a surprise
            raise InputError("RTX_HOME is set but empty; unset it, or name a folder.")
        try:
            folder = Path(home).expanduser()
        except RuntimeError:  # ~somebody
            raise InputError(f"RTX_HOME={home} names a home folder that does not exist.") from None
        if os.path.lexists(folder) and not os.path.isdir(folder):  # a file, or a link to nothing or to itself
            raise InputError(f"RTX_HOME={home} is not a folder; name one, or unset it.")
        return Path(os.path.realpath(folder))  # Path.resolve raises for a circle of links
    return checkout() or Path.cwd()


def checkout() -> Path | None:
    """The checkout of this project that contains the working directory, else the one this package is installed from."""
    here = Path.cwd()
    for folder in (here, *here.parents, Path(__file__).resolve().parents[1]):
        if (folder / "pyproject.toml").is_file() and (folder / "rtxlib" / "paths.py").is_file():
            return folder
    return None


def prepared_dir() -> Path:
    """Tokenised data, one folder per fingerprint; ignored by git."""
    return root() / "data" / "prepared"


def runs_dir() -> Path:
    """The run store: weights and records, one folder per key; ignored by git."""
    return root() / "data" / "runs"


def pretrained_dir() -> Path:
    """Encoders that runs of the study start from, one folder per key; ignored by git."""
    return root() / "data" / "pretrained"
