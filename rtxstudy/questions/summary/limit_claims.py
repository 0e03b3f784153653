"""What does the study not say, and what was not run?"""

from __future__ import annotations

import pandas as pd

from rtxstudy.claims import Claim, claim, first, listed
from rtxstudy.names import short
from rtxstudy.numbers import between

NOT_RUN = {  # field of a profile → the experiment that it switches on
    "search": "the second round of the search for each encoder's recipe",
    "least_steps": "parts of the data, with as many steps on each",
    "component_seeds": "one component changed at a time",
    "plan_b_seeds": "the proposal's plan B",
}


def limits(runs: pd.DataFrame) -> list[Claim]:
    """What these runs cannot show."""
    seeds = runs.drop_duplicates("key").groupby(["data", "model"])["seed"].nunique()
    graphics = runs["device"].str.contains("cuda|gpu|NVIDIA", case=False)
    models = runs.loc[runs["family"] == "pretrained", "model"]
    return [
        claim(
            "- An encoder of these tables has {seeds} seeds. One seed has no interval, and three seeds give a wide one.",
            seeds=between(seeds, "d"),
        ),
        first(
            claim(
                "- Nothing ran on a GPU: all times are of a CPU, and say nothing about a GPU.",
                holds=not graphics.any(),
                n=len(runs),
            ),
            claim(
                "- {gpu} of the {all} runs behind this report were trained on a GPU ({name}). Several shared it, so no time of "
                "theirs "
                "is shown: all times are of a CPU.",
                gpu=int(graphics[~runs["key"].duplicated()].sum()),
                all=runs["key"].nunique(),
                name=listed(sorted(set(runs.loc[graphics, "device"]))) or None,
            ),
        ),
        claim(
            "- All texts are English and short, and every encoder is small: at most {millions:.0f} million parameters.",
            millions=runs["parameters"].max() / 1e6,
        ),
        claim(
            "- One recipe trains every encoder from nothing for one epoch on SST-2. With a recipe of its own, or with "
            "more epochs, an encoder may do better.",
            holds=(runs.loc[(runs["data"] == "sst2") & (runs["recipe"] == "default"), "most_epochs"] <= 1).all(),
            n=int(((runs["data"] == "sst2") & (runs["recipe"] == "default")).sum()) or None,
        ),
        claim(
            "- MiniLM and the encoders made of it start from published weights. Its makers tuned it on pairs that "
            "include SNLI and MultiNLI, and whether its texts include some of our test texts is not known.",
            holds=len(models) > 0,
            n=len(models),
        ),
        claim(
            "- On generated texts a result says nothing about how people write. They show that a loop *can* keep "
            "depth, not where it does.",
            holds=runs["data"].eq("embedded").any(),
            n=int(runs["data"].eq("embedded").sum()) or None,
        ),
    ]


def of_parts(parts: pd.DataFrame) -> list[Claim]:
    """Data sets that are a part of the Hub's; ``parts``: of :func:`rtxstudy.questions.audit.audit_claims.parts`."""
    return [
        claim(
            "- Some data are a part of the published ones: {told}.",
            holds=len(parts) > 0,
            told=listed([f"{short(one.data)}: {one.note}" for one in parts.itertuples()]) or None,
        )
    ]


def not_run(table: pd.DataFrame) -> list[Claim]:
    """What was asked for and not run; ``table``: of :func:`rtxstudy.not_run.remaining`."""
    if table.empty:
        return []
    experiments = readable(table)
    return [
        claim(
            "**{runs:,} trainings of this study were not run**, about {hours:,.0f} core-hours: {named}.",
            holds=table["runs"].sum() > 0,
            runs=int(table["runs"].sum()),
            hours=table["core_hours"].sum(),
            named=listed(experiments["experiment"].tolist()) or None,
        )
    ]


def missing(table: pd.DataFrame) -> list[Claim]:
    """The same in a line."""
    if table.empty:
        return []
    return [
        claim(
            "**Not run:** {runs:,} trainings ([which](docs/findings.md#what-was-not-run)).",
            holds=table["runs"].sum() > 0,
            runs=int(table["runs"].sum()),
        )
    ]


def readable(table: pd.DataFrame) -> pd.DataFrame:
    """A table of :func:`rtxstudy.not_run.remaining`; fields of one experiment share a row."""
    named = table.assign(experiment=table["field"].map(NOT_RUN))
    last = {"notebooks": "first", "data": "first", "models": "max", "seeds": "max", "runs": "sum", "core_hours": "sum"}
    experiments = named.groupby("experiment", sort=False).agg(last).reset_index()
    experiments["core_hours"] = experiments["core_hours"].map(lambda hours: "under 0.1" if hours < 0.05 else f"{hours:.1f}")
    return experiments.rename(columns={"core_hours": "core-hours", "models": "encoders"})


def made_up(data: pd.Series) -> str:
    """A banner for a report whose texts are all generated; empty for others."""
    if not data.str.startswith("embedded").all():
        return ""
    return (
        "> **These texts are generated.** The report shows how the study works, in tables and figures; its sentences are written "
        "for the full study. Nothing here is about how people write."
    )
