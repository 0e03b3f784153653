"""Runs on a real Ray cluster of several nodes: the results of serial runs after any kill, and no run trained twice."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import pytest
import test_compare
from test_process import metrics_of

from rtx import archive, process
from rtx.executors import cluster, execute, gpu
from rtx.executors import ray as executors
from rtx.shards import answers, drive
from rtx.shards.job import Job
from rtxlib import paths
from rtxlib.data.datasets import Generated
from rtxlib.data.prepare import prepare
from rtxlib.errors import InputError
from rtxlib.runs import store, train
from rtxlib.runs.spec import RunSpec
from rtxlib.training.device import training_threads
from rtxlib.training.recipe import RECIPES
from rtxlib.training.trainer import Trainer
from rtxstudy import checkpoints
from rtxstudy.questions.your_texts import candidates, race
from rtxstudy.questions.your_texts.candidates import Candidate
from rtxstudy.questions.your_texts.texts import open_texts

PATIENCE = 400  # seconds after which a test gives up waiting
DATA = Generated(rows=240, depth=1, vocab_size=400)
SPEC = RunSpec("recurrent-1x2x32", DATA, dataclasses.replace(RECIPES["smoke"], epochs=2, dropout=0.1))


def seeds(*numbers: int) -> list[RunSpec]:
    return [dataclasses.replace(SPEC, seed=number) for number in numbers]


def key_of(spec: RunSpec) -> str:
    return spec.key(prepare(spec.data, paths.prepared_dir()).fingerprint)


def until(what: Callable[[], bool], goes_on: Callable[[], bool] = lambda: True) -> None:
    """Wait. Looks are counted instead of seconds, so that no test fails because the machine stood still for a while."""
    for _ in range(20 * PATIENCE):
        if what():
            return
        assert goes_on()
        time.sleep(0.05)
    pytest.fail("waited in vain")


def ended(lines: str) -> int:
    """How many runs a driver reported as trained. Its lines about runs under way begin differently."""
    return len(re.findall(r"^\[\d/\d\] .*: accuracy", lines, re.M))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root folder for one test, and no settings of Ray in the environment."""
    monkeypatch.setenv("RTX_HOME", str(tmp_path))
    for name in ("RAY_ADDRESS", "RTX_EXECUTOR", "RTX_NO_TRAINING"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def of_ray(process: psutil.Process) -> bool:
    """Whether this process belongs to Ray. Other processes run beside them, such as the browser of other tests."""
    try:
        return any(word in " ".join(process.cmdline()) for word in ("ray::", "/ray/", "raylet"))
    except psutil.Error:
        return False


@pytest.fixture(scope="module", autouse=True)
def sigterm() -> Iterator[None]:
    """SIGTERM as it was. Ray leaves its own handler, with which the tests after these would end the process."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture(scope="module")
def nodes() -> Iterator:
    """A head without cores and two nodes of one core each. All of their processes end with the fixture."""
    # Ray gives its workers the lowest priority but four, so that they would wait for all tests that run beside these.
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_worker_niceness="0")
    from ray.cluster_utils import Cluster

    started = Cluster()
    add_node(started, num_cpus=0, include_dashboard=False)
    add_node(started, num_cpus=1)
    add_node(started, num_cpus=1)
    yield started
    started.shutdown()
    until(lambda: not any(map(of_ray, psutil.Process().children(recursive=True))))


def add_node(to, **settings: int):
    """Add a node. Ray gives it 30 seconds to start, which may be too few on a busy machine, so there are three attempts."""
    known = set(psutil.Process().children(recursive=True))
    for attempt in (1, 2, 3):
        try:
            node = to.add_node(wait=False, **settings)
            break
        except Exception:
            for process in filter(of_ray, set(psutil.Process().children(recursive=True)) - known):
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            if attempt == 3:
                raise
    to.wait_for_nodes(timeout=PATIENCE)
    return node


def node_of(nodes, worker: int):
    """The node on which a worker process runs."""
    raylet = psutil.Process(worker).ppid()
    return next(node for node in nodes.worker_nodes if node.all_processes["raylet"][0].process.pid == raylet)


@pytest.fixture
def hooked(nodes) -> Iterator[Callable]:
    """A function that connects this process to the cluster; each worker calls the given hook when it starts."""
    import ray

    yield lambda hook: ray.init(
        nodes.address,
        log_to_driver=False,
        runtime_env={"worker_process_setup_hook": hook, **executors.environment()},
    )
    ray.shutdown()


@pytest.fixture(scope="module")
def serial(tmp_path_factory: pytest.TempPathFactory) -> Callable[[RunSpec], store.Run]:
    """A function that trains a run in this process, into another store."""
    folder = tmp_path_factory.mktemp("serial")
    return lambda spec: train.train_run(spec, folder)


def same(run: store.Run, other: store.Run) -> bool:
    """Whether two runs have the same bits: the bytes of the weights, every prediction, and the losses."""
    assert run.path != other.path
    weights = [(one.path / "model.safetensors").read_bytes() for one in (run, other)]
    predictions = [pd.read_parquet(one.path / "predictions.parquet") for one in (run, other)]
    losses = [[one.metrics[name] for name in ("test_loss", "val_loss", "accuracy")] for one in (run, other)]
    return weights[0] == weights[1] and predictions[0].equals(predictions[1]) and losses[0] == losses[1]


# ------------------------------------------------------------------------------------------------- before anything starts


def test_unknown_executors_and_absent_ray_are_one_sentence(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert executors.known() == "local" and executors.known("ray") == "ray"
    with pytest.raises(InputError, match=r"no executor 'rya'.*Did you mean 'ray'"):
        execute.run(seeds(0), executor="rya")
    monkeypatch.setenv("RTX_EXECUTOR", "ray")
    assert executors.known() == "ray"
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"pip install 'rtxlib\[ray\]'"):
        execute.run(seeds(0))
    assert not paths.runs_dir().exists()


def test_workers_learn_where_the_store_is_but_no_token(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "secret")
    told = executors.environment()["env_vars"]
    assert told["RTX_HOME"] == str(home) and told["HF_ENDPOINT"] == os.environ["HF_ENDPOINT"]
    assert "secret" not in told.values()


# -------------------------------------------------------------------------------------------------------- shares of a GPU


def test_a_share_covers_the_peak_with_room_and_never_more_than_one_gpu() -> None:
    for peak in (10, 1_000, 5_000, 9_000, 20_000, 90_000):
        share = gpu.share(peak, 24_000)
        assert gpu.LEAST <= share <= 1
        assert share == 1 or share * 24_000 >= peak + gpu.CONTEXT_MB
    assert gpu.share(10, 24_000) == gpu.LEAST
    assert gpu.share(19_000, 24_000) < gpu.share(23_000, 24_000) == 1


def test_the_largest_measured_peak_of_a_shape_decides() -> None:
    def run(spec: RunSpec, **metrics: float) -> store.Run:
        return store.Run("k", spec.canonical(), metrics, None)

    first, second = seeds(0, 1)
    wide = dataclasses.replace(SPEC, model="recurrent-1x2x64")
    shares = gpu.measured(
        [
            run(first, peak_memory_mb=2_000, device_memory_mb=16_000),
            run(second, peak_memory_mb=4_000, device_memory_mb=16_000),
            run(wide),  # trained on a CPU
        ]
    )
    assert shares == {gpu.shape(SPEC.canonical()): gpu.share(4_000, 16_000)}
    cards = [run(first, peak_memory_mb=4_000, device_memory_mb=memory) for memory in (80_000, 16_000)]
    assert gpu.measured(cards) == shares  # a share of a large card may not be enough of a small one
    rows = dataclasses.replace(SPEC, recipe=dataclasses.replace(SPEC.recipe, batch_rows=8))
    longer = dataclasses.replace(SPEC, data=dataclasses.replace(DATA, max_length=64))
    two = dataclasses.replace(SPEC, processes=2)
    assert len({gpu.shape(spec.canonical()) for spec in (SPEC, first, wide, rows, longer, two)}) == 5


def test_an_unmeasured_shape_sends_one_run_ahead_on_a_whole_gpu() -> None:
    queue = {"a1": ("a",), "a2": ("a",), "b1": ("b",), "b2": ("b",), "c1": ("c",)}
    assert gpu.may_start(queue, busy=[("c",)], shares={("b",): 0.25}) == {"a1": 1.0, "b1": 0.25, "b2": 0.25}
    assert gpu.may_start({"a2": ("a",)}, busy=[], shares={("a",): 0.5}) == {"a2": 0.5}


# ------------------------------------------------------------------------------------------------------- what a node checks


def test_a_node_without_the_store_its_locks_or_its_gpu_trains_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "train_run", lambda *_, **__: pytest.fail("trained"))
    mark = tmp_path / ".driver-x.lock"
    with pytest.raises(InputError, match=r"does not see what the driver wrote.*RTX_HOME"):
        cluster._train_on_node(SPEC, tmp_path, mark, False)
    mark.touch()
    with pytest.raises(InputError, match="can be taken that the driver holds"):
        cluster._train_on_node(SPEC, tmp_path, mark, False)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with store.lock(tmp_path, "driver-x"), pytest.raises(InputError, match="a GPU that its torch cannot use"):
        cluster._train_on_node(SPEC, tmp_path, mark, True)


def test_a_cluster_that_does_not_answer_or_start_is_one_sentence(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    for address in ("nonsense", "127.0.0.1:many", f"127.0.0.1:{port}", f"ray://127.0.0.1:{port}"):
        monkeypatch.setenv("RAY_ADDRESS", address)
        with pytest.raises(InputError, match=f"no Ray cluster to work with at RAY_ADDRESS={address} "):
            execute.run(seeds(0), executor="ray", report=lambda line: None)
    monkeypatch.delenv("RAY_ADDRESS")

    def late(*_: object, **__: object) -> None:
        raise Exception("The current node timed out during startup.\nMore of it")

    monkeypatch.setattr("ray.init", late)
    with pytest.raises(InputError, match=r"did not start here \(The current node timed out during startup\.\)"):
        execute.run(seeds(0), executor="ray", report=lambda line: None)


# ------------------------------------------------------------------------------------------------------------ on a cluster


def test_one_raises_two_are_in_other_hands_and_all_that_can_be_trained_equals_the_serial_runs(
    home: Path, nodes, serial: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other processes hold two runs, and there are two cores. If tasks waited for the two, no other run would start."""
    monkeypatch.setenv("RAY_ADDRESS", nodes.address)
    hot = dataclasses.replace(SPEC.recipe, learning_rate=1e30, clip_norm=1e30)
    bad = dataclasses.replace(SPEC, recipe=hot, seed=5)
    specs = [*seeds(0, 1), dataclasses.replace(SPEC, seed=2, model="standard-1x32")]
    locks = [store.lock(paths.runs_dir(), key_of(spec)) for spec in specs[:2]]
    lines: list[str] = []

    def report(line: str) -> None:
        lines.append(line)
        if "seed 2: accuracy" in line:
            for lock in locks:
                lock.release()

    for lock in locks:
        lock.acquire()
    with pytest.raises(InputError, match=r"1 of 4 runs failed.*seed 5: The training loss is .*diverged"):
        execute.run([*specs[:2], bad, specs[2]], executor="ray", report=report)
    assert sum("failed" in line for line in lines) == 1 and not any("Traceback" in line for line in lines)
    assert ended("\n".join(lines)) == 3
    runs = execute.run(specs, report=pytest.fail)
    assert all(same(run, serial(spec)) for run, spec in zip(runs, specs, strict=True))
    assert not list(paths.runs_dir().glob(".driver*"))


def test_a_node_killed_half_way_costs_only_what_its_checkpoint_lacks(
    home: Path, nodes, hooked: Callable, serial: Callable
) -> None:
    """Each worker stops after its first checkpoint, until one node was killed while it trained a run."""
    gate, log = home / "gate", home / "log"

    def hook() -> None:
        from rtxlib.training import checkpoint, trainer

        trainer.CHECKPOINT_SECONDS = 0.0
        save, load = checkpoint.save, checkpoint.load

        def note(what: str, path: Path) -> None:
            with log.open("a") as file:
                file.write(f"{what} {path.parent.stem} {os.getpid()}\n")

        def save_and_stop(path: Path, *rest: object) -> None:
            save(path, *rest)
            if not gate.exists():
                note("stopped", path)
                while not gate.exists():
                    time.sleep(0.05)

        def load_and_tell(path: Path) -> object:
            note("resumed", path)
            return load(path)

        checkpoint.save, checkpoint.load = save_and_stop, load_and_tell

    def noted() -> list[list[str]]:
        return [line.split() for line in log.read_text().splitlines()] if log.exists() else []

    killed: list[str] = []

    def kill_one() -> None:
        try:
            until(lambda: len(noted()) == 2)  # a run on each node
            _, key, pid = noted()[0]
            nodes.remove_node(node_of(nodes, int(pid)), allow_graceful=False)
            until(lambda: not psutil.pid_exists(int(pid)))
            assert not (paths.runs_dir() / key / store.MARK).exists()
            killed.extend((key, pid))
        finally:
            gate.touch()

    hooked(hook)
    specs = seeds(0, 1, 2)
    killer = threading.Thread(target=kill_one)
    killer.start()
    runs = execute.run(specs, executor="ray", report=lambda line: None)
    killer.join()
    add_node(nodes, num_cpus=1)
    key, pid = killed
    assert ("resumed", key) in [(what, of) for what, of, by in noted() if by != pid]
    assert all(same(run, serial(spec)) for run, spec in zip(runs, specs, strict=True))


def test_shards_outlive_a_killed_worker_and_a_killed_node(home: Path, nodes, hooked: Callable, serial: Callable) -> None:
    """Each worker stops in the middle of its first shard, until one of them and then the node of another were killed."""
    gate, log = home / "gate", home / "log"

    def hook() -> None:
        from rtx.shards import answers

        really = answers.open_model

        def open_model(*given: object) -> Callable:
            answer = really(*given)
            with log.open("a") as file:
                file.write(f"{os.getpid()}\n")

            def stopping(texts: list[str]) -> dict:
                while len(texts) > 1 and not gate.exists():
                    time.sleep(0.05)
                return answer(texts)

            return stopping

        answers.open_model = open_model

    def opened() -> list[int]:
        return [int(line) for line in log.read_text().splitlines()] if log.exists() else []

    def in_the_middle(count: int) -> bool:
        return len(opened()) == count and len(list(out.glob(f".*-{opened()[-1]}-*.tmp"))) == 1

    def kill() -> None:
        try:
            until(lambda: in_the_middle(2))  # a worker on each node
            first, second = opened()
            os.kill(first, signal.SIGKILL)
            until(lambda: in_the_middle(3))  # another one opened the model
            nodes.remove_node(node_of(nodes, second), allow_graceful=False)
            until(lambda: not psutil.pid_exists(second))
            assert not list(out.glob("*.parquet"))
        finally:
            gate.touch()

    source, out, model = home / "in", home / "out", str(serial(seeds(0)[0]).path)
    source.mkdir()
    for i in range(5):
        table = pd.DataFrame({"id": range(30 * i, 30 * i + 30), "text": [f"a fine film {n}" for n in range(30)]})
        table.to_parquet(source / f"part-{i}.parquet")
    hooked(hook)
    killer = threading.Thread(target=kill)
    killer.start()
    one, told = Job("predict", str(source), str(out), model, answers.version("predict", model)), {}
    driver = threading.Thread(target=lambda: told.update(drive.work(one, "ray")), daemon=True)
    driver.start()
    until(lambda: not driver.is_alive())
    killer.join()
    add_node(nodes, num_cpus=1)
    written = pd.concat(pd.read_parquet(out / f"part-{i}.parquet") for i in range(5))
    assert written["id"].tolist() == list(range(150)) and written["predicted"].notna().all()
    assert told["shards"] == 5 and not list(out.glob("*.tmp"))
    assert len(set(opened())) == len(opened()) < 5 + 3  # a worker opens the model once


def test_a_comparison_on_a_cluster_is_the_one_made_here(
    home: Path, nodes, hooked: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two networks train at once, one worker is killed, and a stop leaves one network for the second call to train."""
    log, killed, gate, kept = home / "log", home / "killed", home / "gate", home / "kept"

    def begun() -> int:
        return len(log.read_text().splitlines())

    def hook() -> None:
        from rtxlib.training.trainer import Trainer

        run = Trainer.run

        def noted(self: Trainer) -> object:
            after = killed.exists()
            with log.open("a") as file:
                file.write("begun\n")
            if after:  # what was killed begins again, and waits until it was stopped
                while not gate.exists():
                    time.sleep(0.05)
                return run(self)
            while begun() < 2:  # two at the same time
                time.sleep(0.05)
            with contextlib.suppress(FileExistsError):
                killed.touch(exist_ok=False)
                os.kill(os.getpid(), signal.SIGKILL)
            return run(self)

        Trainer.run = noted

    def say(line: str) -> None:
        if line.startswith("1 of 2 trainings") and begun() == 3:  # what was killed has begun again
            (kept / "stop").touch()

    tiny = [Candidate(name, "is tiny", "network", model=name) for name in ("standard-1x32", "recurrent-1x2x32")]
    monkeypatch.setattr(race, "CANDIDATES", (*candidates.CANDIDATES[:2], *tiny))
    for one in tiny:
        monkeypatch.setitem(candidates.NAMED, one.name, one)
    monkeypatch.setattr(Candidate, "recipe", lambda self, plan, unbalanced=False: RECIPES["smoke"])
    monkeypatch.setattr(checkpoints, "out_of_reach", lambda name: f"{name} is out of reach.")
    test_compare.told(700).to_csv(home / "mine.csv", index=False)
    texts = open_texts(home / "mine.csv")
    hooked(hook)
    with training_threads(4), pytest.raises(InputError, match=r"No node .* has 4 cores.* set OMP_NUM_THREADS="):
        race.run(texts, kept, PATIENCE, executor="ray")
    with training_threads(1):
        here = race.run(texts, home / "here", PATIENCE)
        stopped = race.run(texts, kept, PATIENCE, say, executor="ray")
        gate.touch()
        assert stopped.ended == "asked" and len(stopped.not_tried) == 1 and stopped.quiet
        assert stopped.entries.keys() | stopped.not_tried == here.entries.keys()
        whole = race.run(texts, kept, PATIENCE, executor="ray")
        assert begun() == 4  # two, the killed one again, and it again after the stop
        again = race.run(texts, kept, PATIENCE, executor="ray")
        monkeypatch.setattr(Trainer, "run", lambda self: pytest.fail("trained again"))
        found = race.run(texts, kept, PATIENCE)
    assert begun() == 4
    assert not here.partial  # every network has learned from all rows
    for other in (whole, again, found):
        assert (other.ended, other.left_out, list(other.entries)) == ("", here.left_out, list(here.entries))
        pd.testing.assert_frame_equal(other.curve, here.curve)
        for name, entry in here.entries.items():
            np.testing.assert_array_equal(entry.judged, other.entries[name].judged)
            np.testing.assert_array_equal(entry.test, other.entries[name].test)


DRIVER = """
import os, sys, time
from pathlib import Path
from rtx.executors import ray as executors
from rtx.executors import execute
assert "ray" not in sys.modules  # it is loaded only when it trains
import ray
sys.path.insert(0, {tests!r})
from test_ray import seeds

home = Path(os.environ["RTX_HOME"])

def hook():
    from rtxlib.training.trainer import Trainer
    run = Trainer.run

    def counted(self):
        with (home / "trained").open("a") as file:
            file.write("one\\n")
        while not (home / "gate").exists():
            time.sleep(0.05)
        return run(self)

    Trainer.run = counted

environment = {{"worker_process_setup_hook": hook, **executors.environment()}}
ray.init(os.environ["RAY_ADDRESS"], log_to_driver=False, runtime_env=environment)
execute.run(seeds(0, 1, 2), executor="ray")
"""


def test_two_drivers_on_one_store_train_each_run_once(home: Path, nodes) -> None:
    code = DRIVER.format(tests=str(Path(__file__).parent))
    environment = {**os.environ, "RAY_ADDRESS": nodes.address}
    drivers, said = [], []
    for number in range(2):
        with (home / f"said{number}").open("w") as file:
            drivers.append(subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=file, stderr=file))
        said.append(home / f"said{number}")
    until(lambda: all("3 runs to train" in file.read_text() for file in said))  # all three runs are missing for both
    (home / "gate").touch()
    until(lambda: all(driver.poll() is not None for driver in drivers))
    assert [driver.returncode for driver in drivers] == [0, 0], [file.read_text() for file in said]
    assert (home / "trained").read_text().splitlines() == ["one"] * 3
    assert [ended(file.read_text()) for file in said] == [3, 3]


@pytest.mark.parametrize("package", ["rtx", "rtxlib.runs", "rtxstudy"])
def test_a_node_without_our_packages_is_told_in_a_sentence(package: str) -> None:
    """A worker first imports what it is to run, and that is in any of the three."""
    assert cluster.reason(RuntimeError(f"ModuleNotFoundError: No module named '{package}'")) == executors.NOT_ON_A_NODE
    assert cluster.reason(RuntimeError("No module named 'rtxother'")) != executors.NOT_ON_A_NODE


def test_gpus_are_shared_by_what_the_first_run_measured_and_workers_are_tuned(
    home: Path, nodes, hooked: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray is told of a GPU that does not exist. A stand-in for the training logs its share of the GPU and how it was tuned.

    Ray starts the workers with the settings; a setting of the user goes along. They keep freed memory.
    """
    log = home / "log"

    def train_run(spec: RunSpec, runs: Path, patience: float) -> None:
        import ray

        with log.open("a") as file:
            share = ray.get_runtime_context().get_assigned_resources()["GPU"]
            file.write(f"{spec.seed} {share} {os.getpid()}\n")
        deadline = time.monotonic() + PATIENCE
        while spec.seed and len(log.read_text().splitlines()) < 3 and time.monotonic() < deadline:
            time.sleep(0.05)  # the two others must run at the same time
        assert time.monotonic() < deadline
        if sys.platform == "linux":  # it reads /proc, and the memory setting is glibc's
            from test_process import report

            report(spec, runs)
        with store.writing(runs, spec.key("f")) as folder:
            store.write_json(folder / "spec.json", spec.canonical() | {"label_names": ["a", "b"]})
            memory = {"peak_memory_mb": 3_000.0, "device_memory_mb": 16_000.0}
            store.write_json(folder / "metrics.json", {"accuracy": 0.5, "train_seconds": 1.0, **memory})

    def hook() -> None:
        import torch

        from rtx.executors import cluster

        torch.cuda.is_available = lambda: True
        cluster.train_run = train_run

    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    node = add_node(nodes, num_cpus=2, num_gpus=1)
    for name in process.SETTINGS:  # after the node has started, so that only the driver can hand them on
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GOMP_SPINCOUNT", "77")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))  # to find test_process
    hooked(hook)
    missing = {spec.key("f"): spec for spec in seeds(0, 1, 2)}
    try:
        cluster.train_all(missing, paths.runs_dir(), lambda line: None)
    finally:  # other tests run on this cluster
        nodes.remove_node(node)
    lines = [line.split() for line in log.read_text().splitlines()]
    assert len({process for _, _, process in lines}) == 3  # no worker stays with a CUDA context on the GPU of the next
    assert {seed: float(share) for seed, share, _ in lines} == {
        "0": 1.0,
        "1": gpu.share(3_000, 16_000),
        "2": gpu.share(3_000, 16_000),
    }
    for told in metrics_of(paths.runs_dir(), ("0", "1", "2") if sys.platform == "linux" else ()):
        assert told["at_start"] == process.SETTINGS | {"GOMP_SPINCOUNT": "77"} and told["released"] < 10


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_a_driver_that_is_stopped_leaves_no_training_and_no_half_run(home: Path, nodes, sent: signal.Signals) -> None:
    """Ctrl-C stops a driver with a Ray of its own, whose processes must all end. SIGKILL stops a driver of the cluster."""
    code = (
        f"import sys, dataclasses; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from test_ray import SPEC\nfrom rtx.executors import execute\n"
        "long = dataclasses.replace(SPEC, recipe=dataclasses.replace(SPEC.recipe, epochs=100_000))\n"
        "execute.run([long], executor='ray')\n"
    )
    with (home / "said").open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            env=os.environ | ({"RAY_ADDRESS": nodes.address} if sent == signal.SIGKILL else {}),
            stdout=file,
            stderr=file,
            # Tests that were started in the background ignore SIGINT, and so would their children.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
    until(lambda: any(paths.runs_dir().glob(f"*.partial/{store.PROGRESS}")), lambda: process.poll() is None)
    started = psutil.Process(process.pid).children(recursive=True)
    names = {child.name() for child in started}
    locks = list(paths.runs_dir().glob(".*.lock"))
    assert len(locks) == 2 and all(map(archive.taken, locks))  # the driver's and the worker's
    process.send_signal(sent)
    until(lambda: process.poll() is not None)
    assert process.returncode != 0
    until(lambda: not any(map(archive.taken, locks)))
    assert not list(paths.runs_dir().glob(f"*/{store.MARK}"))
    if sent == signal.SIGINT:
        assert "raylet" in names
        until(lambda: not psutil.wait_procs(started, timeout=0)[1])
        assert "KeyboardInterrupt" in (home / "said").read_text()


def test_a_run_computes_with_its_own_threads_and_says_so(home: Path) -> None:
    import torch

    before = torch.get_num_threads()
    spec = dataclasses.replace(SPEC, threads=before + 1)
    run = train.train_run(spec, paths.runs_dir())
    assert torch.get_num_threads() == before
    assert run.metrics["threads"] == before + 1 and f"{before + 1} threads" in run.metrics["device"]
    assert json.loads((run.path / "spec.json").read_text())["threads"] == before + 1
