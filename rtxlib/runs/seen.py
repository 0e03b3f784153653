"""Which texts a run has seen: a hash of each training and validation text lies in its folder.

Texts count as the same if they differ only in case, white space, signs that nobody sees, full-width letters, or punctuation and
quotes around them (:func:`_plain`). The first runs have hashes of the texts as they are; these find exact copies alone.

The run knows its texts by them when the data have moved or are gone. A hash is not the text, so a run can be passed on where its
data cannot. Whoever has a text can still find out whether the run was trained on it.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from rtxlib import paths
from rtxlib.data import prepare
from rtxlib.data.rows import INVISIBLE, Text, texts_of
from rtxlib.runs import store
from rtxlib.runs.store import Run

FILE = "seen_texts.parquet"  # columns plain_hash (in the first runs hash; uint64) and split ("train" or "validation")
SPLITS = ("train", "validation")  # a text in both counts as a training text
_OUTER = "`" + "".join(c for c in map(chr, range(1 << 16)) if unicodedata.category(c)[0] in "PZ")  # punctuation and spaces


def write(folder: Path, texts: Sequence[Sequence[Text]]) -> None:
    """Write the hashes of the cleaned texts of each of :data:`SPLITS` into a folder."""
    store.write_table(folder / FILE, _table(texts))


def splits_of(run: Run, cleaned: Sequence[Text]) -> np.ndarray | None:
    """The split that each text was in when the run was trained: "train", "validation" or "" (texts,).

    cleaned: texts that are cleaned as the run's training texts were. Returns None when neither the run's folder nor the
    prepared data on this machine tell, as of a run that an earlier version trained. Raises InputError when the table is damaged.
    """
    column = "plain_hash"
    if run.path is not None and (run.path / FILE).is_file():
        table = store.read_table(run.path / FILE)
        column = "hash" if "hash" in table else column
        kinds = {name: str(kind) for name, kind in table.dtypes.items()}
        if kinds.get(column) != "uint64" or not set(table.get("split", [""])) <= {*SPLITS} or table[column].duplicated().any():
            raise store.damaged(run.key, run.path, f"{FILE} is no table of hashes and splits")
    elif (texts := prepared_texts(run, SPLITS)) is not None:
        table = _table(texts)
    else:
        return None
    hashes = pd.Series(_hashes(cleaned if column == "hash" else map(_plain, cleaned)))
    return hashes.map(table.set_index(column)["split"].astype(str)).fillna("").to_numpy(dtype=object)


def prepared_texts(run: Run, splits: Sequence[str]) -> list[list[Text]] | None:
    """The cleaned texts of some splits that a run was trained on, known by their fingerprint, if they are here and undamaged."""
    for file in paths.prepared_dir().glob("*/data.json"):
        try:
            record = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if record.get("fingerprint") == run.metrics.get("fingerprint", "") and prepare.intact(file.parent):
            return [texts_of(pd.read_parquet(file.parent / f"{split}.parquet")) for split in splits]
    return None


def _table(texts: Sequence[Sequence[Text]]) -> pd.DataFrame:
    """The table of the texts of each of :data:`SPLITS`, sorted by hash, so that the order of the rows tells nothing."""
    parts = [
        pd.DataFrame({"plain_hash": _hashes(map(_plain, split_texts)), "split": split})
        for split, split_texts in zip(SPLITS, texts, strict=True)
    ]
    return pd.concat(parts, ignore_index=True).drop_duplicates("plain_hash").sort_values("plain_hash", ignore_index=True)


def _plain(text: Text) -> str:
    """What texts that count as the same have in common. Of a text of punctuation alone, the punctuation is kept."""
    if not isinstance(text, str):
        return "\0".join(map(_plain, text))
    text = " ".join(unicodedata.normalize("NFKC", INVISIBLE.sub("", text)).casefold().split())
    return text.strip(_OUTER) or text


def _hashes(texts: Iterable[str]) -> np.ndarray:
    """64-bit hashes of texts, (texts,) uint64. Among 100,000 texts, another text has a known hash with a chance of 10⁻¹⁴."""
    digests = (hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest() for text in texts)
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)
