"""Generated files are labelled, the same every time, replaced only by force, and ready to train on."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from in_process import rtx

from rtxlib.data.datasets import File
from rtxlib.data.prepare import prepare
from rtxlib.data.synthetic import LABELS

SMALL = ("--rows", "240", "--depth", "1")


def generate(*arguments: object, home: Path) -> SimpleNamespace:
    return rtx("data", "generate", *arguments, home=home)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root whose three files are generated."""
    home = tmp_path_factory.mktemp("home")
    done = generate(*SMALL, home=home)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"{home}/data/generated/sentiment.csv  240 rows: negative 120, positive 120",
        f"{home}/data/generated/domain.csv  240 rows: local business 80, movies 80, online shopping 80",
        f"{home}/data/generated/spam.csv  240 rows: ham 120, spam 120",
    ]
    return home


@pytest.mark.parametrize("task", LABELS)
def test_a_generated_file_is_ready_to_train_on(task: str, home: Path, prepared_cache: Path) -> None:
    file = home / "data" / "generated" / f"{task}.csv"
    table = pd.read_csv(file)
    assert list(table) == (["text", "label"] if task == "domain" else ["text", "label", "domain"])
    assert set(table["label"]) == set(LABELS[task]) and table["text"].nunique() == 240
    data = prepare(File(path=str(file), vocab_size=300), prepared_cache, progress=False)
    assert set(data.label_names) == set(LABELS[task])
    assert sum(len(split) for split in data.splits.values()) == 240


def test_the_same_seed_gives_the_same_bytes_and_says_so(home: Path, tmp_path: Path) -> None:
    folder = home / "data" / "generated"
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}
    again = generate(*SMALL, home=home)
    assert again.returncode == 0 and again.stdout.count("(there already)") == 3
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()} == before
    assert generate(*SMALL, "--out", tmp_path, home=home).returncode == 0
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {n: c for n, (c, _) in before.items()}


def test_other_rows_replace_a_file_only_by_force(home: Path, tmp_path: Path) -> None:
    spam = (*SMALL, "--task", "spam", "--out", tmp_path)
    assert generate(*spam, home=home).returncode == 0
    kept = (tmp_path / "spam.csv").read_bytes()
    refused = generate(*SMALL, "--seed", "1", "--out", tmp_path, home=home)  # all three files; one exists
    assert refused.returncode == 2 and "--force" in refused.stderr and "spam.csv" in refused.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["spam.csv"]
    assert (tmp_path / "spam.csv").read_bytes() == kept
    assert generate(*spam, "--seed", "1", "--force", home=home).returncode == 0
    assert (tmp_path / "spam.csv").read_bytes() != kept


def test_every_format_holds_the_same_rows(home: Path, tmp_path: Path) -> None:
    for ending in ("jsonl", "parquet"):
        done = generate(*SMALL, "--task", "sentiment", "--format", ending, "--out", tmp_path, home=home)
        assert done.returncode == 0, done.stderr
    expected = pd.read_csv(home / "data" / "generated" / "sentiment.csv").astype(object)
    lines = (tmp_path / "sentiment.jsonl").read_text(encoding="utf-8").splitlines()
    assert pd.DataFrame([json.loads(line) for line in lines]).astype(object).equals(expected)
    assert pd.read_parquet(tmp_path / "sentiment.parquet").astype(object).equals(expected)


def test_noise_is_a_share_of_wrong_labels(home: Path, tmp_path: Path) -> None:
    for name, noise in (("clean", "0"), ("noisy", "0.25")):
        generate(*SMALL, "--task", "spam", "--noise", noise, "--out", tmp_path / name, home=home)
    clean, noisy = (pd.read_csv(tmp_path / name / "spam.csv") for name in ("clean", "noisy"))
    assert clean["text"].equals(noisy["text"]) and (clean["label"] != noisy["label"]).mean() == 0.25


def test_the_name_of_a_file_is_no_folder(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused = generate(*SMALL, "--task", "spam", "--out", "t.jsonl", home=home)
    assert refused.returncode == 2 and not list(tmp_path.iterdir())
    command = "rtx data generate --task spam --out t --format jsonl"
    assert f"--out names a folder, and t.jsonl is the name of a file; write `{command}`." in refused.stderr
    assert generate(*SMALL, *command.split()[3:], home=home).returncode == 0
    assert [path.as_posix() for path in Path().rglob("*.*")] == ["t/spam.jsonl"]
    assert "--out t --format csv" in generate("--out", "t.txt", home=home).stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--task", "sentimnet"], "Did you mean 'sentiment'"),
        (["--format", "cvs"], "Did you mean 'csv'"),
        (["--rows", "0"], "at least 1 row"),
        (["--depth", "9"], "from 0 to 6"),
        (["--noise", "0.5"], "below 0.5"),
        (["--seed", "-1"], "seed is -1"),
        (["--rows", "999999999999"], "Generating 999,999,999,999 rows takes about 1,000,000.0 GB of memory, and "),
        (["--rows", "many"], "--rows"),
        (["--out", "/dev/null/here"], "a part of its path is a file"),
    ],
)
def test_bad_input_is_one_sentence_and_a_status(arguments: list[str], says: str, home: Path) -> None:
    small = () if "--rows" in arguments else ("--rows", "60")
    done = generate(*small, *arguments, home=home)
    assert done.returncode == 2 and says in done.stderr and "Traceback" not in done.stderr, done.stderr
