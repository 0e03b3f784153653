"""The chosen model's folder: its files, a record by which ``rtx predict`` opens it, and a card with its figures."""

from __future__ import annotations

import copy
import datetime
import json
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rtx import drift
from rtx.classifiers import folder as classifiers
from rtx.classifiers.folder import Classifier
from rtx.export import bert, held_out
from rtxlib import checksums
from rtxlib.atomic import replacing_folder
from rtxlib.errors import visible
from rtxlib.runs import seen, store
from rtxlib.runs.card import plain
from rtxlib.runs.store import hashed
from rtxstudy.numbers import megabytes, milliseconds
from rtxstudy.questions.your_texts.candidates import MAX_LENGTH
from rtxstudy.questions.your_texts.rows import CLEANING, LONGEST
from rtxstudy.questions.your_texts.texts import Texts

_CARD = """---
pipeline_tag: text-classification
tags: [rtxlib]
---

# {name}, for the labels of {file}

This model {what}. `rtx compare` chose it among {many} models; `report.html` beside this folder has all of them.

| measured here | |
| --- | --- |
{figures}

Labels: {labels}.

Label texts with it:

```
rtx predict {folder} {typed}
rtx predict {folder} --file more.csv {options} --out labelled.csv
```

```python
from pathlib import Path
from rtx import archive, use
print(use.predict(archive.find(Path(), {place}), [{pasted}]))
```
{plain_transformers}
`rtx predict` and `use.predict` clean a text as the training texts were cleaned: {cleaning}. They read its first {longest:,}
characters.
`seen_texts.parquet` holds a hash of each training and validation text, by which `rtx evaluate` knows them. Nothing is claimed
for texts of another kind than those of {file}.
"""


def how_to_predict(texts: Texts) -> dict[str, str]:
    """What a person types: ``typed`` and ``pasted``, a text in the shell and in Python; ``options``, the columns of a table."""
    options = f"--text-column {shlex.quote(visible(texts.columns.text))}"
    if texts.columns.pair is None:
        return {"typed": '"a text"', "pasted": '"a text"', "options": options}
    options += f" --text-pair-column {shlex.quote(visible(texts.columns.pair))}"
    return {"typed": '"a first text" "a second text"', "pasted": '("a first text", "a second text")', "options": options}


@dataclass(frozen=True)
class Chosen:
    """The model that is handed over.

    Attributes:
        name: of the model
        classifier: the model
        run: of a network, the folder of its run, which is copied with all its records
        test: (test rows, labels) what it answers to the test texts
        row: of the table of :func:`rtxstudy.questions.your_texts.choice.compare`
        many: how many models were compared
        what: what the model is or does, in words
    """

    name: str
    classifier: Classifier
    run: Path | None
    test: np.ndarray
    row: dict[str, Any]
    many: int
    what: str


def hand_over(texts: Texts, chosen: Chosen, out: Path, rows_file: Path, place: str) -> Path:
    """Write the folder of the chosen model, whole or not at all, in place of an earlier one.

    Args:
        out: the folder
        rows_file: the file of the texts by which `rtx export` calibrates and checks; the folder holds none
        place: the name of the folder on the card
    """
    name, row, run = chosen.name, chosen.row, chosen.run
    learnt, held = texts.rows("train"), texts.rows("validation")
    if row["rows"] > len(learnt):  # at the end it learned from the validation texts, too
        learnt, held = np.concatenate([learnt, held]), held[:0]
    with replacing_folder(out) as aside:
        if run is None:
            classifiers.save(chosen.classifier, aside)
            seen.write(aside, [texts.texts(learnt), texts.texts(held)])
            _records(aside, texts, name, row)
        else:
            shutil.copytree(run, aside, dirs_exist_ok=True)
            spec = json.loads((aside / "spec.json").read_text(encoding="utf-8"))
            store.write_json(aside / "spec.json", spec | {"longest": LONGEST})  # its texts were cut before they were prepared
            model = chosen.classifier.model
            if bert.architecture(model.config) is not None:
                bert.write(copy.deepcopy(model).to("cpu"), texts.label_names, aside)  # so that transformers opens it, too
        calibrates = texts.rows("train") if texts.cross_validated else texts.judged
        kept_rows = np.concatenate([calibrates, texts.rows("test")])
        split = np.repeat(["validation", "test"], [len(calibrates), len(kept_rows) - len(calibrates)])
        held_out.keep(texts.table.iloc[kept_rows].assign(split=split), aside, out, rows_file)
        drift.write(aside, texts.texts(learnt), texts.texts(texts.rows("test")), chosen.test)
        (aside / store.CARD).write_text(_card(texts, chosen, place), encoding="utf-8")
        files = {file: [checksums.sha256(aside / file)] for file in checksums.names(aside)}
        key = run.name if run else hashed({"texts": texts.fingerprint, "name": name, "files": files})
        store.write_json(aside / store.MARK, {"key": key, "files": files})
    return out


def _records(folder: Path, texts: Texts, name: str, row: dict[str, Any]) -> None:
    """The records that a run has, so that every command that opens a run opens this folder."""
    data = {
        "source": "file",
        "path": texts.name,
        "text_column": texts.columns.text,
        "text_pair_column": texts.columns.pair,
        "label_column": texts.columns.label,
        "max_length": MAX_LENGTH,
        **CLEANING,
    }
    spec = {"model": name, "data": data, "recipe": {"precision": "auto"}, "seed": 0, "label_names": texts.label_names}
    store.write_json(folder / "spec.json", spec | {"longest": LONGEST})
    metrics = {
        "model": name,
        "data": texts.name,
        "accuracy": row["test_accuracy"],
        "f1": row["test_macro_f1"],
        "train_seconds": row["seconds"],
        "train_rows": int(row["rows"]),
        "n_test": len(texts.rows("test")),
        "recurrent_depth": 1,
        "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
    store.write_json(folder / "metrics.json", metrics)


def _card(texts: Texts, chosen: Chosen, place: str) -> str:
    name, row = chosen.name, chosen.row
    figures = {
        f"accuracy on {len(texts.rows('test')):,} test texts": f"{row['test_accuracy']:.3f}",
        "macro-F1 on them": f"{row['test_macro_f1']:.3f}",
        "mean absolute error on them": f"{row['test_mae']:.2f}" if np.isfinite(row.get("test_mae", np.nan)) else None,
        "training texts": f"{int(row['rows']):,}",
        "time for one text": milliseconds(row["ms"]),
        "size": megabytes(row["mb"]),
    }
    model = getattr(chosen.classifier, "model", None)
    plain_transformers = ""
    if model is not None and bert.architecture(model.config) is not None:
        plain_transformers = f"\nOr with transformers alone:\n\n```python\n{bert.snippet(model.config, json.dumps(place))}\n```\n"
    return _CARD.format(
        plain_transformers=plain_transformers,
        name=plain(name),
        file=plain(texts.name),
        what=chosen.what,
        many=chosen.many,
        figures="\n".join(f"| {what} | {value} |" for what, value in figures.items() if value is not None),
        labels=", ".join(map(plain, texts.label_names)),
        folder=shlex.quote(visible(place)),
        **how_to_predict(texts),
        place=json.dumps(place),
        cleaning=", ".join(step for step, on in CLEANING.items() if on),
        longest=LONGEST,
    )
