"""Distillation of sentence embeddings: the training loop with a teacher's embeddings in place of labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rtxlib.data.batching import Tokens
from rtxlib.models.encoder import Encoder
from rtxlib.training.device import autocast
from rtxlib.training.embed import embed_tokens, similarity
from rtxlib.training.trainer import Trainer


class SentenceEncoder(nn.Module):
    """An encoder whose output is its sentence embeddings, (batch, length) → (batch, hidden)."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder, self.config = encoder, encoder.config

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        return self.encoder.embed(input_ids, attention_mask)


class EmbeddingDistiller(Trainer):
    """Trains a :class:`SentenceEncoder` to give each text the embedding that a teacher gives it (Reimers & Gurevych 2020).

    The loss of a text is 1 − cos(student, teacher), because embeddings are compared by their cosine and their lengths are nothing
    to learn. It is half the squared distance of the two vectors at length one.

    Arguments as :class:`Trainer` takes them, and ``taught``: the teacher's embeddings of the training texts and of the validation
    texts, both (texts, hidden). The curve's accuracy is the share of the validation texts whose embedding is nearer to the
    teacher's embedding of the same text than to that of any other.
    """

    def __init__(
        self,
        model: SentenceEncoder,
        training: Tokens,
        validation: Tokens,
        *rest: Any,
        taught: tuple[np.ndarray, np.ndarray],
        **further: Any,
    ) -> None:
        self.taught = taught
        super().__init__(model, training, validation, *rest, **further)

    def loss(self, index: np.ndarray) -> Tensor:
        """1 − cos(student, teacher), summed over the rows of a micro-batch."""
        batch = self.batch(index)
        with autocast(self.precision, self.device):
            embeddings = self.model(batch["input_ids"], batch.get("attention_mask")).float()
        wanted = torch.from_numpy(self.taught[0][index]).to(self.device)
        return (1 - F.cosine_similarity(embeddings, wanted)).sum()

    def validate(self) -> tuple[float, float]:
        """Mean of 1 − cosine over the validation texts, and the share of them whose nearest teacher's embedding is their own."""
        embeddings = embed_tokens(self.validation, self.model_to_keep().encoder, self.pad_id, self.device)
        cosines = similarity(embeddings, self.taught[1])  # (texts, texts)
        nearest = cosines.argmax(axis=1) == np.arange(len(cosines))
        return float(1 - cosines.diagonal().mean()), float(nearest.mean())
