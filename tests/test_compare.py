"""`rtx compare`: columns, splits, oddities, the rule, bad input, and the whole command from a file to a model that predicts."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from types import SimpleNamespace

import nbformat
import numpy as np
import pandas as pd
import pytest
import torch
from in_process import rtx
from near import assert_near
from safetensors.numpy import load_file
from sklearn.metrics import f1_score
from transformers import PreTrainedTokenizerFast

from rtx import archive, drift, use
from rtx.classifiers import linear, words
from rtx.classifiers.encoders import Frozen, Static
from rtx.classifiers.folder import Classifier
from rtx.classifiers.linear import Linear
from rtx.classifiers.network import Network
from rtx.classifiers.simple import Cascade, Majority
from rtx.export import classifiers as export_classifiers
from rtx.export import held_out
from rtx.export import opened as export_opened
from rtxlib import checksums
from rtxlib.data import tokenization
from rtxlib.errors import InputError
from rtxlib.models import preset
from rtxlib.models.encoder import Encoder
from rtxlib.runs import store, trained
from rtxlib.training.device import training_threads
from rtxlib.training.recipe import recipe
from rtxstudy import checkpoints
from rtxstudy.commands import compare as command
from rtxstudy.questions.your_texts import (
    beside,
    busy,
    candidates,
    choice,
    columns,
    further,
    hand_over,
    label_next,
    last_training,
    model_sentences,
    near_duplicates,
    networks,
    plans,
    prior,
    race,
    reading,
    splitting,
    text_facts,
    text_sentences,
    training_time,
)  # fmt: skip
from rtxstudy.questions.your_texts import rows as compare_rows
from rtxstudy.questions.your_texts.answer import Answer
from rtxstudy.questions.your_texts.candidates import (
    CASCADE,
    FINE_TUNED,
    FROZEN,
    MAJORITY,
    NAMED,
    STATIC,
    TUNED,
    WORDS,
    Candidate,
    Plan,
)
from rtxstudy.questions.your_texts.choice import Joined, Limits
from rtxstudy.questions.your_texts.clock import Clock, OutOfTime
from rtxstudy.questions.your_texts.comparison import Comparison, Options
from rtxstudy.questions.your_texts.finished_candidates import Entry
from rtxstudy.questions.your_texts.rows import MOST_ROWS, Columns
from rtxstudy.questions.your_texts.texts import Texts, open_texts
from rtxstudy.report import notebooks

NOTEBOOK = Path(__file__).resolve().parents[1] / "notebooks" / "10_your_texts.ipynb"
GOOD, BAD = ("fine", "lovely", "moving"), ("dull", "stale", "clumsy")
FILLER = [
    "film",
    "plot",
    "cast",
    "end",
    "start",
    "scene",
    "song",
    "hero",
    "light",
    "sound",
    "joke",
    "street",
    "house",
    "night",
    "morning",
    "letter",
    "train",
    "river",
]


def told(rows: int, good: float = 0.6, seed: int = 0) -> pd.DataFrame:
    """Texts that are all different; one word of eight tells the label."""
    rng = np.random.default_rng(seed)
    labels = np.where(rng.random(rows) < good, "good", "bad")
    made = [" ".join([rng.choice(GOOD if label == "good" else BAD), *rng.choice(FILLER, 7)]) for label in labels]
    return pd.DataFrame({"text": made, "label": labels})


def pairs(rows: int, seed: int = 0) -> pd.DataFrame:
    """Pairs of texts of the same words; the label says which of the two is good, so neither text alone tells it."""
    rng = np.random.default_rng(seed)
    made = []
    for n in range(rows):
        good, bad = (" ".join([rng.choice(words), *rng.choice(FILLER, 5)]) for words in (GOOD, BAD))
        made.append((good, bad, "first") if n % 2 else (bad, good, "second"))
    return pd.DataFrame(made, columns=["one", "two", "better"])


@pytest.fixture
def csv(tmp_path: Path):
    def write(table: pd.DataFrame, name: str = "mine.csv") -> Path:
        table.to_csv(tmp_path / name, index=False)
        return tmp_path / name

    return write


def opened(csv, table: pd.DataFrame, **more: object) -> Texts:
    return open_texts(csv(table), **more)


# ---------------------------------------- columns


@pytest.mark.parametrize(
    ("table", "found"),
    [
        ({"id": range(60), "review": ["a b c d"] * 30 + ["e f g"] * 30, "stars": [1, 2, 3] * 20}, ("review", "stars")),
        ({"x": ["two words", "three words more"] * 30, "y": ["n", "p"] * 30}, ("x", "y")),
        (
            {
                "Title": [f"so so {n}" for n in range(60)],
                "Text": ["a much longer text here"] * 59 + ["b c"],
                "k": ["1", "2"] * 30,
            },
            ("Text", "k"),
        ),
    ],
    ids=["by name", "alone", "the longer one"],
)
def test_columns_are_guessed_and_said(table: dict, found: tuple[str, str]) -> None:
    frame = pd.DataFrame(table).astype(str)
    text, label, said = columns.choose(frame, "mine.csv", None, None)
    assert (text, label) == found and "--text-column" in said[0] and "--label-column" in said[1]


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"a": ["x y z"] * 60, "b": ["1", "2"] * 30, "c": ["u", "v"] * 30}, "could each hold the labels; name one"),
        ({"a": ["1", "2"] * 30, "b": ["u", "v"] * 30}, "No column of mine.csv looks like texts"),
        ({"text": [f"a b {n}" for n in range(60)], "n": range(60)}, "No column of mine.csv looks like labels"),
    ],
)
def test_what_cannot_be_guessed_is_refused(table: dict, says: str) -> None:
    frame = pd.DataFrame(table).astype(str)
    frame.loc[0, frame.columns[0]] += " w"
    with pytest.raises(InputError, match=says):
        columns.choose(frame, "mine.csv", None, None)


# ---------------------------------------- near-duplicates and splits


def test_texts_that_are_nearly_the_same_are_found() -> None:
    base = "the quick brown fox jumps over the lazy dog while the old cat sleeps on the warm stone wall near our small house"
    others = [f"{base} number {n}" for n in range(3)]
    others += [f"{' '.join(np.random.default_rng(n).permutation(FILLER))} and more" for n in range(5)]
    group = near_duplicates.groups(others)
    assert len(set(group[:3])) == 1 and not set(group[:3]) & set(group[3:])
    assert near_duplicates.near_pairs([]).shape == (0, 2)


@pytest.mark.parametrize("rows", [120, 700, 2400])
def test_splits_keep_groups_whole_and_labels_in_proportion(rows: int) -> None:
    rng = np.random.default_rng(0)
    group, numbers = rng.integers(rows // 2, size=rows), (rng.random(rows) < 0.3).astype(int)
    where = splitting.split(group, numbers)
    parts = [set(group[where == name]) for name in ("train", "validation", "test")]
    assert not parts[0] & parts[1] and not parts[1] & parts[2] and not parts[0] & parts[2]
    assert ((where == "validation").any()) == (rows >= 700)
    for name in ("validation", "test"):
        held = where == name
        if held.any():
            assert (
                abs(held.mean() - (0.2 if rows < 2000 else 0.1)) < 0.05
                and abs(numbers[held].mean() - numbers.mean()) < 0.06
            )
    fold = splitting.folds(group, numbers)
    assert all(len(set(fold[group == one])) == 1 for one in np.unique(group)) and len(set(fold)) == 5


def test_authors_stay_on_one_side_and_given_splits_are_kept(csv) -> None:
    table = told(700).assign(
        author=lambda t: [f"a{n % 35}" for n in range(len(t))], part=["Train", "dev", "test", "train"] * 175
    )
    found = opened(csv, table, group_column="author")
    author = table["author"].to_numpy()[found.table["line"] - 2]
    assert pd.Series(found.table["split"].to_numpy()).groupby(author).nunique().max() == 1
    given = opened(csv, table, split_column="part")
    names = given.table["line"].map(lambda line: splitting.NAMES[table["part"][line - 2].lower()])
    assert (names == given.table["split"]).all()
    assert found.table["alike"].nunique() > 600  # texts of one author are not called near-duplicates of each other
    sizes = pd.DataFrame({"tokens": 10, "words": 8, "unknown": 0}, index=found.table.index)
    assert "near" not in set(text_facts.findings(found, sizes, 256)["kind"])
    with pytest.raises(InputError, match=r"names the splits 'somewhere'"):
        opened(csv, table.assign(part="somewhere"), split_column="part")


def test_rows_of_a_test_file_are_the_test_split_and_their_copies_leave_training(csv, tmp_path: Path) -> None:
    table, test = told(600), told(60, seed=5)
    test.to_csv(tmp_path / "test.csv", index=False)
    found = opened(csv, pd.concat([table, test.head(3)]), test=tmp_path / "test.csv")
    assert found.table["split"].eq("test").sum() == 60 and "3 training or validation rows were left out" in " ".join(
        found.said
    )
    rare = told(2400, good=0.03, seed=6)
    rare.to_csv(tmp_path / "test.csv", index=False)
    tested = opened(csv, table, test=tmp_path / "test.csv")
    assert tested.table["label"].value_counts(normalize=True).min() < 0.5 / 2 and not tested.unbalanced  # test rows do not count
    test.assign(label="ugly").to_csv(tmp_path / "test.csv", index=False)
    with pytest.raises(InputError, match="60 rows with labels that no training row has: 'ugly'"):
        opened(csv, table, test=tmp_path / "test.csv")


def test_a_large_test_file_shrinks_neither_validation_nor_training(csv, tmp_path: Path, monkeypatch) -> None:
    told(6000, seed=5).to_csv(tmp_path / "test.csv", index=False)
    counts = opened(csv, told(700), test=tmp_path / "test.csv").table["split"].value_counts()
    assert counts["validation"] >= 100
    monkeypatch.setattr(compare_rows, "MOST_ROWS", 600)
    monkeypatch.setattr(compare_rows, "MOST_TEST", 300)
    found = opened(csv, told(700), test=tmp_path / "test.csv")
    counts = found.table["split"].value_counts()
    assert counts["test"] == 300 and 550 < counts.sum() - 300 <= 600 and "of the 6,000 test rows" in " ".join(found.said)


def test_a_rare_label_leaves_the_test_file_too(csv, tmp_path: Path) -> None:
    table = pd.concat([told(300), told(3, seed=9).assign(label="odd")])
    pd.concat([told(60, seed=5), told(4, seed=6).assign(label="odd")]).to_csv(tmp_path / "test.csv", index=False)
    found = opened(csv, table, test=tmp_path / "test.csv")
    assert found.label_names == ["bad", "good"] and "4 rows of test.csv have a label that was left out" in " ".join(found.said)
    given = pd.concat([table.assign(part="train"), told(60, seed=5).assign(part="test")])
    given = pd.concat([given, told(20, seed=6).assign(label="odd", part="test")])
    said = " ".join(opened(csv, given, split_column="part").said)
    assert "'odd' has fewer than 5 training and validation rows." in said and "So are 20 test rows." in said


@pytest.mark.parametrize(("authors", "judged_by"), [(4, None), (8, None), (12, "cross"), (120, "validation")])
def test_few_groups_are_cross_validated_or_refused(authors: int, judged_by: str | None, csv) -> None:
    """An interval over groups needs a few of them."""
    table = told(1000).assign(author=lambda t: [f"a{n % authors}" for n in range(len(t))])
    if judged_by is None:
        with pytest.raises(InputError, match="groups of texts that stay together are too few"):
            opened(csv, table, group_column="author")
        return
    found = opened(csv, table, group_column="author")
    assert found.cross_validated == (judged_by == "cross")
    p = np.eye(2)[found.numbers(found.judged)]
    p[::7] = p[::7, ::-1]
    single = dataclasses.replace(found, table=found.table.assign(group=range(len(found.table))))
    wide, narrow = (choice.scores(of, p, of.judged) for of in (found, single))
    assert wide["score"] == narrow["score"] and wide["low"] < narrow["high"] < 1


def test_doubtful_labels_and_columns_are_said(csv) -> None:
    rows = told(400)
    rows.loc[:9, "label"] = "Good"
    assert "'Good' (10 rows)" in " ".join(opened(csv, rows).said)
    ages = rows.assign(label=[str(18 + n % 40) for n in range(400)])
    assert "is a quantity, such as an age or a price" in " ".join(opened(csv, ages).said)
    without_names = told(300).rename(columns={"label": "good"})
    assert "its first row was taken" in " ".join(opened(csv, without_names, label_column="good").said)
    half = rows.assign(label=[str(n % 10 / 2) for n in range(400)])
    assert opened(csv, half).ordered.tolist() == [n / 2 for n in range(10)]


# ---------------------------------------- what is odd


def test_a_frequent_word_gives_no_frequent_label_away(csv) -> None:
    """A word in nearly every text finds a label that nearly every text has."""
    common = told(600, good=0.9).assign(text=lambda t: "and " + t["text"])
    assert text_facts._by_word(opened(csv, common)) == []


def test_what_is_odd_about_texts_is_found_and_said(csv) -> None:
    table = told(400).assign(key=[f"k{n}" for n in range(400)])
    table.loc[table["label"] == "bad", "text"] += " forwarded"
    table.loc[0, "text"] = table.loc[1, "text"] = "<b>the</b> same text twice Ã¤h <script>alert(1)</script>"
    table.loc[0, "label"], table.loc[1, "label"] = "good", "bad"
    table["label"] = table["label"].replace({"bad": "bad|no"})
    found = opened(csv, table, text_column="text", label_column="label")
    sizes = text_facts.lengths(found, tokenization.train(found.texts(found.rows("train")), 300))
    table = text_facts.findings(found, sizes, 8)
    kinds = set(table["kind"])
    assert {"repeated", "two labels", "word", "id", "garbled", "markup", "cut"} <= kinds
    assert table.set_index("kind").loc["word", "what"].startswith("forwarded|bad|no|")
    said = text_sentences.oddities(table)
    assert "of the label bad|no and" in said.replace("\\", "")
    assert said.count("\n- ") + 1 == len(table) and "<script" not in said and "&lt;" in said


def test_a_label_that_the_length_gives_away_is_named(csv) -> None:
    table = told(400)
    table.loc[table["label"] == "bad", "text"] += " word" * 30
    found = opened(csv, table)
    assert next(row[0] for row in text_facts._by_length(found)) == "length"
    assert text_facts._by_length(opened(csv, told(400))) == []
    rare = told(400).assign(label=np.where(np.arange(400) % 20 == 0, "bad", "good"))
    assert text_facts._by_length(opened(csv, rare)) == []  # a label that nearly every text has is found without any signal


def test_near_duplicates_are_found_sign_by_sign_too() -> None:
    signs = "".join(chr(0x4E00 + n) for n in range(60))
    assert near_duplicates.groups([signs, signs[:30] + "人" + signs[31:], signs[::-1]]).tolist() in ([0, 0, 1], [1, 1, 0])


# ---------------------------------------- the rule


def texts_of(numbers: np.ndarray, labels: int = 2) -> Texts:
    """Texts with a judged row (validation) and a test row of each number."""
    n = len(numbers)
    split = np.repeat(["train", "validation", "test"], n)
    table = pd.DataFrame(
        {
            "text": "a",
            "raw": "a",
            "label": np.tile(numbers, 3),
            "group": range(3 * n),
            "split": split,
            "fold": -1,
            "line": 2,
        }
    )
    return Texts("mine.csv", Columns("text", "label"), [f"l{n}" for n in range(labels)], table)


def entry(numbers: np.ndarray, wrong: np.ndarray, labels: int = 2) -> SimpleNamespace:
    found = np.where(wrong, (numbers + 1) % labels, numbers)
    return SimpleNamespace(judged=np.eye(labels)[found] * 0.8 + 0.1, test=np.eye(labels)[found] * 0.8 + 0.1)


def judged(
    errors: dict[str, float], n: int, limits: Limits = Limits(), mb=None, seed: int = 0, favourite: str = ""  # noqa: B008
) -> choice.Choice:
    rng = np.random.default_rng(seed)
    numbers, order = np.arange(n) % 2, rng.permutation(n)
    entries = {name: entry(numbers, np.isin(np.arange(n), order[: int(share * n)])) for name, share in errors.items()}
    entries[MAJORITY] = SimpleNamespace(judged=np.tile([0.6, 0.4], (n, 1)), test=np.tile([0.6, 0.4], (n, 1)))
    costs = pd.DataFrame({"rows": 100, "seconds": 1.0, "ms": 1.0, "mb": 1.0}, index=[*entries])
    costs.loc[list(errors), "mb"] = mb or range(10, 10 + len(errors))
    costs.loc[list(errors), "ms"] = np.arange(1.0, 1 + len(errors))
    return choice.compare(texts_of(numbers), entries, costs, limits, favourite)


def test_the_smallest_model_within_the_margin_is_taken() -> None:
    found = judged({"small": 0.055, "large": 0.05}, 4000)
    assert found.taken == "small" and found.best == "large" and found.why == "smallest"
    assert judged({"small": 0.08, "large": 0.05}, 4000).taken == "large"  # three points below
    assert judged({"small": 0.08, "large": 0.05}, 4000, Limits(margin=0.05)).taken == "small"


def test_answers_that_agree_on_all_of_a_few_texts_prove_little() -> None:
    numbers = np.arange(40) % 2
    found = texts_of(numbers)
    assert choice.difference(found, numbers, numbers, found.judged) == (0.0, -3 / 40, 3 / 40)
    grouped = found.table.assign(group=found.table["group"] // 2)
    for table in (found.table, grouped):  # with groups of two a bootstrap, or a variance of zero, would say 1 to 1
        scores = choice.scores(dataclasses.replace(found, table=table), np.eye(2)[numbers], found.judged)
        groups = table["group"].iloc[found.judged].nunique()
        assert scores["score"] == scores["high"] == 1 and 1 - 4 / groups < scores["low"] < 1 - 3 / groups + 0.02


def test_models_that_are_wrong_on_the_same_few_texts_are_not_shown_to_be_equal() -> None:
    """Of three labels two models may give different wrong ones; every difference is zero then, and so is its variance."""
    numbers, wrong = np.arange(60) % 3, np.arange(60) < 12
    a = np.where(wrong, (numbers + 1) % 3, numbers)
    b = np.where(np.arange(60) == 5, (numbers + 2) % 3, a)
    found = texts_of(numbers, labels=3)
    assert (a != b).sum() == 1 and choice.difference(found, a, b, found.judged) == (0.0, -3 / 60, 3 / 60)
    grouped = dataclasses.replace(found, table=found.table.assign(group=found.table["group"] // 2))
    c, d = a.copy(), a.copy()
    c[11] = numbers[11]  # of its group c is right on the second text, and d on the first one
    d[10] = numbers[10]
    assert choice.difference(grouped, c, d, found.judged) == (0.0, -3 / 30, 3 / 30)
    gain, low, high = choice.difference(grouped, c, a, found.judged)
    assert gain == pytest.approx(1 / 60) and low < gain < high


def test_a_smaller_model_with_the_same_labels_is_taken() -> None:
    found = judged({"small": 0.05, "large": 0.05}, 40, favourite="large")
    assert (found.taken, found.best, found.why) == ("small", "large", "smallest")
    assert found.table.set_index("model").loc["small", "behind_low"] == -3 / 40  # so it is not shown to be near
    assert judged({"small": 0.075, "large": 0.05}, 40, favourite="large").taken == "large"


def test_where_nothing_learned_the_favourite_counts_as_the_best() -> None:
    """Of 16 texts nothing is shown. What did best on public files stands before what is one text ahead."""
    numbers = np.arange(16) % 2
    entries = {"words": entry(numbers, np.arange(16) < 7), "MiniLM": entry(numbers, np.arange(16) < 8)}
    entries[MAJORITY] = SimpleNamespace(judged=np.tile([0.6, 0.4], (16, 1)), test=np.tile([0.6, 0.4], (16, 1)))
    costs = pd.DataFrame({"rows": 9, "seconds": 1.0, "ms": 1.0, "mb": [1.0, 9.0, 0.0]}, index=[*entries])
    for favourite, best in (("MiniLM", "MiniLM"), ("", "words")):
        found = choice.compare(texts_of(numbers), entries, costs, Limits(), favourite)
        assert (found.taken, found.best, found.why) == (None, best, "nothing learned")


def test_the_favourite_is_best_unless_another_leads_by_more_than_a_standard_error() -> None:
    """Of 80 texts a lead of four points is chance; of 4,000 it is not. A favourite that was not trained changes nothing."""
    for many, best in ((80, "MiniLM"), (4000, "words")):
        rng, numbers = np.random.default_rng(0), np.arange(many) % 2
        order = rng.permutation(many)
        entries = {
            "words": entry(numbers, np.isin(np.arange(many), order[: int(0.15 * many)])),
            "MiniLM": entry(numbers, np.isin(np.arange(many), order[-int(0.1875 * many) :])),
        }
        costs = pd.DataFrame({"rows": 9, "seconds": 1.0, "ms": 1.0, "mb": [9.0, 1.0, 0.0]}, index=[*entries, MAJORITY])
        entries[MAJORITY] = SimpleNamespace(judged=np.tile([0.6, 0.4], (many, 1)), test=np.tile([0.6, 0.4], (many, 1)))
        found = choice.compare(texts_of(numbers), entries, costs, Limits(), "MiniLM")
        assert found.best == best and found.table["model"].iloc[0] == "words"
        for favourite in ("", "a loop"):
            assert choice.compare(texts_of(numbers), entries, costs, Limits(), favourite).best == "words"


def test_what_is_expected_of_a_model_is_its_difference_to_minilm_in_the_same_settings(monkeypatch) -> None:
    """The second file is easy for counting words; a model that was measured on the first alone is not taken for better there."""
    measured = pd.DataFrame(
        [("a", 100, 0.2, 0.21), ("b", 100, 0.0, np.nan)], columns=["data", "rows", FINE_TUNED, TUNED]
    ).melt(["data", "rows"], var_name="model", value_name="gain").dropna().assign(labels=2, tokens=20.0)
    monkeypatch.setattr(prior, "table", lambda: measured)
    found = prior.expected(100, 2, 20)
    assert found[FINE_TUNED] == pytest.approx(0.1) and found[TUNED] == pytest.approx(0.11)
    assert prior.expected(100_000, 2, 20) == found  # as the most rows that were measured
    assert prior.expected(100, 200, 20) == {}


def test_with_few_texts_nothing_is_settled_and_the_needed_texts_are_named() -> None:
    found = judged({"small": 0.06, "large": 0.05}, 200, Limits(margin=0.02))
    assert found.taken == "large" and found.why == "best"
    needed = found.table.set_index("model")["needed"]
    assert 100 < needed["small"] < 5000 and np.isnan(needed["large"])
    again = judged({"small": 0.06, "large": 0.05}, 200 + int(1.3 * needed["small"]), Limits(margin=0.02))
    assert again.taken == "small"


def test_limits_and_models_that_learned_nothing() -> None:
    assert judged({"small": 0.3, "large": 0.05}, 1000, Limits(max_ms=1.5)).taken == "small"
    assert judged({"small": 0.3, "large": 0.05}, 1000, Limits(max_mb=5)).why == "limits"
    nothing = judged({"small": 0.5, "large": 0.49}, 1000)
    assert nothing.taken is None and nothing.why == "nothing learned" and not nothing.table["learned"].any()


def test_macro_f1_is_that_of_scikit_learn_and_its_interval_holds_the_difference() -> None:
    rng = np.random.default_rng(0)
    numbers = (rng.random(600) < 0.1).astype(int)
    found = texts_of(numbers)
    assert found.unbalanced and found.ordered is None
    a, b = (np.where(rng.random(600) < share, 1 - numbers, numbers) for share in (0.05, 0.15))
    for one in (a, b):
        assert choice.macro_f1(numbers, one, 2)[0] == pytest.approx(f1_score(numbers, one, average="macro"))
    difference, low, high = choice.difference(found, a, b, found.judged)
    assert low < difference < high and low > 0
    scores = choice.scores(found, np.eye(2)[a], found.judged)
    assert scores["low"] < scores["score"] == scores["macro_f1"] < scores["high"]


def test_stars_are_judged_by_their_distance_too() -> None:
    numbers = np.arange(100) % 5
    found = texts_of(numbers, 5)
    found.label_names = [str(n) for n in range(1, 6)]
    scores = choice.scores(found, np.eye(5)[np.minimum(numbers + 1, 4)], found.judged)
    assert scores["mae"] == pytest.approx(0.8) and scores["accuracy"] == pytest.approx(0.2)


def test_a_cascade_is_not_chosen_for_a_chance_advantage() -> None:
    n = 300
    numbers = np.arange(n) % 2
    first, second = entry(numbers, np.arange(n) % 10 == 0), entry(numbers, np.arange(n) % 20 == 0)
    first.judged[np.arange(n) % 10 == 0] = first.judged[np.arange(n) % 10 == 0] * 0.3 + 0.35  # unsure where it is wrong
    found = texts_of(numbers)
    joined = choice.cascade(found, {WORDS: first, "MiniLM frozen": second})
    assert isinstance(joined, Joined) and joined.first == WORDS and 0.5 < joined.share < 1
    assert np.abs(first.judged.max(axis=1) - joined.threshold).min() > choice.APART / 2  # rounding moves no text over it
    first.judged[:] = [0.7, 0.3]  # it is equally sure of all texts
    assert choice.cascade(found, {WORDS: first, "MiniLM frozen": second}) is None
    first = entry(numbers, np.arange(n) % 10 == 0)
    first.judged[np.arange(n) % 10 == 0] = first.judged[np.arange(n) % 10 == 0] * 0.3 + 0.35
    entries = {WORDS: first, "MiniLM frozen": second, "cascade": joined, MAJORITY: entry(numbers, numbers == 1)}
    costs = pd.DataFrame(
        {"rows": 100, "seconds": 1, "ms": [1.0, 9.0, 2.0, 0.1], "mb": [1.0, 90.0, 91.0, 0.0]}, index=[*entries]
    )
    table = choice.compare(found, entries, costs, Limits()).table.set_index("model")
    assert table.loc["cascade", "learned"] and not table.loc["cascade", "fits"]
    assert choice.compare(found, entries, costs, Limits(max_ms=5)).taken in ("cascade", WORDS)


# ---------------------------------------- the race


@pytest.fixture
def no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        checkpoints, "out_of_reach", lambda name: f"{name} could be read neither from the Hub nor from its cache."
    )


@pytest.fixture
def one_network(monkeypatch: pytest.MonkeyPatch) -> Candidate:
    tiny = Candidate("standard-1x32", "is tiny", "network", model="standard-1x32")
    monkeypatch.setattr(race, "CANDIDATES", (*candidates.CANDIDATES[:2], tiny))
    monkeypatch.setitem(candidates.NAMED, tiny.name, tiny)
    monkeypatch.setattr(Candidate, "recipe", lambda self, plan, unbalanced=False: recipe("smoke", batch_rows=16))
    return tiny


def test_a_network_on_pairs_is_trained_once_and_then_found(
    csv, tmp_path: Path, no_hub: None, one_network: Candidate, monkeypatch
) -> None:
    found = opened(csv, pairs(760), text_column="one", text_pair_column="two")
    first = race.run(found, tmp_path / "kept", 5)
    assert set(first.entries) == {MAJORITY, WORDS, one_network.name} and first.ended == ""
    assert not any(name == WORDS for name in first.left_out)
    monkeypatch.setattr(networks, "train", lambda *_: pytest.fail("trained again"))
    again = race.run(found, tmp_path / "kept", 5)
    for name, was in first.entries.items():
        np.testing.assert_array_equal(was.judged, again.entries[name].judged)
    in_no_time = race.run(found, tmp_path / "kept", 0)  # to its turn this call does not come
    assert in_no_time.entries.keys() == first.entries.keys() and not in_no_time.not_tried
    network = again.entries[one_network.name]
    assert_near(network.open().probabilities(found.texts(found.rows("test"))), network.test)
    assert {WORDS, one_network.name} == set(first.curve["model"])
    assert first.score(first.entries[WORDS].test, found.rows("test")) > 0.9  # a word counts for the text it stands in


def test_a_pair_in_the_other_order_stays_on_its_side(csv) -> None:
    table = pairs(120)
    turned = table.rename(columns={"one": "two", "two": "one"})
    found = opened(csv, pd.concat([table, turned], ignore_index=True), text_column="one", text_pair_column="two").table
    group = found.sort_values("line")["group"].to_numpy()
    assert (group[:120] == group[120:]).all() and len(set(group)) > 100


def test_pairs_are_split_by_their_first_texts_and_handed_over(csv, tmp_path: Path) -> None:
    table = pairs(120)
    table["one"] = np.repeat(table["one"][::2].to_numpy(), 2)  # two second texts for each first one
    found = opened(csv, table, text_column="one", text_pair_column="two")
    first, groups = found.table.groupby("text"), found.table.groupby("group")
    assert first["split"].nunique().max() == 1 and groups["split"].nunique().max() == 1 and found.pairs
    assert "--text-pair-column" not in " ".join(found.said) and "stay on one side" in " ".join(found.said)
    alone = opened(csv, table)
    assert "'two' may hold texts too" in " ".join(alone.said) or "'one' may hold texts too" in " ".join(alone.said)
    rows = np.arange(len(found.table))
    counted = words.fit(found.texts(rows), found.numbers(rows), 2)
    row = {"rows": 9, "seconds": 1.0, "ms": 1.0, "mb": 1.0, "test_accuracy": 0.5, "test_macro_f1": 0.5}
    tested = counted.probabilities(found.texts(found.rows("test")))
    chosen = hand_over.Chosen(WORDS, counted, None, tested, row, 3, "counts words")
    made = hand_over.hand_over(found, chosen, tmp_path / "model", tmp_path / "held.parquet", "out/model")
    card = (made / store.CARD).read_text("utf-8")
    assert '"a first text" "a second text"' in card and "--text-column one --text-pair-column two" in card
    scored = use.evaluate(archive.find(tmp_path, str(made)), found.raw(rows), [found.label_names[n] for n in found.numbers(rows)])
    assert scored["in_training"] == len(found.rows("train")) and scored["accuracy_seen"] > 0.9
    telling = further.telling_words(found, counted).set_index("label")
    assert {*GOOD} < set(telling["second text"]["second"].split(", ")) and "first text" in telling
    assert {"first text", "second text"} <= set(further.mistakes(found, np.eye(2)[1 - found.numbers(rows)], rows).columns)
    sizes = text_facts.lengths(found, tokenization.train(found.whole(rows), 200))
    assert (sizes["words"] == 12).all() and "two labels" not in set(text_facts.findings(found, sizes, 256)["kind"])


def test_few_rows_are_cross_validated_by_networks_too(
    csv, tmp_path: Path, no_hub: None, one_network: Candidate
) -> None:
    done = race.run(opened(csv, told(90)), tmp_path / "kept", 5)
    found = done.entries[one_network.name]
    judged = done.texts.judged
    assert done.texts.cross_validated and len(found.judged) == len(judged) == found.rows
    np.testing.assert_allclose(found.judged.sum(axis=1), 1, atol=1e-5)
    own = found.open().probabilities(done.texts.texts(judged))  # of the model that has seen them
    assert np.abs(own - found.judged).max() > 1e-3
    for made in (tmp_path / "kept/runs").glob("*/spec.json"):  # nothing ends on rows that are scored, or learned from
        used = json.loads(made.read_text())["recipe"]
        assert used["patience"] is None and used["keep"] == "last"
    shutil.rmtree(found.run)
    assert done.find(one_network, found.plan) is None  # a record without its weights is damaged


def test_a_stop_leaves_what_is_finished(csv, tmp_path: Path, no_hub: None, one_network: Candidate, monkeypatch) -> None:
    found = opened(csv, told(560))
    stopped = race.run(
        found, tmp_path / "kept", 5, lambda line: (tmp_path / "kept" / "stop").touch() if "epoch" in line else None
    )
    assert stopped.ended == "asked" and WORDS in stopped.entries and stopped.not_tried == [one_network.name]
    (tmp_path / "kept" / "stop").touch()  # asked for before the race begins
    assert race.run(found, tmp_path / "kept", 5).ended == "asked" and not (tmp_path / "kept" / "stop").exists()
    with monkeypatch.context() as only_here:
        only_here.setattr(networks, "train", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert race.run(found, tmp_path / "kept", 5).ended == "asked"
    # asked for while nothing but the other process works
    monkeypatch.setattr(race.Turns, "take_finished", lambda self: self.race.clock.stop_file.touch())
    assert race.run(found, tmp_path / "kept", 5).ended == "asked" and not (tmp_path / "kept" / "stop").exists()


def test_a_training_that_went_on_is_timed_as_a_whole(csv, tmp_path: Path, no_hub: None, monkeypatch) -> None:
    """The rest of it alone would make the machine many times too fast."""
    turns, learned = race.Turns(race.run(opened(csv, told(560)), tmp_path / "kept", 0), SimpleNamespace()), []
    epochs = SCRATCH.recipe(Plan(100)).epochs
    monkeypatch.setattr(networks, "train", lambda *_: SimpleNamespace(seconds=50.0, epochs=epochs))
    monkeypatch.setattr(turns, "training", lambda *_: None)
    monkeypatch.setattr(turns.race.clock, "seconds", 1000.0)
    monkeypatch.setattr(turns.estimate, "learn", lambda candidate, plan, spent: learned.append(spent))
    turns.learn(SCRATCH, None, Plan(100))  # found, not trained
    monkeypatch.setattr(race, "START_SECONDS", -race.SHORTEST - 1)
    turns.learn(SCRATCH, None, Plan(100))
    monkeypatch.setattr(networks, "train", lambda *_: SimpleNamespace(seconds=50.0, epochs=epochs / 2))
    turns.learn(SCRATCH, None, Plan(100))  # it stopped on a plateau
    assert learned == [50.0, 100.0]


def test_what_was_fitted_on_a_part_of_the_rows_is_found_by_the_next_call(csv, tmp_path: Path, no_hub: None) -> None:
    raced = race.run(opened(csv, told(560)), tmp_path / "kept", 0)
    other, plan = beside.Beside(raced), Plan(len(raced.train) // 2)
    raced.entries[STATIC] = dataclasses.replace(raced.entries[WORDS], name=STATIC, plan=plan)
    for name in (STATIC, WORDS, "no such"):
        other.note(name)
    assert raced.begun(NAMED[STATIC]) == [plan] and raced.begun(NAMED[WORDS]) == []


class Tokens:
    """An estimate for texts of so many tokens on a machine that reads so many a second; a text of more is cut."""

    def __init__(self, tokens: int = 300, speed: float = 3000.0) -> None:
        self.lengths, self.speed = np.full(10, tokens), speed

    def cut(self, max_length: int) -> float:
        return 1 - min(max_length, self.lengths[0]) / min(candidates.MAX_LENGTH, self.lengths[0])

    def seconds(self, candidate: Candidate, plan: Plan, trainings: int = 1) -> float:
        return trainings * plan.rows * plan.epochs * min(plan.max_length, self.lengths[0]) / self.speed


MINILM, SCRATCH = candidates.NAMED[FINE_TUNED], candidates.NAMED["standard-3x256"]


@pytest.mark.parametrize(
    ("trainings", "read"),
    [
        (1, [(6000, 256, 3), (6000, 256, 2), (6000, 256, 1), (4600, 256, 1), (3000, 256, 1), (1800, 256, 1)]),
        (6, [(6000, 256, 3), (6000, 256, 2), (6000, 256, 1), (6000, 192, 1), (6000, 128, 1)]),
    ],
)
def test_fewer_epochs_come_before_fewer_rows_and_in_cross_validation_before_shorter_texts(
    trainings: int, read: list[tuple[int, int, float]]
) -> None:
    """What a whole training becomes with less and less time."""
    whole = Tokens().seconds(MINILM, plans.whole(MINILM, 6000), trainings)
    shares = (1.0, 0.7, 0.35, 0.26, 0.17, 0.1)[: len(read)]
    chosen = [plans.choose(MINILM, 6000, share * whole, trainings, Tokens()) for share in shares]
    assert [(plan.rows, plan.max_length, plan.epochs) for plan in chosen] == read
    losses = [plans.loss(plan, MINILM, 6000, Tokens()) for plan in chosen]
    assert losses == sorted(losses) and losses[0] == 0
    for share, plan in zip(shares, chosen, strict=True):
        assert Tokens().seconds(MINILM, plan, trainings) <= share * whole


def test_a_shorter_training_is_told_in_words() -> None:
    assert plans.shortened(plans.whole(MINILM, 6000), MINILM, 6000) == ""
    told = plans.shortened(Plan(6000, 128, 1.0), MINILM, 6000)
    assert told == "the first 128 word pieces of a text and 1 of 3 epochs"


def test_few_rows_are_read_in_more_epochs_and_short_texts_are_not_cut() -> None:
    assert plans.whole(MINILM, 400).epochs == 12 and plans.whole(MINILM, 60).epochs == plans.MOST_EPOCHS
    assert {plan.max_length for plan in plans.on_all_rows(MINILM, 400, Tokens(50))} == {256}


def test_what_cannot_be_shortened_is_left_out() -> None:
    """Every fold is needed in cross-validation, and a network from scratch gains from every epoch."""
    assert plans.choose(MINILM, 400, 1.0, 6, Tokens()) is None
    assert plans.choose(SCRATCH, 6000, 1.0, 1, Tokens()) is None
    assert plans.choose(MINILM, 6000, 1.0, 1, Tokens()) is None  # not even the fewest rows fit


def test_a_training_that_has_begun_goes_on_though_the_time_was_measured_anew() -> None:
    begun = plans.choose(MINILM, 6000, 110, 1, Tokens())
    assert begun.rows < plans.choose(MINILM, 6000, 110, 1, Tokens(speed=3300.0)).rows < 6000
    for speed in (3300.0, 2700.0):
        assert plans.choose(MINILM, 6000, 110, 1, Tokens(speed=speed), [begun]) == begun
    assert plans.choose(MINILM, 6000, 1e6, 1, Tokens(), [begun]) == plans.whole(MINILM, 6000)  # a far better one fits


def test_a_network_takes_the_speed_of_another_of_its_origin_until_it_is_trained(csv, no_hub: None) -> None:
    known = race.Estimate(opened(csv, told(560)))
    plan, loop = plans.whole(SCRATCH, 5000), candidates.NAMED["recurrent-3x2x256"]
    before = {name: known.seconds(candidates.NAMED[name], plan) for name in (SCRATCH.name, loop.name)}
    known.learn(SCRATCH, plan, before[SCRATCH.name] / 4)
    assert known.seconds(SCRATCH, plan) < before[SCRATCH.name] / 3 and known.seconds(loop, plan) < before[loop.name] / 3
    assert FINE_TUNED not in known.speeds
    alone = known.seconds(loop, plan)
    known.learn(loop, plan, alone)
    known.learn(SCRATCH, plan, before[SCRATCH.name])
    assert known.seconds(loop, plan) == pytest.approx(alone)


def test_networks_from_scratch_are_left_out_where_public_files_give_them_no_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [candidate.name for candidate in candidates.CANDIDATES if candidate.kind in ("network", "tuned")]
    gains = {FINE_TUNED: (0.05, 0.10), TUNED: (0.08, 0.04), SCRATCH.name: (-0.2, 0.01)}  # at 100 rows and at 10,000
    measured = [
        {"data": "public", "rows": rows, "labels": 2, "tokens": 25.0, "model": model, "gain": gain[at]}
        for model, gain in gains.items()
        for at, rows in enumerate((100, 10_000))
    ]
    monkeypatch.setattr(prior, "NEAREST", 1)
    monkeypatch.setattr(prior, "table", lambda: pd.DataFrame(measured))
    few, why = prior.order(names, 100, 2, 25)
    assert SCRATCH.name in why and "--all" in why[SCRATCH.name] and few[0] == TUNED
    many, why = prior.order(names, 10_000, 2, 20)
    assert many[0] == FINE_TUNED and SCRATCH.name in why
    unknown, why = prior.order([*names, "another"], 100, 2, 25)
    assert unknown[-1] == "another" and "another" not in why
    scratch = [name for name in names if name in prior.FROM_SCRATCH]
    larger, _ = prior.order(names, 1_000_000, 2, 25)  # as the largest file
    assert larger == many
    far, why = prior.order(names, 10_000, 100, 25)  # nothing with about so many labels was measured
    assert far == [name for name in names if name not in scratch] and list(why) == scratch and "--all" in why[scratch[0]]
    assert prior.order(scratch, 10_000, 100, 25) == (scratch, {})  # without MiniLM they are what there is


def test_the_minutes_go_to_the_favourite_and_the_answer_says_what_more_would_bring(
    csv, tmp_path: Path, no_hub: None, one_network: Candidate, monkeypatch
) -> None:
    """A network that fits into 60 % of the minutes is trained; another is named with the minutes that it needs."""
    found = opened(csv, told(1200))
    monkeypatch.setattr(race.Estimate, "seconds", lambda self, candidate, plan, trainings=1: 130.0)
    short = race.run(found, tmp_path / "kept", 2)
    assert one_network.name not in short.entries and short.not_tried == [one_network.name]
    assert (short.outlook.model, short.outlook.minutes) == (one_network.name, 4)
    assert short.outlook.train_texts == len(short.train)
    assert "about 2 minutes" in short.left_out[one_network.name] and short.ended == "time"
    longer = race.run(found, tmp_path / "kept", short.outlook.minutes)
    assert one_network.name in longer.entries and longer.outlook is None and longer.ended == ""


def test_a_favourite_is_the_network_that_public_files_expect_most_of(
    csv, tmp_path: Path, no_hub: None, one_network: Candidate, monkeypatch
) -> None:
    """Below counting words it is preferred to nothing; with ``--all`` what is expected most still comes first."""
    found = opened(csv, told(560))
    for expected, favourite in ((0.02, one_network.name), (-0.01, "")):
        monkeypatch.setattr(prior, "expected", lambda *_, gain=expected: {one_network.name: gain, WORDS: 0.0, MAJORITY: -0.3})
        assert race.run(found, tmp_path / "kept", 5).favourite == favourite
    turned = []
    monkeypatch.setattr(race, "CANDIDATES", candidates.CANDIDATES)
    monkeypatch.setattr(race.Turns, "turn", lambda self, candidate, seconds: turned.append(candidate.name))
    gains = {"standard-2x128": -0.2, "standard-3x256": -0.01, "recurrent-3x2x256": 0.01}
    monkeypatch.setattr(prior, "expected", lambda *_: gains)
    race.run(found, tmp_path / "all", 5, every=True)
    assert turned == ["recurrent-3x2x256", "standard-3x256", "standard-2x128"]


class Slow(Tokens):
    """Texts of eight tokens on a machine that fine-tunes 2,400 of them for three epochs in five minutes."""

    def __init__(self) -> None:
        super().__init__(8, 2400 * 3 * 8 / 300)

    def tokens(self, max_length: int = 0) -> float:
        return 8.0

    def measure(self, *_: object) -> int:
        return 1


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Texts:
    """3,000 texts for the tests of turns, which use their number and their labels alone."""
    file = tmp_path_factory.mktemp("many") / "mine.csv"
    told(3000).to_csv(file, index=False)
    return open_texts(file)


@pytest.mark.parametrize(
    ("minutes", "within", "turns_of", "seconds"),
    [
        (10, 0.02, [FROZEN, FINE_TUNED, candidates.LOOP], 360),
        (10, 0.001, [FROZEN, FINE_TUNED, candidates.LOOP], 540),  # no other network fits into the rest
        (7, 0.02, [FINE_TUNED, candidates.LOOP, FROZEN], 378),  # two of three epochs fit into its share, all into this
        (1, 0.02, [FINE_TUNED, candidates.LOOP, FROZEN], 54),
    ],
)
def test_a_favourite_that_is_short_of_time_gets_all_of_it(
    many: Texts, tmp_path: Path, monkeypatch, minutes: int, within: float, turns_of: list[str], seconds: float
) -> None:
    """In ten minutes MiniLM is trained whole in its share, beside the embeddings. In one it is not, and they come last."""
    raced, given, done = race.Race(many, tmp_path, Clock(minutes, tmp_path / "stop")), {}, []
    raced.left_out = dict.fromkeys(candidates.FROM_SCRATCH, "")
    other = SimpleNamespace(
        cores=1, threads=1, borrowed=0, collect=lambda: None, slowed=lambda _: 0, fit=lambda name, seconds: done.append(name)
    )
    turns = race.Turns(raced, other)
    turns.estimate = Slow()
    monkeypatch.setattr(raced, "train", raced.train[:2400])
    monkeypatch.setattr(prior, "order", lambda names, *_: (names, {}))
    monkeypatch.setattr(prior, "WITHIN", within)

    def turn(candidate: Candidate, most: float) -> Plan:
        done.append(candidate.name)
        return given.setdefault(candidate.name, most)

    monkeypatch.setattr(turns, "turn", turn)
    turns.networks(False)
    assert done == turns_of and given[FINE_TUNED] == pytest.approx(seconds, abs=2)


@pytest.mark.parametrize(
    ("epochs", "loop", "still"), [(3.0, 0.030, FINE_TUNED), (2.0, 0.030, FINE_TUNED), (1.0, 0.030, ""), (1.0, 0.020, FINE_TUNED)]
)
def test_a_favourite_that_was_trained_shorter_is_still_one_if_it_is_expected_to_win(
    many: Texts, tmp_path: Path, monkeypatch, epochs: float, loop: float, still: str
) -> None:
    """Two of three epochs are expected to lose 0.35 points, one 0.95; public files expect the loop 0.7 or 1.7 behind."""
    raced = race.Race(many, tmp_path, Clock(1, tmp_path / "stop"))
    turns = race.Turns(raced, beside.Beside(raced))
    turns.estimate, turns.favourite = Slow(), FINE_TUNED
    monkeypatch.setattr(prior, "expected", lambda *_: {FINE_TUNED: 0.037, candidates.LOOP: loop, FROZEN: 0.1})
    for name, count in ((FINE_TUNED, epochs), (candidates.LOOP, 3.0)):
        raced.entries[name] = SimpleNamespace(plan=Plan(len(raced.train), epochs=count))
    assert turns.still_favourite() == still


def test_beside_a_finished_favourite_no_network_learns_from_a_few_rows(many: Texts, tmp_path: Path, monkeypatch) -> None:
    raced = race.Race(many, tmp_path, Clock(1, tmp_path / "stop"))
    turns = race.Turns(raced, beside.Beside(raced))
    turns.estimate, turns.favourite, loop = Slow(), FINE_TUNED, candidates.NAMED[candidates.LOOP]
    monkeypatch.setattr(raced, "train", raced.train[:2400])
    assert turns.fitting(loop, 50.0).rows < 2400
    raced.entries[FINE_TUNED] = None
    assert turns.fitting(loop, 50.0) is None and turns.fitting(NAMED[FINE_TUNED], 50.0).rows < 2400
    assert turns.fitting(loop, 150.0).rows == 2400  # one epoch over all rows


@pytest.mark.parametrize(
    ("rows", "slope", "source"),
    [(100, 0.02, "The learning curve suggests"), (100, None, "Public files suggest"), (None, 0.02, "Public files suggest")],
)
def test_the_gain_of_more_minutes_names_its_source(
    csv, tmp_path: Path, no_hub: None, monkeypatch, rows: int | None, slope: float | None, source: str
) -> None:
    """Fewer rows are judged by the learning curve; fewer epochs by public files, whatever the curve says."""
    raced = race.Race(opened(csv, told(560)), tmp_path, Clock(10, tmp_path / "stop"))
    turns = race.Turns(raced, beside.Beside(raced))
    turns.favourite, whole = FINE_TUNED, len(raced.train)
    raced.needed[FINE_TUNED] = 60.0
    right = np.eye(2)[raced.texts.numbers(raced.texts.judged)]
    plan = Plan(rows or whole, epochs=1.0)
    raced.entries[FINE_TUNED] = SimpleNamespace(plan=plan, judged=1 - right)
    monkeypatch.setattr(raced, "gain_of_a_doubling", lambda: slope)
    more = turns.outlook()
    curve = slope - plans.HALF_THE_ROWS if rows and slope else 0.0  # of the next doubling, in place of the public files
    assert more.source == source and 0 < more.gain == pytest.approx(turns.loss(MINILM, plan) + curve)
    raced.entries[WORDS] = SimpleNamespace(judged=right)
    assert turns.outlook().gain == 0  # it would stay far behind what is there
    assert more.minutes == 11  # never what was given already, and was too little


def test_another_process_fits_what_this_one_would(csv, tmp_path: Path, no_hub: None, one_network: Candidate, monkeypatch) -> None:
    """Counting words beside a network: the same answers, the same learning curve, and all threads are back at the end."""
    found = opened(csv, told(560))
    here = race.run(found, tmp_path / "here", 5)
    monkeypatch.setattr(beside, "WORTH", 0.0)
    with training_threads(2):
        there = race.run(found, tmp_path / "there", 5)
        assert torch.get_num_threads() == 2
    assert here.entries.keys() == there.entries.keys() and not there.left_out
    np.testing.assert_array_equal(here.entries[WORDS].judged, there.entries[WORDS].judged)
    counted = [raced.curve.query("model == @WORDS").reset_index(drop=True) for raced in (here, there)]
    pd.testing.assert_frame_equal(*counted)


def test_a_process_that_was_killed_costs_its_own_candidate_alone(csv, tmp_path: Path, no_hub: None, monkeypatch) -> None:
    raced, pools = race.run(opened(csv, told(560)), tmp_path / "kept", 0), []

    def no_weights(_: object) -> None:
        raise InputError("No weights.")

    def submit(work: Callable, *given: object) -> Future:
        ended: Future = Future()
        ended.set_exception(BrokenProcessPool()) if len(pools) == 1 else ended.set_result(work(*given))
        return ended

    monkeypatch.setattr(beside, "workers", lambda *_: pools.append(SimpleNamespace(submit=submit)) or pools[-1])
    monkeypatch.setitem(beside.FIT, STATIC, no_weights)
    with training_threads(2):
        other = beside.Beside(raced)
        for name in (WORDS, STATIC):
            other.fit(name, beside.WORTH)
            assert torch.get_num_threads() == 1
        other.finish()
        assert torch.get_num_threads() == 2
    assert len(pools) == 2 and "memory ran out" in raced.left_out[WORDS] and raced.left_out[STATIC] == "No weights."


def test_networks_from_scratch_get_their_turn_where_minilm_is_below_counting_words(
    csv, tmp_path: Path, no_hub: None, one_network: Candidate
) -> None:
    found = opened(csv, told(560))
    raced = race.run(found, tmp_path / "kept", 0)
    raced.left_out = {one_network.name: "No chance."}
    turns = race.Turns(raced, SimpleNamespace())
    wrong = 1 - raced.entries[WORDS].judged
    for judged, again in ((wrong, [one_network.name]), (raced.entries[WORDS].judged, [])):
        raced.entries[FINE_TUNED] = dataclasses.replace(raced.entries[WORDS], judged=judged)
        raced.left_out, raced.late = {one_network.name: "No chance."}, set()
        assert turns.refuted([]) == again
    raced.entries[FINE_TUNED] = dataclasses.replace(raced.entries[WORDS], judged=wrong)
    raced.left_out = {one_network.name: "The training loss diverged."}
    assert turns.refuted([]) == []  # it had its turn
    turns.revived, few = set(), Plan(len(raced.train) // 20)  # counting words would be no better on so few rows
    raced.entries[FINE_TUNED] = dataclasses.replace(raced.entries[FINE_TUNED], plan=few)
    assert turns.refuted([]) == []


def test_networks_that_are_too_large_to_be_taken_are_not_trained(
    csv, tmp_path: Path, no_hub: None, one_network: Candidate
) -> None:
    found = opened(csv, told(560))
    assert "--max-mb" in race.run(found, tmp_path / "kept", 5, max_mb=0.01).left_out[one_network.name]
    assert one_network.name in race.run(found, tmp_path / "kept", 5, every=True, max_mb=0.01).entries


def test_what_another_process_does_not_finish_is_said(csv, tmp_path: Path, no_hub: None, monkeypatch) -> None:
    raced, ended = race.run(opened(csv, told(560)), tmp_path / "kept", 0), []
    pool = SimpleNamespace(submit=lambda *_: Future())
    monkeypatch.setattr(beside, "workers", lambda *_: pool)
    monkeypatch.setattr(beside, "end_workers", ended.append)
    monkeypatch.setattr(beside, "PATIENCE", 0.05)
    with training_threads(2):
        other = beside.Beside(raced)
        other.fit(WORDS, 100.0)
        assert 49 < other.borrowed <= 50 == other.slowed(100.0)  # half of the two threads
        other.finish()
    assert ended == [pool] and WORDS in raced.late and "not finished" in raced.left_out[WORDS]


def test_no_minutes_still_compare_the_models_that_need_none(csv, tmp_path: Path, no_hub: None) -> None:
    done = race.run(opened(csv, told(560)), tmp_path / "kept", 0)
    assert set(done.entries) == {MAJORITY, WORDS}
    assert "neither from the Hub" in done.left_out[STATIC] and "minute" in done.left_out["standard-2x128"]


def test_sixteen_rows_are_enough_where_the_test_rows_are_given(csv, tmp_path: Path, no_hub: None) -> None:
    found = opened(csv, told(16), test=csv(told(200, seed=5), "test.csv"))
    done = race.run(found, tmp_path / "kept", 0)
    assert set(done.entries) == {MAJORITY, WORDS} and len(found.rows("test")) > 100 > 17 > len(found.rows("train"))


def test_rows_by_which_models_are_chosen_were_not_seen(csv, tmp_path: Path, no_hub: None) -> None:
    """In cross-validation a text that only one label ever has is no help: its fold has not seen it."""
    table = told(200)
    table["text"] = [f"only{n} {text.partition(' ')[2]}" for n, text in enumerate(table["text"])]
    done = race.run(opened(csv, table), tmp_path / "kept", 0)
    assert done.texts.cross_validated and abs(done.score(done.entries[WORDS].judged, done.texts.judged) - 0.5) < 0.2


def test_the_chosen_model_learns_from_the_validation_texts_too(csv, tmp_path: Path, no_hub: None, monkeypatch) -> None:
    """Their words are known then. The scores by which it was chosen stay, and these texts judge nothing more."""
    table, lines = told(760), []
    table["text"] += [f" only{n}" for n in range(len(table))]
    found = opened(csv, table)
    raced = race.run(found, tmp_path / "kept", 0)
    chosen, points = raced.entries[WORDS], len(raced.points)
    assert last_training.train(raced, WORDS) is None  # there is no time
    raced.clock = Clock(5, tmp_path / "kept" / "stop", lines.append)
    again = last_training.train(raced, WORDS)
    assert again.rows == len(raced.train) + len(found.judged) > chosen.rows
    np.testing.assert_array_equal(again.judged, chosen.judged)

    def known(entry: Entry) -> set[str]:
        return {term for term in entry.open().vocabularies[0].terms if re.fullmatch(r"only\d+", term)}

    assert known(again) - known(chosen) == {text.split()[-1] for text in found.texts(found.judged)}
    assert not any("held-out" in line for line in lines) and len(raced.points) == points
    with monkeypatch.context() as failed:
        failed.setattr(raced, "score", lambda p, _: float(p is chosen.judged))
        assert last_training.train(raced, WORDS) is None and "less than before" in lines[-1]
    raced.entries[WORDS] = again
    assert last_training.train(raced, WORDS) is None  # it has been done
    assert last_training.train(raced, MAJORITY) is None
    few = race.run(opened(csv, told(200)), tmp_path / "few", 0)
    few.clock = raced.clock
    assert last_training.train(few, WORDS) is None  # cross-validated: it has learned from all of them


def test_fine_tuned_minilm_learns_from_the_validation_texts_too(csv, tmp_path: Path, hub: None, monkeypatch) -> None:
    found = opened(csv, told(760))
    lines: list[str] = []
    raced = race.Race(found, tmp_path / "kept", Clock(30, tmp_path / "kept" / "stop", lines.append))
    turns = race.Turns(raced, beside.Beside(raced))
    turns.train_by(NAMED[FINE_TUNED], Plan(len(raced.train), epochs=1.0, threads=1))
    chosen, asked = raced.entries[FINE_TUNED], raced.clock.stop_file
    for error, said in ((KeyboardInterrupt(), False), (InputError("The training loss is nan."), True)):
        with monkeypatch.context() as failing:
            failing.setattr(networks, "train", lambda *_, error=error: (_ for _ in ()).throw(error))
            assert last_training.train(raced, FINE_TUNED) is None and not asked.exists()
        assert any("stays as it was chosen" in line and "loss is nan" in line for line in lines) == said
    again = last_training.train(raced, FINE_TUNED)
    assert again.plan == Plan(len(found.table) - len(found.rows("test")), epochs=1.0, threads=1) and again.run != chosen.run
    np.testing.assert_array_equal(again.judged, chosen.judged)
    assert np.abs(again.test - chosen.test).max() > 1e-4
    assert_near(again.open().probabilities(found.texts(found.rows("test"))), again.test)
    monkeypatch.setattr(networks, "train", lambda *_: pytest.fail("trained again"))
    raced.clock = Clock(0, asked)  # it is found without any time
    assert last_training.train(raced, FINE_TUNED).run == again.run


def test_the_answer_is_of_the_model_that_learned_from_the_validation_texts(
    csv, tmp_path: Path, no_hub: None, one_network: Candidate
) -> None:
    found = Comparison.open(Options(str(csv(told(760))), minutes=5, out=str(tmp_path / "out")))
    raced = found.race()
    chosen, texts = raced.entries[WORDS], found.texts
    row = found.choose().table.set_index("model").loc[WORDS]
    labelled = len(texts.rows("train")) + len(texts.judged)
    assert found.chosen.taken == WORDS and row["rows"] == labelled > chosen.rows
    assert row["score"] == raced.score(chosen.judged, texts.judged)
    folder = found.hand_over()
    test = texts.rows("test")
    answers = use.probabilities(archive.find(Path(), str(folder)), texts.raw(test))
    assert_near(answers, raced.entries[WORDS].test)
    assert row["test_accuracy"] == (answers.argmax(axis=1) == texts.numbers(test)).mean()
    answer = found.answer()
    assert answer.train_rows == labelled == answer.n_labelled
    assert any(f"trained once more, also on the {len(texts.judged)} texts" in part for part in answer.verdict)
    assert found.choose().table.set_index("model").loc[WORDS, "seconds"] == row["seconds"]  # it is done once


# ---------------------------------------- what is handed over


def encoder_of(texts: Texts) -> tuple[Encoder, PreTrainedTokenizerFast]:
    """A tiny encoder of sentence embeddings with the vocabulary of some texts."""
    tokenizer = tokenization.train(texts.whole(texts.rows("train")), 300)
    sizes = {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64, "num_hidden_layers": 1}
    torch.manual_seed(0)
    return Encoder(preset("minilm-l3", vocab_size=len(tokenizer), max_seq_length=32, **sizes)).eval(), tokenizer


def classifier_of(kind: str, texts: Texts, embedder: tuple[Encoder, PreTrainedTokenizerFast] | None = None) -> Classifier:
    """A fitted classifier. embedder: what ``encoder_of`` made of the same texts, if it is there already."""
    rows, labels = texts.rows("train"), len(texts.label_names)
    if kind == "majority":
        return Majority([0.4, 0.6])
    if kind == "words":
        return words.fit(texts.texts(rows), texts.numbers(rows), labels)
    if kind == "cascade":
        return Cascade(classifier_of("words", texts), classifier_of("frozen", texts, embedder), 0.9)
    encoder, tokenizer = embedder or encoder_of(texts)
    nothing = Linear(np.zeros((1, 1), np.float32), np.zeros(1, np.float32))
    table = encoder.embeddings.token.weight.detach().numpy().astype(np.float16).astype(np.float32)
    made = Static(table, tokenizer, nothing) if kind == "static" else Frozen(encoder, tokenizer, nothing, 32)
    return made.with_linear(linear.fit(made.vectors(texts.texts(rows)), texts.numbers(rows), labels))


def network_of(texts: Texts, folder: Path, candidate: Candidate = NAMED["standard-2x128"]) -> tuple[Classifier, Path]:
    """A network that is trained for one epoch, and the folder of its run."""
    rows = {split: texts.rows(split) for split in ("train", "test")}
    rows["validation"] = rows["train"][:50] if texts.cross_validated else texts.rows("validation")
    whole = networks.training(candidate, Plan(len(rows["train"]), threads=1), texts, rows, ("test",), folder)
    spec = dataclasses.replace(whole.spec, recipe=recipe(whole.spec.recipe.name, epochs=1))
    learnt = networks.train(dataclasses.replace(whole, spec=spec), print)
    return Network.load(learnt.run, **learnt.settings), learnt.run


@pytest.fixture(scope="module", params=[False, True], ids=["texts", "pairs"])
def raced_on(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """600 texts or pairs of texts, with an encoder and a trained network of theirs: what all kinds of winners are made of."""
    folder, paired = tmp_path_factory.mktemp("winners"), request.param
    (pairs(600) if paired else told(600)).to_csv(folder / "mine.csv", index=False)
    found = open_texts(folder / "mine.csv", **{"text_column": "one", "text_pair_column": "two"} if paired else {})
    return SimpleNamespace(texts=found, embedder=encoder_of(found), network=network_of(found, folder))


@pytest.mark.parametrize("kind", ["majority", "words", "static", "frozen", "network", "cascade", "cascade to a network"])
def test_every_kind_of_winner_is_exported_in_eight_bits(kind: str, raced_on: SimpleNamespace, tmp_path: Path) -> None:
    """The folder answers as the model does, in the command and in its own script."""
    found, (network, run) = raced_on.texts, raced_on.network
    if kind == "cascade to a network":
        made = Cascade(classifier_of("words", found), network, 0.9)
    else:
        made = network if kind == "network" else classifier_of(kind, found, raced_on.embedder)
    run = run if kind == "network" else None
    test = found.rows("test")
    p = made.probabilities(found.texts(test))
    row = {"rows": 9, "seconds": 1.0, "ms": 1.0, "mb": 1.0, "test_accuracy": 0.5, "test_macro_f1": 0.5}
    chosen = hand_over.Chosen("MiniLM frozen", made, run, p, row, 3, "counts words")
    model = hand_over.hand_over(found, chosen, tmp_path / "model", tmp_path / "held.parquet", "out/model")
    done = rtx("export", model, "--int8", "--out", tmp_path / "small", "--json")
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert record["other_labels"] <= 0.05 and record["difference"] <= 1e-4 and record["size"] <= record["size_float32"]
    given = found.raw(test[:6])
    answers = export_opened.find(str(tmp_path / "small")).probabilities(given)
    np.testing.assert_allclose(answers, p[:6], atol=0.05)
    script = [sys.executable, str(tmp_path / "small" / "run.py"), *(given[0] if found.pairs else given[:1])]
    alone = subprocess.run(script, capture_output=True, text=True, cwd=tmp_path)
    assert alone.stdout.split()[0] == found.label_names[answers[0].argmax()], alone.stderr
    if run is None:  # a classifier that is no network
        taught = rtx("train", "--model", "standard-1x32", "--data", "embedded", "--teacher", model)
        shown = rtx("pages", "--out", tmp_path / "pages", "--run", model)
        assert all(one.returncode == 2 and "no network" in one.stderr for one in (taught, shown)), (taught, shown)
    (tmp_path / "held.parquet").unlink()
    done = rtx("export", model, "--int8", "--out", tmp_path / "again")
    assert done.returncode == 2 and "with --texts" in done.stderr and done.stderr.count("\n") == 1


def test_a_winner_with_berts_layers_opens_in_transformers_alone(csv, tmp_path: Path, monkeypatch) -> None:
    found = opened(csv, told(600))
    made, run = network_of(found, tmp_path, Candidate("BERT", "is tiny", "network", model="bert-tiny"))
    test = found.rows("test")
    p = made.probabilities(found.texts(test))
    row = {"rows": 9, "seconds": 1.0, "ms": 1.0, "mb": 1.0, "test_accuracy": 0.5, "test_macro_f1": 0.5}
    chosen, written, write = hand_over.Chosen(FINE_TUNED, made, run, p, row, 3, "counts words"), [], hand_over.bert.write
    monkeypatch.setattr(hand_over.bert, "write", lambda model, *to: (written.append(model), write(model, *to)))
    model = hand_over.hand_over(found, chosen, tmp_path / "model", tmp_path / "held.parquet", "out/model")
    assert written[0] is not made.model  # which may be on a GPU, and answers the unlabelled texts after this
    opens = """
import json, sys
from transformers import pipeline
print(json.dumps(pipeline("text-classification", sys.argv[1])(json.loads(sys.argv[2]))))
"""
    given = [sys.executable, "-c", opens, str(model), json.dumps(found.texts(test[:8]))]
    alone = subprocess.run(given, capture_output=True, text=True, cwd=tmp_path, env=os.environ | {"HF_HUB_OFFLINE": "1"})
    answers = json.loads(alone.stdout.splitlines()[-1])
    assert [answer["label"] for answer in answers] == [found.label_names[best] for best in p[:8].argmax(axis=1)], alone.stderr
    np.testing.assert_allclose([answer["score"] for answer in answers], p[:8].max(axis=1), atol=0.02)  # ours is in 16 bits


@pytest.mark.parametrize("known", [[], [5], [1, 5, 2**63]])
def test_known_words_are_those_among_the_known(known: list[int]) -> None:
    hashes, known = np.array([0, 1, 5, 6, 2**63, 2**64 - 1], np.uint64), np.array(known, np.uint64)
    np.testing.assert_array_equal(drift._known(hashes, known), np.isin(hashes, known))


def test_texts_that_drift_are_told_from_those_that_do_not(csv, tmp_path: Path) -> None:
    found = opened(csv, told(1200))
    counted = classifier_of("words", found)
    p = counted.probabilities(found.texts(found.rows("test")))
    row = {"rows": 9, "seconds": 1.0, "ms": 1.0, "mb": 1.0, "test_accuracy": 0.5, "test_macro_f1": 0.5}
    chosen = hand_over.Chosen(WORDS, counted, None, p, row, 3, "counts words")
    model = hand_over.hand_over(found, chosen, tmp_path / "model", tmp_path / "held.parquet", "out")
    later = told(300, seed=7)
    changed = later.assign(text=["quite another story " * 3 + text.replace("film", "app") for text in later["text"]])
    longer = "they are longer (median 17 words, before 8)"
    for table, drifted, says in ((later, False, "No drift is shown"), (changed, True, longer)):
        done = rtx("evaluate", model, csv(table, "later.csv"), "--json")
        assert json.loads(done.stdout)["drift"]["drifted"] is drifted and says in done.stderr, done.stderr
    in_order = [f"{label} {'word ' * n}" for label, n in (("short", 1), ("long", 9)) for _ in range(drift.MOST_TEXTS)]
    drift.write(tmp_path, in_order, in_order, np.full((len(in_order), 2), 0.5))
    assert set(load_file(tmp_path / drift.FILE)["length"].tolist()) == {2, 10}  # of both ends of the file
    few = rtx("evaluate", model, csv(later.head(20), "later.csv"), "--json")
    assert "drift" not in json.loads(few.stdout) and "drifted" not in few.stderr


def test_the_texts_to_label_next_are_unsure_and_unlike(csv) -> None:
    """Half of the new texts are told by no word, in ten groups of one wording; of each group some are chosen."""
    found = opened(csv, told(600))
    new = told(300, seed=3)
    unsure = pd.DataFrame({"text": [f"{FILLER[n % 10]} " * 6 + f"number {n}" for n in range(200)], "label": ""})
    file = csv(pd.concat([new, unsure, told(600).head(5)]).assign(mine=range(505), note="=1+1"), "more.csv")
    given = label_next.unlabelled(found, file)
    assert len(given.cleaned) == 500  # those that are labelled already are left out
    out = file.with_name("further.csv")
    said = label_next.write(found, given, classifier_of("words", found), 1.0, out)
    chosen = pd.read_csv(out)
    assert len(chosen) == label_next.MOST and {"mine", "predicted", "probability"} <= set(chosen) and "further.csv" in said
    assert set(chosen["note"]) == {"'=1+1"}  # a spreadsheet computes nothing of it
    p, many = np.full((500, 2), [0.9, 0.1]), label_next.MOST // 10
    p[:200] = 0.5
    groups = np.eye(10)[np.arange(500) % 10]
    picked = label_next.choose(p, groups, many)
    assert (picked < 200).all() and set(picked % 10) == set(range(10)) and len(set(picked)) == many
    with pytest.raises(InputError, match="has a column 'predicted' of its own"):
        label_next.unlabelled(found, csv(new.assign(predicted="mine"), "theirs.csv"))
    with pytest.raises(InputError, match="is labelled already"):
        label_next.unlabelled(found, csv(told(600).head(5), "old.csv"))
    assert not label_next.vectors(["🙂", "🙁 !"]).any()  # texts without a word are alike


def test_a_list_that_was_labelled_in_place_is_kept_by_the_next_call(tmp_path: Path) -> None:
    listed, mark = tmp_path / "further.csv", tmp_path / "further.sha256"
    listed.write_text("text,label\n")
    mark.write_text(checksums.sha256(listed))
    assert label_next.put_away(listed, mark) == [] and not listed.exists()  # as it was written
    for number, label in ((2, "good"), (3, "bad")):
        listed.write_text(f"text,label\na film,{label}\n")
        (said,) = label_next.put_away(listed, mark)
        assert not listed.exists() and label in (tmp_path / f"further-{number}.csv").read_text()
        assert f"so it is kept as further-{number}.csv" in said
    assert label_next.put_away(listed, mark) == []


def test_unlabelled_texts_are_read_as_strictly_as_labelled_ones(csv, tmp_path: Path) -> None:
    found, file = opened(csv, told(600)), tmp_path / "more.jsonl"
    lines = ['{"text": "one new text"}', '{"text": null}', '{"other": 1}', r'{"text": "lone \ud800 surrogate"}']
    file.write_text("\n".join(lines), encoding="utf-8")
    given = label_next.unlabelled(found, file)
    assert given.cleaned["text"].tolist()[0] == "one new text" and len(given.cleaned) == 2
    label_next.write(found, given, classifier_of("words", found), 1.0, tmp_path / "further.csv")
    assert len(pd.read_csv(tmp_path / "further.csv")) == 2
    file.write_text('{"text": ["a", "list"]}\n', encoding="utf-8")
    with pytest.raises(InputError, match="Line 1 of more"):
        label_next.unlabelled(found, file)


def test_a_table_shows_lines_of_two_files() -> None:
    shown = Comparison.tabulate(None, pd.DataFrame({"line": [5, "3 of the test file"], "text": ["a\nb", "c"]})).to_html()
    assert ">5</td>" in shown and ">3 of the test file</td>" in shown and ">a b</td>" in shown


# ---------------------------------------- large files and bad input


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_a_file_that_is_too_large_is_drawn_from(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, file = told(3000), tmp_path / f"mine.{kind}"
    {
        "csv": lambda: table.to_csv(file, index=False),
        "jsonl": lambda: table.to_json(file, orient="records", lines=True),
        "parquet": lambda: table.to_parquet(file),
    }[kind]()
    monkeypatch.setattr(reading, "LARGEST", file.stat().st_size / 3)
    monkeypatch.setattr(reading, "PIECE", 500)
    drawn, said = reading.read(file)
    assert 800 < len(drawn) < 1200 and "read in pieces" in said and set(drawn["text"]) <= set(table["text"])
    offset = 2 if kind == "csv" else 1
    assert all(table["text"][line - offset] == text for line, text in drawn["text"].items())


SIXTY = told(60)
MANY = [f"a text of words number {n}" for n in range(400)]
HAN = "的一是不了人我在有他这为之大来以个中上们"
REFUSED = {  # name → table, options, what the sentence says
    "a quantity": (pd.DataFrame({"text": MANY, "price": np.arange(400) * 1.5}), {"label_column": "price"}, "is a quantity"),
    "names": (pd.DataFrame({"text": MANY, "who": MANY}), {"label_column": "who"}, "so they are no classes"),
    "too many labels": (
        pd.DataFrame({"text": np.repeat(MANY, 15), "c": [f"c{n % 1200}" for n in range(6000)]}),
        {"text_column": "text", "label_column": "c"},
        "at most 1,000 are compared",
    ),
    "one label": (SIXTY.assign(label="x"), {"label_column": "label"}, "at least two are needed"),
    "a rare label": (SIXTY.assign(label=["x"] * 57 + ["y"] * 3), {"label_column": "label"}, "Only one label has 5 rows"),
    "alike": (SIXTY.assign(text="the same text again"), {}, "are the same or nearly the same"),
    "empty": (SIXTY.assign(text=" "), {"text_column": "text"}, "are empty"),
    "no labels": (SIXTY.assign(label=""), {"label_column": "label"}, "All labels in the column 'label' of mine.csv are empty"),
    "few rows": (SIXTY.head(30), {}, "at least 40 are needed"),
    "texts twice": (pd.concat([SIXTY, SIXTY["text"]], axis=1), {}, "more than one column 'text'"),
    "labels twice": (pd.concat([SIXTY, SIXTY["label"]], axis=1), {"label_column": "label"}, "more than one column 'label'"),
    "no column": (SIXTY, {"text_column": "txt"}, "Did you mean 'text'"),
    "one for both": (SIXTY, {"text_column": "text", "label_column": "text"}, "name two columns"),
    "pairs of one column": (SIXTY, {"text_column": "text", "text_pair_column": "text"}, "both name 'text'"),
    "no test file": (SIXTY, {"test": "nowhere.csv"}, "There is no file"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_one_sentence(case: str, csv) -> None:
    table, options, says = REFUSED[case]
    with pytest.raises(InputError, match=says) as told_:
        opened(csv, table, **options)
    assert "\n" not in str(told_.value)


def test_a_column_that_nothing_reads_may_stand_twice(csv) -> None:
    """So may it in the file that the chosen model predicts: test_cli_texts.py."""
    table = pd.concat([SIXTY.assign(note="a"), pd.Series("b", index=SIXTY.index, name="note")], axis=1)
    assert list(table.columns).count("note") == 2
    assert len(opened(csv, table, text_column="text", label_column="label").table) == len(SIXTY)


def test_the_command_refuses_before_it_writes(csv, tmp_path: Path) -> None:
    refused = ((), "at least 40"), (("--margin", "-1"), "--margin"), (("--executor", "rya"), "Did you mean 'ray'")
    for options, says in refused:
        done = rtx("compare", csv(told(30)), *options, "--out", tmp_path / "out")
        assert done.returncode == 2 and says in done.stderr and "Traceback" not in done.stderr, done.stderr
        assert not (tmp_path / "out").exists()


def test_the_columns_of_a_file_that_is_sorted_by_its_labels_are_guessed() -> None:
    n = 2 * columns.LOOKED_AT
    table = pd.DataFrame({"review": [f"a film of number {k}" for k in range(n)], "mood": ["bad"] * (n - 900) + ["good"] * 900})
    assert columns.choose(table, "sorted.csv", None, None)[:2] == ("review", "mood")


def test_a_script_without_spaces_is_read_sign_by_sign(csv) -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(120) % 2
    texts = ["".join([*rng.choice([*HAN], 9), "好坏"[label]]) for label in labels]
    found = opened(csv, pd.DataFrame({"text": texts, "label": labels}))
    counted = words.fit(found.texts(found.rows("train")), found.numbers(found.rows("train")), 2)
    p = counted.probabilities(found.texts(found.rows("test")))
    assert (p.argmax(axis=1) == found.numbers(found.rows("test"))).all()
    assert set(found.words.tolist()) == {11}  # ten signs, and the one text between spaces
    sizes = pd.DataFrame({"tokens": found.words + 2, "words": found.words, "unknown": 0})
    said = text_sentences.oddities(text_facts.findings(found, sizes, 256))
    assert "**Another script.** 120 texts are written without spaces between words" in said


def test_the_folder_of_another_file_is_not_written_to(csv, tmp_path: Path) -> None:
    """The same file with more rows may be compared again in its folder."""
    out, table = tmp_path / "out", told(300)
    Comparison.open(Options(str(csv(table)), out=str(out)))
    Comparison.open(Options(str(csv(pd.concat([table, told(50, seed=3)]))), out=str(out)))
    before = (out / "comparison.json").read_text()
    with pytest.raises(InputError, match="holds the comparison of another file"):
        Comparison.open(Options(str(csv(told(200, seed=4), "other.csv")), out=str(out)))
    assert (out / "comparison.json").read_text() == before


def test_a_folder_of_somebody_else_is_not_written_to(csv, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "letters.txt").write_text("mine")
    done = rtx("compare", csv(told(60)), "--out", tmp_path / "out")
    assert done.returncode == 2 and "no comparison wrote it" in done.stderr
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["letters.txt"]


def test_labels_of_a_few_rows_are_left_out_and_long_texts_are_cut(csv) -> None:
    table = pd.concat([told(300), pd.DataFrame({"text": ["one two three", "x " * 600_000], "label": ["odd", "good"]})])
    found = opened(csv, table)
    said = " ".join(found.said)
    assert found.label_names == ["bad", "good"] and "'odd'" in said and "longer than 20,000 characters" in said
    assert found.table["text"].str.len().max() <= 20_000 and len(found.table) == 301 <= MOST_ROWS


def test_a_long_text_is_read_alike_before_and_after_the_hand_over(csv, tmp_path: Path) -> None:
    """Its end has other words than its first 20,000 characters, in capitals and markup."""
    table = told(600)
    table.loc[:2, "text"] = [f"<b>Lovely</b> {word} " + "So " * 7000 + "dull " * 9000 for word in ("one", "two", "three")]
    found = opened(csv, table)
    made, every = classifier_of("words", found), np.arange(len(found.table))
    p, test = made.probabilities(found.texts(every)), found.rows("test")
    row = {"rows": 9, "seconds": 1.0, "ms": 1.0, "mb": 1.0, "test_accuracy": 0.5, "test_macro_f1": 0.5}
    chosen = hand_over.Chosen(WORDS, made, None, p[test], row, 3, "counts words")
    model = hand_over.hand_over(found, chosen, tmp_path / "model", tmp_path / "held.parquet", "out/model")
    run = archive.find(Path(), str(model))
    np.testing.assert_allclose(use.probabilities(run, found.raw(every)), p, atol=1e-6)
    scores = use.evaluate(run, found.raw(every), [found.label_names[n] for n in found.numbers(every)])
    assert scores["in_training"] + scores["in_validation"] == len(every) - len(test)
    export_classifiers.export(run, held_out.of_run(run), tmp_path / "small", False)
    np.testing.assert_allclose(export_opened.find(str(tmp_path / "small")).probabilities(found.raw(every)), p, atol=1e-4)
    network, folder = network_of(found, tmp_path)
    chosen = dataclasses.replace(chosen, classifier=network, run=folder)
    model = hand_over.hand_over(found, chosen, tmp_path / "network", tmp_path / "held.parquet", "out/network")
    run = archive.find(Path(), str(model))
    assert [len(text) for text in trained.cleaned(run, found.raw(every))] == found.table["text"].str.len().tolist()


def test_texts_that_check_an_export_are_of_all_of_a_sorted_file(tmp_path: Path) -> None:
    labels = np.repeat([0, 1], held_out.MOST)
    table = pd.DataFrame({"text": "a", "label": np.tile(labels, 2), "split": np.repeat(["validation", "test"], len(labels))})
    held_out.keep(table, tmp_path, tmp_path, tmp_path / "held.parquet")
    kept = pd.read_parquet(tmp_path / "held.parquet").groupby("split")["label"]
    assert (kept.size() == held_out.MOST).all() and (kept.mean() == 0.5).all()
    assert held_out.spread(3, 5).tolist() == [0, 1, 2] and held_out.spread(9, 3).tolist() == [0, 4, 8]


# ---------------------------------------- the notebook and the command


def test_the_notebook_is_clean_and_no_part_of_the_study() -> None:
    assert "10_your_texts" not in notebooks.NOTEBOOKS and "10_your_texts" not in notebooks.find(folder=NOTEBOOK.parent)
    book = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(book)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert all(cell.execution_count is None and not cell.outputs for cell in code)
    assert all(
        len(line) <= 100 and not line.startswith(("def ", "class "))
        for cell in code
        for line in cell.source.splitlines()
    )
    names = {parameter.name for parameter in notebooks.read_parameters(NOTEBOOK)}
    options = {option.name for option in rtx_compare().params} - {"as_json"}
    assert names == options
    for before, cell in zip(book.cells, book.cells[1:], strict=False):
        drawn = re.search(r"sections\.(labels|lengths|times|learning_curve|confusion|calibration)\(", cell.source)
        if cell.cell_type == "code" and drawn:
            paragraph = [line for line in before.source.splitlines() if line and not line.startswith("#")]
            assert before.cell_type == "markdown" and len(" ".join(paragraph)) > 100, cell.source


def rtx_compare():
    from rtxstudy.commands.compare import compare

    return compare


def test_from_a_file_to_a_model_that_labels_another(csv, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole command, without the Hub and with no minutes: report, card, JSON, and `rtx predict` on what is handed over."""
    table = told(600).rename(columns={"text": "review", "label": "<b>mood</b>"})
    table["<b>mood</b>"] = table["<b>mood</b>"].map({"good": "<i>good</i> $1", "bad": "bad & $2"})
    table.loc[0, "review"] = "<script>alert('x')</script> fine film"
    file = csv(table)
    environment = os.environ | {
        "HF_ENDPOINT": "http://127.0.0.1:9",
        "HF_HOME": str(tmp_path / "empty"),
        "OMP_NUM_THREADS": "1",
    }
    command = ["compare", str(file), "--all", "--minutes", "0", "--out", "out", "--json"]
    done = subprocess.run([sys.executable, "-m", "rtx", *command], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["take"] == WORDS and answer["accuracy"] > 0.9 > answer["majority_accuracy"]
    assert set(answer["left_out"]) == {candidate.name for candidate in candidates.CANDIDATES[2:]}
    assert set(answer) == {field.name for field in dataclasses.fields(Answer)}
    assert set(answer["not_tried"]) == {candidate.name for candidate in candidates.CANDIDATES[2:] if not candidate.pretrained}
    assert "There was no time to train" in (tmp_path / "out" / "report.html").read_text("utf-8")
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert f"Take <strong>{WORDS}</strong>" in page and "<script>alert" not in page and "<i>good</i>" not in page
    assert "Traceback" not in page and "not complete" not in page
    monkeypatch.chdir(tmp_path)
    with store.lock(tmp_path / "out" / "kept", "compare"):
        second = rtx(*command)
    assert second.returncode == 2 and "Another `rtx compare` is at work in" in second.stderr.splitlines()[-1]
    assert json.loads((tmp_path / "out" / "answer.json").read_text("utf-8"))["take"] == WORDS  # nothing is lost
    table.head(5).assign(mine=range(5)).to_csv(tmp_path / "more.csv", index=False)
    out = tmp_path / "labelled.csv"
    said = rtx(
        "predict", tmp_path / "out" / "model", "--file", tmp_path / "more.csv", "--text-column", "review", "--out", out
    )
    assert said.returncode == 0, said.stderr
    labelled = pd.read_csv(out)
    assert list(labelled.columns)[:4] == ["review", "<b>mood</b>", "mine", "predicted"]
    assert (labelled["predicted"] == labelled["<b>mood</b>"]).mean() > 0.5
    scored = rtx(
        "evaluate",
        tmp_path / "out" / "model",
        file,
        "--text-column",
        "review",
        "--label-column",
        "<b>mood</b>",
        "--json",
    )
    assert json.loads(scored.stdout)["in_training"] > 300
    refused = rtx("predict", tmp_path / "out" / "model", "a text", "--passes", "2")
    assert refused.returncode == 2 and "has one pass" in refused.stderr


def test_ctrl_c_gives_the_answer_of_what_is_finished_with_the_same_fields(csv, tmp_path: Path) -> None:
    environment = os.environ | {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path / "empty"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "rtx", "compare", str(csv(told(4000))), "--minutes", "9", "--all", "--out", "out", "--json"]
    started = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    for line in started.stderr:
        if line.startswith(WORDS):  # it is fitted, and the networks are next
            os.killpg(started.pid, signal.SIGINT)
            break
    out, errors = started.communicate(timeout=300)
    assert started.returncode == 0, errors[-3000:]
    answer = json.loads(out.splitlines()[-1])
    assert set(answer) == {field.name for field in dataclasses.fields(Answer)}
    assert answer["ended"] == "asked" and answer["take"] == WORDS
    assert "Stopping: the report is made of what is finished." in errors and (tmp_path / "out" / "report.html").is_file()


@pytest.mark.parametrize(
    ("gain", "says"),
    [
        (0.03, "Public files suggest a gain of about 3.0 points."),
        (None, "How much that would gain is not known."),
        (0.001, ""),
    ],
    ids=["public files", "unknown", "too little"],
)
def test_what_more_minutes_would_bring_comes_first_where_it_is_worth_it(gain: float | None, says: str) -> None:
    rows = [{"model": MAJORITY, "test_score": 0.5, "learned": False}]
    outlook = {"model": FINE_TUNED, "minutes": 20, "gain": gain, "source": "Public files suggest", "train_texts": 12_000}
    answer = Answer(why="nothing learned", n_test=400, majority_score=0.5, outlook=outlook, candidates=rows)
    first = model_sentences.verdict(pd.DataFrame(rows), answer, margin=0.01)[0]
    assert first.startswith("**Take none of these models.**") is (not says)
    if says:
        assert f"With `--minutes 20` **{FINE_TUNED}** is trained whole on all 12,000 training texts. {says}" in first


def test_waiting_for_a_core_is_a_share_of_the_time_in_which_there_was_work(tmp_path: Path, monkeypatch) -> None:
    waiting = busy.Waiting()
    waiting.file, waiting.begun = tmp_path / "schedstat", (1_000, 500)
    waiting.file.write_text("1300 1400 7")  # since then 300 ns on a core and 900 ns waiting for one
    assert waiting.share() == pytest.approx(0.75) and not waiting.quiet()
    waiting.file.write_text("1000 500 7")
    assert waiting.share() == 0 and waiting.quiet()
    waiting.file.unlink()  # a system that does not tell: four programs on two cores
    monkeypatch.setattr(os, "getloadavg", lambda: (4.0, 0.0, 0.0), raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert waiting.share() == pytest.approx(0.5)


def test_a_run_that_was_not_quiet_says_so_in_the_report_and_in_the_terminal() -> None:
    quiet = Answer(n_test=400, report="r.html", text_column="t", label_column="l", judged_by="accuracy")
    busy_one = dataclasses.replace(quiet, quiet=False)
    told_so = "Other programs were running on this machine."
    assert told_so in model_sentences.columns_told(busy_one, False) and told_so in command._summary(busy_one)
    assert told_so not in model_sentences.columns_told(quiet, False) and told_so not in command._summary(quiet)


@pytest.mark.parametrize(("minutes", "kept"), [(10.0, 20.0), (1.0, 6.0)])
def test_the_minutes_count_from_the_call_and_leave_time_for_the_report(
    minutes: float, kept: float, csv, tmp_path: Path, monkeypatch
) -> None:
    made = Comparison.open(Options(str(csv(told(200))), minutes=minutes, out=str(tmp_path / "out")))
    given: list[float] = []
    monkeypatch.setattr(race, "run", lambda *_, spent, **__: given.append(spent))
    monkeypatch.delenv("RTX_STARTED", raising=False)  # a command of another test may have left it
    made.race()
    monkeypatch.setenv("RTX_STARTED", str(time.monotonic() - 5))
    made.race()
    assert given == [0, pytest.approx(5 + kept, abs=1)]  # a notebook by hand; `rtx compare`, which was called five seconds ago
    clock = Clock(minutes, tmp_path / "stop", spent=given[1])
    assert clock.left == pytest.approx(60 * minutes - given[1], abs=1)
    with pytest.raises(OutOfTime):
        Clock(0.05, tmp_path / "stop", spent=5).check()


def test_networks_from_scratch_stop_on_a_plateau_and_fine_tuning_does_not() -> None:
    networks_of_all = [candidate for candidate in candidates.CANDIDATES if candidate.kind == "network"]
    stops = {candidate.name: candidate.recipe(Plan(2000)).patience for candidate in networks_of_all}
    assert {name for name, patience in stops.items() if patience == candidates.PATIENCE} == set(candidates.FROM_SCRATCH)
    assert {name for name, patience in stops.items() if patience is None} == {FINE_TUNED, candidates.LOOP}


def test_the_threads_that_train_faster_are_taken(csv, hub: None, monkeypatch) -> None:
    known = race.Estimate(opened(csv, told(200)))
    monkeypatch.setattr(training_time, "MEASURED_SECONDS", 0.2)
    monkeypatch.setattr(training_time.Trainer, "step", lambda self, pieces: time.sleep(0.03 * torch.get_num_threads()))
    monkeypatch.setattr(training_time.Trainer, "read_losses", lambda self: None)
    guessed, before = known.speed, torch.get_num_threads()
    assert known.measure(np.arange(100), (2, 1), lambda: None) == 1
    assert known.speed == known.speeds[FINE_TUNED] != guessed and torch.get_num_threads() == before


@pytest.mark.parametrize(("wrong", "told"), [(0.2, "matters more to you."), (0.02, "matters to you.")])
def test_a_cheaper_model_is_told_with_what_it_costs_in_score(wrong: float, told: str) -> None:
    found = judged({FINE_TUNED: 0.1, WORDS: wrong}, 400).table
    cheap = found["model"] == WORDS
    table = found.assign(ms=np.where(cheap, 0.1, 30.0), mb=np.where(cheap, 1.0, 90.0), test_score=np.where(cheap, 1 - wrong, 0.9))
    said = model_sentences._cheaper(table, Answer(take=FINE_TUNED, n_test=400))[0]
    assert said.startswith(f"A cheaper model is **{WORDS}**: accuracy {1 - wrong:.2f}, 0.1 ms") and said.endswith(told)


def test_a_cascade_beyond_the_limits_is_not_offered() -> None:
    table = judged({FINE_TUNED: 0.1, WORDS: 0.2}, 400).table
    both = table[table["model"] == FINE_TUNED].assign(model=CASCADE, ms=0.1, mb=200.0)
    pair = {"first": WORDS, "second": FINE_TUNED, "share": 0.5}
    for allowed in (True, False):
        rows = pd.concat([table, both.assign(allowed=allowed)], ignore_index=True).set_index("model")
        said = model_sentences._cascade(rows, Answer(take=FINE_TUNED, cascade=pair, n_test=400))
        assert bool(said) is allowed


def test_what_an_interrupt_left_is_not_called_too_few_minutes() -> None:
    answer = Answer(ended="asked", not_tried=[FINE_TUNED])
    (said,) = model_sentences._not_tried(answer)
    assert said.startswith(f"The comparison was stopped, as asked, before **{FINE_TUNED}** was trained.")
    assert "--minutes" not in said
    (said,) = model_sentences._not_tried(dataclasses.replace(answer, ended="time"))
    assert said.startswith(f"There was no time to train **{FINE_TUNED}**.") and "more `--minutes`" in said


@pytest.mark.parametrize(("learned", "why"), [([True, False], "limits"), ([False, False], "nothing learned")])
def test_limits_are_blamed_only_where_a_model_that_learned_is_beyond_them(learned: list[bool], why: str) -> None:
    errors = {"good": 0.05 if learned[0] else 0.5, "chance": 0.5}
    assert judged(errors, 400, Limits(max_mb=5.0)).why == why


def test_a_model_that_learned_nothing_is_never_recommended() -> None:
    found = judged({"standard-2x128": 0.5}, 400)
    answer = Answer(take=None, why=found.why, n_test=400, majority_score=0.5)
    assert "Take none of these models" in model_sentences.verdict(found.table, answer, 0.01)[0]
    able = judged({"standard-2x128": 0.5, WORDS: 0.1}, 400)
    answer = dataclasses.replace(
        answer, take=able.taken, why=able.why, what="counts", best=able.best, counting_words_score=0.9
    )
    said = " ".join(model_sentences.verdict(able.table, answer, 0.01))
    assert (
        f"Take **{WORDS}**" in said
        and "**standard-2x128** is **not shown to be better than the most frequent label**" in said
    )
    untried = " ".join(model_sentences.verdict(able.table, dataclasses.replace(answer, not_tried=["a", "b", "c"]), 0.01))
    partly = dataclasses.replace(answer, partial={"MiniLM fine-tuned": 455}, train_texts=7290)
    assert "**MiniLM fine-tuned** (455)" in " ".join(model_sentences.verdict(able.table, partly, 0.01))
    assert "no time" not in said and "There was no time to train **a**, **b** and **c**. One of them" in untried
    sized = dataclasses.replace(answer, n_judged=100, n_labelled=1000, take=able.table["model"].iloc[-1])
    unsettled = able.table.assign(mb=[1.0] * (len(able.table) - 1) + [2.0])
    for needed, told in ((30.0, "About 130 such texts would tell."), (1000.0, "Only many times more would tell.")):
        assert told in model_sentences._unsettled(unsettled.assign(needed=needed), sized, 0.01)[0]
    shown = model_sentences.shown_table(able.table, answer)
    assert dict(zip(shown["model"], shown["learned"], strict=True))["standard-2x128"] == "not shown"


def test_mistakes_and_doubtful_labels_are_rows_to_read() -> None:
    numbers = np.arange(200) % 2
    found = texts_of(numbers)
    right = np.eye(2)[numbers] * 0.8 + 0.1
    flipped = right.copy()
    flipped[7] = flipped[7][::-1]
    unsure = np.clip(flipped, 0.3, 0.7)
    entries = {name: SimpleNamespace(judged=flipped, test=right) for name in (WORDS, STATIC)}
    doubtful = further.doubtful_labels(found, entries)
    assert len(doubtful) == 1 and doubtful["label"][0] == "l1" and doubtful["answer"][0] == "l0"
    assert further.doubtful_labels(found, {WORDS: SimpleNamespace(judged=unsure, test=right)}).empty
    assert further.mistakes(found, right, found.rows("test")).empty
    bins = further.calibration(found, right, found.rows("test"))
    assert bins["rows"].sum() == 200 and bins["accuracy"].eq(1).all()
    assert "is less sure than it could be" in model_sentences.calibration(bins, WORDS)
    for rows, says in ((20, "is not shown to be"), (4000, "is about as sure as it should be")):
        bins = pd.DataFrame({"confidence": [0.7, 0.9], "accuracy": [0.6, 1.0], "rows": [rows // 2] * 2})
        assert says in model_sentences.calibration(bins, WORDS)
    assert "no label can be doubted" in model_sentences.doubtful(doubtful[:0], 0, 400)
