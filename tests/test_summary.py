"""The first screen of the report says what its tables show, and no more."""

from __future__ import annotations

import pandas as pd
import pytest

from rtxlib.runs.counting_words import MAJORITY, NAME
from rtxstudy.evaluation import glance
from rtxstudy.figures import summary as draw
from rtxstudy.words import summary as words

STANDARD, RECURRENT = "standard-6x384", "recurrent-3x2x256"


def gain(data: str, depth: tuple, sharing: tuple, kept: float, seeds: int = 3, learned: bool = True) -> dict:
    named = dict(zip(("depth_gain", "depth_low", "depth_high"), depth, strict=True))
    named |= dict(zip(("sharing_gain", "sharing_low", "sharing_high"), sharing, strict=True))
    more = {"kept": kept, "kept_low": kept / 2, "kept_high": 2 * kept, "n_seeds": seeds, "learned": learned}
    return {"regime": "from nothing", "data": data, **named, **more, "loop_parameters": 50, "deep_parameters": 100}


PAYS = gain("multi_nli", (0.02, 0.01, 0.03), (0.003, -0.007, 0.012), 1.1)
FLAT = gain("cola", (0.0, -0.01, 0.009), (0.0, -0.01, 0.01), float("nan"))


def found(accuracies: dict[str, float], majority: float = 0.5, seeds: int = 3) -> dict[str, pd.DataFrame]:
    """Runs and comparisons of one data set, with the study's encoders paired."""
    rows = [
        {"study": "baseline", "data": "sst2", "model": model, "family": "pretrained" if "MiniLM" in model else "standard"}
        | {"seed": seed, "accuracy": mean + 0.002 * seed, "n_test": 900, "ms_median": 3.0, "key": f"{model}{seed}"}
        | {"spec": "{}", "dtype": "bf16"}
        | {"parameters": 1e7, "non_embedding_parameters": 3e6}
        for model, mean in accuracies.items()
        for seed in range(seeds)
    ]
    counted = [(MAJORITY, majority, 0.0), (NAME, max(majority, accuracies[STANDARD] - 0.005), 0.04)]
    classical = [
        {"study": "baseline", "data": "sst2", "model": model, "family": "classical", "accuracy": value, "ms_per_text": ms}
        | {"parameters": 1e5}
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
    assert "Depth pays in 1 of 2 comparisons, on multi_nli." in depth and "50\xa0% of the parameters" in depth
    assert "all-MiniLM-L6-v2, 89.2\xa0%" in best
    assert NAME in cheap and "0.04 ms" in cheap
    assert "No comparison of the loop with depth is open." in unsettled
    assert "Fine-tune a pretrained encoder" in use and "Count words" in use and "fewer layers" in use and "cola" in use


def test_where_depth_pays_nowhere_there_is_nothing_to_replace() -> None:
    assert "There is nothing to replace" in said(found({STANDARD: 0.8, RECURRENT: 0.8}), FLAT)[0]
    few = gain("sst2", (0.02, 0.01, 0.03), (0.0, -0.005, 0.005), 1.0, seeds=2)
    assert "Not shown by these runs" in said(found({STANDARD: 0.8, RECURRENT: 0.8}), few)[0]


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
