"""An exported folder behind ``rtx predict`` and ``rtx embed``. Neither torch nor transformers is needed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rtxlib import checksums
from rtxlib.errors import InputError, shown

if TYPE_CHECKING:
    import pandas as pd

RECORD, MODEL, TOKENIZER, SCRIPT, CARD = "export.json", "model.onnx", "tokenizer.json", "run.py", "README.md"  # of a folder
PART = "part.json"  # in the folder of a classifier that is no single graph
PIECE = 4096  # texts whose tokens are held at once
NEEDS = 'Exported encoders need onnx and onnxruntime; install them with `pip install "rtxlib[export]"`.'


def find(name: str, threads: int = 0) -> Opened | None:
    """The exported encoder in a folder; None if the name is not that of an exported folder. Raises InputError as Opened."""
    folder = os.path.expanduser(name)
    return Opened(Path(folder), threads) if os.path.isfile(os.path.join(folder, RECORD)) else None


_FIELDS: dict[str, Callable[[Any], bool]] = {  # field of export.json → what its value must be
    "model": lambda x: isinstance(x, str),
    "labels": lambda x: isinstance(x, list) and len(x) != 1 and all(isinstance(name, str) for name in x),
    "pairs": lambda x: isinstance(x, bool),
    "any_depth": lambda x: isinstance(x, bool),
    "passes": lambda x: type(x) is int and 1 <= x <= 10_000,  # as many as a configuration may have
    "longest": lambda x: type(x) is int and x >= 1,
    "width": lambda x: type(x) is int and x >= 1,
    "cleaning": lambda x: isinstance(x, list) and all(map(_is_rule, x)),
}

_OF_EMBEDDINGS = ("pooling", "normalized", "precision")  # further fields of an encoder of sentence embeddings


def _is_rule(rule: object) -> bool:
    """Whether this is a step of cleaning: its kind, a pattern (or a number of words) and what replaces it."""
    if not (isinstance(rule, list) and len(rule) == 3 and all(isinstance(part, str) for part in rule)):
        return False
    kind, pattern, _ = rule
    if kind in ("entities", "replace"):
        re.compile(pattern)
    return kind in ("entities", "replace", "lower", "squeeze") or (kind == "middle" and pattern.isdecimal())


def _check(record: object) -> None:
    """Raise ValueError when export.json is no record that ``rtx export`` writes."""
    if not isinstance(record, dict):
        raise ValueError(f"{RECORD} holds no named values")
    for field, fits in _FIELDS.items():
        if field not in record:
            raise ValueError(f"{RECORD} has no {field}")
        if not fits(record[field]):
            raise ValueError(f"{RECORD} has the {field} {shown(record[field])}")
    if not record["labels"] and (missing := [field for field in _OF_EMBEDDINGS if field not in record]):
        raise ValueError(f"{RECORD} has no {missing[0]}")
    if record["labels"] and record["width"] != len(record["labels"]):
        raise ValueError(f"{RECORD} has the width {record['width']} and {len(record['labels'])} labels")


class Opened:
    """An exported encoder. ``spec`` and ``metrics`` have those entries of a run that ``rtx predict`` reads.

    threads: how many compute; 0: all cores.

    Raises InputError when onnxruntime is not installed, or when a file but the card is not as it was written.
    """

    def __init__(self, folder: Path, threads: int = 0) -> None:
        try:
            from rtx.export.standalone import Exported

            if (folder / PART).is_file():
                from rtx.export.standalone_classifier import Exported
        except ModuleNotFoundError:
            raise InputError(NEEDS) from None
        checksums.check_kinds(folder)
        if not (folder / checksums.SUMS).is_file():
            raise InputError(f"{folder} has no {checksums.SUMS}, so its files cannot be compared; export it again.")
        self.folder = folder
        with checksums.unchanged(folder):
            if what := checksums.damage(folder, lambda name: name != CARD):
                raise InputError(f"{folder} is damaged ({what}); copy or export it again.")
            try:
                self.exported = Exported(folder, threads)
                self.record: dict[str, Any] = self.exported.record
                _check(self.record)
                if (width := self.exported.width()) != self.record["width"]:
                    raise ValueError(f"{RECORD} has the width {self.record['width']}, and the graph has {width}")
            except Exception as error:  # of json, tokenizers or onnxruntime, each with kinds of its own
                raise self._unusable("opened", error) from error

    def _unusable(self, how: str, error: Exception) -> InputError:
        lines = str(error).splitlines() or [type(error).__name__]
        return InputError(f"{self.folder} cannot be {how} ({lines[0]}); export it again.")

    @property
    def version(self) -> str:
        """The checksum of its graph, or of the list of its files where it has several parts."""
        file = MODEL if (self.folder / MODEL).is_file() else checksums.SUMS
        return "sha256:" + checksums.sha256(self.folder / file)[:16]

    @property
    def pairs(self) -> bool:
        """Whether it reads pairs of texts."""
        return self.record["pairs"]

    @property
    def spec(self) -> dict[str, Any]:
        """The labels of a classifier. Raises InputError for sentence embeddings, which have none."""
        if not self.record["labels"]:
            raise InputError(f"{self.folder} gives sentence embeddings and no labels; use it with `rtx embed --model`.")
        return {"label_names": self.record["labels"]}

    @property
    def metrics(self) -> dict[str, Any]:
        """Its name and its number of passes."""
        return {"model": self.record["model"], "recurrent_depth": self.record["passes"]}

    def answers(self, texts: Sequence[Any], passes: int | None = None) -> np.ndarray:
        """Logits (texts, labels) or embeddings (texts, width), after cleaning. Raises InputError where passes are fixed."""
        if passes is not None and not self.record["any_depth"]:
            raise InputError(
                f"This graph passes its block {self.record['passes']} times; --passes is for encoders that were trained for "
                "every depth (--set depth_sampling=uniform)."
            )
        clean = self.exported.clean
        cleaned = [clean(text) if isinstance(text, str) else tuple(map(clean, text)) for text in texts]
        starts = range(0, max(1, len(cleaned)), PIECE)
        try:
            return np.concatenate([self.exported(cleaned[start : start + PIECE], passes) for start in starts])
        except Exception as error:  # of onnxruntime, as when the tokenizer has words that the graph has not
            raise self._unusable("used", error) from error

    def probabilities(self, texts: Sequence[Any], recurrent_depth: int | None = None, early_exit: object = None) -> np.ndarray:
        """Probabilities (texts, labels), in float32."""
        if early_exit is not None:
            raise InputError("An exported graph has no early exits; use the run itself.")
        logits = self.answers(texts, recurrent_depth)
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        return p / p.sum(axis=1, keepdims=True)

    def predict(self, texts: Sequence[Any], **way: Any) -> pd.DataFrame:
        """One row per text, with the columns of :func:`rtx.use.predict`. way: as in :meth:`probabilities`."""
        import pandas as pd

        names = self.spec["label_names"]
        p = self.probabilities(texts, **way)
        table = pd.DataFrame(list(texts), columns=["text", "text_pair"] if self.pairs else ["text"])
        table["label"] = [names[i] for i in p.argmax(axis=1)]
        return pd.concat([table, pd.DataFrame(p, columns=[f"p_{name}" for name in names])], axis=1)

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Sentence embeddings (texts, width). Raises InputError for a classifier."""
        if self.record["labels"]:
            raise InputError(f"{self.folder} is a classifier and gives no embeddings; use it with `rtx predict`.")
        return self.answers(texts)
