"""What the README says it found is what the committed tables hold."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rtxstudy.evaluation.statistics import mean_interval

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SAID = " ".join(README.split())  # however its lines are broken
MATCHED = ("standard-3x256", "standard-6x256")  # of notebook 05, three seeds
RESULTS = ROOT / "data" / "results" / "full"


def table_rows() -> dict[str, list[str]]:
    """The cells of the README's table of findings, by model."""
    finding = README.split("<!-- finding -->")[1].split("<!-- /finding -->")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in finding.splitlines() if line.startswith("|")]
    return {row[0]: row[1:] for row in cells[2:]}


def number(cell: str) -> float:
    return float(cell.replace(",", "").replace("−", "-"))


def test_the_table_holds_means_and_medians_of_the_committed_runs() -> None:
    runs = pd.read_parquet(RESULTS / "runs.parquet")
    runs = runs[runs["data"] == "sst2"]
    shown = table_rows()
    assert {"standard-6x384", "recurrent-3x2x256"} <= set(shown) & set(runs["model"])
    for model in set(shown) & set(runs["model"]):
        own = runs[runs["model"] == model]
        accuracy, spread, parameters, outside, gflop, one_text, full, minutes = map(number, shown[model])
        assert accuracy == pytest.approx(own["accuracy"].mean(), abs=5e-5)
        assert spread == pytest.approx(own["accuracy"].std(), abs=5e-5) and len(own) == (3 if model in MATCHED else 5)
        assert {parameters} == set(own["parameters"]) and {outside} == set(own["non_embedding_parameters"])
        assert gflop == pytest.approx(own["forward_flops"].iloc[0] / 1e9, abs=5e-4)
        assert one_text == pytest.approx(own["ms_median"].median(), abs=0.05)
        assert full == pytest.approx(own["ms_per_text"].median(), abs=5e-3)
        assert minutes == pytest.approx(own["train_cpu_seconds"].median() / 60, abs=0.05)


def test_the_interval_is_that_of_the_committed_comparison() -> None:
    table = pd.read_parquet(RESULTS / "comparisons.parquet")
    row = table[(table["comparison"] == "recurrent-3x2x256 − standard-6x384") & (table["study"] == "recurrent")].squeeze()
    said = re.search(
        r"95 % interval of ([+−][\d.]+) to ([+−][\d.]+) points; .*?"
        r"Without one seed or another the interval begins as low as ([+−][\d.]+)\. ",
        SAID,
    )
    low, high, without = map(number, said.groups())
    assert (low, high, without) == pytest.approx(tuple(100 * row[["low", "high", "low_without"]].astype(float)), abs=0.051)
    assert 100 * row["low"] > -1 and 100 * row["low_without"] < -1  # "narrowly"


def test_what_is_said_of_pretraining_are_means_of_the_committed_runs() -> None:
    said = re.search(
        r"reaches (0\.\d+) \(mean of three seeds.*?F1 of (0\.\d+) \(± (0\.\d+)\), BERT-mini from nothing (0\.\d+) "
        r"\(± (0\.\d+)\), which three splits do not tell apart, counting words (0\.\d+), "
        r"and MiniLM frozen under a head that learns (0\.\d+)",
        SAID,
    )
    runs, classical = (pd.read_parquet(RESULTS / f"{name}.parquet") for name in ("runs", "classical"))
    runs = runs.sort_values("seed")
    words = classical[(classical["study"] == "spam") & classical["model"].str.startswith("tf-idf")]["f1"]
    found = [
        runs[(runs["data"] == "sst2") & (runs["model"] == "all-MiniLM-L6-v2")]["accuracy"],
        runs[(runs["data"] == "sms_spam") & (runs["model"] == "all-MiniLM-L6-v2")]["f1"],
        runs[(runs["data"] == "sms_spam") & (runs["model"] == "bert-mini")]["f1"],
        words,
        runs[(runs["data"] == "sms_spam") & (runs["model"] == "all-MiniLM-L6-v2 frozen")]["f1"],
    ]
    assert [len(part) for part in found] == [3, 3, 3, 3, 3]
    with_spread = [of for part in found[1:3] for of in (part.mean(), part.std())]
    expected = [found[0].mean(), *with_spread, found[3].mean(), found[4].mean()]
    assert [number(cell) for cell in said.groups()] == pytest.approx(expected, abs=6e-4)
    apart = mean_interval(np.subtract(*(part.to_numpy() for part in found[1:3])))
    assert apart.low < 0 < apart.high


def test_what_is_said_of_the_aim_of_0_81_is_so() -> None:
    runs = pd.read_parquet(RESULTS / "runs.parquet")
    headline = runs[(runs["data"] == "sst2") & runs["model"].isin(["standard-6x384", "recurrent-3x2x256"])]
    assert set(headline["n_test"]) == {872}
    means = headline.groupby("model")["accuracy"].mean()
    assert ("Both miss our aim of 0.81" in SAID) == bool((means < 0.81).all())


def test_what_is_said_of_a_second_pass_and_of_further_layers_is_what_the_committed_comparisons_hold() -> None:
    table = pd.read_parquet(RESULTS / "comparisons.parquet").query("study == 'width_vs_depth'").set_index("comparison")
    for a, said in (
        ("recurrent-3x2x256", r"second pass costs ([\d.]+) points \(([+−][\d.]+) to ([+−][\d.]+)\)"),
        ("standard-6x256", r"instead of three cost ([\d.]+) points \(([+−][\d.]+) to ([+−][\d.]+)\)"),
    ):
        row = 100 * table.loc[f"{a} − standard-3x256", ["difference", "low", "high"]].astype(float)
        costs, low, high = map(number, re.search(said, SAID).groups())
        assert (-costs, low, high) == pytest.approx(tuple(row), abs=0.051) and row["high"] < 0
    words = pd.read_parquet(RESULTS / "comparisons.parquet")
    words = words[words["comparison"].str.endswith("tf-idf + logistic regression") & (words["data"] == "sst2")]
    assert len(words) == 2 and (words["low"] < 0).all() and (words["high"] > 0).all()


def numbers(text: str) -> list[float]:
    """Every decimal in a sentence."""
    return [number(found) for found in re.findall(r"[+−]?\d+\.\d+", text)]


def test_what_is_said_of_the_grid_is_what_the_committed_tables_hold() -> None:
    blocks = pd.read_parquet(RESULTS / "over_blocks.parquet").set_index(["passes", "against"])
    cells = pd.read_parquet(RESULTS / "grid.parquet")
    said = re.search(
        r"Of (\d+) encoders .*?one seed each\) (the best has .*?), in no order of size\. (Over nine blocks .*?layers)\.", SAID
    )
    assert int(said[1]) == len(cells) and set(cells["n"]) == {1}
    assert numbers(said[2]) == pytest.approx([cells["mean"].max(), cells["mean"].min()], abs=6e-4)
    rows = [blocks.loc[place] for place in ((2, "one pass"), (3, "one pass"), (2, "layers of their own"))]
    assert [row["blocks"] for row in rows] == [9, 9, 3]
    expected = [100 * row[end] for row in rows for end in ("difference", "low", "high")]
    assert numbers(said[3]) == pytest.approx(expected, abs=0.051)
    assert (blocks["low"] < 0).all() and (blocks["high"] > 0).all()


def test_what_is_said_of_less_data_and_other_lengths_is_what_the_committed_comparisons_hold() -> None:
    table = pd.read_parquet(RESULTS / "comparisons.parquet").query("study == 'sensitivity'").set_index("data")
    said = re.search(r"recurrent minus standard is (.*? on the longest)\.", SAID)[1]
    rows = [table.loc[data] for data in ("sst2 50%", "sst2 10%", "sst2 shortest", "sst2 longest")]
    assert {row["n_seeds"] for row in rows} == {3} and all(row["low"] < 0 < row["high"] for row in rows)
    expected = [100 * row[end] for row in rows for end in ("difference", "low", "high")]
    assert numbers(said) == pytest.approx(expected, abs=0.051)


def test_what_is_said_of_texts_elsewhere_is_what_the_committed_tables_hold() -> None:
    carried = pd.read_parquet(RESULTS / "transfer.parquet").query("tested_on == 'yelp_polarity'")["mean"].tolist()
    said = re.search(r"the two score (0\.\d+) and (0\.\d+) \(three seeds\), counting words (0\.\d+)", SAID)
    assert [number(cell) for cell in said.groups()] == pytest.approx(carried, abs=6e-4)


def test_what_is_said_of_the_leak_that_sst2_was_published_with_is_so() -> None:
    audit = pd.read_parquet(RESULTS / "audit.parquet")
    leaks = audit[(audit["data"] == "sst2") & (audit["check"] == "leak") & (audit["rows"] > 0) & (audit["left"] == "train")]
    said = re.search(r"(\d+) training phrases of more than three words lie inside sentences of the dev set", README)
    assert leaks["right"].tolist() == ["test"] and int(said[1]) == leaks["rows"].item()


def test_every_file_the_readme_points_to_is_there() -> None:
    links = re.findall(r"\]\((?!http)([^)]+)\)", README)
    assert links and [link for link in links if not (ROOT / link).exists()] == []


def test_every_command_of_the_readme_exists() -> None:
    from rtxlib.cli import cli

    named = set(re.findall(r"`rtx (\w+)", README))
    assert named and named <= set(cli.commands)
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), flags=re.M))
    assert set(re.findall(r"(?:`|^)make (\w+)", README, flags=re.M)) <= targets


def test_what_is_said_of_the_loop_is_what_the_committed_tables_hold() -> None:
    tables = {name: pd.read_parquet(RESULTS / f"{name}.parquet") for name in ("runs", "states", "worth", "early_exits")}
    said = re.search(
        r"scores (0\.\d+) after one pass and (0\.\d+) after four \(five seeds\): on these texts its later passes harm.*?"
        r"throughput is ([\d.]+) times.*?"
        r"for ([+−][\d.]+) points of accuracy \(95 % interval ([+−][\d.]+) to ([+−][\d.]+), five seeds\).*?"
        r"gives ([\d.]+) times.*?four times reaches (0\.\d+) \((0\.\d+) in .*? where one pass gives (0\.\d+); "
        r"four layers of their own reach (0\.\d+), four unshared passes (0\.\d+)\. .*?φ is ([\d.]+) \(([\d.]+) or more, "
        r"42 runs; between ([\d.]+) and ([\d.]+) without",
        SAID,
    )
    found = [number(cell) for cell in said.groups()]
    states = tables["states"]
    own = states[(states["model"] == "recurrent-3x4x256 uniform") & (states["weights"] == "trained")]
    after = own.groupby("iteration")["accuracy"]
    assert after.size()[1] == 5
    runs = tables["runs"][tables["runs"]["data"] == "embedded"].groupby("model")["accuracy"].mean()
    exits = tables["early_exits"].query("data == 'sst2' and criterion == 'confidence'").iloc[0]
    worth = tables["worth"].set_index("data").loc["embedded"]
    expected = [
        after.mean()[1], after.mean()[4], exits["throughput"], *(100 * exits[end] for end in ("difference", "low", "high")),
        exits["fixed_throughput"], runs["recurrent-1x4x64 none"], runs["recurrent-1x4x64"], runs["standard-1x64"],
        runs["standard-4x64"], runs["recurrent-1x4x64 unshared"], worth["phi"], worth["low"], worth["least"], worth["largest"],
    ]  # fmt: skip
    tolerance = [6e-4, 6e-4, 6e-3, 0.06, 0.06, 0.06, 6e-3, *(5 * [6e-4]), *(4 * [6e-3])]
    assert all(abs(a - b) < t for a, b, t in zip(found, expected, tolerance, strict=True)), (found, expected)
    assert exits["fixed_passes"] == 1 and exits["fixed_throughput"] > exits["throughput"] and exits["n_seeds"] == 5
    later = (own.pivot(index="seed", columns="iteration", values="accuracy")[[1, 4]]).diff(axis=1)[4]
    assert mean_interval(later).high < 0 and worth["low"] < 1  # they harm; and φ = 1 is not excluded
    assert pd.isna(tables["worth"].set_index("data").loc["sst2", "phi"]) and worth["high"] == float("inf")
