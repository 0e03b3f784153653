"""The first screen of the report: five lines, and the titles of its figures. Each line ends in a link to its evidence."""

from __future__ import annotations

import pandas as pd

from rtxstudy.evaluation.statistics import FEWEST_SEEDS
from rtxstudy.words.depth_gain import named, replacing
from rtxstudy.numbers import counted, margin_points, points, signed

DEPTH = "09_where_depth_pays.ipynb#Where-does-depth-pay,-and-what-does-a-loop-keep?"
FOREST = "99_report.ipynb#Which-differences-are-larger-than-the-noise?"
MODELS = "99_report.ipynb#The-models-at-a-glance"
USE = "09_where_depth_pays.ipynb#So-which-encoder-should-you-use?"
LIMITS = "99_report.ipynb#What-does-this-not-say?"


def five_lines(
    gains: pd.DataFrame, glance: pd.DataFrame, verdicts: pd.DataFrame, standard: str, recurrent: str, data: str, margin: float
) -> str:
    """Where a loop replaces depth, what is most accurate, what is best for its cost, what is open, and what to use.

    ``gains``: rows of :func:`rtxstudy.evaluation.depth_gain.depth_gain`. ``glance`` and ``verdicts``: of
    :mod:`rtxstudy.evaluation.glance`. ``data``: the headline data. ``margin``: what a replacement may lose.
    """
    lines = [
        ("Does a loop replace depth?", _replaces(gains, margin), "evidence", DEPTH),
        ("The most accurate:", _best(glance, verdicts, standard, data), "models", MODELS),
        ("The best for its cost:", _cheapest(glance, data, margin), "models", MODELS),
        ("Not settled:", _open(gains, verdicts, standard, recurrent, margin), "comparisons", FOREST),
        ("What to use:", _use(gains, glance, margin), "why", USE),
    ]
    return "\n".join(f"- **{head}** {said} [{link}]({target})" for head, said, link, target in lines)


def _settled(gains: pd.DataFrame) -> pd.DataFrame:
    return gains[(gains["n_seeds"] >= FEWEST_SEEDS) & gains["learned"]]


def _percent(share: float, decimals: int = 1) -> str:
    return f"{100 * share:.{decimals}f}\N{NO-BREAK SPACE}%"


def _replaces(gains: pd.DataFrame, margin: float) -> str:
    rows = _settled(gains)
    if rows.empty:
        return "Not shown by these runs: no comparison has three seeds and an encoder that learned."
    pays, tasks = rows[rows["kept"].notna()], counted(rows["data"].nunique(), "task")
    if pays.empty:
        return f"There is nothing to replace: no gain from more layers is shown on {tasks}."
    head = f"Depth pays on {pays['data'].nunique()} of {tasks}: {', '.join(pays['data'].unique())}."
    as_good = pays[replacing(pays, margin)]
    if as_good.empty:
        return f"{head} No loop is shown to gain and to stay within {margin_points(margin)} of the deep encoder there."
    row = as_good.sort_values("sharing_gain").iloc[-1]
    return (
        f"{head} On {row['data']} a loop {row['regime']} replaces the deep encoder: {points(row['sharing_gain'])} "
        f"({signed(row['sharing_low'])} to {signed(row['sharing_high'])}), with "
        f"{_percent(row['loop_with_table'] / row['deep_with_table'], 0)} of its parameters "
        f"({_percent(row['loop_parameters'] / row['deep_parameters'], 0)} without the token table)."
    )


def _best(glance: pd.DataFrame, verdicts: pd.DataFrame, standard: str, data: str) -> str:
    learned = glance[glance["learned"]]
    if learned.empty:
        return f"On {data} no model is above the most frequent label, so none is the best."
    best = learned.iloc[0]
    said = f"{best['model']}, {_percent(best['mean'])} on {data}, as a mean of {counted(int(best['n']), 'seed')}."
    near = learned.iloc[1:][learned["high"].iloc[1:] >= best["low"]]
    if len(near):
        said += f" It is not shown to be the best: its interval over seeds overlaps with that of {', '.join(near['model'])}."
    pair = verdicts[(verdicts["comparison"] == f"{best['model']} − {standard}") & (verdicts["data"] == data)]
    if len(pair) and pair.iloc[0]["verdict"] == "first":
        row = pair.iloc[0]
        said += f" Compared with {standard}: {points(row['difference'])} ({signed(row['low'])} to {signed(row['high'])})."
    return said


def _fastest(glance: pd.DataFrame, margin: float) -> pd.Series | None:
    """Of the models without pretraining, the fastest in batches whose validation accuracy is within the margin of the best."""
    own = glance[(glance["family"] != "pretrained") & glance["learned"] & glance["ms_in_batch"].notna()]
    near = own[own["validation"] >= own["validation"].max() - margin]
    return None if near.empty else near.sort_values("ms_in_batch").iloc[0]


def _cheapest(glance: pd.DataFrame, data: str, margin: float) -> str:
    row = _fastest(glance, margin)
    if row is None:
        return "No model without pretraining is above the most frequent label, or none was timed."
    return (
        f"{row['model']}, {_percent(row['mean'])} on {data}, in {row['ms_in_batch']:.2g} ms a text in full batches. It is the "
        f"fastest model without pretraining whose validation accuracy is within {margin_points(margin)} of the best one's."
    )


def _open(gains: pd.DataFrame, verdicts: pd.DataFrame, standard: str, recurrent: str, margin: float) -> str:
    pair = verdicts[verdicts["comparison"] == f"{recurrent} − {standard}"]
    unsettled = pair[(pair["n_seeds"] < FEWEST_SEEDS) | ((pair["low"] <= -margin) & (pair["high"] >= -margin))]
    parts = []
    if len(unsettled):
        where = ", ".join(unsettled["data"])
        parts.append(f"whether the recurrent encoder is within {margin_points(margin)} of the standard one on {where}")
    pays = _settled(gains)
    pays = pays[pays["kept"].notna() & (pays["sharing_low"] <= -margin) & (pays["sharing_high"] >= -margin)]
    if len(pays):
        parts.append(f"whether a loop is within {margin_points(margin)} of the deep encoder on {named(pays)}")
    return f"{'; '.join(parts)[:1].upper()}{'; '.join(parts)[1:]}." if parts else "No comparison of the loop with depth is open."


def _use(gains: pd.DataFrame, glance: pd.DataFrame, margin: float) -> str:
    learned = glance[glance["learned"]]
    if learned.empty:
        return "Nothing follows from these runs."
    parts = []
    if learned.iloc[0]["family"] == "pretrained":
        parts.append("Fine-tune a pretrained encoder if accuracy counts.")
    fast = _fastest(glance, margin)
    if fast is not None:
        words = "Count words ({})" if fast["family"] == "classical" else "Take {}"
        parts.append(f"{words.format(fast['model'])} if time counts.")
    rows = _settled(gains)
    pays = rows[rows["kept"].notna()]
    if replacing(pays, margin).any():
        parts.append("Take a loop where depth pays and memory counts.")
    flat = rows[rows["kept"].isna() & (rows["depth_high"] < margin)]
    if len(flat):
        parts.append(f"Take fewer layers where the deeper encoder is less than {margin_points(margin)} better: {named(flat)}.")
    return " ".join(parts)


def glance_title(glance: pd.DataFrame, data: str) -> str:
    """What the figure of the models found, in a line."""
    learned = glance[glance["learned"]]
    if learned.empty:
        return f"No model is above the most frequent label on {data}"
    own = learned[learned["family"] != "pretrained"]
    if learned.iloc[0]["family"] == "pretrained" and len(own):
        gap = 100 * (learned.iloc[0]["mean"] - own.iloc[0]["mean"])
        head = f"The best pretrained encoder is {gap:.1f} points above the best model without pretraining, {own.iloc[0]['model']}"
        return f"{head}; those without lie within {_spread(own)}"
    return f"The models lie within {_spread(learned)} on {data}"


def _spread(rows: pd.DataFrame) -> str:
    return counted(max(1, round(100 * (rows["mean"].max() - rows["mean"].min()))), "point")


def forest_title(verdicts: pd.DataFrame) -> str:
    """How many differences the figure of all comparisons shows, in a line."""
    clear = verdicts["verdict"].isin(["first", "second"]).sum()
    return f"{clear} of {counted(len(verdicts), 'difference')} {'is' if clear == 1 else 'are'} larger than the noise"


def forest(verdicts: pd.DataFrame) -> str:
    """What the figure leaves open, in a sentence for each kind of verdict."""
    many = verdicts["verdict"].value_counts()
    says = {
        "alike": ("shows that the two are alike to within the margin", "show that the two are alike to within the margin"),
        "open": ("is open: its interval contains zero and is wide", "are open: their intervals contain zero and are wide"),
        "few seeds": ("has fewer than three seeds and settles nothing", "have fewer than three seeds and settle nothing"),
        "not learned": (
            "is withheld, because neither model is above the most frequent label",
            "are withheld, because neither model is above the most frequent label",
        ),
    }
    return " ".join(
        f"{counted(int(many[kind]), 'comparison')} {one if many[kind] == 1 else more}."
        for kind, (one, more) in says.items()
        if many.get(kind, 0)
    )


def depth_title(gains: pd.DataFrame) -> str:
    """What the figure of the depth gains found, in a line."""
    rows = _settled(gains)
    pays = rows[rows["kept"].notna()]
    if rows.empty:
        return "No comparison settles where depth pays"
    if pays.empty:
        return f"Depth pays in none of {counted(len(rows), 'comparison')}"
    shown = int((pays["kept_low"] > 0).sum())
    head = f"Depth pays in {len(pays)} of {counted(len(rows), 'comparison')}"
    return f"{head}; in {shown or 'none'} of these a loop is shown to keep some of the gain"


def made_up(data: pd.Series) -> str:
    """A banner for a report whose texts are all generated; empty for others."""
    if not data.str.startswith("embedded").all():
        return ""
    return (
        "> **These texts are generated.** The report shows that the machinery works. Its numbers say nothing about how people "
        "write; the full profile does."
    )
