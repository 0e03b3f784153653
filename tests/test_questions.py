"""The sentences of the study: each has its condition, and every one that the committed report prints is true of its tables."""

from __future__ import annotations

import ast
import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rtxlib.errors import InputError
from rtxstudy import Study, claims, names, numbers, profiles, published
from rtxstudy.claims import claim, first, row, sentences, untrue
from rtxstudy.numbers import percent
from rtxstudy.questions.audit import audit_claims
from rtxstudy.questions.depth_gain import depth_claims
from rtxstudy.questions.forms import form_claims
from rtxstudy.questions.sizes import size_claims
from rtxstudy.questions.summary import cost_claims, glance, limit_claims, summary_figures
from rtxstudy.readme import blocks

ROOT = Path(__file__).resolve().parents[1]
FULL = ROOT / "data" / "results" / "full"


@pytest.fixture(autouse=True)
def _names() -> None:
    names.know(published.names(FULL))


def test_a_claim_is_printed_where_it_holds_listed_where_it_does_not_and_silent_without_data() -> None:
    said = [
        claim(
            "It gains {gain:signed} points, {share:share} of all, to {accuracy:percent}.",
            gain=0.0123,
            share=0.84,
            accuracy=0.8945,
        ),
        claim("It loses {gain:points} points.", holds=False, gain=-0.012),
        claim("It is {missing:percent}.", missing=math.nan),
        claim("Nobody asked.", holds=None),
    ]
    assert sentences(said) == [f"It gains +1.2 points, 84\xa0% of all, to {percent(0.8945)}."]
    assert untrue(said) == ["It loses 1.2 points."]
    assert first(*said[1:], said[0]) == said[0] and first(*said[2:], said[1]) == said[1]


def test_a_claim_speaks_of_one_row_and_a_misspelt_column_is_an_error() -> None:
    table = pd.DataFrame({"data": ["a", "b", "b"], "gain": [0.1, 0.2, 0.3]})
    assert row(table, data="a").gain == 0.1 and row(table, data="a")
    absent = row(table, data="c")
    assert (
        not absent
        and math.isnan(absent.gain)
        and claim("{gain:signed}", holds=absent.gain > 0, gain=absent.gain).holds is None
    )
    with pytest.raises(ValueError, match="2 rows have"):
        row(table, data="b")
    with pytest.raises(AttributeError, match="no column 'gains'"):
        _ = row(table, data="a").gains


def test_every_sentence_of_the_committed_report_is_true() -> None:
    """A new result may make a sentence false. Then a person writes another one."""
    table = published.read(FULL, "claims")
    assert table is not None and len(table) > 80 and published.untrue(FULL) == ""
    page = (ROOT / "reports/full/report.html").read_text(encoding="utf-8")
    assert claims.UNTRUE not in re.sub(r"<details class=.code.*?</details>", "", page, flags=re.DOTALL)
    assert {"depth", "cost", "accuracy", "pass", "form", "size", "domain", "pretraining", "limit"} <= set(
        table["question"]
    )


def test_the_verdict_of_the_summary_is_three_short_sentences() -> None:
    gains = published.read(FULL, "depth_gains")
    said = [re.sub(r"[*]", "", sentence) for sentence in sentences(depth_claims.verdict(gains))]
    assert len(said) == 3 and all(len(sentence.split()) <= 25 for sentence in said), [len(one.split()) for one in said]


def test_other_results_get_other_sentences() -> None:
    """If depth pays nowhere, or a loop replaces everywhere, the summary says so and not what the committed tables say."""
    gains = published.read(FULL, "depth_gains")
    nowhere = " ".join(sentences(depth_claims.verdict(gains.assign(depth_p=0.9))))
    assert "is not shown to pay" in nowhere and "keeps" not in nowhere
    ends = {"sharing_low": -0.001, "sharing_high": 0.001, "sharing_low_without": -0.002, "loop_low": 0.01}
    everywhere = " ".join(sentences(depth_claims.verdict(gains.assign(**ends))))
    assert "is not settled" not in everywhere and "replaces" in everywhere
    some = depth_claims.shown(gains).query("pays")["data"].iloc[0]
    lost = gains["data"].map(names.short) == some
    worse = gains.assign(**ends).assign(sharing_high=gains["sharing_high"].where(~lost, -0.02))
    assert f"loses more than a point on {some}." in " ".join(sentences(depth_claims.verdict(worse)))
    none = " ".join(sentences(depth_claims.verdict(gains.assign(sharing_low=-0.02))))
    assert "is nowhere shown to replace" in none


@pytest.mark.parametrize("module", sorted((ROOT / "rtxstudy/questions").rglob("*_claims.py")), ids=lambda path: path.stem)
def test_no_sentence_picks_a_row_by_its_value(module: Path) -> None:
    """`sort_values(…).iloc[-1]` names the best-looking row. A claim names the row that it speaks of."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "iloc":
            assert "sort_values" not in ast.unparse(node), ast.unparse(node)


def models(*rows: tuple[str, float, float, float]) -> pd.DataFrame:
    named = pd.DataFrame(rows, columns=["model", "validation", "ms_in_batch", "parameters"])
    return named.assign(mean=named["validation"], learned=True, family="standard", parameters=named["parameters"] * 1e6)


def test_a_model_is_worth_its_cost_unless_a_smaller_and_as_fast_one_is_as_accurate_on_validation_texts() -> None:
    table = models(
        ("tiny", 0.80, 0.03, 0.1), ("bag", 0.82, 0.024, 10), ("slow", 0.81, 3.0, 20), ("large", 0.95, 2.0, 30)
    )
    judged = glance.worth_their_cost(table, 300).set_index("model")
    assert judged["frontier"].to_dict() == {
        "tiny": True,
        "bag": False,
        "slow": False,
        "large": True,
    }  # 6 µs decide nothing
    assert judged.loc["tiny", "like"] == "bag, slow" and judged.loc["large", "like"] == ""
    exact = glance.worth_their_cost(table, 100_000).set_index("model")
    assert exact.loc["bag", "frontier"]  # many validation texts tell two points apart
    assert glance.worth_their_cost(table.assign(mean=0.1), 300)["frontier"].tolist() == judged["frontier"].tolist()


def test_intervals_of_accuracy_cover_new_texts() -> None:
    rng = np.random.default_rng(0)
    table = models(("a", 0.8, 1, 1), ("b", 0.8, 1, 1))
    found = glance.over_texts(table, {"a": rng.random((3, 900)) < 0.8, "b": rng.random((1, 900)) < 0.8})
    widths = found["text_high"] - found["text_low"]
    assert widths.between(0.03, 0.08).all()  # one standard error of 900 texts is 1.3 points


def test_a_part_of_a_data_set_says_so_and_a_mirror_has_no_revision() -> None:
    source = {"source": "fancyzhx/yelp_polarity, from a mirror of the Hub", "revision": "59a629ce8d3f"}
    assert audit_claims.revision(source) == "local copy"
    assert audit_claims.revision({"source": "stanfordnlp/sst2", "revision": "abc"}) == "abc"
    parts = audit_claims.parts(published.read(FULL, "sources"), published.read(FULL, "balance")).set_index("data")["note"]
    assert parts["yelp_polarity official test 8,000 rows at 128 tokens"].startswith(
        "6,000 of the 38,000 test reviews, 63\xa0% of"
    )
    assert parts["amazon_reviews_multi_en at 128 tokens"].startswith("2,000 of the 210,000 reviews, 50\xa0% of")
    assert audit_claims.reader("pairs_9.parquet + nyu-mll/glue, from a mirror of the Hub") == "a file of pairs + nyu-mll/glue"
    assert audit_claims.note("2 group(s) of 1 row(s)") == "2 groups of 1 row"


def test_the_readme_has_few_words_and_few_numbers_in_its_findings() -> None:
    said = " ".join(sentences(blocks.finding_claims()))
    words = [word for word in re.sub(r"[*]|\]\([^)]*\)", " ", said).split() if re.search(r"\w", word)]
    numbers = re.findall(r"(?<![\w-])[+−]?\d[\d,.]*", said)
    assert len(words) <= 125 and len(numbers) <= 10, (len(words), numbers)


def test_the_frontier_is_said_only_where_the_tables_have_it() -> None:
    table = glance.worth_their_cost(models(("tiny", 0.80, 0.03, 0.1), ("large", 0.95, 2.0, 30)), 300)
    assert sentences(cost_claims.use(table, 300)) == []


def test_few_steps_are_excluded_only_where_the_part_has_as_many_as_all_texts() -> None:
    def said(tenth: int) -> str:
        parts = ["sst2", "sst2 10%", "sst2 50%", "sst2 shortest", "sst2 longest"]
        table = pd.DataFrame({"data": parts, "steps": [494, tenth, 999, 993, 993]})
        return " ".join(sentences(size_claims.few_steps(table)))

    assert "in 986 to 999 optimiser steps" in said(986) and "read them once, in 494" in said(986)
    assert "as much about few steps" in said(50)
    assert said(300) == ""


def test_the_search_for_recipes_bounds_what_one_recipe_leaves_open() -> None:
    found = published.findings(FULL)
    given = " ".join(sentences(limit_claims.limits(found)))
    assert "There four encoders had a search for recipes of their own" in given and "may do better" not in given
    pairs = found["comparisons"]
    without = found | {"comparisons": pairs[pairs["study"] != "recipe_search"]}
    assert "With a recipe of its own, or with more epochs, an encoder may do better" in " ".join(
        sentences(limit_claims.limits(without))
    )


def test_a_way_that_was_not_the_best_is_not_called_the_best() -> None:
    for own, said in ((0.73, "the best of 2 on"), (0.71, "the study's own, one of 2 tried on")):
        choice = pd.DataFrame({"val_accuracy": [own, 0.72], "taken": [True, False], "texts": 2037})
        assert said in depth_claims.selected("made from a pretrained encoder", choice, "multi_nli")


def test_the_title_of_a_figure_of_forms_rests_on_enough_seeds() -> None:
    rows = pd.DataFrame({"form": ["gated", "none"], "data": "sst2", "n_seeds": 3, "low": -0.05, "high": [-0.01, 0.01]})
    assert sentences([form_claims.title(rows, "sst2")]) == ["SST-2: no form beats the study's own, and one is worse"]
    few = form_claims.title(rows.assign(n_seeds=2), "sst2")
    assert sentences([few]) == ["SST-2: 2 seeds are too few to tell the forms apart"]
    alike = form_claims.title(rows.assign(high=0.01), "sst2")
    assert sentences([alike]) == ["SST-2: no form is shown to differ from the study's own"]


def test_claims_are_made_of_the_full_study_as_it_is() -> None:
    assert Study.open("full").speaks and not Study.open("full", seeds=1).speaks and not Study.open("demo").speaks


def test_an_accuracy_of_one_seed_has_no_spread() -> None:
    assert numbers.with_spread(0.954, float("nan")) == "95.4" and numbers.with_spread(0.954, 0.003) == "95.4 ± 0.3"


def test_settings_that_make_two_data_sets_alike_are_refused() -> None:
    with pytest.raises(InputError, match="two data sets of the profile 'demo' have one name, embedded at 64 tokens"):
        profiles.load("demo", max_length=64)


def test_every_mark_of_the_forest_stands_in_its_frame() -> None:
    """A bar may be cut at the frame. A mark that is cut would leave a large difference out."""
    pairs = [("a − b", -0.313, -0.53, -0.09), ("c − d", 0.01, -0.01, 0.03), ("e − f", 0.12, 0.1, 0.14)]
    table = pd.DataFrame(pairs, columns=["comparison", "difference", "low", "high"]).assign(data="sst2", verdict="open")
    figure = summary_figures.forest(table, "A title", "sst2")
    for ax in figure.axes:
        left, right = ax.get_xlim()
        marks = [line.get_xdata()[0] for line in ax.lines if line.get_marker() == "o"]
        assert marks and all(left < mark < right for mark in marks)
