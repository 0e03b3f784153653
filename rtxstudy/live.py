"""Progress in a notebook: one line that is written over, and a sentence when the work is interrupted."""

from __future__ import annotations

from types import TracebackType

LONGEST = 110  # characters; a longer line would be broken, and only its last part written over


class Live:
    """A function of lines of progress, as :func:`rtx.executors.execute.run` takes one. Use it as a context manager.

    Each line takes the place of the one before. The last one stays. After an interrupt a further line says how to go on.
    """

    def __init__(self) -> None:
        self.width = 0  # characters of the line that stands

    def __call__(self, line: str) -> None:
        text = line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"
        print(f"\r{text.ljust(self.width)}", end="", flush=True)
        self.width = len(text)

    def __enter__(self) -> Live:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.width:
            print(flush=True)
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            print("Interrupted. What is trained is kept: run the cell again, and it goes on from there.", flush=True)
