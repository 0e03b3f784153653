"""Prepared data: the steps from a spec to token ids, made once, never half written, and the same every time."""

from __future__ import annotations

import dataclasses
import errno
import subprocess
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from test_data_clean import takes_linear_time

from rtxlib import checksums, memory
from rtxlib.data import audit, clean, splits, tokenization
from rtxlib.data import prepare as module
from rtxlib.data.clean import STEPS, clean_texts
from rtxlib.data.datasets import HUB, NAMES, File, Generated, data_spec
from rtxlib.data.prepare import Prepared, prepare
from rtxlib.data.spec import DataSpec
from rtxlib.data.tokenization import encode
from rtxlib.errors import InputError

SMALL = Generated(rows=240, depth=1, vocab_size=300)
COLUMNS = ["text", "label", "label_name", "domain", "words", "tokens"]


@pytest.fixture(scope="module")
def small(prepared_cache: Path) -> Prepared:
    return prepare(SMALL, prepared_cache, progress=False)


def another(prepared_cache: Path, **changes: object) -> Prepared:
    return prepare(dataclasses.replace(SMALL, **changes), prepared_cache, progress=False)


def test_each_step_can_be_called_and_together_they_are_what_prepare_makes(small: Prepared, tmp_path: Path) -> None:
    rows = SMALL.read()
    assert len(rows.table) == 240 and rows.steps == [("generated", 240, 0, 240)]
    clean.clean_rows(rows, SMALL)
    assert rows.steps[-2:] == [("lower-cased", 240, 240, 240), ("white space squeezed", 240, 0, 240)]
    before = audit.audit_source(rows, SMALL)
    assert set(before["left"]) == {"as read"}
    splits.split_rows(rows, SMALL)
    assert [len(rows.part(name)) for name in small.splits] == [192, 24, 24]
    tokenizer, described = tokenization.choose(rows, SMALL, None)
    arrays = tokenization.tokenise(rows, SMALL, tokenizer)
    assert described == small.provenance["tokenizer"] and rows.table["label"].dtype == np.int64
    found = audit.audit_splits(rows, SMALL)
    pd.testing.assert_frame_equal(pd.concat([before, found], ignore_index=True), small.audit)
    module.write(tmp_path / "made", SMALL, rows, arrays, tokenizer, small.provenance, found)
    made = module.read(tmp_path / "made", SMALL)
    assert made.fingerprint == small.fingerprint
    pd.testing.assert_frame_equal(made.filters, small.filters)


def test_the_embedded_data_are_split_three_ways_and_described(small: Prepared) -> None:
    assert {name: len(tokens) for name, tokens in small.splits.items()} == {"train": 192, "validation": 24, "test": 24}
    assert small.label_names == ["negative", "positive"]
    assert small.provenance["source"] == "embedded generator"
    assert small.provenance["tokenizer"] == "wordpiece, trained on the training split"
    assert small.filters.columns.tolist() == ["step", "rows_in", "rows_changed", "rows_out"]
    assert small.filters["step"].tolist()[0] == "generated"
    assert small.filters["step"].tolist()[-1] == "texts cut to 256 tokens"
    assert not small.audit.query("check == 'leak' and rows > 0").any(axis=None)


def test_the_arrays_are_the_texts(small: Prepared) -> None:
    for name, tokens in small.splits.items():
        rows = small.rows(name)
        ids, offsets = encode(rows["text"], small.tokenizer, SMALL.max_length)
        assert rows.columns.tolist() == [*COLUMNS, "depth"]  # of embedded rows
        assert isinstance(tokens.ids, np.memmap) and tokens.ids.dtype == np.int32
        assert np.array_equal(ids, tokens.ids) and np.array_equal(offsets, tokens.offsets)
        assert np.array_equal(rows["label"], tokens.labels)
        assert rows["label_name"].tolist() == [small.label_names[i] for i in tokens.labels]
        assert rows["tokens"].tolist() == tokens.lengths.tolist()
        assert small.texts(name) == rows["text"].tolist()
        assert tokens.row(3).tolist() == ids[offsets[3] : offsets[4]].tolist()


def test_texts_are_cleaned_as_a_prediction_cleans_them(small: Prepared) -> None:
    texts = small.texts("train")
    assert clean_texts(texts, **{name: getattr(SMALL, name) for name in STEPS}) == texts


def test_the_fingerprint_is_of_the_content_alone(small: Prepared, tmp_path: Path) -> None:
    assert prepare(SMALL, tmp_path, progress=False).fingerprint == small.fingerprint
    arrays, vocabulary = dict(small.splits), small.tokenizer.get_vocab()
    assert module.fingerprint(arrays, small.label_names, vocabulary) == small.fingerprint
    other = dataclasses.replace(arrays["test"], labels=1 - arrays["test"].labels)
    assert module.fingerprint(arrays | {"test": other}, small.label_names, vocabulary) != small.fingerprint
    assert module.fingerprint(arrays, small.label_names[::-1], vocabulary) != small.fingerprint


def test_prepared_data_are_not_made_twice(
    small: Prepared, prepared_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "make", lambda *_: pytest.fail("made again"))
    assert prepare(SMALL, prepared_cache).fingerprint == small.fingerprint


def test_a_process_hashes_prepared_data_once(small: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    assert module.intact(small.folder)
    hashed, digest = [], checksums._digest
    monkeypatch.setattr(checksums, "_digest", lambda path: hashed.append(path.name) or digest(path))
    assert module.read(small.folder, SMALL).fingerprint == small.fingerprint and not hashed
    (small.folder / "test.ids.npy").touch()
    assert module.intact(small.folder) and "test.ids.npy" in hashed
    checksums._hashed.clear()  # as in a new process
    hashed.clear()
    assert module.intact(small.folder) and sorted(hashed) == sorted(path.name for path in small.folder.rglob("*.*"))


def test_long_texts_are_cut_and_counted(small: Prepared, prepared_cache: Path) -> None:
    cut = another(prepared_cache, max_length=16)
    rows = pd.concat([cut.rows(name) for name in cut.splits])
    assert max(tokens.lengths.max() for tokens in cut.splits.values()) == 16
    assert cut.filters["rows_changed"].iloc[-1] == (rows["tokens"] > 16).sum() > 0
    assert all((tokens.ids[tokens.offsets[1:] - 1] == cut.tokenizer.sep_token_id).all() for tokens in cut.splits.values())


def test_fractions_are_nested_and_leave_the_other_splits_alone(small: Prepared, prepared_cache: Path) -> None:
    tenth, half = (another(prepared_cache, train_fraction=fraction) for fraction in (0.1, 0.5))
    assert [len(data.splits["train"]) for data in (tenth, half)] == [18, 96]
    assert set(tenth.texts("train")) < set(half.texts("train")) < set(small.texts("train"))
    assert tenth.texts("test") == small.texts("test") and half.texts("validation") == small.texts("validation")
    assert len({data.fingerprint for data in (tenth, half, small)}) == 3


def test_shortest_and_longest_are_chosen_in_every_split(small: Prepared, prepared_cache: Path) -> None:
    short, long = (another(prepared_cache, lengths=which) for which in ("shortest", "longest"))
    for name in small.splits:
        assert len(short.splits[name]) == len(long.splits[name]) == round(0.3 * len(small.splits[name]))
        assert short.rows(name)["tokens"].max() <= long.rows(name)["tokens"].min()


@pytest.mark.parametrize(
    ("changes", "labels"),
    [
        ({"task": "domain"}, ["movies", "local business", "online shopping"]),
        ({"task": "spam"}, ["ham", "spam"]),
        ({"domain": "movies"}, ["negative", "positive"]),
    ],
)
def test_every_embedded_variant_can_be_prepared(changes: dict, labels: list[str], prepared_cache: Path) -> None:
    data = another(prepared_cache, **changes)
    assert data.label_names == labels
    assert sum(map(len, data.splits.values())) == 240
    assert set(data.rows("test")["label_name"]) == set(labels)
    if "domain" in changes:
        assert set(data.rows("train")["domain"]) == {"movies"}


def test_a_half_written_folder_does_not_count(small: Prepared, tmp_path: Path) -> None:
    folder = tmp_path / small.folder.name
    folder.mkdir()
    (folder / "train.ids.npy").write_bytes((small.folder / "train.ids.npy").read_bytes())
    assert module.read(folder, SMALL) is None
    assert prepare(SMALL, tmp_path, progress=False).fingerprint == small.fingerprint


@pytest.mark.parametrize(
    "file",
    ["train.ids.npy", "test.labels.npy", "data.json", "SHA256SUMS", "train.parquet", "tokenizer/tokenizer.json"],
)
def test_damage_is_noticed_and_mended(
    file: str, small: Prepared, prepared_cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = small.folder / file
    content = bytearray(path.read_bytes())
    if path.suffix == ".npy":
        content[-8] ^= 1  # one bit of the last numbers
    path.write_bytes(content if path.suffix == ".npy" else content[: len(content) // 2])
    again = prepare(SMALL, prepared_cache)
    assert "is damaged and is made anew" in capsys.readouterr().err
    assert again.fingerprint == small.fingerprint


def test_a_full_disk_is_one_sentence_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for error in (
        OSError(errno.ENOSPC, "No space left on device"),
        OSError("2040 requested and 0 written"),  # np.save gives no number
        Exception("No space left on device (os error 28)"),  # tokenizers raises no OSError
    ):
        monkeypatch.setattr(np, "save", mock.Mock(side_effect=error))
        with pytest.raises(InputError, match=r"disk of .* is full"):
            prepare(SMALL, tmp_path, progress=False)
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".lock"] == []
    monkeypatch.undo()
    assert prepare(SMALL, tmp_path, progress=False).splits


def test_two_processes_prepare_once(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from rtxlib.data.datasets import Generated\n"
        "from rtxlib.data.prepare import prepare\n"
        "print(prepare(Generated(rows=240, depth=1, vocab_size=300), Path(sys.argv[1])).fingerprint)"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [process.communicate(timeout=300) for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    assert outputs[0][0] == outputs[1][0]
    assert sum("data: tokenising" in err for _, err in outputs) == 1
    assert len([path for path in tmp_path.iterdir() if path.is_dir()]) == 1


@pytest.fixture
def topics(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    words = {"sport": "match goal team coach score", "food": "soup bread oven spice plate", "law": "court judge case bill"}
    rows = [(" ".join(rng.choice(words[t].split(), 9)) + f" {i}", t) for i, t in enumerate(list(words) * 60)]
    rows += [("the very same long text again", "law")] * 12 + [("  ", "food")] * 3
    path = tmp_path / "topics.csv"
    pd.DataFrame(rows, columns=["body", "topic"]).to_csv(path, index=False)
    return path


def file_spec(path: Path, **changes: object) -> DataSpec:
    fields = {"source": "file", "path": str(path), "text_column": "body", "label_column": "topic", "vocab_size": 200}
    return data_spec(**(fields | changes))


def test_a_file_of_three_classes(topics: Path, tmp_path: Path) -> None:
    data = prepare(file_spec(topics), tmp_path / "cache", progress=False)
    assert data.label_names == ["food", "law", "sport"]
    steps = data.filters.set_index("step")
    assert steps.loc["empty texts dropped", "rows_in"] - steps.loc["empty texts dropped", "rows_out"] == 3
    assert sum(map(len, data.splits.values())) == 192
    homes = [name for name in data.splits if "the very same long text again" in data.texts(name)]
    assert len(homes) == 1
    assert data.provenance["source"] == "topics.csv" and data.provenance["revision"].startswith("sha256:")


def test_a_changed_file_is_other_data(topics: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first = prepare(file_spec(topics), cache, progress=False)
    (tmp_path / "moved").mkdir()
    moved = topics.rename(tmp_path / "moved" / "topics.csv")
    assert prepare(file_spec(moved), cache, progress=False).folder == first.folder
    moved.write_text(moved.read_text() + "a new row of words,law\n")
    assert prepare(file_spec(moved), cache, progress=False).fingerprint != first.fingerprint


def test_a_file_that_changes_while_it_is_read_is_not_prepared(topics: Path, tmp_path: Path, monkeypatch) -> None:
    read = File.read
    monkeypatch.setattr(File, "read", lambda spec: (topics.write_text(topics.read_text() + "one more,law\n"), read(spec))[1])
    with pytest.raises(InputError, match=r"topics\.csv changed while it was read"):
        prepare(file_spec(topics), tmp_path / "cache", progress=False)
    assert not list((tmp_path / "cache").glob("*/"))


def test_a_file_name_may_be_no_utf_8(topics: Path, tmp_path: Path) -> None:
    odd = topics.rename(topics.with_name("caf\udce9.csv"))
    data = prepare(file_spec(odd), tmp_path / "cache", progress=False)
    assert "read from caf\\udce9.csv" in set(data.filters["step"])


def test_a_text_with_three_annotators_stays_in_one_split(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    words = {"good": "warm funny moving bright", "bad": "dull slow loud tired"}
    texts = [(f"number {i} was " + " ".join(rng.choice(words[label].split(), 6)), label) for i, label in enumerate([*words] * 40)]
    path = tmp_path / "annotated.csv"
    pd.DataFrame([row for row in texts for _ in range(3)], columns=["body", "topic"]).to_csv(path, index=False)
    data = prepare(file_spec(path), tmp_path / "cache", progress=False)
    assert {name: len(tokens) for name, tokens in data.splits.items()} == {"train": 192, "validation": 24, "test": 24}
    assert not data.audit.query("check == 'same text' and rows > 0").any(axis=None)
    assert all(set(data.rows(name)["label_name"]) == {"good", "bad"} for name in data.splits)


def test_a_text_of_one_endless_word_is_prepared(tmp_path: Path) -> None:
    rows = [(f"the film number {i} was {label}", label) for i in range(40) for label in ("good", "bad")]
    path, made = tmp_path / "x.csv", []

    def work(size: int) -> None:
        pd.DataFrame([*rows, ("x" * size, "good")], columns=["body", "topic"]).to_csv(path, index=False)
        made.append(prepare(file_spec(path, seed=1), tmp_path / f"cache{len(made)}", progress=False))

    assert takes_linear_time(work, 1_000_100)
    data = made[0]
    notes = " ".join(data.provenance["notes"])
    assert "1 text is longer than 1,000,000 characters; only the beginning is read." in notes
    assert "1 training text holds a word of more than 10,000 characters; the vocabulary was learnt from the beginning" in notes


def test_texts_that_cannot_be_compared_in_memory_are_refused(
    topics: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 400_000)
    with pytest.raises(InputError, match=r"Splitting 192 rows takes about 0.5 MB .* this .* has 0.4 MB free; give --rows"):
        prepare(file_spec(topics), tmp_path / "cache", progress=False)
    assert prepare(file_spec(topics, rows=90), tmp_path / "cache", progress=False).splits


def test_rows_of_a_file_are_sized_in_proportion(topics: Path, tmp_path: Path) -> None:
    data = prepare(file_spec(topics, rows=60), tmp_path / "cache", progress=False)
    assert 57 <= sum(map(len, data.splits.values())) <= 60
    more = prepare(file_spec(topics, rows=500), tmp_path / "cache", progress=False)
    assert "Asked for 500 rows, took 192" in " ".join(more.provenance["notes"])


def test_a_leak_across_splits_stops_the_run(topics: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.splits, "groups", lambda texts, longer_than: np.arange(len(texts)))
    with pytest.raises(InputError, match=r"A leak: .* 'the very same long text again'"):
        prepare(file_spec(topics), tmp_path / "cache", progress=False)
    allowed = prepare(file_spec(topics, allow_leaks=True), tmp_path / "cache", progress=False)
    assert allowed.audit.query("check == 'leak'")["rows"].sum() > 0


def test_one_class_left_after_cleaning_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    rows = "".join(f"words number {i},a\n<br>,b\n" for i in range(40))
    path.write_text("text,label\n" + rows)
    with pytest.raises(InputError, match="Only the class 'a' is left"):
        prepare(File(path=str(path)), tmp_path / "cache", progress=False)


def test_too_few_rows_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("text,label\ngood,a\nbad,b\n")
    with pytest.raises(InputError, match="Only 2 rows are left to split; at least 20 are needed"):
        prepare(File(path=str(path)), tmp_path / "cache", progress=False)
    lines = [f"words{n} only here{n} and{n},{'abc'[n % 3]}" for n in range(300)]
    path.write_text("\n".join(["text,label", *lines]))
    with pytest.raises(InputError, match=r"Only 18 rows are left to split \(18 rows drawn, classes in proportion: 282\)"):
        prepare(File(path=str(path), rows=20), tmp_path / "cache", progress=False)
    path.write_text("\n".join(["text,label", *(f"words{n} only here{n} and{n},{n % 15}" for n in range(300))]))
    with pytest.raises(InputError, match="No class has three rows"):
        prepare(File(path=str(path), rows=30), tmp_path / "cache", progress=False)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"source": "sst"}, "Did you mean 'sst2'"),
        ({"task": "sentimnt"}, "Did you mean 'sentiment'"),
        ({"source": "sst2", "task": "spam"}, "task of the source 'sst2' is one of sentiment"),
        ({"lengths": "short"}, "Did you mean 'shortest'"),
        ({"tokenizer": "sentencepiece"}, "tokenizer is one of auto, bert, wordpiece"),
        ({"max_length": 1024}, "max_length is a whole number from 8 to 512, not 1024"),
        ({"rows": 3}, "rows is a whole number from 20"),
        ({"rows": "many"}, "rows is a whole number"),
        ({"train_fraction": 0}, "train_fraction is above 0"),
        ({"seed": -1}, "seed is"),
        ({"source": "file"}, "needs path"),
        ({"source": "file", "official_test": True}, "official_test is for a data set of the Hub; 'file' has no use for it"),
        ({"deph": 2}, "Did you mean 'depth'"),
        ({"path": "x.csv"}, "path is for source='file'"),
        ({"source": "sst2", "depth": 5}, "depth is for source='embedded' or source='composed'"),
        ({"source": "sst2", "domain": "movies"}, "domain is for"),
        ({"domain": "music"}, "domain is one of movies"),
        ({"task": "domain", "domain": "movies"}, "must not pick one"),
        ({"task": "spam", "domain": "movies"}, "have no domain"),
    ],
)
def test_a_spec_that_makes_no_sense_is_refused(fields: dict, words: str) -> None:
    with pytest.raises(InputError, match=words):
        data_spec(**fields).check()


def test_every_source_of_the_table_has_a_task() -> None:
    assert set(NAMES) == {"embedded", "file", "domains", "composed", "inference_mix", *HUB}
    for spec in (data_spec(name, **({"path": "x.csv"} if name == "file" else {})) for name in NAMES):
        assert spec.task == spec.tasks[0]
        for task in spec.tasks:
            dataclasses.replace(spec, task=task).check()
