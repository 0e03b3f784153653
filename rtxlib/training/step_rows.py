"""The rows of each optimiser step: texts of one length, or of several lengths if the length tells the label."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rtxlib.data.batching import Tokens, batches
from rtxlib.errors import InputError
from rtxlib.training.recipe import Recipe

# Steps mix lengths when the labels of a batch of like length differ from those of all rows by more than this. The distance is
# that of length_tells_label: under 0.02 on SST-2, 0.10 on SMS spam, and 0.30 on three domains.
MIXING_LIMIT = 0.07
MIXED = 8  # micro-batches of different lengths in a step that mixes lengths


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


def steps(data: Tokens, recipe: Recipe, seed: int) -> Iterator[list[np.ndarray]]:
    """The micro-batches (row indices) of each optimiser step, epoch after epoch, without end.

    A step holds texts of one length, so that nothing is padded. If length tells the label, such a batch would hold one label,
    and training would fail; a step then holds :data:`MIXED` micro-batches of different lengths. Raises InputError when
    ``batch_rows`` cannot be divided among them.
    """
    lengths, epoch = data.lengths, 0
    groups = batches(lengths, None, recipe.batch_rows, seed=seed, epoch=0)
    together = MIXED if length_tells_label(data.labels, groups) > MIXING_LIMIT else 1
    if recipe.batch_rows % together:
        raise InputError(
            f"In these data the length of a text tells its label, so a step gathers texts of {together} lengths: batch_rows must "
            f"be a multiple of {together}, not {recipe.batch_rows}."
        )
    while True:
        groups = batches(lengths, None, recipe.batch_rows // together, seed=seed, epoch=epoch)
        for start in range(0, len(groups), together):
            step = groups[start : start + together]
            if recipe.batch_tokens is not None:  # cut into pieces that fit in memory; their gradients are added
                step = [
                    rows[part]
                    for rows in step
                    for part in batches(lengths[rows], recipe.batch_tokens, None, seed=None, epoch=0)
                ]
            yield step
        epoch += 1
