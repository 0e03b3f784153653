"""The commands that this package adds to ``rtx``, through the entry points of pyproject.toml."""

from rtx.doctor import packages
from rtx.process import NOTEBOOK_MEMORY, require_limits
from rtxlib.errors import InputError


def need_extra(command: str) -> None:
    """Raise InputError when the packages of the extra "study" are not installed."""
    if missing := packages("study")[1]:
        names = ", ".join(missing[:3]) + (", …" if len(missing) > 3 else "")
        raise InputError(f'`rtx {command}` needs packages that are not installed ({names}): pip install "rtxlib[study]"')


def need_notebooks(command: str) -> None:
    """Raise InputError as :func:`need_extra`, and when the limits of the shell leave too little for the kernel of a notebook."""
    need_extra(command)
    require_limits(NOTEBOOK_MEMORY)
