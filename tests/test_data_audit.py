"""The audit finds planted faults, says where they are, and stops a run on a leak."""

from __future__ import annotations

import pandas as pd
import pytest

from rtxlib.data import audit
from rtxlib.errors import InputError

TRAIN = ["a fine film", "a fine film ", "bad .", "one of the best films of the year", "nothing here", "nothing here"]
LABELS = ["positive", "positive", "negative", "positive", "negative", "positive"]
TEST = ["Bad", "it is one of the best films of the year , easily", "a fine film", "quite new words stand here"]


@pytest.fixture(scope="module")
def parts() -> dict[str, pd.DataFrame]:
    return {
        "train": pd.DataFrame({"text": TRAIN, "label": LABELS}),
        "test": pd.DataFrame({"text": TEST, "label": ["negative", "positive", "positive", "negative"]}),
    }


def rows(table: pd.DataFrame, check: str, left: str, right: str = "") -> int:
    (row,) = table[(table["check"] == check) & (table["left"] == left) & (table["right"] == right)].itertuples()
    return row.rows


def test_duplicates_and_contradictions_inside_a_split(parts: dict) -> None:
    table = audit.audit(parts, leak_words=3)
    assert list(table.columns) == ["check", "left", "right", "rows", "share", "example"]
    assert rows(table, "duplicate texts", "train") == 2
    assert rows(table, "same text, different labels", "train") == 1
    assert rows(table, "duplicate texts", "test") == rows(table, "same text, different labels", "test") == 0


def test_overlap_is_counted_each_way(parts: dict) -> None:
    table = audit.audit(parts, leak_words=3)
    assert rows(table, "same text", "test", "train") == 1
    assert rows(table, "same text", "train", "test") == 2
    assert rows(table, "same words", "test", "train") == 2  # "Bad" and "bad ." too
    assert rows(table, "inside", "train", "test") == 3
    assert rows(table, "inside, 1–3 words", "train", "test") == 2
    assert rows(table, "inside, 8 words and more", "train", "test") == 1
    assert rows(table, "inside", "test", "train") == 1
    assert rows(table, "leak", "train", "test") == 1
    assert rows(table, "leak", "test", "train") == 0
    share = table.set_index(["check", "left", "right"])["share"]
    assert share["inside", "train", "test"] == pytest.approx(3 / 6)


def test_a_leak_stops_unless_the_pair_is_allowed(parts: dict) -> None:
    table = audit.audit(parts, leak_words=3)
    with pytest.raises(InputError, match=r"A leak: 1 texts of train .* 'one of the best films of the year'"):
        audit.stop_on_leaks(table, 3, allowed=[])
    audit.stop_on_leaks(table, 3, allowed=[frozenset(("train", "test"))])
    audit.stop_on_leaks(audit.audit(parts, leak_words=8), 8, allowed=[])
    with pytest.raises(InputError, match="A leak"):
        audit.stop_on_leaks(audit.audit(parts, leak_words=2), 2, allowed=[])


def test_the_same_words_are_a_leak_whatever_the_punctuation() -> None:
    table = audit.overlaps({"a": pd.Series(["One two, three four!"]), "b": pd.Series(["one two three four"])}, leak_words=3)
    assert rows(table, "same text", "a", "b") == rows(table, "inside", "a", "b") == 0
    assert rows(table, "leak", "a", "b") == rows(table, "leak", "b", "a") == 1


def test_three_parts_are_compared_pair_by_pair() -> None:
    table = audit.overlaps({"a": pd.Series(["x y"]), "b": pd.Series(["x y", "z"]), "c": pd.Series(["z q"])}, leak_words=3)
    assert rows(table, "same text", "b", "a") == 1
    assert rows(table, "inside", "b", "c") == 1
    assert rows(table, "inside", "a", "c") == rows(table, "inside", "c", "b") == 0
