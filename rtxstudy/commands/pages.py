"""``rtx pages``: write the interactive pages as files, or serve them on this machine."""

from __future__ import annotations

import contextlib
import os
import tempfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import click

from rtxlib.cli.output import write_whole
from rtxlib.errors import InputError
from rtxstudy.commands import need_extra


@click.command()
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="The folder to write the pages to.")
@click.option("--serve", is_flag=True, help="Show them in a browser until interrupted.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="The port of --serve; 0 takes a free one."
)
@click.option("--run", help="Add a transformer page with the weights of this trained RUN.")
def pages(out: Path | None, serve: bool, port: int, run: str | None) -> None:
    """Write or show the interactive pages on the transformer and its activations.

    Each page is one HTML file that a double click opens. It fetches nothing.
    """
    need_extra("pages")
    from rtxstudy.pages import static

    if out is None and not serve:
        raise InputError("Say where to: --out DIR writes the pages, --serve shows them.")
    with contextlib.ExitStack() as stack:
        folder = out or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rtx-pages-")))
        files = _files(run)
        for name in files:  # another page may well be called index.html
            path = folder / name
            ours = path.is_file() and not path.is_symlink() and static.MARK in path.read_text(encoding="utf-8", errors="replace")
            if os.path.lexists(path) and not ours:
                raise InputError(f"{folder / name} is there and not one of these pages; name another folder with --out.")
        for name, text in files.items():
            write_whole(folder / name, lambda path, text=text: path.write_text(text, encoding="utf-8"))
        if out is not None:
            click.echo("\n".join(str(folder / name) for name in files))
        if serve:
            _serve(folder, port)


def _files(run: str | None) -> dict[str, str]:
    """File name → HTML."""
    from rtxstudy.pages import static

    titles = {f"{name}.html": title for name, title in static.PAGES.items()}
    files = {f"{name}.html": static.page(name) for name in static.PAGES}
    if run is not None:
        from rtxlib import paths
        from rtxlib.runs import store
        from rtxstudy.pages.weights import packed

        found = store.find(paths.runs_dir(), run)
        name = f"transformer-{found.key}.html"
        files[name] = static.page("transformer", {"run": packed(found)})
        titles[name] = f"The weights of {found.metrics['model']}, seed {found.metrics['seed']}"
    return files | {"index.html": static.index(titles)}


def _serve(folder: Path, port: int) -> None:
    """Serve a folder to this machine only. Raises InputError when the port is taken."""
    handler = type("Quiet", (SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), partial(handler, directory=folder))
    except OSError as error:
        raise InputError(f"Port {port} cannot be had ({error.strerror}); choose another with --port.") from None
    click.echo(f"http://127.0.0.1:{server.server_address[1]}/   (Ctrl-C ends it)")
    with server, contextlib.suppress(KeyboardInterrupt):
        server.serve_forever()
