"""The command line as a person meets it: answers at once, JSON where asked, one sentence where something is wrong."""

from __future__ import annotations

import errno
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from in_process import rtx

from rtx import cli
from rtx.cli import commands
from rtxlib import paths

RTX = [sys.executable, "-m", "rtx"]
SMALL = ["train", "--model", "recurrent-1x2x32", "--data", "embedded", "--rows", "240", "--recipe", "smoke", "--json"]


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def run(home: Path) -> dict:
    done = rtx(*SMALL, home=home)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.strip().splitlines()[-1])


def test_help_loads_no_torch() -> None:
    heavy = {"torch", "pandas", "transformers", "matplotlib"}
    code = f"""
import sys
sys.argv = ["rtx", "--help"]
try:
    from rtx.cli import main
    main()
finally:
    print(sorted({heavy} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "Commands:" in done.stdout and done.stdout.strip().endswith("[]")
    study, _, others = done.stdout.partition("Study:")[2].partition("Commands:")
    assert [line.split()[0] for line in study.strip().splitlines()] == ["compare", "notebook", "pages", "report"]
    assert "train" in others and "report " not in others


def test_params_counts(home: Path) -> None:
    done = rtx("params", "standard-6x384", "--json", home=home)
    assert json.loads(done.stdout) == {"total": 25_912_706, "embedding": 11_720_448, "non_embedding": 14_192_258}


def test_train_ends_with_one_line_of_json(run: dict) -> None:
    assert 0 <= run["accuracy"] <= 1 and Path(run["run"], "model.safetensors").is_file()


def test_results_lists_the_run(run: dict, home: Path) -> None:
    assert run["key"] in rtx("results", home=home).stdout
    table = rtx("results", "--csv", home=home).stdout.splitlines()
    assert len(table) == 2 and "accuracy" in table[0]


def test_predict_takes_arguments_files_and_standard_input(run: dict, home: Path, tmp_path: Path) -> None:
    one = json.loads(rtx("predict", run["key"], "a fine film", "--json", home=home).stdout)
    assert one["label"] in one["probabilities"] and sum(one["probabilities"].values()) == pytest.approx(1, abs=1e-5)
    piped = rtx("predict", run["run"], "--json", home=home, given=b"a fine film\nnot a fine film\n")
    lines = [json.loads(line) for line in piped.stdout.splitlines()]
    assert [line["text"] for line in lines] == ["a fine film", "not a fine film"]
    assert lines[0]["probabilities"] == pytest.approx(one["probabilities"], rel=1e-4)
    table = tmp_path / "reviews.csv"
    pd.DataFrame({"review": ["a fine film", "late parcel"], "stars": ["positive", "negative"]}).to_csv(
        table, index=False
    )
    out = tmp_path / "answers.parquet"
    done = rtx("predict", run["key"], str(table), "--text-column", "review", "--out", str(out), home=home)
    assert done.returncode == 0 and len(pd.read_parquet(out)) == 2 and list(tmp_path.glob(".*")) == []
    columns = ("--text-column", "review", "--label-column", "stars")
    scores = json.loads(rtx("evaluate", run["key"], str(table), *columns, "--json", home=home).stdout)
    assert scores["n"] == 2 and 0 <= scores["accuracy"] <= 1


def test_a_full_disk_under_the_output_is_one_sentence(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(commands.cli, "invoke", full)
    monkeypatch.setattr(sys, "argv", ["rtx", "results"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert capsys.readouterr().err == "rtx: The disk is full; free some space and give the same command again.\n"


def test_doctor_is_content_here(home: Path) -> None:
    done = rtx("doctor", home=home)
    assert done.returncode == 0, done.stdout
    assert "forward and backward" in done.stdout and "BAD" not in done.stdout


def test_doctor_is_not_content_where_it_cannot_write(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    done = rtx("doctor", home=blocked)
    assert done.returncode == 1 and "BAD  disk" in done.stdout


def test_a_users_own_file_with_three_classes_trains(home: Path, tmp_path: Path) -> None:
    from rtxlib.data.synthetic import generate

    file = tmp_path / "mine.jsonl"
    rows = generate(300, seed=3, depth=0)
    rows.rename(columns={"text": "body", "domain": "kind"})[["body", "kind"]].to_json(
        file, orient="records", lines=True
    )
    given = ("--data", str(file), "--text-column", "body", "--label-column", "kind")
    done = rtx("train", "--model", "standard-1x32", "--recipe", "smoke", *given, "--json", home=home)
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout.strip().splitlines()[-1])
    answer = json.loads(rtx("predict", record["key"], "the waiter brought soup", "--json", home=home).stdout)
    assert set(answer["probabilities"]) == {"movies", "local business", "online shopping"}


BAD = [
    (["trian"], "Did you mean 'train'"),
    (["train", "--model", "standrad-6x384", "--data", "embedded"], "Did you mean 'standard-6x384'"),
    (["train", "--model", "standard-1x32", "--data", "embeded"], "Did you mean 'embedded'"),
    (["train", "--model", "standard-1x32", "--data", "embedded", "--recipe", "publshed"], "Did you mean 'published'"),
    (["train", "--model", "standard-1x32", "--data", "embedded", "--set", "nrom=layernorm"], "Did you mean 'norm'"),
    (["train", "--model", "standard-1x32", "--data", "nowhere.csv"], "There is no file 'nowhere.csv'"),
    (["train", "--model", "standard-1x32", "--data", "x" * 300], "There is no data 'xxx"),
    (["train", "--model", "standard-1x32", "--data", "embedded", "--sed", "1"], "--seed"),
    (["report", "--profile", "dmeo"], "Did you mean 'demo'"),
    (["report", "--dry-run", "-p", "sedes=3"], "Did you mean 'seeds'"),
    (["report", "-p", "sedes=3"], "Did you mean 'seeds'"),
    (["report", "--executor", "rya"], "Did you mean 'ray'"),
    (["report", "--dry-run", "--executor", "rya"], "Did you mean 'ray'"),
    (["report", "--dry-run", "--notebooks", ""], "'' names 13 notebooks"),
    (["train", "--model", "standard-1x32", "--data", "embedded", "--threads", "0"], "--threads"),
    (["notebook", "03", "-p", "seeds=many"], "seeds"),
    (["notebook", "3_recurent"], "03_recurrent"),
    (["predict", "no-such-run", "text"], "There is no run 'no-such-run'"),
]


@pytest.mark.parametrize(("arguments", "says"), BAD, ids=[" ".join(arguments[:6]) for arguments, _ in BAD])
def test_bad_input_is_one_sentence_and_a_status(arguments: list[str], says: str, home: Path, run: dict) -> None:
    done = rtx(*arguments, home=home)
    assert done.returncode == 2
    error = done.stderr
    assert says in error and "Traceback" not in error


def test_a_home_that_can_be_none_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for home, says in ((tmp_path / "file", "is not a folder"), (Path("~nobody-at-all"), "home folder that does not exist")):
        done = rtx("results", home=home)
        assert done.returncode == 2 and says in done.stderr and "Traceback" not in done.stderr


def test_half_told_of_other_processes_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    done = rtx(*SMALL, home=tmp_path)
    assert done.returncode == 2 and "not RANK, LOCAL_RANK, MASTER_ADDR, MASTER_PORT: start with torchrun" in done.stderr


def test_bad_files_are_one_sentence(run: dict, home: Path, tmp_path: Path) -> None:
    latin, empty, table = tmp_path / "latin.txt", tmp_path / "empty.txt", tmp_path / "t.csv"
    latin.write_bytes("caf\xe9 was fine\n".encode("latin-1"))
    empty.write_text("")
    table.write_text("text,label\na fine film,great\n")
    for arguments, says in (
        (["predict", run["key"], "--file", str(latin)], "UTF-8"),
        (["predict", run["key"], "--file", str(empty)], "no text"),
        (["predict", run["key"], str(table), "--text-column", "txet"], "no column 'txet'"),
        (["predict", run["key"], "--file", str(latin), "--text-column", "text"], "is read line by line and has no columns"),
        (["predict", run["key"], "a fine film", "--text-column", "text"], "the texts are not in one; leave it out"),
        (["evaluate", run["key"], str(table)], "'great'"),
        (["evaluate", run["key"], str(table), "--labels", "{"], "not JSON"),
        (["predict", run["key"], "x", "--out", str(tmp_path / "o.xlsx")], "must end in"),
        (["predict", run["key"], "x", "--early-exit", "confidence"], "confidence:0.9"),
        (["predict", run["key"], "x", "--early-exit", "confidense:0.9"], "Did you mean 'confidence'"),
    ):
        done = rtx(*arguments, home=home)
        assert done.returncode == 2 and says in done.stderr and "Traceback" not in done.stderr, arguments


def test_predict_takes_other_passes_and_lets_texts_leave(run: dict, home: Path) -> None:
    """Leaving at once is one pass, never leaving is all of them."""

    def probability(*more: str) -> float:
        return json.loads(rtx("predict", run["key"], "a fine film", "--json", *more, home=home).stdout)["probabilities"][
            "positive"
        ]

    assert probability("--passes", "1") == pytest.approx(probability("--early-exit", "confidence:0"), rel=1e-4)
    assert probability() == pytest.approx(probability("--early-exit", "change:1"), rel=1e-4)
    by_passes = [probability("--passes", str(passes)) for passes in (1, 2, 5)]
    assert min(abs(a - b) for a, b in itertools.combinations(by_passes, 2)) > 1e-3 * max(by_passes)


@pytest.mark.parametrize(
    ("home", "folder", "expected"),
    [("/h", "", "/h"), ("/h", "checkout/notebooks", "/h"), (None, "checkout/notebooks", "checkout"), (None, "", "")],
    ids=["RTX_HOME", "RTX_HOME before a checkout", "a checkout", "the working directory"],
)
def test_the_root_is_rtx_home_then_the_checkout_then_the_working_directory(
    home: str | None, folder: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in ("checkout/pyproject.toml", "checkout/rtxlib/paths.py", "checkout/notebooks/01.ipynb"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    monkeypatch.setattr(paths, "__file__", str(tmp_path / "site-packages" / "rtxlib" / "paths.py"))
    monkeypatch.chdir(tmp_path / folder)
    if home is None:
        monkeypatch.delenv("RTX_HOME", raising=False)
    else:
        monkeypatch.setenv("RTX_HOME", home)
    assert paths.root() == tmp_path / expected  # an absolute home replaces the folder before it


def test_works_without_a_checkout(run: dict, home: Path, tmp_path: Path) -> None:
    """From any folder, the root is RTX_HOME."""
    done = subprocess.run(
        [*RTX, "results"], cwd=tmp_path, env={**os.environ, "RTX_HOME": str(home)}, capture_output=True
    )
    assert run["key"].encode() in done.stdout
