"""Tables of notebook 01 on prepared data, of several data sets one below the other."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from rtxlib.data.prepare import Prepared

Sets = Mapping[str, Prepared]  # by their label


def filters(sets: Sets) -> pd.DataFrame:
    """The steps of cleaning and splitting: step, rows_in, rows_changed, rows_out, data."""
    return pd.concat([data.filters.assign(data=name) for name, data in sets.items()], ignore_index=True)


def audit(sets: Sets) -> pd.DataFrame:
    """The findings of the audit: check, left, right, rows, share, data. Licences forbid to publish the example texts."""
    findings = pd.concat([data.audit.assign(data=name) for name, data in sets.items()], ignore_index=True)
    return findings.drop(columns="example")


def balance(sets: Sets) -> pd.DataFrame:
    """Rows of each label: data, split, label_name, rows."""
    return _counts(sets, "label_name")


def lengths(sets: Sets) -> pd.DataFrame:
    """Rows of each length in tokens, before any cut: data, split, tokens, rows."""
    return _counts(sets, "tokens")


def _counts(sets: Sets, column: str) -> pd.DataFrame:
    rows = [data.rows(split)[[column]].assign(data=name, split=split) for name, data in sets.items() for split in data.splits]
    counts = pd.concat(rows, ignore_index=True).groupby(["data", "split", column], sort=False).size()
    return counts.rename("rows").reset_index()


def examples(data: Prepared) -> pd.DataFrame:
    """The first three training texts of each label: label_name, text, tokens."""
    return data.rows("train").groupby("label_name", sort=False).head(3)[["label_name", "text", "tokens"]]


def notes(sets: Sets) -> pd.DataFrame:
    """The notes of the sources: data, note."""
    rows = [(name, note) for name, data in sets.items() for note in data.provenance["notes"]]
    return pd.DataFrame(rows, columns=["data", "note"])
