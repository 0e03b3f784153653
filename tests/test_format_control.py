"""The control of the domain task: format alone and words alone are told apart, and uniform texts have one format."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from rtxlib.data.clean import UNIFORM_WORDS, clean, clean_rows, letters_alone, uniform
from rtxlib.data.datasets import Generated
from rtxlib.data.rows import Rows
from rtxlib.runs.spec import data_label
from rtxlib.runs.store import changed
from rtxstudy.questions.domains import format_control, format_figures


def data(word: str, sign: str) -> SimpleNamespace:
    """Texts of two labels. They differ in ``word`` where it is not empty, and in ``sign`` likewise."""
    random = np.random.default_rng(0)
    fill = [f"w{chr(97 + n)}" for n in range(20)]
    texts, labels = [], []
    for row in range(240):
        label = row % 2
        body = " ".join(random.choice(fill, 12))
        texts.append(
            f"{body[:17]} {word if label else 'other'} {body[17:]}{sign if label else '.'}"
            if word
            else f"{body}{sign if label else '.'}"
        )
        labels.append(label)
    parts = {"train": slice(0, 160), "validation": slice(160, 200), "test": slice(200, 240)}
    splits = {name: SimpleNamespace(labels=np.array(labels[part])) for name, part in parts.items()}
    return SimpleNamespace(texts=lambda split: texts[parts[split]], splits=splits, label_names=["a", "b"])


@pytest.fixture(scope="module")
def tables() -> dict:
    cases = {"format": data("", "!"), "words": data("film", ".")}
    return {told: format_control.format_control(each) for told, each in cases.items()}


def accuracy(table, read: str) -> float:
    return table.set_index("input").loc[read, "accuracy"]


def test_a_task_of_format_is_solved_by_signs_and_lost_in_uniform_texts(tables: dict) -> None:
    table = tables["format"]
    assert accuracy(table, format_control.SIGNS) == accuracy(table, format_control.BOTH) == 1
    assert accuracy(table, format_control.LEFT) < 0.8 and accuracy(table, format_control.UNIFORM) < 0.8


def test_a_task_of_words_is_left_in_uniform_texts(tables: dict) -> None:
    table = tables["words"]
    assert accuracy(table, format_control.WHOLE) == accuracy(table, format_control.UNIFORM) == 1
    assert accuracy(table, format_control.SIGNS) < 0.8


def test_all_rows_are_of_the_same_texts_and_compared_with_them_as_they_are(tables: dict) -> None:
    table = tables["words"]
    assert (
        table["n_test"].nunique() == 1
        and (table["low"] <= table["accuracy"]).all()
        and (table["accuracy"] <= table["high"]).all()
    )
    whole = accuracy(table, format_control.WHOLE)
    np.testing.assert_allclose(table["difference"], table["accuracy"] - whole)


def test_the_figure_marks_every_input_once(tables: dict) -> None:
    figure = format_figures.format_control(tables["words"])
    rows = [label.get_text() for ax in figure.axes for label in ax.get_yticklabels()]
    assert len(rows) == 7 and format_control.LEFT in " ".join(rows).replace("\n", " ")


@pytest.mark.parametrize(
    ("treebank", "typed"),
    [
        ("it 's a film I do n't like -lrb- 2 stars -rrb- .", "It's a film I don't like (2 stars)."),
        ("they 're well-made , they 've got 90 minutes !", "They're well-made, they've got 90 minutes!"),
    ],
)
def test_one_sentence_in_two_formats_becomes_one_text(treebank: str, typed: str) -> None:
    assert letters_alone(treebank) == letters_alone(typed)
    assert not set(letters_alone(typed)) - set("abcdefghijklmnopqrstuvwxyz ")


def test_a_uniform_text_is_the_middle_of_the_words() -> None:
    assert uniform("A b, c d e f g.", words=3) == "c d e" and uniform("a b", words=3) == "a b"
    once, changed_rows = clean(["One. " * 30, "1 2 3"], uniform=True)
    assert once == ["one " * (UNIFORM_WORDS - 1) + "one", ""] and changed_rows == {"format made uniform": 2}
    assert clean(once, uniform=True)[0] == once  # a prediction cleans cleaned texts to themselves


def test_uniform_data_are_a_data_set_of_their_own_and_all_texts_are_equally_long() -> None:
    plain = Generated(rows=300, depth=3, vocab_size=400)
    spec = dataclasses.replace(plain, uniform=True)
    assert changed(spec) == changed(plain) | {"uniform": True}  # the keys of other data stay as they are
    assert data_label(spec) == "embedded uniform"
    texts = ["Too short.", "1 " * 30, "One text, one; two! " * 5]
    rows = Rows(pd.DataFrame({"text": texts, "label": "a", "domain": "", "split": ""}), ["a", "b"])
    clean_rows(rows, spec)
    assert rows.table["text"].tolist() == [uniform(texts[2])] and len(uniform(texts[2]).split()) == UNIFORM_WORDS
    assert rows.steps[-1] == ("texts of fewer than 10 words dropped", 2, 0, 1)
