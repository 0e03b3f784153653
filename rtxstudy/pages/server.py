"""A server of pages for the browser of this machine. It knows the files it was given and no others."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PATIENCE = 30.0  # seconds for one request and its answer


class PageServer(ThreadingHTTPServer):
    """Serves files from memory at 127.0.0.1. No folder is read, so no link, no other file and no list of files can be asked for.

    Each client has a thread, and a client that takes longer than ``PATIENCE`` is cut off. Raises OSError when the port is taken.
    """

    def __init__(self, files: Mapping[str, str], port: int) -> None:
        """files: name → HTML, among them index.html; port: 0 takes a free one."""
        super().__init__(("127.0.0.1", port), _Handler)
        self.port = self.server_address[1]
        self.pages = {f"/{name}": text.encode() for name, text in files.items()}
        self.pages["/"] = self.pages["/index.html"]
        # A page of another site can make the browser ask this server under a name of its own (DNS rebinding). The Host header
        # gives that away.
        names = ("127.0.0.1", "localhost", "[::1]")
        self.hosts = {f"{name}:{self.port}" for name in names} | ({*names} if self.port == 80 else set())

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing about a client that goes away or is cut off."""


class _Handler(BaseHTTPRequestHandler):
    server: PageServer

    def setup(self) -> None:
        super().setup()
        # A time-out of the socket would begin again with every byte.
        self.clock = threading.Timer(PATIENCE, self.cut_off)
        self.clock.daemon = True
        self.clock.start()

    def finish(self) -> None:
        self.clock.cancel()
        super().finish()

    def cut_off(self) -> None:
        """End reading and writing in the client's thread. The client may have gone already."""
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def do_GET(self) -> None:
        page = self.server.pages.get(self.path.partition("?")[0])
        if self.headers.get_all("Host", []) not in [[host] for host in self.server.hosts]:
            status, page = HTTPStatus.MISDIRECTED_REQUEST, b"These pages are for the browser of this machine alone.\n"
        elif self.command not in ("GET", "HEAD"):
            status, page = HTTPStatus.METHOD_NOT_ALLOWED, b"These pages can only be read.\n"
        else:
            status, page = (HTTPStatus.OK, page) if page else (HTTPStatus.NOT_FOUND, b"There is no such page.\n")
        self.send_response(status)
        self.send_header("Content-Type", f"text/{'html' if status == HTTPStatus.OK else 'plain'}; charset=utf-8")
        self.send_header("Content-Length", str(len(page)))
        self.send_header("Cache-Control", "no-store")  # the next server of this port may have other pages
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("X-Content-Type-Options", "nosniff")
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(page)

    do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_GET  # any other method is answered with 501

    def log_message(self, *_: Any) -> None:
        """Keep the terminal free of a line for every request."""
