"""What a person waits for: the first answer of ``rtx``, of ``rtx compare``, and a report whose runs are all in the store."""

from __future__ import annotations

import datetime
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from transformers import BertConfig, BertForSequenceClassification

from benchmarks.measure import Row, Taken, not_measured, row, seconds, take_turns
from benchmarks.memory import of_commands
from benchmarks.peers import untouched
from benchmarks.rows import DATA, rows_of
from rtxlib.data.tokenization import load_tokenizer
from rtxlib.errors import InputError
from rtxstudy.questions.your_texts.candidates import WORDS

HELP_SECONDS, PREDICT_SECONDS, GRAPH_SECONDS, REPORT_SECONDS = 0.5, 2.0, 0.6, 60.0
FIRST_SCORE_SECONDS, ANSWER_SECONDS, COMPARED = 15.0, 20.0, "sst2-10000"
TEXT = "a fine film"
PIPELINE = """
import sys
from transformers import pipeline
print(pipeline("text-classification", sys.argv[1])(sys.argv[2]))
"""


def _rtx() -> str:
    program = shutil.which("rtx", path=sysconfig.get_path("scripts"))
    if program is None:
        sys.exit(f"There is no rtx beside {sys.executable}; run `make setup` first.")
    return program


def rows(rounds: int, short: bool) -> Iterator[Row]:
    rtx, packages = _rtx(), ("click", "papermill", "nbconvert")

    def call(*words: str) -> subprocess.CompletedProcess:
        return subprocess.run([rtx, *words], capture_output=True, text=True)

    call("--help")  # the first call compiles the files and fills the page cache
    taken = _timed(lambda: call("--help"), 2 * rounds + 1)
    settings = "a process each, files in the page cache; the peer is the limit"
    limits = [HELP_SECONDS] * len(taken)
    yield row("rtx --help", taken, limits, "s", 1.0, packages, settings, less_is_better=True)

    yield from _predict(rtx, rounds)
    yield from _compare(rtx, 1 if short else rounds)

    name, profile = "the report again, every run in the store", "smoke" if short else "demo"
    done: list[subprocess.CompletedProcess] = []
    report = ("report", "--profile", profile, "--no-training")
    taken = _timed(lambda: done.append(call(*report)), 1 if short else 3)
    if any(one.returncode for one in done):
        why = next(one for one in done if one.returncode).stderr.strip().splitlines()[-1]
        yield not_measured(name, "s", 1.0, f"make report PROFILE={profile} first ({why})")
        return
    settings = f"rtx {' '.join(report)}, all notebooks; the peer is the limit"
    yield row(name, taken, [REPORT_SECONDS] * len(taken), "s", 1.0, packages, settings, less_is_better=True)


def _timed(call: Callable[[], object], times: int) -> Taken:
    """Seconds of each call of a command, and the most memory that its processes held together."""
    taken, peaks = [], []
    for _ in range(times):
        with of_commands(peaks):
            taken.append(seconds(call))
    return Taken.of(taken, max(peaks))


def _predict(rtx: str, rounds: int) -> Iterator[Row]:
    """One text from the shell: a process starts, opens a small trained run, labels the text and ends."""
    with tempfile.TemporaryDirectory() as home:
        environment = os.environ | {"RTX_HOME": home}

        def call(*words: str) -> str:
            return subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout

        trained = call(rtx, "train", "--model", "standard-2x128", "--data", "embedded", "--recipe", "smoke", "--json")
        run = json.loads(trained.splitlines()[-1])["run"]
        peaks: dict[str, list[float]] = {"ours": [], "pipeline": []}
        theirs = _bert(Path(run), Path(home) / "bert")
        words = {"ours": (rtx, "predict", run, TEXT), "pipeline": (sys.executable, "-c", PIPELINE, theirs, TEXT)}

        def way(name: str) -> float:
            given = environment if name == "ours" else untouched()
            with of_commands(peaks[name]):
                return seconds(lambda: subprocess.run(words[name], env=given, capture_output=True, text=True, check=True))

        ways = {name: partial(way, name) for name in words}
        for warm in ways.values():
            warm()
        taken = {name: Taken.of(times, max(peaks[name])) for name, times in take_turns(ways, 2 * rounds + 1).items()}
        call(rtx, "export", run)
        graph = _timed(lambda: call(rtx, "predict", run, TEXT), 2 * rounds + 1)
    settings = "standard-2x128; a process each, files in the page cache"
    name, packages = "rtx predict RUN TEXT, cold", ("transformers",)
    limits = [PREDICT_SECONDS] * len(taken["ours"])
    yield row(name, taken["ours"], limits, "s", 1.0, packages, f"{settings}; the peer is the limit", less_is_better=True)
    limits, how = [GRAPH_SECONDS] * len(graph), f"{settings}, after `rtx export RUN`; the peer is the limit"
    yield row(f"{name}, by the graph beside the run", graph, limits, "s", 1.0, ("onnxruntime",), how, less_is_better=True)
    how = f"{settings}; the peer is BERT of the same sizes"
    yield row(f"{name}, beside pipeline", taken["ours"], taken["pipeline"], "s", 1.0, packages, how, less_is_better=True)


def _bert(run: Path, folder: Path) -> str:
    """A folder with a BERT of the sizes of a run and its tokenizer, which transformers opens without our code."""
    config = json.loads((run / "config.json").read_text(encoding="utf-8"))
    sizes = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "pad_token_id")
    given = {name: config[name] for name in sizes}
    given["intermediate_size"] = given["intermediate_size"] or 4 * config["hidden_size"]
    BertForSequenceClassification(BertConfig(**given)).save_pretrained(folder)
    load_tokenizer(run).save_pretrained(folder)
    return str(folder)


def _compare(rtx: str, rounds: int) -> Iterator[Row]:
    """`rtx compare` on 10,000 rows: from the call to the first score, and from the end of the trainings to the answer."""
    names = ("rtx compare, 10,000 rows, to the first score", "rtx compare, 10,000 rows, choice and report after the trainings")
    first, after, peaks = [], [], []
    try:
        train, _ = rows_of(DATA[COMPARED])
    except InputError as error:
        yield from (not_measured(name, "s", 1.0, str(error)) for name in names)
        return
    with tempfile.TemporaryDirectory() as folder:
        train.to_csv(Path(folder) / "rows.csv", index=False)
        for number in range(rounds):
            out, began = Path(folder) / f"out{number}", time.time()
            command = [rtx, "compare", f"{folder}/rows.csv", "--minutes", "1", "--out", str(out)]
            with (
                of_commands(peaks),
                subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as called,
            ):
                first.append(next(time.time() - began for line in called.stderr if line.startswith(WORDS)))
                called.stderr.read()
            ended, book = time.time(), json.loads((out / "notebooks" / "10_your_texts.ipynb").read_text(encoding="utf-8"))
            (cell,) = (cell for cell in book["cells"] if "comparison.race()" in "".join(cell["source"]))
            after.append(ended - datetime.datetime.fromisoformat(cell["metadata"]["papermill"]["end_time"]).timestamp())
    settings = f"rtx compare rows.csv --minutes 1, {len(train):,} rows of SST-2; the peer is the limit"
    for name, taken, limit in zip(names, (first, after), (FIRST_SCORE_SECONDS, ANSWER_SECONDS), strict=True):
        limits = [limit] * len(taken)
        yield row(name, Taken.of(taken, max(peaks)), limits, "s", 1.0, ("papermill",), settings, less_is_better=True)
