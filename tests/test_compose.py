"""Tasks composed of real phrases: their labels are what they say, and counting words does not find them."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from in_process import rtx

from rtx.baselines.counting_words import baseline
from rtxlib.data.compose import EASED, ITEMS, compose, phrase_pool
from rtxlib.data.datasets import data_spec
from rtxlib.data.prepare import prepare
from rtxlib.errors import InputError

WORDS = ["the", "a", "plot", "cast", "film", "ending", "score", "humour", "acting", "idea", "scenes", "dialogue", "story", "pace"]


@pytest.fixture(scope="module")
def pool() -> pd.DataFrame:
    """Phrases of 600 made sentences; each sentence is a text, too."""
    rng = np.random.default_rng(0)
    rows = []
    for n in range(600):
        label = ("negative", "positive")[n % 2]
        phrase = f"{('dull', 'fine')[n % 2]} {rng.choice(WORDS)} number{n}"
        rows += [(phrase, label), (f"{phrase} and {' '.join(rng.choice(WORDS, 6))}", label)]
    rows += [("shared by many", "positive")] + [(f"shared by many in sentence{n} of all", "positive") for n in range(40)]
    rows += [("torn apart here", "positive"), ("torn apart here !", "negative")]
    return phrase_pool(*zip(*rows, strict=True), seed=0)


def test_no_phrase_is_in_sentences_of_two_splits(pool: pd.DataFrame) -> None:
    assert set(pool["split"]) == {"train", "validation", "test"} and len(pool) == 600
    assert not pool["text"].str.contains("shared|torn").any()


def test_the_label_of_a_pair_is_whether_its_sentiments_agree(pool: pd.DataFrame) -> None:
    table = compose("same", pool, 1000, 0, seed=1)
    eased = table["text_pair"].isin(["negative", "positive"])
    share = eased.groupby(table["split"]).mean()
    assert share["train"] == pytest.approx(EASED, abs=0.08) and share["validation"] == share["test"] == 0
    agree = table["text"].str.startswith("fine") == table["text_pair"].str.match("fine|positive")
    assert (agree == (table["label"] == "same")).all()
    whole = table[~eased]
    assert (whole["text"].str.extract(r"number(\d+)")[0] != whole["text_pair"].str.extract(r"number(\d+)")[0]).all()


def followed(row: dict) -> tuple[list[str], str]:
    """The words that tell the sentiments of a pointer text, and the one that its pointers lead to."""
    items = re.findall(r"(start )?(\d+) : (fine|dull) [a-z]+ number\d+ → (\d+)", row["text"])
    word = {number: word for _, number, word, _ in items}
    to = {number: number_after for _, number, _, number_after in items}
    (at,) = (number for start, number, _, _ in items if start)
    seen, here = set(), at
    while here not in seen:  # one cycle through all
        seen.add(here)
        here = to[here]
    assert len(seen) == len(items) == row["text"].count("→")
    assert row["text_pair"].split() == ["start", *["next"] * row["depth"]]
    for _ in range(row["depth"]):
        at = to[at]
    return list(word.values()), word[at]


@pytest.mark.parametrize("items", [4, ITEMS])
def test_the_label_of_a_pointer_text_is_found_by_following_it(pool: pd.DataFrame, items: int) -> None:
    table = compose("pointer", pool, 900, 8, 1, items)
    assert table["depth"].value_counts().to_dict() == dict.fromkeys(range(9), 100)
    sizes = []
    for row in table.to_dict("records"):
        words, word = followed(row)
        assert {"fine": "positive", "dull": "negative"}[word] == row["label"]
        assert abs(words.count("fine") - len(words) / 2) <= 0.5
        if row["split"] == "train":
            sizes.append(len(words))
        else:
            assert len(words) == items
    assert set(sizes) == set(range(1, items + 1)) and sizes.count(1) / len(sizes) == pytest.approx(EASED, abs=0.08)


@pytest.mark.parametrize("task", ["same", "pointer"])
def test_counting_words_stays_at_chance(pool: pd.DataFrame, task: str) -> None:
    table = compose(task, pool, 5000, 2, seed=2)
    labels = pd.factorize(table["label"], sort=True)[0]
    parts = []
    for split in ("train", "test", "validation"):
        here = (table["split"] == split).to_numpy()
        parts += [list(zip(table["text"][here], table["text_pair"][here], strict=True)), labels[here]]
    accuracy = baseline(*parts, ["a", "b"])["accuracy"]
    assert abs(accuracy - 0.5) < 4 * np.sqrt(0.25 / 500), accuracy


def test_too_many_steps_and_too_few_phrases_are_refused(pool: pd.DataFrame) -> None:
    with pytest.raises(InputError, match="0 to 8 steps"):
        compose("pointer", pool, 100, 9, seed=0)
    with pytest.raises(InputError, match="even"):
        compose("pointer", pool, 100, 2, 0, 5)
    with pytest.raises(InputError, match="too few short phrases"):
        compose("same", pool[:60], 100, 0, seed=0)


def test_composed_data_are_prepared_from_the_hub(hub: str, prepared_cache) -> None:
    data = prepare(data_spec("composed", task="same", rows=400), prepared_cache, progress=False)
    assert [len(data.splits[split]) for split in ("train", "validation", "test")] == [320, 40, 40]
    phrases = {split: {side for pair in data.texts(split) for side in pair} for split in data.splits}
    assert not phrases["train"] & phrases["test"] and {"depth", "sentence"} <= set(data.rows("test"))


def test_rtx_data_compose_writes_the_same_rows_again(hub: str, tmp_path) -> None:
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    for out in (first, second):
        done = rtx("data", "compose", "--task", "pointer", "--rows", 200, "--out", out)
        assert done.returncode == 0, done.stderr
    assert first.read_bytes() == second.read_bytes()
    assert list(pd.read_csv(first)) == ["text", "text_pair", "label", "depth", "sentence", "split"]
    for arguments, words in (
        (("--task", "pinter", "--out", first), "Did you mean 'pointer'"),
        (("--task", "same", "--out", first), "exists already"),
        (("--task", "pointer", "--steps", 9, "--out", tmp_path / "c.csv"), "0 to 8"),
        (("--task", "pointer", "--items", 5, "--out", tmp_path / "c.csv"), "even"),
    ):
        done = rtx("data", "compose", *arguments)
        assert done.returncode == 2 and words in done.stderr and done.stderr.count("\n") == 1, done.stderr
