"""The outcome of each notebook, kept beside the executed notebooks."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from rtxlib.atomic import replacing
from rtxlib.errors import InputError


@dataclass(frozen=True)
class Outcome:
    """The outcome of one notebook."""

    name: str  # "03_recurrent"
    status: Literal["done", "failed", "interrupted", "skipped"]
    seconds: float
    error: str | None = None  # "cell 5: ValueError: …", with the number in brackets beside the executed cell
    path: Path | None = None  # the executed notebook; None if it could not be kept


def save_outcomes(outcomes: Iterable[Outcome], out: Path) -> None:
    """Merge ``outcomes`` into ``out/outcomes.json``. Outcomes of other notebooks stay."""
    latest = {outcome.name: outcome for outcome in (*read_outcomes(out), *outcomes)}
    records = [asdict(latest[name]) | {"path": latest[name].path and f"notebooks/{name}.ipynb"} for name in sorted(latest)]
    with replacing(out / "outcomes.json") as part:
        part.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")


def read_outcomes(out: Path) -> list[Outcome]:
    """The outcomes under ``out``, in order; none if nothing ran there. Raises ``InputError`` for a damaged file."""
    file = out / "outcomes.json"
    try:
        records = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else []
        return [Outcome(**record | {"path": record["path"] and out / record["path"]}) for record in records]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{file} is damaged ({error}); delete it and run the same command again.") from error
