"""The names of runs and pretrainings in the store: hashes of what defines them."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Any

# Raise this when a change of the code changes the result of a spec. Runs and pretrainings of earlier generations then no longer
# count.
GENERATION = 1


def changed(settings: Any) -> dict[str, Any]:
    """The fields of a dataclass that differ from their defaults; dataclasses inside it likewise.

    A key is made of these, so that a new setting with a default does not change the keys of what was trained before. A field
    whose metadata say "in_key" is always among them.
    """
    values = {field: getattr(settings, field.name) for field in dataclasses.fields(settings)}
    return {field.name: _plain(value) for field, value in values.items() if value != field.default or "in_key" in field.metadata}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return changed(value) if dataclasses.is_dataclass(value) else value


def hashed(record: Mapping[str, Any]) -> str:
    """Sixteen hex digits: the hash of a record's JSON."""
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:16]
