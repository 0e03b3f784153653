"""`rtx compare` before its race: what reaches the notebook, odd files and folders, and what is said when it ends early."""

from __future__ import annotations

import errno
import json
import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from in_process import rtx
from test_compare import told

from rtx.classifiers import words
from rtxlib import checksums
from rtxlib.errors import InputError
from rtxlib.runs import seen
from rtxstudy.commands import compare
from rtxstudy.questions.your_texts import hand_over, reading
from rtxstudy.questions.your_texts.candidates import WORDS
from rtxstudy.questions.your_texts.comparison import Comparison, Options
from rtxstudy.questions.your_texts.texts import open_texts
from rtxstudy.report import execution
from rtxstudy.report.outcomes import Outcome


@pytest.fixture
def raced(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The parameters that reach the notebook of each `rtx compare`; no notebook runs."""
    found: list[dict[str, Any]] = []

    def run(source: Path, parameters: dict[str, Any], folder: Path) -> Outcome:
        found.append(parameters)
        return Outcome("10_your_texts", "failed", 0.0, "cell 1: not run")

    monkeypatch.setattr(compare, "_run", run)
    return found


def write(folder: Path, table: pd.DataFrame, name: str = "mine.csv") -> Path:
    path = folder / name
    table.to_csv(path, index=False) if name.endswith("csv") else table.to_json(path, orient="records", lines=True)
    return path


# ---------------------------------------- what reaches the notebook


@pytest.mark.parametrize("name", ["null", "none", "label ", '"label"', 'te\nxt`"', "{seeds}", "=1"])
def test_a_column_of_any_name_is_compared(name: str, tmp_path: Path, raced: list) -> None:
    """The race opens the column that was named, and no other that looks like labels."""
    file = write(tmp_path, told(120).assign(**{name: ["x", "x", "y"] * 40}), "mine.jsonl")
    rtx("compare", file, "--text-column", "text", "--label-column", name, "--out", tmp_path / "o")
    assert Comparison.open(Options(**raced[0])).texts.label_names == ["x", "y"]


def test_groups_of_a_column_called_none_stay_together(tmp_path: Path, raced: list) -> None:
    file = write(tmp_path, told(120).assign(none=[f"g{n % 16}" for n in range(120)]))
    rtx("compare", file, "--group-column", "none", "--out", tmp_path / "o")
    found = Comparison.open(Options(**raced[0])).texts
    author = found.other["none"].to_numpy()
    assert pd.Series(found.table["split"].to_numpy()).groupby(author).nunique().max() == 1


def test_the_folder_that_was_named_is_written(tmp_path: Path, raced: list) -> None:
    for name in ("d ", 'd "x"', "'", "null"):
        rtx("compare", write(tmp_path, told(60)), "--out", tmp_path / name)
        assert raced[-1]["out"] == str(tmp_path / name) and (tmp_path / name / "comparison.json").is_file()
    done = rtx("compare", tmp_path / "half\udce9.csv")
    assert done.returncode == 2 and "is not UTF-8; rename it" in done.stderr


def test_a_folder_that_begins_with_a_dash_is_no_option(tmp_path: Path, raced: list, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rtx("compare", write(tmp_path, told(60)), "--out", "./-rf")
    assert Comparison.open(Options(**raced[0])).shown == "./-rf"


# ---------------------------------------- folders


@pytest.mark.parametrize("content", ["{", "[1]", '{"path": "/x"}', '{"path": 5}', "[" * 100_000, "\xff"])
def test_a_damaged_record_of_a_comparison_is_named(content: str, tmp_path: Path, raced: list) -> None:
    (tmp_path / "o").mkdir()
    (tmp_path / "o" / "comparison.json").write_text(content, encoding="latin-1")
    done = rtx("compare", write(tmp_path, told(60)), "--out", tmp_path / "o")
    assert done.returncode == 2 and "comparison.json is damaged; delete it" in done.stderr and not raced
    assert (tmp_path / "o" / "comparison.json").read_text(encoding="latin-1") == content


@pytest.mark.parametrize("out", ["/proc/x", "/sys/x"])
def test_a_folder_that_cannot_be_made_is_named(out: str, tmp_path: Path, raced: list) -> None:
    done = rtx("compare", write(tmp_path, told(60)), "--out", out)
    assert done.returncode == 2 and f"{out} cannot be written" in done.stderr and not raced


# ---------------------------------------- files, whole and in pieces


@pytest.fixture(params=["whole", "in pieces"])
def pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether files are so large that they are read in pieces of 50 rows, of which nearly all are drawn."""
    if request.param == "in pieces":
        monkeypatch.setattr(reading, "PIECE", 50)
        monkeypatch.setattr(reading.Path, "stat", _larger(reading.Path.stat))
    return request.param == "in pieces"


def _larger(stat: Any) -> Any:
    class Larger:
        def __init__(self, found: os.stat_result) -> None:
            self.found = found

        def __getattr__(self, name: str) -> Any:
            return getattr(self.found, name)

        st_size = property(lambda self: round(1.000001 * reading.LARGEST))

    return lambda path, **how: Larger(stat(path, **how)) if path.suffix in reading.SUFFIXES else stat(path, **how)


def test_columns_may_be_numbers(tmp_path: Path, pieces: bool) -> None:
    told(120).set_axis([7, 8], axis=1).to_parquet(tmp_path / "x.parquet")
    for asked in ({}, {"text_column": "7", "label_column": "8"}):
        found = open_texts(tmp_path / "x.parquet", **asked)
        assert (found.columns.text, found.columns.label) == ("7", "8") and len(found.table) > 100


NO_TEXTS = {  # name → a column that holds no texts, what it is called
    "lists": ([["a", "b"], ["c"]], "a list"),
    "dictionaries": ([{"a": 1}, {"a": 2}], "a dictionary"),
    "bytes": ([b"a b", b"c d"], "bytes"),
    "durations": (pd.to_timedelta([1, 2], "s"), "a duration"),
}


@pytest.mark.parametrize("kind", NO_TEXTS)
@pytest.mark.parametrize("column", ["text", "label"])
def test_what_is_no_text_is_refused(kind: str, column: str, tmp_path: Path, pieces: bool) -> None:
    """Also where the column was guessed. In another column it is read over."""
    values, called = NO_TEXTS[kind]
    table = told(120).assign(**{column: pd.Series([*values] * 60)})
    table.to_parquet(tmp_path / "x.parquet")
    with pytest.raises(InputError, match=f"Row 1 of x.parquet has {called} in the column '{column}'"):
        open_texts(tmp_path / "x.parquet", text_column="text", label_column="label")
    other = told(120).assign(other=pd.Series([*values] * 60))
    other.to_parquet(tmp_path / "y.parquet")
    assert len(open_texts(tmp_path / "y.parquet").table) >= 118
    other.head(60).to_parquet(tmp_path / "test.parquet")
    with pytest.raises(InputError, match=f"Row 1 of test.parquet has {called} in the column '{column}'"):
        table.to_parquet(tmp_path / "test.parquet")
        open_texts(tmp_path / "y.parquet", text_column="text", label_column="label", test=tmp_path / "test.parquet")
    if kind in ("lists", "dictionaries"):
        table.to_json(tmp_path / "x.jsonl", orient="records", lines=True)
        with pytest.raises(InputError, match=f"Line 1 of x.jsonl has {called} in the column '{column}'"):
            open_texts(tmp_path / "x.jsonl")


GOOD = told(120)
ROWS = GOOD.to_csv(index=False).splitlines()
STRAY = [*ROWS[:10], '"' + ROWS[10], *ROWS[11:20], ROWS[20].replace(",", '",'), *ROWS[21:]]
LINES = [json.dumps(row) for row in GOOD.to_dict("records")]
ODD_FILES = {  # name → content, what the sentence says
    "two stray quotes.csv": ("\n".join(STRAY), "A quote in line 11 of .* and another in line 21 join 11 lines"),
    "a name twice.jsonl": (
        "\n".join([*LINES[:70], LINES[70][:-1] + ', "text": "b"}']), "Line 71 of .* has the name 'text' more than once",
    ),
    "nested.jsonl": ("\n".join([LINES[0], '{"text": ' + "[" * 10**5 + "]" * 10**5 + "}"]), "Line 2 of .* is nested too deeply"),
    "empty lines.csv": ("\n" * 3000, "holds no rows"),
    "empty lines.jsonl": ("\n" * 3000, "holds no rows"),
    "a header.csv": ("text,label\n", "holds no rows"),
    "too many digits.jsonl": ('{"text": ' + "7" * 5000 + "}", "a whole number of more than 4,300 digits"),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD_FILES)
def test_an_odd_file_is_refused_in_the_same_words(name: str, tmp_path: Path, pieces: bool) -> None:
    content, said = ODD_FILES[name]
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=said) as refused:
        open_texts(tmp_path / name)
    assert "\n" not in str(refused.value)


def test_a_tsv_without_quoting_is_read(tmp_path: Path, pieces: bool) -> None:
    table = GOOD.assign(text=lambda t: [f'"{text}' if n % 7 == 0 else text for n, text in enumerate(t["text"])])
    content = "text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in table.to_numpy())
    (tmp_path / "x.tsv").write_text(content)
    assert set(open_texts(tmp_path / "x.tsv").table["raw"]) <= {*table["text"]}


def test_invisible_characters_make_neither_texts_nor_difference(tmp_path: Path) -> None:
    """Texts of them alone are empty. Texts and labels that differ in them alone stay together, and are told of."""
    table = pd.concat([GOOD, GOOD.assign(text=GOOD["text"].str.replace("i", "i\u200b"))], ignore_index=True)
    table.loc[:29, "text"] = ["\u200b\u200c\u200d"[: 1 + n % 3] for n in range(30)]
    table.loc[200:, "label"] += "\u200b"
    found = open_texts(write(tmp_path, table))
    said = " ".join(found.said)
    assert "30 rows have no text" in said and "differ only in case, space or invisible characters" in said
    plain = found.table["text"].str.replace("\u200b", "")
    assert found.table.groupby(plain)["split"].nunique().max() == 1 and plain.duplicated().sum() > 80


# ---------------------------------------- the model that is handed over


def handed_over(tmp_path: Path, learnt: int = 9, table: pd.DataFrame = GOOD) -> Path:
    """learnt: rows that the model learned from."""
    found = open_texts(write(tmp_path, table))
    rows = np.arange(len(found.table))
    row = {"rows": learnt, "seconds": 1.0, "ms": 1.0, "mb": 1.0, "test_accuracy": 0.5, "test_macro_f1": 0.5}
    counted = words.fit(found.texts(rows), found.numbers(rows), 2)
    answers = counted.probabilities(found.texts(found.rows("test")))
    chosen = hand_over.Chosen(WORDS, counted, None, answers, row, 3, "counts words")
    return hand_over.hand_over(found, chosen, tmp_path / "model", tmp_path / "held.parquet", "out/model")


@pytest.mark.parametrize("again", [False, True])
def test_the_model_knows_the_validation_texts_as_those_it_learned_from(again: bool, tmp_path: Path) -> None:
    table = told(760)
    learnt = open_texts(write(tmp_path, table))
    train, judged = learnt.rows("train"), learnt.judged
    model = handed_over(tmp_path, len(train) + len(judged) * again, table)
    run = SimpleNamespace(key="it", path=model)
    split = {again: "train", not again: "validation"}[True]
    assert set(seen.splits_of(run, learnt.texts(judged))) == {split} and len(judged) > 50
    assert set(seen.splits_of(run, learnt.texts(train))) == {"train"}
    assert set(seen.splits_of(run, learnt.texts(learnt.rows("test")))) == {""}


def test_a_model_whose_files_do_not_fit_one_another_is_one_sentence(tmp_path: Path) -> None:
    model = handed_over(tmp_path)
    spec = json.loads((model / "spec.json").read_text())
    (model / "spec.json").write_text(json.dumps(spec | {"label_names": ["a", "b", "c"]}))
    mark = json.loads((model / "complete.json").read_text())
    mark["files"]["spec.json"] = [checksums.sha256(model / "spec.json")]
    (model / "complete.json").write_text(json.dumps(mark))
    done = rtx("predict", model, "a film")
    assert done.returncode == 2 and "spec.json has 3 labels, and the classifier tells 2 apart" in done.stderr


@pytest.mark.parametrize("name", ["linear.safetensors", "terms.json", "classifier.json"])
def test_another_file_is_not_taken_where_the_checksums_lack_it(name: str, tmp_path: Path) -> None:
    model = handed_over(tmp_path)
    mark = json.loads((model / "complete.json").read_text())
    del mark["files"][name]
    (model / "complete.json").write_text(json.dumps(mark))
    done = rtx("predict", model, "a film")
    assert done.returncode == 2 and f"is damaged ({name} was added to it)" in done.stderr


# ---------------------------------------- an early end


def test_an_early_end_names_the_disk_or_what_there_is_to_see(tmp_path: Path) -> None:
    full = f"cell 6: OSError: [Errno 28] {os.strerror(errno.ENOSPC)}"
    page = tmp_path / "report.html"
    ends = {
        "is full; make room": Outcome("10", "failed", 1.0, full),
        f"died; {page} shows how far it came": Outcome("10", "failed", 1.0, "cell 3: the kernel died", tmp_path / "10.ipynb"),
        "died; give the same command again": Outcome("10", "failed", 1.0, "cell 3: the kernel died"),
    }
    for said, outcome in ends.items():
        assert said in str(compare._ended_early(outcome, page))


def test_sigterm_ends_with_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    def execute(name: str, source: Path, parameters: dict, out: Path, timeout: None, watch: Any, stopping: Any) -> Outcome:
        os.kill(os.getpid(), signal.SIGTERM)
        stopping.wait(60)
        return Outcome(name, "interrupted", 0.0, "cell 1")

    monkeypatch.setattr(execution, "execute", execute)
    with pytest.raises(SystemExit) as end:
        compare._run(tmp_path / "10.ipynb", {}, tmp_path)
    said = capsys.readouterr().err
    assert end.value.code == 143 and f"Interrupted. What is finished is kept in {tmp_path}; the same command goes on" in said
