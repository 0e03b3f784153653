"""The answer of the study, in Markdown."""

from __future__ import annotations

import pandas as pd

from rtxstudy.words.comparisons import FEWEST_SEEDS, over_blocks, verdict
from rtxstudy.words.costs import cost_ratio
from rtxstudy.words.numbers import number, points


def answer(
    standard: str, recurrent: str, runs: pd.DataFrame, comparisons: pd.DataFrame, margin: float, blocks: pd.DataFrame
) -> str:
    """Whether the recurrent encoder replaces the standard one: what is lost, what is saved, and on which data.

    ``runs``: one row per study and run. ``comparisons``: rows of :func:`rtxstudy.evaluation.comparisons.compare`.
    ``margin``: the loss of accuracy that a replacement may have. ``blocks``: rows of
    :func:`rtxstudy.evaluation.comparisons.over_blocks`, none where the grid was not run.

    The answer for a data set is yes if the whole interval lies above −margin, and no if it lies below. Any other interval
    settles nothing, and neither do fewer than three seeds.
    """
    from rtxlib.runs.counting_words import FITS, MAJORITY  # here, because it loads scikit-learn and torch
    from rtxlib.runs.counting_words import NAME as COUNTING

    rows = comparisons[comparisons["comparison"] == f"{recurrent} − {standard}"].drop_duplicates("data")
    if rows.empty:
        return f"No run has compared **{recurrent}** with **{standard}** yet."
    headline = rows.iloc[0]
    limit = f"{number(-100 * margin, 'g')} percentage point{'' if margin == 0.01 else 's'}"
    lines = [
        f"On **{headline['data']}**, {verdict(headline)}",
        cost_ratio(runs[runs["data"] == headline["data"]].drop_duplicates("key"), recurrent, standard),
        "",
        "Does it replace the deeper encoder? "
        f"The answer is yes where the whole interval lies above {limit}, and no where it lies below. "
        f"Fewer than {FEWEST_SEEDS} seeds settle nothing.",
        "",
        *_replaced(rows, margin),
    ]
    short, tall = _standard_encoders(recurrent)
    strongest = "Of the baselines without a neural network, another one is the most accurate on validation texts."
    for question, a, b in (
        ("What do the extra passes gain? At the same width and with the same parameters,", recurrent, short),
        ("What would as many separate layers gain? At the same width,", tall, short),
        ("Does it need a neural network?", standard, COUNTING),
        ("", recurrent, COUNTING),
        *((strongest, recurrent, name) for name in (MAJORITY, *FITS) if name != COUNTING),
    ):
        found = comparisons[comparisons["comparison"] == f"{a} − {b}"]
        if not found.empty:
            lines += ["", f"{question} {verdict(found.iloc[0])}".strip()]
    if len(blocks):
        lines += ["", "What do further passes change over all blocks (layers × width) of the grid in notebook 04?", ""]
        lines += [f"- {over_blocks(row)}" for row in blocks.to_dict("records")]
    return "\n".join(lines)


def _standard_encoders(recurrent: str) -> tuple[str, str]:
    """The standard encoders of the same width with the layers of one pass, and with as many layers as all passes.

    The name is read here, because the presets of :mod:`rtxlib.models` would load torch.
    """
    layers, passes, width = map(int, recurrent.removeprefix("recurrent-").split("x"))
    return f"standard-{layers}x{width}", f"standard-{layers * passes}x{width}"


def _replaced(rows: pd.DataFrame, margin: float) -> list[str]:
    """The data sets on which the answer is yes, no or open, and each yes that one seed decides."""
    settled = rows[rows["n_seeds"] >= FEWEST_SEEDS]  # with fewer seeds an interval says little about new ones
    yes, no = settled[settled["low"] > -margin], settled[settled["high"] < -margin]
    undecided = rows[~rows["data"].isin([*yes["data"], *no["data"]])]
    lines = [
        f"- **{word}**: {', '.join(part['data'])}"
        for word, part in (("yes", yes), ("no", no), ("not settled by these runs", undecided))
        if len(part)
    ]
    narrow = yes[yes["low_without"] <= -margin]
    return lines + [
        f"- The yes on {data} is narrow: if one of the seeds is left out, the interval begins at {points(low)}."
        for data, low in zip(narrow["data"], narrow["low_without"], strict=True)
    ]
