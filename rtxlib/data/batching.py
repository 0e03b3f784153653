"""Batches of rows of similar length from a ragged array, so that there is almost no padding."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from rtxlib.errors import InputError

_JITTER = 0.02  # lengths within ± 1 % of each other may swap: new neighbours each epoch, little padding


@dataclass(frozen=True, eq=False)
class Tokens:
    """One split as a ragged array: the token ids of all rows end to end. Arrays read from disk are memory-mapped.

    Attributes:
        ids: (total_tokens,) int32
        offsets: (rows + 1,) int64; row i is ``ids[offsets[i]:offsets[i + 1]]``
        labels: (rows,) int64
        separator: the id of [SEP] if the rows are pairs of texts, which it divides; None: single texts
    """

    ids: np.ndarray
    offsets: np.ndarray
    labels: np.ndarray
    separator: int | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def row(self, i: int) -> np.ndarray:
        return self.ids[self.offsets[i] : self.offsets[i + 1]]

    @property
    def lengths(self) -> np.ndarray:
        """(rows,) int64, tokens of each row with [CLS] and [SEP]."""
        return np.diff(self.offsets)


def batches(
    lengths: np.ndarray, batch_tokens: int | None, batch_rows: int | None, seed: int | None, epoch: int
) -> list[np.ndarray]:
    """Every row once, rows of similar length together: a pure function of its arguments.

    With a seed, rows of (nearly) equal length swap places and the batches come in random order, which differs between
    epochs. Without a seed the order is fixed, shortest first; evaluation uses it.

    Args:
        lengths: (rows,) tokens of each row
        batch_tokens: at most this many tokens per batch, padding included; None: no such limit
        batch_rows: at most this many rows per batch; None: no such limit
        seed: of the order; None for a fixed order
        epoch: each epoch has another order

    Returns:
        Arrays of row indices, one per batch.

    Raises:
        InputError: no limit is given, a limit is below 1, or a single row is longer than ``batch_tokens``.
    """
    lengths = np.asarray(lengths)
    if batch_tokens is None and batch_rows is None:
        raise InputError("A batch needs a limit: give batch_tokens, batch_rows or both.")
    if min(x for x in (batch_tokens, batch_rows) if x is not None) < 1:
        raise InputError(f"A batch holds at least 1: batch_tokens={batch_tokens}, batch_rows={batch_rows}.")
    if not len(lengths):
        return []
    if batch_tokens is not None and lengths.max() > batch_tokens:
        raise InputError(f"The longest text has {lengths.max()} tokens and batch_tokens is {batch_tokens}; raise it.")

    rng = None if seed is None else np.random.default_rng((seed, epoch))
    if rng is None:
        order = np.argsort(lengths, kind="stable")
    else:
        jitter = 1 + _JITTER * (rng.random(len(lengths)) - 0.5)
        order = np.lexsort((rng.random(len(lengths)), np.rint(lengths * jitter)))
    sizes = lengths[order]
    most_rows = len(sizes) if batch_rows is None else batch_rows

    cut: list[np.ndarray] = []
    start = 0
    while start < len(order):
        width = np.maximum.accumulate(sizes[start : start + most_rows])
        rows = len(width)
        if batch_tokens is not None:
            rows = int(np.searchsorted(width * np.arange(1, rows + 1), batch_tokens, side="right"))
        if rng is not None and not cut:
            rows = max(1, int(rows * rng.uniform(0.5, 1)))  # moves all later cuts: no two rows always share a batch
        cut.append(order[start : start + rows])
        start += rows
    return cut if rng is None else [cut[i] for i in rng.permutation(len(cut))]


def collate(tokens: Tokens, index: np.ndarray, pad_id: int) -> dict[str, torch.Tensor | None]:
    """One padded batch.

    Args:
        tokens: the split
        index: (B,) rows to take, in this order
        pad_id: fills the end of the shorter rows

    Returns:
        ``input_ids`` (B, T) int64; ``attention_mask`` (B, T) int64, or None without padding, so that attention can take
        its unmasked path; ``labels`` (B,) int64; for pairs also ``token_type_ids`` (B, T) int64, which are 1 after the first
        [SEP] and 0 before and in padding.
    """
    starts = tokens.offsets[index]
    lengths = tokens.offsets[np.asarray(index) + 1] - starts
    column = np.arange(lengths.max())
    real = column < lengths[:, None]  # (B, T)
    ids = np.full(real.shape, pad_id, dtype=np.int64)
    ids[real] = tokens.ids[(starts[:, None] + column)[real]]
    batch = {
        "input_ids": torch.from_numpy(ids),
        "attention_mask": None if real.all() else torch.from_numpy(real.astype(np.int64)),
        "labels": torch.from_numpy(np.asarray(tokens.labels[index], dtype=np.int64)),
    }
    if tokens.separator is not None:
        ends = ids == tokens.separator
        second = (ends.cumsum(axis=1) - ends > 0) & real  # after the first [SEP], the second one included
        batch["token_type_ids"] = torch.from_numpy(second.astype(np.int64))
    return batch


def pack(tokens: Tokens, index: np.ndarray) -> dict[str, torch.Tensor | list[int]]:
    """One packed row: texts end to end, without padding.

    Args:
        tokens: the split
        index: (B,) rows to take, in this order

    Returns:
        ``input_ids`` (1, total) int64; ``offsets``, where each text begins and the last one ends (B + 1 numbers); ``labels``
        (B,) int64; for pairs also ``token_type_ids`` (1, total) as in :func:`collate`.
    """
    texts = [tokens.row(i) for i in index]
    batch = {
        "input_ids": torch.from_numpy(np.concatenate(texts).astype(np.int64))[None],
        "offsets": np.cumsum([0, *map(len, texts)]).tolist(),
        "labels": torch.from_numpy(np.asarray(tokens.labels[index], dtype=np.int64)),
    }
    if tokens.separator is not None:
        ends = [ids == tokens.separator for ids in texts]
        second = [end.cumsum() - end > 0 for end in ends]  # after the first [SEP], the second one included
        batch["token_type_ids"] = torch.from_numpy(np.concatenate(second).astype(np.int64))[None]
    return batch
