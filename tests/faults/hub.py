"""A Hub on loopback that holds tiny repos and does what Hubs and the networks before them do wrong."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlparse

COMMIT = hashlib.sha1(b"commit").hexdigest()
LARGE = (".safetensors", ".parquet")  # files that a Hub keeps apart from git, with their SHA-256
FAULTS = ("500", "500 for files", "404 for files", "403", "429", "a page", "closed", "short", "cut", "changed", "changed words")


class Hub(BaseHTTPRequestHandler):
    """Answers as the Hub does, unless it has the fault that its class names."""

    protocol_version = "HTTP/1.1"
    repos: dict[str, Path]
    fault = ""

    def log_message(self, *_: object) -> None:
        pass

    def send(self, content: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command == "HEAD":
            return
        if self.fault == "cut" and "X-Repo-Commit" in str(headers).replace("_", "-"):
            content, self.close_connection = content[: len(content) // 2], True
        with contextlib.suppress(OSError):
            self.wfile.write(content)

    def do_GET(self) -> None:
        path = unquote(urlparse(self.path).path).strip("/")
        about = re.fullmatch(r"api/models/([^/]+/[^/]+)(?:/(revision|tree)/[^/]+)?", path)
        file = re.fullmatch(r"([^/]+/[^/]+)/resolve/[^/]+/(.+)", path)
        if self.fault == "closed":
            self.close_connection = True
        elif self.fault in ("500", "403", "429"):
            self.send(b"{}", int(self.fault))
        elif self.fault == "a page":
            self.send(b"<html>Log in to the network</html>", Content_Type="text/html")
        elif about and about[1] in self.repos:
            record = _about(about[1], self.repos[about[1]])
            self.send(json.dumps(record["tree"] if about[2] == "tree" else record).encode(), Content_Type="application/json")
        elif file and self.fault.endswith("for files"):
            self.send(b"{}", int(self.fault[:3]))
        elif file and (whole := self.repos.get(file[1], Path()) / file[2]).is_file():
            self.send_file(whole)
        else:
            self.send(b"{}", 404, X_Error_Code="EntryNotFound" if file else "RepoNotFound")

    do_HEAD = do_GET

    def send_file(self, path: Path) -> None:
        content = path.read_bytes()
        if self.fault == "changed" and path.suffix == ".safetensors":
            content = content[:-64] + bytes(byte ^ 1 for byte in content[-64:])
        elif self.fault == "changed words" and path.name == "tokenizer.json":
            content = content.replace(b'"the"', b'"teh"')
        elif self.fault == "short":
            content = content[:-1]
        status, extra = 200, {}
        if ranged := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "")):
            begin, end = int(ranged[1]), int(ranged[2] or len(content) - 1)
            extra["Content_Range"] = f"bytes {begin}-{end}/{len(content)}"
            content, status = content[begin : end + 1], 206
        self.send(content, status, ETag=f'"{_name(path)}"', X_Repo_Commit=COMMIT, Accept_Ranges="bytes", **extra)


def _name(path: Path) -> str:
    """The Hub's name of a file: its SHA-256, or of a small file git's SHA-1."""
    content = path.read_bytes()
    if path.suffix in LARGE:
        return hashlib.sha256(content).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _about(repo: str, folder: Path) -> dict[str, object]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    siblings = [
        {"rfilename": path.relative_to(folder).as_posix(), "size": path.stat().st_size, "blobId": _name(path)}
        | ({"lfs": {"sha256": _name(path), "size": path.stat().st_size, "pointerSize": 134}} if path.suffix in LARGE else {})
        for path in files
    ]
    tree = [{"type": "file", "path": file["rfilename"], "oid": file["blobId"], "size": file["size"]} for file in siblings]
    return {"id": repo, "_id": "0" * 24, "sha": COMMIT, "private": False, "tags": [], "siblings": siblings, "tree": tree}


@contextlib.contextmanager
def serving(repos: dict[str, Path], fault: str = "") -> Iterator[str]:
    """The address of a Hub with these repos (id → folder) and one of :data:`FAULTS`."""
    handler = type("Faulty", (Hub,), {"repos": repos, "fault": fault})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
