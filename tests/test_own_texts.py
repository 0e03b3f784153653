"""Training on a person's own texts: the recipe fits the number of rows, a run that learned nothing says so, and a score on
texts that the run has seen is not taken for a score on new ones."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from in_process import rtx

from rtx import archive, use
from rtx.baselines.counting_words import baseline
from rtx.training import fitting
from rtxlib.data.datasets import Generated, data_spec
from rtxlib.data.prepare import prepare
from rtxlib.errors import InputError
from rtxlib.models import preset
from rtxlib.models.presets import CHECKPOINTS, PRESETS
from rtxlib.runs import seen, store
from rtxlib.runs.spec import RunSpec
from rtxlib.runs.train import train_run
from rtxlib.training.recipe import RECIPES, recipe

FINE, DULL, FILLER = ("fine", "lovely", "moving"), ("dull", "stale", "clumsy"), ("film", "plot", "cast", "end", "start")


def texts(rows: int, seed: int = 0, good: float = 0.64) -> pd.DataFrame:
    """Labelled texts, all different, of which a share is good; one word of five tells the label."""
    rng = np.random.default_rng(seed)
    of_row = [(f"A {rng.choice(words)} {rng.choice(FILLER)} with {rng.choice(FILLER)} {seed} {row}", label)
              for row in range(rows) for words, label in [(FINE, "good") if rng.random() < good else (DULL, "bad")]]  # fmt: skip
    return pd.DataFrame(of_row, columns=["text", "label"])


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RTX_HOME", str(folder))
        yield folder


@pytest.fixture(scope="module")
def run(home: Path) -> SimpleNamespace:
    """A run on a file of 120 rows that is gone by now, and the texts of its splits."""
    file = home / "mine.csv"
    texts(120).to_csv(file, index=False)
    record, _ = trained(file, "--recipe", "smoke")
    data = prepare(data_spec("file", path=str(file)), home / "data" / "prepared", progress=False)
    splits = {name: data.rows(name)[["text", "label_name"]].set_axis(["text", "label"], axis=1) for name in data.splits}
    file.unlink()
    return SimpleNamespace(key=record["key"], folder=Path(record["run"]), accuracy=record["accuracy"], **splits)


def trained(file: Path, *more: str) -> tuple[dict, str]:
    """The record that `rtx train` prints, and what it says on standard error."""
    done = rtx("train", "--model", "standard-1x32", "--data", file, *more, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


def scores(key: str, *tables: pd.DataFrame, folder: Path) -> tuple[dict, str]:
    pd.concat(tables).to_csv(folder / "scored.csv", index=False)
    done = rtx("evaluate", key, folder / "scored.csv", "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


# ---------------------------------------- texts that the run has seen


def test_texts_that_the_run_has_seen_are_scored_apart(run: SimpleNamespace, tmp_path: Path) -> None:
    shouted = run.train.assign(text="  " + run.train["text"].str.upper())  # the same after cleaning
    new = texts(30, seed=1)
    found, said = scores(run.key, shouted, run.validation, new, folder=tmp_path)
    assert (found["in_training"], found["in_validation"], found["n_seen"], found["n"]) == (96, 12, 108, 30)
    assert "The run was trained on 96 of the 138 texts and chosen on 12." in said
    assert "accuracy is that of the other 30, accuracy_seen that of these 108." in said
    alone, nothing_said = scores(run.key, new, folder=tmp_path)
    assert nothing_said == "" and alone["n"] == 30 and not [name for name in alone if name.endswith("_seen")]
    assert {name: found[name] for name in ("accuracy", "f1", "confusion")} == {
        name: alone[name] for name in ("accuracy", "f1", "confusion")
    }


@pytest.mark.parametrize(
    "changed",
    ["{}.", "\ufeff{}", "{}\u200b", "“{}”", "`{}`", "({}) !!", "{}\t\n", "- {} …"],
    ids=["full stop", "mark", "zero width", "quotes", "backquotes", "brackets", "blanks", "dash"],
)
def test_a_text_that_is_changed_only_outside_its_words_was_seen(changed: str, run: SimpleNamespace) -> None:
    given = [changed.format(text) for text in run.train["text"]]
    assert use.evaluate(archive.find(run.folder.parent, run.key), given, run.train["label"].tolist())["in_training"] == 96


def test_full_width_letters_and_inner_zero_width_signs_make_no_new_text(run: SimpleNamespace) -> None:
    wide = [text.translate({c: c + 0xFEE0 for c in range(0x21, 0x7F)}) for text in run.train["text"]]
    split = [text.replace("i", "i\u200d") for text in run.train["text"]]
    found = archive.find(run.folder.parent, run.key)
    assert all(use.evaluate(found, given, run.train["label"].tolist())["n"] == 0 for given in (wide, split))
    other = (run.train["text"] + " twice").tolist()  # another word is another text
    assert use.evaluate(found, other, run.train["label"].tolist())["in_training"] == 0
    assert seen._plain("!?") != seen._plain("!!")


def test_the_hashes_of_the_first_runs_still_know_exact_copies(run: SimpleNamespace, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(run.folder, tmp_path / "copy"))
    cleaned = [(split, text.lower()) for split in seen.SPLITS for text in getattr(run, split)["text"]]
    table = pd.DataFrame({"hash": seen._hashes(text for _, text in cleaned), "split": [split for split, _ in cleaned]})
    table.sort_values("hash").to_parquet(copy / seen.FILE, index=False)
    (copy / store.MARK).write_text("{}")
    found = use.evaluate(archive.find(tmp_path, str(copy)), run.train["text"].tolist(), run.train["label"].tolist())
    assert found["in_training"] == 96 and found["overlap_checked"]


def test_no_score_is_honest_when_all_texts_were_seen(run: SimpleNamespace, tmp_path: Path) -> None:
    found, said = scores(run.key, run.train, folder=tmp_path)
    assert "accuracy" not in found and "f1" not in found and found["n"] == 0 and 0 <= found["accuracy_seen"] <= 1
    assert "no score here is honest" in said and said.count("\n") == 1
    plain = rtx("evaluate", run.key, tmp_path / "scored.csv").stdout
    assert "accuracy_seen" in plain and not any(line.startswith("accuracy ") for line in plain.splitlines())


def test_the_test_split_of_the_runs_own_data_was_not_seen(run: SimpleNamespace, tmp_path: Path) -> None:
    found, said = scores(run.key, run.test, folder=tmp_path)
    assert found["n"] == len(run.test) and found["in_training"] == found["in_validation"] == 0 and said == ""
    assert found["accuracy"] == pytest.approx(run.accuracy)


def test_a_run_holds_hashes_of_its_texts_and_no_text(run: SimpleNamespace) -> None:
    table = pd.read_parquet(run.folder / seen.FILE)
    assert table["split"].value_counts().to_dict() == {"train": 96, "validation": 12}
    hashes = table["plain_hash"]
    assert hashes.is_monotonic_increasing and hashes.is_unique and str(hashes.dtype) == "uint64"
    whole = (run.folder / seen.FILE).read_bytes()
    assert not any(word.encode() in whole for word in (*FINE, *DULL))


@pytest.mark.parametrize("changed", ["fewer rows", "none"])
def test_a_run_whose_hashes_of_texts_are_damaged_answers_nothing(run: SimpleNamespace, tmp_path: Path, changed: str) -> None:
    copy = shutil.copytree(run.folder, tmp_path / "copy")
    file = copy / "seen_texts.parquet"
    if changed == "none":
        file.unlink()
    else:
        pd.read_parquet(file).iloc[:3].to_parquet(file)
    run.train.to_csv(tmp_path / "train.csv", index=False)
    done = rtx("evaluate", copy, tmp_path / "train.csv")
    assert done.returncode == 2 and "is damaged" in done.stderr and "seen_texts.parquet" in done.stderr


def test_an_older_run_asks_its_prepared_data_and_without_them_says_so(
    run: SimpleNamespace, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(home, tmp_path / "old")
    monkeypatch.setenv("RTX_HOME", str(tmp_path / "old"))
    old = archive.find(tmp_path / "old" / "data" / "runs", run.key)
    (old.path / seen.FILE).unlink()
    mark = json.loads((old.path / store.MARK).read_text())
    del mark["files"][seen.FILE]
    (old.path / store.MARK).write_text(json.dumps(mark))
    given = run.train["text"].tolist(), run.train["label"].tolist()
    assert use.evaluate(old, *given)["in_training"] == 96
    for table in (tmp_path / "old" / "data" / "prepared").glob("*/train.parquet"):
        table.unlink()  # damaged prepared data tell nothing
    found = use.evaluate(old, *given)
    assert not found["overlap_checked"] and "in_training" not in found and found["n"] == 96
    pd.DataFrame(zip(*given, strict=True), columns=["text", "label"]).to_csv(tmp_path / "t.csv", index=False)
    assert "It was not checked whether the run was trained on these texts" in rtx("evaluate", old.key, tmp_path / "t.csv").stderr


# ---------------------------------------- the recipe, and runs that learned nothing


def test_the_recipe_follows_the_rows_unless_it_is_named(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    texts(300).to_csv(file, index=False)
    record, said = trained(file)
    assert record["recipe"] == "few" and "240 training rows: recipe few (20 epochs, " in said
    assert record["learned"] and record["accuracy"] > 0.9 > record["majority_accuracy"]  # 0.6 with the default recipe
    assert record["counting_words_accuracy"] > 0.9 and "has not learned" not in said
    for rows, name in ((240, "few"), (2000, "small"), (3016, "small"), (16_000, "medium"), (63_141, "default")):
        assert fitting(rows, pretrained=False) == name and name in RECIPES
        assert fitting(rows, pretrained=True) == "finetune"


def test_a_run_no_better_than_the_majority_says_so_last(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    texts(300).to_csv(file, index=False)
    given = ("--recipe", "default", "--recipe-set", "learning_rate=1e-9")
    for _ in range(2):  # trained, and then found
        record, said = trained(file, *given)
        assert record["learned"] is False and record["accuracy"] <= record["majority_accuracy"]
        last = said.splitlines()[-1]
        assert "standard-1x32 has not learned to tell the labels apart" in last and "counting words" in last
        assert "its accuracy on 30 test texts is" in last
        for way in ("without --recipe", "epochs=2", "more rows", "sentence-transformers/all-MiniLM-L6-v2"):
            assert way in last
    metrics = json.loads((Path(record["run"]) / "metrics.json").read_text())
    assert not {"learned", "majority_accuracy", "counting_words_accuracy"} & metrics.keys()  # tables stay as they are


def test_what_is_odd_about_a_file_is_said_in_training(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    table = texts(100).assign(label=["Good", "good"] * 50)
    table.loc[:2, "text"] += " and so on" * 60
    table.to_csv(file, index=False)
    for _ in range(2):  # prepared, and then found
        record, said = trained(file, "--recipe", "default", "--recipe-set", "learning_rate=1e-9", "--max-length", "100")
        assert "data: The labels 'Good' (50 rows) and 'good' (50 rows) differ only in case or space" in said
        assert "data: 3 texts are longer than 100 tokens; only the beginning is read" in said
    last = said.splitlines()[-1]
    assert record["learned"] or "10 test texts are too few to tell whether standard-1x32 has learned: its accuracy on 10" in last


def test_texts_that_are_all_empty_are_called_empty(home: Path, tmp_path: Path) -> None:
    rows = [(" ", "a"), ("<br>", "b")] * 30
    for more, says in (([], "All 60 texts are empty once they are cleaned"), ([("x", "a"), ("y", "b")], "texts dropped: 60)")):
        pd.DataFrame(rows + more, columns=["text", "label"]).to_csv(tmp_path / "e.csv", index=False)
        done = rtx("train", "--model", "standard-1x32", "--data", tmp_path / "e.csv")
        assert done.returncode == 2 and says in done.stderr and len(done.stderr.split("rtx: ")) == 2


@pytest.mark.filterwarnings("error")
def test_many_labels_warn_of_nothing(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "many.csv"
    rows = [(f"text {n} of {n % 210}", f"c{n % 210}") for n in range(630)]
    pd.DataFrame(rows, columns=["text", "label"]).to_csv(file, index=False)
    assert "counting words, to compare; with 210 labels this may take minutes" in trained(file, "--recipe", "smoke")[1]


def test_texts_without_words_still_train(home: Path, tmp_path: Path) -> None:
    signs = [("!" * (1 + n % 9) + "?" * (n // 9), "loud" if n % 2 else "calm") for n in range(60)]
    pd.DataFrame(signs, columns=["text", "label"]).to_csv(tmp_path / "signs.csv", index=False)
    record, said = trained(tmp_path / "signs.csv", "--recipe", "smoke")
    assert record["counting_words_accuracy"] is None and "hold no words" in said
    labels = np.array([0, 1])
    with pytest.raises(InputError, match="hold no words"):
        baseline(["!", "?"], labels, ["!", "?"], labels, ["!", "?"], labels, ["a", "b"])


# ---------------------------------------- pretrained weights


@pytest.mark.parametrize("name", ["finetune", "frozen"])
@pytest.mark.parametrize("model", ["minilm-l6", "bert-base", "modernbert-base", "standard-1x32"])
def test_a_recipe_for_pretrained_weights_refuses_random_ones(model: str, name: str, home: Path, tmp_path: Path) -> None:
    instead = CHECKPOINTS.get(model, "sentence-transformers/all-MiniLM-L6-v2")
    done = rtx("train", "--model", model, "--data", "embedded", "--recipe", name)
    assert done.returncode == 2 and done.stderr.startswith(f"rtx: The recipe {name} is for pretrained weights")
    assert instead in done.stderr and done.stderr.count("\n") == 1
    spec = RunSpec(model, Generated(rows=60), dataclasses.replace(recipe(name), epochs=1))
    with pytest.raises(InputError, match=f"is for pretrained weights, and {model} starts from random ones"):
        train_run(spec, tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_a_preset_with_published_weights_says_that_it_starts_without_them(home: Path) -> None:
    sizes = ("num_hidden_layers=1", "hidden_size=32", "num_attention_heads=2", "intermediate_size=32")
    small = [word for size in sizes for word in ("--set", size)]
    done = rtx("train", "--model", "bert-tiny", "--data", "embedded", "--rows", "60", "--recipe", "smoke", *small)
    assert done.returncode == 0, done.stderr
    assert "bert-tiny starts from random weights; with pretrained ones it is --model google/bert_uncased_L-2" in done.stderr
    assert set(CHECKPOINTS) == {name for name in PRESETS if not preset(name).num_decoder_layers}
