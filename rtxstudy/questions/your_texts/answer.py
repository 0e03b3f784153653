"""The answer of a comparison: what ``rtx compare --json`` prints, with the same fields at every end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Answer:
    """Plain values. A field that has no value is None.

    Attributes:
        text_column, label_column: of the file
        said: sentences about how the file was read
        take: the chosen model; None: none is to be taken
        what: what it is, in words
        why: "smallest", "best", "nothing learned" or "limits"
        accuracy, macro_f1, mae: of the chosen model on the test texts; mae only where the labels are a scale
        low, high: the 95 % interval of the score that decides, on the test texts
        ms, mb: of the chosen model
        judged_by: the score that decides: "accuracy" or "macro-F1"
        train_rows: rows that the chosen model learned from
        n_test, n_judged, n_labelled, train_texts: numbers of texts: test, validation, labelled without the test, training
        majority_accuracy, majority_score, counting_words_accuracy, counting_words_score: of the two baselines on the test texts
        best: the model that counts as the best within the limits, whether it has learned anything or not
        cascade: its members first and second, and the share of texts that the first answers
        ended: "all done", "time" or "asked"
        executor: what trained the networks
        quiet: whether nothing else computed on this machine while it trained and timed
        left_out: model → why it is not in the table
        not_tried: models that more time would have trained
        partial: model → rows that it learned from, where the time was too short for all
        shortened: model → how its training was shorter than a whole one, where it read all rows
        outlook: what more minutes are expected to bring: model, minutes, gain (of the score), its source,
            and train_texts that it then reads
        model, report: paths
        further: the path of the texts to label next; None: no unlabelled texts were given, or no model is to be taken
        candidates: the rows of the table of :func:`rtxstudy.questions.your_texts.choice.compare`
        verdict: the answer in sentences
    """

    text_column: str = ""
    label_column: str = ""
    said: list[str] = field(default_factory=list)
    take: str | None = None
    what: str | None = None
    why: str = ""
    accuracy: float | None = None
    macro_f1: float | None = None
    mae: float | None = None
    low: float | None = None
    high: float | None = None
    ms: float | None = None
    mb: float | None = None
    judged_by: str = "accuracy"
    train_rows: int | None = None
    n_test: int = 0
    n_judged: int = 0
    n_labelled: int = 0
    train_texts: int = 0
    majority_accuracy: float | None = None
    majority_score: float | None = None
    counting_words_accuracy: float | None = None
    counting_words_score: float | None = None
    best: str | None = None
    cascade: dict[str, Any] | None = None
    ended: str = "all done"
    executor: str = "local"
    quiet: bool = True
    left_out: dict[str, str] = field(default_factory=dict)
    not_tried: list[str] = field(default_factory=list)
    partial: dict[str, int] = field(default_factory=dict)
    shortened: dict[str, str] = field(default_factory=dict)
    outlook: dict[str, Any] | None = None
    model: str | None = None
    report: str = ""
    further: str | None = None
    candidates: list[dict[str, Any]] = field(default_factory=list)
    verdict: list[str] = field(default_factory=list)

    def plain(self) -> dict[str, Any]:
        """The same as JSON has it: no NumPy values, and None for a number that JSON does not have."""
        return plain(asdict(self))


def plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value
