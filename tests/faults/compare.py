"""``rtx compare`` while the disk fills, the Hub fails, clocks jump, another compares the same file, and signals come.

Every case gives the answer of an undisturbed comparison apart from times, or one sentence; then the same command gives it.
``--minutes 0`` compares the models that need no training time, which takes some twenty seconds, most of them for the kernel.
"""

from __future__ import annotations

import functools
import random
import shutil
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import Check, generator, hub, require
from .child import LONGEST, Outcome, Place, calm, encoder, nothing_left, once, one_sentence, place, rtx, succeeded
from .system import ordinary_user, small_disk

SECONDS = 180  # of one comparison on a busy machine
WORDS = ("compare", "mine.csv", "--minutes", "0", "--out", "out", "--json")
MINILM = "sentence-transformers/all-MiniLM-L6-v2"
SAME = ("text_column", "label_column", "n_test", "n_judged", "majority_accuracy", "counting_words_accuracy", "accuracy", "take")
# From its n-th question on, the clock of every process gives an earlier time.
JUMP = """
import time
asked, real = [], time.time
def clock():
    asked.append(1)
    return real() - ({seconds} if len(asked) > {after} else 0)
time.time = clock
"""


@once
def file(folder: Path) -> None:
    """A labelled file of a user, which a model can learn."""
    draw = random.Random(0)
    words = ["film", "plot", "cast", "end", "start", "scene", "song", "hero", "light", "sound"]
    rows = ["text,label"]
    for number in range(120):
        label, telling = [("good", ["fine", "lovely", "moving"]), ("bad", ["dull", "stale", "clumsy"])][number % 2]
        rows.append(f"{draw.choice(telling)} {' '.join(draw.choices(words, k=7))},{label}")
    (folder / "work").mkdir()
    (folder / "work" / "mine.csv").write_text("\n".join(rows) + "\n")


@once
def undisturbed(folder: Path) -> None:
    """The folder after a comparison that nothing disturbs, with its answer in ``answer``."""
    shutil.copytree(file(), folder, dirs_exist_ok=True)
    (folder / "answer").write_text(succeeded(rtx(Place(folder), *WORDS, limit=SECONDS)).out)


def as_undisturbed(told: Outcome) -> None:
    right = Outcome(0, (undisturbed() / "answer").read_text(), "", 0).last_json()
    answer = succeeded(told).last_json()
    different = [name for name in SAME if answer[name] != right[name]]
    require(not different, f"another answer: {[(name, answer[name], right[name]) for name in different]}")


def goes_on(at: Place) -> None:
    """The same command gives the answer of an undisturbed one, and leaves nothing more behind than that."""
    as_undisturbed(rtx(at, *WORDS, limit=SECONDS))
    nothing_left(at, Place(undisturbed()).files())
    left = [path.name for path in (at.work / "out").rglob(".*") if path.suffix != ".lock"]
    require(not left, f"left in the folder: {left}")


def told_or_right(told: Outcome) -> None:
    if told.status == 0:
        calm(told)
        as_undisturbed(told)
    else:
        one_sentence(told)


# ---------------------------------------- what surrounds it


def full_disk(seed: int, number: int) -> None:
    """A disk of 60 KB, 160 KB, … under --out."""
    with place(file()) as at:
        (at.work / "out").mkdir()
        with small_disk(at.work / "out", [8, 60, 160, 400][number]):
            told = rtx(at, *WORDS, limit=SECONDS)
            one_sentence(told)
            require("disk" in told.err.splitlines()[-1] or "space" in told.err, f"another reason is given: {told.err[-300:]}")
        goes_on(at)


def no_permission(seed: int, number: int) -> None:
    """An ordinary user who may not write the folder, or not the store."""
    with place(file()) as at:
        folder = [at.work, at.home][number % 2]
        with ordinary_user(at, folder) as within:
            told = rtx(at, *WORDS, within=within, limit=SECONDS)
        if folder == at.home:  # nothing is written there
            as_undisturbed(told)
        else:
            one_sentence(told)
            require("cannot be written" in told.err, f"another reason is given: {told.err[-300:]}")


def two(seed: int, number: int) -> None:
    """Two comparisons of one file in one folder, at once or one a little later: both give the answer, or one gives way."""
    late = 0 if number % 2 == 0 else generator(seed, "compare-two", number).random() * 10

    def one(other: Place, delay: float) -> Outcome:
        time.sleep(delay)
        return rtx(other, *WORDS, limit=2 * SECONDS)

    with place(file()) as at:
        second = Place(at.folder / "second", {"RTX_HOME": str(at.home), "TMPDIR": str(at.folder / "tmp")})
        second.work.rmdir()
        second.work.symlink_to(at.work)
        with ThreadPoolExecutor(2) as pool:
            both = list(pool.map(one, (at, second), (0, late)))
        for told in both:
            told_or_right(told)
        require(any(told.status == 0 for told in both), f"neither gives an answer: {both[0].err[-300:]}")
        goes_on(at)


def clock(seed: int, number: int) -> None:
    """The clock jumps back by an hour, a day or thirty years in every process."""
    chance = generator(seed, "compare-clock", number)
    with place(file()) as at:
        (at.folder / "patch").mkdir()
        patch = JUMP.format(seconds=chance.choice([3600, 86_400, 10**9]), after=chance.randrange(200))
        (at.folder / "patch" / "sitecustomize.py").write_text(patch)
        path = f"{at.folder / 'patch'}:{at.environment()['PYTHONPATH']}"
        jumping = Place(at.folder, {"PYTHONPATH": path})
        as_undisturbed(rtx(jumping, *WORDS, cold=True, limit=SECONDS))
        goes_on(at)


def faulty_hub(seed: int, number: int) -> None:
    """A Hub that fails: what needs it is left out and named, and the others are compared."""
    fault = ("", *hub.FAULTS)[number % (1 + len(hub.FAULTS))]
    with place(file()) as at, hub.serving({MINILM: encoder() / "encoder"}, fault) as address:
        asking = Place(at.folder, {"HF_ENDPOINT": address, "HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1"})
        words = WORDS if fault else (*WORDS, "--minutes", "1")  # word vectors that come are fitted, which takes time
        told = succeeded(rtx(asking, *words, cold=True, limit=SECONDS))
        answer = told.last_json()
        left_out = answer["left_out"].get("static word vectors", "")
        wanted = "another checksum" if fault.startswith(("changed", "short")) else "neither from the Hub"
        require((wanted in left_out) if fault else not left_out, f"{fault or 'a good Hub'}: left out: {left_out!r}")
        require(answer["counting_words_accuracy"] is not None, "counted words were not compared")


# ---------------------------------------- signals


def stopped(sent: int, seed: int, number: int) -> None:
    """After SIGINT the report is made of what there is, SIGTERM ends with 143 and a sentence, and kill -9 leaves no kernel."""
    with place(file()) as at:
        unbroken = _seconds()
        told = rtx(at, *WORDS, sent=sent, moment=generator(seed, f"compare {sent}", number).random() * unbroken, limit=SECONDS)
        if told.killed and sent != signal.SIGKILL:
            calm(told)
            require(told.status in (0, 128 + sent), f"exit status {told.status}: {told.err[-500:]}")
            said = told.status == 0 or "Interrupted" in told.err
            require(said and len(told.err.strip().splitlines()[-1]) <= LONGEST, f"no sentence: {told.err[-300:]!r}")
        goes_on(at)


@functools.cache
def _seconds() -> float:
    """How long an undisturbed comparison takes."""
    with place(file()) as at:
        return succeeded(rtx(at, *WORDS, limit=SECONDS)).seconds


CHECKS = [
    Check("compare", "compare-disk", "`rtx compare FILE --out FOLDER` on a disk of 8 to 400 KB, then with room", 4, full_disk),
    Check("compare", "compare-user", "an ordinary user without the right to write", 2, no_permission),
    Check("compare", "compare-two", "two comparisons of one file in one folder", 4, two),
    Check("compare", "compare-clock", "a clock that jumps back in every process", 4, clock),
    Check("compare", "compare-hub", "a Hub that fails in eleven ways, and one that does not", 1 + len(hub.FAULTS), faulty_hub),
    *(
        Check("compare", f"compare-{name}", f"{words} of `rtx compare`", 6, functools.partial(stopped, sent))
        for name, words, sent in (
            ("kill", "`kill -9`", signal.SIGKILL),
            ("term", "SIGTERM", signal.SIGTERM),
            ("ctrl-c", "SIGINT", signal.SIGINT),
        )
    ),
]
