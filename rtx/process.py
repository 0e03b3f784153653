"""How a process of a command treats its threads, its freed memory, its workers, signals, limits and closed streams.

LOG.md has the measurements behind the settings of threads and memory.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from rtxlib.errors import InputError

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

SETTINGS = {
    # Idle OpenMP threads sleep after a short wait instead of spinning. On a busy machine, spinning threads wait for partners
    # that are not scheduled. Threads that sleep at once are slow to wake for the next product, so they spin this often first.
    "OMP_WAIT_POLICY": "PASSIVE",
    "GOMP_SPINCOUNT": "3000",
    # oneDNN compiles a matrix product for each shape and keeps 1,024 of them by default. Batches without padding have a shape
    # for every length of text. More products are faster for them; but each is held with its buffers, and a training that mixes
    # lengths has new shapes at every step (LOG.md).
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "1536",
    "ORT_DISABLE_TELEMETRY": "1",  # onnxruntime would report its use to its makers, and leave a file in TMPDIR
}
QUIET_SPINS = "10000"  # GOMP_SPINCOUNT where nothing else runs: a text alone then takes 4 ms instead of 7 (LOG.md)
LEAST_FILES = 64  # that a process must be allowed to have open
LEAST_MEMORY = 2 << 30  # bytes of address space for a small training; with less, torch and OpenBLAS end the process
NOTEBOOK_MEMORY = 7 << 29  # bytes of address space for the kernel of a notebook, which also draws; measured on `rtx compare`
THREAD_MEMORY = 1 << 27  # bytes of address space that each thread may take: glibc reserves a heap for it
AGAIN = 0.5  # seconds after which an interrupt comes again where it was lost
_KEPT = 1 << 30  # bytes of freed memory that stay with the process
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h


def environment() -> dict[str, str]:
    """The environment variables of a tuned process: the user's values, and ``SETTINGS`` where the user has none."""
    own = SETTINGS | ({"GOMP_SPINCOUNT": QUIET_SPINS} if quiet() else {})
    chosen = own | {name: os.environ[name] for name in SETTINGS if name in os.environ}
    if chosen["OMP_WAIT_POLICY"] != SETTINGS["OMP_WAIT_POLICY"] and "GOMP_SPINCOUNT" not in os.environ:
        del chosen["GOMP_SPINCOUNT"]  # it would override the user's policy
    return chosen


def quiet() -> bool:
    """Whether this process is the only one that runs at this moment. False where the system does not say."""
    try:
        with open("/proc/loadavg") as file:
            running, _, _ = file.read().split()[3].partition("/")
    except OSError:
        return False
    return int(running) <= 1


def tune() -> None:
    """Set up threads and memory. Call it before torch is loaded: OpenMP reads its variables only once."""
    os.environ.update(environment())
    if sys.platform == "linux" and not any(name.startswith("MALLOC_") for name in os.environ):
        _keep_freed_memory()


@contextmanager
def imports() -> Iterator[None]:
    """Inside, Python does not look for unreachable objects. Imports leave few, and it would look at all of theirs many times.

    `rtx predict RUN TEXT` takes 0.25 of 2.45 s less (LOG.md).
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def start_worker() -> None:
    """Begin a worker process: tune it, and end it when its parent ends, however that is killed.

    The parent holds one end of a pipe, which the system closes with it. So a worker ends even if its parent was killed before
    this call.
    """
    from multiprocessing import parent_process  # here, because most commands start no worker

    tune()
    parent = parent_process()

    def end() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=end, daemon=True).start()


def workers(count: int, module: str) -> ProcessPoolExecutor:
    """A pool of ``count`` worker processes that have ``module`` imported, with this process's environment.

    On Linux they are forked from a server process that has only imported it and stays for later pools, because importing torch
    and transformers takes each process seconds. Elsewhere every worker imports for itself. Each ends with this process.
    """
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    context = get_context("forkserver" if sys.platform == "linux" else "spawn")
    if sys.platform == "linux":
        from multiprocessing.forkserver import ensure_running

        context.set_forkserver_preload([module])
        untuned = environment().keys() - os.environ.keys()
        os.environ.update(environment())  # OpenMP reads its variables when the server loads torch
        try:
            ensure_running()
        finally:
            for name in untuned:
                del os.environ[name]
    return ProcessPoolExecutor(count, mp_context=context, initializer=_start_pooled, initargs=(dict(os.environ),))


def _start_pooled(environ: dict[str, str]) -> None:
    """Begin a worker of :func:`workers`. The server's environment is that of an earlier time, or of another call.

    Ctrl-C reaches every process of the terminal or notebook. The parent alone answers it, and ends its workers by SIGTERM.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.clear()
    os.environ.update(environ)
    start_worker()


def end_workers(pool: ProcessPoolExecutor) -> None:
    """End the processes of a pool at once, whatever they do."""
    for worker in list(pool._processes.values()):  # Python 3.14 has a public way to stop them
        worker.terminate()


def _keep_freed_memory() -> None:
    """Let the process reuse freed tensors. By default glibc returns large ones to the system, page by page."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:  # musl
        return
    mallopt(_M_TRIM_THRESHOLD, _KEPT)
    if not mallopt(_M_MMAP_THRESHOLD, _KEPT):
        mallopt(_M_MMAP_THRESHOLD, 1 << 25)  # the largest value that older versions accept


class Terminated(KeyboardInterrupt):
    """This process received SIGTERM. Work stops as after Ctrl-C, which is KeyboardInterrupt; only the exit status differs."""


@contextmanager
def signals_as_interrupts() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt in the block, and SIGTERM Terminated.

    Only the main thread can set this, and only where nobody else has set it. An interrupt comes again until the block ends
    where it may be lost: in the middle of an import, because some libraries take any error there for a missing package and go
    on, and in a finaliser or a weak reference's callback, whose errors Python ignores.
    """
    here = threading.current_thread() is threading.main_thread()
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    ours = {number: old for number, old in usual.items() if here and signal.getsignal(number) == old}
    for number in ours:
        signal.signal(number, _interrupt)
    ignored = sys.unraisablehook
    if ours:
        sys.unraisablehook = functools.partial(_ignored, ignored)
    try:
        yield
    finally:
        sys.unraisablehook = ignored
        if ours and hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, old in ours.items():
            signal.signal(number, old)


def _interrupt(number: int, frame: FrameType | None) -> None:
    within = frame
    while within is not None and not within.f_code.co_filename.startswith("<frozen importlib"):
        within = within.f_back
    if within is not None:
        _later(number)
    raise Terminated if number == signal.SIGTERM else KeyboardInterrupt


def _later(number: int) -> None:
    """Interrupt again after a while."""
    if hasattr(signal, "setitimer"):  # not on Windows
        signal.signal(signal.SIGALRM, lambda _, frame: _interrupt(number, frame))
        signal.setitimer(signal.ITIMER_REAL, AGAIN)


def _ignored(usual: Callable[[sys.UnraisableHookArgs], object], lost: sys.UnraisableHookArgs) -> None:
    """Python ignores an error, because it has nobody to tell: an interrupt comes again, and all others are shown as usual."""
    if isinstance(lost.exc_value, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
        _later(signal.SIGTERM if isinstance(lost.exc_value, Terminated) else signal.SIGINT)
    else:
        usual(lost)


def exit_status(stop: BaseException) -> int:
    """The exit status of a process that was interrupted: 143 after SIGTERM, 130 after Ctrl-C, as a shell counts them."""
    return 128 + (signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT)


def cores() -> int:
    """How many processor cores this process may use: those of its affinity mask, which schedulers such as Slurm set."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def require_limits(least_memory: int = LEAST_MEMORY) -> None:
    """Raise InputError when the shell's limits (``ulimit``) leave too few files or too little memory to load torch.

    Libraries that meet such a limit end the process themselves, or report something else. least_memory: bytes of address space,
    without those of threads.
    """
    if sys.platform == "win32":
        return
    import resource

    memory = least_memory + THREAD_MEMORY * cores()
    for limit, least, unit, what, command in (
        (resource.RLIMIT_NOFILE, LEAST_FILES, 1, "open files", "ulimit -n 1024"),
        (resource.RLIMIT_AS, memory, 1 << 20, "MB of memory", "ulimit -v unlimited"),
    ):
        soft, _ = resource.getrlimit(limit)
        if soft != resource.RLIM_INFINITY and soft < least:
            raise InputError(
                f"This shell allows a process {soft // unit:,} {what}, and rtx needs {least // unit:,}; raise the limit, "
                f"as with `{command}`."
            )


def replace_closed_streams() -> None:
    """Give this process an empty stdin, and a stderr that goes nowhere, if they are closed.

    Otherwise the next file that is opened would take their place. Raises InputError if stdout is closed: a result that nobody
    can see is a mistake.
    """
    closed = [name for name in ("stdin", "stdout", "stderr") if getattr(sys, name) is None]
    for name in closed:
        setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w", encoding="utf-8"))  # noqa: SIM115 - it stays
    if "stdout" in closed:
        raise InputError("Standard output is closed, so no result can be shown; send it to a file, or to /dev/null.")
