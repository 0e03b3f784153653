"""One notebook through papermill, in the interpreter that runs this process, with its true outcome.

papermill alone counts every cell as complete after a time-out or a dead kernel, counts ``sys.exit(0)`` as success, and
uses the kernel that the user's machine calls ``python3``. This module corrects the three.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, ClassVar
from weakref import WeakSet, finalize

from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from traitlets import default

from rtxlib.atomic import mark, replacing, sweep
from rtxstudy.report.outcomes import Outcome
from rtxstudy.report.progress import Watch


class RunningInterpreter(KernelSpecManager):
    """The kernel ``python3`` is the interpreter that runs this process, even if the machine has another of that name.

    ``make lab`` gives it to JupyterLab, as ``--ServerApp.kernel_spec_manager_class``.
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
    """A kernel of the running interpreter. The class knows all its kernels, so that an interrupt can end them.

    The connection file of each lies in a temporary folder whose name holds the mark of this process. By default it would have
    a name that nobody could tell from other temporary files after a kill.
    """

    known: ClassVar[WeakSet[Kernel]] = WeakSet()
    errors: ClassVar[IO[bytes]]  # takes what its process writes beside the cells; each notebook has a subclass with its own

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        sweep(Path(tempfile.gettempdir()))
        folder = tempfile.mkdtemp(prefix=f"{mark()}-kernel-")
        finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.connection_file = os.path.join(folder, "kernel.json")
        self.known.add(self)

    async def _async_pre_start_kernel(self, **settings: Any) -> tuple[list[str], dict[str, Any]]:
        return await super()._async_pre_start_kernel(**settings, stderr=self.errors)

    @classmethod
    def kill_all(cls) -> None:
        """End the process of every kernel, from any thread. Its notebook then fails as with any dead kernel."""
        for kernel in list(cls.known):
            if kernel.has_kernel and kernel.provisioner.pid:
                with suppress(ProcessLookupError):
                    os.kill(kernel.provisioner.pid, getattr(signal, "SIGKILL", signal.SIGTERM))  # SIGKILL: not on Windows

    @default("kernel_spec_manager")
    def _kernel_spec_manager_default(self) -> KernelSpecManager:
        return RunningInterpreter(parent=self)


def execute(
    name: str,
    source: Path,
    parameters: dict[str, Any],
    out: Path,
    timeout: int | None,
    watch: Watch,
    stopping: threading.Event,
) -> Outcome:
    """Run one notebook and keep it in ``out/notebooks``, even if it fails.

    If ``stopping`` is set, a notebook that failed counts as interrupted, because its kernel was killed. It does not
    replace a complete notebook of an earlier run.
    """
    partial = (out / "notebooks" / f".{name}.{mark()}.part.ipynb").resolve()  # two reports may share a folder
    started = time.monotonic()
    with tempfile.TemporaryFile() as errors:
        status, error = "done", _run(source, partial, parameters, timeout, watch, errors)
        if error and watch.cell == 0 and not stopping.is_set():  # before its first cell, as when another process takes its port
            error = _run(source, partial, parameters, timeout, watch, errors)
        errors.seek(0)
        if error and not stopping.is_set():
            watch.messages.write(errors.read().decode(errors="replace"))
    if error:
        status, error = ("interrupted", f"cell {watch.cell}") if stopping.is_set() else ("failed", error)
    seconds = round(time.monotonic() - started, 3)
    final = partial.with_name(f"{name}.ipynb")
    if status == "interrupted" and _completed(final):
        partial.unlink(missing_ok=True)
        return Outcome(name, status, seconds, f"{error}; what is kept is of an earlier run", final)
    try:
        _keep(partial, final, {"completed": status == "done", "status": status, "seconds": seconds, "error": error})
    except (OSError, ValueError) as problem:  # ValueError: papermill could not write it whole
        final = None
        why = problem.strerror if isinstance(problem, OSError) else "it is cut short"
        status, error = "failed", f"{error or 'finished'}; the executed notebook could not be kept ({why})"
    finally:
        partial.unlink(missing_ok=True)
    return Outcome(name, status, seconds, error, final)


def _run(
    source: Path, partial: Path, parameters: dict[str, Any], timeout: int | None, watch: Watch, errors: IO[bytes]
) -> str | None:
    """Execute ``source`` into ``partial``; returns what went wrong, or None.

    errors: takes what the kernel's process writes to its stderr beside the cells. That is of use where the kernel died, and
    noise where it did not: sometimes ipykernel ends with a traceback of its own.
    """
    import papermill  # here, so that a mistyped parameter is refused at once
    from nbclient.exceptions import CellTimeoutError, DeadKernelError

    logging.getLogger("papermill").setLevel(logging.CRITICAL)  # the outcome says what papermill would log
    try:
        notebook = papermill.execute_notebook(
            *(str(path).replace("{", "{{").replace("}", "}}") for path in (source.resolve(), partial)),  # papermill formats them
            parameters,
            kernel_name="python3",
            language="python",
            kernel_manager_class=type("Kernel", (Kernel,), {"errors": errors}),
            # The kernel starts in the notebook's folder, as in JupyterLab. papermill's own ``cwd`` would change the folder of
            # this whole process, which the notebooks beside this one share.
            resources={"metadata": {"path": str(source.resolve().parent)}},
            progress_bar=False,
            execution_timeout=timeout,
            start_timeout=180,  # a busy machine may start a kernel slowly
            iopub_timeout=60,
            extra_arguments=["--IPKernelApp.log_level=CRITICAL"],  # the kernel logs straight to the terminal
            stdout_file=watch.printed,
            stderr_file=watch.messages,
            on_notebook_start=watch.open,
            on_cell_execute=watch.enter,
            on_cell_executed=watch.leave,
        )
    except papermill.PapermillExecutionError as problem:
        return f"cell {problem.exec_count}: {problem.ename}: {_first_line(problem.evalue.strip())}".rstrip(": ")
    except CellTimeoutError:
        return f"cell {watch.cell}: not finished within the time limit of {timeout} s"
    except DeadKernelError:
        return f"cell {watch.cell}: the kernel died (out of memory, or its process was ended)"
    except Exception as problem:  # a kernel that does not start, a full disk: an outcome like the others
        return f"cell {watch.cell}: {type(problem).__name__}: {_first_line(str(problem))}".rstrip(": ")
    for cell in notebook.cells:
        if any(output.get("ename") == "SystemExit" for output in cell.get("outputs", ())):
            return f"cell {cell.execution_count}: left through sys.exit, so the cells after it did not run"
    return None


def _first_line(text: str) -> str:
    return (text.splitlines() or [""])[0]


def _completed(path: Path) -> bool:
    """Whether an earlier run completed this notebook."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))["metadata"]["rtx"]["completed"] is True
    except (OSError, ValueError, KeyError):
        return False


def _keep(partial: Path, final: Path, record: dict[str, Any]) -> None:
    """Write the executed notebook whole, with its record, and without papermill's marks and paths of this machine."""
    import nbformat
    from papermill.execute import remove_error_markers

    notebook = remove_error_markers(nbformat.read(partial, as_version=4))
    for key in ("input_path", "output_path"):
        notebook.metadata.papermill.pop(key, None)
    notebook.metadata.rtx = record
    with replacing(final) as part:
        part.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
