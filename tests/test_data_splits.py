"""Splits: texts found inside others, groups that stay together, and samples that are balanced, sized and nested."""

from __future__ import annotations

import numpy as np
import pytest
from datasets import Dataset, DatasetDict

from rtxlib.data import audit, datasets
from rtxlib.data.containment import groups, occurrences, words_key
from rtxlib.data.datasets import Hub
from rtxlib.data.rows import SPLITS, Rows
from rtxlib.data.spec import DataSpec
from rtxlib.data.splits import balanced, by_length, maximal_first, nested, phrase_validation, split, split_rows
from rtxlib.errors import InputError


def found(needles: list[str], haystack: list[str]) -> set[tuple[int, int]]:
    return {(int(a), int(b)) for left, right in occurrences(needles, haystack) for a, b in zip(left, right, strict=True)}


@pytest.mark.parametrize("most", [6, 40])
def test_occurrences_are_those_of_a_plain_search(most: int) -> None:
    rng = np.random.default_rng(most)
    haystack = [" ".join(rng.choice(list("abc"), rng.integers(0, most))) for _ in range(150)]
    pieces = []
    for text in haystack:  # parts of the texts, so that long needles occur too
        words = text.split()
        low, high = sorted(rng.integers(0, len(words) + 1, 2))
        pieces.append(" ".join(words[low:high]))
    needles = sorted(set(pieces + haystack))
    plain = {(i, j) for i, a in enumerate(needles) for j, b in enumerate(haystack) if a and f" {a} " in f" {b} "}
    assert found(needles, haystack) == plain
    assert max(len(needles[i].split()) for i, _ in plain) >= most // 2


def test_occurrences_respect_words_and_rows() -> None:
    assert found(["art", "good film"], ["party", "good", "film good", "a good film"]) == {(1, 3)}
    assert found([], ["a"]) == found(["a"], []) == found(["", "a"], ["", "  "]) == set()


def test_texts_of_the_same_words_are_one_key() -> None:
    assert words_key("Cool .") == words_key("cool!") == "cool"
    assert words_key(":)") == ":)" != words_key(":(")
    assert words_key("won\u200bderful film\ufeff") == words_key("wonderful film")  # twins that nobody can tell apart


def test_groups_join_equals_and_long_parts_but_not_short_ones() -> None:
    texts = ["A b c d.", "x a b c d y", "a b c d", "a b", "other words here now", "a b z"]
    group = groups(texts, longer_than=3)
    assert group[0] == group[1] == group[2]
    assert len({group[0], group[3], group[4], group[5]}) == 4


def test_groups_chain() -> None:
    group = groups(["a b c d", "a b c d e f g h", "e f g h", "e f g"], longer_than=3)
    assert group[0] == group[1] == group[2] != group[3]


def test_a_split_keeps_groups_whole_and_classes_in_proportion() -> None:
    rng = np.random.default_rng(0)
    strata = rng.choice(["a", "b", "c"], 3000, p=[0.7, 0.25, 0.05])
    group = np.arange(3000)
    group[:300] = group[:300] // 3
    where = split(group, strata, seed=1)
    assert all(len(set(where[group == g])) == 1 for g in range(100))
    assert "test" in where[:300] and "validation" in where[:300]
    for stratum in "abc":
        mine = where[strata == stratum]
        for name in ("validation", "test"):
            assert (mine == name).sum() == pytest.approx(0.1 * len(mine), abs=1)
    assert np.array_equal(where, split(group, strata, seed=1))
    assert not np.array_equal(where, split(group, strata, seed=2))


@pytest.mark.parametrize(
    "sizes",
    [[3] * 40, [3] * 1000, [10] * 40, [100] * 10, [1, 2, 3, 5, 8, 13, 21, 34] * 6, [300] + [3] * 60 + [1] * 4],
    ids=["three annotators", "many texts", "ten annotators", "a hundred rows each", "uneven", "one giant"],
)
@pytest.mark.parametrize("disagree", [0, 0.2])
def test_texts_that_stand_several_times_are_split(sizes: list[int], disagree: float) -> None:
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(len(sizes)), sizes)
    strata = np.where(rng.random(len(group)) < disagree, rng.integers(0, 2, len(group)), group % 2)
    order = rng.permutation(len(group))
    group, strata = group[order], strata[order]
    for seed in range(3):
        where = split(group, strata, seed)
        assert all(len(set(where[group == g])) == 1 for g in range(len(sizes)))
        assert all(set(strata[where == name]) == {0, 1} for name in SPLITS)
        held = sorted(size for size, text in zip(sizes, range(len(sizes)), strict=True) if where[group == text][0] != "train")
        for name in ("validation", "test"):
            assert (where == name).sum() == pytest.approx(0.1 * len(group), abs=2 * max(held))
        assert max(sizes) not in held or len(set(sizes)) == 1
        assert np.array_equal(where, split(group, strata, seed))


@pytest.mark.parametrize("size", [20, 500])
def test_a_group_that_would_weigh_too_much_in_a_small_split_goes_to_training(size: int) -> None:
    group = np.concatenate([np.zeros(size, int), np.arange(1, 1001 - size)])
    assert all(set(split(group, ["a"] * 1000, seed)[:size]) == {"train"} for seed in range(20))


def test_a_class_of_three_rows_is_in_every_split() -> None:
    where = split(np.arange(103), ["a"] * 100 + ["b"] * 3, seed=0)
    assert sorted(where[100:]) == ["test", "train", "validation"]


def test_rows_that_cannot_be_split_are_refused() -> None:
    with pytest.raises(InputError, match=r"too few|leave nothing"):
        split(np.zeros(50, int), ["a"] * 50, seed=0)


def test_no_training_phrase_lies_inside_an_sst2_validation_sentence() -> None:
    rng = np.random.default_rng(0)
    sentences = [" ".join(rng.choice([f"w{i}" for i in range(400)], 12)) for _ in range(200)]
    phrases = sentences + [" ".join(s.split()[a : a + 3]) for s in sentences for a in (0, 4, 8)] + sentences[:5]
    chosen, dropped, maximal = phrase_validation(phrases, seed=0)
    assert maximal == 200
    held = {phrases[i] for i in np.flatnonzero(chosen)}
    assert len(held) == 10 and held <= set(sentences)
    left = [phrase for phrase, out in zip(phrases, chosen | dropped, strict=True) if not out]
    assert not any(f" {phrase} " in f" {sentence} " for sentence in held for phrase in left)
    assert dropped.sum() == 30 and not (chosen & dropped).any()
    assert len({phrases[i] for i in np.flatnonzero(phrase_validation(phrases, seed=0, share=0.2)[0])}) == 40


def test_whole_sentences_rank_before_their_phrases() -> None:
    rank = maximal_first(["a b", "a b c", "d", "x d", "c"], seed=0)
    assert set(rank[[1, 3]]) == {0, 1}


def test_a_sample_is_balanced_first_and_sized_second() -> None:
    strata = np.array(["a"] * 90 + ["b"] * 20 + ["c"] * 40)
    rank = np.arange(150)[::-1]
    kept = balanced(strata, 30, rank)
    assert [int((strata[kept] == s).sum()) for s in "abc"] == [10, 10, 10]
    assert kept[strata[kept] == "a"].tolist() == list(range(80, 90))  # the lowest ranks
    assert [int((strata[balanced(strata, 10_000, rank)] == s).sum()) for s in "abc"] == [20, 20, 20]


def test_a_smaller_fraction_lies_inside_a_larger_one() -> None:
    strata = np.array(["a"] * 300 + ["b"] * 100)
    tenth, half = (nested(strata, fraction, seed=4) for fraction in (0.1, 0.5))
    assert set(tenth) < set(half)
    assert [(strata[tenth] == s).sum() for s in "ab"] == [30, 10]
    assert [(strata[half] == s).sum() for s in "ab"] == [150, 50]


def test_the_shortest_and_the_longest_are_thirty_percent_each() -> None:
    lengths = np.random.default_rng(0).integers(3, 20, 1000)
    short, long = (by_length(lengths, which, seed=0) for which in ("shortest", "longest"))
    assert len(short) == len(long) == 300
    assert lengths[short].max() <= np.delete(lengths, short).min()
    assert lengths[long].min() >= np.delete(lengths, long).max()


def pooled(monkeypatch: pytest.MonkeyPatch, spec: DataSpec, train: list[tuple[str, int]], test: list[tuple[str, int]]) -> Rows:
    """The split rows of a spec whose source has these texts and labels on the Hub."""
    parts = {"train": train, "test": test}
    loaded = DatasetDict(
        {name: Dataset.from_dict({"text": [t for t, _ in part], "label": [n for _, n in part]}) for name, part in parts.items()}
    )
    monkeypatch.setattr(datasets, "_load", lambda repo, config: (loaded, "0" * 40, True))
    rows = spec.read()
    split_rows(rows, spec)
    return rows


def test_an_official_test_set_stays_whole_and_the_training_rows_are_balanced(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = Hub("amazon_polarity", official_test=True)
    train = [(f"review number {i} of a thing", int(i % 3 > 0)) for i in range(300)]
    test = [(f"test review {i}", int(i > 4)) for i in range(20)]
    shared = [("this very text is in both splits", 0)]
    rows = pooled(monkeypatch, spec, train + shared, test + shared)
    assert rows.part("test")["text"].tolist() == [text for text, _ in test + shared]  # in their order, none dropped
    assert rows.part("test")["label"].value_counts().to_dict() == {"positive": 15, "negative": 6}
    for name in ("train", "validation"):
        counts = rows.part(name)["label"].value_counts()
        assert counts["positive"] == counts["negative"] > 0
    assert not rows.part("train")["text"].isin([shared[0][0]]).any()
    assert 180 <= len(rows.table) - 21 <= 200  # of 100 negative ones, in two splits
    table = audit.audit_splits(rows, spec)
    assert table.loc[table["check"] == "leak", "rows"].eq(0).all()


def test_a_sample_of_a_large_source_leaves_its_official_test_set_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    train = [(f"review number {i} of a thing", i % 2) for i in range(600)]
    test = [(f"test review {i}", i % 2) for i in range(90)]
    rows = pooled(monkeypatch, Hub("amazon_polarity", official_test=True, rows=40), train, test)
    assert rows.steps[0] == ("read from mteb/amazon_polarity", 690, 0, 160 + 90)  # four times the rows, and the test set
    assert len(rows.part("test")) == 90 and len(rows.part("train")) + len(rows.part("validation")) == 40


def test_a_source_without_a_test_split_of_its_own_cannot_keep_one() -> None:
    with pytest.raises(InputError, match="'sst2' is none of them"):
        Hub("sst2", official_test=True).check()
