"""Prepare the data of a DataSpec: read, clean, split, tokenise, audit, write. Data that were prepared before are opened."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
from filelock import FileLock
from huggingface_hub import constants

from rtxlib.data import audit, clean, prepared, splits, tokenization
from rtxlib.data.datasets import File
from rtxlib.data.prepared import Prepared
from rtxlib.data.rows import SPLITS
from rtxlib.data.spec import DataSpec
from rtxlib.data.tokenization import TokenizerFile
from rtxlib.errors import READ_ONLY, InputError, disk_full, visible

PUBLISHERS = "https://huggingface.co"  # where publishers put their data; another HF_ENDPOINT is a mirror


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
        earlier = next(prepared.made_before(spec, cache), None) if spec.hub else None
        if earlier is None:
            raise
        return _noted(earlier, "The Hub and its cache were out of reach; the data were prepared earlier.")
    model = tokenization.wanted(spec)
    file = tokenization.fetch(model) if model else None
    if model and file is None:
        for ready in prepared.made_before(spec, cache):
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
        "code": prepared.code_version(),
    }
    folder = cache / hashlib.sha256(json.dumps(named_by, sort_keys=True).encode()).hexdigest()[:16]
    if (ready := prepared.read(folder, spec)) is not None:
        return ready
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_suffix(".lock")):
            if (ready := prepared.read(folder, spec)) is not None:  # another process has made it
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
    if (ready := prepared.read(folder, spec)) is None:
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
    prepared.write(folder, spec, rows, arrays, tokenizer, provenance, audits)
    counts = " + ".join(f"{n:,} {name}" for name, n in sizes.items())
    _say(f"{counts} rows in {time.monotonic() - started:.0f} s", progress)


def _say(line: str, progress: bool) -> None:
    if progress:
        print(f"data: {visible(line)}", file=sys.stderr, flush=True)


def _noted(data: Prepared, note: str) -> Prepared:
    data.provenance["notes"] = [*data.provenance["notes"], note]
    return data
