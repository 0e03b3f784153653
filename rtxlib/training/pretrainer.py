"""Pretraining: the training loop with hidden tokens in place of labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from rtxlib.data.batching import Tokens, batches, collate
from rtxlib.models.heads import NOT_PREDICTED
from rtxlib.training.device import autocast, evaluating
from rtxlib.training.trainer import Trainer

VALIDATION_ROWS = 64  # of a batch


def hide(
    ids: Tensor, share: float, mask_id: int, vocabulary: int, special: Tensor, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Hide a share of the tokens as BERT does (Devlin et al. 2019): ids to read, and labels, both (batch, length).

    Of the chosen tokens 80 % become [MASK], 10 % a random token, and 10 % stay as they are. Labels are the true ids of the chosen
    tokens and −100 elsewhere. Special tokens are never chosen.
    """

    def chance() -> Tensor:
        return torch.rand(ids.shape, generator=generator).to(ids.device)

    chosen = (chance() < share) & ~torch.isin(ids, special)
    kind = chance()
    others = torch.randint(vocabulary, ids.shape, generator=generator).to(ids.device)
    read = torch.where(chosen & (kind < 0.8), mask_id, ids)
    read = torch.where(chosen & (kind >= 0.9), others, read)
    return read, torch.where(chosen, ids, NOT_PREDICTED)


class Pretrainer(Trainer):
    """Trains an :class:`rtxlib.models.heads.EncoderForMaskedLM` on packed rows (:func:`rtxlib.data.corpus.packed`).

    Arguments as :class:`Trainer` takes them, and ``share``: the share of tokens that are hidden, drawn anew in every epoch.
    The curve's accuracy is that of the predicted tokens.
    """

    def __init__(self, model: Any, training: Tokens, validation: Tokens, *rest: Any, share: float, **further: Any) -> None:
        self.share = share
        super().__init__(model, training, validation, *rest, **further)

    def loss(self, index: np.ndarray) -> Tensor:
        """The losses of the hidden tokens of a micro-batch, over the expected number of them in a row."""
        ids = self.batch(index)["input_ids"]
        return self._loss(self.model, ids, None)[0] / (self.share * (ids.shape[1] - 2))

    def validate(self) -> tuple[float, float]:
        """Mean loss (nats) and accuracy of the hidden tokens of the validation rows; the same tokens are hidden each time."""
        model, generator = self.model_to_keep(), torch.Generator().manual_seed(self.seed)
        loss, right, count = 0.0, 0, 0
        with evaluating(model), torch.inference_mode():
            for index in batches(self.validation.lengths, None, VALIDATION_ROWS, seed=None, epoch=0):
                part, correct = self._loss(model, collate(self.validation, index, self.pad_id)["input_ids"], generator)
                loss, right, count = loss + float(part), right + int(correct.sum()), count + len(correct)
        return loss / max(count, 1), right / max(count, 1)

    def _loss(self, model: Any, ids: Tensor, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        """The summed loss of the hidden tokens of a batch, and which of them are predicted right (predicted,)."""
        ids, vocabulary = ids.to(self.device), model.config.vocab_size
        read, labels = hide(ids, self.share, self.mask_id, vocabulary, self.special_ids, generator)
        with autocast(self.precision, self.device):
            output = model(read, labels=labels)
        true = labels[labels != NOT_PREDICTED]
        return output.loss * len(true), output.best == true
