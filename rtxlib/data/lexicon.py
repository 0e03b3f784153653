"""The vocabulary of the embedded generator, in lexicon.json: slots with their fillers, and the clauses of every domain.

A slot ``{name}`` in a string is filled with an entry of the list of that name, which may hold slots in turn. A domain
uses the general lists and its own. Lists that end in ``+`` and ``-`` hold the polar phrases, the frequent ones first. All
other lists are neutral, so that only the polar phrases and the grammar around them (`rtxlib.data.synthetic`) decide a
label. The generator uses every line that is added to a list.

A clause is (sign, class of the polar phrase, pattern), the frequent ones first. A "plain" clause has the polarity of its
phrase. A "turned" clause is one level deep: it reverses the polarity (−1), or only sounds as if it did (+1).
"""

from __future__ import annotations

import json
from itertools import zip_longest
from pathlib import Path
from typing import Any


def _tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _tuples(inside) for name, inside in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


_LISTS = _tuples(json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8")))
DOMAINS: dict[str, dict[str, tuple]] = _LISTS["domains"]
GENERAL: dict[str, tuple] = _LISTS["general"] | {
    "year": tuple(str(year) for year in range(1991, 2025)),
    "clock": tuple(f"{hour}:{minute}" for hour in range(1, 12) for minute in ("00", "15", "30", "45")),
    "number": tuple(str(number) for number in range(13, 240)),
    "digits": tuple(str(number) for number in range(10007, 99991, 137)),
    "money": tuple(f"{euros}.{cents} euros" for euros in range(2, 70, 3) for cents in ("49", "50", "95", "99")),
}


def table(domain: str) -> dict[str, tuple]:
    """Every list of a domain. The lists that all reviews share are interleaved with the domain's own."""
    words = DOMAINS[domain]
    if domain == "messages":
        return GENERAL | words | _LISTS["message_clauses"]
    woven = {
        slot: tuple(entry for pair in zip_longest(shared, words[slot]) for entry in pair if entry)
        for slot, shared in _LISTS["reviews"].items()
    }
    return GENERAL | words | _LISTS["review_clauses"] | woven
