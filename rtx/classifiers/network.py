"""A trained network: an encoder with its classification head, from the folder of a run."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import softmax
from transformers import PreTrainedTokenizerBase

from rtxlib.data.batching import Tokens
from rtxlib.data.rows import Text, sides
from rtxlib.data.tokenization import encode, load_tokenizer
from rtxlib.models.heads import EncoderForSequenceClassification
from rtxlib.models.pretrained import load_trained
from rtxlib.training.device import pick_device, pick_precision
from rtxlib.training.predict import predict_logits

FILES = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")


@dataclass(frozen=True)
class Network:
    """The model of a run, ready to answer. Of a text the first ``max_length`` tokens are read."""

    model: EncoderForSequenceClassification
    tokenizer: PreTrainedTokenizerBase
    max_length: int
    precision: str  # of the recipe: "auto", "fp32", …
    folder: Path  # where its files are

    @property
    def labels(self) -> int:
        return self.model.config.num_labels

    def probabilities(self, texts: Sequence[Text], **way: Any) -> np.ndarray:
        """way: ``recurrent_depth`` or ``early_exit``, see :meth:`EncoderForSequenceClassification.forward`."""
        ids, offsets = encode(texts, self.tokenizer, self.max_length)
        separator = self.tokenizer.sep_token_id if len(texts) and len(sides(texts[0])) == 2 else None  # of pairs
        tokens, device = Tokens(ids, offsets, np.zeros(len(texts), dtype=np.int64), separator), pick_device()
        precision = pick_precision(self.precision, device)
        return softmax(
            predict_logits(self.model, tokens, self.tokenizer.pad_token_id, device, precision, **way), axis=1
        )

    def save(self, folder: Path) -> dict:
        for name in FILES:
            if (self.folder / name).is_file():
                shutil.copyfile(self.folder / name, folder / name)
        return {"max_length": self.max_length, "precision": self.precision}

    @classmethod
    def load(cls, folder: Path, max_length: int, precision: str) -> Network:
        return cls(load_trained(folder).to(pick_device()), load_tokenizer(folder), max_length, precision, folder)


def megabytes(run: Path) -> float:
    """Megabytes (10⁶ bytes) of the files of a run's folder that a network is made of."""
    return sum((run / name).stat().st_size for name in FILES if (run / name).is_file()) / 1e6
