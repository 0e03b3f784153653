"""Which training of a candidate fits into the time: fewer epochs, fewer rows or shorter texts.

What a smaller training loses is expected from the measurements of ``python -m benchmarks.plans``
(``reports/benchmark_plans.json``: one seed, 1,000 test texts). Of the plans that fit, the one that is expected to lose least is
taken. To halve the epochs loses least, then to halve the rows; to cut reviews loses most, so that is left for cross-validation,
where every row is needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from rtxstudy.questions.your_texts.candidates import BATCH_ROWS, LEAST_STEPS, MAX_LENGTH, Candidate, Plan
from rtxstudy.questions.your_texts.training_time import Estimate

LENGTHS = (MAX_LENGTH, 192, 128)  # tokens of a text
EPOCHS, MOST_EPOCHS = 3, 16  # of a whole fine-tuning; few rows are read in more epochs
SHORTER = (1.0, 2 / 3, 1 / 3)  # of the epochs of a whole fine-tuning
FEWEST = 250  # rows of a training on a part of the rows
HALF_THE_EPOCHS = 0.006  # score that is lost by halving the epochs
HALF_THE_ROWS = 0.010  # score that is lost by halving the rows
UNREAD = 0.08  # score that would be lost if no token were read; a part of the tokens costs its share
FEW_READ, FEW_READ_LOSE = 1600, 0.022  # rows × epochs below which a fine-tuning loses so much more score
ALIKE = 0.003  # score by which two plans do not differ
BEGUN = 1.25  # a begun training is taken if all of it needs at most this many times the time left, because a part is done


def whole_epochs(rows: int) -> int:
    """Epochs of a whole fine-tuning of so many rows."""
    return min(MOST_EPOCHS, max(EPOCHS, math.ceil(LEAST_STEPS * BATCH_ROWS / rows)))


def whole(candidate: Candidate, rows: int) -> Plan:
    """The training of a candidate where time is no matter."""
    return Plan(rows, MAX_LENGTH, float(whole_epochs(rows)) if candidate.pretrained and candidate.kind == "network" else 1.0)


def loss(plan: Plan, candidate: Candidate, rows: int, estimate: Estimate) -> float:
    """The score that a plan is expected to lose against the whole training on all ``rows``."""
    lost = UNREAD * estimate.cut(plan.max_length) + HALF_THE_ROWS * math.log2(rows / plan.rows)
    if candidate.pretrained and candidate.kind == "network":
        lost += HALF_THE_EPOCHS * math.log2(max(1.0, whole_epochs(plan.rows) / plan.epochs))
        lost += FEW_READ_LOSE * (plan.rows * plan.epochs < FEW_READ)
    return lost


def shortened(plan: Plan, candidate: Candidate, rows: int) -> str:
    """How a training on all rows was shorter than a whole one, in words; "" where it was not."""
    complete = whole(candidate, rows)
    parts = [f"the first {plan.max_length} word pieces of a text"] * (plan.max_length < complete.max_length)
    parts += [f"{plan.epochs:g} of {complete.epochs:g} epochs"] * (plan.epochs < complete.epochs)
    return " and ".join(parts)


def on_all_rows(candidate: Candidate, rows: int, estimate: Estimate) -> list[Plan]:
    """The plans that read all rows. A length that cuts no text more than a longer one is left out."""
    longest = int(estimate.lengths.max())
    lengths = [length for number, length in enumerate(LENGTHS) if number == 0 or length < longest]
    if candidate.kind != "network" or not candidate.pretrained:
        return [Plan(rows, length) for length in lengths]
    epochs = {1.0} | {max(1.0, float(round(share * whole_epochs(rows)))) for share in SHORTER}
    return [Plan(rows, length, count) for length in lengths for count in sorted(epochs, reverse=True)]


def on_fewer_rows(candidate: Candidate, rows: int, seconds: float, estimate: Estimate) -> list[Plan]:
    """For each length one epoch over as many rows as the time buys, rounded down to two digits; only for fine-tuning."""
    if candidate.kind != "network" or not candidate.pretrained:
        return []
    options = []
    for length in LENGTHS:
        base = estimate.seconds(candidate, Plan(0, length))
        each = (estimate.seconds(candidate, Plan(1000, length)) - base) / 1000
        many = int(min(rows, (seconds - base) / each))
        many -= many % 10 ** max(0, len(str(many)) - 2) if many > 0 else 0
        if FEWEST <= many < rows:
            options.append(Plan(many, length))
    return options


def choose(
    candidate: Candidate, rows: int, seconds: float, trainings: int, estimate: Estimate, begun: Iterable[Plan] = ()
) -> Plan | None:
    """Of the plans that fit into so many seconds, the one that is expected to lose least; None where none fits.

    In cross-validation (``trainings`` above one) every fold is needed, so no plan leaves rows out. A plan that was ``begun``
    before is taken where it fits and is not expected to lose more than another, because what it has learned is kept.
    """
    fitting = [plan for plan in on_all_rows(candidate, rows, estimate) if estimate.seconds(candidate, plan, trainings) <= seconds]
    if trainings == 1:
        fitting += on_fewer_rows(candidate, rows, seconds, estimate)
    begun = [plan for plan in begun if estimate.seconds(candidate, plan, trainings) <= BEGUN * seconds]
    both = [*begun, *fitting]
    return min(both, key=lambda plan: loss(plan, candidate, rows, estimate) - ALIKE * (plan in begun), default=None)
