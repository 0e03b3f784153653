"""``rtx compare``: from a file of labelled texts to the model to take."""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import time
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rtx.cli.output import json_line
from rtxlib.errors import FULL, InputError, visible
from rtxstudy.commands import need_notebooks

if TYPE_CHECKING:
    from filelock import AcquireReturnProxy, FileLock

    from rtxstudy.questions.your_texts.answer import Answer
    from rtxstudy.report.outcomes import Outcome

NOTEBOOK = "10_your_texts"
TITLE = "Which model for these texts?"


@click.command()
@click.argument("file")
@click.option("--text-column", help="The column of texts; without it, it is guessed.")
@click.option("--text-pair-column", help="The column of second texts, where a row is a pair of texts.")
@click.option("--label-column", help="The column of labels; without it, it is guessed.")
@click.option(
    "--minutes", type=click.FloatRange(0, 100_000), default=15, show_default=True, help="Minutes for the whole command, about."
)
@click.option("--max-mb", type=click.FloatRange(0, min_open=True), help="Megabytes of the model, at most.")
@click.option(
    "--max-ms", type=click.FloatRange(0, min_open=True), help="Milliseconds for one text on this machine, at most."
)
@click.option(
    "--margin",
    type=click.FloatRange(0, 1),
    default=0.01,
    show_default=True,
    help="What a smaller model may lose against the best; 0.01 is one point.",
)
@click.option("--group-column", help="Rows with the same value, such as one author, stay on one side of every split.")
@click.option("--split-column", help="A column that names the split of each row: train, validation or test.")
@click.option("--test", help="Another file with the same columns, whose rows are the test texts.")
@click.option("--unlabelled", help="A file of texts without labels; DIR/further.csv then has those to label next.")
@click.option("--out", help="The folder for the report and the model.  [default: compare-FILE]")
@click.option(
    "--executor",
    metavar="local|ray",
    help="What trains the networks: this machine, or a Ray cluster. Without it RTX_EXECUTOR decides, else local.",
)
@click.option("--all", "every", is_flag=True, help="Also train the models that did badly on public files of about this size.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; the last line is the result.")
def compare(file: str, out: str | None, as_json: bool, **options: Any) -> None:
    """Compare models on the labelled texts of FILE, and hand over the one to take.

    FILE is a CSV, TSV, JSONL or Parquet file. The models range from counting words to a fine-tuned MiniLM. Without the Hub the
    pretrained ones are left out. DIR/report.html shows everything; DIR/model is what `rtx predict` opens.

    Ctrl-C ends the training and makes the report of what is finished. The same command goes on from there.
    """
    began = time.monotonic()
    need_notebooks("compare")
    from rtxstudy.questions.your_texts.answer import Answer
    from rtxstudy.questions.your_texts.comparison import (
        ANSWER,
        CALLED_FROM,
        KEPT,
        REPORT,
        STARTED,
        Comparison,
        Options,
        folder_name,
    )
    from rtxstudy.report.notebooks import check, notebooks_dir

    source = notebooks_dir() / f"{NOTEBOOK}.ipynb"
    if not source.is_file():
        raise InputError(f"There is no {source.name} in {source.parent}; install rtxlib again.")
    folder = Path(out or folder_name(file)).absolute()
    options = {name: value for name, value in options.items() if value is not None}
    options |= {"file": str(Path(file).absolute()), "out": str(folder)}
    for name in {"test", "unlabelled"} & options.keys():
        options[name] = str(Path(options[name]).absolute())
    parameters = check(source, options)
    os.environ |= {CALLED_FROM: os.getcwd(), STARTED: f"{began}"}
    # Opened here, too, so that whatever is wrong with the file is one sentence, before a kernel starts.
    for sentence in Comparison.open(Options(**parameters)).texts.said:
        click.echo(visible(sentence), err=True)
    with _held(folder / KEPT):
        (folder / ANSWER).unlink(missing_ok=True)
        outcome = _run(source, parameters, folder)
        from rtxstudy.report import html

        if outcome.path is not None:
            html.build([outcome.path], folder / REPORT, TITLE, [outcome], named=False)
        if outcome.status != "done":
            raise _ended_early(outcome, folder / REPORT)
        answer = json.loads((folder / ANSWER).read_text(encoding="utf-8"))
    click.echo(json_line(answer) if as_json else _summary(Answer(**answer)))


def _held(kept: Path) -> AcquireReturnProxy[FileLock]:
    """The lock of a comparison's folder, taken. Raises InputError when another comparison holds it."""
    from filelock import Timeout

    from rtxlib.runs import store

    try:
        return store.lock(kept, "compare").acquire(timeout=0)
    except Timeout:
        raise InputError(
            f"Another `rtx compare` is at work in {kept.parent}; wait for its end, or name another folder with --out."
        ) from None


def _ended_early(outcome: Outcome, page: Path) -> InputError:
    if any(os.strerror(number) in str(outcome.error) for number in FULL):
        return InputError(f"The disk of {page.parent} is full; make room and give the same command again: it goes on from there.")
    advice = f"{page} shows how far it came" if outcome.path else "give the same command again: it goes on from there"
    return InputError(f"The notebook ended early: {outcome.error}; {advice}.")


def _run(source: Path, parameters: dict[str, Any], folder: Path) -> Outcome:
    """Execute the notebook. The first Ctrl-C asks the race to end, the second ends everything, and so does SIGTERM."""
    from rtx.process import Terminated, exit_status, signals_as_interrupts
    from rtxstudy.questions.your_texts.comparison import KEPT
    from rtxstudy.report.execution import Kernel, execute
    from rtxstudy.report.progress import Progress

    stopping, stop_file = threading.Event(), folder / KEPT / "stop"
    stop_file.unlink(missing_ok=True)
    for name in ("notebooks", KEPT):
        (folder / name).mkdir(parents=True, exist_ok=True)
    future: Future[Outcome] = Future()

    def work() -> None:
        try:
            future.set_result(execute(NOTEBOOK, source, parameters, folder, None, watch, stopping))
        except BaseException as error:
            future.set_exception(error)

    thread, asked_before = threading.Thread(target=work), False
    with Progress(sys.stderr) as progress, signals_as_interrupts(), _quiet_watch(progress) as watch:
        while True:
            try:
                if thread.ident is None:
                    thread.start()
                while thread.is_alive():
                    thread.join(0.5)
                return future.result()
            except KeyboardInterrupt as stop:
                if not asked_before and not isinstance(stop, Terminated):
                    asked_before = True
                    stop_file.touch()
                    progress.line("Stopping: the report is made of what is finished. Ctrl-C again ends at once.")
                    continue
                stopping.set()
                while thread.is_alive():
                    Kernel.kill_all()
                    thread.join(0.2)
                progress.line(f"Interrupted. What is finished is kept in {folder}; the same command goes on from there.")
                raise SystemExit(exit_status(stop)) from None


def _quiet_watch(progress: Any) -> Any:
    """A watch that shows what each model reached, and the present state in one line that moves."""
    from rtxstudy.questions.your_texts.clock import STAYS
    from rtxstudy.report.progress import Watch

    class Quiet(Watch):
        def line(self, text: str) -> None:
            if text.strip().startswith(STAYS):
                self.progress.line(text.strip().removeprefix(STAYS))

        def status(self) -> str:
            return " ".join((self.messages.rest or self.heading).replace("\r", "").split())

    return Quiet(progress)


def _summary(answer: Answer) -> str:
    """The answer in a few lines."""
    from rtxstudy.numbers import megabytes
    from rtxstudy.questions.your_texts.model_sentences import timed

    lines = [f"texts: the column '{answer.text_column}'; labels: the column '{answer.label_column}'"]
    lines.append(f"{answer.judged_by} on {answer.n_test:,} test texts, time for one text, size")
    for row in answer.candidates:
        marked = "→" if row["model"] == answer.take else " "
        learned = "" if row["learned"] or row["model"] == "majority class" else "   not shown to have learned"
        lines.append(
            f"{marked} {row['model']:22} {row['test_score']:.3f} ({row['test_low']:.3f} to {row['test_high']:.3f})  "
            f"{row['ms']:8.2f} ms {megabytes(row['mb']):>11}{learned}"
        )
    lines += [re.sub(r"[*`]+", "", part) for part in answer.verdict]
    lines += [f"report   {answer.report}"] + ([f"model    {answer.model}"] if answer.model else [])
    lines += [f"to label {answer.further}"] if answer.further else []
    lines += [] if answer.quiet else [timed(answer)]
    return "\n".join(visible(line) for line in lines)
