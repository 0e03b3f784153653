"""Limits of the runs."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rtxstudy.words.numbers import between

SPLITS = {"train": "training", "validation": "validation", "test": "test"}
PARTS = {  # study → what it shows; a report names the studies that its profile leaves out
    "recurrent": "the recurrent encoder beside the standard one (notebook 03)",
    "loop": "what the loop does (03)",
    "sensitivity": "sizes, amounts of data and lengths of text (04)",
    "width_vs_depth": "encoders matched in parameters and in arithmetic (05)",
    "elsewhere": "the encoders on other sentiment data (03)",
    "plan_b": "the proposal's plan B (03)",
    "longer_texts": "texts longer than in training (04)",
    "components": "one component changed at a time (05)",
    "domains": "the domain task (06)",
    "transfer": "sentiment on other texts (06)",
    "unified": "the pooled domains at full size (06)",
    "stars": "Amazon reviews of one star against four and five (06)",
    "cross_domain": "the encoders of each sentiment task on the texts of the others (06)",
    "pretraining": "pretrained encoders (07)",
    "where_depth_pays": "where depth pays (09)",
}

NOT_RUN = {  # field of a profile → the experiment that it switches on
    "depth_tasks": "where depth pays: MultiNLI from nothing, and Yelp with five stars",
    "search": "the search for each encoder's recipe",
    "published": "the published protocol",
    "elsewhere": "Yelp and Amazon from nothing",
    "unified": "domain and sentiment of the pooled texts, at full size",
    "cross_domain": "each of SST-2, Yelp and Amazon tested on the others",
    "grid_data": "the grid of width, layers and passes with more seeds",
    "grid_seeds": "the grid of width, layers and passes with more seeds",
    "least_steps": "parts of the data, with as many steps on each",
    "component_seeds": "one component changed at a time",
    "longer": "texts longer than in training",
    "plan_b_seeds": "the proposal's plan B",
    "stars": "Amazon reviews of one star against four and five",
    "loops": "further weights of the residual across passes",
}


def limits(runs: pd.DataFrame) -> str:
    """What these runs cannot show, as a Markdown list."""
    seeds = runs.drop_duplicates("key").groupby(["data", "model"])["seed"].nunique()
    basis = "1 seed" if seeds.max() == 1 else f"{between(seeds, 'd')} seeds"
    devices = sorted(set(runs["device"] + " (" + runs["dtype"] + ")"))
    timed = runs.dropna(subset="latency_threads")
    timed_on = timed.get("latency_device", pd.Series(np.nan, timed.index))  # old runs record threads instead
    threads = sorted(timed.loc[timed_on.isna(), "latency_threads"].unique())
    clocks = [f"on {name}" for name in sorted(timed_on.dropna().unique())]
    older = f" Some older runs recorded only the number of threads: {', '.join(str(int(n)) for n in threads)}." if threads else ""
    lines = [
        f"- Each number rests on {basis}."
        + (" A number of one seed has no interval, and its differences may be noise." if seeds.min() == 1 else ""),
        f"- Training was timed on {' and on '.join(devices)}. Inference was timed "
        f"{' and '.join(clocks) or 'on a device that was not recorded'}.{older} No other device was measured.",
        f"- The models are trained on {', '.join(runs['data'].unique())}. Nothing is claimed for other texts.",
        _origin(runs),
    ]
    if absent := [what for study, what in PARTS.items() if study not in set(runs["study"])]:
        lines.append(f"- Not part of this profile: {'; '.join(absent)}.")
    if runs["data"].str.startswith("embedded").any():
        lines.append("- The embedded texts come from a generator: results on them say nothing about how people write.")
    return "\n".join(lines)


def not_run(table: pd.DataFrame) -> str:
    """What the experiments of :func:`rtxstudy.not_run.costs` would cost together. Empty for an empty table."""
    if table.empty:
        return ""
    return (
        f"{table['runs'].sum():,} trainings that belong to this study were not run, because they would take about "
        f"{table['core_hours'].sum():,.0f} hours of one processor core. The table names them. The hours are reckoned from the "
        "operations of each training and from the speed of the trainings of the headline comparison."
    )


def _origin(runs: pd.DataFrame) -> str:
    """What the models had read before their training here."""
    pretrained = runs.loc[runs["family"] == "pretrained", "model"].str.split().str[0].unique()
    if not len(pretrained):
        return "- All encoders are trained from scratch."
    return (
        f"- {', '.join(pretrained)} and the encoders made from {'it' if len(pretrained) == 1 else 'them'} start from published "
        "weights. It is not known whether the texts behind these weights include some of the test texts. All other encoders are "
        "trained from scratch."
    )
