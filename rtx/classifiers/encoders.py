"""Classifiers on a pretrained encoder that stays as it is: its sentence embeddings, or static vectors of its word pieces.

Of a pair of texts u and v the linear model reads (u, v, |u − v|, u·v), each element by element, as in Conneau et al. (2017).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file
from transformers import PreTrainedTokenizerFast

from rtx.classifiers.linear import Linear
from rtx.embedding import embed_tokens
from rtxlib.data.batching import Tokens
from rtxlib.data.rows import Text, one_side, sides
from rtxlib.data.tokenization import encode, load_tokenizer, pretrained_tokenizer
from rtxlib.models import pretrained
from rtxlib.models.encoder import Encoder
from rtxlib.training.device import pick_device, pick_precision

STATIC_TOKENS = 4096  # tokens of a text that are averaged; they cost next to nothing


def _of_sides(texts: Sequence[Text], embed: Callable[[Sequence[str]], np.ndarray]) -> np.ndarray:
    """The vectors (texts, width) of texts, or (pairs, 4 · width) of pairs. embed: the vectors of single texts."""
    if not len(texts) or len(sides(texts[0])) == 1:
        return embed(texts)
    u, v = (embed(one_side(texts, side)) for side in (0, 1))
    return np.concatenate([u, v, np.abs(u - v), u * v], axis=1)


@dataclass(frozen=True)
class Frozen:
    """Sentence embeddings of an encoder under a linear model. Of a text the first ``max_length`` tokens are read."""

    encoder: Encoder
    tokenizer: PreTrainedTokenizerFast
    linear: Linear
    max_length: int
    precision: str = "auto"  # of the encoder's products; an exported graph is checked against "fp32"

    @property
    def labels(self) -> int:
        return self.linear.labels

    def vectors(self, texts: Sequence[Text]) -> np.ndarray:
        """What the linear model reads, (texts, features) in float32: sentence embeddings, or those of both sides of pairs."""
        return _of_sides(texts, self._embedded)

    def _embedded(self, texts: Sequence[str]) -> np.ndarray:
        ids, offsets = encode(texts, self.tokenizer, self.max_length)
        tokens = Tokens(ids, offsets, np.zeros(len(texts), dtype=np.int64))
        device = pick_device()
        precision = pick_precision(self.precision, device)
        return embed_tokens(tokens, self.encoder, self.tokenizer.pad_token_id, device, precision=precision)

    def probabilities(self, texts: Sequence[Text]) -> np.ndarray:
        return self.linear.probabilities(self.vectors(texts))

    def with_linear(self, linear: Linear) -> Frozen:
        return dataclasses.replace(self, linear=linear)

    def save(self, folder: Path) -> dict:
        pretrained.save(self.encoder, folder / "encoder", self.tokenizer)
        self.linear.save(folder / "linear.safetensors")
        return {"max_length": self.max_length}

    @classmethod
    def load(cls, folder: Path, max_length: int) -> Frozen:
        encoder = folder / "encoder"
        linear = Linear.load(folder / "linear.safetensors")
        return cls(pretrained.load(str(encoder)), pretrained_tokenizer(encoder), linear, max_length)


@dataclass(frozen=True)
class Static:
    """The mean of the static vectors of a text's word pieces, of length one, under a linear model.

    table: (word pieces, width), in float16 on the disk.
    """

    table: np.ndarray
    tokenizer: PreTrainedTokenizerFast
    linear: Linear

    @property
    def labels(self) -> int:
        return self.linear.labels

    def vectors(self, texts: Sequence[Text]) -> np.ndarray:
        """(texts, width) in float32, or (pairs, 4 · width). A text without word pieces is zero."""
        return _of_sides(texts, self._means)

    def _means(self, texts: Sequence[str]) -> np.ndarray:
        ids, offsets = encode(texts, self.tokenizer, STATIC_TOKENS)
        means = np.empty((len(texts), self.table.shape[1]), np.float32)
        for row, (start, end) in enumerate(
            zip(offsets[:-1] + 1, offsets[1:] - 1, strict=True)
        ):  # without [CLS] and [SEP]
            means[row] = self.table[ids[start:end]].mean(axis=0) if end > start else 0
        return means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)

    def probabilities(self, texts: Sequence[Text]) -> np.ndarray:
        return self.linear.probabilities(self.vectors(texts))

    def with_linear(self, linear: Linear) -> Static:
        return dataclasses.replace(self, linear=linear)

    def save(self, folder: Path) -> dict:
        save_file({"table": self.table.astype(np.float16)}, folder / "vectors.safetensors")
        self.tokenizer.save_pretrained(folder)
        self.linear.save(folder / "linear.safetensors")
        return {}

    @classmethod
    def load(cls, folder: Path) -> Static:
        table = load_file(folder / "vectors.safetensors")["table"].astype(np.float32)
        return cls(table, load_tokenizer(folder), Linear.load(folder / "linear.safetensors"))


def static_table(encoder: Encoder) -> np.ndarray:
    """Static vectors (word pieces, width) of an encoder's word pieces: its embedding matrix, rounded to float16, as float32.

    A vector is weighted by the logarithm of its piece's rank, because BERT's vocabulary is sorted by frequency and frequent
    pieces tell little. Model2Vec (Tulkens and van Dongen 2024) weights likewise, and takes the encoder's output for each piece
    in place of the embedding matrix; that takes minutes and was less accurate here (LOG.md).
    """
    table = encoder.embeddings.token.weight.detach().float().numpy()
    return (table * np.log(2 + np.arange(len(table)))[:, None]).astype(np.float16).astype(np.float32)
