"""Classifiers that are kept as JSON and safetensors: they answer as what was fitted, and `rtx predict` opens them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from near import assert_near
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from rtx.classifiers import folder, linear, words
from rtx.classifiers.encoders import Static
from rtx.classifiers.linear import NEVER, Linear
from rtx.classifiers.simple import Cascade, Majority
from rtx.classifiers.words import WORD, WordCounts
from rtxlib.data.tokenization import train
from rtxlib.errors import InputError
from rtxlib.runs import store

GOOD, BAD, SO = ("fine", "lovely", "moving"), ("dull", "stale", "clumsy"), ("plain", "usual", "common")
FILLER = ("film", "plot", "cast", "end", "start")


def texts(rows: int, kinds: int = 2, seed: int = 0) -> tuple[list[str], np.ndarray]:
    rng = np.random.default_rng(seed)
    numbers = np.arange(rows) % kinds
    told = [
        f"a {rng.choice((BAD, GOOD, SO)[n])} {rng.choice(FILLER)} and a {rng.choice(FILLER)} {row}"
        for row, n in enumerate(numbers)
    ]
    return told, numbers


@pytest.fixture(params=[2, 3], ids=["two labels", "three labels"])
def counted(request: pytest.FixtureRequest) -> WordCounts:
    return words.fit(*texts(120, request.param), request.param)


def kept(classifier: folder.Classifier, place: Path) -> folder.Classifier:
    place.mkdir()
    folder.save(classifier, place)
    assert {file.suffix for file in place.rglob("*") if file.is_file()} <= {
        ".json",
        ".safetensors",
    }  # nothing is pickled
    return folder.load(place)


def test_counted_words_answer_as_the_fitted_pipeline(counted: WordCounts, tmp_path: Path) -> None:
    given, numbers = texts(120, counted.labels)
    new, _ = texts(30, counted.labels, seed=1)
    again = kept(counted, tmp_path / "kept")
    answers = [
        make_pipeline(
            TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=WORD),
            LogisticRegression(C=strength, max_iter=linear.STEPS),
        )
        .fit(given, numbers)
        .predict_proba(new)
        for strength in linear.STRENGTHS
    ]
    found = again.probabilities(new)
    assert min(np.abs(found - answer).max() for answer in answers) < 1e-4
    assert_near(found, counted.probabilities(new))
    assert again.probabilities([]).shape == (0, counted.labels)


def test_pairs_are_counted_and_embedded_by_their_sides(tmp_path: Path) -> None:
    first, numbers = texts(120)
    given = [(text, other) for text, other in zip(first, reversed(first), strict=True)]
    counted = words.fit(given, numbers, 2)
    again = kept(counted, tmp_path / "words")
    assert_near(again.probabilities(given), counted.probabilities(given))
    alone = words.fit(first, numbers, 2)
    assert counted.terms == 2 * alone.terms and counted.vectors(given).shape == (120, 2 * len(alone.terms))
    tokenizer = train(first, 200)
    table = np.random.default_rng(0).normal(size=(len(tokenizer), 8)).astype(np.float16).astype(np.float32)
    static = Static(table, tokenizer, Linear(np.ones((32, 1), np.float32), np.zeros(1, np.float32)))
    u, v = (static.vectors([pair[side] for pair in given]) for side in (0, 1))
    np.testing.assert_array_equal(static.vectors(given), np.concatenate([u, v, abs(u - v), u * v], axis=1))


def test_texts_without_known_words_get_an_answer(counted: WordCounts) -> None:
    p = counted.probabilities(["", "!?", "überhaupt nichts Bekanntes"])
    np.testing.assert_allclose(p.sum(axis=1), 1)


def test_texts_without_words_are_refused() -> None:
    with pytest.raises(InputError, match="hold no words"):
        words.fit(["!", "?"] * 5, np.arange(10) % 2, 2)


def test_texts_that_share_no_word_are_told_from_texts_without_words() -> None:
    with pytest.raises(InputError, match="have no word that two of them share"):
        words.fit([f"only{n}" for n in range(1200)], np.arange(1200) % 2, 2)


def test_a_rare_label_is_found_when_labels_count_alike() -> None:
    rng = np.random.default_rng(0)
    numbers = (np.arange(400) % 20 == 0).astype(int)
    vectors = np.hstack([numbers[:, None] + rng.normal(0, 0.8, (400, 1)), rng.normal(0, 1, (400, 3))])
    plain, fair = (
        linear.fit(vectors, numbers, 2, balanced).probabilities(vectors).argmax(axis=1) for balanced in (False, True)
    )
    assert fair[numbers == 1].mean() > plain[numbers == 1].mean()


def test_a_label_without_training_rows_is_never_given() -> None:
    vectors, numbers = np.eye(4)[[0, 1, 3, 0, 1, 3] * 3], np.array([0, 1, 3, 0, 1, 3] * 3)
    for given, labels in ((numbers, 4), (np.where(numbers == 3, 1, numbers), 3), (np.zeros(18, int), 2)):
        p = linear.fit(csr_matrix(vectors), given, labels).probabilities(vectors)
        assert p.shape == (18, labels) and (p.argmax(axis=1) == given).all()
        assert p[:, [n for n in range(labels) if n not in given]].max(initial=0) < np.exp(NEVER / 2)


def test_static_vectors_are_means_of_word_pieces(tmp_path: Path) -> None:
    given, _ = texts(60)
    tokenizer = train(given, 200)
    table = np.random.default_rng(0).normal(size=(len(tokenizer), 8)).astype(np.float16).astype(np.float32)
    static = Static(table, tokenizer, Linear(np.ones((8, 1), np.float32), np.zeros(1, np.float32)))
    pieces = tokenizer(given[0], add_special_tokens=False)["input_ids"]
    mean = table[pieces].mean(axis=0)
    assert_near(static.vectors([given[0], ""])[0], mean / np.linalg.norm(mean))
    assert not static.vectors([given[0], ""])[1].any()
    np.testing.assert_allclose(
        kept(static, tmp_path / "kept").probabilities(given), static.probabilities(given), atol=1e-6
    )


def test_a_cascade_asks_the_second_only_where_the_first_is_unsure(counted: WordCounts, tmp_path: Path) -> None:
    new, _ = texts(40, counted.labels, seed=2)
    sure = counted.probabilities(new).max(axis=1)
    threshold = float(np.median(sure))
    second = Majority(np.eye(counted.labels)[0].tolist())
    p = kept(Cascade(counted, second, threshold), tmp_path / "kept").probabilities(new)
    np.testing.assert_allclose(p[sure < threshold], second.probabilities(new)[sure < threshold])
    assert_near(p[sure >= threshold], counted.probabilities(new)[sure >= threshold])
    assert 0 < (sure < threshold).sum() < len(new)


@pytest.mark.parametrize("broken", ["no file", "no JSON", "another kind", "no weights"])
def test_a_damaged_folder_is_one_sentence(broken: str, counted: WordCounts, tmp_path: Path) -> None:
    kept(counted, tmp_path / "kept")
    file = tmp_path / "kept" / store.CLASSIFIER
    match broken:
        case "no file":
            file.unlink()
        case "no JSON":
            file.write_text("{")
        case "another kind":
            file.write_text(json.dumps({"kind": "oracle"}))
        case "no weights":
            (tmp_path / "kept" / "linear.safetensors").write_bytes(b"\0" * 20)
    with pytest.raises(InputError, match="cannot be read"):
        folder.load(tmp_path / "kept")
