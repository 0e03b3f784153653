"""``kill -9`` of the process group at a random moment, then the same command again, which finishes what was begun.

The moments are uniform over the time that the unbroken command takes here. A quarter of the cases are killed twice. The
second, unbroken command must give the bits of a run that was never killed, the same tables apart from times, a store that
``rtx doctor --store`` finds in order, and no file or process more than an unbroken run leaves under RTX_HOME, TMPDIR and
Jupyter's runtime folder.

A command that is added to ``rtx`` and writes files gets a row in ``KILLS``.
"""

from __future__ import annotations

import functools
import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from . import Broken, Check, NotTried, generator
from .child import Place, clean_store, encoder, nothing_left, once, place, rtx, same, succeeded

TINY = ("train", "--model", "recurrent-1x2x32", "--data", "embedded", "--rows", "240", "--recipe", "smoke", "--json")
TEXTS = 3000  # rows of the files that predict and embed read


def checkpoints_often() -> None:
    """A checkpoint every tenth of a second instead of every minute, so that kills fall into them."""
    from rtxlib.training import trainer

    trainer.CHECKPOINT_SECONDS = 0.1


@dataclass(frozen=True)
class Kill:
    """A command to be killed."""

    name: str
    cases: int
    arguments: tuple[str, ...]
    again: tuple[str, ...] = ()  # what the second command has besides
    refusal: str = ""  # what the second command may say, where the first was killed after its work was whole
    cold: int = 5  # every so many-th case starts Python anew
    alone: bool = False  # whether the process is killed without those that it started
    limit: float = 60  # seconds of the unbroken command
    first: Callable[[], None] | None = None


KILLS = [
    Kill(
        name="train",
        cases=100,
        arguments=("train", "--model", "recurrent-1x2x32", "--data", "embedded", "--rows", "800", "--recipe", "demo"),
        first=checkpoints_often,
    ),
    Kill("report", 25, ("report", "--profile", "smoke", "--notebooks", "02"), cold=1, limit=300),
    Kill("embed", 10, ("embed", "texts.csv", "--model", "{encoder}", "--out", "vectors.parquet"), again=("--force",)),
    Kill("predict", 10, ("predict", "{run}", "--file", "texts.csv", "--out", "labels.csv"), again=("--force",)),
    Kill(
        "convert",
        10,
        ("convert", "{encoder}", "--layers", "1", "--passes", "2", "--vocabulary", "texts.csv", "--out", "loop"),
        refusal="exists already",
    ),
    Kill(
        name="pretrain",
        cases=10,
        arguments=("pretrain", "--model", "standard-1x32", "--data", "embedded", "--recipe-set", "epochs=1", "--out", "encoder"),
        first=checkpoints_often,
    ),
    Kill(
        name="distill",
        cases=10,
        arguments=("distill", "--model", "{encoder}", "--teacher", "{encoder}", "--data", "embedded", "--out", "taught"),
        first=checkpoints_often,
    ),
    Kill("export", 10, ("export", "{run}", "--out", "graph"), refusal="exists already"),
    Kill("shards", 10, ("predict", "{graph}", "--file", "shards", "--out", "answered", "--workers", "2"), cold=1, alone=True),
    Kill("generate", 10, ("data", "generate", "--task", "sentiment", "--rows", "20000")),
]


@once
def template(folder: Path) -> None:
    """A store with two tiny runs, and a user's file of texts."""
    at = Place(folder)
    for seed in (0, 1):
        succeeded(rtx(at, *TINY, "--seed", seed, limit=60))
    succeeded(rtx(at, "data", "generate", "--task", "sentiment", "--rows", TEXTS, "--out", "made", limit=60))
    shutil.move(at.work / "made" / "sentiment.csv", at.work / "texts.csv")
    (at.work / "made").rmdir()
    (at.work / "shards").mkdir()
    table = pd.read_csv(at.work / "texts.csv", dtype=str)
    for number in range(4):
        table[number::4].to_json(at.work / "shards" / f"part-{number}.jsonl", orient="records", lines=True)


@once
def graph(folder: Path) -> None:
    """The first run of the template as an exported folder."""
    shutil.copytree(template(), folder, dirs_exist_ok=True)
    succeeded(rtx(at := Place(folder), "export", first_run(at), "--out", folder / "graph", limit=60))


def first_run(at: Place) -> str:
    """The key of the first run of a place."""
    return min(at.runs.glob("*/complete.json")).parent.name


def arguments(kill: Kill, at: Place) -> list[str]:
    known = {
        "{run}": lambda: first_run(at),
        "{encoder}": lambda: str(encoder() / "encoder"),
        "{graph}": lambda: str(graph() / "graph"),
    }
    return [known[word]() if word in known else word for word in kill.arguments]


_one = threading.Lock()


@functools.cache
def _unbroken(name: str, cold: bool) -> tuple[Path, frozenset[str], float]:
    kill, seconds, files = next(kill for kill in KILLS if kill.name == name), [], []

    def make(folder: Path) -> None:
        shutil.copytree(template(), folder, dirs_exist_ok=True)
        at = Place(folder)
        options = {"cold": cold, "limit": kill.limit, "first": None if cold else kill.first}
        seconds.append(succeeded(rtx(at, *arguments(kill, at), **options)).seconds)
        files.extend(at.files())

    return once(make)(), frozenset(files), seconds[0]


def unbroken(kill: Kill, cold: bool) -> tuple[Path, frozenset[str], float]:
    """The folder, the files and the seconds of the command that nobody kills."""
    with _one:
        return _unbroken(kill.name, cold)


def run(kill: Kill, seed: int, number: int) -> None:
    chance, cold = generator(seed, kill.name, number), number % kill.cold == 0
    reference, files, seconds = unbroken(kill, cold)
    kills = 2 if chance.random() < 0.25 else 1
    options = {"cold": cold, "limit": kill.limit, "first": None if cold else kill.first}
    for earlier in (1.0, 0.5, 0.25):  # a command that ended before its kill is tried again
        with place(template()) as at:
            words = arguments(kill, at)
            moment = chance.random() * seconds * earlier
            broken = rtx(at, *words, **options, moment=moment, alone=kill.alone)
            if not broken.killed:
                succeeded(broken)
                continue
            try:
                if kills == 2:
                    rtx(at, *words, *kill.again, **options, moment=chance.random() * seconds, alone=kill.alone)
                done = rtx(at, *words, *kill.again, **options)
                if not (kill.refusal and kill.refusal in done.err):
                    succeeded(done)
                for part in ("home/data", "work"):
                    same(at.folder / part, reference / part)
                nothing_left(at, files)
                clean_store(at)
            except Broken as error:
                raise Broken(f"killed after {moment:.2f} s: {error}") from None
            return
    raise NotTried(ENDED)


ENDED = "the command always ended before its kill"
WHAT = {
    "train": "`rtx train`: preparing, training, checkpoints every 0.1 s, saving",
    "report": "`rtx report --profile smoke`, notebook 02 alone (the whole takes minutes)",
    "embed": "`rtx embed --out FILE …`",
    "predict": "`rtx predict --out FILE …`",
    "convert": "`rtx convert`",
    "pretrain": "`rtx pretrain`",
    "distill": "`rtx distill`",
    "export": "`rtx export RUN`",
    "shards": "`rtx predict GRAPH --file FOLDER …`, without its two workers",
    "generate": "`rtx data generate`",
}
CHECKS = [
    Check("kill", kill.name, f"`kill -9` of {WHAT[kill.name]}", kill.cases, functools.partial(run, kill)) for kill in KILLS
]
