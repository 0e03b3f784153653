"""One notebook through papermill, in the interpreter that runs this process, with an honest outcome.

Around papermill stands what it leaves open: it calls every cell complete after a time-out or a dead kernel, ends well after
``sys.exit(0)``, and uses whichever kernel the user's machine calls ``python3``.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar
from weakref import WeakSet

from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from traitlets import default

from .outcomes import Outcome, write_atomic
from .progress import Watch


class RunningInterpreter(KernelSpecManager):
    """The kernel ``python3`` is the interpreter that runs this process, whatever else the machine has under that name.

    JupyterLab takes it too, as ``--ServerApp.kernel_spec_manager_class=rtxstudy.report.notebooks.RunningInterpreter``.
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


class Kernel(AsyncKernelManager):
    """A kernel of the running interpreter; all of them are known, so that whoever waits for notebooks can end them."""

    known: ClassVar[WeakSet[Kernel]] = WeakSet()

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


def _completed(path: Path) -> bool:
    """Whether an earlier run left this notebook whole."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))["metadata"]["rtx"]["completed"] is True
    except (OSError, ValueError, KeyError):
        return False


def execute(
    name: str,
    source: Path,
    parameters: dict[str, Any],
    out: Path,
    timeout: int | None,
    watch: Watch,
    stopping: threading.Event,
) -> Outcome:
    """Run one notebook into ``out/notebooks``, whatever becomes of it. A kernel that dies once ``stopping`` is set was
    interrupted, not at fault; then a notebook that an earlier run left whole stays."""
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
            kernel_manager_class=Kernel,
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
    if status == "interrupted" and _completed(final):
        partial.unlink(missing_ok=True)
        return Outcome(name, status, seconds, f"{error}; what is kept is of an earlier run", final)
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
