"""The user's own file: every format gives the same rows, and every mistake has its own error sentence."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from rtxlib import memory
from rtxlib.data import files
from rtxlib.data.datasets import File
from rtxlib.data.files import read_file, read_table
from rtxlib.errors import InputError

ROWS = [("good, really", "1"), ('a "bad" one', "0"), ("two\nlines", "1"), ("NA", "0"), ("", "1")]


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.fixture(params=[".csv", ".tsv", ".jsonl", ".parquet", "semicolon.csv"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    table = pd.DataFrame(ROWS, columns=["text", "label"])
    path = tmp_path / f"data{request.param}"
    if path.suffix == ".parquet":
        table.astype({"label": int}).to_parquet(path)
    elif path.suffix == ".jsonl":
        table.astype({"label": float}).to_json(path, orient="records", lines=True)
    else:
        separator = "\t" if path.suffix == ".tsv" else ";" if "semicolon" in path.name else ","
        table.to_csv(path, sep=separator, index=False)
    return path


def test_every_format_gives_the_same_rows(file: Path) -> None:
    rows = read_file(file, labels={"1": "positive", "0": "negative"})
    assert rows.table["text"].tolist() == [text for text, _ in ROWS]
    assert rows.table["label"].tolist() == ["positive", "negative", "positive", "negative", "positive"]
    assert rows.label_names == ["negative", "positive"]


@pytest.mark.parametrize("values", [["1", "2", "10"], [1, 2, 10], [1.0, 2.0, 10.0], ["1.0", "2.0", "10.0"]])
def test_labels_of_any_type_are_compared_as_text_and_sorted_by_size(values: list, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pd.DataFrame({"text": ["a", "b", "c"] * 4, "label": values * 4}).to_parquet(path)
    assert read_file(path).label_names == ["1", "2", "10"]
    assert read_file(path, labels={"1": "low", 2: "low", "10.0": "high"}).label_names == ["high", "low"]


def test_a_bool_is_a_label(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", '{"text": "a", "label": true}\n\n{"text": "b", "label": false}\n')
    assert read_file(path).table["label"].tolist() == ["true", "false"]


def test_stars_follow_the_rule_of_yelp(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "body,stars\n" + "".join(f"text {n},{n}\n" for n in (1, 2, 3, 4, 5)))
    rows = read_file(path, "body", "stars", stars=True)
    assert rows.table["label"].tolist() == ["negative", "negative", "positive", "positive"]
    assert rows.steps[-1] == ("rows whose label is mapped to nothing dropped", 5, 0, 4)


def test_a_label_mapped_to_nothing_drops_its_rows(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "text,label\na,pos\nb,neg\nc,unsure\n")
    assert len(read_file(path, labels={"pos": "p", "neg": "n", "unsure": ""}).table) == 2


def test_rows_without_a_label_are_dropped_and_counted(tmp_path: Path) -> None:
    rows = read_file(write(tmp_path / "x.csv", "text,label\na,x\nb,\nb,\u200b\nc,y\n"))
    assert rows.table["text"].tolist() == ["a", "c"]
    assert ("rows without a label dropped", 4, 0, 2) in rows.steps


def test_a_byte_order_mark_and_windows_line_ends_are_not_data(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "\ufefftext,label\r\na,x\r\nb,y\r\n".encode())
    assert read_table(path).to_dict("list") == {"text": ["a", "b"], "label": ["x", "y"]}


def test_a_tsv_without_quoting_keeps_its_quotes(tmp_path: Path) -> None:
    path = write(tmp_path / "x.tsv", 'text\tlabel\n"so bad\t0\nfine" film\t1\n')
    assert read_table(path)["text"].tolist() == ['"so bad', 'fine" film']


def test_texts_of_several_lines_are_texts(tmp_path: Path) -> None:
    """Each line of the first has a separator, and the last word of each is a label; but no line is a whole row."""
    texts = ["Well, good\nI say, bad", "one\n\ntwo", "a,b\nc"]
    labels = ["good", "bad", "bad", *["good", "bad"] * 10]
    table = pd.DataFrame({"text": texts + [f"text {n}" for n in range(20)], "label": labels})
    for name in ("x.csv", "x.tsv"):
        table.to_csv(tmp_path / name, index=False, sep="\t" if name == "x.tsv" else ",")
        assert read_table(tmp_path / name)["text"].tolist() == table["text"].tolist()


def test_the_line_that_names_excels_separator_is_no_row(tmp_path: Path) -> None:
    rows = "text{0}label\na{0}x\nb, c{0}y\n"
    for name, mark in (("x.csv", "sep=;\n"), ("y.csv", '"sep=|"\r\n'), ("z.tsv", "SEP=\t\n")):
        delimiter = mark.strip('"\r\n')[-1]
        table = read_table(write(tmp_path / name, mark + rows.format(delimiter)))
        assert table.to_dict("list") == {"text": ["a", "b, c"], "label": ["x", "y"]} and list(table.index) == [3, 4]


MISTAKES = {
    "a missing column": ("x.csv", "txt,label\na,x\nb,y\n", {}, "no column 'text' .*it has 'txt', 'label'.*Did you mean 'txt'"),
    "a missing label column": ("x.csv", "text,lable\na,x\n", {}, "no column 'label'.*Did you mean 'lable'"),
    "an empty file": ("x.csv", "", {}, "x.csv is empty"),
    "only a header": ("x.csv", "text,label\n", {}, "holds no rows"),
    "an empty JSONL": ("x.jsonl", "\n\n", {}, "holds no rows"),
    "one class only": ("x.csv", "text,label\na,x\nb,x\n", {}, "at least two classes .* only 'x'"),
    "outside the mapping": (
        "x.csv", "text,label\na,x\nb,y\nc,z\n", {"labels": {"x": "p", "y": "n"}}, "outside the mapping .*'z'; .* has 'x', 'y'",
    ),
    "no star": ("x.csv", "text,label\na,1\nb,6\n", {"stars": True}, "outside the mapping.*'6'"),
    "undecodable bytes": (
        "x.csv", b"text,label\ngood,1\ncaf\xe9,0\n", {}, r"not UTF-8: byte 0xE9 in line 3 \(byte 21 of the file\)",
    ),
    "undecodable after a mark": ("x.csv", b"\xef\xbb\xbftext\n\xff", {}, r"byte 0xFF in line 2 \(byte 8"),
    "too many fields": ("x.csv", "text,label\na,b,1\n", {}, "Line 2 of x.csv has 3 fields and its header has 2"),
    "an open quote": ("x.csv", 'text,label\n"a,1\nb,0\n', {}, "The row that begins in line 2 of x.csv has a quote that is never"),
    "a quote that is open until the next": (
        "x.csv", 'text,label\na,1\n"b,0\nc,1\n"d",0\n', {}, "The row that begins in line 3 of x.csv is malformed in line 5",
    ),
    "two stray quotes": (
        "x.csv", 'text,label\n' + "fine,good\ndull,bad\n" * 10 + '"so dull,bad\nfine,good\nfine indeed",good\n', {},
        "A quote in line 22 of x.csv and another in line 24 join 3 lines that look like rows into one; double a quote",
    ),
    "too few fields": (
        "x.csv", 'text,label\n"a\nb",1\nc\n', {}, "Line 4 of x.csv has 1 field and its header has 2; write all of text",
    ),
    "UTF-16 without a mark": ("x.csv", "text,label\na,1\nb,0\n".encode("utf-16-le"), {}, "not UTF-8 but probably UTF-16"),
    "UTF-16 with a mark": ("x.csv", "文,label\na,1\n".encode("utf-16"), {}, "x.csv is not UTF-8 but probably UTF-16"),
    "a name twice": (
        "x.jsonl", '{"text": "a", "label": 1, "o": {"k": 1, "k": 2}}\n{"text": "a", "label": 1, "text": "b"}\n', {},
        "Line 2 of x.jsonl has the name 'text' more than once; rename one",
    ),
    "no JSON": ("x.jsonl", '{"text": "a", "label": 1}\n{"text": \n', {}, "Line 2 of x.jsonl is not JSON"),
    "too deep": ("x.jsonl", '{"text": ' + "[" * 10**5 + "]" * 10**5 + "}\n", {}, "Line 1 of x.jsonl is nested too deeply"),
    "5,000 digits": (
        "x.jsonl", '{"text": "a", "label": 1}\n{"id": ' + "7" * 5000 + "}\n", {},
        "Line 2 of x.jsonl has a whole number of more than 4,300 digits; put it in quotes",
    ),
    "a list": (
        "x.jsonl", '{"text": "a", "label": 1}\n\n{"text": ["a", "b"], "label": 1}\n', {},
        "Line 3 of x.jsonl has a list in the column 'text', .*; write it as one string",
    ),
    "a dictionary": ("x.jsonl", '{"text": "a", "label": {"x": 1}}\n', {}, "Line 1 of .* a dictionary in the column 'label'"),
    "a typing error": (
        "x.csv", 'text,label\n"good\nday",positive\n' + "a,positive\nb,negative\n" * 10 + "\nc,postive\n", {},
        r"The label 'postive' occurs once, in line 25 of x.csv.* Did you mean 'positive'\? Correct it, or map .* --labels",
    ),
    "a rare label": (
        "x.jsonl", '{"text": "a", "label": "NEG"}\n' * 2 + '{"text": "a", "label": "neg"}\n{"text": "b", "label": "pos"}\n' * 10,
        {}, "'NEG' occurs only twice, first in line 1 of x.jsonl.* Did you mean 'neg'",
    ),
    "no object": ("x.jsonl", "[1, 2]\n", {}, "Line 1 of x.jsonl is not a JSON object"),
    "no Parquet": ("x.parquet", "PAR1 but not really", {}, "cannot be read as Parquet"),
    "another kind": ("x.xlsx", "zip", {}, "ends in '.xlsx'; a data file is one of .csv"),
    "the same column twice": ("x.csv", "text,label\na,x\n", {"label_column": "text"}, "must differ"),
    "one name for two columns": ("x.csv", "text,text,label\na,b,x\n", {}, "more than one column 'text'"),
    "stars and a mapping": ("x.csv", "text,label\na,1\n", {"stars": True, "labels": {"1": "p"}}, "not both"),
    "texts as labels": (
        "x.csv", "label,text\n" + "".join(f"words {i},x\n" for i in range(50)), {}, "50 different values in 50 rows",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", MISTAKES.values(), ids=MISTAKES.keys())
def test_every_mistake_has_its_own_sentence(case: tuple, tmp_path: Path) -> None:
    name, content, options, words = case
    with pytest.raises(InputError, match=words) as caught:
        read_file(write(tmp_path / name, content), **options)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"There is no file .*nowhere\.csv"):
        read_file(tmp_path / "nowhere.csv")


@pytest.mark.parametrize(
    ("column", "what"),
    [
        (pa.array([b"a"] * 3 + [b"b"]), "bytes"),
        (pa.array([None, None, None, ["a", "b"]]), "a list"),
        (pa.array([None, None, None, {"a": ["b"]}]), "a dictionary"),
        (pa.array([None, None, None, [("a", 1)]], pa.map_(pa.string(), pa.int64())), "a list"),
        (pa.array([b"abc"] * 4, pa.binary(3)), "bytes"),
        (pa.array([1, 2, 1, 2], pa.duration("s")), "a duration"),
    ],
    ids=["binary", "list", "struct", "map", "fixed", "duration"],
)
def test_a_column_of_parquet_that_holds_no_texts_is_refused_only_where_it_is_used(
    column: pa.Array, what: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.parquet"
    parquet.write_table(pa.table({"text": list("abcd"), "label": list("xyxy"), "other": column}), path)
    assert read_file(path).table["text"].tolist() == list("abcd")
    row = 1 if column[0].is_valid else 4
    for used in ({"text_column": "other"}, {"label_column": "other"}):
        with pytest.raises(InputError, match=f"Row {row} of x.parquet has {what} in the column 'other'"):
            read_file(path, **used)


def test_dates_and_numbers_are_texts(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    values = {"text": [datetime.date(2024, 5, 1)] * 2, "label": [Decimal("1.5"), Decimal("2.5")], "at": [True, None]}
    parquet.write_table(pa.table(values), path)
    assert read_table(path, values).to_dict("list") == {
        "text": ["2024-05-01"] * 2, "label": ["1.5", "2.5"], "at": ["true", ""],
    }  # fmt: skip


def test_lists_and_bytes_of_columns_that_are_not_used_are_kept_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    many = list(range(3000))
    parquet.write_table(pa.table({"text": ["a"], "many": [many], "raw": [b"\xff\x00"], "of": [{"b": [1.5]}]}), path)
    row = read_table(path, ["text"]).to_dict("records")[0]
    assert json.loads(row["many"]) == many and row["raw"] == "ff00" and json.loads(row["of"]) == {"b": [1.5]}


def test_a_rare_label_that_is_mapped_is_meant(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "text,label\n" + "a,good\nb,bad\n" * 12 + "c,god\n")
    with pytest.raises(InputError, match="'god' occurs once, in line 26"):
        read_file(path)
    assert read_file(path, labels={"good": "good", "bad": "bad", "god": "god"}).label_names == ["bad", "god", "good"]
    assert len(read_file(path, labels={"good": "good", "bad": "bad", "god": ""}).table) == 24


def test_a_parquet_file_of_many_values_is_refused_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"text": ["a"] * 4000, "label": ["x", "y"] * 2000, "more": pa.array([["b"] * 500] * 4000)})
    parquet.write_table(table, path := tmp_path / "x.parquet", compression="zstd")
    assert path.stat().st_size < 20_000 and len(read_table(path)) == 4000
    monkeypatch.setattr(memory, "available_memory", lambda: 100_000_000)
    monkeypatch.setattr(parquet.ParquetFile, "read", lambda *_: pytest.fail("read"))
    with pytest.raises(InputError, match=r"Reading x.parquet takes about 1\d\d.\d MB .* this .* has 100.0 MB free; take"):
        read_table(path)


def test_more_rows_than_anybody_waits_for_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_ROWS", 2)
    parquet.write_table(pa.table({"text": ["a"] * 3}), tmp_path / "x.parquet")
    with monkeypatch.context() as unread, pytest.raises(InputError, match=r"x.parquet has more than 2 rows, .*; take fewer"):
        unread.setattr(parquet.ParquetFile, "read", lambda *_: pytest.fail("read"))
        read_table(tmp_path / "x.parquet")
    lines = {"x.csv": "text,label\na,1\nb,0\n", "x.jsonl": '{"text": "a"}\n{"text": "b"}\n'}
    for name, content in lines.items():
        assert len(read_table(write(tmp_path / name, content))) == 2
        with pytest.raises(InputError, match=f"{name} has more than 2 rows"):
            read_table(write(tmp_path / name, content + 2 * content.splitlines(keepends=True)[-1]))


def test_two_columns_of_one_name_are_named_in_parquet_too(tmp_path: Path) -> None:
    parquet.write_table(pa.table([["a"], ["b"], ["x"]], names=["text", "text", "label"]), tmp_path / "x.parquet")
    with pytest.raises(InputError, match=r"^x\.parquet has more than one column 'text'; rename one\.$"):
        read_file(tmp_path / "x.parquet")


def test_spaces_around_names_of_columns_are_left_out_and_said(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert list(read_table(write(tmp_path / "x.csv", "text, label\na,x\n")).columns) == ["text", "label"]
    assert capsys.readouterr().err == "x.csv has spaces around names of columns, such as ' label'; they are left out.\n"


@pytest.mark.parametrize(
    ("labels", "notes"),
    [
        (("Pos", "pos"), ["The labels 'Pos' (6 rows) and 'pos' (6 rows) differ only in case or space and are taken"]),
        (("a  b", "a b"), ["The labels 'a  b' (6 rows) and 'a b' (6 rows) differ only in case or space"]),
        (("nan", "x"), ["'nan' (6 rows) may be a missing value and is taken for a label; --labels can leave its rows out."]),
        (("N/A", "None"), ["'N/A' (6 rows) may be", "'None' (6 rows) may be"]),
        ((" x ", "y"), []),
        (("neg", "neg\u200b"), ["The labels 'neg' (6 rows) and 'neg\\u200b' (6 rows) differ only in case, space or invisible"]),
    ],
    ids=repr,
)
def test_labels_that_may_be_mistakes_are_said(labels: tuple[str, str], notes: list[str], tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "text,label\n" + "".join(f"a,{label}\n" for label in labels) * 6)
    found = read_file(path).notes
    assert len(found) == len(notes) and all(note in said for note, said in zip(notes, sorted(found), strict=True))
    assert read_file(path, labels={label: label for label in labels}).notes == []  # who maps them means them


def test_a_file_of_many_bytes_is_refused_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_bytes", lambda *_: pytest.fail("read"))
    with (tmp_path / "x.csv").open("wb") as file:
        file.truncate(1 << 42)  # takes no room on the disk
    with pytest.raises(InputError, match=r"Reading x.csv takes about 26,388.3 GB of memory, and this .* free; split the file"):
        read_table(tmp_path / "x.csv")
    with pytest.raises(InputError, match=r"Reading x.csv takes about 4,398.0 GB of memory"):
        File(path=str(tmp_path / "x.csv")).revisions()


def test_a_sentence_stays_short_whatever_the_labels_and_columns_are_called(tmp_path: Path) -> None:
    long = [f"{n} {'aä' * 100}" for n in range(100)]
    rows = "".join(f"t{n},{label}\n" for n, label in enumerate(long))
    labels = write(tmp_path / "x.csv", f"text,label\n{rows}")
    columns = write(tmp_path / "columns.csv", ",".join(long) + "\n" + ",".join("x" * 100) + "\n")
    for path, given in ((labels, {"labels": dict.fromkeys(long[:50], "p")}), (columns, {})):
        with pytest.raises(InputError) as told:
            read_file(path, **given)
        assert "more" in str(told.value) and len(str(told.value)) <= 600


def test_a_long_id_of_a_parquet_file_keeps_its_digits_beside_an_empty_cell(tmp_path: Path) -> None:
    path = tmp_path / "ids.parquet"
    parquet.write_table(pa.table({"text": ["a", "b"], "id": pa.array([1234567890123456789, None], pa.int64())}), path)
    assert read_table(path)["id"].tolist() == ["1234567890123456789", ""]


def test_what_pandas_calls_an_index_is_a_column(tmp_path: Path) -> None:
    table = pd.DataFrame({"text": ["a", "b"], "id": [7, 8]})
    for index in ("text", "id"):
        table.set_index(index).to_parquet(tmp_path / "named.parquet")
        found = read_table(tmp_path / "named.parquet")
        assert sorted(found) == ["id", "text"] and found["text"].tolist() == ["a", "b"] and found["id"].tolist() == ["7", "8"]
    table.iloc[[1, 0]].to_parquet(tmp_path / "numbers.parquet")
    assert list(read_table(tmp_path / "numbers.parquet")) == ["text", "id"]  # the numbers of its rows have no name
