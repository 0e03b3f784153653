"""A fine-tuned encoder whose embedding matrix is cut to the word pieces of its training texts.

The embedding matrix is more than half of a small pretrained encoder, so the layers that a loop saves hide behind it. A text that
has only pieces of the training texts keeps its logits. Any other text is written with shorter pieces, and its label may change.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rtx import archive
from rtx.vocabulary import with_vocabulary_of
from rtxlib.data.prepare import Prepared
from rtxlib.data.rows import sides
from rtxlib.models.heads import EncoderForSequenceClassification
from rtxlib.runs.store import Run
from rtxstudy.comparisons import correct, require_same_seeds
from rtxstudy.finished import Runs
from rtxstudy.reread import labels_read
from rtxstudy.run_tables import measured_once
from rtxstudy.statistics import paired_difference


def small_vocabulary(run: Run, data: Prepared | None, results: Path | None = None) -> pd.DataFrame:
    """The labels of the test texts with the small vocabulary, one row per text; ``data`` may be None for a published run.

    Columns: ``row``, ``label``, ``prediction``; and in every row ``pieces`` (word pieces that are left) and ``parameters`` (of
    the whole encoder with its head).
    """

    def measure(model: EncoderForSequenceClassification) -> pd.DataFrame:
        training = (side for text in data.texts("train") for side in sides(text))
        model.encoder, tokenizer = with_vocabulary_of(model.encoder, data.tokenizer, training)
        labels, predictions = data.splits["test"].labels, labels_read(run, model, data, tokenizer, data.spec.max_length)
        sizes = {"pieces": len(tokenizer), "parameters": sum(weights.numel() for weights in model.parameters())}
        return pd.DataFrame({"row": np.arange(len(labels)), "label": labels, "prediction": predictions}).assign(**sizes)

    return measured_once(run, "small_vocabulary", results, measure)


def against_whole(loop: Runs, deep: Runs) -> dict[str, Any]:
    """A loop with the small vocabulary against the whole encoder with all of its layers and words, as a row of a table.

    Columns: ``data``; ``deep``, ``loop`` and ``small`` (mean accuracies; the last with the small vocabulary);
    ``deep_parameters``, ``loop_parameters`` and ``small_parameters`` (all of them, means over seeds); ``pieces``; ``changed``,
    the share of the loop's labels that the small vocabulary changes; ``difference`` (small − deep, 0.01 = one percentage point)
    with ``low`` and ``high`` (95 % interval over new seeds and new texts), ``n_seeds`` and ``n_items`` (texts).

    Raises InputError when the arms differ in their seeds or in their test texts.
    """
    require_same_seeds(loop, deep)
    tables = [archive.part(run, "small_vocabulary", loop.results).sort_values("row") for run in loop]
    small = np.stack([(table["prediction"] == table["label"]).to_numpy() for table in tables])
    whole = np.stack([archive.part(run, "predictions", loop.results).sort_values("row")["prediction"] for run in loop])
    right = correct(loop + deep)
    difference = paired_difference(small, right[len(loop) :])
    return {
        "data": loop[0].metrics["data"],
        "deep": right[len(loop) :].mean(),
        "loop": right[: len(loop)].mean(),
        "small": small.mean(),
        "deep_parameters": deep.table["parameters"].mean(),
        "loop_parameters": loop.table["parameters"].mean(),
        "small_parameters": np.mean([table["parameters"].iloc[0] for table in tables]),
        "pieces": np.mean([table["pieces"].iloc[0] for table in tables]),
        "changed": np.mean([table["prediction"].to_numpy() for table in tables] != whole),
        **{name: getattr(difference, name) for name in ("difference", "low", "high", "n_seeds", "n_items")},
    }
