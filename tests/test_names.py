"""A reader sees names, not the ids of tables and files."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
from bs4 import BeautifulSoup
from matplotlib.text import Text

from rtx.baselines.counting_words import FITS, MAJORITY, SECOND_ALONE
from rtxlib.data.datasets import NAMES, Hub
from rtxlib.data.spec import DataSpec
from rtxlib.runs.spec import RunSpec, data_label
from rtxlib.training.recipe import RECIPES
from rtxstudy import names, naming, profiles, studies
from rtxstudy.figures.save import save
from rtxstudy.questions.accuracy import accuracy_figures
from rtxstudy.report.markup import clean

RAW = re.compile(
    r"(?<!/)\b(?:sst2|multi_nli|sms_spam|cola|snli|yelp_\w+|amazon_\w+|embedded)\b|(?:recurrent|standard)-\d|(?<!/)all-MiniLM"
    r"|tf-idf \+|\w\(s\)|\b[a-z]+_[a-z]+"
)
MINILM = "sentence-transformers/all-MiniLM-L6-v2"
LOOP = {"layers": 2, "passes": 2, "start": "lower", "edges": True}
TENTH = Hub("sst2", train_fraction=0.1)


def run(model: str, data: DataSpec = TENTH, **more: object) -> RunSpec:
    return RunSpec(model, data, RECIPES["finetune" if "/" in model else "default"], 0, **more)


@pytest.fixture(autouse=True)
def known() -> None:
    specs = [run("recurrent-3x2x256"), run("standard-6x384"), run("recurrent-3x2x256", overrides={"block_sharing": "unshared"})]
    names.know({spec.name: naming.of_model(spec) for spec in specs} | {data_label(TENTH): naming.of_data(TENTH)})


@pytest.mark.parametrize(
    ("spec", "short", "long"),
    [
        (run("recurrent-3x2x256"), "Recurrent 3×2×256", "recurrent encoder, 3 layers, passed twice, 256 wide"),
        (run("standard-1x64"), "Standard 1×64", "standard encoder, 1 layer, 64 wide"),
        (run("recurrent-1x4x64", overrides={"residual": "none"}), "Recurrent 1×4×64, no residual", "1 layer, passed 4 times"),
        (run(MINILM), "MiniLM", "all-MiniLM-L6-v2"),
        (run(MINILM, conversion=LOOP), "MiniLM loop (4 layers, 2 twice)", "MiniLM loop (4 layers, 2 twice)"),
        (run(MINILM, conversion=LOOP | {"passes": 1}), "MiniLM, 4 layers", "MiniLM, 4 layers"),
        (run(MINILM, conversion={"layers": 3, "passes": 2, "start": "lower"}), "MiniLM loop (lower 3, twice)", "MiniLM loop"),
    ],
)
def test_a_name_is_made_from_the_spec_of_the_run(spec: RunSpec, short: str, long: str) -> None:
    name = naming.of_model(spec)
    assert name.short == short and long in name.long


def test_every_model_and_data_set_of_every_profile_has_a_name_without_an_id() -> None:
    for profile in map(profiles.load, ("smoke", "demo", "full")):
        for study in (study for of in studies.STUDIES.values() for study in of):
            for spec in studies.specs_of(study, profile):
                for name in (naming.of_model(spec), naming.of_data(spec.data)):
                    assert not RAW.search(name.short), (study, name)


@pytest.mark.parametrize("profile", ["demo", "full"])
def test_two_data_sets_of_a_profile_do_not_share_a_name(profile: str) -> None:
    sizes = profiles.load(profile)
    runs = [spec for of in studies.STUDIES.values() for study in of for spec in studies.specs_of(study, sizes)]
    shorts = [naming.of_data(spec).short for spec in {data_label(spec.data): spec.data for spec in runs}.values()]
    assert len(shorts) == len(set(shorts)), sorted(shorts)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("**recurrent-3x2x256** on sst2 10%, ", "**Recurrent 3×2×256** on SST-2 (10\xa0%), "),
        ("Trained on sst2, domains, embedded.", "Trained on SST-2, Domains, Generated texts."),
        ("stanfordnlp/sst2 and sentence-transformers/all-MiniLM-L6-v2", None),  # an address stays what it is
        ("The loop is embedded in other domains", None),
    ],
)
def test_an_id_becomes_a_name_and_other_words_stay(text: str, name: str | None) -> None:
    assert names.said(text) == (name or text)


def test_every_baseline_and_source_has_a_name() -> None:
    for label in (*NAMES, MAJORITY, SECOND_ALONE, *FITS):
        if label not in ("composed", "file"):  # their labels name the task, or the file
            assert names.said(label) != label, label


def test_no_id_is_left_in_sentences_tables_and_alternative_texts() -> None:
    markup = (
        "<p>On <strong>sst2</strong>, recurrent-3x2x256 minus standard-6x384 on multi_nli; <code>sst2</code></p>"
        '<img alt="Rows of sst2" src="data:,"><table><thead><tr><th>model</th><th>n_test</th></tr></thead>'
        "<tbody><tr><td>tf-idf + logistic regression</td><td>5</td></tr></tbody></table>"
    )
    page = BeautifulSoup(clean(markup, "02"), "html.parser")
    assert page.code.extract().text == "sst2"  # the table of names shows ids as code
    assert not RAW.search(page.text) and not RAW.search(page.img["alt"])
    assert all(tag["title"] != tag.text for tag in page.select("abbr"))  # the tooltip says what the short name stands for
    assert [head.text for head in page.select("th")] == ["model", "test texts"]


def test_no_id_is_left_in_a_figure(tmp_path: Path) -> None:
    models = ["standard-6x384", "recurrent-3x2x256 unshared", "tf-idf + logistic regression"]
    runs = pd.DataFrame(
        {"model": models * 2, "seed": [0] * 3 + [1] * 3, "accuracy": [0.8, 0.81, 0.82] * 2, "data": "sst2"}
    )
    figure = accuracy_figures.accuracy_intervals(runs, title="How good is recurrent-3x2x256 on sst2?")
    save(figure, "drawn", runs, tmp_path, "A figure.")
    drawn = [text.get_text() for text in figure.findobj(Text)]
    assert not [text for text in drawn if RAW.search(text)]
    assert "Recurrent 3×2×256, unshared" in drawn and "SST-2" in drawn


def test_english_words_of_a_persons_text_are_no_ids() -> None:
    text = "The majority class, a bag of embeddings, nb-svm and the domains on sst2 10%"
    assert names.said(text, prose=True) == "The majority class, a bag of embeddings, NB-SVM and the domains on SST-2 (10\u00a0%)"
    assert names.said("majority class") == "Most frequent label"
