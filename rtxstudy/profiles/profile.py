"""What a profile says: the models, data, recipes and seeds of every study."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from rtxlib.data.spec import DataSpec
from rtxlib.models.presets import preset
from rtxlib.training.recipe import Recipe


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
    alphas: tuple[float, ...] = ()  # further weights α of the residual across passes, which is ½ otherwise


@dataclass(frozen=True)
class OwnText:
    """The pretraining of notebook 09 on the study's own training texts, without their labels."""

    data: tuple[DataSpec, ...]  # whose training texts are the corpus; all have one tokenizer
    recipe: Recipe  # how hidden tokens are predicted
    loop_recipe: Recipe  # the same for the loop, which learns best at another rate
    embedding_size: int  # width of the factorised embedding matrix of all its models
    kept_out: tuple[DataSpec, ...] = ()  # whose evaluation texts are removed from it, beside those of the tasks after it
    length: int = 128  # tokens of a row


@dataclass(frozen=True)
class DepthTask:
    """A task on which a deep encoder, a shallow one and a loop are compared, with a recipe for each regime it takes part in."""

    data: DataSpec
    scratch: Recipe | None = None  # from random weights
    made: Recipe | None = None  # from the weights of a pretrained encoder
    lower: Recipe | None = None  # the same with a loop of its lower layers, where the study's loop is another one
    taught: Recipe | None = None  # the same, with the fine-tuned deep encoder as the teacher
    own_text: Recipe | None = None  # fine-tuned after a pretraining on the study's own texts
    one_layer: Recipe | None = None  # from random weights, with the narrow encoders of notebook 03 on the same data
    narrow: tuple[int, int] | None = None  # width and passes of those encoders, where notebook 03 has none on these data


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
class Search:
    """A search for the recipe of each arm by successive halving (Jamieson & Talwalkar 2016), with the same trials for all arms.

    The first round trains every trial once on a share of the training rows. The best trials of an arm are trained again on all
    rows in the finals, and so is the first trial, because the choice is compared with it.
    """

    data: DataSpec  # with a validation split that is large enough to tell recipes apart
    arms: tuple[str, ...]  # models; each has a search of its own
    recipe: Recipe  # the recipe that the trials change
    trials: tuple[dict[str, Any], ...]  # fields of Recipe; the first one is empty, so that ``recipe`` is a trial
    share: float  # of the training rows, in the first round
    finalists: int  # trials of an arm that go on to the finals
    seeds: int  # training seeds of a trial in the finals

    @property
    def recipes(self) -> tuple[Recipe, ...]:
        """The recipe of each trial."""
        return tuple(dataclasses.replace(self.recipe, **trial) for trial in self.trials)


@dataclass(frozen=True)
class Task:
    """Data on which encoders of the study are trained as well."""

    data: DataSpec
    seeds: int  # training seeds of each model
    recipe: Recipe | None = None  # how they are trained; None: as on the headline data


@dataclass(frozen=True)
class LongerTexts:
    """Encoders that differ in their positions alone, trained on short texts and tested on longer ones."""

    data: DataSpec  # its max_length is the most tokens of a training text
    lengths: tuple[int, ...]  # the most tokens of a test text, in each test
    seeds: int  # training seeds of each encoder
    recipe: Recipe | None = None  # how they are trained; None: as on the headline data


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
    exit_studies: tuple[ExitStudy, ...]  # notebook 12: where texts may leave a loop early; empty: that section is skipped
    untrained: tuple[DataSpec, ...] = ()  # notebook 09: those of its tasks whose fine-tuned encoder is passed again, untrained
    embeddings: EmbeddingStudy | None = None  # notebook 12: how their embeddings are distilled; None: they are not
    deployed: str = "scratch"  # notebook 12: the regime whose encoders are measured as they are deployed, on its first task
    composed: tuple[ComposedTask, ...] = ()  # notebook 09: tasks whose answer must be computed
    elsewhere: tuple[Task, ...] = ()  # notebook 03: sentiment on other data; empty: that section is skipped
    cross_domain: bool = False  # notebook 06: whether the encoders of each sentiment task are tested on all of them
    unified: tuple[Task, ...] = ()  # notebook 06: tasks on the pooled domains at full size; empty: that section is skipped
    stars: Task | None = None  # notebook 06: reviews of one star against four and five; None: that section is skipped
    component_seeds: int = 0  # notebook 05: training seeds of each encoder with one component changed; 0: that section is skipped
    plan_b_seeds: int = 0  # notebook 03: training seeds of each form of the proposal's plan B; 0: that section is skipped
    longer: LongerTexts | None = None  # notebook 04: texts longer than in training; None: that section is skipped
    grid_data: DataSpec | None = None  # what the grid is trained on; None: the headline data
    least_steps: int | None = None  # optimiser steps on each part of the data in notebook 04; None: those of the recipe's epochs
    search: Search | None = None  # notebook 02: the search for the recipes; None: there is none
    recipes: dict[str, Recipe] = field(default_factory=dict)  # model → its own recipe; a family's main model comes first
    published: Task | None = None  # notebook 02: the published protocol; None: it is not run
    timing_rounds: int = 5  # how often the encoders take turns when their times are measured

    def recipe_of(self, model: str) -> Recipe:
        """How a model is trained from scratch: its own recipe, or else that of the first model of its family in ``recipes``.

        The families are standard and recurrent. Without a recipe for the family it is the profile's ``recipe``.
        """
        if model in self.recipes or not self.recipes:
            return self.recipes.get(model, self.recipe)
        families = {preset(name).family: recipe for name, recipe in reversed(self.recipes.items())}
        return families.get(preset(model).family, self.recipe)

    @property
    def data_sets(self) -> tuple[DataSpec, ...]:
        """Every data set of the profile once, the headline data first."""
        of_loops = (loop.data for loop in self.loops)
        of_depth = (task.data for task in (*self.depth_tasks, *self.exit_studies))
        single = (self.data, self.domains, self.transfer_from, self.transfer_to, self.spam)
        alone = (task for task in (self.stars, self.longer) if task)
        further = (task.data for task in (*self.elsewhere, *self.unified, *alone))
        return tuple(dict.fromkeys((*single, *of_loops, *of_depth, *further)))
