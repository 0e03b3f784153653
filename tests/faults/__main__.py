"""``python -m tests.faults``: every case of every check, two at a time, and one table of what held."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from rtxlib.atomic import replacing

from . import Broken, Check, NotTried, compare, inputs, kill, system
from .child import ROOT, warm_up

CHECKS = {check.name: check for check in (*kill.CHECKS, *inputs.CHECKS, *system.CHECKS, *compare.CHECKS)}
AT_ONCE = 2
MINUTES = 90  # of a whole run on two cores
UP = "the time was up"
RECORD, PAGE = ROOT / "reports" / "faults.json", ROOT / "docs" / "reliability.md"
BLOCK = re.compile(r"(?<=<!-- begin: faults -->\n).*?(?=<!-- end -->)", re.DOTALL)
HEADER = ["kind", "what", "tried", "held", "cases that did not hold"]


@dataclass
class Row:
    """What became of the cases of a check."""

    check: Check
    tried: int = 0
    held: int = 0
    failures: dict[str, str] = field(default_factory=dict)  # case → why
    not_tried: dict[str, str] = field(default_factory=dict)

    def cells(self) -> list[object]:
        failed = ", ".join(f"`{case}`" for case in self.failures) or "none"
        reasons = {why: sum(1 for given in self.not_tried.values() if given == why) for why in self.not_tried.values()}
        left = "".join(f"; {count} not tried: {why}" for why, count in reasons.items())
        return [self.check.kind, self.check.what, self.tried, self.held, failed + left]


def run_all(cases: list[tuple[Check, int]], seed: int, minutes: float, say: Callable[[str], None]) -> list[Row]:
    """Run the cases of checks that want the machine alone, then all others, two at a time. No case begins after the time."""
    chosen = {check.name for check, _ in cases}
    rows = {name: Row(check) for name, check in CHECKS.items() if name in chosen}
    end, lock = time.monotonic() + 60 * minutes, threading.Lock()

    def one(case: tuple[Check, int]) -> None:
        check, number = case
        row, name, why = rows[check.name], f"{check.name}:{number}", ""
        try:
            if time.monotonic() > end:
                raise NotTried(UP)
            check.run(seed, number)
        except NotTried as reason:
            with lock:
                row.not_tried[name] = str(reason)
            return
        except Broken as error:
            why = str(error)
        except Exception as error:  # a mistake of the harness, or an outcome that it did not foresee
            why = f"{type(error).__name__}: {error}"
        for folder, shown in ((str(ROOT), "."), (sys.base_prefix, "python")):  # no paths of this machine in the record
            why = why.replace(folder, shown)
        with lock:
            row.tried += 1
            row.held += not why
            if why:
                row.failures[name] = why
                say(f"{name} did not hold: {ascii(why)[1:-1]}")

    for case in cases:
        if case[0].alone:  # in the main thread, as Ray wants it
            one(case)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(one, (case for case in cases if not case[0].alone)))
    return list(rows.values())


def spread(checks: list[Check], share: float) -> list[tuple[Check, int]]:
    """The cases of all checks, in turn, so that a run that is cut short has tried some of each. share: of the cases."""
    cases = [(check, number) for check in checks for number in range(max(1, round(check.cases * share)))]
    return sorted(cases, key=lambda case: (case[1] + 0.5) / case[0].cases)


def table(rows: list[Row]) -> str:
    lines = [HEADER, ["---"] * len(HEADER), *(row.cells() for row in rows)]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def recorded(rows: list[Row], seed: int) -> list[dict]:
    """What each check gave with each seed: these rows, and those of the record that are of other checks or seeds."""

    def git(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)

    # A run changes its own record.
    changed = git("diff", "--quiet", "HEAD", "--", ".", f":!{RECORD.relative_to(ROOT)}").returncode == 1
    commit = git("describe", "--always").stdout.strip() + "-dirty" * changed
    about = {
        **{"seed": seed, "measured": datetime.date.today().isoformat(), "commit": commit},
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}",
    }
    seen = ("tried", "held", "failures", "not_tried")
    new = [{"name": row.check.name, **{name: getattr(row, name) for name in seen}, **about} for row in rows]
    replaced = {(row["seed"], row["name"]) for row in new}
    before = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.is_file() else []
    order = list(CHECKS)
    kept = [row for row in before if row["name"] in order and (row["seed"], row["name"]) not in replaced]
    return sorted(kept + new, key=lambda row: (row["seed"], order.index(row["name"])))


def block(record: list[dict]) -> str:
    """The page's table, over all seeds of the record, and a line that says where it comes from."""
    rows = {name: Row(check) for name, check in CHECKS.items() if any(row["name"] == name for row in record)}
    for one in record:
        row = rows[one["name"]]
        row.tried, row.held = row.tried + one["tried"], row.held + one["held"]
        row.failures |= {f"{case} with seed {one['seed']}": why for case, why in one["failures"].items()}
        row.not_tried |= {f"{case} with seed {one['seed']}": why for case, why in one["not_tried"].items()}
    told = [f"seed {row['seed']} ({row['measured']}, commit {row['commit']})" for row in record]
    line = f"{', '.join(dict.fromkeys(told))}; {', '.join(sorted({row['machine'] for row in record}))}."
    return f"{table(list(rows.values()))}\n\n{line[0].upper()}{line[1:]}\n"


def write(path: Path, text: str) -> None:
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of every draw and moment (0)")
    parser.add_argument("--minutes", type=float, default=MINUTES, help=f"about how long; fewer mean fewer cases ({MINUTES})")
    parser.add_argument("--only", choices=("kill", "inputs", "system", "compare"), help="one kind")
    parser.add_argument("--case", action="append", default=[], metavar="NAME[:NUMBER]", help="one check, or one case of it")
    parser.add_argument("--write-docs", action="store_true", help="write the table of the record into docs/reliability.md")
    given = parser.parse_args()
    began = time.monotonic()
    if given.case:
        named = [case.partition(":") for case in given.case]
        if unknown := [name for name, _, _ in named if name not in CHECKS]:
            parser.error(f"there is no check {unknown[0]}; there are {', '.join(CHECKS)}")
        cases = [
            (CHECKS[name], case) for name, _, number in named for case in ([int(number)] if number else range(CHECKS[name].cases))
        ]
    else:
        cases = spread([check for check in CHECKS.values() if given.only in (None, check.kind)], min(1, given.minutes / MINUTES))
    warm_up()
    rows = run_all(cases, given.seed, 1.5 * given.minutes, lambda line: print(line[:1500], file=sys.stderr, flush=True))
    minutes = (time.monotonic() - began) / 60
    print(table(rows))
    tried, held = (sum(getattr(row, what) for row in rows) for what in ("tried", "held"))
    print(f"\n{held} of {tried} held; seed {given.seed}, {minutes:.1f} minutes. A case is repeated by --seed and --case.")
    if not given.case and given.minutes >= MINUTES:
        record = recorded(rows, given.seed)
        write(RECORD, json.dumps(record, indent=1, ensure_ascii=False) + "\n")
        if given.write_docs:
            write(PAGE, BLOCK.sub(lambda _: block(record), PAGE.read_text(encoding="utf-8")))
    cut = any(UP in row.not_tried.values() for row in rows)
    sys.stdout.flush()
    sys.exit(held < tried or (cut and given.minutes >= MINUTES))  # a whole run that was cut is not clean


if __name__ == "__main__":
    main()
