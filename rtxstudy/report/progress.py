"""The progress of running notebooks, on a terminal or in a log."""

from __future__ import annotations

import re
import shutil
import threading
import time
from typing import Any, TextIO


class Progress:
    """One line per cell, the lines that cells print, and the time spent so far.

    A terminal shows the present state in its last line, once a second. A log gets a line after 20 s of silence. Use it
    as a context manager.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream, self.live = stream, stream.isatty()
        self.lock, self.ended = threading.RLock(), threading.Event()
        self.spoken = time.monotonic()
        self.watched: list[Watch] = []

    def __enter__(self) -> Progress:
        threading.Thread(target=self._beat, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self._clear()

    def _clear(self) -> None:
        if self.live:
            self.stream.write("\r\x1b[2K")

    def line(self, text: str) -> None:
        with self.lock:
            self._clear()
            self.stream.write(text + "\n")
            self.stream.flush()
            self.spoken = time.monotonic()

    def _beat(self) -> None:
        while not self.ended.wait(1.0):
            with self.lock:
                standing = [watch.status() for watch in self.watched]
                if self.live and not self.ended.is_set():
                    self._clear()
                    self.stream.write("  |".join(standing)[: shutil.get_terminal_size().columns - 1])
                    self.stream.flush()
                elif time.monotonic() - self.spoken >= 20:
                    for status in standing:
                        self.line(status.rstrip())


class Watch:
    """A running notebook; ``open``, ``enter`` and ``leave`` are hooks of nbclient.

    ``name`` stands before its lines, for notebooks that run side by side.
    """

    def __init__(self, progress: Progress, name: str = "") -> None:
        self.progress, self.indent = progress, f"  {name} " if name else "  "
        self.cell, self.cells, self.headings = 0, 0, []
        self.printed, self.messages = Lines(self), Lines(self)
        self.heading = "starting the kernel"
        self.started = self.entered = time.monotonic()

    def __enter__(self) -> Watch:
        with self.progress.lock:
            self.progress.watched.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        with self.progress.lock:
            self.progress.watched.remove(self)

    def line(self, text: str) -> None:
        self.progress.line(self.indent + text)

    def status(self) -> str:
        now = time.monotonic()
        unfinished = _drawn(self.messages.rest) or _drawn(self.printed.rest)  # usually a progress bar
        since = f"{clock(now - self.entered)} so far"
        return f"{self.indent}{clock(now - self.started)}  {self._where()}  {since}  {unfinished}"

    def _where(self) -> str:
        return f"cell {self.cell} of {self.cells}  {self.heading}" if self.cells else self.heading

    def open(self, notebook: Any) -> None:
        self.cells = sum(cell.cell_type == "code" and bool(cell.source.strip()) for cell in notebook.cells)
        heading = "parameters"
        for cell in notebook.cells:
            headings = re.findall(r"^#+ +(.+)$", cell.source, re.M) if cell.cell_type == "markdown" else []
            heading = headings[-1] if headings else heading
            self.headings.append(heading)

    def enter(self, cell: Any, cell_index: int) -> None:
        self.cell += 1
        self.heading, self.entered = self.headings[cell_index], time.monotonic()

    def leave(self, cell: Any, cell_index: int, execute_reply: Any) -> None:
        now = time.monotonic()
        for lines in (self.printed, self.messages):
            lines.write("\n")
        self.line(f"{clock(now - self.started)}  {self._where()}  ({now - self.entered:.1f} s)")
        if self.cell == self.cells:
            self.heading, self.entered = "stopping the kernel", now


class Lines:
    """The file to which papermill copies a stream of the cells. It passes on whole lines."""

    def __init__(self, watch: Watch) -> None:
        self.watch, self.rest = watch, ""

    def write(self, text: str) -> None:
        *lines, self.rest = (self.rest + re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text)).split("\n")
        for line in lines:
            if drawing := _drawn(line):
                self.watch.line(f"      {drawing}")
        self.rest = self.rest[self.rest.rstrip("\r").rfind("\r") + 1 :]  # of a line drawn over, only the last drawing

    def flush(self) -> None:
        pass


def _drawn(line: str) -> str:
    """What a terminal shows of a line that was drawn several times, as progress bars are."""
    return line.rstrip("\r").rpartition("\r")[2].rstrip()


def clock(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    return f"{minutes}:{seconds:02d}"
