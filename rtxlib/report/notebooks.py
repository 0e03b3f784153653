"""Run the notebooks: parameters checked before a kernel starts, progress in sight, an honest outcome for each.

papermill does the running. Around it stands what papermill leaves open: it only warns about an unknown parameter, takes
any type, calls every cell complete after a time-out or a dead kernel, ends well after ``sys.exit(0)``, and uses
whichever kernel the user's machine calls ``python3``.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, TextIO
from weakref import WeakSet

from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from traitlets import default

from .. import paths
from ..errors import InputError, nearest
from .parameters import Parameter, check, pairs, read_parameters
from .progress import Progress, Watch, clock

__all__ = [
    "NOTEBOOKS",
    "Outcome",
    "Parameter",
    "RunningInterpreter",
    "check",
    "find",
    "pairs",
    "read_outcomes",
    "read_parameters",
    "run",
    "save_outcomes",
    "write_atomic",
]

# What must have succeeded before a notebook may start, where both are asked for. All of the study rests on the audit
# in 01, which stops the run at a leak; 08 trains nothing and judges nothing; 99 gathers the tables of the others.
NOTEBOOKS: dict[str, tuple[str, ...]] = {
    "01_data_preparation": (),
    "02_baseline": ("01_data_preparation",),
    "03_recurrent": ("01_data_preparation",),
    "04_sensitivity": ("01_data_preparation",),
    "05_width_vs_depth": ("01_data_preparation",),
    "06_domain_classification": ("01_data_preparation",),
    "07_pretrained_encoders": ("01_data_preparation",),
    "08_transformer_tour": (),
    "99_report": (
        "01_data_preparation",
        "02_baseline",
        "03_recurrent",
        "04_sensitivity",
        "05_width_vs_depth",
        "06_domain_classification",
        "07_pretrained_encoders",
    ),
}

MOST_AT_ONCE = 4  # notebooks side by side: each kernel takes about a gigabyte of memory

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
    known: ClassVar[WeakSet[_Kernel]] = WeakSet()

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.known.add(self)

    @classmethod
    def kill_all(cls) -> None:
        """From whichever thread: every kernel's process ends, and its notebook as with any dead kernel."""
        for kernel in list(cls.known):
            if kernel.has_kernel and kernel.provisioner.pid:
                with suppress(ProcessLookupError):
                    os.kill(kernel.provisioner.pid, signal.SIGKILL)

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
    executor: str | None = None,
    timeout: int | None = None,
    folder: Path | None = None,
    stream: TextIO | None = None,
) -> list[Outcome]:
    """Execute notebooks through papermill, in the interpreter that runs this process.

    Each becomes ``out/notebooks/<stem>.ipynb``, moved there whole once its completion marker (``metadata.rtx``) is in
    it; ``out/outcomes.json`` says what became of each. A notebook that fails stops those that need it
    (``NOTEBOOKS``), not the others. Every parameter must be known to at least one of the notebooks and is given to
    those that know it. ``timeout`` is in seconds a cell. They run one after another, since a training takes all cores;
    without ``training`` side by side, a core each, and the kernels see ``RTX_NO_TRAINING=1``. An ``executor`` they see
    as ``RTX_EXECUTOR``. Progress goes to ``stream`` (stderr): a line a cell, and what cells print.

    Raises ``InputError`` before any kernel starts when a name or a parameter is wrong. Ctrl-C ends the kernels,
    keeps what was finished, says how to go on and raises ``SystemExit(130)``; SIGTERM does the same.
    """
    sources = find(names, folder)
    plans = plan(sources, profile, parameters)
    progress = Progress(stream or sys.stderr)
    lanes = 1 if training else min(os.cpu_count() or 1, MOST_AT_ONCE, len(sources))
    inherited = {  # by the kernels
        "TQDM_NCOLS": "60",
        **({} if training else {"RTX_NO_TRAINING": "1"}),
        **({"RTX_EXECUTOR": executor} if executor else {}),
        **({"OMP_NUM_THREADS": "1"} if lanes > 1 else {}),
    }
    before = {name: os.environ.get(name) for name in inherited}
    in_main = threading.current_thread() is threading.main_thread()
    terminate = signal.signal(signal.SIGTERM, signal.default_int_handler) if in_main else None  # as Ctrl-C: no orphans
    outcomes: list[Outcome] = []
    waiting, stopping = list(sources), threading.Event()
    running: dict[Future[Outcome], str] = {}

    def one(name: str) -> Outcome:
        with Watch(progress, name.partition("_")[0] if lanes > 1 else "") as watch:
            progress.line(f"{name}  ({list(sources).index(name) + 1} of {len(sources)})")
            stopped = {outcome.name: outcome.status for outcome in outcomes if outcome.status != "done"}
            needed = [need for need in NOTEBOOKS.get(name, ()) if need in stopped]
            if needed:
                outcome = Outcome(name, "skipped", 0.0, f"needs {needed[0]}, which {_WORDS[stopped[needed[0]]]}")
            else:
                outcome = _execute(name, sources[name], plans[name], out, timeout, watch, stopping)
            why = f": {outcome.error}" if outcome.error else ""
            watch.line(f"{clock(outcome.seconds)}  {_WORDS[outcome.status]}{why}")
        return outcome

    def keep(ended: Iterable[Future[Outcome]]) -> None:
        for future in list(ended):
            del running[future]
            outcomes.append(future.result())
        save_outcomes(outcomes, out)

    try:
        (out / "notebooks").mkdir(parents=True, exist_ok=True)
        os.environ.update(inherited)
        with progress, ThreadPoolExecutor(lanes) as pool:
            try:
                while waiting or running:
                    unfinished = {*waiting, *running.values()}
                    ready = [name for name in waiting if not unfinished & {*NOTEBOOKS.get(name, ())}]
                    for name in ready[: lanes - len(running)]:
                        waiting.remove(name)
                        running[pool.submit(one, name)] = name
                    keep(wait(running, return_when=FIRST_COMPLETED).done)
            except BaseException:
                stopping.set()
                while wait(running, timeout=0.2).not_done:
                    _Kernel.kill_all()
                keep(running)
                raise
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
    return sorted(outcomes, key=lambda outcome: outcome.name)


_WORDS = {"done": "done", "failed": "failed", "interrupted": "was interrupted", "skipped": "was skipped"}


def plan(sources: Mapping[str, Path], profile: str, parameters: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
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
    name: str,
    source: Path,
    parameters: dict[str, Any],
    out: Path,
    timeout: int | None,
    watch: Watch,
    stopping: threading.Event,
) -> Outcome:
    import nbformat  # here, so that a mistyped parameter is refused at once
    import papermill
    from nbclient.exceptions import CellTimeoutError, DeadKernelError
    from papermill.execute import remove_error_markers

    logging.getLogger("papermill").setLevel(logging.CRITICAL)  # what it would say stands in the outcome
    partial = (out / "notebooks" / f".{name}.{os.getpid()}.part.ipynb").resolve()  # two reports at once share a folder
    started = time.monotonic()
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
            stdout_file=watch.printed,
            stderr_file=watch.messages,
            on_notebook_start=watch.open,
            on_cell_execute=watch.enter,
            on_cell_executed=watch.leave,
        )
        left = [cell for cell in notebook.cells if any(o.get("ename") == "SystemExit" for o in cell.get("outputs", ()))]
        if left:  # papermill takes sys.exit(0) for a good end
            number = left[0].execution_count
            status, error = "failed", f"cell {number}: left through sys.exit, so the cells after it did not run"
    except papermill.PapermillExecutionError as problem:
        first = (problem.evalue.strip().splitlines() or [""])[0]
        status, error = "failed", f"cell {problem.exec_count}: {problem.ename}: {first}".rstrip(": ")
    except CellTimeoutError:
        status, error = "failed", f"cell {watch.cell}: not finished within the time limit of {timeout} s"
    except DeadKernelError:
        status, error = "failed", f"cell {watch.cell}: the kernel died (out of memory, or its process was ended)"
    except Exception as problem:  # a kernel that does not start, a full disk: an outcome like the others, told as it is
        first = (str(problem).splitlines() or [""])[0]
        status, error = "failed", f"cell {watch.cell}: {type(problem).__name__}: {first}".rstrip(": ")
    if stopping.is_set() and status == "failed":
        status, error = "interrupted", f"cell {watch.cell}"
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
