"""Pairs of texts: one row of tokens in two segments, from a file or the Hub to a model's answer."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from in_process import rtx
from transformers import pipeline

from rtx.baselines.counting_words import baseline
from rtxlib.data.batching import Tokens, collate, pack
from rtxlib.data.datasets import data_spec, read_hub
from rtxlib.data.prepare import prepare
from rtxlib.data.tokenization import encode, train, truncate
from rtxlib.errors import InputError

WORDS = ["the", "film", "was", "a", "quiet", "unhurried", "triumph", "nobody", "who", "waited", "regretted", "an", "hour"]


@pytest.fixture(scope="module")
def tokenizer():
    return train([" ".join(WORDS)] * 3, 120)


@pytest.fixture(scope="module")
def pairs() -> list[tuple[str, str]]:
    rng = np.random.default_rng(0)
    sizes = [(1, 1), (2, 9), (9, 2), (6, 6), (7, 6), (6, 7), (1, 12), (12, 1), (12, 12), (5, 11)]
    return [tuple(" ".join(rng.choice(WORDS, n)) for n in size) for size in sizes]


@pytest.mark.parametrize("max_length", [8, 9, 12, 13, 40])
def test_a_pair_is_encoded_and_cut_as_transformers_does(tokenizer, pairs, max_length: int) -> None:
    ids, offsets = encode(pairs, tokenizer, max_length)
    uncut = encode(pairs, tokenizer, None)
    assert all(map(np.array_equal, truncate(*uncut, max_length, tokenizer.sep_token_id), (ids, offsets)))
    tokens = Tokens(ids, offsets, np.zeros(len(pairs), np.int64), tokenizer.sep_token_id)
    batch, row_of_all = collate(tokens, np.arange(len(pairs)), tokenizer.pad_token_id), pack(tokens, np.arange(len(pairs)))
    real = batch["attention_mask"].bool()
    for name in ("input_ids", "token_type_ids"):
        assert torch.equal(row_of_all[name][0], batch[name][real])
    for row, (first, second) in enumerate(pairs):
        theirs = tokenizer(first, second, truncation="longest_first", max_length=max_length, return_token_type_ids=True)
        assert tokens.row(row).tolist() == theirs["input_ids"]
        types = batch["token_type_ids"][row].tolist()
        assert types[: len(theirs["input_ids"])] == theirs["token_type_ids"] and not any(types[len(theirs["input_ids"]) :])


def test_a_separator_spelt_out_in_a_text_does_not_divide_it(tokenizer) -> None:
    ids, _ = encode([("the [SEP] film", "a film")], tokenizer, None)
    assert (ids == tokenizer.sep_token_id).sum() == 2


def test_counting_words_knows_in_which_text_a_word_stands() -> None:
    texts = [("good", "bad"), ("bad", "good")] * 20
    labels = np.array([0, 1] * 20)
    assert baseline(texts, labels, texts, labels, texts, labels, ["first", "second"])["accuracy"] == 1


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one run on pairs, and the file it was trained on: the label says which of the two texts is fine."""
    home = tmp_path_factory.mktemp("home")
    rng = np.random.default_rng(0)
    rows = []
    for n in range(400):
        sides = [f"{rng.choice(['fine', 'lovely'])} film {n}", f"{rng.choice(['dull', 'stale'])} film {n + 1000}"]
        rows.append((*sides[:: 1 if n % 2 else -1], ("first", "second")[n % 2 == 0]))
    pd.DataFrame(rows, columns=["one", "two", "label"]).to_csv(home / "pairs.csv", index=False)
    columns = ("--text-column", "one", "--text-pair-column", "two")
    command = ("train", "--model", "standard-1x64", "--data", home / "pairs.csv", *columns)
    done = rtx(*command, "--recipe", "small", "--recipe-set", "learning_rate=0.003", "--json", home=home)
    assert done.returncode == 0, done.stderr
    (home / "run.json").write_text(done.stdout.splitlines()[-1])
    return home


@pytest.fixture(scope="module")
def trained(home: Path) -> dict:
    return json.loads((home / "run.json").read_text())


def test_which_text_says_what_is_learned(trained: dict) -> None:
    """Both texts have the same words in either order, so only a model that tells the segments apart can be right."""
    assert trained["accuracy"] > 0.95, trained["accuracy"]


def test_a_table_and_two_arguments_are_labelled(home: Path, trained: dict) -> None:
    columns = ("--text-column", "one", "--text-pair-column", "two")
    done = rtx("predict", trained["key"], home / "pairs.csv", *columns, "--out", home / "out.csv", home=home)
    assert done.returncode == 0, done.stderr
    written = pd.read_csv(home / "out.csv")
    assert list(written) == ["one", "two", "label", "predicted", "p_first", "p_second"]
    assert (written["predicted"] == written["label"]).mean() > 0.95
    first, second = written.loc[0, ["one", "two"]]
    done = rtx("predict", trained["key"], first, second, "--json", home=home)
    answer = json.loads(done.stdout)
    assert (answer["text"], answer["text_pair"], answer["label"]) == (first, second, written.loc[0, "predicted"])
    assert answer["probabilities"]["first"] == pytest.approx(written.loc[0, "p_first"], abs=1e-4)
    classify = pipeline("text-classification", trained["run"], top_k=None)
    theirs = {found["label"]: found["score"] for found in classify({"text": first, "text_pair": second})}
    assert theirs == pytest.approx(answer["probabilities"], abs=1e-4)
    assert '"text_pair"' in (Path(trained["run"]) / "README.md").read_text()


def test_pairs_that_were_trained_on_are_known(home: Path, trained: dict) -> None:
    columns = ("--text-column", "one", "--text-pair-column", "two")
    done = rtx("evaluate", trained["key"], home / "pairs.csv", *columns, "--json", home=home)
    scores = json.loads(done.stdout)
    assert scores["in_training"] == 320 and scores["n"] == 40, scores
    table = pd.read_csv(home / "pairs.csv")
    table["one"], table["two"] = table["two"], table["one"]  # the same texts, but other pairs
    table.to_csv(home / "turned.csv", index=False)
    done = rtx("evaluate", trained["key"], home / "turned.csv", *columns, "--json", home=home)
    assert json.loads(done.stdout)["in_training"] == 0


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("one text",), "give a first and a second text"),
        (("{home}/pairs.csv",), "no column 'text'"),
        (("{home}/pairs.csv", "--text-column", "one"), "no column 'text_pair' (--text-pair-column)"),
        (("{home}/pairs.txt",), "Pairs of texts are read from a table"),
    ],
)
def test_what_is_no_pair_is_refused(home: Path, trained: dict, arguments: tuple[str, ...], words: str) -> None:
    (home / "pairs.txt").write_text("a line\n")
    done = rtx("predict", trained["key"], *(argument.format(home=home) for argument in arguments), home=home)
    assert done.returncode == 2 and words in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_inference_pairs_of_the_hub_keep_premises_on_one_side(hub: str, prepared_cache: Path) -> None:
    data = prepare(data_spec("snli"), prepared_cache, progress=False)
    assert data.label_names == ["contradiction", "entailment", "neutral"] and len(data.splits["test"]) == 9824
    premises = {split: set(data.rows(split)["text"]) for split in data.splits}
    assert not premises["train"] & premises["validation"] and not premises["train"] & premises["test"]
    assert 0.03 < len(data.splits["validation"]) / len(data.splits["train"]) < 0.07


def test_acceptability_is_read_from_its_configuration(hub: str, prepared_cache: Path) -> None:
    data = prepare(data_spec("cola"), prepared_cache, progress=False)
    assert data.label_names == ["acceptable", "unacceptable"] and len(data.splits["test"]) == 1043
    leaks = data.audit[(data.audit["check"] == "leak") & (data.audit["left"] == "train")]
    assert not leaks["rows"].any()


def test_mixed_inference_pairs_are_tested_on_the_published_pairs_and_share_no_premise_with_them(
    hub: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RTX_HOME", str(tmp_path))
    spec = data_spec("inference_mix", max_length=64)
    with pytest.raises(InputError, match=r"needs the file .*inference_mix\.parquet"):
        prepare(spec, tmp_path / "prepared")
    known = read_hub("snli", None, 0).part("test").iloc[0]
    rng = np.random.default_rng(0)
    premises = [" ".join(rng.choice(WORDS, 8)) for _ in range(60)]
    pairs = pd.DataFrame({"premise": premises, "hypothesis": "a film", "label": ["entailment", "neutral", "contradiction"] * 20})
    leak = {"premise": known["text"], "hypothesis": "a film", "label": "neutral"}
    (tmp_path / "data").mkdir()
    pd.concat([pairs, pd.DataFrame([leak])]).to_parquet(tmp_path / "data" / "inference_mix.parquet")
    data = prepare(spec, tmp_path / "prepared")
    rows = {name: data.rows(name) for name in ("train", "validation", "test")}
    assert rows["test"]["domain"].value_counts().to_dict() == {"snli": 9824, "multi_nli": 9815}
    assert len(rows["train"]) + len(rows["validation"]) == 60  # without the pair of a test premise
    assert data.label_names == ["entailment", "neutral", "contradiction"]
