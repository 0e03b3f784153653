"""Prepared data on disk: written whole or not at all, and compared with their checksums when opened."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from transformers import PreTrainedTokenizerFast

from rtxlib import checksums
from rtxlib.atomic import replacing_folder
from rtxlib.data import tokenization
from rtxlib.data.batching import Tokens
from rtxlib.data.rows import PAIR, SPLITS, Rows, Text, texts_of
from rtxlib.data.spec import DataSpec

COLUMNS = ("text", PAIR, "label", "label_name", "domain", "words", "tokens", "depth", "sentence")  # not all data have all
FILTERS = ("step", "rows_in", "rows_changed", "rows_out")
_ARRAYS = ("ids", "offsets", "labels")
_RECORD = "data.json"


@dataclass
class Prepared:
    """Data ready for a model, read from their folder.

    Attributes:
        spec: what was asked
        fingerprint: hash of the token ids, labels, label names and vocabulary, so of all that a model sees
        splits: "train", "validation", "test" -> token ids, memory-mapped
        label_names: by label number
        provenance: source, repos and revisions, tokenizer and why, rows of each split, notes in plain sentences
        filters: columns step, rows_in, rows_changed, rows_out, in the order of the steps
        audit: columns check, left, right, rows, share, example (``rtxlib.data.audit``)
        folder: where all of it lies
    """

    spec: DataSpec
    fingerprint: str
    splits: dict[str, Tokens]
    label_names: list[str]
    provenance: dict[str, Any]
    filters: pd.DataFrame
    audit: pd.DataFrame
    folder: Path

    @cached_property
    def tokenizer(self) -> PreTrainedTokenizerFast:
        return tokenization.load_tokenizer(self.folder / "tokenizer")

    @property
    def identity(self) -> dict[str, str]:
        """What tells these data from all others, for a provenance block."""
        known = {name: str(self.provenance[name]) for name in ("source", "revision", "tokenizer")}
        return known | {"fingerprint": self.fingerprint[:16]}

    def rows(self, split: str) -> pd.DataFrame:
        """Columns text (cleaned), for pairs text_pair, label (int), label_name, domain, words and tokens (before any cut).

        Embedded rows also have depth, the number of operators in their verdict.
        """
        return pd.read_parquet(self.folder / f"{split}.parquet")

    def texts(self, split: str) -> list[Text]:
        """The cleaned texts of a split, or the pairs of texts."""
        columns = ["text", PAIR] if self.splits[split].separator is not None else ["text"]
        return texts_of(pd.read_parquet(self.folder / f"{split}.parquet", columns=columns))


def fingerprint(arrays: Mapping[str, Tokens], label_names: list[str], vocabulary: Mapping[str, int]) -> str:
    """SHA-256 over what a model sees; the same on every machine."""
    digest = hashlib.sha256(json.dumps([label_names, sorted(vocabulary.items(), key=lambda item: item[1])]).encode())
    for name in SPLITS:
        tokens = arrays[name]
        for array, kind in ((tokens.ids, "<i4"), (tokens.offsets, "<i8"), (tokens.labels, "<i8")):
            digest.update(f"{name} {len(array)} ".encode())
            digest.update(np.ascontiguousarray(array, dtype=kind))
    return digest.hexdigest()


@cache
def code_version() -> str:
    """A hash of the code that prepares data. Data of other code are never opened."""
    code = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in code)).hexdigest()


def write(
    folder: Path,
    spec: DataSpec,
    rows: Rows,
    arrays: Mapping[str, Tokens],
    tokenizer: PreTrainedTokenizerFast,
    provenance: Mapping[str, Any],
    audit: pd.DataFrame,
) -> None:
    """Write the rows and token ids of ``tokenization.tokenise`` into ``folder``; after a failure nothing is left of it.

    The fingerprint is computed here, once. The checksum of each file is computed from what is on disk.
    """
    with replacing_folder(folder) as aside:
        for name, tokens in arrays.items():
            for part in _ARRAYS:
                np.save(aside / f"{name}.{part}.npy", getattr(tokens, part))
            table = rows.part(name)
            table[[column for column in COLUMNS if column in table]].to_parquet(aside / f"{name}.parquet", index=False)
        tokenizer.save_pretrained(aside / "tokenizer")
        pd.DataFrame(rows.steps, columns=FILTERS).to_parquet(aside / "filters.parquet")
        audit.to_parquet(aside / "audit.parquet")
        record = {
            "spec": dataclasses.asdict(spec),
            "code": code_version(),
            "fingerprint": fingerprint(arrays, rows.label_names, tokenizer.get_vocab()),
            "label_names": rows.label_names,
            "separator": arrays["train"].separator,
            "provenance": provenance,
        }
        (aside / _RECORD).write_text(json.dumps(record, indent=1))
        checksums.write(aside)


def read(folder: Path, spec: DataSpec) -> Prepared | None:
    """What ``write`` wrote; None where there is nothing, or where it is damaged (see ``intact``)."""
    if not intact(folder):
        return None
    record = json.loads((folder / _RECORD).read_text())
    arrays = {
        name: Tokens(
            *(np.load(folder / f"{name}.{part}.npy", mmap_mode="r") for part in _ARRAYS), separator=record["separator"]
        )
        for name in SPLITS
    }
    filters, audit = (pd.read_parquet(folder / f"{name}.parquet") for name in ("filters", "audit"))
    return Prepared(
        spec, record["fingerprint"], arrays, record["label_names"], record["provenance"], filters, audit, folder
    )


def intact(folder: Path) -> bool:
    """Whether a folder holds exactly what ``write`` wrote. A process hashes each file once (:func:`checksums.sha256`)."""
    try:
        sums = checksums.recorded(folder)
        return sums == {name: [checksums.sha256(folder / name)] for name in checksums.names(folder)}
    except (OSError, ValueError):  # a file is missing or unreadable, or the list of sums is damaged
        return False


def made_before(spec: DataSpec, cache: Path) -> Iterator[Prepared]:
    """What this code has prepared for this very spec, from any revisions, the newest first."""
    for path in sorted(cache.glob(f"*/{_RECORD}"), key=lambda path: -path.stat().st_mtime):
        try:
            record = json.loads(checksums.regular(path).read_text())
        except ValueError:  # damaged, or no file
            continue
        wanted = {"spec": dataclasses.asdict(spec), "code": code_version()}
        same = isinstance(record, dict) and wanted == {name: record.get(name) for name in wanted}
        if same and (ready := read(path.parent, spec)) is not None:
            yield ready
