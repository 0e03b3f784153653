"""Run the notebooks: parameters checked before a kernel starts, progress in sight, an honest outcome for each.

papermill does the running. Around it stands what papermill leaves open: it only warns about an unknown parameter, takes
any type, calls every cell complete after a time-out or a dead kernel, ends well after ``sys.exit(0)``, and uses
whichever kernel the user's machine calls ``python3``.
"""

from __future__ import annotations

import ast
import contextlib
import csv
import io
import json
import logging
import os
import re
import shutil
import signal
import sys
import threading
import time
import tokenize
import types
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TextIO, Union, get_args, get_origin

from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from traitlets import default

from .. import paths
from ..errors import InputError, nearest

# What must have succeeded before a notebook may start, where both are asked for. All of the study rests on the audit
# in 01, which stops the run at a leak; 99 gathers the tables of the others.
NOTEBOOKS: dict[str, tuple[str, ...]] = {
    "01_data_preparation": (),
    "02_baseline": ("01_data_preparation",),
    "03_recurrent": ("01_data_preparation",),
    "04_sensitivity": ("01_data_preparation",),
    "05_width_vs_depth": ("01_data_preparation",),
    "06_domain_classification": ("01_data_preparation",),
    "99_report": (
        "01_data_preparation",
        "02_baseline",
        "03_recurrent",
        "04_sensitivity",
        "05_width_vs_depth",
        "06_domain_classification",
    ),
}

# ---------------------------------------------------------------------------------------------------------- parameters


@dataclass(frozen=True)
class Parameter:
    """One annotated assignment of the cell tagged ``parameters``."""

    name: str
    annotation: str  # as written: "int | None"
    default: Any
    description: str  # the comment at the end of its line
    choices: tuple[Any, ...] | None  # of a Literal
    kind: Any = field(repr=False, compare=False)  # the annotation as a typing object


def read_parameters(path: Path) -> list[Parameter]:
    """The parameters of a notebook, read with ``ast``: nothing of the notebook is executed.

    Understood annotations: ``int``, ``float``, ``str``, ``bool``, ``None``, ``Literal[…]``, ``list[…]``,
    ``dict[…, …]`` and unions of these. A notebook without a cell tagged ``parameters`` has none.

    Raises ``InputError`` when the notebook cannot be read, when its parameters cell holds anything but imports and
    annotated assignments of literals, or when a default does not fit its own annotation.
    """
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        tagged = [cell for cell in cells if "parameters" in cell["metadata"].get("tags", [])]
        sources = ["".join(cell["source"]) for cell in tagged if cell["cell_type"] == "code"]
    except FileNotFoundError:
        raise InputError(f"There is no notebook {path}.") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} cannot be read as a notebook: {error}.") from None
    if not sources:
        return []
    if len(sources) > 1:
        raise InputError(f"{path.name} has {len(sources)} cells tagged 'parameters'; it may have one.")
    source = sources[0]
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        where = f"{path.name}, parameters cell, line {error.lineno}"
        raise InputError(f"{where}: {error.msg}.") from None
    comments = {
        token.start[0]: token.string.lstrip("# ").strip()
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    parameters = []
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):  # Literal has to come from somewhere
            continue
        if not (isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value):
            raise InputError(
                f"{path.name}, parameters cell, line {node.lineno}: '{ast.unparse(node)}' must be an annotated "
                "assignment such as 'seeds: int | None = None'."
            )
        name = node.target.id
        try:
            kind = _kind(node.annotation)
            value = ast.literal_eval(node.value)
            _convert(value, kind, text=False)
        except ValueError as error:
            raise InputError(f"{path.name}, parameter '{name}': {error}") from None
        choices = next((get_args(part) for part in (kind, *get_args(kind)) if get_origin(part) is Literal), None)
        comment = comments.get(node.end_lineno or node.lineno, "")
        parameters.append(Parameter(name, ast.unparse(node.annotation), value, comment, choices, kind))
    return parameters


def check(path: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """``given`` converted to the types the notebook declares: what may be passed to its kernel.

    Strings are read by the annotation, as they come from a command line: ``"3"``, ``"none"``, ``"true"``,
    ``"[a, b]"`` or ``"a,b"``, ``"{1: bad, 2: good}"``.

    Raises ``InputError`` for a name the notebook does not have (with the nearest it has), a value of another type, or
    one outside its ``Literal``.
    """
    known = {parameter.name: parameter for parameter in read_parameters(path)}
    checked = {}
    for name, value in given.items():
        if name not in known:
            has = f"It has: {', '.join(known)}." if known else "It has none."
            raise InputError(f"Notebook {path.stem} has no parameter '{name}'.{nearest(name, known)} {has}")
        try:
            checked[name] = _convert(value, known[name].kind, text=True)
        except ValueError as error:
            raise InputError(f"Notebook {path.stem}, parameter '{name}': {error}") from None
    return checked


def pairs(texts: Iterable[str]) -> dict[str, str]:
    """``["seeds=3", "models=[a,b]"]`` as a dictionary; ``InputError`` for one without a name or ``=``."""
    split = [text.partition("=") for text in texts]
    for name, equals, value in split:
        if not (name.strip().isidentifier() and equals):
            raise InputError(f"A parameter is given as name=value (seeds=3), not as '{name}{equals}{value}'.")
    return {name.strip(): value.strip() for name, _, value in split}


def _kind(node: ast.expr) -> Any:
    """The typing object that an annotation means, without executing it."""
    plain = {"int": int, "float": float, "str": str, "bool": bool}
    if isinstance(node, ast.Name) and node.id in plain:
        return plain[node.id]
    if isinstance(node, ast.Constant) and node.value is None:
        return type(None)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _kind(node.left) | _kind(node.right)
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if node.value.id == "Literal":
            return Literal[tuple(ast.literal_eval(part) for part in inner)]
        if (node.value.id, len(inner)) in (("list", 1), ("dict", 2)):
            return {"list": list, "dict": dict}[node.value.id][tuple(_kind(part) for part in inner)]
    raise ValueError(
        f"the annotation '{ast.unparse(node)}' is not understood; use int, float, str, bool, None, Literal[...], "
        "list[...], dict[..., ...] or a union of these."
    )


def _convert(value: Any, kind: Any, text: bool) -> Any:
    """``value`` as ``kind``; with ``text`` a string may stand for any kind. Raises ValueError when it does not fit."""
    origin, args = get_origin(kind), get_args(kind)
    read = text and isinstance(value, str)
    bare = value.strip().strip("'\"") if read else value
    if origin in (Union, types.UnionType):
        members = sorted(args, key=lambda arg: arg is str)  # str fits every text, so it is tried last
        for arg in members:
            with contextlib.suppress(ValueError):
                return _convert(value, arg, text)
        for arg in members:
            if get_origin(arg) is Literal:
                _convert(value, arg, text)  # raises again: its message names the choices
    elif origin is Literal:
        for choice in args:
            if (value == choice and type(value) is type(choice)) or (read and bare == str(choice)):
                return choice
        raise ValueError(f"{value!r} is none of {', '.join(map(repr, args))}.{nearest(str(value), map(str, args))}")
    elif origin is list and (read or isinstance(value, list | tuple)):
        return [_convert(item, args[0], text) for item in (_items(value, "[]") if read else value)]
    elif origin is dict and (read or isinstance(value, dict)):
        entries = [item.partition(":")[::2] for item in _items(value, "{}")] if read else value.items()
        return {_convert(key, args[0], text): _convert(item, args[1], text) for key, item in entries}
    elif kind is bool and read:
        with contextlib.suppress(ValueError):
            return ("false", "true", "no", "yes", "0", "1").index(bare.lower()) % 2 == 1
    elif kind in (int, float) and read:
        with contextlib.suppress(ValueError):
            return kind(bare)
    elif kind is type(None) and read and bare.lower() in ("none", "null"):
        return None
    elif kind is float and type(value) in (int, float):
        return float(value)
    elif type(value) is kind:  # not isinstance: True is no number here
        return bare
    wanted = "None" if kind is type(None) else kind.__name__ if origin is None else str(kind).replace("typing.", "")
    raise ValueError(f"{value!r} is not of type {wanted}.")


def _items(text: str, brackets: str) -> list[str]:
    """``"[a, 'b']"`` or ``"a,b"`` → ``["a", "b"]``; double quotes protect a comma."""
    inner = text.strip().removeprefix(brackets[0]).removesuffix(brackets[1]).strip()
    return [item.strip().strip("'") for item in next(csv.reader([inner], skipinitialspace=True))] if inner else []


# ------------------------------------------------------------------------------------------------------------- running


@dataclass(frozen=True)
class Outcome:
    """What became of one notebook."""

    name: str  # "03_recurrent"
    status: Literal["done", "failed", "interrupted", "skipped"]
    seconds: float
    error: str | None = None  # "cell 5: ValueError: …"; the number is the one in brackets beside the executed cell
    path: Path | None = None  # the executed notebook; None when none could be kept


class RunningInterpreter(KernelSpecManager):
    """The kernel ``python3`` is the interpreter that runs this process, whatever else the machine has under that name.

    JupyterLab takes it too, as ``--ServerApp.kernel_spec_manager_class=rtxlib.report.notebooks.RunningInterpreter``.
    """

    def find_kernel_specs(self) -> dict[str, str]:
        from ipykernel.kernelspec import RESOURCES

        return {**super().find_kernel_specs(), "python3": RESOURCES}

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        if kernel_name.lower() != "python3":
            return super().get_kernel_spec(kernel_name)
        from ipykernel.kernelspec import RESOURCES, get_kernel_dict

        spec = KernelSpec(resource_dir=RESOURCES, **get_kernel_dict())
        spec.argv[0] = sys.executable
        return spec


class _Kernel(AsyncKernelManager):
    @default("kernel_spec_manager")
    def _kernel_spec_manager_default(self) -> KernelSpecManager:
        return RunningInterpreter(parent=self)


def find(names: Iterable[str] | None = None, folder: Path | None = None) -> dict[str, Path]:
    """Notebooks by stem, in order: those of ``NOTEBOOKS``, or those named ("03", "03_recurrent", "03_recurrent.ipynb").

    Raises ``InputError`` for a name that fits none or several, or when the folder does not hold them.
    """
    folder = folder or paths.notebooks_dir()
    here = sorted(path.stem for path in folder.glob("*.ipynb"))
    stems = []
    for name in NOTEBOOKS if names is None else names:
        stem = Path(name).stem
        fits = [stem] if stem in here else [known for known in here if known.startswith(stem)]
        if not here:
            raise InputError(f"There are no notebooks in {folder}; they come with the checkout, not with the package.")
        if len(fits) != 1:
            close = nearest(stem, here) or nearest(stem, [known.partition("_")[2] for known in here])
            raise InputError(f"'{name}' names {len(fits) or 'no'} notebooks.{close} There are: {', '.join(here)}.")
        stems += fits
    return {stem: folder / f"{stem}.ipynb" for stem in sorted(set(stems))}


def run(
    names: Iterable[str] | None,
    profile: str,
    parameters: Mapping[str, Any],
    out: Path,
    *,
    training: bool = True,
    timeout: int | None = None,
    folder: Path | None = None,
    stream: TextIO | None = None,
) -> list[Outcome]:
    """Execute notebooks one after another through papermill, in the interpreter that runs this process.

    Each becomes ``out/notebooks/<stem>.ipynb``, moved there whole once its completion marker (``metadata.rtx``) is in
    it; ``out/outcomes.json`` says what became of each. A notebook that fails stops those that need it
    (``NOTEBOOKS``), not the others. Every parameter must be known to at least one of the notebooks and is given to
    those that know it. ``timeout`` is in seconds a cell. Without ``training`` the kernels see ``RTX_NO_TRAINING=1``.
    Progress goes to ``stream`` (stderr): a line a cell, and what cells print.

    Raises ``InputError`` before any kernel starts when a name or a parameter is wrong. Ctrl-C shuts the kernel down,
    keeps what was finished, says how to go on and raises ``SystemExit(130)``; SIGTERM does the same.
    """
    sources = find(names, folder)
    plans = _plan(sources, profile, parameters)
    progress = _Progress(stream or sys.stderr)
    outcomes: list[Outcome] = []
    inherited = {"TQDM_NCOLS": "60"} | ({} if training else {"RTX_NO_TRAINING": "1"})  # by the kernels
    before = {name: os.environ.get(name) for name in inherited}
    in_main = threading.current_thread() is threading.main_thread()
    terminate = signal.signal(signal.SIGTERM, signal.default_int_handler) if in_main else None  # as Ctrl-C: no orphans
    try:
        (out / "notebooks").mkdir(parents=True, exist_ok=True)
        os.environ.update(inherited)
        with progress:
            for number, (name, source) in enumerate(sources.items(), start=1):
                progress.line(f"{name}  ({number} of {len(sources)})")
                stopped = {outcome.name: outcome.status for outcome in outcomes if outcome.status != "done"}
                needed = [need for need in NOTEBOOKS.get(name, ()) if need in stopped]
                if needed:
                    outcome = Outcome(name, "skipped", 0.0, f"needs {needed[0]}, which {_WORDS[stopped[needed[0]]]}")
                else:
                    outcome = _execute(name, source, plans[name], out, timeout, progress)
                outcomes.append(outcome)
                save_outcomes(outcomes, out)
                why = f": {outcome.error}" if outcome.error else ""
                progress.line(f"  {_clock(outcome.seconds)}  {_WORDS[outcome.status]}{why}")
                if outcome.status == "interrupted":
                    raise KeyboardInterrupt
    except KeyboardInterrupt:
        done = [outcome.name for outcome in outcomes if outcome.status == "done"]
        progress.line(
            f"Interrupted. Kept: {', '.join(done) or 'no notebook'} (in {out / 'notebooks'}), and every training that "
            "had finished. Give the same command again to go on: finished trainings are not repeated."
        )
        raise SystemExit(130) from None
    except OSError as error:
        raise InputError(f"{error.filename or out} cannot be written: {error.strerror}.") from None
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            os.environ.update({name: value} if value is not None else {})
        if in_main:
            signal.signal(signal.SIGTERM, terminate)
    return outcomes


_WORDS = {"done": "done", "failed": "failed", "interrupted": "was interrupted", "skipped": "was skipped"}


def _plan(sources: Mapping[str, Path], profile: str, parameters: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What each notebook is given, checked; InputError before anything starts."""
    known = {name: {parameter.name for parameter in read_parameters(path)} for name, path in sources.items()}
    for name in parameters:
        if name == "profile":
            raise InputError("The profile is given by --profile, not as a parameter.")
        if not any(name in names for names in known.values()):
            everything = set().union(*known.values()) - {"profile"}
            raise InputError(
                f"No parameter '{name}' in {', '.join(sources)}.{nearest(name, everything)} "
                f"There are: {', '.join(sorted(everything)) or 'none'}."
            )
    given = {"profile": profile, **parameters}
    return {
        name: check(path, {key: value for key, value in given.items() if key in known[name]})
        for name, path in sources.items()
    }


def _execute(
    name: str, source: Path, parameters: dict[str, Any], out: Path, timeout: int | None, progress: _Progress
) -> Outcome:
    import nbformat  # here, so that a mistyped parameter is refused at once
    import papermill
    from jupyter_core.utils import ensure_event_loop
    from nbclient.exceptions import CellTimeoutError, DeadKernelError
    from papermill.execute import remove_error_markers

    logging.getLogger("papermill").setLevel(logging.CRITICAL)  # what it would say stands in the outcome
    partial = (out / "notebooks" / f".{name}.part.ipynb").resolve()
    started = time.monotonic()
    progress.begin()
    status, error = "done", None
    try:
        notebook = papermill.execute_notebook(
            str(source.resolve()),
            str(partial),
            parameters,
            kernel_name="python3",
            language="python",
            kernel_manager_class=_Kernel,
            cwd=str(source.resolve().parent),  # as in JupyterLab
            progress_bar=False,
            execution_timeout=timeout,
            start_timeout=180,  # a busy machine is no failure
            iopub_timeout=60,
            extra_arguments=["--IPKernelApp.log_level=CRITICAL"],  # its log goes past us, straight to the terminal
            stdout_file=progress.printed,
            stderr_file=progress.messages,
            on_notebook_start=progress.open,
            on_cell_execute=progress.enter,
            on_cell_executed=progress.leave,
        )
        left = [cell for cell in notebook.cells if any(o.get("ename") == "SystemExit" for o in cell.get("outputs", ()))]
        if left:  # papermill takes sys.exit(0) for a good end
            number = left[0].execution_count
            status, error = "failed", f"cell {number}: left through sys.exit, so the cells after it did not run"
    except KeyboardInterrupt:
        status, error = "interrupted", f"cell {progress.cell}"
        ensure_event_loop().set_exception_handler(lambda *_: None)  # of the cell nobody waits for any longer
    except papermill.PapermillExecutionError as problem:
        first = (problem.evalue.strip().splitlines() or [""])[0]
        status, error = "failed", f"cell {problem.exec_count}: {problem.ename}: {first}".rstrip(": ")
    except CellTimeoutError:
        status, error = "failed", f"cell {progress.cell}: not finished within the time limit of {timeout} s"
    except DeadKernelError:
        status, error = "failed", f"cell {progress.cell}: the kernel died (out of memory, or its process was ended)"
    except Exception as problem:  # a kernel that does not start, a full disk: an outcome like the others, told as it is
        first = (str(problem).splitlines() or [""])[0]
        status, error = "failed", f"cell {progress.cell}: {type(problem).__name__}: {first}".rstrip(": ")
    seconds = round(time.monotonic() - started, 3)
    final = partial.with_name(f"{name}.ipynb")
    try:
        notebook = remove_error_markers(nbformat.read(partial, as_version=4))
        for key in ("input_path", "output_path"):  # of this machine, and the notebook may be published
            notebook.metadata.papermill.pop(key, None)
        notebook.metadata.rtx = {"completed": status == "done", "status": status, "seconds": seconds, "error": error}
        write_atomic(final, nbformat.writes(notebook) + "\n")
    except (OSError, ValueError) as problem:
        final = None
        status, error = "failed", f"{error or 'finished'}; the executed notebook could not be kept ({problem})"
    finally:
        partial.unlink(missing_ok=True)
    return Outcome(name, status, seconds, error, final)


class _Progress:
    """What a person sees while notebooks run: a line a cell, what cells print, and a sign of life in between.

    On a terminal the last line is kept current once a second; elsewhere a line is added after 20 s of silence.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream, self.live = stream, stream.isatty()
        self.lock, self.ended = threading.RLock(), threading.Event()
        self.spoken = time.monotonic()
        self.begin()

    def begin(self) -> None:
        self.cell, self.cells, self.headings = 0, 0, []
        self.printed, self.messages = _Lines(self), _Lines(self)
        self.heading = "starting the kernel"
        self.started = self.entered = time.monotonic()

    def __enter__(self) -> _Progress:
        threading.Thread(target=self._beat, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self._clear()

    def _clear(self) -> None:
        if self.live:
            self.stream.write("\r\x1b[2K")

    def line(self, text: str) -> None:
        with self.lock:
            self._clear()
            self.stream.write(text + "\n")
            self.stream.flush()
            self.spoken = time.monotonic()

    def _beat(self) -> None:
        while not self.ended.wait(1.0):
            now = time.monotonic()
            since = f"{_clock(now - self.entered)} so far"
            unfinished = _drawn(self.messages.rest) or _drawn(self.printed.rest)  # a progress bar, as a rule
            status = f"  {_clock(now - self.started)}  {self._where()}  {since}  {unfinished}"
            with self.lock:
                if self.live and not self.ended.is_set():
                    self._clear()
                    self.stream.write(status[: shutil.get_terminal_size().columns - 1])
                    self.stream.flush()
                elif now - self.spoken >= 20:
                    self.line(status.rstrip())

    def _where(self) -> str:
        return f"cell {self.cell} of {self.cells}  {self.heading}" if self.cells else self.heading

    # hooks of nbclient

    def open(self, notebook: Any) -> None:
        self.cells = sum(cell.cell_type == "code" and bool(cell.source.strip()) for cell in notebook.cells)
        heading = "parameters"
        for cell in notebook.cells:
            found = re.findall(r"^#+ +(.+)$", cell.source, re.M) if cell.cell_type == "markdown" else []
            heading = found[-1] if found else heading
            self.headings.append(heading)

    def enter(self, cell: Any, cell_index: int) -> None:
        self.cell += 1
        self.heading, self.entered = self.headings[cell_index], time.monotonic()

    def leave(self, cell: Any, cell_index: int, execute_reply: Any) -> None:
        now = time.monotonic()
        for lines in (self.printed, self.messages):
            lines.write("\n")
        self.line(f"  {_clock(now - self.started)}  {self._where()}  ({now - self.entered:.1f} s)")
        if self.cell == self.cells:
            self.heading, self.entered = "stopping the kernel", now


class _Lines:
    """The file that papermill copies a stream of the cells to: hands on whole lines."""

    def __init__(self, progress: _Progress) -> None:
        self.progress, self.rest = progress, ""

    def write(self, text: str) -> None:
        *lines, self.rest = (self.rest + re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text)).split("\n")
        for line in lines:
            if shown := _drawn(line):
                self.progress.line(f"        {shown}")
        self.rest = self.rest[self.rest.rstrip("\r").rfind("\r") + 1 :]  # the last drawing is enough

    def flush(self) -> None:
        pass


def _drawn(line: str) -> str:
    """What a terminal shows of a line that was drawn several times over, as progress bars do."""
    return line.rstrip("\r").rpartition("\r")[2].rstrip()


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    return f"{minutes}:{seconds:02d}"


# -------------------------------------------------------------------------------------------------------------- records


def write_atomic(path: Path, text: str) -> None:
    """Write ``text`` whole or not at all."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_text(text, encoding="utf-8")
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def save_outcomes(outcomes: Iterable[Outcome], out: Path) -> None:
    """Merge ``outcomes`` into ``out/outcomes.json``: one notebook run alone keeps what is known of the others."""
    known = {outcome.name: outcome for outcome in (*read_outcomes(out), *outcomes)}
    records = [asdict(known[name]) | {"path": known[name].path and f"notebooks/{name}.ipynb"} for name in sorted(known)]
    write_atomic(out / "outcomes.json", json.dumps(records, indent=1) + "\n")


def read_outcomes(out: Path) -> list[Outcome]:
    """The outcomes kept under ``out``, in order; empty when nothing ran there."""
    file = out / "outcomes.json"
    records = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else []
    return [Outcome(**record | {"path": record["path"] and out / record["path"]}) for record in records]
