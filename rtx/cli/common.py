"""What the commands of ``rtx`` share: their group, common options, and reading what a person wrote."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rtx.process import require_limits
from rtxlib.errors import InputError, counted, nearest, shortened, visible

if TYPE_CHECKING:
    from rtxlib.runs.store import Run


class Commands(click.Group):
    """A group that suggests the nearest command for a mistyped one."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        known = self.list_commands(ctx)
        if args and args[0] not in known and not args[0].startswith("-"):
            raise click.UsageError(f"There is no command '{shortened(args[0])}'.{nearest(args[0], known)}")
        return super().resolve_command(ctx, args)


class Rtx(Commands):
    """The commands of this package, and those that other packages add through the entry-point group "rtx.commands"."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *entry_points(group="rtx.commands").names})

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.commands:
            for added in entry_points(group="rtx.commands", name=name):
                self.add_command(added.load(), name)
        return super().get_command(ctx, name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        added = entry_points(group="rtx.commands").names
        names = self.list_commands(ctx)
        for title, section in (("Study", added), ("Commands", {*names} - added)):
            rows = [(name, self.get_command(ctx, name).get_short_help_str(formatter.width - 16)) for name in sorted(section)]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows, col_max=12)


@click.group(cls=Rtx, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="rtxlib")
def cli() -> None:
    """When does a recurrent transformer replace a deeper standard one, and what does it cost?

    Start with `rtx report`: the study at demo size, 15 to 35 minutes on two cores.
    """
    require_limits()


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON; the last line is the result.")


def data_spec(data: str, **fields: Any) -> Any:
    """The DataSpec of a source's name or of a file. A field that is None keeps its default."""
    from rtxlib.data import datasets
    from rtxlib.data.files import SUFFIXES, existing

    options = {field: value for field, value in fields.items() if value is not None}
    known = tuple(name for name in datasets.NAMES if name != "file")
    if data in known:
        return datasets.data_spec(data, **options)
    if Path(data).suffix.lower() in SUFFIXES or os.path.exists(data):
        return datasets.data_spec("file", path=existing(data).resolve().as_posix(), **options)
    name = shortened(data)
    raise InputError(f"There is no data '{name}'; name a file, or one of {', '.join(known)}.{nearest(name, known)}")


def data_specs(columns: Mapping[str, str | None], *groups: Sequence[str], **fields: Any) -> list[tuple[Any, ...]]:
    """The DataSpecs of each group of sources and files. columns: of the files; raises InputError for some and no file."""
    files = [data for group in groups for data in group if Path(data).suffix]
    if not files and (named := [name for name, value in columns.items() if value is not None]):
        option = named[0].replace("_", "-")
        raise InputError(f"--{option} names a column of a file, and no source here is a file; leave it out.")
    return [tuple(data_spec(data, **(columns if data in files else {}), **fields) for data in group) for group in groups]


def require_threads(threads: int) -> None:
    """Raise InputError for more threads than a machine can use: a few too many are slow, very many end the process."""
    most = 4 * (os.cpu_count() or 1)
    if threads > most:
        cores = counted(most // 4, "core")
        raise InputError(f"--threads {threads} is too many for this machine, which has {cores}; give at most {most}.")


_PYTHON = {"True": True, "False": False, "None": None}


def settings_of(texts: tuple[str, ...]) -> dict[str, Any]:
    """``NAME=VALUE`` pairs. A value is JSON, or Python's True, False and None; any other word is a string."""
    settings = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"'{shortened(text)}' is not NAME=VALUE.")
        try:
            settings[name] = _PYTHON[value] if value in _PYTHON else json.loads(value)
        except (ValueError, RecursionError):  # ValueError also for thousands of digits, RecursionError for nested brackets
            settings[name] = value
    return settings


def parse_labels(text: str) -> dict[str, str]:
    """The mapping of ``--labels``: value in the file → label name. Raises InputError for anything else."""
    from rtxlib.data.files import whole

    try:
        labels = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f'--labels is not JSON ({error}); write it like \'{{"1": "good", "0": "bad"}}\'.') from None
    except (ValueError, RecursionError):  # thousands of digits, or of brackets
        raise InputError('--labels is not a mapping of labels; write it like \'{"1": "good", "0": "bad"}\'.') from None
    if not isinstance(labels, dict):
        raise InputError("--labels must be a JSON object from values in the file to label names.")
    for value, name in labels.items():
        if not isinstance(name, str | int | float):  # None would become a class called "None"
            raise InputError(
                f"--labels gives '{shortened(value)}' the name {shortened(json.dumps(name))}, which is not a string; "
                '"" leaves those rows out.'
            )
    return {whole(str(value)): whole(str(name)) for value, name in labels.items()}


def show(record: dict[str, Any], as_json: bool) -> None:
    """Print a record as one line of JSON, or one field per line."""
    if as_json:
        click.echo(json.dumps(record))
        return
    for name, value in record.items():
        click.echo(f"{name:26} {_written(value) if isinstance(value, float) else visible(str(value))}")


def _written(value: float) -> str:
    """Four decimals, or two digits of a number that would lose them: 0.8945, 480.1000, 1.2e-06."""
    return f"{value:.2g}" if 0 < abs(value) < 1e-3 else f"{value:.4f}"


def show_encoder(out: Path, record: str, left_out: Collection[str], as_json: bool, train: Callable[..., Path]) -> None:
    """Train an encoder into the folder ``out`` and show its record, the JSON file of that name, but for some entries.

    train: takes the folder and a function that is called with lines of progress, and returns the folder. Raises InputError when
    the folder cannot be written.
    """
    was_there = out.exists()
    try:
        folder = train(out.absolute(), lambda line: click.echo(visible(line), err=True))
    except OSError as error:
        raise InputError(f"{out} could not be written: {error.strerror or error}.") from error
    if was_there:
        said = "was there already, so nothing was trained. If its texts have changed, name a new folder."
        click.echo(f"{visible(str(out))} {said}", err=True)
    fields = json.loads((folder / record).read_text(encoding="utf-8"))
    show({name: value for name, value in fields.items() if name not in left_out} | {"folder": str(folder)}, as_json)


def find_run(run: str) -> Run:
    """The run of this key, start of a key, or folder. Standard error says so if it has no checksums.

    Raises InputError when there is none.
    """
    from rtx import archive
    from rtxlib import checksums, paths

    if not run.strip():
        raise InputError("RUN is empty; `rtx results` lists the runs there are.")
    try:
        stored = archive.find(paths.runs_dir(), run)
    except OSError as error:  # for example a name that is too long
        raise InputError(
            f"The run '{shortened(run)}' cannot be opened ({error.strerror}); `rtx results` lists the runs there are."
        ) from error
    if checksums.recorded(stored.path) is None:
        warning = f"Run {stored.key} carries no checksums, because an earlier version stored it; damage may go unnoticed."
        click.echo(visible(warning), err=True)
    return stored


def is_table(path: str) -> bool:
    """Whether a file is read as a table, and not as one text per line."""
    return Path(path).suffix.lower() not in ("", ".txt")


def text_lines(text: str) -> list[str]:
    """One text per line. A line ends with LF or CR LF; Unicode's other line separators are ordinary characters."""
    lines = text.split("\n")
    return [line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1])]


def read_texts(
    path: str, column: str | None, pair_column: str | None = None, label_column: str | None = None
) -> tuple[Any, list[Any]]:
    """A table and the text of each row, or its pair of texts. A text file becomes a table with one row per line.

    column, pair_column: of the first texts ("text" by default) and of the second texts, where rows are pairs.

    Raises InputError as ``read_table`` does, and when the table lacks a column or has it twice.
    """
    import pandas as pd

    from rtxlib.data.files import decode, read_bytes, read_table, require_column
    from rtxlib.data.rows import PAIR, texts_of

    name = Path(path).name
    if not is_table(path):
        if column is not None:
            raise InputError(f"{name} is read line by line and has no columns; leave --text-column out, or name a table.")
        if pair_column is not None:
            raise InputError(f"Pairs of texts are read from a table, and {name} is none; name a CSV, TSV, JSONL or Parquet file.")
        table = pd.DataFrame({"text": text_lines(decode(read_bytes(path), name))})
        return table, table["text"].tolist()
    column = column or "text"
    table = read_table(path, [used for used in (column, pair_column, label_column) if used is not None])
    require_column(table, column, name, "--text-column")
    texts = {"text": table[column].fillna("").astype(str)}
    if pair_column is not None:
        require_column(table, pair_column, name, "--text-pair-column")
        texts[PAIR] = table[pair_column].fillna("").astype(str)
    return table, texts_of(pd.DataFrame(texts))
