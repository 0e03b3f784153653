"""Which rows make an optimiser step: texts of one length, or of several where length tells the label."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rtxlib.data.batching import Tokens, batches
from rtxlib.errors import InputError
from rtxlib.training.recipe import Recipe

# How much further than by chance a batch's label shares may be from the whole's before lengths are mixed within a step. Batches
# of like length are under 0.02 further on SST-2, 0.10 on SMS spam, and 0.30 where three domains are told apart.
MIXING_LIMIT = 0.07
MIXED = 8  # micro-batches of different lengths in a step, then


def length_tells_label(labels: np.ndarray, groups: list[np.ndarray]) -> float:
    """How much further the label shares of a batch of like length are from those of all rows than a random batch's would be.

    Total-variation distance, on average over batches, less what sampling without replacement gives by the normal
    approximation: about 0 where length says nothing, up to 1. labels: (rows,); groups: row indices of each batch.
    """
    whole = np.bincount(labels) / len(labels)
    shares = [np.bincount(labels[rows], minlength=len(whole)) / len(rows) for rows in groups]
    found = np.mean([np.abs(share - whole).sum() / 2 for share in shares])
    spread = np.mean([np.sqrt(1 / len(rows) - 1 / len(labels)) for rows in groups])
    return float(found - spread * np.sqrt(2 / np.pi * whole * (1 - whole)).sum() / 2)


def steps(data: Tokens, recipe: Recipe, seed: int) -> Iterator[list[np.ndarray]]:
    """The micro-batches (row indices) of each optimiser step, epoch after epoch, without end.

    A step sees texts of one length, so that nothing is padded. Where length tells the label that would make
    batches of one label, and training goes astray; a step then gathers several micro-batches of different lengths.
    Raises InputError where those cannot make up ``batch_rows``.
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
            if recipe.batch_tokens is not None:  # cut so that each piece fits in memory; the gradient is that of all
                step = [
                    rows[part]
                    for rows in step
                    for part in batches(lengths[rows], recipe.batch_tokens, None, seed=None, epoch=0)
                ]
            yield step
        epoch += 1
