"""The first screen of the report says what its tables show, and no more."""

from __future__ import annotations

import pandas as pd
import pytest

from rtxlib.runs.counting_words import MAJORITY, NAME
from rtxstudy.evaluation import glance
from rtxstudy.figures import summary as draw
from rtxstudy.words import summary as words
from rtxstudy.words.depth_gain import what_to_use, where_depth_pays

STANDARD, RECURRENT = "standard-6x384", "recurrent-3x2x256"


SIZES = {"loop_parameters": 50, "deep_parameters": 100, "loop_with_table": 80, "deep_with_table": 100}


def gain(data: str, depth: tuple, sharing: tuple, kept: float, **more: object) -> dict:
    named = dict(zip(("depth_gain", "depth_low", "depth_high"), depth, strict=True))
    named |= dict(zip(("sharing_gain", "sharing_low", "sharing_high"), sharing, strict=True))
    named |= {"depth_p": 0.001, "loop_low": 0.01, "kept": kept, "kept_low": kept / 2, "kept_high": 2 * kept}
    return {"regime": "from nothing", "data": data, **named, "n_seeds": 3, "learned": True, **SIZES} | more


PAYS = gain("multi_nli", (0.02, 0.01, 0.03), (0.003, -0.007, 0.012), 1.1)
FLAT = gain("cola", (0.0, -0.01, 0.009), (0.0, -0.01, 0.01), float("nan"))


def found(accuracies: dict[str, float], majority: float = 0.5, seeds: int = 3) -> dict[str, pd.DataFrame]:
    """Runs and comparisons of one data set, with the study's encoders paired."""
    rows = [
        {"study": "baseline", "data": "sst2", "model": model, "family": "pretrained" if "MiniLM" in model else "standard"}
        | {"seed": seed, "accuracy": mean + 0.002 * seed, "val_accuracy": mean, "n_test": 900, "key": f"{model}{seed}"}
        | {"spec": "{}"}
        | {"parameters": 1e7, "non_embedding_parameters": 3e6}
        for model, mean in accuracies.items()
        for seed in range(seeds)
    ]
    counted = [(MAJORITY, majority, 0.0), (NAME, max(majority, accuracies[STANDARD] - 0.005), 0.04)]
    classical = [
        {"study": "baseline", "data": "sst2", "model": model, "family": "classical", "accuracy": value, "ms_per_text": ms}
        | {"parameters": 1e5, "validation_accuracy": value}
        for model, value, ms in counted
    ]
    difference = accuracies[RECURRENT] - accuracies[STANDARD]
    row = {"comparison": f"{RECURRENT} − {STANDARD}", "data": "sst2", "difference": difference, "n_items": 900}
    row |= {"low": difference - 0.005, "high": difference + 0.005, "n_seeds": seeds}
    frames = {"runs": rows, "classical": classical, "comparisons": [row]}
    return {name: pd.DataFrame(values) for name, values in frames.items()}


def said(tables: dict[str, pd.DataFrame], *gains: dict) -> list[str]:
    lines = words.five_lines(
        pd.DataFrame(gains), glance.at_a_glance(tables, "sst2"), glance.verdicts(tables, 0.01), STANDARD, RECURRENT, "sst2", 0.01
    )
    return lines.split("\n")


def test_five_lines_each_with_a_link_to_its_evidence() -> None:
    tables = found({STANDARD: 0.8, RECURRENT: 0.799, "all-MiniLM-L6-v2": 0.89})
    depth, best, cheap, unsettled, use = said(tables, PAYS, FLAT)
    assert all(".ipynb#" in line for line in (depth, best, cheap, unsettled, use))
    assert "Depth pays on 1 of 2 tasks: multi_nli." in depth and "80\xa0% of its parameters (50\xa0% without" in depth
    assert "all-MiniLM-L6-v2, 89.2\xa0%" in best
    assert NAME in cheap and "0.04 ms" in cheap
    assert "No comparison of the loop with depth is open." in unsettled
    assert "Fine-tune a pretrained encoder" in use and "Count words" in use and "fewer layers" in use and "cola" in use


def test_where_depth_pays_nowhere_there_is_nothing_to_replace() -> None:
    assert "There is nothing to replace" in said(found({STANDARD: 0.8, RECURRENT: 0.8}), FLAT)[0]
    few = gain("sst2", (0.02, 0.01, 0.03), (0.0, -0.005, 0.005), 1.0, n_seeds=2)
    assert "Not shown by these runs" in said(found({STANDARD: 0.8, RECURRENT: 0.8}), few)[0]


def test_a_loop_that_gains_nothing_replaces_nothing() -> None:
    """It is as good as the deep encoder, and so may be the shallow one, which is cheaper."""
    tables = found({STANDARD: 0.8, RECURRENT: 0.8})
    alike = gain("snli", (0.008, 0.002, 0.015), (-0.002, -0.005, 0.001), 0.7, loop_low=-0.003)
    depth, *_, use = said(tables, alike)
    assert "No loop is shown to gain" in depth and "Take a loop" not in use
    assert "Take the deep encoder if its gain counts" in what_to_use(pd.DataFrame([alike]))
    assert "Take the loop if memory counts" in what_to_use(pd.DataFrame([alike | {"loop_low": 0.001}]))


def test_depth_is_counted_with_a_correction_for_the_number_of_comparisons() -> None:
    """Of twenty comparisons with p = 0.02 none is left; depth that costs accuracy is named as such."""
    many = pd.DataFrame([PAYS | {"depth_p": 0.02}] * 20)
    assert "With Holm's correction for the number of comparisons it is shown in none." in where_depth_pays(many)
    costs = gain("sst2", (-0.02, -0.03, -0.01), (0.0, -0.01, 0.01), float("nan"))
    words_said = where_depth_pays(pd.DataFrame([PAYS, costs]))
    assert "it is shown in 1: multi_nli (from nothing)." in words_said
    assert "The deep encoder is less accurate than the shallow one: sst2 (from nothing)." in words_said


def test_the_best_is_named_with_those_that_may_be_better() -> None:
    close = said(found({STANDARD: 0.8, RECURRENT: 0.8, "standard-6x512": 0.9, "all-MiniLM-L6-v2": 0.901}), PAYS)[1]
    far = said(found({STANDARD: 0.8, RECURRENT: 0.8, "standard-6x512": 0.85, "all-MiniLM-L6-v2": 0.901}), PAYS)[1]
    assert "It is not shown to be the best: its interval over seeds overlaps with that of standard-6x512." in close
    assert "not shown" not in far


def test_the_best_for_its_cost_is_chosen_on_validation_texts_among_equal_times() -> None:
    """Counting words wins by its time until its validation accuracy is too low, however well it does on the test texts."""
    tables = found({STANDARD: 0.8, RECURRENT: 0.799})
    times = pd.DataFrame({"model": [STANDARD, RECURRENT], "ms_one": 3.0, "ms_in_batch": [2.0, 1.0], "dtype": "bf16"})

    def cheap() -> str:
        return words.five_lines(
            pd.DataFrame([PAYS]), glance.at_a_glance(tables, "sst2", times), glance.verdicts(tables, 0.01), STANDARD, RECURRENT,
            "sst2", 0.01,
        ).split("\n")[2]  # fmt: skip

    assert NAME in cheap() and "0.04 ms a text in full batches" in cheap()
    tables["classical"]["validation_accuracy"] = 0.7
    assert RECURRENT in cheap() and "1 ms a text" in cheap()


def test_nothing_is_concluded_from_models_that_have_learned_nothing() -> None:
    tables = found({STANDARD: 0.51, RECURRENT: 0.49})
    depth, best, cheap, _, use = said(tables, gain("sst2", (0.02, 0.01, 0.03), (0, -0.005, 0.005), 1, learned=False))
    assert "Not shown by these runs" in depth and "none is the best" in best
    assert "No model" in cheap and "Nothing follows" in use
    compared = glance.verdicts(tables, 0.01)
    assert compared["verdict"].tolist() == ["not learned"]
    assert words.forest(compared) == "1 comparison is withheld, because neither model is above the most frequent label."


@pytest.mark.parametrize(
    ("difference", "seeds", "verdict"),
    [(0.02, 3, "first"), (-0.02, 3, "second"), (0.001, 3, "alike"), (0.008, 3, "first"), (0.02, 2, "few seeds")],
)
def test_the_verdict_follows_the_interval(difference: float, seeds: int, verdict: str) -> None:
    tables = found({STANDARD: 0.8, RECURRENT: 0.8 + difference}, seeds=seeds)
    assert glance.verdicts(tables, 0.01)["verdict"].tolist() == [verdict]


def test_the_figures_draw_every_model_and_every_comparison() -> None:
    tables = found({STANDARD: 0.8, RECURRENT: 0.77, "all-MiniLM-L6-v2": 0.89})
    models, compared = glance.at_a_glance(tables, "sst2"), glance.verdicts(tables, 0.01)
    figure = draw.at_a_glance(models, words.glance_title(models, "sst2"))
    rows = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert rows == ["MiniLM-L6", "Standard 6×384", "Counting words", "Recurrent 3×2×256"]
    assert figure.axes[0].get_xlim()[1] <= 1
    other = compared.assign(data="domains", verdict="open")
    figure = draw.forest(pd.concat([compared, other]), words.forest_title(compared), "sst2")
    rows = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert rows == ["Recurrent 3×2×256 − Standard 6×384", "on Domains"]
    marks = [line.get_markerfacecolor() for line in figure.axes[0].get_lines() if line.get_marker() == "o"]
    assert marks[1] == "white" != marks[0]


def test_the_first_figure_keeps_the_arms_the_pretrained_and_the_best_baseline() -> None:
    models = glance.at_a_glance(found({STANDARD: 0.8, RECURRENT: 0.77, "standard-6x512": 0.9, "all-MiniLM-L6-v2": 0.89}), "sst2")
    worse = models[models["family"] == "classical"].assign(model="another baseline", mean=0.1)
    kept = glance.headline(pd.concat([models, worse]), [STANDARD, RECURRENT])
    assert kept["model"].tolist() == ["all-MiniLM-L6-v2", STANDARD, NAME, RECURRENT]


def test_a_banner_says_where_all_texts_are_generated() -> None:
    assert "These texts are generated" in words.made_up(pd.Series(["embedded", "embedded 50%"]))
    assert words.made_up(pd.Series(["embedded", "sst2"])) == ""
