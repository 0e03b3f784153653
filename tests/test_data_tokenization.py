"""Tokenizers: the same texts give the same vocabulary; token ids are framed, cut, saved and read back."""

from __future__ import annotations

import random
import string
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from test_data_clean import takes_linear_time

from rtxlib.data import tokenization
from rtxlib.data.tokenization import SPECIAL, cut_texts, encode, load_tokenizer, take, train, truncate
from rtxlib.errors import InputError

WORDS = ["the", "film", "was", "a", "quiet", "unhurried", "triumph", "nobody", "who", "waited", "regretted", "an", "hour"]


@pytest.fixture(scope="module")
def texts() -> list[str]:
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(WORDS, rng.integers(1, 14))) + rng.choice([".", "!", " ?"]) for _ in range(600)]


@pytest.fixture(scope="module")
def tokenizer(texts: list[str]):
    return train(texts, 160)


def test_special_tokens_have_the_first_ids(tokenizer) -> None:
    assert tokenizer.convert_tokens_to_ids(list(SPECIAL)) == [0, 1, 2, 3, 4]
    assert tokenizer.pad_token_id == 0


def test_the_same_texts_give_the_same_tokenizer(texts: list[str]) -> None:
    models = {train(order, 120).backend_tokenizer.to_str() for order in (texts, texts[::-1], texts + texts, texts)}
    assert len(models) == 1


def test_a_text_is_framed_and_found_again(tokenizer) -> None:
    ids, offsets = encode(["the quiet film", ""], tokenizer, None)
    assert offsets[0] == 0 and offsets[-1] == len(ids)
    assert ids[offsets[0]] == ids[offsets[1]] == tokenizer.cls_token_id
    assert ids[offsets[1] - 1] == ids[-1] == tokenizer.sep_token_id
    assert offsets[2] - offsets[1] == 2  # an empty text is [CLS] [SEP]
    assert tokenizer.decode(ids[: offsets[1]], skip_special_tokens=True).strip() == "the quiet film"
    assert ids.dtype == np.int32 and offsets.dtype == np.int64


def test_it_agrees_with_transformers_own_call(tokenizer, texts: list[str]) -> None:
    ids, offsets = encode(texts[:20], tokenizer, 9)
    theirs = tokenizer(texts[:20], truncation=True, max_length=9)["input_ids"]
    assert [ids[a:b].tolist() for a, b in pairwise(offsets)] == theirs


def test_the_beginning_of_a_long_text_has_the_tokens_of_the_whole(tokenizer) -> None:
    words = " ".join(WORDS * 500)
    long = [words, "film, " * 9000, "x" * 9000 + words, " " * 9000 + words, "好" * 9000, "a" + "film" * 3000 + words]
    whole = [encode([text], tokenizer, None)[0].tolist() for text in long]
    for most in (2, 3, 9, 64):
        ids, offsets = encode(long, tokenizer, most)
        cut = [[*tokens[: most - 1], tokens[-1]] for tokens in whole]
        assert [ids[a:b].tolist() for a, b in pairwise(offsets)] == [
            kept if len(tokens) > most else tokens for kept, tokens in zip(cut, whole, strict=True)
        ]
    backend = tokenizer.backend_tokenizer
    backend.no_truncation()
    assert len(tokenization._beginning(words, backend, 62)) < 1000
    assert tokenization._beginning(long[2], backend, 62) == long[2]  # one word fills the beginning


def test_cutting_afterwards_is_cutting_at_once(tokenizer, texts: list[str]) -> None:
    at_once = encode(texts, tokenizer, 8)
    afterwards = truncate(*encode(texts, tokenizer, None), 8)
    assert np.array_equal(at_once[0], afterwards[0]) and np.array_equal(at_once[1], afterwards[1])
    assert np.diff(at_once[1]).max() == 8
    assert (at_once[0][at_once[1][1:] - 1] == tokenizer.sep_token_id).all()


def test_special_tokens_in_a_text_are_plain_characters(tokenizer) -> None:
    ids, _ = encode(["good [SEP] [PAD] bad [CLS]"], tokenizer, None)
    assert not set(ids[1:-1].tolist()) & {0, 2, 3, 4}


def test_padding_that_another_call_switched_on_is_ignored(tokenizer, texts: list[str]) -> None:
    expected = encode(texts[:9], tokenizer, None)
    tokenizer(texts[:9], padding=True, truncation=True, max_length=6)
    state = tokenizer.backend_tokenizer.padding, tokenizer.backend_tokenizer.truncation
    assert None not in state
    for found, wanted in zip(encode(texts[:9], tokenizer, None), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert state == (tokenizer.backend_tokenizer.padding, tokenizer.backend_tokenizer.truncation)
    tokenizer.backend_tokenizer.no_padding()
    tokenizer.backend_tokenizer.no_truncation()


def test_taking_rows_keeps_each_whole(tokenizer, texts: list[str]) -> None:
    ids, offsets = encode(texts, tokenizer, None)
    rows = [5, 0, 17]
    some, starts = take(ids, offsets, rows)
    for place, row in enumerate(rows):
        assert np.array_equal(some[starts[place] : starts[place + 1]], ids[offsets[row] : offsets[row + 1]])


def test_a_saved_tokenizer_is_read_back(tokenizer, texts: list[str], tmp_path: Path) -> None:
    tokenizer.save_pretrained(tmp_path)
    again = load_tokenizer(tmp_path)
    assert np.array_equal(encode(texts, again, None)[0], encode(texts, tokenizer, None)[0])
    assert again.pad_token_id == 0 and again.mask_token == "[MASK]"
    with pytest.raises(InputError, match=r"no tokenizer\.json"):
        load_tokenizer(tmp_path / "elsewhere")


def test_case_is_kept_when_asked() -> None:
    kept, lost = (train(["Good good GOOD bad"] * 3, 100, lowercase=lower) for lower in (False, True))
    assert len(set(encode(["Good", "good"], kept, None)[0].tolist())) > len(set(encode(["good"], kept, None)[0].tolist()))
    assert np.array_equal(encode(["Good"], lost, None)[0], encode(["good"], lost, None)[0])


def test_characters_beyond_the_alphabet_are_unknown() -> None:
    many = ["".join(chr(0x4E00 + i) for i in range(1500)), *["plain words"] * 5]
    tokenizer = train(many, 4000)
    assert len(tokenizer) < 1000 * 2 + 50
    assert tokenizer.unk_token_id in encode([chr(0x4E00 + 1499)], tokenizer, None)[0]


LONG_WORDS = {
    "letters": "".join(random.Random(0).choices(string.ascii_lowercase, k=1_000_000)),
    "Chinese": "".join(chr(0x4E00 + i % 3000) for i in range(330_000)),
}


@pytest.mark.parametrize("word", LONG_WORDS.values(), ids=LONG_WORDS.keys())
def test_a_word_of_a_megabyte_takes_linear_time(word: str, texts: list[str]) -> None:
    def work(size: int) -> None:
        tokenizer = train([*texts, word[:size]], 1200)
        _, offsets = encode([word[:size]], tokenizer, 128)
        assert offsets[1] <= 128

    assert takes_linear_time(work, len(word))


def test_only_words_that_are_too_long_are_cut(texts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [*texts, " ".join(texts[:400]), "triumphant" * 30]
    assert len(texts[-2]) > tokenization.LONGEST_WORD
    models, ids = set(), []
    for longest, characters in ((tokenization.LONGEST_WORD, 1 << 23), (10**9, 10**9), (300, 5)):
        monkeypatch.setattr(tokenization, "LONGEST_WORD", longest)
        monkeypatch.setattr(tokenization, "_CHUNK_CHARACTERS", characters)
        tokenizer = train(texts, 160)
        models.add(tokenizer.backend_tokenizer.to_str())
        ids.append(encode(texts, tokenizer, None)[0])
    assert len(models) == 1 and np.array_equal(ids[0], ids[1]) and np.array_equal(ids[0], ids[2])
    monkeypatch.setattr(tokenization, "LONGEST_WORD", 100)
    cut = train(texts, 160).backend_tokenizer.to_str()
    assert cut == train([*texts[:-1], "triumphant" * 10], 160).backend_tokenizer.to_str()


def test_a_text_that_is_too_long_is_cut_and_counted(tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not cut_texts(["a quiet film"])
    monkeypatch.setattr(tokenization, "LONGEST_TEXT", 11)
    assert cut_texts(["a quiet film", "a film"]) == "1 text is longer than 11 characters; only the beginning is read."
    assert np.array_equal(encode(["a quiet film"], tokenizer, None)[0], encode(["a quiet fil"], tokenizer, None)[0])


@pytest.mark.parametrize(
    ("texts", "size", "words"), [([" ", ""], 100, "no text"), (["a"], 9, "64")]
)
def test_what_cannot_be_trained_is_refused(texts: list[str], size: int, words: str) -> None:
    with pytest.raises(InputError, match=words):
        train(texts, size)
