"""``rtx pages``: write the interactive pages as files, or serve them on this machine."""

from __future__ import annotations

import errno
import os
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rtx.cli.output import write_whole
from rtx.process import Terminated
from rtxlib.errors import InputError, visible
from rtxstudy.commands import need_extra

if TYPE_CHECKING:
    from rtxstudy.pages.server import PageServer

PORT = 8765  # taken if it is free and no other is asked for


@click.command()
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="The folder to write the pages to.")
@click.option("--serve", is_flag=True, help="Serve them to a browser on this machine until interrupted.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help=f"The port of --serve; 0 takes a free one.  [default: {PORT}, or a free one where it is taken]",
)
@click.option("--run", help="Add a transformer page with the weights of this trained RUN.")
def pages(out: Path | None, serve: bool, port: int | None, run: str | None) -> None:
    """Write or show the interactive pages on the transformer and its activations.

    Each page is one HTML file that a double click opens. It fetches nothing.
    """
    need_extra("pages")
    from rtxstudy.pages import static

    if out is None and not serve:
        raise InputError("Say where to: --out DIR writes the pages, --serve serves them to a browser.")
    files = _files(run)
    for path in [] if out is None else [out / name for name in files]:  # another page may well be called index.html
        ours = path.is_file() and not path.is_symlink() and static.MARK in path.read_text(encoding="utf-8", errors="replace")
        if os.path.lexists(path) and not ours:
            raise InputError(f"{path} is there and not one of these pages; name another folder with --out.")
    with _server(files, port) if serve else nullcontext() as server:  # a port that cannot be had is told before a file is written
        if out is not None:
            for name, text in files.items():
                write_whole(out / name, lambda path, text=text: path.write_text(text, encoding="utf-8"))
            click.echo("\n".join(visible(str(out / name)) for name in files))
        if server is not None:
            _serve(server)


def _files(run: str | None) -> dict[str, str]:
    """File name → HTML."""
    from rtxstudy.pages import static

    cards = static.cards()
    files = {f"{name}.html": static.page(name) for name in static.PAGES}
    if run is not None:
        from rtx import archive
        from rtxlib import paths
        from rtxstudy.pages.weights import packed

        trained_run = archive.find(paths.runs_dir(), run)
        name = f"transformer-{trained_run.key}.html"
        files[name] = static.page("transformer", {"run": packed(trained_run)})
        title = f"The weights of {trained_run.metrics['model']}, seed {trained_run.metrics['seed']}"
        cards.append(static.Card(name, "transformer", title, "The same page, with the weights of this trained run."))
    return files | {"index.html": static.index(cards)}


def _server(files: dict[str, str], port: int | None) -> PageServer:
    """A server of the files that has its port. Raises InputError when the port that was asked for cannot be had."""
    from rtxstudy.pages.server import PageServer

    try:
        return PageServer(files, PORT if port is None else port)
    except OSError as error:
        if port is not None or error.errno != errno.EADDRINUSE:
            raise InputError(
                f"Port {PORT if port is None else port} cannot be had ({error.strerror}); choose another with --port."
            ) from None
        server = PageServer(files, 0)
        click.echo(f"Port {PORT} is taken, so the pages are at port {server.port}.", err=True)
        return server


def _serve(server: PageServer) -> None:
    """Serve the pages to this machine until Ctrl-C."""
    click.echo(f"http://127.0.0.1:{server.port}/   (Ctrl-C ends it)")
    try:
        server.serve_forever()
    except Terminated:
        raise
    except KeyboardInterrupt:  # the usual way to end it
        pass
