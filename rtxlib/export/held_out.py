"""The texts that calibrate an exported model and check it: those of its data, which training did not see."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from rtxlib import paths
from rtxlib.data.prepare import prepare
from rtxlib.data.rows import PAIR, Text, sides, texts_of
from rtxlib.data.spec import DataSpec
from rtxlib.errors import InputError
from rtxlib.runs.store import Run

POINTER = "held_out.json"  # in a folder of `rtx compare`: where its texts lie
MOST = 2000  # texts of a split that are kept


@dataclass(frozen=True)
class HeldOut:
    """Cleaned texts. labels: (test texts,) of a classifier; None: they have none that it knows. what: they are, in words."""

    validation: list[Text]
    test: list[Text]
    labels: np.ndarray | None
    what: str

    def single(self) -> HeldOut:
        """The same texts without labels, each side of a pair by itself."""
        validation, test = ([side for text in part for side in sides(text)] for part in (self.validation, self.test))
        return HeldOut(validation, test, None, self.what)


def of_data(spec: DataSpec) -> HeldOut:
    """The validation and test texts of prepared data."""
    data = prepare(spec, paths.prepared_dir(), progress=False)
    what = f"the test split of {spec.source}"
    return HeldOut(data.texts("validation"), data.texts("test"), data.splits["test"].labels, what)


def of_run(run: Run, spec: DataSpec) -> HeldOut:
    """The texts of a run: of its data, or of the comparison whose model it is.

    Raises InputError when the texts of a comparison are gone; its model holds none.
    """
    if not (run.path / POINTER).is_file():
        return of_data(spec)
    file = run.path / json.loads((run.path / POINTER).read_text(encoding="utf-8"))["path"]
    try:
        table = pd.read_parquet(file)
    except (OSError, ValueError) as error:
        raise InputError(
            f"The texts that check the exported model are not in {os.path.normpath(file)}. Put it there, or make the model "
            "again with `rtx compare`."
        ) from error
    parts = {name: part for name, part in table.groupby("split")}
    test, validation = parts["test"], parts.get("validation", parts["test"])
    return HeldOut(texts_of(validation), texts_of(test), test["label"].to_numpy(), "the test texts of the comparison")


def keep(table: pd.DataFrame, folder: Path, final: Path, file: Path) -> None:
    """Keep texts in ``file``, and a pointer to them in a model's folder.

    table: columns text, with pairs text_pair, label (number) and split ("validation" or "test"). folder: of the model, while it
    is written; final: where it will lie. Model and file may be moved together.
    """
    columns = [name for name in ("text", PAIR, "label", "split") if name in table]
    table.groupby("split").head(MOST)[columns].to_parquet(file, index=False)
    (folder / POINTER).write_text(json.dumps({"path": os.path.relpath(file, final)}) + "\n", encoding="utf-8")
