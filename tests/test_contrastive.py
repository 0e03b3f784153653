"""Contrastive tuning: the loss is that of the paper, the batches hold partners, and texts of one label come closer."""

from __future__ import annotations

import itertools

import numpy as np
import torch

from rtx.embedding import embed_tokens
from rtxlib.data.batching import Tokens
from rtxlib.models import Encoder, preset
from rtxlib.training.recipe import recipe
from rtxstudy.questions.your_texts.contrastive import Tuning, label_batches, supervised_contrastive, tune

CPU = torch.device("cpu")


def test_the_loss_is_the_mean_over_texts_with_a_partner() -> None:
    vectors, numbers = torch.randn(6, 4, generator=torch.manual_seed(0)), torch.tensor([0, 0, 1, 1, 1, 2])
    unit = vectors / vectors.norm(dim=1, keepdim=True)
    each = []
    for a in range(5):  # the sixth has no partner
        others = [b for b in range(6) if b != a]
        whole = torch.logsumexp(torch.stack([unit[a] @ unit[b] / 0.2 for b in others]), 0)
        each.append(-torch.stack([unit[a] @ unit[b] / 0.2 - whole for b in others if numbers[b] == numbers[a]]).mean())
    torch.testing.assert_close(supervised_contrastive(vectors, numbers, 0.2), torch.stack(each).mean())
    assert supervised_contrastive(vectors, torch.arange(6), 0.2) == 0


def test_batches_hold_every_label_alike_and_each_with_a_partner() -> None:
    numbers = np.array([0] * 50 + [1] * 3 + [2])  # a label of one row has no partner
    drawn = list(itertools.islice(label_batches(numbers, 8, 0), 30))
    assert all((np.bincount(numbers[batch]) >= 2).all() and len(batch) <= 8 for batch in drawn)
    seen = np.bincount(np.concatenate(drawn), minlength=54)
    assert seen[53] == 0 and seen[:50].min() >= 1 and seen[:50].max() - seen[:50].min() <= 1
    many = np.arange(200) // 4
    of_many = list(itertools.islice(label_batches(many, 8, 0), 50))
    assert all(len(batch) == 8 and np.unique(many[batch]).size == 4 for batch in of_many)
    assert len(np.unique(np.concatenate(of_many))) == 200


def test_texts_of_one_label_come_closer() -> None:
    rng = np.random.default_rng(0)
    numbers = np.arange(40) % 2
    texts = [[2, 5 + label, *rng.integers(10, 30, 6), 3] for label in numbers]
    tokens = Tokens(np.concatenate(texts).astype(np.int32), np.arange(0, 361, 9), numbers)
    torch.manual_seed(0)
    encoder = Encoder(preset("standard-1x32", vocab_size=30, pooling="mean"))

    def apart() -> float:
        vectors = embed_tokens(tokens, encoder, 0, CPU)
        cosines = np.corrcoef(vectors)
        same = numbers[:, None] == numbers
        return cosines[same].mean() - cosines[~same].mean()

    before, steps = apart(), []
    given = Tuning(recipe("finetune", learning_rate=3e-3, batch_rows=16), steps=30, temperature=0.1)
    tune(encoder, tokens, {"pad": 0, "unk": 1}, given, CPU, report=lambda *at: steps.append(at))
    assert apart() > before + 0.3 and steps[-1] == (30, 30) and not encoder.training
