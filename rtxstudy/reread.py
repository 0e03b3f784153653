"""The test texts of a run, encoded once more: with another tokenizer, or cut to another length."""

from __future__ import annotations

import numpy as np
from transformers import PreTrainedTokenizerFast

from rtxlib.data.batching import Tokens
from rtxlib.data.prepared import Prepared
from rtxlib.data.tokenization import encode
from rtxlib.models.heads import EncoderForSequenceClassification
from rtxlib.runs.store import Run
from rtxlib.training.device import pick_device, pick_precision
from rtxlib.training.predict import predict_logits


def labels_read(
    run: Run, model: EncoderForSequenceClassification, data: Prepared, tokenizer: PreTrainedTokenizerFast, length: int
) -> np.ndarray:
    """The label (texts,) that a run's model gives to each test text, of which at most ``length`` tokens are read."""
    test, device = data.splits["test"], pick_device()
    separator = None if test.separator is None else tokenizer.sep_token_id
    tokens = Tokens(*encode(data.texts("test"), tokenizer, length), test.labels, separator)
    precision = pick_precision(run.spec["recipe"]["precision"], device)
    return predict_logits(model.to(device), tokens, tokenizer.pad_token_id, device, precision).argmax(axis=1)
