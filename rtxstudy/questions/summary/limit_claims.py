"""What does the study not say?"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from rtxstudy.claims import Claim, claim, first, listed
from rtxstudy.names import short
from rtxstudy.numbers import between


def limits(findings: Mapping[str, pd.DataFrame]) -> list[Claim]:
    """What the runs of the study cannot show; ``findings``: of :func:`rtxstudy.published.findings`."""
    runs, pairs = findings["runs"], findings["comparisons"]
    searched = pairs.loc[pairs["study"] == "recipe_search", "comparison"]
    seeds = _seeds(runs)
    graphics = ~runs["device"].str.startswith("CPU")
    models = runs.loc[runs["family"] == "pretrained", "model"]
    return [
        claim(
            "- Encoders whose difference has an interval have {seeds} seeds each. Where three seeds disagree, it is wide.",
            seeds=between(seeds, "d"),
        ),
        first(
            claim(
                "- Nothing ran on a GPU: all times are of a CPU, and say nothing about a GPU.",
                holds=not graphics.any(),
                n=len(runs),
            ),
            claim(
                "- {gpu} of the {all} runs of this report were trained on a GPU ({name}); those of the recipe search are not "
                "counted. All times are of a CPU, except the one beside the proposal's claim on the time of a training.",
                gpu=int(graphics[~runs["key"].duplicated()].sum()),
                all=runs["key"].nunique(),
                name=listed(sorted(set(runs.loc[graphics, "device"]))) or None,
            ),
        ),
        claim(
            "- All texts are English, and every encoder that was trained is small: at most {millions:.0f} million parameters.",
            millions=runs["parameters"].max() / 1e6,
        ),
        first(
            claim(
                "- On all texts of SST-2 one recipe trains every encoder from scratch, for one epoch. There {encoders:word} "
                "encoders had a search for recipes of their own. On other data no encoder had one.",
                holds=not searched.empty,
                encoders=searched.str.split(" − ").explode().nunique(),
            ),
            claim(
                "- On all texts of SST-2 one recipe trains every encoder from scratch, for one epoch. With a recipe of its own, "
                "or with more epochs, an encoder may do better.",
                holds=(runs.loc[(runs["data"] == "sst2") & (runs["recipe"] == "default"), "most_epochs"] <= 1).all(),
                n=int(((runs["data"] == "sst2") & (runs["recipe"] == "default")).sum()) or None,
            ),
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


def _seeds(runs: pd.DataFrame) -> pd.Series:
    """Of each encoder on each data set the number of its seeds."""
    return runs.drop_duplicates("key").groupby(["data", "model"])["seed"].nunique()


def in_short(findings: Mapping[str, pd.DataFrame]) -> Claim:
    """The limits in a sentence; ``findings``: of :func:`rtxstudy.published.findings`."""
    runs = findings["runs"]
    seeds = _seeds(runs)
    return claim(
        "The texts are English, {usual:word} seeds are usual, no encoder that was trained has more than {millions:.0f} million "
        "parameters, and the times are of a CPU. *Less accurate* and *ahead* rest on 95 % intervals, which the findings give.",
        holds=bool(seeds.mode().iloc[0] == seeds.median()),
        usual=int(seeds.mode().iloc[0]),
        millions=runs["parameters"].max() / 1e6,
    )


def of_parts(parts: pd.DataFrame) -> list[Claim]:
    """Data sets that are a part of the Hub's; ``parts``: of :func:`rtxstudy.questions.audit.audit_claims.parts`."""
    return [
        claim(
            "- Some data are a part of the published ones: {told}.",
            holds=len(parts) > 0,
            told=listed(list(dict.fromkeys(short(data) for data in parts["data"]))) or None,
        )
    ]


def made_up(data: pd.Series) -> str:
    """A banner for a report whose texts are all generated; empty for others."""
    if not data.str.startswith("embedded").all():
        return ""
    return (
        "> **These texts are generated.** The report shows how the study works, in tables and figures; its sentences are written "
        "for the full study. Nothing here is about how people write."
    )
