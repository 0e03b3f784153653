"""The benchmark table is complete, and the documentation shows its numbers."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import torch
from matplotlib.text import Text
from near import assert_near
from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

from benchmarks import classify, compare, measure, memory, plans, scale
from benchmarks.__main__ import ROOMS
from benchmarks.peers import Peer
from rtx.process import SETTINGS
from rtxlib.errors import InputError
from rtxlib.models import build
from rtxlib.models.size import parameters
from rtxstudy.questions.deployment import growth_figures
from rtxstudy.questions.your_texts import plans as constants

ROOT = Path(__file__).resolve().parents[1]
ROWS = json.loads((ROOT / "reports" / "benchmarks.json").read_text())["rows"]
FIELDS = {"name", "ours", "peer", "unit", "ratio", "aim", "n", "device", "versions", "settings", "spread"}


def test_every_committed_row_is_whole_and_says_what_was_not_measured() -> None:
    measured = {row["room"] for row in ROWS}
    assert {"training", "prediction", "embedding", "growth", "command", "pages"} <= measured <= set(ROOMS)
    assert len({row["name"] for row in ROWS}) == len(ROWS)
    for row in ROWS:
        assert set(row) >= FIELDS
        if row["ratio"] is None:
            assert row["n"] == 0 and row["settings"].startswith("not measured: ")
        else:
            assert row["n"] >= 1 and row["ours"] > 0 and row["peer"] > 0
            assert row["spread"] is None or row["spread"][0] <= row["ratio"] <= row["spread"][1]


def test_a_row_is_of_medians_and_of_the_ratios_of_each_round() -> None:
    faster = measure.row("a", [10, 30, 20], [10, 10, 10], "rows/s", 1.5, (), "")
    assert (faster.ours, faster.peer, faster.ratio, faster.n, faster.spread) == (20, 10, 2.0, 3, (1.0, 3.0))
    sooner = measure.row("b", [1.0, 2.0, 4.0], [2.0, 2.0, 2.0], "ms", 1.0, (), "", less_is_better=True)
    assert (sooner.ratio, sooner.spread) == (1.0, (0.5, 2.0))


def test_two_ways_take_turns_in_changing_order() -> None:
    calls: list[str] = []

    def way(name: str) -> float:
        calls.append(name)
        return len(calls)

    found = measure.take_turns({"ours": lambda: way("ours"), "peer": lambda: way("peer")}, 2)
    assert calls == ["peer", "ours", "ours", "peer"] and found == {"ours": [2, 3], "peer": [1, 4]}


def test_memory_is_the_most_that_a_way_or_a_command_held() -> None:
    ways = '{"ours": lambda: float(len(b"x" * 200_000_000)), "other": lambda: 0.0}'
    code = f"from benchmarks import measure; held = measure.take_turns({ways}, 1); print(held['ours'].mb, held['other'].mb)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # what ours frees may stay
    if sys.platform == "linux":
        large, small = map(float, done.stdout.split())
        assert small + 150 < large < small + 250
    else:  # only Linux tells a process its peak
        assert done.stdout.split() == ["None", "None"]
    held = measure.take_turns({"ours": lambda: 1.0, "other": lambda: 1.0}, 2)
    found = measure.row("a", held["ours"], held["other"], "ms", None, (), "")
    assert (found.ours_mb, found.peer_mb) == (held["ours"].mb, held["other"].mb)
    assert measure.row("a", held["ours"], [1.0, 1.0], "ms", None, (), "").peer_mb is None
    peaks: list[float] = []
    for size in (0, 200_000_000):
        with memory.of_commands(peaks):
            subprocess.run([sys.executable, "-c", f"import time; held = b'x' * {size}; time.sleep(0.3)"], check=True)
    assert 150 < peaks[1] - peaks[0] < 250


def test_a_peer_runs_by_itself_with_nothing_of_ours_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "fine", "film"]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    BertTokenizerFast(str(tmp_path / "vocab.txt")).save_pretrained(tmp_path)
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    model = BertForSequenceClassification(BertConfig(vocab_size=len(words), **sizes)).eval()
    model.save_pretrained(tmp_path)
    with Peer() as peer:
        seconds, logits = peer("plain_loop", tmp_path, torch.float32, ["a film", "fine fine film", "a"], 2, 16)
        given = Path(f"/proc/{peer.process.pid}/environ").read_bytes().split(b"\0")
        assert not {name.partition(b"=")[0].decode() for name in given} & set(SETTINGS)
        with pytest.raises(RuntimeError, match="ended in no_such_peer"):
            peer("no_such_peer")
    with torch.inference_mode():
        alone = model(torch.tensor([[2, 5, 7, 3]])).logits.numpy()
    assert seconds > 0 and logits.shape == (3, 2)
    assert_near(logits[:1], alone)


def of_tool(tool: str, draw: int, accuracy: float, rate: float, **more: object) -> dict[str, object]:
    row = {"data": "sst2-64", "draw": draw, "tool": tool, "minutes": 8.0, "settings": "as it comes", "train_rows": 128}
    return row | {field: 1.0 for field in compare.AVERAGED} | {"accuracy": accuracy, "texts_per_second": rate} | more


def test_tools_are_compared_by_their_means_over_the_draws() -> None:
    eight = {"accuracy": 0.8, "macro_f1": 0.8, "mb": 20.0, "texts_per_second": 350.0}
    rows = [of_tool("ours", draw, accuracy, 200, eight_bits=eight) for draw, accuracy in enumerate((0.80, 0.78))]
    rows.append(of_tool("setfit", 0, 0.785, 100))
    rows.append({"data": "sst2-64", "draw": 0, "tool": "fasttext", "minutes": 8.0, "why": "not measured: no environment"})
    ours, setfit, fasttext = compare.means(rows)
    assert (ours["accuracy"], ours["n"], ours["eight_bits"]) == (pytest.approx(0.79), 2, eight)
    assert ours["spread"] == pytest.approx(0.0141, abs=1e-4) and setfit["spread"] is None and "why" in fasttext
    said = compare.verdicts([ours, setfit, fasttext])
    assert said == [
        ("sst2-64", "8", "accuracy", "setfit", "setfit", "+1.5", "–", "met"),  # in the draw that both have
        ("sst2-64", "8", "speed", "setfit", "–", "+1.5", "2.0", "missed"),
        ("sst2-64", "8", "speed in eight bits", "setfit", "–", "+2.5", "3.5", "met"),
        ("sst2-64", "8", "few labels", "setfit", "–", "+1.5", "–", "met"),
    ]


@pytest.mark.parametrize(
    ("ours", "least", "said", "word"),
    [
        ((0.78, 0.80, 0.82), 0.0, "+0.3 ± 1.2 (n = 3)", "met"),
        ((0.78, 0.79, 0.81), 0.0, "-0.3 ± 0.9 (n = 3)", "missed within the noise"),
        ((0.76, 0.76, 0.76), 0.0, "-3.7 ± 0.3 (n = 3)", "missed"),
        ((0.80, 0.80), -0.5, "+0.5", "met"),
    ],
)
def test_a_difference_of_several_draws_has_its_noise(ours: tuple[float, ...], least: float, said: str, word: str) -> None:
    rows = [of_tool("ours", draw, accuracy, 200) for draw, accuracy in enumerate(ours)]
    rows += [of_tool("setfit", draw, accuracy, 100) for draw, accuracy in enumerate((0.80, 0.79, 0.80)[: len(ours)])]
    assert compare.beside(*compare.means(rows), least) == (said, word)


@pytest.mark.parametrize("page", scale.PAGES, ids=lambda page: page.stem)
def test_the_pages_hold_what_is_computed_from_the_committed_figures(page: Path) -> None:
    assert "| " in page.read_text(encoding="utf-8") and page.read_text(encoding="utf-8") == scale.page_with(page)


@pytest.mark.parametrize(("hours", "says"), [(0.5, "30 min"), (1.25, "1.2 h"), (30, "30 h"), (300, "12 days")])
def test_durations_are_in_words_of_their_size(hours: float, says: str) -> None:
    assert scale.duration(hours) == says


def test_the_message_of_a_step_is_as_large_as_the_page_says() -> None:
    page = " ".join(scale.PAGES[0].read_text(encoding="utf-8").split())
    said = re.search(r"(\d+) MB for `standard-6x384`, (\d+) MB for `recurrent-3x2x256`", page).groups()
    for megabytes, model in zip(said, ("standard-6x384", "recurrent-3x2x256"), strict=True):
        assert round(2 * 4 * parameters(build(model))["total"] / 1e6) == int(megabytes)


def test_memory_grows_with_a_long_text_and_not_with_its_square() -> None:
    """Fused attention holds no array of length × length, which for 16,384 tokens is 268 MB even with one byte per entry."""
    measured = subprocess.run(
        [sys.executable, "-c", "from benchmarks.growth import peak_bytes; print(peak_bytes('sdpa', 16384))"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    assert 0 < int(measured.stdout) < 16384**2


def test_the_figures_show_the_committed_fits_and_refuse_what_is_missing() -> None:
    folder = ROOT / "figures" / "benchmarks"
    for draw, stem, words in (
        (growth_figures.time_by_work, "time_by_work", "ms a unit"),
        (growth_figures.memory_by_length, "memory_by_length", "N^"),
    ):
        table = pd.read_csv(folder / f"{stem}.csv")
        drawn = draw(table)
        said = [text.get_text() for text in drawn.findobj(Text)]
        assert sum(words in text for text in said) == table.iloc[:, 0].nunique()
        with pytest.raises(InputError, match="needs a column"):
            draw(table.drop(columns=table.columns[1]))


def test_an_unknown_room_is_told_in_a_sentence() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "trainin"], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 1
    assert done.stderr.strip().endswith("Did you mean 'training'?") and "Traceback" not in done.stderr


@pytest.mark.parametrize("tool", ["words", "finetuned"])
def test_a_plain_tool_learns_from_its_rows_and_says_what_it_took(tool: str, hub: str, tmp_path: Path) -> None:
    good, bad = [f"a fine film number {i}" for i in range(24)], [f"what a dull film {i}" for i in range(24)]
    classify.write(tmp_path / "rows.csv", (good + bad, ["good"] * 24 + ["bad"] * 24))
    row = classify.measured(tool, tmp_path / "rows.csv", tmp_path / "rows.csv", 1.0, tmp_path / "work")
    assert row["accuracy"] > 0.9 and row["n_test"] == 48 and row["mb"] > 0
    assert all(version in row["versions"] for version in classify.TOOLS[tool][1])


def test_what_a_shorter_training_is_expected_to_lose_is_what_was_measured() -> None:
    rows = json.loads((ROOT / "reports/benchmark_plans.json").read_text())["rows"]
    assert {row["data"] for row in rows} == set(plans.DATA)
    means = plans.means(rows)["lost"]
    assert list(means.index) == ["epochs", "rows", "tokens", "few rows read"]
    taken = [constants.HALF_THE_EPOCHS, constants.HALF_THE_ROWS, constants.UNREAD, constants.FEW_READ_LOSE]
    assert taken == pytest.approx(means.to_list(), rel=0.05)
