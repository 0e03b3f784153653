"""A few cases of the harness of tests/faults, the same ones every time; ``make faults`` runs the whole."""

from __future__ import annotations

import os
from multiprocessing import forkserver

import pytest
from faults import Broken, NotTried, child, inputs, kill, system

SEED = 0
CASES = {
    **{check.name: (check, (1,)) for check in kill.CHECKS if check.name != "report"},
    **{check.name: (check, range(1, 11)) for check in inputs.CHECKS},  # number 0 of each is a cold process
    **{check.name: (check, (1,)) for check in system.CHECKS if check.name in ("ctrl-c", "term", "ranks", "drivers", "lock")},
    **{check.name: (check, (1, 2)) for check in system.CHECKS if check.name == "clock"},
    **{check.name: (check, (4, 40)) for check in system.CHECKS if check.name == "full-disk"},
    **{check.name: (check, (0, 1, 2)) for check in system.CHECKS if check.name == "swap"},
    **{check.name: (check, (3, 5, 6)) for check in system.CHECKS if check.name == "user"},
}


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    forkserver._forkserver._stop()  # one that another file's tests started has loaded less, in another environment
    child.warm_up()


@pytest.mark.parametrize("name", [name for name, (_, numbers) in CASES.items() if numbers])
def test_faults(name: str) -> None:
    check, numbers = CASES[name]
    broken, not_tried = [], []
    for number in numbers:
        try:
            check.run(SEED, number)
        except NotTried as reason:
            not_tried.append(str(reason))
        except Broken as error:
            broken.append(f"python -m tests.faults --seed {SEED} --case {name}:{number}\n{error}")
    assert not broken, "\n\n".join(broken)
    if os.environ.get("RTX_REQUIRE"):  # no machine lacks what this needs
        assert kill.ENDED not in not_tried, f"{name}: {kill.ENDED}"
    if len(not_tried) == len(numbers):
        pytest.skip("; ".join(dict.fromkeys(not_tried)))
