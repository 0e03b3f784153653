"""Counting words on the tokens that an encoder reads: where a text is cut, and what the cut takes away."""

from __future__ import annotations

import random

import pandas as pd
import pytest

from rtx.baselines import embedding_bag
from rtxlib.data.datasets import File
from rtxlib.data.prepare import Prepared, prepare
from rtxstudy.claims import sentences
from rtxstudy.questions.accuracy import accuracy_claims
from rtxstudy.questions.depth_gain import depth_claims, equal_reading
from rtxstudy.same_tokens import cut, on_cut_texts


@pytest.fixture(scope="module")
def late(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """Texts of forty words. Only the last one tells the label, and an encoder of sixteen tokens does not read it."""
    drawn = random.Random(0)
    words = [f"{start}{end}" for start in "bdfgklmnprst" for end in ("an", "el", "in", "or", "ut")]
    rows = [([*drawn.choices(words, k=39), "good" if row % 2 else "bad"], row % 2) for row in range(400)]
    file = tmp_path_factory.mktemp("late") / "late.csv"
    table = pd.DataFrame([(" ".join(text), ("no", "yes")[label]) for text, label in rows], columns=["text", "label"])
    table.to_csv(file, index=False)
    return prepare(File(path=str(file), vocab_size=400, max_length=16), file.parent / "cache", progress=False)


def test_a_cut_text_has_the_tokens_that_an_encoder_reads(late: Prepared) -> None:
    tokens = late.splits["test"]
    for place, text in enumerate(cut(late.texts("test"), late.tokenizer, 16)):
        assert late.tokenizer(text)["input_ids"] == tokens.row(place).tolist() and len(tokens.row(place)) == 16
    assert cut(["good"], late.tokenizer, 16) == ["good"]  # a short text stays


def test_counting_words_loses_what_the_limit_takes_away(late: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding_bag, "BUCKETS", 512)
    table = on_cut_texts(late)
    assert set(table["cut"]) == {1.0} and set(table["limit"]) == {16} and len(table) == 3
    assert table["accuracy"].max() < 0.8  # on whole texts it is 1, since one word tells the label
    assert [len(right) for right in table["correct"]] == [len(late.splits["test"])] * 3


def test_texts_within_the_limit_are_not_counted_again(late: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtxstudy.same_tokens.LEAST_CUT", 1.1)
    assert on_cut_texts(late).empty


def test_the_sentences_follow_the_table() -> None:
    row = {"data": "Yelp", "way": "MiniLM, 4 layers", "cut": 0.4, "limit": 128, "whole_words": 0.92, "words": 0.88}
    ends = {f"{arm}_words_{end}": x for arm in ("deep", "loop") for end, x in (("gain", 0.03), ("low", 0.01), ("high", 0.05))}
    said = " ".join(sentences(depth_claims.equal_reading(pd.DataFrame([row | ends]))))
    assert "88.0\xa0% instead of 92.0\xa0% on Yelp" in said and "are more accurate than TF-IDF" in said
    said = " ".join(sentences(depth_claims.equal_reading(pd.DataFrame([row | ends | {"loop_words_low": -0.01}]))))
    assert "On Yelp only the deep encoder is shown to be more accurate than TF-IDF on the same tokens." in said
    assert "are more accurate" not in said
    assert equal_reading.readable(pd.DataFrame([row | ends]))["test texts cut"].item() == "40 % at 128 tokens"
    other = pd.DataFrame([{"limit": 128, "cut": 0.88, "whole": 0.93, "low": -0.05, "high": -0.01}] * 2)
    assert "every encoder from scratch is less accurate" in " ".join(sentences(accuracy_claims.equal_reading(other)))
    assert "0 of 2 comparisons" in " ".join(sentences(accuracy_claims.equal_reading(other.assign(high=[0.01, -0.01]))))
