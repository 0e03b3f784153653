"""Prepared data on disk: written aside and moved into place whole, checked against their fingerprint when opened."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from transformers import PreTrainedTokenizerFast

from rtxlib.data import tokenization
from rtxlib.data.batching import Tokens
from rtxlib.data.sources import GENERATOR
from rtxlib.data.spec import DataSpec

SPLITS = ("train", "validation", "test")
COLUMNS = ("text", "label", "label_name", "domain", "words", "tokens", "depth")  # depth: of embedded rows alone
_RECORD = "data.json"


@dataclass
class Prepared:
    """Data ready for a model, read from its folder.

    Attributes:
        spec: what was asked
        fingerprint: hash of the token ids, labels, label names and vocabulary, so of all that a model sees
        splits: "train", "validation", "test" -> token ids, memory-mapped
        label_names: by label number
        provenance: source, repos and revisions, tokenizer and why, rows of each split, notes in plain sentences
        filters: step, rows_in, rows_changed, rows_out, in order
        audit: check, left, right, rows, share, example (``rtxlib.data.audit``)
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
        """What tells these data from any others, for a provenance block."""
        known = {name: str(self.provenance[name]) for name in ("source", "revision", "tokenizer")}
        return known | {"fingerprint": self.fingerprint[:16]}

    def rows(self, split: str) -> pd.DataFrame:
        """Columns text (cleaned), label (int), label_name, domain, words and tokens (before any cut); embedded rows also
        have depth, the operators that their verdict is composed of.
        """
        return pd.read_parquet(self.folder / f"{split}.parquet")

    def texts(self, split: str) -> list[str]:
        return pd.read_parquet(self.folder / f"{split}.parquet", columns=["text"])["text"].tolist()


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
    """A hash of the code that prepares data, so that prepared data never outlive it.

    The generator is left out: its code is the revision of the embedded data (``sources.generator_version``).
    """
    code = [path for path in sorted(Path(__file__).parent.glob("*.py")) if path.name not in GENERATOR]
    return hashlib.sha256(b"".join(path.read_bytes() for path in code)).hexdigest()


def write(
    folder: Path,
    spec: DataSpec,
    arrays: Mapping[str, Tokens],
    parts: Mapping[str, pd.DataFrame],
    label_names: list[str],
    tokenizer: PreTrainedTokenizerFast,
    provenance: dict[str, Any],
    filters: pd.DataFrame,
    audit: pd.DataFrame,
) -> None:
    """All files into a folder aside, which then takes its name at once; after a failure nothing is left of it."""
    aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        for name, tokens in arrays.items():
            for part in ("ids", "offsets", "labels"):
                np.save(aside / f"{name}.{part}.npy", getattr(tokens, part))
            kept = [column for column in COLUMNS if column in parts[name]]
            parts[name][kept].to_parquet(aside / f"{name}.parquet", index=False)
        tokenizer.save_pretrained(aside / "tokenizer")
        filters.to_parquet(aside / "filters.parquet")
        audit.to_parquet(aside / "audit.parquet")
        record = {
            "spec": dataclasses.asdict(spec),
            "code": code_version(),
            "fingerprint": fingerprint(arrays, label_names, tokenizer.get_vocab()),
            "label_names": label_names,
            "provenance": provenance,
        }
        (aside / _RECORD).write_text(json.dumps(record, indent=1))
        aside.chmod(0o755)  # a temporary folder is its owner's alone
        os.replace(aside, folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def read(folder: Path, spec: DataSpec) -> Prepared | None:
    """What ``write`` wrote; None where there is nothing, or it is no longer what was written."""
    if not folder.is_dir():
        return None
    try:
        record = json.loads((folder / _RECORD).read_text())
        arrays = {}
        for name in SPLITS:
            stored = [np.load(folder / f"{name}.{part}.npy", mmap_mode="r") for part in ("ids", "offsets", "labels")]
            arrays[name] = Tokens(*stored)
        prepared = Prepared(
            spec,
            record["fingerprint"],
            arrays,
            record["label_names"],
            record["provenance"],
            pd.read_parquet(folder / "filters.parquet"),
            pd.read_parquet(folder / "audit.parquet"),
            folder,
        )
        same = fingerprint(arrays, prepared.label_names, prepared.tokenizer.get_vocab()) == prepared.fingerprint
        rows = {name: len(prepared.texts(name)) for name in SPLITS}
    except Exception:  # a damaged file makes its reader raise almost anything
        return None
    return prepared if same and rows == prepared.provenance["rows"] else None


def made_before(spec: DataSpec, cache: Path) -> Iterator[Prepared]:
    """Whatever this code has prepared for this very spec, the newest first, whichever revisions it was made from."""
    for path in sorted(cache.glob(f"*/{_RECORD}"), key=lambda path: -path.stat().st_mtime):
        try:
            record = json.loads(path.read_text())
        except ValueError:  # damaged
            continue
        same = record.get("spec") == dataclasses.asdict(spec) and record.get("code") == code_version()
        if same and (found := read(path.parent, spec)) is not None:
            yield found
