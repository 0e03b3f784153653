"""The rule: the smallest model that is not worse than the best by more than the margin, by paired intervals.

Everything here that chooses looks at the judged rows: the validation rows, or in cross-validation the training rows. Scores on
the test rows stand beside them and decide nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from rtx.classifiers.simple import Cascade
from rtxstudy.questions.your_texts.candidates import MAJORITY, STATIC, WORDS
from rtxstudy.questions.your_texts.finished_candidates import Entry
from rtxstudy.questions.your_texts.limits import Limits
from rtxstudy.questions.your_texts.texts import Texts
from rtxstudy.statistics import CONFIDENCE, by_cluster, mean_difference

DRAWS = 500  # of the bootstrap of macro-F1
BEYOND_CHANCE = 1.0  # standard errors by which another model must lead, to be better than the favourite of public files
CHEAP = (WORDS, STATIC)  # the first member of a cascade
APART = 1e-6  # probabilities that are nearer to each other count as equal


@dataclass(frozen=True)
class Choice:
    """What the rule found.

    Attributes:
        taken: the chosen model; None: none fits, or none has learned anything
        best: the one that counts as the best within the limits, whether it has learned anything or not; None: none is within them
        table: one row per model, see :func:`compare`
        why: "smallest", "best", "nothing learned" or "limits"
    """

    taken: str | None
    best: str | None
    table: pd.DataFrame
    why: str


def macro_f1(numbers: np.ndarray, guesses: np.ndarray, labels: int, weights: np.ndarray | None = None) -> np.ndarray:
    """Macro-F1 for each row of ``weights`` (draws, rows): how often each text counts; None: once. Shape (draws,)."""
    weights = np.ones((1, len(numbers))) if weights is None else weights
    truth, guess = np.eye(labels)[numbers], np.eye(labels)[guesses]  # (rows, labels)
    both, of_truth, of_guess = weights @ (truth * guess), weights @ truth, weights @ guess
    occurs = of_truth + of_guess > 0
    f1 = np.divide(2 * both, of_truth + of_guess, out=np.zeros_like(both), where=occurs)
    return f1.sum(axis=1) / np.maximum(occurs.sum(axis=1), 1)


def score(texts: Texts, p: np.ndarray, rows: np.ndarray) -> float:
    """The score that decides: macro-F1 where the labels are unbalanced, else accuracy. p: (rows, labels)."""
    numbers, guesses = texts.numbers(rows), p.argmax(axis=1)
    if texts.unbalanced:
        return float(macro_f1(numbers, guesses, len(texts.label_names))[0])
    return float((guesses == numbers).mean())


def _draws(group: np.ndarray) -> np.ndarray:
    """(draws, rows): how often each text counts when whole groups are drawn with replacement."""
    _, place = np.unique(group, return_inverse=True)
    many = place.max() + 1
    counts = np.random.default_rng(0).multinomial(many, np.full(many, 1 / many), DRAWS)
    return counts.astype(np.float32)[:, place]


def difference(texts: Texts, a: np.ndarray, b: np.ndarray, rows: np.ndarray) -> tuple[float, float, float]:
    """The score of A minus that of B on the same rows, with its 95 % interval. a, b: (rows,) found labels.

    The score is accuracy, with the interval of the study over groups of texts. Where the labels are unbalanced it is macro-F1,
    with a paired bootstrap over groups. Where A and B are right equally often in each of n groups (for macro-F1: give the same
    labels), the interval is ±3/n: a share of 3/n of the groups may differ and go unseen with a probability of 5 % (Hanley and
    Lippman-Hand 1983, JAMA 249).
    """
    numbers, group = texts.numbers(rows), texts.table["group"].to_numpy()[rows]
    d = by_cluster(((a == numbers).astype(float) - (b == numbers))[None], group)
    if (a == b).all() or not (texts.unbalanced or d.any()):
        unseen = min(1.0, 3 / len(np.unique(group)))
        return 0.0, -unseen, unseen
    if texts.unbalanced:
        labels, weights = len(texts.label_names), _draws(group)
        draws = macro_f1(numbers, a, labels, weights) - macro_f1(numbers, b, labels, weights)
        whole = float((macro_f1(numbers, a, labels) - macro_f1(numbers, b, labels))[0])
        low, high = np.quantile(draws, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
        return whole, float(low), float(high)
    interval = mean_difference(d)
    return float(d.mean()), interval.low, interval.high


def scores(texts: Texts, p: np.ndarray, rows: np.ndarray) -> dict[str, float]:
    """accuracy, macro_f1, mae (of numbers that are a scale), and the score that decides with its interval low to high."""
    numbers, guesses = texts.numbers(rows), p.argmax(axis=1)
    labels, right = len(texts.label_names), int((guesses == numbers).sum())
    measures = {"accuracy": right / len(rows), "macro_f1": float(macro_f1(numbers, guesses, labels)[0])}
    if (scale := texts.ordered) is not None:
        measures["mae"] = float(np.abs(scale[guesses] - scale[numbers]).mean())
    score, group = measures["macro_f1" if texts.unbalanced else "accuracy"], texts.table["group"].to_numpy()[rows]
    groups = len(np.unique(group))
    if right in (0, len(rows)) or (groups == len(rows) and not texts.unbalanced):  # a bootstrap of equal values has no width
        low, high = binomtest(right * groups // len(rows), groups).proportion_ci(CONFIDENCE, "wilson")
    elif texts.unbalanced:
        draws = macro_f1(numbers, guesses, labels, _draws(group))
        low, high = np.quantile(draws, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    else:  # texts that stay together are alike, so they tell less than as many single ones
        _, low, high, *_ = mean_difference(by_cluster((guesses == numbers).astype(float)[None], group))
    return measures | {"score": score, "low": max(0.0, float(low)), "high": min(1.0, float(high))}


@dataclass(frozen=True)
class Joined:
    """A cascade of two finished candidates: their names, the threshold, and its answers as of an :class:`Entry`."""

    first: str
    second: str
    threshold: float
    share: float  # of the judged texts that the first one answers
    judged: np.ndarray
    test: np.ndarray

    def open(self, entries: Mapping[str, Entry]) -> Cascade:
        return Cascade(entries[self.first].open(), entries[self.second].open(), self.threshold)


def cascade(texts: Texts, entries: Mapping[str, Entry]) -> Joined | None:
    """The cascade of the better cheap model and the best other one; None where there is no other, or it is not better.

    Its threshold is the least one, of a few, with which its score on the judged rows is at least that of the better model, so
    that the cheap model answers as many texts as it can.
    """

    def judged(p: np.ndarray) -> float:
        return score(texts, p, texts.judged)

    cheap = [name for name in CHEAP if name in entries]
    others = [name for name in entries if name not in (*CHEAP, MAJORITY)]
    if not cheap or not others:
        return None
    first = max(cheap, key=lambda name: judged(entries[name].judged))
    second = max(others, key=lambda name: judged(entries[name].judged))
    a, b = entries[first], entries[second]
    if judged(b.judged) <= judged(a.judged):
        return None
    sure = a.judged.max(axis=1)

    def answers(one: np.ndarray, other: np.ndarray, threshold: float) -> np.ndarray:
        return np.where((one.max(axis=1) >= threshold)[:, None], one, other)

    values = np.unique(sure)  # a threshold lies between two of them, so that rounding moves no text to the other model
    between = ((values[1:] + values[:-1]) / 2)[np.diff(values) > APART]
    if not len(between):
        return None
    wanted = np.quantile(sure, np.linspace(0.05, 0.95, 19))
    thresholds = np.unique(between[np.abs(between[:, None] - wanted).argmin(axis=0)])
    ways = [(judged(answers(a.judged, b.judged, t)), float((sure >= t).mean()), float(t)) for t in thresholds]
    good = [way for way in ways if way[0] >= judged(b.judged)]
    if not good:
        return None
    _, share, threshold = max(good, key=lambda way: way[1])
    joint = (answers(*pair, threshold) for pair in ((a.judged, b.judged), (a.test, b.test)))
    return Joined(first, second, threshold, share, *joint)


def compare(
    texts: Texts,
    entries: Mapping[str, Entry | Joined],
    costs: pd.DataFrame,
    limits: Limits,
    favourite: str = "",
) -> Choice:
    """Apply the rule. costs: index model, columns ms, mb, rows, seconds. favourite: of :class:`Race`; "": there is none.

    The table has a row per model, the best first:

    - ``model``, ``rows`` (that it learned from), ``seconds``, ``mb``, ``ms``
    - on the judged rows ``accuracy``, ``macro_f1``, ``mae``, ``score``, ``low``, ``high``; the same on the test rows, as
      ``test_score`` and so on
    - ``behind``, ``behind_low`` and ``behind_high``: the score minus that of the best; ``same``: whether all labels agree
    - ``learned``: better than the majority class beyond the interval
    - ``allowed``: within the limits; ``fits``: not worse than the best by more than the margin, or the same on all judged rows
    - ``needed``: how many more judged texts would settle whether it fits, NaN where that is settled
    """
    judged, test = texts.judged, texts.rows("test")
    rows = []
    for name, entry in entries.items():
        of_test = {f"test_{what}": value for what, value in scores(texts, entry.test, test).items()}
        rows.append({"model": name, **costs.loc[name], **scores(texts, entry.judged, judged), **of_test})
    table = pd.DataFrame(rows)
    guesses = {name: entry.judged.argmax(axis=1) for name, entry in entries.items()}
    table = table.sort_values(["score", "mb"], ascending=[False, True], ignore_index=True)
    table["rows"] = table["rows"].astype(int)
    table["learned"] = [
        name != MAJORITY and difference(texts, guesses[name], guesses[MAJORITY], judged)[1] > 0 for name in table["model"]
    ]
    table["allowed"] = [
        (limits.max_mb is None or row.mb <= limits.max_mb) and (limits.max_ms is None or row.ms <= limits.max_ms)
        for row in table.itertuples()
    ]
    stands = np.array([_stands(name, entries, guesses, texts, table) for name in table["model"]])
    allowed = table[table["allowed"] & stands & (table["model"] != MAJORITY)]
    able = allowed[allowed["learned"]]
    ranked = allowed if able.empty else able
    best = None if ranked.empty else str(ranked.iloc[0]["model"])
    if best is not None and favourite in set(ranked["model"]):
        lead, low, _ = difference(texts, guesses[best], guesses[favourite], judged)
        error = (lead - low) / NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
        best = favourite if lead <= BEYOND_CHANCE * error else best
    reference = best or str(table.iloc[0]["model"])
    behind = [difference(texts, guesses[name], guesses[reference], judged) for name in table["model"]]
    table[["behind", "behind_low", "behind_high"]] = behind
    table["same"] = [bool((guesses[name] == guesses[reference]).all()) for name in table["model"]]
    close = (table["behind_low"] > -limits.margin) | table["same"]
    table["fits"] = table["model"].isin(able["model"]) & close
    half = table["behind"] - table["behind_low"]
    room = table["behind"] + limits.margin
    open_ = table["model"].isin(able["model"]) & ~table["fits"] & (room > 0)
    table["needed"] = np.where(open_, len(judged) * ((half / room.where(room > 0, np.nan)) ** 2 - 1), np.nan)
    if able.empty:
        return Choice(None, best, table, "limits" if (table["learned"] & ~table["allowed"]).any() else "nothing learned")
    fits = table[table["fits"]].sort_values(["mb", "ms"])
    model = str(fits.iloc[0]["model"])
    return Choice(model, best, table, "best" if model == best else "smallest")


def _stands(
    name: str, entries: Mapping[str, Entry | Joined], guesses: Mapping[str, np.ndarray], texts: Texts, table: pd.DataFrame
) -> bool:
    """Whether a model can be chosen. A cascade can where its better member is too slow, or where it is shown to be better.

    It holds both members, and its threshold was chosen on the judged rows, so a chance advantage there means nothing.
    """
    entry = entries[name]
    if not isinstance(entry, Joined):
        return True
    second = bool(table.set_index("model")["allowed"][entry.second])
    return not second or difference(texts, guesses[name], guesses[entry.second], texts.judged)[1] > 0
