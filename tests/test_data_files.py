"""The user's own file: every format gives the same rows, and every mistake has its own error sentence."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

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
    rows = read_file(write(tmp_path / "x.csv", "text,label\na,x\nb,\nc,y\n"))
    assert rows.table["text"].tolist() == ["a", "c"]
    assert ("rows without a label dropped", 3, 0, 2) in rows.steps


def test_a_byte_order_mark_and_windows_line_ends_are_not_data(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "\ufefftext,label\r\na,x\r\nb,y\r\n".encode())
    assert read_table(path).to_dict("list") == {"text": ["a", "b"], "label": ["x", "y"]}


def test_a_tsv_without_quoting_keeps_its_quotes(tmp_path: Path) -> None:
    path = write(tmp_path / "x.tsv", 'text\tlabel\n"so bad\t0\nfine" film\t1\n')
    assert read_table(path)["text"].tolist() == ['"so bad', 'fine" film']


MISTAKES = {
    "a missing column": ("x.csv", "txt,label\na,x\nb,y\n", {}, "no column 'text' .*it has 'txt', 'label'.*Did you mean 'txt'"),
    "a missing label column": ("x.csv", "text,lable\na,x\n", {}, "no column 'label'.*Did you mean 'lable'"),
    "an empty file": ("x.csv", "", {}, "x.csv is empty"),
    "only a header": ("x.csv", "text,label\n", {}, "holds no rows"),
    "an empty JSONL": ("x.jsonl", "\n\n", {}, "holds no rows"),
    "one class only": ("x.csv", "text,label\na,x\nb,x\n", {}, "at least two classes .* only 'x'"),
    "outside the mapping": (
        "x.csv", "text,label\na,x\nb,y\nc,z\n", {"labels": {"x": "p", "y": "n"}}, "outside the mapping.*'z' \\(1 rows\\)",
    ),
    "no star": ("x.csv", "text,label\na,1\nb,6\n", {"stars": True}, "outside the mapping.*'6'"),
    "undecodable bytes": (
        "x.csv", b"text,label\ngood,1\ncaf\xe9,0\n", {}, r"not UTF-8: byte 0xE9 in line 3 \(byte 21 of the file\)",
    ),
    "undecodable after a mark": ("x.csv", b"\xef\xbb\xbftext\n\xff", {}, r"byte 0xFF in line 2 \(byte 8"),
    "too many fields": ("x.csv", "text,label\na,b,1\n", {}, "Line 2 of x.csv has 3 fields and its header has 2"),
    "an open quote": ("x.csv", 'text,label\n"a,1\nb,0\n', {}, "x.csv is malformed"),
    "no JSON": ("x.jsonl", '{"text": "a", "label": 1}\n{"text": \n', {}, "Line 2 of x.jsonl is not JSON"),
    "too deep": ("x.jsonl", '{"text": ' + "[" * 10**5 + "]" * 10**5 + "}\n", {}, "Line 1 of x.jsonl is nested too deeply"),
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
