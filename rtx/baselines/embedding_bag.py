"""A bag of embeddings like fastText: the mean of word and word-pair vectors, and a softmax (Joulin et al. 2017, EACL)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import HashingVectorizer
from torch import nn
from torch.nn import functional as F

from rtx.baselines.classical import WORDS, Fitted, Labelled, Terms, share_right
from rtxlib.data.rows import Text
from rtxlib.training.device import training_threads

NAME = "bag of embeddings"
BUCKETS = 2**20  # rows of the table of vectors for a text; words and word pairs are hashed into them
WIDTH = 10  # of a vector, as in the paper
TRIALS = ((5, 0.5), (5, 1.0), (20, 0.5))  # epochs and learning rate of gradient descent; it falls linearly to zero
BATCH = 16  # texts of a step, whose gradients are added up
SEED = 0  # of the first vectors and of the order of the texts


def fit(train: Labelled, validation: Labelled, classes: int) -> Fitted:
    """The mean of the vectors of a text's words and word pairs, and a linear classifier; both are learned together.

    The classifier is linear in the counts of the terms, with a matrix of rank :data:`WIDTH`. Of pairs of texts the second text
    has vectors of its own. Epochs and learning rate are those of :data:`TRIALS` with the best validation accuracy, the
    first ones if several are equal. The same data give the same classifier on one machine.
    """
    terms = Terms(lambda: HashingVectorizer(n_features=BUCKETS, alternate_sign=False, norm="l1", **WORDS), train.texts)
    counts, unseen = terms(train.texts), terms(validation.texts)
    labels = torch.tensor(train.labels, dtype=torch.long)
    generator = torch.Generator().manual_seed(SEED)
    start = torch.empty(counts.shape[1], WIDTH).uniform_(-1 / WIDTH, 1 / WIDTH, generator=generator)  # (buckets, width)
    best = None
    with training_threads(1):  # a step is too small to be divided
        for epochs, rate in TRIALS:
            model = _train(_Bag(start.clone(), classes), counts, labels, rate, epochs)
            right = share_right(_labels(model, unseen), validation.labels)
            if best is None or right > best[0]:
                best = right, model, {"learning_rate": rate, "epochs": epochs}
    right, model, chosen = best

    def predict(texts: Sequence[Text]) -> np.ndarray:
        return _labels(model, terms(texts))

    return Fitted(predict, sum(weights.numel() for weights in model.parameters()), chosen, right)


class _Bag(nn.Module):
    def __init__(self, vectors: torch.Tensor, classes: int) -> None:
        """vectors: (buckets, width), which the training changes in place."""
        super().__init__()
        self.vectors = nn.EmbeddingBag.from_pretrained(vectors, freeze=False, mode="sum", sparse=True)
        self.classes = nn.Parameter(torch.zeros(classes, vectors.shape[1]))

    def forward(self, counts: csr_matrix) -> torch.Tensor:
        """Term weights (rows, buckets), which add up to one for each text → logits (rows, classes)."""
        inside, starts = torch.from_numpy(counts.indices).long(), torch.from_numpy(counts.indptr[:-1]).long()
        mean = self.vectors(inside, starts, per_sample_weights=torch.from_numpy(counts.data).float())
        return mean @ self.classes.T


def _train(model: _Bag, counts: csr_matrix, labels: torch.Tensor, rate: float, epochs: int) -> _Bag:
    generator = torch.Generator().manual_seed(SEED)
    rows = len(labels)
    for epoch in range(epochs):
        order = torch.randperm(rows, generator=generator)
        shuffled, wanted = counts[order.numpy()], labels[order]
        for start in range(0, rows, BATCH):
            batch = slice(start, start + BATCH)
            loss = F.cross_entropy(model(shuffled[batch]), wanted[batch], reduction="sum")
            _descend(model, loss, rate * (1 - (epoch + start / rows) / epochs))
    return model


def _descend(model: _Bag, loss: torch.Tensor, rate: float) -> None:
    """One step. Only the vectors of the batch are touched; torch's SGD reads the whole table for it."""
    vectors, of_classes = torch.autograd.grad(loss, [model.vectors.weight, model.classes])
    with torch.no_grad():
        model.vectors.weight.index_add_(0, vectors._indices()[0], vectors._values(), alpha=-rate)
        model.classes.sub_(of_classes, alpha=rate)


def _labels(model: _Bag, counts: csr_matrix) -> np.ndarray:
    with torch.no_grad():
        return model(counts).argmax(dim=1).numpy()
