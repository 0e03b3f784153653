"""The labels that a run's model gives: to any tokens, and to its test texts with another tokenizer or cut to another length."""

from __future__ import annotations

import numpy as np
from transformers import PreTrainedTokenizerFast

from rtxlib.data.batching import Tokens
from rtxlib.data.prepare import Prepared
from rtxlib.data.tokenization import encode
from rtxlib.models.heads import EncoderForSequenceClassification
from rtxlib.runs.store import Run
from rtxlib.training.device import pick_device, pick_precision
from rtxlib.training.predict import predict_logits


def labels_of(run: Run, model: EncoderForSequenceClassification, tokens: Tokens, pad_id: int) -> np.ndarray:
    """The label (rows,) that a run's model gives to each row, in the number format of its training."""
    device = pick_device()
    precision = pick_precision(run.spec["recipe"]["precision"], device)
    return predict_logits(model.to(device), tokens, pad_id, device, precision).argmax(axis=1)


def labels_read(
    run: Run, model: EncoderForSequenceClassification, data: Prepared, tokenizer: PreTrainedTokenizerFast, length: int
) -> np.ndarray:
    """The label (texts,) that a run's model gives to each test text, of which at most ``length`` tokens are read."""
    test = data.splits["test"]
    separator = None if test.separator is None else tokenizer.sep_token_id
    tokens = Tokens(*encode(data.texts("test"), tokenizer, length), test.labels, separator)
    return labels_of(run, model, tokens, tokenizer.pad_token_id)
