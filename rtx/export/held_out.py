"""The texts that calibrate an exported model and check it: of its data, and where these are out of reach, other ones."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from rtxlib import paths
from rtxlib.data import clean, synthetic
from rtxlib.data.datasets import from_record
from rtxlib.data.prepare import prepare
from rtxlib.data.rows import PAIR, Text, cut, sides, spread, texts_of
from rtxlib.data.spec import DataSpec
from rtxlib.data.tokenization import LONGEST_TEXT
from rtxlib.errors import InputError, counted, fact
from rtxlib.runs import store
from rtxlib.runs.store import Run

POINTER = "held_out.json"  # in a folder of `rtx compare`: where its texts lie
MOST = 2000  # texts of a split that are kept, or that check a graph
GENERATED = 400  # texts that check a graph where its own data are out of reach
JOINED = 10  # generated texts in one long text, so that a graph is checked on long texts, too
FEWEST = 20  # texts of a file that calibrate and check


@dataclass(frozen=True)
class HeldOut:
    """Cleaned texts.

    Attributes:
        validation: texts that calibrate eight bits
        test: texts that check the graph
        labels: (test texts,) the numbers of their labels; None where these are not known
        what: which texts these are, for the card
    """

    validation: list[Text]
    test: list[Text]
    labels: np.ndarray | None
    what: str

    def single(self) -> HeldOut:
        """The same texts without labels, each side of a pair by itself."""
        validation, test = ([side for text in part for side in sides(text)] for part in (self.validation, self.test))
        return HeldOut(validation, test, None, self.what)


def of_data(spec: DataSpec, fingerprint: str | None = None) -> HeldOut:
    """The validation and test texts of prepared data; of a large test split :data:`MOST`, evenly spread.

    fingerprint: of the data that are wanted; None: any. Raises InputError where the data are others, whose test split may hold
    training texts.
    """
    data = prepare(spec, paths.prepared_dir(), progress=False)
    if fingerprint not in (None, data.fingerprint):
        raise InputError("The data have changed since the run was trained.")
    test, labels, what = data.texts("test"), data.splits["test"].labels, f"the test split of {spec.name}"
    if len(test) > MOST:
        chosen = spread(len(test), MOST)
        test, labels, what = [test[row] for row in chosen], labels[chosen], f"of the {len(test):,} in {what}"
    return HeldOut(data.texts("validation"), test, labels, what)


def of_run(run: Run) -> HeldOut:
    """The texts of a run: of its data, or of the comparison whose model it is.

    Raises InputError when its data have changed, or when the texts of a comparison are gone; its model holds none.
    """
    if not (run.path / POINTER).is_file():
        return of_data(from_record(run.spec["data"]), run.metrics.get("fingerprint"))
    store.verify(run, POINTER.__eq__)
    file = run.path / json.loads((run.path / POINTER).read_text(encoding="utf-8"))["path"]
    try:
        table = pd.read_parquet(file)
        parts = {name: part for name, part in table.groupby("split")}
        test, validation = parts["test"], parts.get("validation", parts["test"])
    except (OSError, ValueError, KeyError) as error:
        raise InputError(
            f"The texts that check the exported model are not in {os.path.normpath(file)}. Put it there, or make the model "
            "again with `rtx compare`."
        ) from error
    return HeldOut(texts_of(validation), texts_of(test), test["label"].to_numpy(), "the test texts of the comparison")


def of_file(texts: Sequence[Text], name: str, switches: Mapping[str, bool]) -> HeldOut:
    """The texts of a file, without labels: every second one calibrates, and the others check.

    Raises InputError when they are fewer than :data:`FEWEST`.
    """
    texts = [text for text in _cleaned(texts, switches) if all(side.strip() for side in sides(text))]
    if len(texts) < FEWEST:
        number = counted(len(texts), "text")
        raise InputError(f"{name} has {number}; at least {FEWEST} are needed: half of them calibrate and half check.")
    return HeldOut(texts[1::2], texts[::2], None, f"of the file {name}, without labels")


def generated(pairs: bool, switches: Mapping[str, bool], why: InputError) -> HeldOut:
    """Generated texts, short and long. They check a float32 graph and calibrate nothing. why: the data are out of reach."""
    short = synthetic.generate(GENERATED, seed=0)["text"].tolist()
    long = [" ".join(short[n : n + JOINED]) for n in range(0, GENERATED, JOINED)]
    texts = [*short, *long]
    paired = [*zip(texts, texts[1:] + texts[:1], strict=True)] if pairs else texts
    what = f"generated ones, because the data of the run were out of reach: {fact(why)}"
    return HeldOut([], _cleaned(paired, switches), None, what)


def _cleaned(texts: Sequence[Text], switches: Mapping[str, bool]) -> list[Text]:
    return [cut(text, LONGEST_TEXT) for text in clean.clean_texts(texts, **switches)]


def keep(table: pd.DataFrame, folder: Path, final: Path, file: Path) -> None:
    """Keep texts in ``file``, and a pointer to them in a model's folder.

    table: columns text, with pairs text_pair, label (number) and split ("validation" or "test"). folder: of the model, while it
    is written; final: where it will lie. Model and file may be moved together.
    """
    columns = [name for name in ("text", PAIR, "label", "split") if name in table]
    parts = [part.iloc[spread(len(part), MOST)] for _, part in table.groupby("split")]
    pd.concat(parts)[columns].to_parquet(file, index=False)
    (folder / POINTER).write_text(json.dumps({"path": os.path.relpath(file, final)}) + "\n", encoding="utf-8")
