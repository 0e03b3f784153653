"""Run the notebooks: parameters checked before a kernel starts, progress in sight, an outcome for each.

papermill runs each of them (:mod:`.execution`). It only warns about an unknown parameter and takes any type; here these are
refused first.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, TextIO

from rtxlib import paths
from rtxlib.errors import InputError, nearest

from .execution import Kernel, RunningInterpreter, execute
from .outcomes import Outcome, read_outcomes, save_outcomes
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
        fits = [stem] if stem in here else [known for known in here if known.startswith(stem)]
        if not here:
            raise InputError(f"There are no notebooks in {folder}; install rtxlib again.")
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
        "RTX_HOME": str(paths.root()),  # a kernel's working directory is the folder of its notebook
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
                outcome = execute(name, sources[name], plans[name], out, timeout, watch, stopping)
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
                    Kernel.kill_all()
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
