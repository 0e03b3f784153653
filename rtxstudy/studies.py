"""The named studies: each turns a profile into the list of runs that answers one question."""

from __future__ import annotations

from collections.abc import Callable

from rtxlib.errors import InputError, nearest
from rtxlib.runs.spec import RunSpec
from rtxlib.runs.store import hashed
from rtxstudy.profiles.profile import Profile
from rtxstudy.questions.accuracy.accuracy_runs import (
    arms_of_width,
    baseline,
    data_size,
    domains,
    grid,
    matched,
    random_depth,
    recurrent,
    text_length,
    transfer,
    width_vs_depth,
)
from rtxstudy.questions.composed.composed_runs import (
    composed,
    composed_random_depth,
    composed_shape,
    composed_shapes,
    composed_trio,
)
from rtxstudy.questions.depth_gain.depth_runs import (
    MADE,
    OWN_TEXT,
    REGIMES,
    SCRATCH,
    WITHOUT_WEIGHTS,
    Trio,
    conversions,
    converted,
    distillations,
    leaving_early,
    trios,
    where_depth_pays,
)
from rtxstudy.questions.domains.further_runs import cross_domain, elsewhere, on_task, sentiment_tasks, stars, unified
from rtxstudy.questions.forms.loop_runs import depths, form, forms, shape, shapes, variants
from rtxstudy.questions.forms.one_switch_runs import component_arms, plan_b_arms, position_arms
from rtxstudy.questions.pretrained.pretrained_runs import finetuning, spam
from rtxstudy.questions.recipes.recipe_runs import finals, first_round, published_protocol

__all__ = [
    "MADE",
    "OWN_TEXT",
    "REGIMES",
    "SCRATCH",
    "STUDIES",
    "WITHOUT_WEIGHTS",
    "Trio",
    "arms_of_width",
    "baseline",
    "component_arms",
    "composed",
    "composed_random_depth",
    "composed_shape",
    "composed_shapes",
    "composed_trio",
    "conversions",
    "converted",
    "cross_domain",
    "data_size",
    "depths",
    "distillations",
    "domains",
    "elsewhere",
    "finals",
    "finetuning",
    "first_round",
    "form",
    "forms",
    "grid",
    "key_of",
    "leaving_early",
    "matched",
    "on_task",
    "plan_b_arms",
    "position_arms",
    "published_protocol",
    "random_depth",
    "recurrent",
    "sentiment_tasks",
    "shape",
    "shapes",
    "spam",
    "specs_of",
    "stars",
    "text_length",
    "transfer",
    "trios",
    "unified",
    "variants",
    "where_depth_pays",
    "width_vs_depth",
]


def _all(arms: Callable[[Profile], dict[str, list[RunSpec]]]) -> Callable[[Profile], list[RunSpec]]:
    """The runs of all arms of a study, one arm after the other."""
    return lambda profile: [spec for specs in arms(profile).values() for spec in specs]


# Notebook → the studies that it runs. `rtx report --dry-run` counts their runs.
STUDIES: dict[str, dict[str, Callable[[Profile], list[RunSpec]]]] = {
    "02_baseline": {
        "baseline": baseline,
        "first_round": first_round,
        "finals": finals,  # at most these, as long as the first round is missing
        "published_protocol": published_protocol,
    },
    "03_recurrent": {
        "baseline": baseline,
        "recurrent": recurrent,
        "variants": variants,
        "depths": depths,
        "random_depth": random_depth,
        "elsewhere": elsewhere,
        "plan_b": _all(plan_b_arms),
    },
    "11_what_passes_do": {"variants": variants, "depths": depths, "random_depth": random_depth},
    "04_sensitivity": {
        "grid": grid,
        "data_size": data_size,
        "text_length": text_length,
        "longer_texts": _all(position_arms),
    },
    "05_width_vs_depth": {"width_vs_depth": width_vs_depth, "components": _all(component_arms)},
    "06_domain_classification": {
        "domains": domains,
        "transfer": transfer,
        "unified": unified,
        "stars": stars,
        "cross_domain": cross_domain,
    },
    "07_pretrained_encoders": {"spam": spam, "finetuning": finetuning, "baseline": baseline, "recurrent": recurrent},
    "09_where_depth_pays": {
        "where_depth_pays": where_depth_pays,
        "converted": converted,
        "conversions": conversions,
        "composed": composed,
    },
    "12_what_a_loop_costs": {
        "where_depth_pays": where_depth_pays,
        "converted": converted,
        "conversions": conversions,
        "leaving_early": leaving_early,
    },
}


def key_of(study: str, profile: Profile) -> str:
    """A hash of the runs of a study, under which a table that is made of them is kept."""
    return hashed({"runs": [spec.canonical() for spec in specs_of(study, profile)]})


def specs_of(study: str, profile: Profile) -> list[RunSpec]:
    """The runs of a study by its name in :data:`STUDIES`. Raises InputError for an unknown name."""
    studies = {name: make for of_notebook in STUDIES.values() for name, make in of_notebook.items()}
    if study not in studies:
        raise InputError(f"There is no study '{study}'; there are {', '.join(studies)}.{nearest(study, studies)}")
    return studies[study](profile)
