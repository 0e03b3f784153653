"""What a shorter fine-tuning of MiniLM loses: the numbers by which ``rtx compare`` chooses between fewer epochs, rows and tokens.

    python -m benchmarks.plans [--data sst2-3000 yelp-1200 …]

On each setting of :mod:`benchmarks.prior` MiniLM is fine-tuned whole, and with fewer epochs, fewer rows or shorter texts. Each is
scored on the same test rows. What is lost goes to ``reports/benchmark_plans.json``; a call keeps the data that it does not
measure again. The means are printed: those in :mod:`rtxstudy.questions.your_texts.plans` are taken from them by hand. Trainings
that read few rows lose more than in proportion and have a mean of their own. One processor thread is used.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import sys
from typing import Any

import pandas as pd
import torch

from benchmarks.__main__ import machine
from benchmarks.prior import SETTINGS, accuracy, opened
from benchmarks.rows import require_known
from rtxlib import paths
from rtxlib.errors import InputError
from rtxlib.runs import store
from rtxstudy.questions.your_texts import plans
from rtxstudy.questions.your_texts.candidates import FINE_TUNED, NAMED, Plan

FILE = paths.root() / "reports" / "benchmark_plans.json"
DATA = ("sst2-3000", "sms-2500", "yelp-1200", "yelp-stars-2500", "amazon-stars-1200")
PARTS = (1 / 2, 1 / 4)  # of the rows


def measured(name: str) -> list[dict[str, Any]]:
    """A row for each plan: what was made shorter, by how much, and the accuracy that it lost."""
    candidate = NAMED[FINE_TUNED]
    with opened(SETTINGS[name]) as turns:
        race, rows = turns.race, len(turns.race.train)
        whole = dataclasses.replace(plans.whole(candidate, rows), threads=1)
        shorter = [("epochs", dataclasses.replace(whole, epochs=float(epochs))) for epochs in (2, 1) if epochs < whole.epochs]
        shorter += [("rows", dataclasses.replace(whole, rows=int(part * rows))) for part in PARTS]
        longest = turns.estimate.lengths.max()
        shorter += [("tokens", dataclasses.replace(whole, max_length=n)) for n in plans.LENGTHS[1:] if n < longest]

        def reached(plan: Plan) -> float:
            turns.train_by(candidate, plan)
            return accuracy(turns.texts, race.entries[FINE_TUNED].test)

        best, found = reached(whole), []
        for what, plan in shorter:
            amount = {
                "epochs": math.log2(whole.epochs / plan.epochs),
                "rows": math.log2(rows / plan.rows),
                "tokens": turns.estimate.cut(plan.max_length),
            }[what]
            lost = best - reached(plan)
            found.append({"data": name, "what": what, **dataclasses.asdict(plan), "amount": amount, "lost": lost, "whole": best})
            shape = f"{plan.rows:6,} rows {plan.epochs:3g} epochs {plan.max_length} tokens"
            print(f"{name:18} {shape} {-100 * lost:+.1f}", flush=True)
        return found


def means(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """What is lost for one unit (a halving of epochs or rows, all tokens unread): the slope through zero, and its settings.

    The last row is what trainings that read few rows lose more than those slopes say, on average.
    """
    table = pd.DataFrame(rows)
    few = table.rows * table.epochs < plans.FEW_READ
    parts = table[~few].groupby("what", sort=False)
    lost = parts.apply(lambda part: (part.amount * part.lost).sum() / (part.amount**2).sum())
    slopes = pd.DataFrame({"lost": lost, "n": parts.size()})
    more = (table.lost - table.what.map(lost) * table.amount)[few]
    slopes.loc["few rows read"] = more.mean(), len(more)
    return slopes


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plans", description="What a shorter fine-tuning loses.")
    parser.add_argument("--data", nargs="+", default=list(DATA), help=", ".join(SETTINGS))
    names = parser.parse_args().data
    require_known(names, SETTINGS)
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = json.loads(FILE.read_text())["rows"] if FILE.is_file() else []
    where = {"machine": f"{machine()}, 1 thread", "torch": torch.__version__}
    for name in names:
        rows = [row for row in rows if row["data"] != name] + [row | where for row in measured(name)]
        store.write_json(FILE, {"rows": rows})
    print(means(rows).to_string())


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        sys.exit(str(error))
