"""Batches: every row once, within the limits, almost no padding, and the same for the same arguments."""

from __future__ import annotations

import numpy as np
import pytest

from rtxlib.data.batching import Tokens, batches, collate
from rtxlib.errors import InputError


@pytest.fixture(scope="module")
def lengths() -> np.ndarray:
    """Lengths distributed like those of SST-2's phrases: 3 to 66 tokens, mean about 13."""
    return np.clip(np.random.default_rng(0).lognormal(2.35, 0.65, 63_000).astype(int), 3, 66)


def padding_share(lengths: np.ndarray, made: list[np.ndarray]) -> float:
    """Padding tokens over all tokens computed, 0 to 1."""
    return 1 - sum(lengths[batch].sum() for batch in made) / sum(lengths[batch].max() * len(batch) for batch in made)


def ragged(lengths: list[int]) -> Tokens:
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return Tokens(np.arange(1, offsets[-1] + 1, dtype=np.int32), offsets, np.arange(len(lengths)))


@pytest.mark.parametrize("limits", [(None, 128), (4096, None), (2048, 64)])
@pytest.mark.parametrize("seed", [None, 3])
def test_every_row_once_and_within_the_limits(lengths: np.ndarray, limits: tuple, seed: int | None) -> None:
    tokens, rows = limits
    made = batches(lengths, tokens, rows, seed, epoch=1)
    assert np.array_equal(np.sort(np.concatenate(made)), np.arange(len(lengths)))
    assert rows is None or max(map(len, made)) <= rows
    assert tokens is None or max(len(batch) * lengths[batch].max() for batch in made) <= tokens


@pytest.mark.parametrize("rows", [16, 64, 128])
def test_padding_is_under_one_percent_on_lengths_like_those_of_sst2(lengths: np.ndarray, rows: int) -> None:
    for epoch in range(3):
        assert padding_share(lengths, batches(lengths, None, rows, 0, epoch)) < 0.01


def test_the_padding_share_of_the_tests_is_what_collate_pads(lengths: np.ndarray) -> None:
    made = batches(lengths, None, 32, 0, 0)[:40]
    tokens = ragged(lengths.tolist())
    masks = [collate(tokens, batch, 0) for batch in made]
    padded = sum(int((out["attention_mask"] == 0).sum()) for out in masks if out["attention_mask"] is not None)
    assert padding_share(lengths, made) == pytest.approx(padded / sum(out["input_ids"].numel() for out in masks))


def test_the_order_is_a_pure_function_of_seed_and_epoch(lengths: np.ndarray) -> None:
    def order(seed: int | None, epoch: int) -> list[list[int]]:
        return [batch.tolist() for batch in batches(lengths, None, 64, seed, epoch)]

    assert order(1, 2) == order(1, 2)
    assert order(1, 2) != order(1, 3)
    assert order(1, 2) != order(2, 2)
    assert order(None, 0) == order(None, 9)


def test_rows_meet_other_rows_in_the_next_epoch() -> None:
    lengths = np.repeat(np.arange(4, 200), 3)  # few rows of each length: the hard case

    def pairs(epoch: int) -> set[tuple[int, int]]:
        return {(a, b) for batch in batches(lengths, None, 8, 0, epoch) for a in batch for b in batch if a < b}

    first, second = pairs(0), pairs(1)
    assert len(first & second) < 0.7 * len(first)


def test_without_a_seed_the_shortest_come_first() -> None:
    assert [batch.tolist() for batch in batches(np.array([5, 3, 4, 3]), None, 2, None, 0)] == [[1, 3], [2, 0]]


def test_collate_pads_the_short_rows_and_keeps_the_order_asked() -> None:
    tokens = ragged([2, 3, 2])
    out = collate(tokens, np.array([1, 0]), pad_id=0)
    assert out["input_ids"].tolist() == [[3, 4, 5], [1, 2, 0]]
    assert out["attention_mask"].tolist() == [[1, 1, 1], [1, 1, 0]]
    assert out["labels"].tolist() == [1, 0]


def test_collate_gives_no_mask_where_nothing_is_padded() -> None:
    out = collate(ragged([2, 3, 2]), np.array([0, 2]), pad_id=9)
    assert out["attention_mask"] is None
    assert out["input_ids"].tolist() == [[1, 2], [6, 7]]


@pytest.mark.parametrize(
    ("tokens", "rows", "words"), [(None, None, "needs a limit"), (10, 4, "raise it"), (None, 0, "at least 1")]
)
def test_impossible_limits_are_refused(tokens: int | None, rows: int | None, words: str) -> None:
    with pytest.raises(InputError, match=words):
        batches(np.array([3, 11]), tokens, rows, 0, 0)


def test_no_rows_give_no_batches() -> None:
    assert batches(np.array([], int), 100, None, 0, 0) == []
