"""How much a rule of choice loses to the best candidate, on many splits of public files.

    python -m benchmarks.choice [--draws 200]

The answers of finished candidates are those that ``python -m benchmarks.prior`` left in ``reports/prior/``. For each file some
of the answered texts are drawn for validation and the others are the test, many times. Each rule chooses by the validation texts,
and its loss is the accuracy on the test texts of the candidate that is best on all texts, minus that of the chosen one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

import numpy as np
import pandas as pd
from safetensors.numpy import load_file

from benchmarks.prior import ANSWERS
from rtxlib.errors import InputError
from rtxstudy.questions.your_texts import choice, prior
from rtxstudy.questions.your_texts.candidates import FINE_TUNED, FROZEN, LOOP, MAJORITY, STATIC, TUNED, WORDS

VALIDATION = (60, 120, 250, 500)  # validation texts
MEGABYTES = {  # about, of a file of two labels; only their order matters
    MAJORITY: 0.0, "standard-2x128": 6.0, WORDS: 1.0, STATIC: 24.0, "standard-3x256": 15.0, "recurrent-3x2x256": 15.0,
    LOOP: 68.0, FROZEN: 91.0, TUNED: 91.0, FINE_TUNED: 91.0,
}  # fmt: skip
MARGIN = 0.01

Rule = Callable[[np.ndarray, pd.Series], int]  # right (models, texts), megabytes by model → the chosen one


def highest(right: np.ndarray, mb: pd.Series) -> int:
    return int(right.mean(axis=1).argmax())


def favourite(right: np.ndarray, mb: pd.Series) -> int:
    """Fine-tuned MiniLM, unless another model leads by more than a standard error of the paired difference."""
    best = highest(right, mb)
    named = mb.index.get_loc(FINE_TUNED)
    ahead = right[best] - right[named]
    error = ahead.std() / np.sqrt(right.shape[1])
    return best if ahead.mean() > choice.BEYOND_CHANCE * error else named


def one_standard_error(right: np.ndarray, mb: pd.Series) -> int:
    """The smallest model within one standard error of the paired difference to the highest score."""
    best = highest(right, mb)
    behind = right[best] - right
    error = behind.std(axis=1) / np.sqrt(right.shape[1])
    return int(np.where(behind.mean(axis=1) <= error, mb, np.inf).argmin())


def smallest(first: Rule) -> Rule:
    """The smallest model that is shown to be less than the margin behind the choice of another rule, as `rtx compare` does."""

    def rule(right: np.ndarray, mb: pd.Series) -> int:
        best = first(right, mb)
        behind = right - right[best]
        low = behind.mean(axis=1) - 1.96 * behind.std(axis=1) / np.sqrt(right.shape[1])
        close = (low > -MARGIN) & (np.arange(len(right)) != best)
        return int(np.where(close | (np.arange(len(right)) == best), mb, np.inf).argmin())

    return rule


RULES: dict[str, Rule] = {
    "highest score": highest,
    "the favourite within a standard error": favourite,
    "smallest near the highest score": smallest(highest),
    "smallest near the favourite": smallest(favourite),
    "one standard error, towards the smaller": one_standard_error,
}


def losses(draws: int) -> pd.DataFrame:
    """Columns data, rows, texts (of the validation), rule, loss (points, on average over the draws)."""
    measured, results = prior.table(), []
    for data, rows in measured[["data", "rows"]].drop_duplicates().itertuples(index=False):
        file = ANSWERS / f"{data}-{rows}.safetensors"
        if not file.is_file():
            continue
        answers = load_file(file)
        numbers = answers.pop("labels")
        names = [name for name in answers if name != MAJORITY]
        right = np.array([answers[name].argmax(axis=1) == numbers for name in names], float)
        mb = pd.Series(MEGABYTES)[names]
        best, rng = highest(right, mb), np.random.default_rng(0)
        for many in VALIDATION:
            lost = {rule: 0.0 for rule in RULES}
            for _ in range(draws):
                order = rng.permutation(len(numbers))
                judged, test = right[:, order[:many]], right[:, order[many:]].mean(axis=1)
                for rule, choose in RULES.items():
                    lost[rule] += 100 * (test[best] - test[choose(judged, mb)]) / draws
            results += [(data, rows, many, rule, points) for rule, points in lost.items()]
    return pd.DataFrame(results, columns=["data", "rows", "texts", "rule", "loss"])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.choice", description="What a rule of choice loses.")
    parser.add_argument("--draws", type=int, default=200)
    table = losses(parser.parse_args().draws)
    if table.empty:
        raise InputError(f"There are no answers in {ANSWERS}; make them with `python -m benchmarks.prior`.")
    print(table.pivot_table(index="rule", columns="texts", values="loss", margins=True).round(2).to_string())
    print(table.pivot_table(index=["data", "rows"], columns="rule", values="loss").round(2).to_string())


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        sys.exit(str(error))
