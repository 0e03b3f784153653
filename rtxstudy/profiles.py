"""How large a study is: smoke (seconds, for tests), demo (minutes on two cores), full (the real data)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rtxlib.data.spec import DataSpec, of_source
from rtxlib.errors import InputError, nearest, shortened, shown
from rtxlib.models.presets import preset
from rtxlib.training.recipe import RECIPES, Recipe
from rtxlib.training.recipe import recipe as named_recipe

MOST_SEEDS = 1_000  # of a study; each is a training of every model in it


@dataclass(frozen=True)
class LoopStudy:
    """One ablation of the loop: its data, recipe, width, layers and passes."""

    data: DataSpec  # what all its models are trained on
    recipe: Recipe  # how all its models are trained
    width: int  # hidden size of all its models
    passes: int  # passes of the one-layer loop whose variants are trained
    layers: tuple[int, ...]  # layers of the standard encoders
    shapes: tuple[tuple[int, int], ...]  # (layers, passes) of the loops that are compared with them
    seeds: int  # training seeds of each model


@dataclass(frozen=True)
class OwnText:
    """The pretraining of notebook 09 on the study's own training texts, without their labels."""

    data: tuple[DataSpec, ...]  # whose training texts are the corpus; all have one tokenizer
    recipe: Recipe  # how hidden tokens are predicted
    embedding_size: int  # width of the factorised token table of all its models
    length: int = 128  # tokens of a row


@dataclass(frozen=True)
class DepthTask:
    """A task on which a deep encoder, a shallow one and a loop are compared, with a recipe for each regime it takes part in."""

    data: DataSpec
    nothing: Recipe | None = None  # from random weights
    made: Recipe | None = None  # from the weights of a pretrained encoder
    taught: Recipe | None = None  # the same, with the fine-tuned deep encoder as the teacher
    own_text: Recipe | None = None  # fine-tuned after a pretraining on the study's own texts


@dataclass(frozen=True)
class EmbeddingStudy:
    """How the embeddings of a converted encoder are distilled from the original's, on texts without labels."""

    data: tuple[DataSpec, ...]  # whose training texts are read
    recipe: Recipe
    length: int  # tokens of a text that are read


@dataclass(frozen=True)
class ExitStudy:
    """A task on which a loop made of pretrained layers is trained with random depth, to measure early exit on it."""

    data: DataSpec
    recipe: Recipe
    conversion: dict[str, Any]  # arguments of rtxlib.models.convert.to_loop, with depth_sampling="uniform"
    seeds: int  # training seeds


@dataclass(frozen=True)
class ComposedTask:
    """A task composed of real phrases, on which encoders of one width are trained."""

    data: DataSpec
    recipe: Recipe
    width: int | None  # hidden size of all its models; None: they are made from the profile's pretrained encoder
    layers: int  # N, of the shallow encoder and of the loop; the deep encoder has N·R, if pretrained all its layers
    passes: int  # R, of the loop
    alone: tuple[int, ...]  # layers of further standard encoders, for the worth of a pass
    loops: tuple[tuple[int, int], ...]  # (layers, passes) of further loops, for the same
    random_passes: int | None  # most passes of a loop of N layers that is trained with random depth; None: there is none
    seeds: int  # training seeds of each model


@dataclass(frozen=True)
class Profile:
    """The models, data and sizes of every study. The notebooks read all their sizes from here."""

    name: str  # the name that `--profile` takes
    seeds: int  # training seeds of the two main encoders
    arm_seeds: int  # training seeds in notebooks 05 and 06, and on parts of the data in 04
    recipe: Recipe  # how the models are trained from scratch
    data: DataSpec  # the headline sentiment task
    domains: DataSpec  # the three-class domain task
    transfer_from: DataSpec  # sentiment data on which the models of the transfer study are trained
    transfer_to: DataSpec  # sentiment data on which they are tested
    standard: str  # the standard encoder of the study
    recurrent: str  # the recurrent encoder of the study
    wide: str  # notebook 05: a wide standard encoder
    deep: str  # notebook 05: a narrower recurrent encoder
    grid_widths: tuple[int, ...]  # widths (hidden sizes) of the grid in notebook 04
    grid_layers: tuple[int, ...]  # layers of the grid
    grid_passes: tuple[int, ...]  # passes of the grid; one pass is a standard encoder
    grid_seeds: int  # training seeds of a grid cell
    fractions: tuple[float, ...]  # shares of the training rows in notebook 04
    spam: DataSpec  # the spam task of notebook 07
    small: str  # the small encoder that is trained from scratch on spam
    small_recipe: Recipe  # how the small encoder is trained
    pretrained: str  # the checkpoint that is fine-tuned on spam and on the headline task
    finetune: Recipe  # how the checkpoint is fine-tuned on the headline task
    finetune_spam: Recipe  # how the checkpoint is fine-tuned on spam
    pretrained_seeds: int  # training seeds of each spam and fine-tuning run
    searched_rows: int  # texts of each label among which notebook 07 searches neighbours
    loops: tuple[LoopStudy, ...]  # ablations of the loop; the last one is on texts composed of operators
    variant: dict[str, Any]  # ModelConfig fields in which the recurrent encoder differs from its preset
    random_depth: str  # the recurrent encoder that is trained with random depth, for early exit and further passes
    random_depth_seeds: int  # training seeds of that encoder
    depth_tasks: tuple[DepthTask, ...]  # notebook 09: where depth may pay; the first one decides among the conversions
    own_text: OwnText | None  # notebook 09: the pretraining for the tasks that ask for one; None: no task does
    depth_seeds: int  # training seeds of each arm of notebook 09
    conversions: tuple[dict[str, Any], ...]  # ways to make a pretrained encoder into a loop, among which notebook 09 chooses
    exit_studies: tuple[ExitStudy, ...]  # notebook 09: where texts may leave a loop early; empty: that section is skipped
    embeddings: EmbeddingStudy | None = None  # notebook 09: how their embeddings are distilled; None: they are not
    composed: tuple[ComposedTask, ...] = ()  # notebook 09: tasks whose answer must be computed

    @property
    def data_sets(self) -> tuple[DataSpec, ...]:
        """Every data set of the profile once, the headline data first."""
        of_loops = (loop.data for loop in self.loops)
        of_depth = (task.data for task in (*self.depth_tasks, *self.exit_studies))
        single = (self.data, self.domains, self.transfer_from, self.transfer_to, self.spam)
        return tuple(dict.fromkeys((*single, *of_loops, *of_depth)))


_MINILM = "sentence-transformers/all-MiniLM-L6-v2"
_SST2 = DataSpec(source="sst2")
_DEMO = DataSpec(source="embedded", rows=3000, depth=2, vocab_size=2000)
_TWO_EPOCHS = named_recipe("finetune", epochs=2)
_SMOKE = DataSpec(source="embedded", rows=240, depth=1, vocab_size=400)
# Yelp and Amazon have as many rows as the Hub or its mirror holds once the labels are balanced, at most
# rtxlib.data.sources.POOLED_ROWS of each.
_REVIEWS = tuple(DataSpec(source=name, tokenizer="bert") for name in ("sst2", "yelp_polarity", "amazon_polarity"))
# Arguments of rtxlib.models.convert.to_loop for an encoder of six layers. Notebook 09 trains each with one seed and chooses among
# them by validation accuracy. The first one is the loop of the study.
_CONVERSIONS: tuple[dict[str, Any], ...] = (
    {"layers": 3, "passes": 2, "start": "lower"},
    {"layers": 3, "passes": 2, "start": "average"},
    {"layers": 3, "passes": 2, "start": "spread"},
    {"layers": 3, "passes": 2, "start": "lower", "pass_norms": True},
    {"layers": 3, "passes": 2, "start": "lower", "rank": 16},
    {"layers": 3, "passes": 2, "start": "average", "rank": 16},
    {"layers": 2, "passes": 3, "start": "lower"},
    {"layers": 2, "passes": 2, "start": "lower", "edges": True},
)
# A loop whose state can be read after each of its passes, because training draws the passes of each batch
_READ_EARLY: dict[str, Any] = {"layers": 3, "passes": 4, "start": "lower", "depth_sampling": "uniform"}

PROFILES: dict[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile(
            name="smoke",
            seeds=2,
            arm_seeds=2,
            recipe=RECIPES["smoke"],
            data=_SMOKE,
            domains=dataclasses.replace(_SMOKE, task="domain"),
            transfer_from=dataclasses.replace(_SMOKE, domain="movies"),
            transfer_to=dataclasses.replace(_SMOKE, domain="local business"),
            standard="standard-2x32",
            recurrent="recurrent-1x2x32",
            wide="standard-2x64",
            deep="recurrent-1x3x32",
            grid_widths=(32,),
            grid_layers=(1,),
            grid_passes=(1, 2),
            grid_seeds=1,
            fractions=(1.0, 0.5),
            spam=dataclasses.replace(_SMOKE, task="spam", rows=120),
            small="bert-tiny",
            small_recipe=RECIPES["smoke"],
            pretrained=_MINILM,
            finetune=named_recipe("finetune", epochs=0.5),
            finetune_spam=named_recipe("finetune", epochs=0.5),
            pretrained_seeds=1,
            searched_rows=40,
            loops=(
                LoopStudy(
                    _SMOKE,
                    RECIPES["smoke"],
                    32,
                    passes=2,
                    layers=(1, 2, 3),
                    shapes=((1, 2), (1, 3), (2, 2)),
                    seeds=2,
                ),
            ),
            variant={},
            random_depth="recurrent-1x2x64",
            random_depth_seeds=2,
            depth_tasks=(
                DepthTask(
                    _SMOKE,
                    RECIPES["smoke"],
                    named_recipe("finetune", epochs=0.5),
                    own_text=named_recipe("finetune", learning_rate=2e-3, layer_decay=1.0, head_rate=1.0, epochs=1),
                ),
            ),
            own_text=OwnText((_SMOKE,), named_recipe("pretrain", epochs=1, batch_rows=8), embedding_size=16, length=16),
            depth_seeds=1,
            conversions=_CONVERSIONS[:2],
            embeddings=EmbeddingStudy((_SMOKE,), RECIPES["distill"], 32),
            exit_studies=(ExitStudy(_SMOKE, named_recipe("finetune", epochs=0.5), _READ_EARLY | {"layers": 1}, seeds=1),),
            composed=(
                ComposedTask(
                    DataSpec(source="composed", task="pointer", rows=240, depth=2, items=4),
                    RECIPES["smoke"],
                    32,
                    layers=1,
                    passes=2,
                    alone=(),
                    loops=(),
                    random_passes=2,
                    seeds=2,  # φ needs six runs
                ),
            ),
        ),
        Profile(
            name="demo",
            seeds=3,
            arm_seeds=3,
            recipe=RECIPES["demo"],
            data=_DEMO,
            domains=dataclasses.replace(_DEMO, task="domain", rows=2000),
            transfer_from=dataclasses.replace(_DEMO, domain="movies", rows=2000),
            transfer_to=dataclasses.replace(_DEMO, domain="local business", rows=2000),
            standard="standard-2x96",
            recurrent="recurrent-1x2x64",
            wide="standard-2x128",
            deep="recurrent-1x2x96",
            grid_widths=(32, 64),
            grid_layers=(1, 2),
            grid_passes=(1, 2),
            grid_seeds=3,
            fractions=(1.0, 0.5, 0.1),
            spam=dataclasses.replace(_DEMO, task="spam", rows=800),
            small="bert-tiny",
            small_recipe=RECIPES["demo"],
            pretrained=_MINILM,
            finetune=named_recipe("finetune", epochs=0.5),
            finetune_spam=named_recipe("finetune", epochs=1),
            pretrained_seeds=1,
            searched_rows=200,
            loops=(
                LoopStudy(
                    _DEMO,
                    named_recipe("demo", epochs=1.5),
                    32,
                    passes=3,
                    layers=(1, 2, 3),
                    shapes=((1, 2), (1, 3), (2, 2)),
                    seeds=3,
                ),
            ),
            variant={},
            random_depth="recurrent-1x3x64",
            random_depth_seeds=3,
            depth_tasks=(DepthTask(_DEMO, RECIPES["demo"], named_recipe("finetune", epochs=0.5)),),
            own_text=None,
            depth_seeds=3,
            conversions=_CONVERSIONS[:2],
            exit_studies=(),
        ),
        Profile(
            name="full",
            seeds=5,
            arm_seeds=3,
            recipe=RECIPES["default"],
            data=_SST2,
            domains=DataSpec(source="domains", task="domain", rows=6000),
            transfer_from=_SST2,
            transfer_to=DataSpec(source="yelp_polarity", rows=6000),
            standard="standard-6x384",
            recurrent="recurrent-3x2x256",
            wide="standard-6x512",
            deep="recurrent-3x2x384",
            grid_widths=(128, 256, 384),
            grid_layers=(2, 3, 6),
            grid_passes=(1, 2, 3),
            grid_seeds=1,
            fractions=(1.0, 0.5, 0.1),
            spam=of_source("sms_spam"),
            small="bert-mini",
            small_recipe=RECIPES["small"],
            pretrained=_MINILM,
            finetune=named_recipe("finetune", epochs=1),
            finetune_spam=RECIPES["finetune"],
            pretrained_seeds=3,
            searched_rows=1000,
            loops=(
                LoopStudy(
                    _SST2,
                    RECIPES["default"],
                    128,
                    passes=4,
                    layers=(1, 2, 4, 8),
                    shapes=((1, 2), (1, 4), (1, 8), (2, 2)),
                    seeds=2,
                ),
                LoopStudy(
                    DataSpec(source="embedded", rows=8000, depth=4, vocab_size=2000),
                    named_recipe("demo", epochs=4),
                    64,
                    passes=4,
                    layers=(1, 2, 3, 4, 6, 8),
                    shapes=((1, 2), (1, 3), (1, 4), (1, 6), (1, 8), (2, 2), (2, 4), (4, 2)),
                    seeds=3,
                ),
            ),
            variant={},
            random_depth="recurrent-3x4x256",
            random_depth_seeds=5,
            depth_tasks=(
                DepthTask(of_source("multi_nli"), made=_TWO_EPOCHS),
                DepthTask(of_source("cola"), made=RECIPES["finetune"]),
            ),
            own_text=OwnText(_REVIEWS, RECIPES["pretrain"], embedding_size=128),
            depth_seeds=3,
            conversions=_CONVERSIONS[:1],  # the others are not trained yet
            exit_studies=(),
        ),
    )
}


def load(
    name: str,
    seeds: int | None = None,
    recipe: str | None = None,
    rows: int | None = None,
    max_length: int | None = None,
    epochs: float | None = None,
    domain_rows: int | None = None,
    pretrained_seeds: int | None = None,
    grid_seeds: int | None = None,
    loop_seeds: int | None = None,
    random_depth_seeds: int | None = None,
    depth_seeds: int | None = None,
    variant: Mapping[str, Any] | None = None,
) -> Profile:
    """The profile ``name`` with the given settings changed. None leaves the profile's own value.

    Args:
        name: one of :data:`PROFILES`.
        seeds: seeds of every study except the ablations of the loop and random depth.
        recipe: name of the recipe of every run except the spam and fine-tuning runs, which keep their own.
        rows: most rows of each data set.
        max_length: most tokens of a text.
        epochs: epochs of every run except the spam and fine-tuning runs, in place of the recipe's. Pretrainings keep theirs.
        domain_rows: most rows of the domain task and of the data on which transfer is tested, in place of ``rows``.
        pretrained_seeds: seeds of each spam and fine-tuning run; default: the profile's value, at most ``seeds``.
        grid_seeds: seeds of a grid cell; default: the profile's value, at most ``seeds``.
        loop_seeds: seeds of each ablation of the loop.
        random_depth_seeds: seeds of the encoder that is trained with random depth.
        depth_seeds: seeds of each arm of notebook 09; default: the profile's value, at most ``seeds``.
        variant: ModelConfig fields that change the recurrent encoder.

    Raises InputError for an unknown name or a value out of range.
    """
    if name not in PROFILES:
        raise InputError(f"There is no profile '{shortened(name)}'; there are {', '.join(PROFILES)}.{nearest(name, PROFILES)}")
    profile = PROFILES[name]
    counts = {
        "seeds": seeds,
        "grid_seeds": grid_seeds,
        "pretrained_seeds": pretrained_seeds,
        "loop_seeds": loop_seeds,
        "random_depth_seeds": random_depth_seeds,
        "depth_seeds": depth_seeds,
    }
    for setting, value in counts.items():
        if value is not None and not 1 <= value <= MOST_SEEDS:
            raise InputError(f"{setting} must be at least 1 and at most {MOST_SEEDS:,}, not {shown(value)}.")

    if "block_sharing" in (variant or {}):
        raise InputError(
            "The recurrent encoder is trained with its block shared and unshared anyway; leave block_sharing out."
        )
    for sharing in ("shared", "unshared"):  # raises InputError for unknown or contradictory fields
        preset(profile.recurrent, **(variant or {}), block_sharing=sharing)

    def capped(given: int | None, own: int) -> int:
        """The number of seeds that is given; without one the profile's own, and never more than ``seeds``."""
        return given or min(own, seeds or own)

    profile = dataclasses.replace(
        profile,
        seeds=seeds or profile.seeds,
        arm_seeds=seeds or profile.arm_seeds,
        variant=dict(variant or {}),
        grid_seeds=capped(grid_seeds, profile.grid_seeds),
        pretrained_seeds=capped(pretrained_seeds, profile.pretrained_seeds),
        random_depth_seeds=random_depth_seeds or profile.random_depth_seeds,
        depth_seeds=capped(depth_seeds, profile.depth_seeds),
        loops=tuple(dataclasses.replace(loop, seeds=loop_seeds or loop.seeds) for loop in profile.loops),
        exit_studies=tuple(dataclasses.replace(one, seeds=capped(depth_seeds, one.seeds)) for one in profile.exit_studies),
        composed=tuple(dataclasses.replace(task, seeds=capped(depth_seeds, task.seeds)) for task in profile.composed),
    )
    if recipe is not None or epochs is not None:
        changes = {} if epochs is None else {"epochs": epochs}

        def other(usual: Recipe) -> Recipe:
            return named_recipe(recipe or usual.name, **changes)

        loops = tuple(dataclasses.replace(loop, recipe=other(loop.recipe)) for loop in profile.loops)
        tasks = tuple(dataclasses.replace(task, nothing=task.nothing and other(task.nothing)) for task in profile.depth_tasks)
        composed = tuple(dataclasses.replace(task, recipe=other(task.recipe)) for task in profile.composed)
        profile = dataclasses.replace(
            profile, recipe=other(profile.recipe), loops=loops, depth_tasks=tasks, composed=composed
        )

    def resized(data: DataSpec, most_rows: int | None = rows) -> DataSpec:
        sizes = {"rows": most_rows, "max_length": max_length}
        return dataclasses.replace(data, **{size: value for size, value in sizes.items() if value is not None})

    def each_resized(studies: Iterable[Any]) -> tuple[Any, ...]:
        return tuple(dataclasses.replace(study, data=resized(study.data)) for study in studies)

    def texts_resized(study: Any) -> Any:
        return study and dataclasses.replace(study, data=tuple(map(resized, study.data)))

    of_domains = rows if domain_rows is None else domain_rows
    return dataclasses.replace(
        profile,
        data=resized(profile.data),
        domains=resized(profile.domains, of_domains),
        transfer_from=resized(profile.transfer_from),
        transfer_to=resized(profile.transfer_to, of_domains),
        spam=resized(profile.spam),
        loops=each_resized(profile.loops),
        depth_tasks=each_resized(profile.depth_tasks),
        exit_studies=each_resized(profile.exit_studies),
        composed=each_resized(profile.composed),
        own_text=texts_resized(profile.own_text),
        embeddings=texts_resized(profile.embeddings),
    )
