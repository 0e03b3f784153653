"""Counting words on what the encoders read: the first tokens of a text, where counting words otherwise reads all of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from transformers import PreTrainedTokenizerFast

from rtx.baselines.classical import Labelled, record
from rtx.baselines.counting_words import FITS
from rtxlib.data.prepare import Prepared
from rtxlib.runs.store import changed

if TYPE_CHECKING:
    from rtxstudy import Study

LEAST_CUT = 0.05  # of the test texts; where fewer are cut, counting words reads nearly the same both ways


def same_tokens(study: Study) -> pd.DataFrame:
    """Classifiers that count words, trained and judged on the tokens that the encoders read, for each task with long texts.

    The tasks are those of the depth gain and the other sentiment data. Columns: ``data``; ``cut``, the share of the test texts
    that are longer than an encoder's limit; ``limit`` (tokens); ``model``, ``accuracy``, ``validation_accuracy``, and
    ``correct``: booleans (test texts,). Empty where no task has long texts, and in a redraw of tables that lack it.
    """
    specs = list(dict.fromkeys(task.data for task in (*study.profile.depth_tasks, *study.profile.elsewhere)))

    def measured() -> pd.DataFrame:
        parts = [on_cut_texts(study.data(spec)).assign(data=study.source(spec)["data"]) for spec in specs]
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()

    key = json.dumps([changed(spec) for spec in specs], sort_keys=True)
    return study.table("same_tokens", "same_tokens", measured, key=key, optional=True)


def on_cut_texts(data: Prepared) -> pd.DataFrame:
    """The rows of :func:`same_tokens` for one task.

    There are none where fewer than :data:`LEAST_CUT` of the test texts are cut, and none of pairs.
    """
    limit = data.spec.max_length
    share = float((data.rows("test")["tokens"] > limit).mean())
    if share < LEAST_CUT or data.splits["test"].separator is not None:
        return pd.DataFrame()
    train, validation, test = (
        Labelled(cut(data.texts(split), data.tokenizer, limit), np.array(data.splits[split].labels))
        for split in ("train", "validation", "test")
    )
    rows = []
    for name, fit in FITS.items():
        row = record(name, fit, train, validation, test, data.label_names)
        scores = {score: row[score] for score in ("model", "accuracy", "validation_accuracy")}
        rows.append(scores | {"correct": (row["predictions"] == test.labels).tolist(), "cut": share, "limit": limit})
    return pd.DataFrame(rows)


def cut(texts: Sequence[str], tokenizer: PreTrainedTokenizerFast, limit: int) -> list[str]:
    """The beginning of each text that an encoder reads: at most ``limit`` tokens, [CLS] and [SEP] among them."""
    encoded = tokenizer(list(texts), truncation=True, max_length=limit, return_offsets_mapping=True)
    ends = (max(end for _, end in offsets) for offsets in encoded["offset_mapping"])
    return [text[:end] for text, end in zip(texts, ends, strict=True)]
