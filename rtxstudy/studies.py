"""The named studies: each turns a profile into the list of runs that answers one question."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from rtxlib.data.spec import DataSpec
from rtxlib.errors import InputError, nearest
from rtxlib.models.presets import preset
from rtxlib.runs.distillation import Distillation
from rtxlib.runs.pretraining import Pretraining
from rtxlib.runs.spec import RunSpec
from rtxlib.training.recipe import RECIPES, Recipe
from rtxstudy.profiles import ComposedTask, DepthTask, LoopStudy, Profile

UNSHARED = {"block_sharing": "unshared"}
RANDOM_DEPTH = {"depth_sampling": "uniform"}


def _seeds(profile: Profile, models: Iterable[str], data: DataSpec, seeds: int, **overrides: Any) -> list[RunSpec]:
    """One spec per model and seed."""
    return [RunSpec(model, data, profile.recipe, seed, overrides) for model in models for seed in range(seeds)]


def _both(profile: Profile, data: DataSpec) -> list[RunSpec]:
    """The standard and the recurrent encoder on other data than the headline's."""
    return _seeds(profile, [profile.standard, profile.recurrent], data, profile.arm_seeds)


def baseline(profile: Profile) -> list[RunSpec]:
    """Notebook 02: the standard encoder."""
    return _seeds(profile, [profile.standard], profile.data, profile.seeds)


def recurrent(profile: Profile) -> list[RunSpec]:
    """Notebook 03: the recurrent encoder, with its block shared and unshared."""
    return [
        spec
        for sharing in ({}, UNSHARED)
        for spec in _seeds(profile, [profile.recurrent], profile.data, profile.seeds, **(profile.variant | sharing))
    ]


def forms(loop: LoopStudy) -> dict[str, dict[str, Any]]:
    """Variant name → the ModelConfig fields that it changes."""
    return {
        "from_second": {},  # the study's own loop: a residual from the second pass on
        "unshared": UNSHARED,
        **{residual: {"residual": residual} for residual in ("none", "every", "learned", "damped", "gated")},
        "input_injection": {"input_injection": True},
        "loop_norm": {"loop_norm": True},
        "sandwich": {"norm_placement": "sandwich"},
        "iteration_embedding": {"iteration_embedding": True},
        "conditioning": {"conditioning_size": loop.width},  # a quarter of the feed-forward's inner width
        "prelude_and_coda": {"prelude_layers": 1, "coda_layers": 1},
        "factorised": {"embedding_size": loop.width // 4},
        "random_depth": RANDOM_DEPTH,
    }


def form(loop: LoopStudy, name: str) -> list[RunSpec]:
    """The runs of one of :func:`forms`: one layer, passed ``loop.passes`` times."""
    model = f"recurrent-1x{loop.passes}x{loop.width}"
    return [RunSpec(model, loop.data, loop.recipe, seed, forms(loop)[name]) for seed in range(loop.seeds)]


def variants(profile: Profile) -> list[RunSpec]:
    """Notebook 03: every variant of the loop, in each ablation of the profile."""
    return [spec for loop in profile.loops for name in forms(loop) for spec in form(loop, name)]


def shape(loop: LoopStudy | ComposedTask, layers: int, passes: int) -> list[RunSpec]:
    """Notebooks 03 and 09: a standard encoder (one pass), or a loop that equals a deeper one except for weight sharing.

    Without a residual across passes, N layers passed R times *are* a standard encoder of N·R layers with shared weights.
    """
    if passes == 1:
        model, words = f"standard-{layers}x{loop.width}", {}
    else:
        model, words = f"recurrent-{layers}x{passes}x{loop.width}", {"residual": "none"}
    return [RunSpec(model, loop.data, loop.recipe, seed, words) for seed in range(loop.seeds)]


def shapes(loop: LoopStudy) -> list[tuple[int, int]]:
    """(layers, passes) of every compared model, standard encoders first."""
    return [*((layers, 1) for layers in loop.layers), *loop.shapes]


def depths(profile: Profile) -> list[RunSpec]:
    """Notebook 03: encoders of several layers and loops of several passes, to estimate the worth of a pass."""
    return [spec for loop in profile.loops for sizes in shapes(loop) for spec in shape(loop, *sizes)]


def random_depth(profile: Profile) -> list[RunSpec]:
    """Notebook 03: an encoder that is trained with random depth on the headline task."""
    return [
        RunSpec(profile.random_depth, profile.data, profile.recipe, seed, RANDOM_DEPTH)
        for seed in range(profile.random_depth_seeds)
    ]


def grid(profile: Profile) -> list[RunSpec]:
    """Notebook 04: width × layers × passes; one pass is a standard encoder."""
    names = [
        f"standard-{layers}x{width}" if passes == 1 else f"recurrent-{layers}x{passes}x{width}"
        for width in profile.grid_widths
        for layers in profile.grid_layers
        for passes in profile.grid_passes
    ]
    return _seeds(profile, names, profile.data, profile.grid_seeds)


def data_size(profile: Profile) -> list[RunSpec]:
    """Notebook 04: both models on nested shares of the training rows."""
    return [
        spec
        for fraction in profile.fractions
        for spec in _both(profile, dataclasses.replace(profile.data, train_fraction=fraction))
    ]


def text_length(profile: Profile) -> list[RunSpec]:
    """Notebook 04: both models on the shortest and on the longest 30 % of the texts."""
    return [
        spec
        for lengths in ("shortest", "longest")
        for spec in _both(profile, dataclasses.replace(profile.data, lengths=lengths))
    ]


def matched(profile: Profile) -> dict[str, str]:
    """Standard encoders matched to the recurrent one, in parameters or in FLOPs.

    "parameters": as many layers as the recurrent block, at its width: exactly its parameters, 1/R of its arithmetic.
    "compute": as many layers as all its passes together, at its width: its arithmetic, the parameters of R blocks.
    """
    config = preset(profile.recurrent)
    return {
        "parameters": f"standard-{config.num_hidden_layers}x{config.hidden_size}",
        "compute": f"standard-{config.effective_depth}x{config.hidden_size}",
    }


def arms_of_width(profile: Profile) -> list[dict[str, str]]:
    """The encoders of notebook 05 and the reason for each: rows with the columns model and why."""
    alike = matched(profile)
    layers, passed = preset(profile.wide).effective_depth, preset(profile.deep).effective_depth
    return [
        {"model": profile.wide, "why": f"wide, with {layers} layers of its own"},
        {"model": profile.deep, "why": f"narrower and recurrent, with {passed} layers to pass through"},
        {"model": profile.standard, "why": "the standard encoder of the study"},
        {"model": profile.recurrent, "why": "the recurrent encoder of the study"},
        {"model": alike["parameters"], "why": "standard, with the recurrent encoder's width and parameters"},
        {"model": alike["compute"], "why": "standard, with the recurrent encoder's width and arithmetic"},
    ]


def width_vs_depth(profile: Profile) -> list[RunSpec]:
    """Notebook 05: the wide and the deep encoder, the two main encoders, and the matched standard encoders."""
    names = [profile.wide, profile.deep, profile.standard, profile.recurrent, *matched(profile).values()]
    return _seeds(profile, dict.fromkeys(names), profile.data, profile.arm_seeds)


def domains(profile: Profile) -> list[RunSpec]:
    """Notebook 06: which of three domains a review comes from."""
    return _both(profile, profile.domains)


def transfer(profile: Profile) -> list[RunSpec]:
    """Notebook 06: models trained on sentiment and tested on other data."""
    return _both(profile, profile.transfer_from)


def _splits(profile: Profile) -> list[DataSpec]:
    """The spam data, split by seed. One split per seed, because one test split has too few spam messages."""
    return [dataclasses.replace(profile.spam, seed=seed) for seed in range(profile.pretrained_seeds)]


def spam(profile: Profile) -> list[RunSpec]:
    """Notebook 07: a small BERT is trained from scratch on spam."""
    return [RunSpec(profile.small, data, profile.small_recipe, data.seed) for data in _splits(profile)]


def finetuning(profile: Profile) -> list[RunSpec]:
    """Notebook 07: the pretrained encoder on spam, whole and frozen, and on the headline task, with its own tokenizer."""
    frozen = dataclasses.replace(RECIPES["frozen"], epochs=profile.finetune_spam.epochs)
    tasks = [(data, recipe, data.seed) for recipe in (profile.finetune_spam, frozen) for data in _splits(profile)]
    tasks += [(profile.data, profile.finetune, seed) for seed in range(profile.pretrained_seeds)]
    return [
        RunSpec(profile.pretrained, dataclasses.replace(data, tokenizer=profile.pretrained), recipe, seed)
        for data, recipe, seed in tasks
    ]


class Trio(NamedTuple):
    """The three arms of one task in one regime, with the same seeds."""

    regime: str
    deep: list[RunSpec]  # N·R layers of their own
    shallow: list[RunSpec]  # N layers
    loop: list[RunSpec]  # the same N layers, passed R times


def _from_nothing(profile: Profile, task: DepthTask, recipe: Recipe) -> Trio:
    """Encoders of one width with random weights.

    Without a residual across passes the loop differs from the deep encoder in sharing alone.
    """
    alike = matched(profile)
    arms = ((alike["compute"], {}), (alike["parameters"], {}), (profile.recurrent, {"residual": "none"}))
    seeds = range(profile.depth_seeds)
    return Trio("from nothing", *([RunSpec(model, task.data, recipe, n, words) for n in seeds] for model, words in arms))


def _own_text(profile: Profile, task: DepthTask, recipe: Recipe) -> Trio:
    """The encoders of :func:`_from_nothing` with a factorised token table, pretrained on the study's own texts first.

    The three pretrainings have the same words, optimiser steps and seed. The seeds of the runs vary the fine-tuning alone. The
    evaluation texts of every task are kept out of the words.
    """
    own, alike = profile.own_text, matched(profile)
    tokenizer, table = own.data[0].tokenizer, {"embedding_size": own.embedding_size}
    data, *others = (dataclasses.replace(each.data, tokenizer=tokenizer) for each in (task, *profile.depth_tasks))
    kept_out = tuple(sorted(set(others), key=str))  # in an order of their own: the order of the tasks changes no key

    def arm(model: str, words: dict[str, Any]) -> list[RunSpec]:
        first = Pretraining(model, own.data, own.recipe, kept_out, overrides=words, length=own.length)
        return [RunSpec(model, data, recipe, seed, words, pretraining=first) for seed in range(profile.depth_seeds)]

    arms = ((alike["compute"], table), (alike["parameters"], table), (profile.recurrent, table | {"residual": "none"}))
    return Trio("own text first", *(arm(*each) for each in arms))


def _converted(profile: Profile, data: DataSpec, recipe: Recipe, seed: int, **conversion: Any) -> RunSpec:
    own = dataclasses.replace(data, tokenizer=profile.pretrained)
    return RunSpec(profile.pretrained, own, recipe, seed, conversion=conversion)


def _made(profile: Profile, task: DepthTask, recipe: Recipe) -> Trio:
    """The whole pretrained encoder, its lower layers passed once, and the same layers in a loop."""
    loop, seeds = profile.conversions[0], range(profile.depth_seeds)
    arms = ({}, loop | {"passes": 1}, loop)
    regime = "made from a pretrained encoder"
    return Trio(regime, *([_converted(profile, task.data, recipe, seed, **arm) for seed in seeds] for arm in arms))


def _taught(profile: Profile, task: DepthTask, recipe: Recipe) -> Trio:
    """The same; the shallow encoder and the loop also learn from the fine-tuned deep one with their seed."""
    plain = _made(profile, task, dataclasses.replace(recipe, distillation=0.0))
    students = (
        [dataclasses.replace(spec, recipe=recipe, teacher=teacher) for spec, teacher in zip(arm, plain.deep, strict=True)]
        for arm in (plain.shallow, plain.loop)
    )
    return Trio("made, and taught by the deep one", plain.deep, *students)


# Field of DepthTask → the arms of its regime
REGIMES: dict[str, Callable[[Profile, DepthTask, Recipe], Trio]] = {
    "nothing": _from_nothing,
    "own_text": _own_text,
    "made": _made,
    "taught": _taught,
}
WITHOUT_WEIGHTS = ("nothing", "own_text")  # the regimes that need no pretrained weights from elsewhere


def trios(profile: Profile, regimes: Iterable[str] = REGIMES) -> list[Trio]:
    """Notebook 09: the arms of every task, regime by regime."""
    return [
        REGIMES[regime](profile, task, recipe)
        for regime in regimes
        for task in profile.depth_tasks
        if (recipe := getattr(task, regime)) is not None
    ]


def where_depth_pays(profile: Profile) -> list[RunSpec]:
    """Notebook 09: encoders from random weights, deep, shallow and looped, some of them pretrained on the study's own texts.

    Runs of one seed stand together where they are pretrained, so that workers pretrain different encoders at the same time.
    """
    nothing = [spec for trio in trios(profile, ["nothing"]) for arm in trio[1:] for spec in arm]
    own = [spec for trio in trios(profile, ["own_text"]) for arms in zip(*trio[1:], strict=True) for spec in arms]
    return nothing + own


def converted(profile: Profile) -> list[RunSpec]:
    """Notebook 09: the same arms, made from a pretrained encoder."""
    return [spec for trio in trios(profile, ["made", "taught"]) for arm in trio[1:] for spec in arm]


def conversions(profile: Profile) -> list[RunSpec]:
    """Notebook 09: every way to make a loop, with one seed on the first task."""
    task = profile.depth_tasks[0]
    return [_converted(profile, task.data, task.made, 0, **way) for way in profile.conversions if task.made]


def distillations(profile: Profile) -> list[Distillation]:
    """Notebook 09: the lower layers passed once, and the loop, learn the embeddings of the whole pretrained encoder.

    The texts that notebook 09 searches are kept out. Without an embedding study in the profile there are none.
    """
    how, loop = profile.embeddings, profile.conversions[0]
    if how is None:
        return []
    searched = (profile.domains, profile.data)
    return [
        Distillation(
            profile.pretrained, profile.pretrained, how.data, how.recipe, searched, conversion=conversion, length=how.length
        )
        for conversion in (loop | {"passes": 1}, loop)
    ]


def leaving_early(profile: Profile) -> list[RunSpec]:
    """Notebook 09: loops made of pretrained layers, trained with random depth, which texts may leave early."""
    return [
        _converted(profile, one.data, one.recipe, seed, **one.conversion)
        for one in profile.exit_studies
        for seed in range(one.seeds)
    ]


def composed_shape(profile: Profile, task: ComposedTask, layers: int, passes: int) -> list[RunSpec]:
    """Notebook 09: a standard encoder (one pass) or a loop for a composed task.

    It has random weights, or is made of the lower layers of the pretrained encoder.
    """
    if task.width is not None:
        return shape(task, layers, passes)
    whole = (layers, passes) == (task.layers * task.passes, 1)
    conversion = {} if whole else {"layers": layers, "passes": passes, "start": "lower"}
    return [_converted(profile, task.data, task.recipe, seed, **conversion) for seed in range(task.seeds)]


def composed_trio(profile: Profile, task: ComposedTask) -> Trio:
    """Notebook 09: the deep, the shallow and the looped encoder of a composed task."""
    n, passes = task.layers, task.passes
    regime = "from nothing" if task.width is not None else "made from a pretrained encoder"
    return Trio(regime, *(composed_shape(profile, task, *sizes) for sizes in ((n * passes, 1), (n, 1), (n, passes))))


def composed_shapes(task: ComposedTask) -> list[tuple[int, int]]:
    """(layers, passes) of each encoder of a composed task that is trained with a fixed depth, standard encoders first."""
    n, passes = task.layers, task.passes
    alone = sorted({n, n * passes, *task.alone})
    return list(dict.fromkeys([*((layers, 1) for layers in alone), (n, passes), *task.loops]))


def composed_random_depth(task: ComposedTask) -> list[RunSpec]:
    """Notebook 09: the loop of a composed task, trained with random depth; empty where the task has none."""
    if task.random_passes is None:
        return []
    model, words = f"recurrent-{task.layers}x{task.random_passes}x{task.width}", {"residual": "none"} | RANDOM_DEPTH
    return [RunSpec(model, task.data, task.recipe, seed, words) for seed in range(task.seeds)]


def composed(profile: Profile) -> list[RunSpec]:
    """Notebook 09: every encoder of the tasks whose answer must be computed."""
    of_shapes = [
        spec
        for task in profile.composed
        for sizes in composed_shapes(task)
        for spec in composed_shape(profile, task, *sizes)
    ]
    return of_shapes + [spec for task in profile.composed for spec in composed_random_depth(task)]


# Notebook → the studies that it runs. `rtx report --dry-run` counts their runs.
STUDIES: dict[str, dict[str, Callable[[Profile], list[RunSpec]]]] = {
    "02_baseline": {"baseline": baseline},
    "03_recurrent": {
        "baseline": baseline,
        "recurrent": recurrent,
        "variants": variants,
        "depths": depths,
        "random_depth": random_depth,
    },
    "04_sensitivity": {"grid": grid, "data_size": data_size, "text_length": text_length},
    "05_width_vs_depth": {"width_vs_depth": width_vs_depth},
    "06_domain_classification": {"domains": domains, "transfer": transfer},
    "07_pretrained_encoders": {"spam": spam, "finetuning": finetuning, "baseline": baseline, "recurrent": recurrent},
    "09_where_depth_pays": {
        "where_depth_pays": where_depth_pays,
        "converted": converted,
        "conversions": conversions,
        "leaving_early": leaving_early,
        "composed": composed,
    },
}


def specs_of(study: str, profile: Profile) -> list[RunSpec]:
    """The runs of a study by its name in :data:`STUDIES`. Raises InputError for an unknown name."""
    studies = {name: make for of_notebook in STUDIES.values() for name, make in of_notebook.items()}
    if study not in studies:
        raise InputError(f"There is no study '{study}'; there are {', '.join(studies)}.{nearest(study, studies)}")
    return studies[study](profile)
