"""Notebooks are run as promised: bad parameters never reach a kernel, and no failure passes for success."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import nbformat
import papermill
import pytest
from jupyter_client.kernelspec import KernelSpecManager
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from rtxlib import atomic
from rtxlib.errors import InputError
from rtxstudy import folders, provenance
from rtxstudy.commands import report as report_command
from rtxstudy.report import execution, notebooks
from rtxstudy.report.outcomes import Outcome, save_outcomes
from rtxstudy.report.progress import Progress, Watch

PARAMETERS = """\
from typing import Literal, Optional, Union

profile: Literal["smoke", "demo", "full"] = "demo"  # how large
seeds: Optional[int] = None  # None: the profile's
models: Union[list[str], None] = None
rate: float = 0.1
labels: dict[str, str] | None = None
lowercase: bool = True
note: str = "a=b"  # an equals sign inside
"""


def write(folder: Path, stem: str, *sources: str, parameters: str = PARAMETERS) -> Path:
    """A notebook of a heading, a parameters cell and ``sources``."""
    tagged = new_code_cell(parameters, metadata={"tags": ["parameters"]})
    cells = [new_markdown_cell(f"# The question of {stem}"), tagged, *map(new_code_cell, sources)]
    path = folder / f"{stem}.ipynb"
    notebook = new_notebook(cells=cells)
    notebook.metadata.kernelspec = {"name": "some-other-kernel", "display_name": "x", "language": "python"}
    nbformat.write(notebook, path)
    return path


# ---------------------------------------------------------------------------------------------------------- parameters


def test_parameters_are_read_without_running_the_cell(tmp_path: Path) -> None:
    read = {parameter.name: parameter for parameter in notebooks.read_parameters(write(tmp_path, "01_a"))}
    assert list(read) == ["profile", "seeds", "models", "rate", "labels", "lowercase", "note"]
    assert read["profile"].choices == ("smoke", "demo", "full")
    assert read["profile"].description == "how large"
    assert (read["seeds"].annotation, read["seeds"].default) == ("Optional[int]", None)
    assert read["seeds"].description == "None: the profile's"
    assert read["note"].default == "a=b"


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("profile", "full", "full"),
        ("seeds", "3", 3),
        ("seeds", "none", None),
        ("seeds", 4, 4),
        ("models", "[standard-6x384, 'recurrent-3x2x256']", ["standard-6x384", "recurrent-3x2x256"]),
        ("models", "a,b", ["a", "b"]),
        ("models", "[]", []),
        ("models", ["a"], ["a"]),
        ("rate", "1e-3", 1e-3),
        ("rate", 2, 2.0),
        ("labels", "{1: bad, 'two': good}", {"1": "bad", "two": "good"}),
        ("labels", {"1": "bad"}, {"1": "bad"}),
        ("lowercase", "false", False),
        ("lowercase", "1", True),
        ("note", "3", "3"),
    ],
)
def test_values_are_read_by_the_annotation(tmp_path: Path, name: str, given: object, expected: object) -> None:
    value = notebooks.check(write(tmp_path, "01_a"), {name: given}, text=True)[name]
    assert (value, type(value)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("seed", "3", "Did you mean 'seeds'?"),
        ("seeds", "three", "'three' is not of type int | None"),
        ("seeds", True, "True is not of type"),
        ("seeds", 2.5, "2.5 is not of type"),
        ("profile", "dmo", "none of 'smoke', 'demo', 'full'. Did you mean 'demo'?"),
        ("models", [1], "[1] is not of type list[str] | None"),
        ("models", 3, "3 is not of type"),
        ("rate", "fast", "'fast' is not of type float"),
        ("labels", ["a"], "['a'] is not of type"),
        ("lowercase", "maybe", "'maybe' is not of type bool"),
        ("lowercase", 1, "1 is not of type bool"),
        ("note", 3, "3 is not of type str"),
    ],
)
def test_a_wrong_parameter_is_refused_by_name(tmp_path: Path, name: str, given: object, said: str) -> None:
    with pytest.raises(InputError) as refusal:
        notebooks.check(write(tmp_path, "01_a"), {name: given}, text=True)
    assert said in str(refusal.value)
    assert name in str(refusal.value)


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("seeds = 3", "annotated assignment"),
        ("seeds: int", "annotated assignment"),
        ("import os\nos.remove('x')", "annotated assignment"),
        ("seeds: int = 'three'", "'three' is not of type int"),
        ("seeds: Path = None", "annotation 'Path' is not understood"),
        ("seeds: int = 1 +", "line 1"),
        ("seeds: int = max(1, 2)", "seeds"),
    ],
)
def test_a_parameters_cell_that_cannot_be_checked_is_refused(tmp_path: Path, cell: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        notebooks.read_parameters(write(tmp_path, "01_a", parameters=cell))


def test_what_is_no_notebook_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "01_a.ipynb").write_bytes(b"\xff\x00 not json")
    with pytest.raises(InputError, match="cannot be read as a notebook"):
        notebooks.read_parameters(tmp_path / "01_a.ipynb")
    with pytest.raises(InputError, match="There is no notebook"):
        notebooks.read_parameters(tmp_path / "02_b.ipynb")


ODD = ["null", "None", " label ", '"quoted"', "'", 'te\nxt`"', "{seeds}", "a\\", "true", "[a, b]", "é\u200b", ""]


def test_a_value_reaches_the_notebook_as_it_is(tmp_path: Path) -> None:
    """A column may be called null and a folder may end in a space: only a command line's text is read by the annotation."""
    given = {"note": str(tmp_path / "told {x} "), "models": ODD, "labels": dict(zip(ODD, ODD[::-1], strict=True)), "seeds": None}
    tell = "import json, pathlib; pathlib.Path(note).write_text(json.dumps([models, labels, seeds]))"
    source, out = write(tmp_path, "01_a", tell), tmp_path / 'o {seeds} "x" '
    (out / "notebooks").mkdir(parents=True)
    checked = notebooks.check(source, given)
    with Progress(io.StringIO()) as progress, Watch(progress) as watch:
        outcome = execution.execute("01_a", source, checked, out, None, watch, threading.Event())
    assert outcome.error is None and outcome.path.parent == out / "notebooks"
    assert json.loads(Path(given["note"]).read_text()) == [given["models"], given["labels"], None]
    with pytest.raises(InputError, match="is not UTF-8; rename it"):
        notebooks.check(source, {"note": "half \ud83d"})


def test_pairs_need_a_name_and_an_equals_sign() -> None:
    assert notebooks.pairs(["seeds=3", "note=a=b"]) == {"seeds": "3", "note": "a=b"}
    for wrong in ("seeds", "=3", "a b=3"):
        with pytest.raises(InputError, match="name=value"):
            notebooks.pairs([wrong])


@pytest.mark.parametrize("value", ["a\nb", "{a: b\rc}", "x" * 200_000])
def test_a_list_that_is_no_line_is_refused_in_a_sentence(tmp_path: Path, value: str) -> None:
    source = write(tmp_path, "01_a", parameters="variant: dict[str, Union[int, str]] = {}")
    with pytest.raises(InputError, match="cannot be separated at its commas") as refusal:
        notebooks.check(source, {"variant": value}, text=True)
    assert len(str(refusal.value)) < 400


def test_notebooks_are_found_by_number_or_name(tmp_path: Path) -> None:
    for stem in ("02_baseline", "03_recurrent"):
        write(tmp_path, stem)
    assert list(notebooks.find(["03", "02_baseline.ipynb"], tmp_path)) == ["02_baseline", "03_recurrent"]
    with pytest.raises(InputError, match="Did you mean '03_recurrent'"):
        notebooks.find(["03_recurent"], tmp_path)
    with pytest.raises(InputError, match="names 2 notebooks"):
        notebooks.find(["0"], tmp_path)
    with pytest.raises(InputError, match="There are no notebooks in"):
        notebooks.find(None, tmp_path / "empty")


def test_every_dependency_is_a_notebook_that_runs_earlier() -> None:
    order = list(notebooks.NOTEBOOKS)
    assert order == sorted(order)
    for name, needs in notebooks.NOTEBOOKS.items():
        assert all(order.index(need) < order.index(name) for need in needs)


def test_nothing_starts_when_one_parameter_is_wrong(tmp_path: Path) -> None:
    write(tmp_path, "01_a", parameters="seeds: int = 1")
    write(tmp_path, "02_b", parameters="rows: int = 1\nprofile: str = 'demo'")
    wrong = {"row": "Did you mean 'rows'", "rows": "not of type int", "profile": "--profile"}
    for given, said in (({name: "many"}, said) for name, said in wrong.items()):
        with pytest.raises(InputError, match=said):
            notebooks.run(["01", "02"], "demo", given, tmp_path / "out", folder=tmp_path)
        assert not (tmp_path / "out").exists()


def test_checking_parameters_loads_no_heavy_library() -> None:
    heavy = ("torch", "matplotlib", "nbconvert")
    code = f"import sys, rtxstudy.report.notebooks as n; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


# ------------------------------------------------------------------------------------------------------------- running


class Clocked(io.StringIO):
    """A stream that remembers when each line came."""

    def __init__(self) -> None:
        super().__init__()
        self.came: list[tuple[float, str]] = []

    def write(self, text: str) -> int:
        self.came.append((time.monotonic(), text))
        return super().write(text)


@pytest.fixture(scope="module")
def decoy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Jupyter folder in which ``python3`` is a kernel that cannot start."""
    folder = tmp_path_factory.mktemp("jupyter")
    spec = folder / "kernels" / "python3" / "kernel.json"
    spec.parent.mkdir(parents=True)
    spec.write_text(json.dumps({"argv": ["false", "{connection_file}"], "display_name": "x", "language": "python"}))
    return folder


OK = """\
import os, sys, time, warnings
print("interpreter", sys.executable, os.path.basename(os.getcwd()))
print("given", profile, seeds, models, os.environ.get("RTX_NO_TRAINING"), os.environ.get("RTX_EXECUTOR"))
warnings.warn("have a look")
for step in range(3):
    print(f"\\repoch {step}", end="")
print()
time.sleep(0.8)
"""
# What a kernel's process writes to its own stderr, which is not the stderr of its cells.
BESIDE = "import os, sys; print('{}', file=sys.__stderr__, flush=True)"


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, decoy: Path) -> tuple[dict[str, notebooks.Outcome], Path, Clocked]:
    """One run over notebooks that end in every way there is."""
    folder = tmp_path_factory.mktemp("notebooks")
    write(folder, "01_fine", OK)
    write(folder, "02_baseline", "fine = 1", "1 / 0", "never = 1")
    write(folder, "03_exit", "import sys; sys.exit(0)", "never = 1")
    write(folder, "04_death", f"{BESIDE.format('as it died')}; os._exit(1)", "never = 1")
    write(folder, "05_endless", "while True: pass", "never = 1")
    write(folder, "99_report", "1")
    out, stream = tmp_path_factory.mktemp("reports"), Clocked()
    given = {"seeds": "2", "models": "[a,b]"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_PATH", str(decoy))
        for name in ("RTX_NO_TRAINING", "RTX_EXECUTOR"):
            patch.delenv(name, raising=False)
        names = ["01", "02", "03", "04", "05", "99"]
        told = {"training": False, "executor": "ray"}
        outcomes = notebooks.run(names, "smoke", given, out, folder=folder, timeout=3, stream=stream, **told)
        assert not {"RTX_NO_TRAINING", "RTX_EXECUTOR"} & set(os.environ)
    return {outcome.name: outcome for outcome in outcomes}, out, stream


def test_a_kernel_that_dies_before_its_first_cell_is_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "01_fine", OK)
    started, execute = [], papermill.execute_notebook

    def first_dies(*given: object, **more: object) -> object:
        started.append(given)
        if len(started) == 1:
            raise RuntimeError("Kernel died before replying to kernel_info")
        return execute(*given, **more)

    monkeypatch.setattr(papermill, "execute_notebook", first_dies)
    (outcome,) = notebooks.run(["01"], "smoke", {}, tmp_path / "out", folder=tmp_path, training=False, stream=io.StringIO())
    assert (outcome.status, len(started)) == ("done", 2), outcome.error


@pytest.mark.parametrize(
    ("name", "status", "error"),
    [
        ("01_fine", "done", None),
        ("02_baseline", "failed", "cell 4: ZeroDivisionError: division by zero"),
        ("03_exit", "failed", "cell 3: left through sys.exit"),
        ("04_death", "failed", "cell 3: the kernel died"),
        ("05_endless", "failed", "cell 3: not finished within the time limit of 3 s"),
        ("99_report", "skipped", "needs 02_baseline, which failed"),
    ],
)
def test_each_end_is_told_as_it_was(ran: tuple, name: str, status: str, error: str | None) -> None:
    outcomes, out, stream = ran
    outcome = outcomes[name]
    assert outcome.status == status
    assert outcome.error is None if error is None else outcome.error.startswith(error)
    assert error is None or error in stream.getvalue()
    assert {kept.name: kept for kept in notebooks.read_outcomes(out)}[name] == outcome
    if status == "skipped":
        assert outcome.path is None
        return
    record = nbformat.read(outcome.path, as_version=4).metadata.rtx
    assert record.completed is (status == "done")
    assert record.error == outcome.error


def test_a_failed_notebook_keeps_what_had_run(ran: tuple) -> None:
    cells = [cell for cell in nbformat.read(ran[0]["02_baseline"].path, as_version=4).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == [1, 2, 3, 4, None]
    assert cells[3].outputs[-1].ename == "ZeroDivisionError"
    assert not any("papermill-error-cell-tag" in cell.metadata.get("tags", []) for cell in cells)


def test_what_a_kernel_wrote_as_it_died_is_shown(ran: tuple) -> None:
    assert "as it died" in ran[2].getvalue()


def test_the_kernel_is_this_very_interpreter(ran: tuple, decoy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert f"interpreter {sys.executable} " in ran[2].getvalue()
    monkeypatch.setenv("JUPYTER_PATH", str(decoy))
    assert KernelSpecManager().get_kernel_spec("python3").argv[0] == "false"
    specs = notebooks.RunningInterpreter()  # what `make lab` hands to JupyterLab
    assert specs.get_kernel_spec("python3").argv[0] == sys.executable
    assert specs.get_all_specs()["python3"]["spec"]["argv"][0] == sys.executable


def test_notebooks_see_their_parameters_who_trains_and_that_training_is_refused(ran: tuple) -> None:
    assert "given smoke 2 ['a', 'b'] 1 ray\n" in ran[2].getvalue()


def test_what_a_cell_prints_is_seen_while_it_runs(ran: tuple) -> None:
    came = {text.strip(): when for when, text in ran[2].came}
    printed = next(when for text, when in came.items() if text.endswith("epoch 2"))
    ended = next(when for text, when in came.items() if "cell 3 of 3  The question of 01_fine" in text)
    assert ended - printed > 0.5
    assert "UserWarning: have a look" in ran[2].getvalue()
    assert "epoch 0" not in ran[2].getvalue()  # a line that is drawn over is shown once


def test_only_whole_notebooks_and_no_paths_of_this_machine_are_left(ran: tuple) -> None:
    left = sorted(path.name for path in (ran[1] / "notebooks").iterdir())
    assert left == ["01_fine.ipynb", "02_baseline.ipynb", "03_exit.ipynb", "04_death.ipynb", "05_endless.ipynb"]
    metadata = json.dumps(nbformat.read(ran[0]["01_fine"].path, as_version=4).metadata)
    assert str(ran[1]) not in metadata
    assert str(Path(sys.prefix)) not in metadata


def test_running_one_again_keeps_what_is_known_of_the_others(tmp_path: Path) -> None:
    first = notebooks.Outcome("01_a", "done", 1.0, None, tmp_path / "notebooks" / "01_a.ipynb")
    notebooks.save_outcomes([first, notebooks.Outcome("02_b", "failed", 1.0, "cell 1: x")], tmp_path)
    again = notebooks.Outcome("02_b", "done", 2.0, None, tmp_path / "notebooks" / "02_b.ipynb")
    notebooks.save_outcomes([again], tmp_path)
    assert notebooks.read_outcomes(tmp_path) == [first, again]


def test_a_full_disk_is_told_in_a_sentence_and_leaves_nothing_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "01_a", "1")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", str(tmp_path / "out"))

    monkeypatch.setattr(notebooks.os, "replace", full)
    stream = io.StringIO()
    with pytest.raises(InputError, match="cannot be written: No space left on device"):
        notebooks.run(["01"], "demo", {}, tmp_path / "out", folder=tmp_path, stream=stream)
    assert [path.name for path in (tmp_path / "out").rglob("*")] == ["notebooks"]


MEET = """\
import pathlib, time
pathlib.Path("{me}").touch()
ends = time.monotonic() + {patience}
while not pathlib.Path("{other}").exists() and time.monotonic() < ends:
    time.sleep(0.02)
assert pathlib.Path("01_ended").exists()
assert pathlib.Path("{other}").exists() is {met}
"""


@pytest.mark.parametrize("training", [True, False])
def test_notebooks_run_side_by_side_when_none_of_them_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, training: bool
) -> None:
    """02 and 03 wait for each other, which only two that run at once survive; both find 01, which they need, ended.

    All kernels start in the notebooks' folder, and this process, which they share, never leaves its own.
    """
    visited: set[str] = set()
    change = os.chdir
    monkeypatch.setattr(os, "chdir", lambda folder: (change(folder), visited.add(os.getcwd()))[0])
    monkeypatch.setattr(notebooks, "cores", lambda: 2)
    last = "import time, pathlib; time.sleep(0.5); pathlib.Path('01_ended').touch()"
    write(tmp_path, "01_data_preparation", last)
    first = dict(patience=1, met=False) if training else dict(patience=60, met=True)
    write(tmp_path, "02_baseline", MEET.format(me="second", other="third", **first))
    write(tmp_path, "03_recurrent", MEET.format(me="third", other="second", patience=60, met=True))
    stream = io.StringIO()
    outcomes = notebooks.run(
        ["01", "02", "03"], "demo", {}, tmp_path / "out", training=training, folder=tmp_path, stream=stream
    )
    assert [(outcome.name[:2], outcome.status, outcome.error) for outcome in outcomes] == [
        ("01", "done", None),
        ("02", "done", None),
        ("03", "done", None),
    ]
    assert visited <= {os.getcwd()}
    assert ("  02 0:0" in stream.getvalue()) is not training  # lines say whose they are where they may be mixed


def test_two_reports_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    """Each waits in the same notebook for the other, so that both write it at the same time."""
    meet = "import os, pathlib, time\npathlib.Path(f'here-{os.getppid()}').touch()\nends = time.monotonic() + 60\n"
    meet += "while len(list(pathlib.Path().glob('here-*'))) < 2 and time.monotonic() < ends:\n    time.sleep(0.02)"
    write(tmp_path, "01_a", meet, "len(list(pathlib.Path().glob('here-*')))")
    code = (
        "import pathlib, rtxstudy.report.notebooks as n\n"
        f"here = pathlib.Path({str(tmp_path)!r})\n"
        "print(n.run(['01'], 'demo', {}, here / 'out', folder=here)[0].status)\n"
    )
    both = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [one.communicate(timeout=120)[0].strip() for one in both] == ["done", "done"]
    kept = nbformat.read(tmp_path / "out" / "notebooks" / "01_a.ipynb", as_version=4)
    assert kept.metadata.rtx.completed and kept.cells[-1].outputs[0].data["text/plain"] == "2"


def test_an_interrupt_leaves_what_an_earlier_run_had_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "01_a", "print('first')")
    assert notebooks.run(["01"], "demo", {}, tmp_path / "out", folder=tmp_path)[0].status == "done"
    kept = (tmp_path / "out" / "notebooks" / "01_a.ipynb").read_bytes()
    write(tmp_path, "01_a", "raise ValueError('killed')")
    stopping = threading.Event()
    stopping.set()
    with Progress(io.StringIO()) as progress, Watch(progress) as watch:
        went = execution.execute("01_a", tmp_path / "01_a.ipynb", {}, tmp_path / "out", None, watch, stopping)
    assert went.status == "interrupted" and went.error.endswith("what is kept is of an earlier run")
    assert went.path.read_bytes() == kept and len(list(went.path.parent.iterdir())) == 1


def test_damaged_outcomes_are_told_in_a_sentence(tmp_path: Path) -> None:
    for damage in ("{", "[{}]", "[1]"):
        (tmp_path / "outcomes.json").write_text(damage)
        with pytest.raises(InputError, match=r"outcomes\.json is damaged .*; delete it"):
            notebooks.read_outcomes(tmp_path)


@pytest.mark.parametrize(
    ("sent", "training"), [(signal.SIGINT, True), (signal.SIGINT, False), (signal.SIGTERM, True), (signal.SIGKILL, True)]
)
def test_an_interrupt_stops_the_kernel_and_says_how_to_go_on(
    tmp_path: Path, sent: signal.Signals, training: bool
) -> None:
    write(tmp_path, "01_data_preparation", BESIDE.format("Traceback"))
    slow = "import os, pathlib, time\npathlib.Path('pid').write_text(str(os.getpid()))\ntime.sleep(60)"
    write(tmp_path, "02_baseline", slow, "1")
    code = (
        "import pathlib, rtxstudy.report.notebooks as n\n"
        f"here = pathlib.Path({str(tmp_path)!r})\n"
        f"n.run(['01', '02'], 'demo', {{}}, here / 'out', folder=here, training={training})\n"
    )
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    # A test run started in the background hands on a SIGINT that is ignored; a person's terminal does not.
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(temporary)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    pid, patience = tmp_path / "pid", time.monotonic() + 40
    while not (pid.exists() and pid.read_text()) and time.monotonic() < patience:
        time.sleep(0.05)
    assert pid.exists(), "the second notebook did not begin"
    process.send_signal(sent)
    said = process.communicate(timeout=30)[1]
    executed = tmp_path / "out" / "notebooks"
    if sent == signal.SIGKILL:
        assert list(temporary.glob("*/kernel.json")) and list(executed.glob(".*.part.ipynb"))
        atomic.sweep(temporary, executed)
    assert not list(temporary.iterdir()) and not list(executed.glob(".*"))
    if sent == signal.SIGKILL:
        return
    assert process.returncode == (143 if sent == signal.SIGTERM else 130)
    assert "Kept: 01_data_preparation" in said
    assert "Give the same command again to go on" in said
    assert "Traceback" not in said
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
    outcomes = {outcome.name: outcome for outcome in notebooks.read_outcomes(tmp_path / "out")}
    assert [outcomes[name].status for name in ("01_data_preparation", "02_baseline")] == ["done", "interrupted"]
    assert nbformat.read(outcomes["01_data_preparation"].path, as_version=4).metadata.rtx.completed
    assert not nbformat.read(outcomes["02_baseline"].path, as_version=4).metadata.rtx.completed


# ---------------------------------------------------------------------------------------------------------- provenance


def test_provenance_says_what_made_the_numbers() -> None:
    told = provenance.block({"seeds": 3, "note": "<b>"}, {"fingerprint": "3fa9"}, time.time() - 5, seeds=[0, 1])
    assert told["parameters"] == {"seeds": 3, "note": "<b>"}
    assert told["seeds"] == [0, 1]
    assert told["data"] == {"fingerprint": "3fa9"}
    assert told["versions"]["torch"] not in ("", "not installed")
    assert told["threads"] >= 1
    assert 5 <= told["wall_seconds"] < 60
    shown = told._repr_html_()
    assert "fingerprint 3fa9" in shown
    assert "&lt;b&gt;" in shown and "<b>" not in shown


def test_provenance_names_the_commit_of_this_checkout_only(tmp_path: Path) -> None:
    assert provenance._commit(tmp_path) == {"commit": None, "dirty": None}
    git = ("git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b.c")
    (tmp_path / "provenance.py").write_text("x = 1\n")
    subprocess.run((*git, "init", "-q"), check=True)
    assert provenance._commit(tmp_path)["commit"] is None  # the package lies in a repository that does not hold it
    subprocess.run((*git, "add", "."), check=True)
    subprocess.run((*git, "commit", "-qm", "first"), check=True)
    told = provenance._commit(tmp_path)
    assert len(told["commit"]) == 40
    assert told["dirty"] is False
    (tmp_path / "rtxlib").mkdir()
    (tmp_path / "rtxlib" / "new.py").write_text("")
    assert provenance._commit(tmp_path)["dirty"] is True


def test_a_later_call_still_says_what_an_earlier_one_left_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page shows all notebooks that were ever run, so its banner is about all of them, too."""
    monkeypatch.setenv("RTX_HOME", str(tmp_path))
    out = folders.reports_dir("smoke")
    (out / "notebooks").mkdir(parents=True)
    book = new_notebook(cells=[new_markdown_cell("# The baseline")], metadata={"rtx": {"completed": True}})
    nbformat.write(book, out / "notebooks" / "02_baseline.ipynb")
    done = Outcome("02_baseline", "done", 1.0, None, out / "notebooks" / "02_baseline.ipynb")
    save_outcomes([done, Outcome("99_report", "skipped", 0.0, "03_recurrent failed")], out)
    monkeypatch.setattr(notebooks, "run", lambda *_, **__: [done])
    report_command._run_notebooks(["02"], "smoke", (), True, "local")
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "This report is not complete." in page and "skipped: 03_recurrent failed" in page
