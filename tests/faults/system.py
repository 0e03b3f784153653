"""What surrounds the command goes wrong: disks, permissions, limits, other drivers, the cluster, clocks, signals and streams.

Every case ends in one of two ways: the command succeeds with the bits of an undisturbed run, or it says one sentence with the
exit status of its reason (2, 130 after Ctrl-C, 143 after SIGTERM), and the same command succeeds once the cause is gone.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import Check, NotTried, generator, require
from .child import (
    Outcome,
    Place,
    calm,
    clean_store,
    encoder,
    fine_or_one_sentence,
    nothing_left,
    once,
    one_sentence,
    place,
    rtx,
    same,
    succeeded,
)
from .kill import TEXTS, TINY, checkpoints_often, first_run, graph, template

LONGER = (*TINY[:5], "--rows", "800", "--recipe", "demo", "--set", "hidden_dropout=0.2", "--json")  # trains for seconds


@once
def undisturbed(folder: Path) -> None:
    """The stores after ``TINY`` with the seeds 5 and 6 and after ``LONGER``."""
    shutil.copytree(template(), folder, dirs_exist_ok=True)
    for words in ((*TINY, "--seed", "5"), (*TINY, "--seed", "6"), (*LONGER, "--seed", "5")):
        succeeded(rtx(Place(folder), *words, limit=60))


def as_undisturbed(at: Place) -> None:
    """Every run of the store has the bits of an undisturbed one, and the store is in order."""
    theirs = undisturbed() / "home" / "data" / "runs"
    for run in (path for path in at.runs.iterdir() if path.is_dir()):
        require((theirs / run.name).is_dir(), f"left behind: {run.name}")
        same(run, theirs / run.name)
    clean_store(at)


def goes_on(at: Place, *words: str) -> None:
    """The same command succeeds once the cause is gone."""
    succeeded(rtx(at, *words, limit=60))
    as_undisturbed(at)


# ---------------------------------------- disks


@contextlib.contextmanager
def small_disk(at: Path, kilobytes: int) -> Iterator[Callable[[str], None]]:
    """A disk of this size; the function mounts it again with other options."""

    def mount(options: str) -> None:
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(at)], capture_output=True, text=True)
        if done.returncode:
            raise NotTried(f"a small disk needs root and the right to mount ({done.stderr.strip()[:80]})")

    mount(f"size={kilobytes}k")
    try:
        yield lambda options: mount(f"remount,{options}")
    finally:
        subprocess.run(["umount", "--lazy", str(at)], capture_output=True)


@functools.cache
def needed() -> int:
    """Kilobytes that ``TINY`` writes."""
    with place() as at:
        succeeded(rtx(at, *TINY, "--seed", "5", limit=60))
        return sum(path.stat().st_size for path in at.home.rglob("*") if path.is_file()) // 1024


def full_disk(seed: int, number: int) -> None:
    """A disk of 10 KB, of 20 KB, …: where the training does not fit, it says so, and goes on once there is room."""
    with place() as at, small_disk(at.home, 10 * (number + 1)) as mount:
        words = (*TINY, "--seed", "5")
        told = rtx(at, *words, first=checkpoints_often)
        if told.status == 0:
            return as_undisturbed(at)
        one_sentence(told)
        require("disk" in told.err or "space" in told.err, f"another reason is given: {told.err[-300:]}")
        mount("size=20m")
        return goes_on(at, *words)


def full_disk_out(seed: int, number: int) -> None:
    """The file that ``--out`` names does not fit: the sentence says so, and there is no half of it."""
    words = [
        ("predict", "{run}", "--file", "texts.csv", "--out", "out/labels.csv"),
        ("predict", "{run}", "--file", "texts.csv", "--out", "out/labels.parquet"),
        ("data", "generate", "--rows", "3000", "--out", "out"),
    ][number % 3]
    with place(template()) as at:
        (at.work / "out").mkdir()
        with small_disk(at.work / "out", 8 * (number + 1)):
            key = first_run(at)
            one_sentence(rtx(at, *(key if word == "{run}" else word for word in words)))
            left = [path.name for path in (at.work / "out").iterdir() if path.name.startswith(".")]
            require(not left, f"left behind: {left}")


def read_only(seed: int, number: int) -> None:
    """A store on a read-only disk, or another user's: what is there is used, what must be written is refused."""
    key = first_run(Place(template()))
    words = [
        ("predict", key, "fine"),
        (*TINY, "--seed", "0"),
        ("results",),
        ("export", key, "--out", "graph"),
        ("predict", key, "--file", "texts.csv", "--out", "labels.csv"),
        (*TINY, "--seed", "5"),
        ("report", "--profile", "smoke", "--notebooks", "02"),
    ]
    number, others = number % len(words), number >= len(words)
    works, words = number < 5, words[number]
    with place(template()) as at, small_disk(at.home, 20_000) as mount:
        shutil.copytree(template() / "home", at.home, dirs_exist_ok=True)
        within: tuple[str, ...] = ()
        if others:
            subprocess.run(["chown", "-R", "12345:12345", str(at.home)], check=True)
            within = ("setpriv", "--bounding-set=-all", "--inh-caps=-all", "--")
        else:
            mount("ro")
        told = rtx(at, *words, within=within)
        if works:
            succeeded(told)
        else:
            one_sentence(told)


@contextlib.contextmanager
def ordinary_user(at: Place, forbidden: Path) -> Iterator[tuple[str, ...]]:
    """What stands before a command that an ordinary user gives, who may write into the place but not into one of its folders."""
    user = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    caps = "dac_read_search"  # reads everywhere and writes nowhere: the interpreter may lie in a home that nobody else may enter
    read = (f"--inh-caps=-all,+{caps}", f"--ambient-caps=-all,+{caps}", f"--bounding-set=-all,+{caps}")
    if subprocess.run([*user, *read, "true"], capture_output=True).returncode:
        raise NotTried("another user's command needs root and setpriv")
    at.variables["MPLCONFIGDIR"] = str(at.folder / "user" / "matplotlib")
    at.folder.chmod(0o755)
    subprocess.run(["chown", "-R", "65534:65534", str(at.folder)], check=True)
    subprocess.run(["chown", "-R", "0:0", str(forbidden)], check=True)
    subprocess.run(["chmod", "-R", "go-w", str(forbidden)], check=True)
    yield (*user, *read, "--")


def no_permission(seed: int, number: int) -> None:
    """An ordinary user: what is there is used, and what may not be written is refused."""
    key = first_run(Place(template()))
    words, where = [
        (("predict", key, "fine"), "home"),
        (("results",), "home"),
        (("export", key, "--out", "graph"), "home"),
        ((*TINY, "--seed", "5"), "home"),
        (("report", "--profile", "smoke", "--notebooks", "02"), "home"),
        (("export", key, "--out", "graph"), "work"),
        (("predict", key, "--file", "texts.csv", "--out", "labels.csv"), "work"),
        (("data", "generate", "--rows", "40", "--out", "made"), "work"),
        (("predict", key, "--file", "shards", "--out", "answered"), "work"),
        (("doctor", "--store"), "home"),
    ][number]
    with place(template()) as at, ordinary_user(at, at.folder / where) as within:
        before = at.files() | {str(path) for path in at.work.rglob("*")}
        told = rtx(at, *words, within=within, limit=60)
        if number in (0, 1, 2, 9):
            succeeded(told)
            return
        one_sentence(told)
        after = at.files() | {str(path) for path in at.work.rglob("*")}
        require(after <= before, f"left behind: {sorted(after - before)[:4]}")


# ---------------------------------------- published tables


@once
def published(folder: Path) -> None:
    """A store whose tables of the smallest profile are published."""
    succeeded(rtx(Place(folder), *PUBLISH, cold=True, limit=300))


PUBLISH = ("notebook", "02", "--profile", "smoke")


def full_table(seed: int, number: int) -> None:
    """The disk of the published tables is full in the middle of one: each table is the old one or the new one, and whole."""
    with place(published()) as at:
        tables = at.home / "data" / "results" / "smoke"
        kept = at.folder / "kept"
        shutil.move(tables, kept)
        tables.mkdir()
        size = sum(-(-path.stat().st_size // 4096) * 4 for path in kept.iterdir())
        with small_disk(tables, size + [4, 8, 16, 24, 40, 64][number]) as mount:
            shutil.copytree(kept, tables, dirs_exist_ok=True)
            told = rtx(at, *PUBLISH, cold=True, limit=120)
            calm(told)
            require(told.status == 0 or os.strerror(28) in told.err or "disk" in told.err, f"another reason: {told.err[-300:]}")
            left = [path.name for path in tables.iterdir() if path.name.startswith(".") and path.suffix != ".lock"]
            require(not left, f"left behind: {left}")
            same(tables, kept)  # tables of equal runs are equal
            mount("size=20m")
            succeeded(rtx(at, *PUBLISH, cold=True, limit=120))
            same(tables, kept)


# ---------------------------------------- swapped folders


def _swap_at(module: str, name: str, folder: Path, other: Path) -> None:
    """Another folder takes the place of a model's when a function of a library reads it."""
    library = importlib.import_module(module)
    read = getattr(library, name)

    def swapped(*given: object, **named: object) -> object:
        if other.exists():
            folder.rename(folder.with_name("away"))
            other.rename(folder)
        return read(*given, **named)

    setattr(library, name, swapped)


def swap(seed: int, number: int) -> None:
    """A model's folder is swapped for another between the check of its files and their reading."""
    with place(template()) as at:
        keys = sorted(path.parent.name for path in at.runs.glob("*/complete.json"))
        kind = ("run", "graph", "encoder")[number % 3]
        whole = {"run": at.runs / keys[0], "graph": graph() / "graph", "encoder": encoder() / "encoder"}[kind]
        folder, other = at.work / "model" / whole.name, at.work / "other"
        shutil.copytree(whole, folder)
        shutil.copytree(at.runs / keys[1] if kind == "run" and number >= 3 else whole, other)
        words = ("similarity", "a film", "a dull film", "--model", folder) if kind == "encoder" else ("predict", folder, "a film")
        read = ("onnxruntime", "InferenceSession") if kind == "graph" else ("rtxlib.models.checkpoint_files", "load_file")
        told = rtx(at, *words, first=functools.partial(_swap_at, *read, folder, other))
        one_sentence(told)
        require("was changed while it was opened" in told.err, f"another reason is given: {told.err[-300:]}")
        again = rtx(at, *words)
        fine_or_one_sentence(again)  # a run under the key of another is refused
        require(again.status == 0 or number == 3, f"the new folder is refused: {again.err[-300:]}")


# ---------------------------------------- limits


def _limit(kind: int, most: int) -> None:
    resource.setrlimit(kind, (most, most))


def limited(kind: int, most: list[int], seed: int, number: int) -> None:
    """With few descriptors or little memory a training succeeds, or says one sentence, and the next one succeeds."""
    with place() as at:
        told = rtx(at, *TINY, "--seed", "5", cold=True, first=functools.partial(_limit, kind, most[number]), limit=40)
        fine_or_one_sentence(told)
        goes_on(at, *TINY, "--seed", "5")


DESCRIPTORS = [8, 10, 12, 14, 16, 20, 24, 32, 48, 64]
MEMORY = [megabytes << 20 for megabytes in (200, 250, 300, 400, 500, 700, 1000, 1500, 2000, 4000)]

# ---------------------------------------- drivers, locks, nodes


def together(at: Place, commands: list[tuple[str, ...]]) -> list[Outcome]:
    """Outcomes of commands that run at the same time in one store."""
    places = [Place(at.folder / f"driver{number}", {"RTX_HOME": str(at.home)}) for number in range(len(commands))]
    with ThreadPoolExecutor(len(commands)) as pool:
        return list(pool.map(lambda one: rtx(one[0], *one[1], limit=60), zip(places, commands, strict=True)))


def drivers(seed: int, number: int) -> None:
    """Two or three drivers of the same run, and of runs that overlap: each run is trained once, and all print its result."""
    wanted = [["5", "5"], ["5", "5", "5"], ["5", "6", "5"], ["5", "6", "6"]][number % 4]
    with place() as at:
        told = together(at, [(*TINY, "--seed", number) for number in wanted])
        for outcome in told:
            succeeded(outcome)
        trained = sum("train loss" in outcome.err for outcome in told)
        require(trained == len(set(wanted)), f"{trained} trainings of {len(set(wanted))} runs")
        printed = {number: outcome.last_json() for number, outcome in zip(wanted, told, strict=True)}
        for number, outcome in zip(wanted, told, strict=True):
            require(outcome.last_json() == printed[number], f"two results of seed {number}: {outcome.out} {printed[number]}")
        as_undisturbed(at)


def until(what: Callable[[], object], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not what():
        require(time.monotonic() < end, "waited in vain")
        time.sleep(0.02)


def lock_holder(seed: int, number: int) -> None:
    """The driver that trains is killed while another waits for it: the other goes on from the checkpoint."""
    chance = generator(seed, "lock holder", number)
    moment, saves = chance.random(), chance.randrange(1, 40)  # there are about 60 steps
    words = (*LONGER, "--seed", "5")
    with place() as at, ThreadPoolExecutor(2) as pool:
        other = Place(at.folder / "other", {"RTX_HOME": str(at.home)})
        held, said = at.runs / ".held", other.folder / "stderr"
        holder = pool.submit(rtx, at, *words, first=functools.partial(_hold, saves), limit=60)
        until(held.exists)
        waiter = pool.submit(rtx, other, *words, limit=60)
        until(lambda: said.exists() and "waiting" in said.read_text())
        time.sleep(moment)
        os.kill(int(held.read_text()), signal.SIGKILL)
        require(holder.result().status == 128 + signal.SIGKILL, "the holder ended before it was killed")
        require("going on from step" not in holder.result().err, "the holder went on from somewhere")
        told = succeeded(waiter.result())
        require("going on from step" in told.err, f"the waiter began anew: {told.err[-300:]}")
        as_undisturbed(at)


def _hold(saves: int) -> None:
    """Stop at a checkpoint, with the lock held; one is written after every step."""
    from rtxlib.training import checkpoint, trainer

    trainer.CHECKPOINT_SECONDS, save, saved = 0.0, checkpoint.save, []

    def save_and_stop(path: Path, *rest: object) -> None:
        save(path, *rest)
        saved.append(path)
        if len(saved) < saves:
            return
        (path.parents[1] / ".held").write_text(str(os.getpid()))
        time.sleep(1000)

    checkpoint.save = save_and_stop


RAY = """
import dataclasses, sys
from rtxlib.data.datasets import Generated
from rtx.executors import execute
from rtxlib.runs.spec import RunSpec
from rtxlib.training.recipe import RECIPES
data = Generated(rows=240, depth=1, vocab_size=400)
spec = RunSpec("recurrent-1x2x32", data, dataclasses.replace(RECIPES["smoke"], epochs=60))
execute.run([dataclasses.replace(spec, seed=seed) for seed in range(3)], executor=sys.argv[1])
"""


@once
def without_ray(folder: Path) -> None:
    """The same runs, trained by this machine alone."""
    subprocess.run([sys.executable, "-c", RAY, "local"], env=Place(folder).environment(), check=True, capture_output=True)


def _progress(at: Place, since: float) -> int:
    """The number of runs that have made progress since then."""
    return sum(path.stat().st_mtime > since for path in at.runs.glob("*.partial/progress.txt"))


def ray_nodes(seed: int, number: int) -> None:
    """Two nodes of a Ray cluster are killed while they train, one after the other; the bits are those of a run here."""
    try:
        from ray.cluster_utils import Cluster
    except ImportError:
        raise NotTried("Ray is not installed") from None
    with place() as at:
        alone = Place(without_ray())
        cluster = Cluster()
        try:
            cluster.add_node(num_cpus=0, include_dashboard=False)
            nodes = [cluster.add_node(num_cpus=1), cluster.add_node(num_cpus=1)]
            driver = subprocess.Popen(
                [sys.executable, "-c", RAY, "ray"],
                env=at.environment() | {"RAY_ADDRESS": cluster.address},
                stdout=subprocess.DEVNULL,
                stderr=(at.folder / "stderr").open("w"),
            )
            for node in nodes:
                since = time.time()  # something is trained when the next node is killed
                until(lambda since=since: _progress(at, since) or driver.poll() is not None, 120)
                require(driver.poll() is None, f"the driver ended early: {(at.folder / 'stderr').read_text()[-500:]}")
                cluster.remove_node(node, allow_graceful=False)
                cluster.add_node(num_cpus=1)
            status = driver.wait(300)
            require(status == 0, f"exit status {status}: {(at.folder / 'stderr').read_text()[-500:]}")
        finally:
            cluster.shutdown()
        same(at.runs, alone.runs)
        clean_store(at)


# ---------------------------------------- clocks


def _clock_jumps(seconds: float, after: int) -> None:
    """From its n-th question on, the clock of the day gives another time."""
    asked, real = [], time.time

    def clock() -> float:
        asked.append(1)
        return real() - (seconds if len(asked) > after else 0)

    time.time = clock


def clock(seed: int, number: int) -> None:
    """The clock jumps back, or all files of the store are from next year."""
    chance = generator(seed, "clock", number)
    with place(template()) as at:
        if number % 2:
            future = time.time() + 365 * 86_400
            for path in at.home.rglob("*"):
                os.utime(path, (future, future))
        jump = functools.partial(_clock_jumps, chance.choice([3600, 86_400, 10**9]), chance.randrange(8))
        key = first_run(at)
        for words in ((*TINY, "--seed", "5"), ("results",), ("predict", key, "a fine film")):
            succeeded(rtx(at, *words, first=None if number % 2 else jump))
        as_undisturbed(at)
        if number % 2:
            for path in (at.work / "shards").iterdir():
                os.utime(path, (future, future))
            words = ("predict", graph() / "graph", "--file", "shards", "--out", "answered", "--workers", "1", "--json")
            written = [succeeded(rtx(at, *words, cold=True, limit=60)).last_json() for _ in range(2)]
            require(written[0]["rows"] == TEXTS and written[1]["kept"] == 4, f"shards from the future: {written}")


# ---------------------------------------- signals and streams


def stopped(sent: int, seed: int, number: int) -> None:
    """SIGINT ends with 130 and SIGTERM with 143, in the first half second and later; the same command goes on from there."""
    chance, early = generator(seed, f"signal {sent}", number), number % 2 == 0
    moment = chance.random() * (0.5 if early else 1.7)
    words = (*LONGER, "--seed", "5")
    with place() as at:
        told = rtx(at, *words, cold=early, sent=sent, moment=moment, limit=60)
        # it had not read a line of this project; an editable install has a file of its own among Python's
        python_alone = "Traceback" in told.err and ("<frozen site>" in told.err or not re.search(r"\brtx(lib|study)?/", told.err))
        finished = told.status == 0 and any(file.endswith("complete.json") for file in at.files())  # the signal came too late
        if told.killed and not python_alone and not finished:
            require(told.status == 128 + sent, f"after {moment:.2f} s: exit status {told.status}: {told.err[-500:]}")
            calm(told)
        goes_on(at, *words)
        nothing_left(at, _files_of_longer())


@functools.cache
def _files_of_longer() -> frozenset[str]:
    with place() as at:
        succeeded(rtx(at, *LONGER, "--seed", "5", limit=60))
        return frozenset(at.files())


def _close(number: int) -> None:
    os.close(number)


def streams(seed: int, number: int) -> None:
    """A closed standard input, output or error."""
    key = first_run(Place(template()))
    words = [("predict", key, "fine"), ("predict", key), ("results",), TINY][number // 3 % 4]
    with place(template()) as at:
        told = rtx(at, *words, cold=True, first=functools.partial(_close, number % 3))
        calm(told)
        require(told.status in (0, 2), f"standard stream {number % 3} is closed: exit status {told.status}: {told.err[-500:]}")


def broken_pipe(seed: int, number: int) -> None:
    """Nobody reads the output, as in ``rtx results | head -1``."""
    words = [("results", "--csv"), ("predict", "{run}", *["fine"] * 3000), ("--help",), ("params", "standard-1x32")][number % 4]
    with place(template()) as at:
        key = first_run(at)
        command = [sys.executable, "-m", "rtx", *(key if word == "{run}" else word for word in words)]
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run(command, env=at.environment(), cwd=at.work, stdout=writer, stderr=subprocess.PIPE, timeout=60)
        os.close(writer)
        calm(told := Outcome(done.returncode, "", done.stderr.decode(), 0))
        require(told.status in (0, 1, 141, -signal.SIGPIPE), f"exit status {told.status}: {told.err[-300:]}")


def gone_folder(seed: int, number: int) -> None:
    """The working folder is deleted before the command begins."""
    words = [("results",), ("params", "standard-1x32"), TINY][number % 3]
    with place() as at:
        fine_or_one_sentence(rtx(at, *words, cold=True, first=functools.partial(shutil.rmtree, at.work)))


RANKS = [
    {"WORLD_SIZE": "x"},
    {"WORLD_SIZE": "-1"},
    {"WORLD_SIZE": "2"},
    {"WORLD_SIZE": "9" * 5000, "RANK": "0"},
    {"WORLD_SIZE": "2", "RANK": "x", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"},
    {"WORLD_SIZE": "2", "RANK": "5", "LOCAL_RANK": "5", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511"},
    {"WORLD_SIZE": "2", "RANK": "0", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "many"},
    {"WORLD_SIZE": "2", "RANK": "-1", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29512"},
]


def ranks(seed: int, number: int) -> None:
    """Malformed settings of torchrun."""
    with place() as at:
        at.variables = RANKS[number]
        one_sentence(rtx(at, *TINY))


CHECKS = [
    Check("system", "full-disk", "`rtx train` on a disk of 10 KB, 20 KB, …, and again with room", 120, full_disk),
    Check("system", "full-disk-out", "`--out` on a disk of 8 KB, 16 KB, …", 9, full_disk_out),
    Check("system", "full-table", "the disk of the published tables is full in the middle of one", 6, full_table),
    Check("system", "read-only", "a store that is read-only or another user's", 14, read_only),
    Check("system", "user", "an ordinary user without the right to write into the store or the folder", 10, no_permission),
    Check("system", "swap", "a model's folder is swapped between check and load", 6, swap),
    Check(
        *("system", "descriptors", "`ulimit -n` of 8 to 64", len(DESCRIPTORS)),
        functools.partial(limited, resource.RLIMIT_NOFILE, DESCRIPTORS),
    ),
    Check(
        *("system", "memory", "`ulimit -v` of 200 MB to 4 GB", len(MEMORY)),
        functools.partial(limited, resource.RLIMIT_AS, MEMORY),
    ),
    Check("system", "drivers", "two and three drivers of one store", 12, drivers),
    Check("system", "lock", "the process that trains is killed while another waits", 5, lock_holder),
    Check("system", "ray", "two nodes of a Ray cluster are killed while they train", 2, ray_nodes, alone=True),
    Check("system", "clock", "a clock that jumps back, files from the future", 10, clock),
    Check("system", "ctrl-c", "SIGINT in the first half second and later", 20, functools.partial(stopped, signal.SIGINT)),
    Check("system", "term", "SIGTERM in the first half second and later", 10, functools.partial(stopped, signal.SIGTERM)),
    Check("system", "streams", "a closed standard input, output or error", 12, streams),
    Check("system", "pipe", "nobody reads the output", 4, broken_pipe),
    Check("system", "folder", "a deleted working folder", 3, gone_folder),
    Check("system", "ranks", "malformed WORLD_SIZE, RANK and MASTER_PORT", len(RANKS), ranks),
]
