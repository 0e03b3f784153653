"""How much memory data take. What cannot fit is refused before it is read."""

from __future__ import annotations

from rtxlib.errors import InputError
from rtxlib.process import available_memory, short_of_memory

# Bytes of memory, measured and rounded down, so that nothing is refused that would fit.
READING = 6.0  # for each byte of a CSV, TSV, JSONL or text file
VALUE = 75  # for each value of a Parquet file
WORD, CHARACTER = 250, 6  # of the distinct texts, while they are searched for leaks
GENERATED = 1000  # for each generated row


def require_memory(needed: float, what: str, instead: str) -> None:
    """Raise InputError, with the estimate and the limit, if this process cannot have so much memory.

    Args:
        needed: bytes
        what: what needs them, as the subject of a sentence
        instead: what to do
    """
    if needed > (free := available_memory()):
        raise InputError(
            f"{what} takes about {_size(needed)} of memory, and {short_of_memory()} has {_size(free)} free; {instead}."
        )


def _size(count: float) -> str:
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.1f} MB"
