"""The rows of each optimiser step: texts of one length, or of several lengths if the length tells the label."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import torch

from rtxlib.data.batching import Tokens, batches
from rtxlib.errors import InputError
from rtxlib.training.recipe import Recipe

# Steps mix lengths when the labels of a batch of like length differ from those of all rows by more than this. The distance is
# that of length_tells_label: under 0.02 on SST-2, Yelp and Amazon, 0.10 on SMS spam, and 0.30 on three domains.
MIXING_LIMIT = 0.07
# The tokens of a micro-batch on a CPU where the recipe names no limit: 32 reviews of 256 tokens then take half the memory, at the
# same speed (LOG.md).
CPU_TOKENS = 2048


def length_tells_label(labels: np.ndarray, groups: list[np.ndarray]) -> float:
    """How strongly the length of a text tells its label: about 0 if not at all, at most 1.

    For each batch of like length, the total-variation distance between its label shares and those of all rows is taken. The
    result is the mean distance over the batches, minus the mean distance of random batches of the same sizes (sampling without
    replacement, normal approximation). labels: (rows,); groups: row indices of each batch.
    """
    whole = np.bincount(labels) / len(labels)
    shares = [np.bincount(labels[rows], minlength=len(whole)) / len(rows) for rows in groups]
    distance = np.mean([np.abs(share - whole).sum() / 2 for share in shares])
    spread = np.mean([np.sqrt(1 / len(rows) - 1 / len(labels)) for rows in groups])
    by_chance = spread * np.sqrt(2 / np.pi * whole * (1 - whole)).sum() / 2
    return float(distance - by_chance)


class StepRows:
    """Which training rows each optimiser step reads.

    A step holds texts of one length, so that almost nothing is padded. If length tells the label, such a step would hold one
    label, and training would fail. Its rows are then drawn at random (``mixed``) and sorted by length. On a CPU the Trainer packs
    them into one row without padding. On a GPU it pads them: there the many small operations of a packed row took longer than
    the padding (docs/speed.md). A step with more than ``batch_tokens`` tokens is cut into micro-batches that fit in memory. If
    the recipe names no such limit, it is :data:`CPU_TOKENS` on a CPU, or the longest text, and there is none on a GPU.

    Attributes:
        mixed: whether a step holds texts of several lengths
        packed: whether its rows are one row without padding
        per_epoch: the steps of an epoch
    """

    def __init__(self, data: Tokens, recipe: Recipe, seed: int, device: torch.device) -> None:
        self.data, self.recipe, self.seed, self.mixed = data, recipe, seed, False
        self.batch_tokens = recipe.batch_tokens or (max(CPU_TOKENS, int(data.lengths.max())) if device.type == "cpu" else None)
        groups = self._epoch(0)
        self.mixed = length_tells_label(data.labels, groups) > MIXING_LIMIT
        self.packed = self.mixed and device.type == "cpu"
        self.per_epoch = len(self._epoch(0)) if self.mixed else len(groups)

    def __iter__(self) -> Iterator[list[np.ndarray]]:
        """The micro-batches (row indices) of each step, epoch after epoch, without end.

        Raises InputError when a single text has more than ``batch_tokens`` tokens.
        """
        lengths, most = self.data.lengths, self.batch_tokens
        for epoch in itertools.count():
            for rows in self._epoch(epoch):
                if most is None:
                    yield [rows]
                elif self.packed:
                    yield _filled(rows, lengths[rows], most)
                else:
                    yield [rows[piece] for piece in batches(lengths[rows], most, None, seed=None, epoch=0)]

    def computed(self, rows: np.ndarray) -> int:
        """The tokens that a micro-batch of these rows computes, padding included."""
        lengths = self.data.lengths[rows]
        return int(lengths.sum() if self.packed else len(rows) * lengths.max())

    def _epoch(self, epoch: int) -> list[np.ndarray]:
        """The rows of each step of one epoch: every row once."""
        lengths, most = self.data.lengths, self.recipe.batch_rows
        if not self.mixed:
            return batches(lengths, None, most, seed=self.seed, epoch=epoch)
        order = np.random.default_rng((self.seed, epoch)).permutation(len(lengths))
        count = -(-len(order) // most)  # rounded up; the steps then differ by one row at most
        return [rows[np.argsort(lengths[rows], kind="stable")] for rows in np.array_split(order, count)]


def _filled(rows: np.ndarray, lengths: np.ndarray, most: int) -> list[np.ndarray]:
    """The rows of a step in micro-batches of at most ``most`` tokens; lengths: (rows,) tokens of the same rows."""
    if lengths.max() > most:
        raise InputError(f"The longest text has {lengths.max()} tokens and batch_tokens is {most}; raise it.")
    ends, pieces, start = np.cumsum([0, *lengths]), [], 0
    while start < len(rows):
        end = int(np.searchsorted(ends, ends[start] + most, side="right")) - 1
        pieces.append(rows[start:end])
        start = end
    return pieces
