"""What a person gives to predict, evaluate and embed: read as it was meant, or refused in one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from in_process import rtx
from pyarrow import parquet
from test_data_clean import takes_linear_time

from rtx.cli.common import parse_labels, read_texts
from rtx.cli.use import _label_values
from rtxlib.data import tokenization
from rtxlib.data.files import read_file, read_table
from rtxlib.errors import InputError
from rtxlib.runs.store import Run

LABELS = ["1.0", "2.0", "3", "4", " very good "]  # as written in the file; training takes "1", "2", …, "very good"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of 60 rows with five labels, one row without."""
    file = tmp_path_factory.mktemp("data") / "trained.csv"
    rows = [(f"a film that number {n} saw, kind {n % 5}", LABELS[n % 5]) for n in range(60)]
    pd.DataFrame([*rows, ("nobody knows", "")], columns=["text", "label"]).to_csv(file, index=False)
    return file


@pytest.fixture(scope="module")
def run(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RTX_HOME", str(home))
        done = rtx("train", "--model", "standard-1x32", "--data", trained, "--recipe", "smoke", "--json")
        assert done.returncode == 0, done.stderr
        yield json.loads(done.stdout.splitlines()[-1])["key"]


def refused(*arguments: object, given: bytes = b"") -> str:
    """The one sentence of a command that is refused."""
    done = rtx(*arguments, given=given)
    assert done.returncode == 2 and not done.stdout, (arguments, done.stdout, done.stderr)
    assert done.stderr.startswith("rtx: ") and done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def labelled(*arguments: object, given: bytes = b"") -> list[str]:
    done = rtx("predict", *arguments, "--json", given=given)
    assert done.returncode == 0, done.stderr
    return [json.loads(line)["text"] for line in done.stdout.split("\n")[:-1]]


def scores(*arguments: object) -> tuple[dict, str]:
    done = rtx("evaluate", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


# ---------------------------------------- files


def test_the_file_that_is_read_is_not_replaced(run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "me.csv"
    file.write_text("text\na fine film\n")
    monkeypatch.chdir(tmp_path)
    assert "would replace" in refused("predict", run, file, "--out", "me.csv")
    assert "would replace" in refused("predict", run, "--file", "me.csv", "--out", file)
    assert file.read_text() == "text\na fine film\n"


def test_a_name_of_a_file_is_no_text(run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.csv").write_text("text\na fine film\n")
    for name in ("nosuch.csv", "nosuch.TSV", "nosuch.jsonl", "a/nosuch.parquet", "nosuch.txt"):
        assert f"There is no file '{name}'" in refused("predict", run, name)
    for name in ("nosuch.csv", "there.csv"):
        assert f"'{name}' names a file; give one file at a time" in refused("predict", run, "a fine film", name)
    assert "either texts or --file" in refused("predict", run, "--file", "there.csv", "a fine film")
    assert labelled(run, "there.csv") == ["a fine film"]
    assert labelled(run, "I read there.csv", "me.too") == ["I read there.csv", "me.too"]


def test_a_folder_is_no_file(run: str, tmp_path: Path) -> None:
    (tmp_path / "d.csv").mkdir()
    out = tmp_path / "out.parquet"
    for arguments in (
        ("predict", run, "--file", tmp_path), ("predict", run, tmp_path / "d.csv"), ("predict", run, f"{tmp_path}/"),
        ("evaluate", run, tmp_path), ("embed", tmp_path, "--out", out), ("embed", tmp_path / "d.csv", "--out", out),
    ):  # fmt: skip
        assert "is a folder" in refused(*arguments)
    for texts in ((tmp_path, "x"), ("x", f"{tmp_path}/"), ("..", "x"), (tmp_path / "d.csv", "x")):
        assert "names a folder; give one file at a time" in refused("predict", run, *texts)
    assert "is a folder" in refused("predict", run, ".")


def test_the_number_of_texts_is_written_as_words_are(run: str, tmp_path: Path) -> None:
    for many, said in ((1, "1 text labelled"), (2, "2 texts labelled")):
        done = rtx("predict", run, *["fine"] * many, "--out", tmp_path / f"{many}.csv")
        assert done.returncode == 0 and done.stderr.startswith(said)


def test_a_table_of_many_columns_is_written_whole(run: str, tmp_path: Path) -> None:
    columns, file, out = [f"c{n}" for n in range(3000)], tmp_path / "wide.csv", tmp_path / "out.csv"
    file.write_text("\n".join([",".join(["text", *columns]), *[",".join(["a", *["=v"] * 3000])] * 20]) + "\n")
    done = rtx("predict", run, file, "--out", out)
    assert done.returncode == 0 and "60,000 cells start like a formula" in done.stderr
    header, *rows = out.read_text().splitlines()
    assert header.startswith(",".join(["text", *columns, "predicted,p_"]))
    assert len(rows) == 20 and all(row.startswith("a,'=v,") and row.count("'=v") == 3000 for row in rows)


@pytest.mark.parametrize("name", ["me.csv", "me.txt", "me.jsonl"])
def test_a_file_that_may_not_be_read_is_said(
    name: str, run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, read = tmp_path / name, Path.read_bytes
    file.write_text("text\n")

    def forbidden(path: Path) -> bytes:
        if path == file:
            raise PermissionError(13, "Permission denied", str(path))
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", forbidden)  # root may read everything
    for arguments in (
        ("predict", run, file),
        ("evaluate", run, file),
        ("embed", file, "--out", tmp_path / "o.parquet"),
    ):
        assert f"{name} cannot be read (Permission denied)" in refused(*arguments)


def test_a_long_text_is_a_text_and_a_long_name_no_file(run: str, tmp_path: Path) -> None:
    text = "so good. " * 600
    assert labelled(run, text) == [text]
    assert labelled(run, "a/" * 3000) == ["a/" * 3000]
    name = "n" * 300 + ".csv"
    out = tmp_path / "out.parquet"
    for arguments in (
        ("predict", run, name), ("predict", run, "--file", name), ("evaluate", run, name), ("embed", name, "--out", out),
    ):  # fmt: skip
        assert "There is no file 'nnn" in (said := refused(*arguments)) and len(said) < 300


def test_the_name_of_a_run_may_not_be_empty_nor_endless(run: str) -> None:
    for command in ("predict", "evaluate"):
        assert "RUN is empty" in refused(command, "", "hi")
        assert "The run 'rrr" in (said := refused(command, "r" * 5000, "hi")) and len(said) < 400


# ---------------------------------------- lines


def test_only_a_line_feed_ends_a_text(run: str, tmp_path: Path) -> None:
    texts = ["one\u2028text", "two\x85", "three\x0cpages", "", "four \x1c \u2029 \x0b"]
    data = ("\ufeff" + "\r\n".join(texts) + "\r\n").encode()
    file = tmp_path / "lines.txt"
    file.write_bytes(data)
    assert labelled(run, file) == texts and labelled(run, given=data) == texts
    file.write_bytes(data.rstrip(b"\r\n"))
    assert read_texts(str(file), None)[1] == texts
    file.write_text("")
    assert read_texts(str(file), None)[0].empty


def test_what_is_not_utf8_is_named(run: str, tmp_path: Path) -> None:
    file = tmp_path / "latin.txt"
    file.write_bytes(b"fine\ncaf\xe9\n")
    assert "latin.txt is not UTF-8: byte 0xE9 in line 2" in refused("predict", run, "--file", file)
    assert "latin.txt is not UTF-8" in refused("embed", file, "--out", tmp_path / "out.parquet")
    assert "Standard input is not UTF-8: byte 0xE9 in line 2" in refused("predict", run, given=file.read_bytes())


def test_only_the_beginning_of_a_long_text_is_tokenised(run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "long.csv"
    file.write_text("text,label\n" + f"{'a film that number 3 saw  ' * 40_000},3\n" * 2)
    beginning, lengths = tokenization._beginning, []

    def watched(text: str, *rest: object) -> str:
        read = beginning(text, *rest)
        lengths.append((len(text), len(read)))
        return read

    monkeypatch.setattr(tokenization, "_beginning", watched)
    found, _ = scores(run, file)
    assert found["n"] == len(lengths) == 2
    assert all(whole > 900_000 and read < 10_000 for whole, read in lengths), lengths


def test_a_word_of_a_megabyte_is_labelled_in_linear_time(run: str, tmp_path: Path) -> None:
    file, told = tmp_path / "words.txt", []

    def work(size: int) -> None:
        words = ["x" * size, "#" * (size * 3 // 10), "电影" * (size // 10)]
        file.write_text("\n".join(words))
        done = rtx("predict", run, file, "--json")
        assert done.returncode == 0 and [json.loads(line)["text"] for line in done.stdout.splitlines()] == words
        told.append(done.stderr)

    assert takes_linear_time(work, 1_000_001)
    assert told[0] == "1 text is longer than 1,000,000 characters; only the beginning is read.\n" and told[1] == ""


# ---------------------------------------- half characters


def test_half_a_surrogate_pair_is_replaced(run: str, tmp_path: Path) -> None:
    file = tmp_path / "half.jsonl"
    file.write_text('{"text": "cut \\ud83d", "label": "\\ud800"}\n{"text": "whole \\ud83d\\ude00", "label": "b"}\n')
    assert read_table(file)["text"].tolist() == ["cut \ufffd", "whole 😀"]
    assert read_file(file).label_names == ["b", "\ufffd"]
    assert labelled(run, file) == ["cut \ufffd", "whole 😀"]
    assert labelled(run, b"caf\xe9".decode("utf-8", "surrogateescape")) == ["caf\ufffd"]
    assert parse_labels('{"\\ud800": "a\\udfff"}') == {"\ufffd": "a\ufffd"}


# ---------------------------------------- columns and labels


def test_a_column_that_is_there_twice_is_refused(run: str, tmp_path: Path) -> None:
    file = tmp_path / "twice.csv"
    file.write_text("text,text,label,label\na,b,1,1\nc,d,2,2\n")
    out = tmp_path / "out.parquet"
    for arguments in (("predict", run, file), ("evaluate", run, file), ("embed", file, "--out", out)):
        assert "twice.csv has more than one column 'text'; rename one." in refused(*arguments)
    file.write_text("text,label,label\na,1,1\n")
    assert "more than one column 'label'" in refused("evaluate", run, file)
    file.write_text("note,text,note\na,b,1\n")  # a column that nothing reads
    labels = tmp_path / "labels.csv"
    done = rtx("predict", run, file, "--out", labels)
    assert done.returncode == 0 and labels.read_text().splitlines()[1].startswith("a,b,1,"), done.stderr
    assert "only CSV can hold" in refused("predict", run, file, "--json")
    file = tmp_path / "twice.parquet"
    parquet.write_table(pa.table([["a"], ["b"]], names=["text", "text"]), file)
    assert "twice.parquet" in refused("predict", run, file)


def test_values_that_are_no_text_are_refused_where_they_are_used(run: str, tmp_path: Path) -> None:
    file, out = tmp_path / "x.jsonl", tmp_path / "out.parquet"
    file.write_text('{"text": "a", "label": "1", "tags": []}\n{"text": {"a": 1}, "label": "1"}\n')
    for arguments in (("predict", run, file), ("evaluate", run, file), ("embed", file, "--out", out)):
        assert "Line 2 of x.jsonl has a dictionary in the column 'text'" in refused(*arguments)
    file.write_text('{"text": "a", "label": ["1"], "tags": []}\n')
    assert "Line 1 of x.jsonl has a list in the column 'label'" in refused("evaluate", run, file)
    assert labelled(run, file) == ["a"]


def test_a_run_is_scored_on_its_own_training_file(run: str, trained: Path, tmp_path: Path) -> None:
    def rows_of_labels(found: dict) -> list[int]:
        return (np.array(found["confusion"]) + found["confusion_seen"]).sum(axis=1).tolist()

    found, said = scores(run, trained)
    assert found["n"] + found["n_seen"] == 60 and said.startswith("1 of 61 rows has no label and is left out\n")
    assert rows_of_labels(found) == [12] * 5
    assert "--labels names 'onne', and the run knows '1'" in refused("evaluate", run, trained, "--labels", '{"1": "onne"}')
    mapped, _ = scores(
        run, trained, "--labels", '{"1": "1", "2.0": "2", "3": "1", "4": "", "very good": " very good "}'
    )
    assert mapped["n"] + mapped["n_seen"] == 48 and rows_of_labels(mapped) == [24, 12, 0, 0, 12]
    file = tmp_path / "none.csv"
    file.write_text("text,label\na,\n")
    assert "No row of none.csv has a label" in refused("evaluate", run, file)


def test_a_number_is_a_label_name_before_it_is_an_index(run: str, tmp_path: Path) -> None:
    file = tmp_path / "shifted.csv"
    file.write_text("text,label\n" + "".join(f"text {n},{n}\n" for n in range(5)))
    assert "The labels '0' are none of '1', '2', '3', '4', 'very good';" in refused("evaluate", run, file)
    def values(names: list[str], source: str = "file", **data: object) -> dict[str, str]:
        return _label_values(Run("k", {"label_names": names, "data": {"source": source, "path": "mine.csv"} | data}, {}, None))

    assert values(["ham", "spam"]) == {"0": "ham", "1": "spam", "ham": "ham", "spam": "spam"}
    assert values(["-1", "0.5", "x"]) == {"-1": "-1", "0.5": "0.5", "x": "x"}
    # sorted names are not the numbers of the data where these had a mapping
    read = values(["bad", "good"], labels={"1": "bad", "0": "good", "2": ""})
    assert read == {"1": "bad", "0": "good", "2": "", "bad": "bad", "good": "good"}
    assert values(["negative", "positive"], stars=True)["3"] == "" and values(["0", "1"], labels={"0": "1", "1": "0"})["0"] == "1"
    names = ["contradiction", "entailment", "neutral"]
    assert values(names, "snli")["0"] == "entailment" and values(["acceptable", "unacceptable"], "cola")["0"] == "unacceptable"


@pytest.mark.parametrize("name", ["null", "[]", "{}"])
def test_only_text_names_a_label(name: str, run: str, trained: Path) -> None:
    with pytest.raises(InputError, match=r"--labels gives 'pos' the name .*, which is not a string"):
        parse_labels(f'{{"pos": {name}}}')
    assert "which is not a string" in refused("evaluate", run, trained, "--labels", f'{{"pos": {name}}}')
