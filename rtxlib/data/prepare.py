"""Prepare the data of a DataSpec: read, clean, split, tokenise, audit, write. Data that were prepared before are opened.

Prepared data are written whole or not at all, and compared with their checksums when they are opened.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from filelock import FileLock
from huggingface_hub import constants
from transformers import PreTrainedTokenizerFast

from rtxlib import checksums
from rtxlib.atomic import replacing_folder
from rtxlib.data import audit, clean, splits, tokenization
from rtxlib.data.batching import Tokens
from rtxlib.data.datasets import File
from rtxlib.data.rows import PAIR, SPLITS, Rows, Text, texts_of
from rtxlib.data.spec import DataSpec
from rtxlib.data.tokenization import TokenizerFile
from rtxlib.errors import READ_ONLY, InputError, disk_full, visible

PUBLISHERS = "https://huggingface.co"  # where publishers put their data; another HF_ENDPOINT is a mirror
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
        audit: columns check, left, right, rows, share, example (:mod:`rtxlib.data.audit`)
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
    """A hash of the code and the word lists that prepare data. Data of others are never opened."""
    code = sorted(path for path in Path(__file__).parent.iterdir() if path.suffix in (".py", ".json"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in code)).hexdigest()


def write(
    folder: Path,
    spec: DataSpec,
    rows: Rows,
    arrays: Mapping[str, Tokens],
    tokenizer: PreTrainedTokenizerFast,
    provenance: Mapping[str, Any],
    audits: pd.DataFrame,
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
        audits.to_parquet(aside / "audit.parquet")
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
    filters, audits = (pd.read_parquet(folder / f"{name}.parquet") for name in ("filters", "audit"))
    return Prepared(
        spec, record["fingerprint"], arrays, record["label_names"], record["provenance"], filters, audits, folder
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


def prepare(spec: DataSpec, cache: Path, progress: bool = True) -> Prepared:
    """The data of a spec, made once and kept under ``cache``.

    The folder's name is a hash of the spec, of the revisions that are read (of a file: its bytes), of the tokenizer and
    of the code. The folder is written to a temporary folder and then renamed. A second process waits for the first.

    Args:
        spec: what is wanted
        cache: folder of prepared data
        progress: report on standard error what is being done

    Raises:
        InputError: a problem that the user can fix: a field out of range, a source out of reach, a file that cannot be read, a
            leak across splits, a full disk.
    """
    spec.check()
    cache = Path(cache)
    try:
        revisions = spec.revisions()
    except InputError:
        earlier = next(made_before(spec, cache), None) if spec.hub else None
        if earlier is None:
            raise
        return _noted(earlier, "The Hub and its cache were out of reach; the data were prepared earlier.")
    model = tokenization.wanted(spec)
    file = tokenization.fetch(model) if model else None
    if model and file is None:
        for ready in made_before(spec, cache):
            if ready.provenance["revisions"] == revisions and ready.provenance["tokenizer"].startswith(model):
                return _noted(ready, f"{model} was out of reach; the data were tokenised with it earlier.")
        if spec.tokenizer != "auto":
            raise InputError(
                f"The tokenizer of {model} is neither on the Hub nor in the local cache: set HF_ENDPOINT or HF_HOME, or ask "
                "for tokenizer='wordpiece'."
            )
    named_by = {
        "spec": {name: value for name, value in dataclasses.asdict(spec).items() if name != "path"},
        "revisions": revisions,
        "tokenizer": None if file is None else file.version,
        "code": code_version(),
    }
    folder = cache / hashlib.sha256(json.dumps(named_by, sort_keys=True).encode()).hexdigest()[:16]
    if (ready := read(folder, spec)) is not None:
        return ready
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_suffix(".lock")):
            if (ready := read(folder, spec)) is not None:  # another process has made it
                return ready
            if folder.exists():
                _say(f"{folder} is damaged and is made anew", progress)
                shutil.rmtree(folder)
            make(folder, spec, revisions, file, progress)
    except Exception as error:  # tokenizers raises a plain Exception when the disk is full
        if isinstance(error, OSError) and error.errno in READ_ONLY:
            raise InputError(f"Prepared data cannot be written to {cache}: {error.strerror}.") from error
        if isinstance(error, InputError) or not disk_full(error):
            raise
        raise InputError(f"The disk of {cache} is full; prepared data need room there. Nothing was kept.") from error
    if (ready := read(folder, spec)) is None:
        raise InputError(f"{folder} cannot be read back right after it was written; is its disk in order?")
    return ready


def make(
    folder: Path, spec: DataSpec, revisions: Mapping[str, str], file: TokenizerFile | None, progress: bool = False
) -> None:
    """Make the data of a checked spec and write them into ``folder``, step by step.

    The audit follows tokenisation because ``lengths`` chooses rows by their tokens, and the audit is of the rows that
    are left.

    Args:
        folder: must not exist
        spec: what is wanted
        revisions: of ``spec.revisions()``
        file: of ``tokenization.fetch``; None to train a vocabulary
        progress: as in ``prepare``
    """
    started = time.monotonic()
    _say(f"reading {spec.path if isinstance(spec, File) else ', '.join(revisions)}", progress)
    rows = spec.read()
    if isinstance(spec, File) and spec.revisions() != revisions:
        raise InputError(f"{spec.name} changed while it was read; give the same command again.")
    clean.clean_rows(rows, spec)
    _say(f"splitting {len(rows.table):,} rows", progress)
    source_audit = audit.audit_source(rows, spec)
    splits.split_rows(rows, spec)
    _say("tokenising", progress)
    tokenizer, described = tokenization.choose(rows, spec, file)
    arrays = tokenization.tokenise(rows, spec, tokenizer)
    _say("looking for leaks", progress)
    split_audit = audit.audit_splits(rows, spec)
    sizes = {name: len(arrays[name]) for name in SPLITS}
    mirrored = spec.hub and constants.ENDPOINT != PUBLISHERS
    provenance = {
        "source": " + ".join(revisions) + (", from a mirror of the Hub" if mirrored else ""),
        "revision": ", ".join(dict.fromkeys(revisions.values())),
        "revisions": dict(revisions),
        "task": spec.task,
        "tokenizer": described,
        "rows": sizes,
        "notes": rows.notes,
    }
    audits = pd.concat([source_audit, split_audit], ignore_index=True)
    write(folder, spec, rows, arrays, tokenizer, provenance, audits)
    counts = " + ".join(f"{n:,} {name}" for name, n in sizes.items())
    _say(f"{counts} rows in {time.monotonic() - started:.0f} s", progress)


def _say(line: str, progress: bool) -> None:
    if progress:
        print(f"data: {visible(line)}", file=sys.stderr, flush=True)


def _noted(data: Prepared, note: str) -> Prepared:
    data.provenance["notes"] = [*data.provenance["notes"], note]
    return data
