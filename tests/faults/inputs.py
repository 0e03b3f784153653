"""Inputs that hypothesis draws: files, labels, texts, settings, damaged stores and damaged exported encoders.

Most are a good input with one to three things wrong, so that they get past the first check. What is expected of each:

- exit status 0, or status 2 with one sentence; within 20 seconds; without a traceback or a control character on stderr;
- no file of the user's and no finished run is changed or lost, and nothing that was given is executed;
- a damaged run answers as it did before the damage or not at all, and ``rtx doctor --store`` names it.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import pickle
import re
import shlex
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from hypothesis.internal.conjecture import providers

from . import Broken, Check, require
from .child import (
    Outcome,
    Place,
    calm,
    encoder,
    fine_or_one_sentence,
    once,
    one_sentence,
    place,
    rtx,
    same,
    succeeded,
    sums,
)
from .kill import TINY, template

BLOCK = 25  # examples that are drawn together; a block is drawn from the seed and its number
GOOD = [  # the rows that are spoiled
    {"text": f"{start} {noun} was {word} on day {n}", "label": label, "comment": f"{word}, {n}"}
    for n, noun in enumerate(("film", "soup", "parcel", "staff", "plot", "room"))
    for start in ("the", "our", "that")
    for word, label in (("fine", "positive"), ("lovely", "positive"), ("dull", "negative"), ("late", "negative"))
]

# ---------------------------------------- what is drawn

SHARE = st.integers(0, 999).map(lambda n: n / 1000)
LONG = st.tuples(st.sampled_from("aaé🙂価'\u0301"), st.integers(1, 6)).map(lambda drawn: drawn[0] * 10 ** drawn[1])
ODD_TEXTS = st.one_of(
    st.text(max_size=40),
    st.text(alphabet=st.characters(categories=["Cc", "Cf", "Zl", "Zp", "Mn", "Co"]), min_size=1, max_size=12),
    st.sampled_from(["=1+1", "=HYPERLINK(\"http://x\")", "+1", "-1", "@SUM(A1)", "\t=1", "\x1b[31mred\x1b[0m", "\x1b]0;t\x07"]),
    st.sampled_from(["\u202egnp.exe", "\ud83d", "\x00", "\r", "a\nb", "<script>", "[SEP] [CLS]", "nan", "", " "]),
    LONG,
)
OBJECTS = st.sampled_from([b"\xff\x00", ["a", "b"], {"a": 1}, [], {}])  # they are no text; only JSON and Parquet can hold them
ODD_CELLS = st.one_of(
    ODD_TEXTS,
    OBJECTS,
    st.sampled_from([None, float("nan"), float("inf"), True, 3, 1.5, 10**30, -0.0, pd.Timestamp(0), pd.Timedelta(1)]),
)
NAMES = st.sampled_from(["text", "label", " text", "TEXT", "", "comment", "p_positive", "a\nb", "=1", "x" * 300, "\x1b[31m"])
ENCODINGS = [*["utf-8"] * 15, "utf-8-sig", "utf-16", "utf-32", "latin-1", "cp1252", "shift-jis", "utf-7"]
ENDINGS = [*("csv", "csv", "csv", "tsv", "jsonl", "jsonl", "jsonl", "parquet", "parquet", "parquet"), "txt", "CSV", "xlsx", ""]
SPECIAL = ["fifo", "folder", "dangling", "loop", "device", "link", "empty", "noise"]
AN_OBJECT = st.tuples(st.just("cell"), st.integers(0, len(GOOD) - 1), st.sampled_from(["text", "label"]), OBJECTS)
SPOILT = st.lists(
    st.one_of(
        st.tuples(st.just("cell"), st.integers(0, len(GOOD) - 1), st.sampled_from(["text", "label"]), ODD_CELLS),
        st.tuples(st.just("column"), st.sampled_from(["text", "label"]), ODD_CELLS),
        AN_OBJECT,
        st.tuples(st.just("rename"), st.sampled_from(["text", "label"]), NAMES),
        st.tuples(st.just("rows"), st.sampled_from([0, 1, 2, 5, 20])),
        st.tuples(st.just("thrice")),
        st.tuples(st.just("extra"), NAMES, ODD_TEXTS),
    ),
    min_size=1,
    max_size=3,
)
BYTES = st.lists(
    st.one_of(
        st.tuples(st.just("cut"), SHARE),
        st.tuples(st.just("insert"), SHARE, st.sampled_from([b'"', b"\x00", b"\xff\xfe", b"\r", b",,,,", b"\n\n", b"{"])),
        st.tuples(st.just("flip"), SHARE, st.integers(0, 7)),
    ),
    max_size=2,
)
FILES = st.fixed_dictionaries(
    {
        "command": st.sampled_from(["predict", "predict", "evaluate", "train", "embed"]),
        "spoilt": st.one_of(SPOILT, SPOILT, AN_OBJECT.map(lambda one: [one]), st.just([])),
        "ending": st.sampled_from(ENDINGS),
        "encoding": st.sampled_from(ENCODINGS),
        "bytes": st.one_of(st.just([]), st.just([]), BYTES),
        "special": st.sampled_from([None] * 40 + SPECIAL),
        "out": st.sampled_from(["csv", "jsonl", "parquet"]),
    }
)
LABELS = st.fixed_dictionaries(
    {
        "command": st.sampled_from(["train", "evaluate"]),
        "values": st.lists(ODD_TEXTS, min_size=1, max_size=4),
        "once": st.booleans(),  # whether the last value stands in one row only, like a typing mistake
        "labels": st.one_of(
            st.none(),
            st.dictionaries(ODD_TEXTS, st.one_of(ODD_TEXTS, st.none(), st.integers()), max_size=3).map(json.dumps),
            st.sampled_from(["{", "[]", "1", "null", "", "[" * 50_000, '{"a": {"a": 1}}', "1" * 5000]),
        ),
        "column": st.sampled_from(["label", "label", "label", "text", "", "nothing"]),
    }
)
TEXTS = st.fixed_dictionaries(
    {
        "texts": st.lists(ODD_TEXTS, min_size=1, max_size=4),
        "by": st.sampled_from(["arguments", "arguments", "stdin", "stdin", "bytes"]),
        "noise": st.binary(max_size=60),
        "to": st.sampled_from(["plain", "plain", "plain", "json", "csv", "csv", "jsonl", "parquet", "similarity"]),
    }
)
VALUES = st.one_of(
    st.sampled_from(["-1", "0", "1e308", "1e-308", "nan", "inf", "-inf", "100000000", "1000000000", "999999999999"]),
    st.sampled_from(["true", "false", "null", "x", "é", "1_000", "0x10", "１２", "--"]),
    st.sampled_from(["", " ", "1" + "0" * 23, "9" * 5000, "[" * 100_000, '{"a": 1}', "[1, 2]"]),
    st.sampled_from(["\x1b[31m", "a\nb", "x" * 300, '"', "=1+1", "~nobody", "/etc/passwd", "/dev/zero", ".", ".."]),
)
OPTIONS = {  # a command and those of its options that take a value
    TINY: "--seed --rows --max-length --threads --task --recipe --labels --text-column --text-pair-column --model "
    "--data --teacher",
    ("data", "generate"): "--rows --depth --noise --seed --task --format --out",
    ("data", "compose", "--task", "same", "--out", "x.csv"): "--task --rows --steps --seed --out",
    ("report", "--dry-run"): "--profile --notebooks --executor",
    ("predict", "{run}", "a fine film"): "--passes --early-exit --text-column --file --out",
    ("notebook",): "--profile --executor -p",
    ("embed", "good.txt", "--out", "v.parquet"): "--model --weights --text-column",
    ("predict",): "--out",
    ("evaluate", "{run}"): "--labels --text-pair-column",
    ("pretrain", "--model", "standard-1x32", "--data", "few.csv", "--recipe-set", "epochs=1", "--out", "encoder"): (
        "--model --data --keep-out --tokenizer --text-column --label-column --length --share --seed --threads --out"
    ),
    ("convert", "{encoder}", "--layers", "1", "--passes", "1", "--out", "loop"): (
        "--layers --passes --start --rank --vocabulary --out"
    ),
    ("distill", "--model", "{encoder}", "--teacher", "{encoder}", "--data", "few.csv", "--out", "taught"): (
        "--model --teacher --data --keep-out --text-column --label-column --rows --length --seed --threads --out"
    ),
}
PARAMETERS = ["seeds", "rows", "epochs", "max_length", "variant", "recipe", "nothing"]


@functools.cache
def fields() -> tuple[list[str], list[str]]:
    """The fields of a model's configuration and those of a recipe."""
    from rtxlib.models import ModelConfig
    from rtxlib.training.recipe import Recipe

    ours = [name for name in ModelConfig.__annotations__ if not name.startswith("_")]
    return sorted(ours), [field.name for field in dataclasses.fields(Recipe)]


def _settings() -> st.SearchStrategy:
    options = st.sampled_from([(command, option) for command, names in OPTIONS.items() for option in names.split()])
    of_model, of_recipe = map(st.sampled_from, fields())
    named = st.sampled_from(["standard-{}x32", "standard-2x{}", "recurrent-1x{}x32", "recurrent-{}x1x32", "{}/{}", "{}"])
    return st.one_of(
        st.tuples(options, VALUES).map(lambda drawn: (*drawn[0][0], drawn[0][1], drawn[1])),
        st.tuples(of_model, VALUES).map(lambda drawn: ("params", "recurrent-1x2x32", "--set", "=".join(drawn))),
        st.tuples(of_model, VALUES).map(lambda drawn: (*TINY, "--set", "=".join(drawn))),
        st.tuples(of_recipe, VALUES).map(lambda drawn: (*TINY, "--recipe-set", "=".join(drawn))),
        st.tuples(named, VALUES).map(lambda drawn: ("params", drawn[0].replace("{}", drawn[1]))),
        st.tuples(st.sampled_from(PARAMETERS), VALUES).map(lambda drawn: ("report", "--dry-run", "-p", "=".join(drawn))),
    )


OF_WEIGHTS = ["rename tensors", "lose tensors", "nan", "integers"]
DAMAGES = ["cut", "flip", "delete", "empty", "append", "noise", "fifo", "folder", "dangling", "pickle", "swap", *OF_WEIGHTS]
STORES = st.fixed_dictionaries(
    {
        "what": st.sampled_from(["run", "run", "run", "encoder", "prepared"]),
        "file": st.integers(0, 10**6),
        "damage": st.sampled_from(DAMAGES),
        "where": SHARE,
        "bit": st.integers(0, 7),
    }
)

_drawing = threading.Lock()


@functools.lru_cache(maxsize=64)
def _block(kind: str, seed: int, block: int) -> list[Any]:
    found: list[Any] = []
    strategy = KINDS[kind][0]
    strategy = strategy() if callable(strategy) else strategy

    @seeded(f"{seed} {kind} {block}")
    @settings(
        max_examples=BLOCK, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    @given(strategy)
    def keep(example: Any) -> None:
        found.append(example)

    keep()
    return found


def drawn(kind: str, seed: int, number: int) -> Any:
    """The example of this number. It does not depend on what the examples before it did."""
    # Hypothesis would also draw constants of the modules that happen to be loaded, and the suite loads others.
    with _drawing, mock.patch.object(providers, "_get_local_constants", lambda: providers.Constants(), create=True):
        block = _block(kind, seed, number // BLOCK)
    return block[number % BLOCK % len(block)]


# ---------------------------------------- files


def spoil(ways: list[tuple], ending: str) -> pd.DataFrame:
    """The good rows with everything wrong that was drawn."""
    table = pd.DataFrame(GOOD)
    for way, *how in ways:
        if way == "rows":
            table = table.head(how[0])
        elif way == "thrice":
            table = pd.concat([table] * 3, ignore_index=True)
        elif way == "extra":
            table = pd.concat([table, pd.Series([how[1]] * len(table), table.index, name=how[0])], axis=1)
        elif way == "rename":
            table = table.rename(columns={how[0]: how[1]})
        elif list(table.columns).count(how[-2]) == 1:
            cells = table[how[-2]].astype(object).tolist()
            # A column of Parquet has one type.
            all_of_them = way == "column" or (ending == "parquet" and not isinstance(how[-1], str))
            wrong = range(len(cells)) if all_of_them else [how[0]] * (how[0] < len(cells))
            value = how[-1][:20_000] if all_of_them and isinstance(how[-1], str) else how[-1]
            for i in wrong:
                cells[i] = value
            table[how[-2]] = pd.Series(cells, table.index, dtype=object)
    return table


def written(table: pd.DataFrame, ending: str, encoding: str) -> bytes:
    """The table in a format, if need be with what the format cannot hold left out."""
    if ending == "parquet":
        for kept in (table, table.map(str)):
            try:
                return kept.to_parquet(index=False)
            except Exception:  # a mixed column or a name that stands twice
                continue
        return b"PAR1"
    if ending in ("jsonl", "json"):
        lines = [json.dumps(dict(zip(table.columns, row, strict=True)), default=str) for row in table.itertuples(index=False)]
        text = "".join(line + "\n" for line in lines)
    else:
        text = table.to_csv(index=False, sep="\t" if ending == "tsv" else ",", errors="replace")
    return text.encode("utf-8", "replace") if encoding == "utf-8" else text.encode(encoding, "replace")


def spoil_bytes(content: bytes, ways: list[tuple]) -> bytes:
    for way, share, *how in ways:
        at = int(share * len(content))
        if way == "cut":
            content = content[:at]
        elif way == "insert":
            content = content[:at] + how[0] + content[at:]
        elif content:
            at = min(at, len(content) - 1)
            content = content[:at] + bytes([content[at] ^ 1 << how[0]]) + content[at + 1 :]
    return content


def make_special(path: Path, kind: str, noise: bytes = b"") -> None:
    """What stands in a file's place and is no ordinary file."""
    actions: dict[str, Callable[[], object]] = {
        "fifo": lambda: os.mkfifo(path),
        "folder": path.mkdir,
        "dangling": lambda: path.symlink_to("nothing-here"),
        "loop": lambda: path.symlink_to(path.name),
        "device": lambda: path.symlink_to("/dev/zero"),
        "link": lambda: (path.with_name("real.csv").write_bytes(noise), path.symlink_to("real.csv")),
        "empty": lambda: path.write_bytes(b""),
        "noise": lambda: path.write_bytes(os.urandom(3000)),
    }
    actions[kind]()


def play_files(at: Place, key: str, example: dict[str, Any], cold: bool) -> None:
    table = spoil(example["spoilt"], example["ending"])
    name = "given" + ("." if example["ending"] else "") + example["ending"]
    content = spoil_bytes(written(table, example["ending"], example["encoding"]), example["bytes"])
    if example["special"]:
        make_special(at.work / name, example["special"], content)
    else:
        (at.work / name).write_bytes(content)
    out = f"answers.{example['out']}"
    words = {
        "predict": ("predict", key, "--file", name, "--out", out),
        "evaluate": ("evaluate", key, name, "--json"),
        "train": (*TINY[:3], "--data", name, "--recipe", "smoke", "--json"),
        "embed": ("embed", name, "--model", encoder() / "encoder", "--out", "answers.parquet"),
    }[example["command"]]
    before = sums(at.work, at.runs)
    outcome = told(at, words, cold)
    after = sums(at.work, at.runs)
    require(before.items() <= after.items(), "a file of the user's or a run was changed")
    if example["command"] != "train":
        new = {Path(path).name for path in after.keys() - before.keys()}
        require(new <= {out, "answers.parquet"} and (outcome.status == 0 or not new), f"new files: {new}")
    plain = not (example["bytes"] or example["special"])
    plain &= example["encoding"].startswith("utf-8") or name.endswith("parquet")
    if outcome.status == 0 and plain and example["ending"] in ("jsonl", "parquet"):
        used = ["text", "label"] if example["command"] in ("train", "evaluate") else ["text"]
        read = pd.read_parquet(at.work / name) if name.endswith("parquet") else table
        kinds = (list, dict, np.ndarray, *([bytes] if name.endswith("parquet") else []))
        objects = [cell for column in used if column in read for cell in read[column] if isinstance(cell, kinds)]
        require(not objects, f"taken as a text or a label: {objects[:1]!r}")
    if outcome.status == 0 and plain and example["command"] == "predict" and example["ending"] in ("csv", "parquet"):
        _keeps_columns(at.work / out, table)


def _keeps_columns(file: Path, table: pd.DataFrame) -> None:
    """predict's table has the user's columns and rows, and a spreadsheet takes no cell of it for a formula."""
    if file.suffix == ".csv":
        cells = pd.read_csv(file, dtype=str, keep_default_na=False)
        formulas = [cell for cell in cells.to_numpy().ravel() if cell.startswith("=")]
        require(not formulas, f"a formula in the CSV: {formulas[:1]}")
    else:
        cells = pd.read_json(file, lines=True) if file.suffix == ".jsonl" else pd.read_parquet(file)
    require(len(cells) == len(table), f"{len(table)} rows went in and {len(cells)} came out")
    for name in {*table.columns} & {"label", "comment"}:
        require(name in cells, f"the column {name!r} was lost")
        plain = all(isinstance(cell, str) and cell.isascii() and cell[:1].isalpha() for cell in table[name])
        require(not plain or list(cells[name]) == list(table[name]), f"the column {name!r} was changed")


# ---------------------------------------- labels, texts and settings


def play_labels(at: Place, key: str, example: dict[str, Any], cold: bool) -> None:
    values, rows = [value[:20_000] for value in example["values"]], [dict(row) for row in GOOD]
    for i, row in enumerate(rows):
        row["label"] = values[i % len(values)]
    if example["once"]:
        rows[-1]["label"] = "postive"
    (at.work / "given.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = (*TINY[:3], "--data", "given.jsonl", "--recipe", "smoke") if example["command"] == "train" else None
    words = (*(words or ("evaluate", key, "given.jsonl")), "--label-column", example["column"], "--json")
    words += () if example["labels"] is None else ("--labels", example["labels"])
    before = sums(at.work, at.runs)
    outcome = told(at, words, cold)
    require(before.items() <= sums(at.work, at.runs).items(), "a file of the user's or a run was changed")
    if outcome.status == 0:
        require(0 <= outcome.last_json()["accuracy"] <= 1, "no accuracy")


def play_texts(at: Place, key: str, example: dict[str, Any], cold: bool) -> None:
    texts, to, given = example["texts"], example["to"], b""
    words: list[Any] = ["predict", key]
    if to == "similarity":
        words, texts = ["similarity", "--model", encoder() / "encoder", "--"], [*texts, "another"]
    if example["by"] == "arguments" or to == "similarity":
        texts = [text.replace("\x00", "") for text in texts]
        words += ([] if to == "similarity" else ["--"]) + [text.encode("utf-8", "surrogatepass") for text in texts]
    elif example["by"] == "stdin":
        given = "".join(text + "\n" for text in texts).encode("utf-8", "replace")
    else:
        given = example["noise"]
    if to in ("csv", "jsonl", "parquet"):
        words[2:2] = ["--out", f"answers.{to}"]
    elif to == "json":
        words[2:2] = ["--json"]
    outcome = told(at, words, cold, given)
    if outcome.status != 0:
        return
    if to in ("plain", "similarity"):
        escaped = re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", outcome.out)
        require(not escaped, f"a control character reaches the terminal: {escaped and escaped[0]!r}")
    elif to == "json":
        for line in outcome.out.rstrip("\n").split("\n"):
            require(set(json.loads(line)) >= {"text", "label", "probabilities"}, line[:200])
    elif to == "csv":
        cells = pd.read_csv(at.work / "answers.csv", dtype=str, keep_default_na=False)
        require(not [cell for cell in cells["text"] if cell.startswith("=")], "a formula in the CSV")


def play_settings(at: Place, key: str, example: tuple[str, ...], cold: bool) -> None:
    if any("\x00" in word for word in example):
        return
    (at.work / "good.txt").write_text("a fine film\n")
    rows = [f"{word} film number {n},{label}" for n in range(30) for word, label in (("fine", "a"), ("dull", "b"))]
    (at.work / "few.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    before = sums(at.work, at.runs)
    known = {"{run}": key, "{encoder}": str(encoder() / "encoder")}
    told(at, [known.get(word, word) for word in example], cold)
    require(before.items() <= sums(at.work, at.runs).items(), "a file of the user's or a run was changed")


# ---------------------------------------- damaged stores


class Payload:
    """Unpickled, it makes a file."""

    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self) -> tuple:
        return Path.touch, (self.canary,)


def damage(file: Path, example: dict[str, Any], twin: Path | None, canary: Path) -> None:
    """Spoil one file in the way that was drawn. Prepared data have no weights, so they are cut short instead."""
    from safetensors.torch import load, save

    content, way, share = file.read_bytes(), example["damage"], example["where"]
    if way in OF_WEIGHTS and file.suffix != ".safetensors":
        way = "cut"
    file.unlink()
    if way in ("fifo", "folder", "dangling", "empty", "noise"):
        make_special(file, way)
    elif way in ("cut", "flip"):
        file.write_bytes(spoil_bytes(content, [(way, share, example["bit"])]))
    elif way == "append":
        file.write_bytes(content + b"more")
    elif way == "pickle":
        file.write_bytes(pickle.dumps(Payload(canary)))
    elif way == "swap":
        file.write_bytes(twin.read_bytes() if twin and twin.is_file() else b"{}")
    elif way != "delete":
        tensors = load(content)
        names = sorted(tensors)
        chosen = names[int(share * len(names))]
        tensor = tensors.pop(chosen)
        if way == "rename tensors":
            tensors["other." + chosen] = tensor
        elif way == "nan":
            tensors[chosen] = tensor * float("nan")
        elif way == "integers":
            tensors[chosen] = tensor.round().int()
        file.write_bytes(save(tensors, {"format": "pt"}))


ASKED = ("the film was lovely and the soup was late", "a dull parcel")


def ask(at: Place, key: str, cold: bool = False) -> Outcome:
    return rtx(at, "predict", key, *ASKED, "--json", cold=cold)


@once
def undamaged(folder: Path) -> None:
    """What the runs and the encoder answer as long as they are whole, and a run that is trained on whole data."""
    shutil.copytree(template(), folder, dirs_exist_ok=True)
    at = Place(folder)
    for run in list(at.runs.glob("*/complete.json")):
        (folder / f"{run.parent.name}.answer").write_text(succeeded(ask(at, run.parent.name)).out)
    succeeded(rtx(at, *TINY, "--seed", "5"))
    succeeded(rtx(at, "similarity", *ASKED, "--model", encoder() / "encoder", "--json"))
    (folder / "similarity.answer").write_text(_similarity(at, encoder() / "encoder").out)


def _similarity(at: Place, model: Path) -> Outcome:
    outcome = rtx(at, "similarity", *ASKED, "--model", model, "--json")
    if outcome.status == 0:
        outcome.out = json.dumps(outcome.last_json()["similarity"])
    return outcome


def play_stores(at: Place, key: str, example: dict[str, Any], cold: bool) -> None:
    right, canary = undamaged(), at.folder / "canary"
    folders = {"run": at.runs / key, "encoder": at.work / "encoder", "prepared": next(at.home.glob("data/prepared/*/"))}
    shutil.copytree(encoder() / "encoder", folders["encoder"])
    folder = folders[example["what"]]
    weights = example["damage"] in OF_WEIGHTS and example["what"] != "prepared"
    files = sorted(path for path in folder.rglob("*.safetensors" if weights else "*") if path.is_file())
    file = files[example["file"] % len(files)]
    other = next(path.parent.name for path in at.runs.glob("*/complete.json") if path.parent.name != key)
    twin = at.runs / other / file.name
    before = file.read_bytes()
    damage(file, example, twin, canary)
    where = f"{example['damage']} of {file.relative_to(folder)} of the {example['what']}"
    try:
        if example["what"] == "prepared":
            succeeded(rtx(at, *TINY, "--seed", "5", cold=cold))
            same(at.runs, right / "home/data/runs")
            return
        kept = sums(at.runs)
        outcome = _similarity(at, folder) if example["what"] == "encoder" else ask(at, key, cold)
        if outcome.status == 0:
            answer = right / f"{'similarity' if example['what'] == 'encoder' else key}.answer"
            require(outcome.out == answer.read_text(), f"another answer, with status 0: {outcome.out[:300]}")
        else:
            one_sentence(outcome)
        require(sums(at.runs) == kept, "reading a damaged run changed the store")
        require(ask(at, other).out == (right / f"{other}.answer").read_text(), "another run gives another answer")
        whole = file.is_file() and not file.is_symlink() and file.read_bytes() == before
        if example["what"] == "run" and not whole and file.name not in ("complete.json", "README.md"):
            doctor = rtx(at, "doctor", "--store")
            calm(doctor)
            named = f"BAD  {key}" in doctor.out and doctor.status == 1
            require(named, f"doctor --store does not name it: status {doctor.status}, {doctor.err[-200:]}")
    except Broken as error:
        raise Broken(f"{where}: {error}") from None
    finally:
        require(not canary.exists(), f"{where}: its payload ran")


# ---------------------------------------- the table


def told(at: Place, words: Any, cold: bool, given: bytes = b"") -> Outcome:
    """Run a command; it succeeds, or refuses in one sentence."""
    outcome = rtx(at, *words, given=given, cold=cold)
    try:
        fine_or_one_sentence(outcome)
    except Broken as error:
        line = shlex.join(os.fsdecode(word) if isinstance(word, bytes) else str(word) for word in words)
        raise Broken(f"rtx {line[:300]!a}: {error}") from None
    return outcome


KINDS: dict[str, tuple[Any, Callable, int, str]] = {  # strategy, what is done, how many, the row's words
    "files": (FILES, play_files, 200, "files: formats, encodings, odd cells, columns, FIFOs, folders, links"),
    "labels": (LABELS, play_labels, 60, "labels and `--labels`"),
    "texts": (TEXTS, play_texts, 120, "texts: control characters, lone surrogates, formulas, long words"),
    "settings": (_settings, play_settings, 200, "settings and options: numbers far out, other types, long names"),
    "stores": (STORES, play_stores, 170, "damaged runs, encoders and prepared data"),
}


def run(kind: str, seed: int, number: int) -> None:
    with place(template()) as at:
        key = sorted(path.parent.name for path in at.runs.glob("*/complete.json"))[number % 2]
        KINDS[kind][1](at, key, drawn(kind, seed, number), number % 20 == 0)


CHECKS = [Check("inputs", kind, what, cases, functools.partial(run, kind)) for kind, (_, _, cases, what) in KINDS.items()]
