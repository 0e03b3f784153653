"""Contrastive tuning of a pretrained encoder on few labelled texts: texts of one label come closer, others move apart.

SetFit (Tunstall et al. 2022) draws pairs of texts beforehand, and there are as many as the square of the rows. Here every pair
inside a batch is compared, so a batch of B texts gives B(B − 1)/2 pairs for B passes through the encoder, and memory grows with
the batch alone. The number of steps has an upper bound, whatever the number of rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from rtx.distillation import SentenceEncoder
from rtxlib.data.batching import Tokens
from rtxlib.models.encoder import Encoder
from rtxlib.training.device import autocast
from rtxlib.training.recipe import Recipe, recipe
from rtxlib.training.trainer import Trainer


@dataclass(frozen=True)
class Tuning:
    """How an encoder is tuned by pairs."""

    recipe: Recipe  # its epochs are not used
    steps: int
    temperature: float  # divides the cosines of two texts


TUNING = Tuning(recipe("finetune", learning_rate=5e-5), steps=40, temperature=0.1)  # LOG.md


def supervised_contrastive(vectors: Tensor, numbers: Tensor, temperature: float) -> Tensor:
    """Mean over the texts of −log p(a text of the same label | all other texts), Khosla et al. (2020), equation 2.

    vectors: (texts, width); numbers: (texts,) labels. A text whose label no other text has counts for nothing; 0 where that holds
    for all.
    """
    vectors = F.normalize(vectors, dim=-1)
    itself = torch.eye(len(vectors), dtype=torch.bool, device=vectors.device)
    cosines = (vectors @ vectors.T / temperature).masked_fill(itself, -torch.inf)  # (texts, texts)
    same = (numbers[:, None] == numbers) & ~itself
    log_p = F.log_softmax(cosines, dim=-1).masked_fill(~same, 0.0)
    partners = same.sum(dim=-1)
    return -(log_p.sum(dim=-1) / partners.clamp(min=1)).sum() / (partners > 0).sum().clamp(min=1)


def label_batches(numbers: np.ndarray, rows: int, seed: int) -> Iterator[np.ndarray]:
    """Batches of row numbers without end, at most ``rows`` each, in which every label that occurs has at least two rows.

    numbers: (texts,) labels. All labels are drawn equally often, so rare ones are not drowned. The rows of a label are drawn in
    turn, each once before any comes again. Labels of a single row are left out.
    """
    rng = np.random.default_rng(seed)
    of_label = [members for label in np.unique(numbers) if len(members := np.flatnonzero(numbers == label)) > 1]
    many = min(len(of_label), rows // 2)  # labels in a batch
    waiting: list[list[int]] = [[] for _ in of_label]
    order: list[int] = []
    while True:
        if len(order) < many:
            order += rng.permutation(len(of_label)).tolist()
        chosen = list(dict.fromkeys(order[:many]))
        order = order[many:]
        batch: list[int] = []
        for label in chosen:
            each = min(rows // len(chosen), len(of_label[label]))
            while len(waiting[label]) < each:
                waiting[label] += rng.permutation(of_label[label]).tolist()
            batch += waiting[label][:each]
            waiting[label] = waiting[label][each:]
        yield np.array(batch)


class ContrastiveTrainer(Trainer):
    """Trains a :class:`SentenceEncoder` by the pairs inside each micro-batch.

    Arguments as :class:`Trainer` takes them, and ``temperature``, which divides the cosines of two texts.
    """

    def __init__(self, *rest: Any, temperature: float) -> None:
        self.temperature = temperature
        super().__init__(*rest)

    def loss(self, index: np.ndarray) -> Tensor:
        """The mean contrastive loss of a micro-batch, times its rows."""
        batch = self.batch(index)
        with autocast(self.precision, self.device):
            vectors = self.model(batch["input_ids"], batch.get("attention_mask")).float()
        return supervised_contrastive(vectors, batch["labels"], self.temperature) * len(index)


def tune(
    encoder: Encoder,
    tokens: Tokens,
    special_ids: dict[str, int],
    tuning: Tuning,
    device: torch.device,
    seed: int = 0,
    report: Callable[[int, int], object] | None = None,
) -> None:
    """Tune an encoder in place on labelled texts, ``tokens``. special_ids: as :class:`Trainer` takes them.

    report: is called with (steps done, all steps) after each step, and may raise to stop; the encoder is then half tuned.
    """
    model, rows = SentenceEncoder(encoder), tuning.recipe.batch_rows
    trainer = ContrastiveTrainer(model, tokens, tokens, tuning.recipe, seed, special_ids, device, temperature=tuning.temperature)
    trainer.total, trainer.step_rows.packed = tuning.steps, False  # the batches are those of the labels, padded
    model.train()
    for step, batch in enumerate(itertools.islice(label_batches(tokens.labels, rows, seed), tuning.steps), 1):
        trainer.step([batch])
        if report is not None:
            report(step, tuning.steps)
    model.eval()
