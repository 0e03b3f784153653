"""What commands print and write: nothing steers a terminal, computes in a spreadsheet, or replaces a file unasked."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pandas as pd
import pytest
from in_process import rtx

from rtx.cli.output import check_out, inert, json_line
from rtxlib.errors import InputError
from rtxlib.runs.card import model_card

EVIL = "fine\x1b[2J\x9b31m\u202egnp\nnext"
SHOWN = r"fine\x1b[2J\x9b31m\u202egnp\nnext"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A run whose labels are hostile: one is a formula, one holds HTML and an escape sequence."""
    folder = tmp_path_factory.mktemp("home")
    file = folder / "a*b.csv"
    labels = ("=1+2", "<b>x</b>\x1b[31m")
    pd.DataFrame([(f"a film that number {n} saw", labels[n % 2]) for n in range(60)], columns=["text", "label"]).to_csv(
        file, index=False
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RTX_HOME", str(folder))
        done = rtx("train", "--model", "standard-1x32", "--data", file, "--recipe", "smoke", "--json")
        assert done.returncode == 0, done.stderr
        yield json.loads(done.stdout.splitlines()[-1])["key"]


def predicted(*arguments: object, status: int = 0) -> tuple[str, str]:
    done = rtx("predict", *arguments)
    assert done.returncode == status and "Traceback" not in done.stderr, done.stderr
    return done.stdout, done.stderr


# ---------------------------------------- terminals


def test_texts_and_labels_steer_no_terminal(run: str) -> None:
    out, _ = predicted(run, EVIL)
    assert out.endswith(f"  {SHOWN}\n") and out.count("\n") == 1
    assert out.startswith(("=1+2", r"<b>x</b>\x1b[31m"))
    _, said = predicted(run, EVIL, "--early-exit", "\x1b[31m:0.5", status=2)
    assert "\x1b" not in said
    assert "\x1b" not in rtx("\x1b[31m").stderr + rtx("predict", run, "--\x1b[31m").stderr
    assert r"'\x1b[31m'" in rtx("params", "\x1b[31m").stderr


def test_names_of_folders_steer_no_terminal(run: str, tmp_path: Path) -> None:
    home, made = tmp_path / "a\x1b[31m\nb", tmp_path / "made\x1b[31m"
    home.mkdir()
    for words in (
        ("results",), ("doctor", "--store"), ("pages", "--out", made),
        ("data", "generate", "--task", "spam", "--rows", "40", "--out", made), ("predict", run, "a film"),
    ):  # fmt: skip
        done = rtx(*words, home=home)
        told = done.stdout + done.stderr
        assert r"\x1b[31m" in told and "\x1b" not in told and "Traceback" not in told, told


def test_json_keeps_every_text_and_steers_no_terminal(run: str) -> None:
    out, _ = predicted(run, EVIL, "naïve ☕", "--json")
    assert not {"\x1b", "\x9b", "\u202e"} & set(out) and "naïve ☕" in out
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["text"] for line in lines] == [EVIL, "naïve ☕"]
    assert set(lines[0]["probabilities"]) == {"=1+2", "<b>x</b>\x1b[31m"}
    assert json.loads(json_line({"a": "\x7f\u2028\ud800"})) == {"a": "\x7f\u2028\ud800"}


def test_similarity_shows_texts_that_steer_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np

    from rtx import embedding as vectors
    from rtx.cli import embed

    monkeypatch.setattr(embed, "_open", lambda *_: (None, None))
    monkeypatch.setattr(vectors, "embed", lambda texts, *_: np.eye(len(texts)))
    for texts in (("a", EVIL), ("a", "b", EVIL)):
        out = rtx("similarity", *texts).stdout
        assert SHOWN in out and not {"\x1b", "\x9b", "\u202e"} & set(out)
    assert json.loads(rtx("similarity", "a", EVIL, "--json").stdout)["texts"] == ["a", EVIL]


def test_the_card_of_a_run_shows_names_and_runs_nothing(run: str, tmp_path: Path) -> None:
    card = (Path(os.environ["RTX_HOME"]) / "data" / "runs" / run / "README.md").read_text(encoding="utf-8")
    assert r"Labels: &lt;b&gt;x&lt;/b&gt;\\x1b\[31m, =1+2." in card and r"# standard-1x32, trained on a\*b.csv" in card
    assert "<b>" not in card and "\x1b" not in card
    names = ["model", "family", "data", "device", "dtype", "recipe"]
    numbers = (
        "num_hidden_layers recurrent_depth hidden_size parameters non_embedding_parameters accuracy f1 precision recall "
        "n_test seed train_rows epochs train_seconds best_epoch"
    )
    metrics = dict.fromkeys(numbers.split(), 1) | {name: "x\n---\n<script>`[a](b)" for name in names} | {"family": "standard"}
    card = model_card(metrics, ["a"], {}, pairs=False)
    assert "<script>" not in card and card.count("\n---\n") == 1 and r"x\\n---\\n&lt;script&gt;\`\[a\](b)" in card


# ---------------------------------------- spreadsheets


def test_a_csv_computes_nothing_in_a_spreadsheet(run: str, tmp_path: Path) -> None:
    table = pd.DataFrame({"text": ["=1+2", "+a", "-5", "a=b", ""], "@x": ["\tq", "-1.5e3", "- a", "'=x", "\rz"], "n": range(5)})
    file, out = tmp_path / "in.jsonl", tmp_path / "out.csv"
    table.to_json(file, orient="records", lines=True)
    _, said = predicted(run, file, "--out", out)
    written = pd.read_csv(out, dtype=str, keep_default_na=False)
    assert list(written["text"]) == ["'=1+2", "'+a", "-5", "a=b", ""]
    assert list(written)[1] == "'@x" and list(written["'@x"]) == ["'\tq", "-1.5e3", "'- a", "'=x", "'\rz"]
    formulas = 6 + list(written["predicted"]).count("'=1+2")
    assert f"{formulas} cells start like a formula of a spreadsheet and got an apostrophe in front" in said
    for ending in ("jsonl", "parquet"):  # exact, and without the line
        _, said = predicted(run, file, "--out", tmp_path / f"out.{ending}")
        assert "apostrophe" not in said
        read = pd.read_parquet if ending == "parquet" else lambda path: pd.read_json(path, lines=True, dtype=False)
        assert list(read(tmp_path / f"out.{ending}")["text"]) == list(table["text"])


def test_numbers_and_other_texts_stay_as_they_are() -> None:
    table = pd.DataFrame({"text": ["a", "+3", "-0.5", "1", "'", " =x"], "number": [-1.5, 2, -3, 4, 5, 6]})
    table["sign"], table["mixed"] = ["+", "+, then a norm", "-", "- ", "", "x"], pd.Series([1, None, 2, "a", 3, 4], dtype=object)
    same, changed = inert(table.drop(index=3))
    assert changed == 0 and same.equals(table.drop(index=3)) and inert(table)[1] == 1


def test_no_table_of_a_committed_figure_is_changed() -> None:
    """The tables of figures are written inert, and their bytes are those from before that."""
    files = [*(Path(__file__).resolve().parents[1] / "figures").rglob("*.csv")]
    changed = {file.name: inert(pd.read_csv(file, dtype=str, keep_default_na=False))[1] for file in files}
    assert len(files) > 20 and not any(changed.values()), changed


def test_the_table_of_runs_computes_nothing_either(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from rtxlib.runs import store

    monkeypatch.setattr(store, "runs_table", lambda runs: pd.DataFrame({"key": ["a"], "model": ["=1+2\x1b[31m"], "f1": [-0.5]}))
    done = rtx("results", "--csv")
    assert done.stdout == "key,model,f1\na,'=1+2\\x1b[31m,-0.5\n" and "1 cell starts" in done.stderr
    assert r"=1+2\x1b[31m" in rtx("results").stdout


def test_the_generator_writes_no_formula() -> None:
    from rtxlib.data import synthetic

    for task in synthetic.LABELS:
        assert inert(synthetic.generate(1000, 1, 6, 0.02, task))[1] == 0


# ---------------------------------------- files that exist


@pytest.mark.parametrize("command", ["predict", "embed"])
def test_out_replaces_nothing_unasked(command: str, run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rtx.cli import embed

    monkeypatch.setattr(embed, "_open", lambda *_: pytest.fail("a model was loaded"))
    texts, out, kept = tmp_path / "in.txt", tmp_path / "out.parquet", tmp_path / "kept"
    texts.write_text("a fine film\n")
    kept.write_text("kept")
    words = ("predict", run, "--file", texts) if command == "predict" else ("embed", texts)

    def refused(*more: str) -> str:
        before = {path.name: os.readlink(path) if path.is_symlink() else None for path in tmp_path.iterdir()}
        done = rtx(*words, "--out", out, *more)
        assert done.returncode == 2 and done.stderr.count("\n") == 1 and kept.read_text() == "kept", done.stderr
        assert {path.name: os.readlink(path) if path.is_symlink() else None for path in tmp_path.iterdir()} == before
        return done.stderr

    out.write_text("mine")
    assert "exists already; name another file, or replace it with --force" in refused() and out.read_text() == "mine"
    out.unlink()
    for target in (kept, tmp_path / "nothing"):
        out.symlink_to(target)
        assert "is a link" in refused()
        out.unlink()
    os.mkfifo(out)
    assert "is not a plain file" in refused() and "is not a plain file" in refused("--force")
    out.unlink()
    out.symlink_to(texts)
    assert "would replace" in refused() and "would replace" in refused("--force")


def test_force_replaces_a_file_and_a_link_but_not_what_it_points_to(run: str, tmp_path: Path) -> None:
    out, kept = tmp_path / "out.csv", tmp_path / "kept.csv"
    kept.write_text("kept")
    out.symlink_to(kept)
    for _ in range(2):
        predicted(run, "a fine film", "--out", out, "--force")
        assert not out.is_symlink() and out.read_text().startswith("text,label,p_") and kept.read_text() == "kept"
    with pytest.raises(InputError, match="is not a plain file"):
        check_out("/dev/null", True)


def test_an_out_that_cannot_be_written_is_told_before_texts_are_labelled(run: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    for out in (tmp_path / "file" / "a.csv", tmp_path / "file" / "b" / "a.csv"):
        _, said = predicted(run, "a film", "--out", out, status=2)
        assert "a part of its path is a file" in said and said.count("\n") == 1
    done = rtx("data", "generate", "--task", "spam", "--rows", "40", "--out", tmp_path / "file" / "b")
    assert done.returncode == 2 and "a part of its path is a file" in done.stderr
    _, said = predicted(run, "a film", "--out", Path(tmp_path, *["d" * 200] * 25, "x.csv"), status=2)
    assert "the path '" in said and "is too long" in said
    _, said = predicted(run, "=1+2", "--out", tmp_path / "A.CSV")
    assert (tmp_path / "A.CSV").read_text().startswith("text,label,") and "like a formula" in said


def test_the_pages_replace_no_link(tmp_path: Path) -> None:
    mine = tmp_path / "mine.html"
    mine.write_text("mine")
    for target in (mine, tmp_path / "nothing"):
        (tmp_path / "index.html").symlink_to(target)
        done = rtx("pages", "--out", tmp_path)
        assert done.returncode == 2 and "is there and not one of these pages" in done.stderr
        assert (tmp_path / "index.html").is_symlink() and len(list(tmp_path.iterdir())) == 2
        (tmp_path / "index.html").unlink()


# ---------------------------------------- the columns of a table


def test_a_table_keeps_its_own_columns(run: str, tmp_path: Path) -> None:
    file = tmp_path / "in.csv"
    file.write_text("id,comment,label,text\n007,a fine film,positive,other\n8,,negative,another\n")
    expected = [["007", "a fine film", "positive", "other"], ["8", "", "negative", "another"]]
    for ending, read in (("csv", lambda path: pd.read_csv(path, dtype=str, keep_default_na=False)), ("parquet", pd.read_parquet)):
        out = tmp_path / f"out.{ending}"
        predicted(run, file, "--text-column", "comment", "--out", out)
        table = read(out)
        assert list(table)[:5] == ["id", "comment", "label", "text", "predicted"]
        assert sorted(list(table)[5:]) == ["p_<b>x</b>\x1b[31m", "p_=1+2"]
        assert table.iloc[:, :4].to_numpy().tolist() == expected
    lines = [json.loads(line) for line in predicted(run, file, "--text-column", "comment", "--json")[0].splitlines()]
    assert [list(line.values())[:4] for line in lines] == expected
    assert list(lines[0]) == ["id", "comment", "label", "text", "predicted", "probabilities"]
    assert lines[0]["predicted"] == table["predicted"][0]
    _, said = predicted(run, out, "--text-column", "comment", "--out", tmp_path / "again.csv", status=2)  # its own answers
    assert "has a column 'predicted' of its own" in said and not (tmp_path / "again.csv").exists()


def test_texts_without_a_table_have_the_columns_text_and_label(run: str, tmp_path: Path) -> None:
    file, out = tmp_path / "in.txt", tmp_path / "out.jsonl"
    file.write_text("a fine film\n")
    predicted(run, file, "--out", out)
    assert list(json.loads(out.read_text()))[:2] == ["text", "label"]
    assert list(json.loads(predicted(run, file, "--json")[0])) == ["text", "label", "probabilities"]


def test_a_column_that_stands_twice_is_refused_where_it_has_no_room(run: str, tmp_path: Path) -> None:
    file = tmp_path / "in.csv"
    file.write_text("text,a,a\nfine,1,2\n")
    _, said = predicted(run, file, "--json", status=2)
    assert "more than one column 'a', which only CSV can hold; rename one" in said
    predicted(run, file)
    predicted(run, file, "--out", tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text().startswith("text,a,a,predicted,")
