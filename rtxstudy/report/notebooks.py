"""Run the notebooks: parameters are checked before a kernel starts, progress is shown, every notebook has an outcome.

papermill runs each notebook (:mod:`rtxstudy.report.execution`). papermill itself only warns about an unknown parameter
and takes a value of any type; here both are refused first.

To add a notebook:

1. Put it into the folder ``notebooks`` and add it to :data:`NOTEBOOKS`.
2. If it trains, add its studies to :data:`rtxstudy.studies.STUDIES`.
3. Give it a place among the chapters of the report (:data:`rtxstudy.report.html.CHAPTERS`).
4. Name it in the map of README.md.

Notebook 10 is not among them, because it needs a file of the user: ``rtx compare`` runs it.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from rtx.process import cores, exit_status, signals_as_interrupts
from rtxlib import paths
from rtxlib.errors import InputError, nearest, shortened
from rtxstudy.report.execution import Kernel, RunningInterpreter, execute
from rtxstudy.report.outcomes import Outcome, read_outcomes, save_outcomes
from rtxstudy.report.parameters import Parameter, check, pairs, read_parameters
from rtxstudy.report.progress import Progress, Watch, clock

__all__ = [
    "NOTEBOOKS",
    "Outcome",
    "Parameter",
    "RunningInterpreter",
    "check",
    "find",
    "pairs",
    "plan",
    "read_outcomes",
    "read_parameters",
    "run",
    "save_outcomes",
]

AUDIT = "01_data_preparation"  # stops the run at a leak, so every notebook that trains needs it
NOTEBOOKS: dict[str, tuple[str, ...]] = {  # each notebook and those it needs, if they are asked for too
    AUDIT: (),
    "02_baseline": (AUDIT,),
    "03_recurrent": (AUDIT,),
    "04_sensitivity": (AUDIT,),
    "05_width_vs_depth": (AUDIT,),
    "06_domain_classification": (AUDIT,),
    "07_pretrained_encoders": (AUDIT,),
    "08_transformer_tour": (),
    "09_where_depth_pays": (AUDIT,),
    "11_what_passes_do": (AUDIT,),
    "12_what_a_loop_costs": (AUDIT,),
}
# The report gathers the tables of the audit and of all notebooks that need it.
NOTEBOOKS["99_report"] = (AUDIT, *(name for name, needs in NOTEBOOKS.items() if AUDIT in needs))

MOST_AT_ONCE = 4  # notebooks side by side: each kernel takes about a gigabyte of memory
_WORDS = {"done": "done", "failed": "failed", "interrupted": "was interrupted", "skipped": "was skipped"}


def notebooks_dir() -> Path:
    """The notebooks of the root or of the checkout; without a checkout, those inside the installed package."""
    for folder in (paths.root(), paths.checkout()):
        if folder and (folder / "notebooks" / "01_data_preparation.ipynb").is_file():
            return folder / "notebooks"
    return Path(__file__).resolve().parents[1] / "notebooks"


def find(names: Iterable[str] | None = None, folder: Path | None = None) -> dict[str, Path]:
    """Notebooks by stem, in order: those of ``NOTEBOOKS``, or those named ("03", "03_recurrent", "03_recurrent.ipynb").

    Raises ``InputError`` for a name that fits none or several, or when the folder does not hold them.
    """
    folder = folder or notebooks_dir()
    here = sorted(path.stem for path in folder.glob("*.ipynb"))
    stems = []
    for name in NOTEBOOKS if names is None else names:
        stem = Path(name).stem
        fits = [stem] if stem in here else [candidate for candidate in here if candidate.startswith(stem)]
        if not here:
            raise InputError(f"There are no notebooks in {folder}; install rtxlib again.")
        if len(fits) != 1:
            close = nearest(stem, here) or nearest(stem, [candidate.partition("_")[2] for candidate in here])
            raise InputError(f"'{shortened(name)}' names {len(fits) or 'no'} notebooks.{close} There are: {', '.join(here)}.")
        stems += fits
    return {stem: folder / f"{stem}.ipynb" for stem in sorted(set(stems))}


def plan(sources: Mapping[str, Path], profile: str, parameters: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The checked parameters of each notebook. Raises ``InputError`` if one is wrong or no notebook knows it."""
    parameter_names = {name: {parameter.name for parameter in read_parameters(path)} for name, path in sources.items()}
    for name in parameters:
        if name == "profile":
            raise InputError("The profile is given by --profile, not as a parameter.")
        if not any(name in names for names in parameter_names.values()):
            everything = set().union(*parameter_names.values()) - {"profile"}
            raise InputError(
                f"No parameter '{shortened(name)}' in {', '.join(sources)}.{nearest(name, everything)} "
                f"There are: {', '.join(sorted(everything)) or 'none'}."
            )
    values = {"profile": profile, **parameters}
    return {
        name: check(path, {key: value for key, value in values.items() if key in parameter_names[name]}, text=True)
        for name, path in sources.items()
    }


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

    Each notebook becomes ``out/notebooks/<stem>.ipynb``, which is moved there when it is whole and has its completion
    marker (``metadata.rtx``). ``out/outcomes.json`` holds the outcome of each. A notebook that fails stops only those
    that need it (``NOTEBOOKS``). Each parameter must be known to at least one notebook and is given to all that know
    it. ``timeout`` is in seconds per cell. Notebooks run one after another, because a training uses all cores; without
    ``training`` they run side by side with one core each, and the kernels see ``RTX_NO_TRAINING=1``. The kernels see
    ``executor`` as ``RTX_EXECUTOR``. Progress goes to ``stream`` (stderr): one line per cell, and what cells print.

    Raises ``InputError`` before any kernel starts if a name or a parameter is wrong. Ctrl-C ends the kernels, keeps
    what is finished, says how to go on and raises ``SystemExit(130)``. SIGTERM does the same with 143.
    """
    sources = find(names, folder)
    plans = plan(sources, profile, parameters)
    progress = Progress(stream or sys.stderr)
    lanes = 1 if training else min(cores(), MOST_AT_ONCE, len(sources))
    variables = {
        "TQDM_NCOLS": "60",
        "RTX_HOME": str(paths.root()),  # a kernel's working directory is the folder of its notebook
        **({} if training else {"RTX_NO_TRAINING": "1"}),
        **({"RTX_EXECUTOR": executor} if executor else {}),
        **({"OMP_NUM_THREADS": "1"} if lanes > 1 else {}),
    }
    report = _Report(sources, plans, out, lanes, timeout, progress)
    try:
        with _environment(variables), signals_as_interrupts():
            (out / "notebooks").mkdir(parents=True, exist_ok=True)
            report.run()
    except KeyboardInterrupt as stop:
        finished = [outcome.name for outcome in report.outcomes if outcome.status == "done"]
        progress.line(
            f"Interrupted. Kept: {', '.join(finished) or 'no notebook'} (in {out / 'notebooks'}), and every training that "
            "had finished. Give the same command again to go on: finished trainings are not repeated."
        )
        raise SystemExit(exit_status(stop)) from None
    except OSError as error:
        raise InputError(f"{error.filename or out} cannot be written: {error.strerror}.") from None
    return sorted(report.outcomes, key=lambda outcome: outcome.name)


class _Report:
    """The notebooks of one report: which wait, which run, and the outcomes of those that ended."""

    def __init__(
        self,
        sources: Mapping[str, Path],
        plans: Mapping[str, dict[str, Any]],
        out: Path,
        lanes: int,
        timeout: int | None,
        progress: Progress,
    ) -> None:
        self.sources, self.plans, self.out, self.timeout, self.progress = sources, plans, out, timeout, progress
        self.lanes = lanes  # how many notebooks may run at once
        self.waiting = list(sources)
        self.running: dict[Future[Outcome], str] = {}
        self.outcomes: list[Outcome] = []
        self.stopping = threading.Event()

    def run(self) -> None:
        """Run all notebooks. An interrupt ends their kernels and keeps the outcomes before it is raised again."""
        with self.progress, ThreadPoolExecutor(self.lanes) as pool:
            try:
                while self.waiting or self.running:
                    for name in self.ready():
                        self.waiting.remove(name)
                        self.running[pool.submit(self.one, name)] = name
                    self.keep(wait(self.running, return_when=FIRST_COMPLETED).done)
            except BaseException:
                self.stopping.set()
                while wait(self.running, timeout=0.2).not_done:
                    Kernel.kill_all()
                self.keep(self.running)
                raise

    def ready(self) -> list[str]:
        """The notebooks that may start now: those they need have ended, and a lane is free."""
        unfinished = {*self.waiting, *self.running.values()}
        ready = [name for name in self.waiting if not unfinished & {*NOTEBOOKS.get(name, ())}]
        return ready[: self.lanes - len(self.running)]

    def one(self, name: str) -> Outcome:
        """Run one notebook, or skip it if one that it needs is not done. This is called in a thread of the pool."""
        with Watch(self.progress, name.partition("_")[0] if self.lanes > 1 else "") as watch:
            self.progress.line(f"{name}  ({list(self.sources).index(name) + 1} of {len(self.sources)})")
            stopped = {outcome.name: outcome.status for outcome in self.outcomes if outcome.status != "done"}
            needed = next((need for need in NOTEBOOKS.get(name, ()) if need in stopped), None)
            if needed:
                outcome = Outcome(name, "skipped", 0.0, f"needs {needed}, which {_WORDS[stopped[needed]]}")
            else:
                source, values = self.sources[name], self.plans[name]
                outcome = execute(name, source, values, self.out, self.timeout, watch, self.stopping)
            why = f": {outcome.error}" if outcome.error else ""
            watch.line(f"{clock(outcome.seconds)}  {_WORDS[outcome.status]}{why}")
        return outcome

    def keep(self, ended: Iterable[Future[Outcome]]) -> None:
        """Save the outcomes of notebooks that ended."""
        for future in list(ended):
            del self.running[future]
            self.outcomes.append(future.result())
        save_outcomes(self.outcomes, self.out)


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Environment variables that the kernels inherit; the earlier values come back at the end."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
