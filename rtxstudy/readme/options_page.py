"""The generated part of docs/options.md: every option of every command, from the commands' own help."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click

from rtx.cli.commands import cli
from rtxstudy.readme.blocks import lines


def options() -> str:
    """A section for each command: how it is called, what it does, and a table of its options with their defaults."""
    return "\n\n".join(_section(context) for context in _commands(click.Context(cli, info_name="rtx")))


def _commands(group: click.Context) -> Iterator[click.Context]:
    """A context for each command of a group, those of groups inside it included."""
    for name in group.command.list_commands(group):
        command = group.command.get_command(group, name)
        context = click.Context(command, info_name=name, parent=group)
        if isinstance(command, click.Group):
            yield from _commands(context)
        else:
            yield context


def _section(context: click.Context) -> str:
    call = " ".join([context.command_path, *context.command.collect_usage_pieces(context)])
    help_text = re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.cleandoc(context.command.help))  # a paragraph a line, as in Markdown
    records = [option.get_help_record(context) for option in context.command.params if isinstance(option, click.Option)]
    table = lines(["option", "what it does"], ([f"`{_cell(option)}`", _cell(text)] for option, text in records))
    return f"## {context.command_path}\n\n    {call}\n\n{help_text}" + (f"\n\n{table}" if records else "")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
