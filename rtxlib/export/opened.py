"""An exported folder behind ``rtx predict`` and ``rtx embed``. Neither torch nor transformers is needed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rtxlib import checksums
from rtxlib.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

RECORD, MODEL, TOKENIZER, SCRIPT, CARD = "export.json", "model.onnx", "tokenizer.json", "run.py", "README.md"  # of a folder
PART = "part.json"  # in the folder of a classifier that is no single graph
NEEDS = 'Exported encoders need onnx and onnxruntime; install them with `pip install "rtxlib[export]"`.'


def find(name: str, threads: int = 0) -> Opened | None:
    """The exported encoder in a folder; None if the name is not that of an exported folder. Raises InputError as Opened."""
    folder = os.path.expanduser(name)
    return Opened(Path(folder), threads) if os.path.isfile(os.path.join(folder, RECORD)) else None


class Opened:
    """An exported encoder. ``spec`` and ``metrics`` have those entries of a run that ``rtx predict`` reads.

    threads: how many compute; 0: all cores.

    Raises InputError when onnxruntime is not installed, or when a file but the card is not as it was written.
    """

    def __init__(self, folder: Path, threads: int = 0) -> None:
        try:
            from rtxlib.export.standalone import Exported

            if (folder / PART).is_file():
                from rtxlib.export.standalone_classifier import Exported
        except ModuleNotFoundError:
            raise InputError(NEEDS) from None
        checksums.check_kinds(folder)
        if not (folder / checksums.SUMS).is_file():
            raise InputError(f"{folder} has no {checksums.SUMS}, so its files cannot be compared; export it again.")
        if what := checksums.damage(folder, lambda name: name != CARD):
            raise InputError(f"{folder} is damaged ({what}); copy or export it again.")
        try:
            self.exported = Exported(folder, threads)
        except Exception as error:  # of json, tokenizers or onnxruntime, each with kinds of its own
            raise InputError(f"{folder} cannot be opened ({str(error).splitlines()[0]}); export it again.") from error
        self.record: dict[str, Any] = self.exported.record
        self.folder = folder

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
        return self.exported([clean(text) if isinstance(text, str) else tuple(map(clean, text)) for text in texts], passes)

    def probabilities(self, texts: Sequence[Any], recurrent_depth: int | None = None, early_exit: object = None) -> np.ndarray:
        """Probabilities (texts, labels), in float32."""
        if early_exit is not None:
            raise InputError("An exported graph has no early exits; use the run itself, or --passes.")
        logits = self.answers(texts, recurrent_depth)
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        return p / p.sum(axis=1, keepdims=True)

    def predict(self, texts: Sequence[Any], **way: Any) -> pd.DataFrame:
        """One row per text, with the columns of :func:`rtxlib.runs.use.predict`. way: as in :meth:`probabilities`."""
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
