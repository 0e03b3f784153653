"""Titles of figures that state what was found, in a line. Each is computed from the table that the figure draws.

A title says that one model leads another only where the paired interval excludes zero. Where there is no interval, it says how
many seeds or fits there are. Notebooks import this module itself. A title names an id; the figure writes the name
(:mod:`rtxstudy.names`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from rtxstudy.evaluation.statistics import FEWEST_SEEDS, mean_interval
from rtxstudy.numbers import between, counted, number, points, signed

# ---------------------------------------- which model is more accurate


def accuracy(pair: Mapping[str, Any], of: str = "accuracy") -> str:
    """Whether the model with the highest mean leads the next one; ``of``: what is compared, in words.

    ``pair``: of :func:`rtxstudy.evaluation.comparisons.two_best` or ``two_best_over_splits``.
    """
    best, rival = pair["comparison"].split(" − ")
    apart = f"{100 * pair['difference']:.1f} points".replace("-", "−")
    if pair["fits"] == 2:
        return f"{best} has the highest {of}, {apart} above {rival} (one fit each)"
    if pair["n_seeds"] < FEWEST_SEEDS:
        return f"{best} has the highest {of}, {apart} above {rival} ({_seeds([pair['n_seeds']])})"
    if _shown(pair):
        return f"{_leads(pair)} in {of} ({signed(pair['low'])} to {signed(pair['high'])})"
    return f"No difference in {of} is shown between the two highest, {best} and {rival}"


def by_length(differences: pd.DataFrame) -> str:
    """Whether one of two models leads on the shortest or on the longest texts.

    ``differences``: rows of :func:`rtxstudy.evaluation.comparisons.compare` of one pair, whose ``data`` ends with the length.
    """
    rows = [(row, row["data"].rpartition(" ")[2]) for row in differences.to_dict("records")]
    unsettled = [length for row, length in rows if not _shown(row)]
    said = [f"{_leads(row)} on the {length} texts" for row, length in rows if _shown(row)]
    if unsettled:
        a, b = differences["comparison"].iloc[0].split(" − ")
        start = "no" if said else "No"
        said.append(f"{start} difference is shown between {a} and {b} on the {' and on the '.join(unsettled)} texts")
    return "; ".join(said)


def differences(table: pd.DataFrame, against: str) -> str:
    """How many changes differ from a base. ``table``: ``low``, ``high``, ``n_seeds``."""
    better = ((table["low"] > 0) & (table["n_seeds"] >= FEWEST_SEEDS)).sum()
    worse = ((table["high"] < 0) & (table["n_seeds"] >= FEWEST_SEEDS)).sum()
    return f"Of {counted(len(table), 'change')} to {against}, {better or 'none'} {_is(better)} better and {worse or 'none'} worse"


# ---------------------------------------- sizes, data and costs


def frontier(table: pd.DataFrame, on: pd.Series, cost: str) -> str:
    """Who lies on the frontier. ``table``: ``model``, ``family``, ``n``; ``on``: whether each does; ``cost``: in words."""
    families = table.loc[on, "family"].value_counts()
    named = " and ".join(f"{n} {family}" for family, n in families.items())
    lie = "lies" if on.sum() == 1 else "lie"
    return f"{on.sum()} of {len(table)} encoders {lie} on the frontier of accuracy and {cost}: {named} ({_seeds(table['n'])})"


def spread(table: pd.DataFrame) -> str:
    """How far the cells of a grid are apart. ``table``: ``mean``, ``n``."""
    apart = 100 * (table["mean"].max() - table["mean"].min())
    return f"The highest and the lowest accuracy of {len(table)} encoders are {apart:.1f} points apart ({_seeds(table['n'])})"


def bubble(table: pd.DataFrame) -> str:
    """Whether accuracy goes with time and with size, as Spearman's correlations.

    ``table``: ``mean``, ``ms_median``, ``parameters``, ``n``.
    """
    costs = {"time": "ms_median", "parameters": "parameters"}
    with_ = [f"{number(table['mean'].corr(table[cost], method='spearman'), '.2f')} with {word}" for word, cost in costs.items()]
    return f"The rank correlation of accuracy is {' and '.join(with_)} ({len(table)} encoders, {_seeds(table['n'])})"


def by_size(table: pd.DataFrame) -> str:
    """What more training texts gain. ``table``: ``model``, ``train_rows``, ``mean``."""
    ends = table.sort_values("train_rows").groupby("model", sort=False)["mean"].agg(["first", "last"])
    least, most = table["train_rows"].min(), table["train_rows"].max()
    return f"From {least:,} to {most:,} texts the encoders gain {between(100 * (ends['last'] - ends['first']), '.0f')} points"


def carried(table: pd.DataFrame, home: str, away: str) -> str:
    """How much accuracy changes from home to away. ``table``: ``model``, ``tested_on``, ``mean``."""
    means = table.pivot_table(index="model", columns="tested_on", values="mean")
    return f"From {home} to {away} accuracy changes by {between(100 * (means[away] - means[home]), '+.0f')} points"


def learning(curves: pd.DataFrame) -> str:
    """Whether the validation loss rises before the training ends, as a mean over seeds.

    ``curves``: ``model``, ``seed``, ``epoch``, ``val_loss``; one row per evaluation. Only epochs that every seed
    reached count, as in the figure.
    """
    turns = {}
    for model, part in curves.groupby("model", sort=False):
        loss = part.groupby("epoch")["val_loss"].agg(["mean", "size"])
        loss = loss.loc[loss["size"] == part["seed"].nunique(), "mean"]
        turns[model] = (loss.idxmin(), loss.index[-1])
    rising = [model for model, (lowest, last) in turns.items() if lowest < last]
    if len(turns) > 1:
        return f"The mean validation loss rises before the end for {len(rising) or 'none'} of {len(turns)} encoders"
    lowest, last = next(iter(turns.values()))
    if rising:
        return f"The mean validation loss is lowest at epoch {lowest:.2g} of {last:.2g} and rises after that"
    return f"The mean validation loss is lowest at the end of the training (epoch {last:.2g})"


# ---------------------------------------- passes


def exits(table: pd.DataFrame) -> str:
    """Whether early exit is faster than a fixed number of passes; ``table``: of ``exits.exit_differences``."""
    beaten = int((table["fixed_throughput"] >= table["throughput"]).sum())
    seeds = f" ({_seeds(table['n_seeds'])})" if table["n_seeds"].min() < FEWEST_SEEDS else ""
    which = f"{beaten or 'none'} of {counted(len(table), 'early exit')}"
    return f"For {which}, a fixed number of passes is as fast at no lower mean accuracy{seeds}"


def bounded_exits(table: pd.DataFrame) -> str:
    """Whether exits of bounded risk are faster than fixed passes; ``table``: of ``bounded_exits.against_all_passes``."""
    bounded = table[table["bound"].isin(("controlled", "certified"))]
    faster = int((bounded["beside_fixed"] > 1).sum())
    seeds = f" ({_seeds(table['n_seeds'])})" if table["n_seeds"].min() < FEWEST_SEEDS else ""
    which = f"{faster or 'None'} of {counted(len(bounded), 'bounded exit')} {_is(faster)}"
    return f"{which} faster than the fixed passes that validation texts choose{seeds}"


def worth(fits: pd.DataFrame) -> str:
    """What the data say of φ; ``fits``: of :func:`rtxstudy.evaluation.loop_tables.worth`."""
    title = "; ".join(f"on {fit['data']}, {_phi(fit)}" for fit in fits.to_dict("records"))
    return title[0].upper() + title[1:]


def _phi(fit: Mapping[str, Any]) -> str:
    low, high = fit["low"], fit["high"]
    said = (
        (not fit["learned"], "φ is withheld"),
        (math.isnan(fit["phi"]), "φ is not determined"),
        (low > 1, "a pass is worth more than a layer"),
        (high < 0, "more passes lower the accuracy"),
        (low > 0 and high < 1, "a pass helps, but less than a layer"),
        (low > 0, "a pass helps"),
        (True, "more passes are not shown to help"),
    )
    words = next(words for holds, words in said if holds)
    few = fit["seeds"] < FEWEST_SEEDS and words.startswith(("a pass", "more passes"))
    return f"{words} ({_seeds([fit['seeds']])})" if few else words


def composition(table: pd.DataFrame) -> str:
    """What most passes gain over fewest on the texts of most operators, in the first arm; paired by seed.

    ``table``: ``arm``, ``depth`` (operators), ``iterations`` (passes), ``seed``, ``accuracy``, as
    :func:`rtxstudy.evaluation.worth.by_composition` gives them.
    """
    own = table[(table["arm"] == table["arm"].iloc[0]) & (table["depth"] == table["depth"].max())]
    by_passes = own.pivot(index="seed", columns="iterations", values="accuracy")
    few, many = by_passes.columns[0], by_passes.columns[-1]
    gain, low, high, n = mean_interval((by_passes[many] - by_passes[few]).dropna())
    ends = _seeds([n]) if n < FEWEST_SEEDS else f"{signed(low)} to {signed(high)} over {n} seeds"
    texts = f"texts with {counted(own['depth'].iloc[0], 'operator')}"
    return f"On {texts}, {many} passes instead of {few} change accuracy by {points(gain)} ({ends})"


def states(table: pd.DataFrame) -> str:
    """Whether tokens become one and whether the state still moves, after the last pass.

    ``table``: ``model``, ``iteration``, ``token_correlation``, ``distance``, as ``figures.loop.states_by_pass`` takes them.
    """
    last = table[table["iteration"] == table["iteration"].max()].groupby("model")[["token_correlation", "distance"]].mean()
    alike, moved = between(last["token_correlation"], ".2f"), between(100 * last["distance"], ".0f")
    return f"After the last pass a text's tokens correlate by {alike}, and the last step is {moved} % of the state"


# ---------------------------------------- embeddings


def retrieval(differences: pd.DataFrame, original: str) -> str:
    """Whether the last student finds as many neighbours of a text's own kind as the original, after its distillation.

    ``differences``: of :func:`rtxstudy.evaluation.converted_embeddings.differences`.
    """
    own = differences[differences["comparison"].str.endswith(f" distilled − {original}")]
    own = own[own["comparison"] == own["comparison"].iloc[-1]]
    said = []
    for row in own.to_dict("records"):
        kind = row["panel"].partition(" · ")[0]
        more = f"{100 * abs(row['difference']):.1f} points {'more' if row['difference'] > 0 else 'fewer'}"
        told = f"finds {more}" if row["low"] > 0 or row["high"] < 0 else "is not shown to differ"
        said.append(f"{told} for {kind}")
    return f"Against {original}, the distilled loop {' and '.join(said)}"


# ---------------------------------------- pieces


def _shown(row: Mapping[str, Any]) -> bool:
    """Whether three seeds or more and an interval without zero show a difference."""
    return row["n_seeds"] >= FEWEST_SEEDS and (row["low"] > 0 or row["high"] < 0)


def _leads(row: Mapping[str, Any]) -> str:
    """Who leads whom by how much, in a row whose difference is shown."""
    names = row["comparison"].split(" − ")
    leader, rival = names if row["difference"] > 0 else reversed(names)
    return f"{leader} leads {rival} by {100 * abs(row['difference']):.1f} points"


def _seeds(counts: Any) -> str:
    """``one seed each``, ``2 seeds each``, ``1 to 3 seeds each``."""
    least, most = min(counts), max(counts)
    if least == most:
        return "one seed each" if most == 1 else f"{most} seeds each"
    return f"{least} to {most} seeds each"


def _is(n: int) -> str:
    return "is" if n <= 1 else "are"
