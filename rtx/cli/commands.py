"""The group ``rtx`` with all its commands."""

from rtx.cli import convert, data, distill, embed, export, pretrain, runs, use  # noqa: F401 - each adds its commands to the group
from rtx.cli.common import cli

__all__ = ["cli"]
