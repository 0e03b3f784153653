"""A reader sees names, not the ids of tables and files."""

from __future__ import annotations

import re

import pytest
from bs4 import BeautifulSoup
from matplotlib.text import Text

from rtxlib.data.sources import TASKS
from rtxlib.runs.counting_words import FITS, MAJORITY, SECOND_ALONE
from rtxstudy import names
from rtxstudy.figures import accuracy
from rtxstudy.figures.save import save
from rtxstudy.report.markup import clean

RAW = re.compile(
    r"(?<!/)\b(?:sst2|multi_nli|sms_spam|cola|snli|yelp_\w+|amazon_\w+)\b|(?:recurrent|standard)-\d|(?<!/)all-MiniLM"
    r"|tf-idf \+|\w\(s\)|\b[a-z]+_[a-z]+"
)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("recurrent-3x2x256", "Recurrent, 3 layers × 2 passes, 256 wide"),
        ("recurrent-1x4x64 none", "Recurrent, 1 layer × 4 passes, 64 wide, no residual across passes"),
        ("standard-6x384", "Standard, 6 layers, 384 wide"),
        (
            "all-MiniLM-L6-v2 2×2 lower between edges",
            "MiniLM-L6, layers 2 and 3 passed twice between the first and the last",
        ),
        ("all-MiniLM-L6-v2 3×1 lower", "MiniLM-L6, layers 1 to 3 passed once"),
        ("tf-idf + logistic regression", "Counting words (TF-IDF)"),
        (
            "**recurrent-2x2x64** on sst2 10%, ",
            "**Recurrent, 2 layers × 2 passes, 64 wide** on SST-2 (10\xa0% of the texts), ",
        ),
        ("Trained on sst2, domains, embedded.", "Trained on SST-2, Domains, Generated texts."),
        ("2 group(s), 1 row(s)", "2 groups, 1 row"),
        ("stanfordnlp/sst2 and sentence-transformers/all-MiniLM-L6-v2", None),  # an address stays what it is
        ("The loop is embedded in other domains", None),
    ],
)
def test_an_id_becomes_a_name_and_other_words_stay(text: str, name: str | None) -> None:
    assert names.said(text) == (name or text)


def test_every_data_set_and_baseline_has_a_name() -> None:
    for label in (*TASKS, MAJORITY, SECOND_ALONE, *FITS):
        if label != "composed":  # its labels name the task, too
            assert names.said(label) != label, label
    assert names.said("composed pointer 4 steps among 16") == "Pointers, 4 steps among 16"


def test_no_id_is_left_in_sentences_tables_and_alternative_texts() -> None:
    markup = (
        "<p>On <strong>sst2</strong>, recurrent-3x2x256 minus standard-6x384: 8 row(s) of multi_nli; <code>sst2</code></p>"
        '<img alt="Rows of sst2" src="data:,"><table><thead><tr><th>model</th><th>n_test</th></tr></thead>'
        "<tbody><tr><td>tf-idf + logistic regression</td><td>5</td></tr></tbody></table>"
    )
    page = BeautifulSoup(clean(markup, "02"), "html.parser")
    assert page.code.extract().text == "sst2"  # the table of models shows ids as code
    assert not RAW.search(page.text) and not RAW.search(page.img["alt"])
    tooltips = [tag["title"] for tag in page.select("abbr") if not tag["title"][0].isdigit()]
    assert tooltips == ["sst2", "recurrent-3x2x256", "standard-6x384", "multi_nli", "tf-idf + logistic regression"]
    assert [head.text for head in page.select("th")] == ["model", "test texts"]


def test_no_id_is_left_in_a_figure(tmp_path) -> None:
    import pandas as pd

    models = ["standard-6x384", "recurrent-3x2x256 unshared", "tf-idf + logistic regression"]
    runs = pd.DataFrame(
        {"model": models * 2, "seed": [0] * 3 + [1] * 3, "accuracy": [0.8, 0.81, 0.82] * 2, "data": "sst2"}
    )
    figure = accuracy.accuracy_intervals(runs, title="How good is recurrent-3x2x256 on sst2?")
    save(figure, "drawn", runs, tmp_path, "A figure.")
    drawn = [text.get_text() for text in figure.findobj(Text)]
    assert not [text for text in drawn if RAW.search(text)]
    assert "Recurrent 3×2×256, unshared" in drawn and "SST-2" in drawn
