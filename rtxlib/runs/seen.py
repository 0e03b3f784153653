"""Which texts a run has seen: a hash of each training and validation text lies in its folder.

The run knows its texts by them when the data have moved or are gone. A hash is not the text, so a run can be passed on where its
data cannot. Whoever has a text can still find out whether the run was trained on it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from rtxlib import paths
from rtxlib.data import prepared
from rtxlib.data.prepared import Prepared
from rtxlib.data.rows import Text, texts_of
from rtxlib.runs import store
from rtxlib.runs.store import Run

FILE = "seen_texts.parquet"  # columns hash (uint64) and split ("train" or "validation")
SPLITS = ("train", "validation")  # a text in both counts as a training text


def write(folder: Path, data: Prepared) -> None:
    """Write the hashes of the cleaned training and validation texts into a run's folder."""
    store.write_table(folder / FILE, _table([data.texts(split) for split in SPLITS]))


def splits_of(run: Run, cleaned: Sequence[Text]) -> np.ndarray | None:
    """The split that each text was in when the run was trained: "train", "validation" or "" (texts,).

    cleaned: texts that are cleaned as the run's training texts were. Returns None when neither the run's folder nor the
    prepared data on this machine tell, as of a run that an earlier version trained. Raises InputError when the table is damaged.
    """
    if run.path is not None and (run.path / FILE).is_file():
        table = store.read_table(run.path / FILE)
    elif (folder := _prepared_folder(run)) is not None:
        table = _table([texts_of(pd.read_parquet(folder / f"{split}.parquet")) for split in SPLITS])
    else:
        return None
    return pd.Series(_hashes(cleaned)).map(table.set_index("hash")["split"].astype(str)).fillna("").to_numpy(dtype=object)


def _prepared_folder(run: Run) -> Path | None:
    """The prepared data that a run was trained on, known by their fingerprint, if they are here and undamaged."""
    for file in paths.prepared_dir().glob("*/data.json"):
        try:
            record = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if record.get("fingerprint") == run.metrics.get("fingerprint", "") and prepared.intact(file.parent):
            return file.parent
    return None


def _table(texts: Sequence[Sequence[Text]]) -> pd.DataFrame:
    """The table of the texts of each of :data:`SPLITS`, sorted by hash, so that the order of the rows tells nothing."""
    parts = [pd.DataFrame({"hash": _hashes(of), "split": split}) for split, of in zip(SPLITS, texts, strict=True)]
    return pd.concat(parts, ignore_index=True).drop_duplicates("hash").sort_values("hash", ignore_index=True)


def _hashes(texts: Sequence[Text]) -> np.ndarray:
    """64-bit hashes of texts or pairs, (texts,) uint64.

    Among 100,000 texts, another text has a known hash with a chance of 10⁻¹⁴.
    """
    texts = (text if isinstance(text, str) else "\0".join(text) for text in texts)
    digests = (hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest() for text in texts)
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)
