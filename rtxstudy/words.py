"""Sentences computed from numbers, so that prose never says more than the cell beside it found."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from rtxlib.runs.counting_words import NAME as COUNTING
from rtxstudy.evaluation.statistics import mean_interval

FEWEST_SEEDS = 3  # behind a yes or a no
PARTS = {  # a study that may be missing → what then is
    "recurrent": "the recurrent encoder beside the standard one (notebook 03)",
    "loop": "what the loop does (03)",
    "sensitivity": "sizes, amounts of data and lengths of text (04)",
    "width_vs_depth": "encoders matched in parameters and in arithmetic (05)",
    "domains": "the domain task (06)",
    "transfer": "sentiment on other texts (06)",
    "pretraining": "pretrained encoders (07)",
}
SPLITS = {"train": "training", "validation": "validation", "test": "test"}


def points(difference: float) -> str:
    """A difference of accuracies in percentage points, signed: "+1.3 points"."""
    return f"{_signed(difference)} points"


def _signed(difference: float) -> str:
    return f"{100 * difference:+.1f}".replace("-", "−")


def between(values: Iterable[float], spec: str) -> str:
    """"0.14 to 0.22", each end in the format ``spec``; one number where both ends read alike."""
    values = list(values)
    low, high = (format(end, spec).replace("-", "−") for end in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def verdict(row: Mapping[str, Any]) -> str:
    """One sentence on a row of :func:`rtxstudy.tables.compare`."""
    a, b = row["comparison"].split(" − ")
    n = f"{row['n_seeds']} seed{'s' if row['n_seeds'] != 1 else ''} × {row['n_items']:,} texts of {row['data']}"
    measured = f"**{a}** minus **{b}**: {points(row['difference'])} of accuracy"
    if row["low"] != row["low"]:  # NaN: nothing to make an interval of
        return f"{measured} ({n}; no interval)."
    interval = f"95 % interval {_signed(row['low'])} to {points(row['high'])}, {n}"
    if row["low"] <= 0 <= row["high"]:
        said = "these runs do not tell the two apart"
    else:
        said = f"the {'first' if row['low'] > 0 else 'second'} was the more accurate"
        if row["n_seeds"] < FEWEST_SEEDS:
            said += f", but fewer than {FEWEST_SEEDS} seeds settle nothing"
    return f"{measured} ({interval}): {said}."


def over_blocks(row: Mapping[str, Any]) -> str:
    """One sentence on a row of :func:`rtxstudy.tables.over_blocks`."""
    passes, blocks = row["passes"], row["blocks"]
    other = "one pass through them" if row["against"] == "one pass" else f"{passes} times as many layers of their own"
    if row["low"] <= 0 <= row["high"]:
        said = "no difference is shown"
    else:
        said = f"{passes} passes are {'better' if row['low'] > 0 else 'worse'}"
    return (
        f"**{passes} passes** through the same layers minus **{other}**: {points(row['difference'])} of accuracy on average "
        f"over {blocks} block{'s' if blocks != 1 else ''} (95 % interval {_signed(row['low'])} to {points(row['high'])}, "
        f"{row['n_items']:,} texts of {row['data']}): {said}."
    )


FASTER, LOST = (
    1.5,
    0.002,
)  # what leaving early is to reach: times the throughput, and the accuracy it may cost on average


def leaving_early(row: Mapping[str, Any]) -> str:
    """Three sentences on a row of :func:`rtxstudy.evaluation.exits.exit_differences`.

    What was measured, whether it reaches the goal, and whether a fixed number of passes would have done as well.
    """
    seeds = row["n_seeds"]
    interval = "" if row["low"] != row["low"] else f" (95 % interval {_signed(row['low'])} to {_signed(row['high'])})"
    reached = row["throughput"] >= FASTER and row["difference"] >= -LOST
    if math.isnan(row["fixed_passes"]):
        instead = "No fixed number of passes is as accurate."
    else:
        instead = (
            f"The fewest passes for every text that are as accurate on these same texts, {row['fixed_passes']:.0f}, give "
            f"{row['fixed_throughput']:.2f} times and {points(row['fixed_difference'])}"
            + (": early exit is not needed." if row["fixed_throughput"] >= row["throughput"] else ".")
        )
    return (
        f"Leaving on **{row['criterion']}** ({row['model']} on {row['data']}, {seeds} seed{'s' if seeds != 1 else ''}): "
        f"{row['throughput']:.2f} times the throughput of all passes, {row['throughput_least']:.2f} in the slowest seed; "
        f"{row['passes']:.2f} passes on average; accuracy {points(row['difference'])}{interval}. "
        f"The goal of {FASTER} times for at most {100 * LOST:.1f} points is {'reached' if reached else 'not reached'}. {instead}"
    )


def loop_used(first: Sequence[float], last: Sequence[float], model: str, passes: int) -> str:
    """Whether the labels read after one pass are as good as those after all; accuracies (seeds,) of the same runs.

    The first sign of a loop that is ignored is that they are.
    """
    gained = mean_interval(np.subtract(last, first))
    between = (
        ""
        if gained.n == 1
        else f", 95 % interval over {gained.n} seeds {_signed(gained.low)} to {_signed(gained.high)}"
    )
    if gained.n == 1:
        said = "one seed, so no interval"
    elif gained.low > 0:
        said = "on these texts the later passes help"
    elif gained.high < 0:
        said = "on these texts the later passes harm"
    else:
        said = "no use of the later passes is shown"
    return (
        f"**{model}**: {np.mean(first):.3f} after the first pass, {np.mean(last):.3f} after {passes} "
        f"({points(gained.mean)}{between}): {said}."
    )


def worth(fit: Mapping[str, Any]) -> str:
    """One sentence on φ, from :class:`rtxstudy.evaluation.worth.Worth`, the name of its ``data``, and how far φ hangs on single
    models (``least``, ``largest``, of :func:`rtxstudy.evaluation.worth.without_one_model`).
    """
    if math.isnan(fit["phi"]):
        known = [f"{word} {end:.2f}" for word, end in (("at least", fit["low"]), ("at most", fit["high"])) if math.isfinite(end)]
        said = f" beyond that it is {known[0]}" if known else ": its interval has no end on either side"
        return f"On **{fit['data']}** these {fit['n']} runs do not determine φ{said}.".replace("-", "−")
    ends = [f"{end:.2f}" if math.isfinite(end) else "no bound" for end in (fit["low"], fit["high"])]
    measured = f"On **{fit['data']}** φ = {fit['phi']:.2f} (95 % interval {ends[0]} to {ends[1]}, n = {fit['n']} runs)"
    if fit["low"] > 1:
        said = "a pass through shared layers is worth more than as many layers of their own"
    elif fit["high"] < 0:
        said = "more passes harm"
    elif fit["low"] > 0:
        said = "a pass helps" + (", though less than as many layers of their own" if fit["high"] < 1 else "")
    else:
        said = "no worth of a pass is shown" + (", and it is less than that of layers" if fit["high"] < 1 else "")
    if fit["low"] > 0 and fit["low"] <= 1 <= fit["high"]:
        said += "; whether as much as layers of their own is open"
    if math.isnan(fit["least"]):
        hangs = "Without the runs of one model or another φ is not determined"
    else:
        hangs = f"Without the runs of any one model φ lies between {fit['least']:.2f} and {fit['largest']:.2f}"
    return f"{measured}: {said}. {hangs}.".replace("-", "−")


def data_used(sources: pd.DataFrame) -> str:
    """One line on each data set behind a report: ``data, source, revision, tokenizer`` and the rows of each split."""
    lines = []
    for row in sources.to_dict("records"):
        revision = f" at revision {row['revision']}" if row["revision"] else ""
        rows = ", ".join(f"{row[f'{split} rows']:,} {word}" for split, word in SPLITS.items())
        lines.append(f"- **{row['data']}**: {row['source']}{revision}; {rows} texts; tokens by {row['tokenizer']}")
    return "\n".join(["Data used:", "", *lines])


def answer(standard: str, recurrent: str, runs: pd.DataFrame, comparisons: pd.DataFrame, margin: float) -> str:
    """The study's answer in Markdown, from its tables: what is lost, what is saved, and where that was settled.

    ``runs``: one row a study and run; ``comparisons``: rows of :func:`rtxstudy.tables.compare`; ``margin``:
    the accuracy that one may lose and still speak of a replacement. An interval above −margin settles that the
    recurrent encoder replaces the standard one, an interval below it that it does not; any other, and fewer than three
    seeds, settle nothing.
    """
    rows = comparisons[comparisons["comparison"] == f"{recurrent} − {standard}"].drop_duplicates("data")
    if rows.empty:
        return f"No run has compared **{recurrent}** with **{standard}** yet."
    settled = rows[rows["n_seeds"] >= FEWEST_SEEDS]  # an interval of fewer seeds knows too little of new ones
    replaced = settled[settled["low"] > -margin]["data"].tolist()
    fell_short = settled[settled["high"] < -margin]["data"].tolist()
    open_ = rows[~rows["data"].isin(replaced + fell_short)]["data"].tolist()
    first = rows.iloc[0]
    columns = ["parameters", "non_embedding_parameters", "forward_flops", "ms_median", "ms_per_text"]
    cost = runs[runs["data"] == first["data"]].drop_duplicates("key").groupby("model")[columns].median()
    ratio = cost.loc[recurrent] / cost.loc[standard]
    lines = [
        f"On **{first['data']}**, {verdict(first)}",
        f"**{recurrent}** holds **{ratio['parameters']:.0%}** of the parameters "
        f"({ratio['non_embedding_parameters']:.0%} outside the token table), "
        f"does **{ratio['forward_flops']:.0%}** of the arithmetic, and takes **{ratio['ms_median']:.0%}** of the time "
        f"for one text ({ratio['ms_per_text']:.0%} in full batches).",
        "",
        f"Does it replace the deeper encoder? Yes where the whole interval lies above a loss of {100 * margin:g} percentage "
        f"point{'' if margin == 0.01 else 's'}, no where it lies below; fewer than {FEWEST_SEEDS} seeds settle nothing:",
        "",
    ]
    narrowly = settled[settled["data"].isin(replaced) & (settled["low_without"] <= -margin)].set_index("data")["low_without"]
    for where, verb in ((replaced, "yes"), (fell_short, "no"), (open_, "not settled by these runs")):
        if where:
            lines.append(f"- **{verb}**: {', '.join(where)}")
    for data, low in narrowly.items():
        lines.append(f"- the yes on {data} is a narrow one: with some seed left out the interval begins at {points(low)}")
    layers, passes, width = map(int, recurrent.removeprefix("recurrent-").split("x"))
    short, tall = f"standard-{layers}x{width}", f"standard-{layers * passes}x{width}"
    for question, a, b in (
        ("What do the extra passes buy? At the same width and the same parameters,", recurrent, short),
        ("What would as many layers of their own have bought? At the same width,", tall, short),
        ("And without a neural network?", standard, COUNTING),
        ("", recurrent, COUNTING),
    ):
        found = comparisons[comparisons["comparison"] == f"{a} − {b}"]
        if not found.empty:
            lines += ["", f"{question} {verdict(found.iloc[0])}".strip()]
    return "\n".join(lines)


def reached(runs: pd.DataFrame, model: str, value: str, aim: float) -> str:
    """One sentence on whether a model's mean ``value`` (0..1) over its runs reaches an aim, with every run beside it."""
    own = runs.loc[runs["model"] == model, value]
    verb = "reaches" if own.mean() >= aim else "does not reach"
    each = ", ".join(f"{score:.3f}" for score in own)
    return f"**{model}** {verb} the aim of {aim:.2f} on average: {value} {own.mean():.3f} (n = {len(own)}: {each})."


def _origin(runs: pd.DataFrame) -> str:
    """What the models had read before they were trained here."""
    pretrained = runs.loc[runs["family"] == "pretrained", "model"].unique()
    if not len(pretrained):
        return "- All encoders are trained from scratch; none has been pretrained."
    return (
        f"- {', '.join(pretrained)} start{'s' if len(pretrained) == 1 else ''} from weights that others trained on other "
        "texts, and whether those held any of the test texts is not known; all other encoders are trained from scratch."
    )


def limits(runs: pd.DataFrame) -> str:
    """What the runs at hand cannot tell, as a Markdown list computed from them."""
    seeds = runs.drop_duplicates("key").groupby(["data", "model"])["seed"].nunique()
    devices = sorted(set(runs["device"] + " (" + runs["dtype"] + ")"))
    timed = runs.dropna(subset="latency_threads")
    clocks = timed.get("latency_device", pd.Series(np.nan, timed.index))  # runs of long ago do not say where
    threads = sorted(timed.loc[clocks.isna(), "latency_threads"].unique())
    texts = [f"on {name}" for name in sorted(clocks.dropna().unique())]
    texts += [f"with {count:.0f} thread{'s' if count != 1 else ''}" for count in threads]
    lines = [
        f"- The fewest seeds behind a number are {seeds.min()}, the most {seeds.max()}"
        + ("; one seed has no interval, and its differences may be noise." if seeds.min() == 1 else "."),
        f"- Training was timed on {', '.join(devices)}, texts {' or '.join(texts)}; no other device was measured.",
        f"- Trained on {', '.join(runs['data'].unique())}. Nothing is claimed for other texts.",
        _origin(runs),
    ]
    if absent := [what for study, what in PARTS.items() if study not in set(runs["study"])]:
        lines.append(f"- Not run at this size: {'; '.join(absent)}.")
    if runs["data"].str.startswith("embedded").any():
        lines.append(
            "- The embedded texts come from a generator: they show that the machinery works, not how people write."
        )
    return "\n".join(lines)
