"""How large a study is: smoke (seconds, for tests), demo (minutes on two cores), full (the real data)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rtxlib.data.spec import DataSpec, of_source
from rtxlib.errors import InputError, nearest
from rtxlib.models.presets import preset
from rtxlib.training.recipe import RECIPES, Recipe
from rtxlib.training.recipe import recipe as named_recipe


@dataclass(frozen=True)
class Loop:
    """Where the loop is taken apart: data, recipe, and models of one width."""

    data: DataSpec
    recipe: Recipe
    width: int
    passes: int  # of the one-layer loop whose variants are trained
    layers: tuple[int, ...]  # of the standard encoders …
    shapes: tuple[tuple[int, int], ...]  # … and layers × passes of the loops set against them
    seeds: int


@dataclass(frozen=True)
class Profile:
    """The sizes of every experiment; the notebooks read nothing else."""

    name: str
    seeds: int  # training seeds of the headline models
    arm_seeds: int  # of every further arm: amounts of data, lengths of text, width or depth, domains, transfer
    recipe: Recipe
    data: DataSpec  # the headline sentiment task
    domains: DataSpec  # the three-class domain task
    transfer_from: DataSpec  # sentiment is learned here …
    transfer_to: DataSpec  # … and tried there
    standard: str  # the two models set against each other
    recurrent: str
    wide: str  # wide and shallow …
    deep: str  # … against narrow and deep
    grid_widths: tuple[int, ...]  # d_model × layers × iterations
    grid_layers: tuple[int, ...]
    grid_passes: tuple[int, ...]
    grid_seeds: int
    fractions: tuple[float, ...]  # shares of the training rows
    spam: DataSpec
    small: str  # the encoder that learns spam from nothing …
    small_recipe: Recipe
    pretrained: str  # … and the checkpoint that is fine-tuned on spam and on the headline task
    finetune: Recipe  # on the headline task
    finetune_spam: Recipe
    pretrained_seeds: int
    searched_rows: int  # texts of each domain among which neighbours are searched
    loops: tuple[Loop, ...]  # the last one on data that compose
    variant: dict[str, Any]  # fields of ModelConfig in which `recurrent` differs from its preset
    random_depth: str  # trained on the headline task with a random number of passes: exits and test-time depth
    random_depth_seeds: int

    @property
    def data_sets(self) -> tuple[DataSpec, ...]:
        """Every data set of the study, the headline first, each once."""
        used = (self.data, self.domains, self.transfer_to, self.spam, *(loop.data for loop in self.loops))
        return tuple(dict.fromkeys(used))


_MINILM = "sentence-transformers/all-MiniLM-L6-v2"
_SST2 = DataSpec(source="sst2")
_DEMO = DataSpec(source="embedded", rows=3000, depth=2, vocab_size=2000)
_SMOKE = DataSpec(source="embedded", rows=240, depth=1, vocab_size=400)

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
                Loop(
                    _SMOKE, RECIPES["smoke"], 32, passes=2, layers=(1, 2, 3), shapes=((1, 2), (1, 3), (2, 2)), seeds=2
                ),
            ),
            variant={},
            random_depth="recurrent-1x2x64",
            random_depth_seeds=2,
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
                Loop(
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
                Loop(
                    _SST2,
                    RECIPES["default"],
                    128,
                    passes=4,
                    layers=(1, 2, 4, 8),
                    shapes=((1, 2), (1, 4), (1, 8), (2, 2)),
                    seeds=2,
                ),
                Loop(
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
    variant: Mapping[str, Any] | None = None,
) -> Profile:
    """The profile of this name, with what a notebook's parameters change; None leaves the profile's own value.

    seeds: of every arm but those that take the loop apart, which have loop_seeds, and the model trained for every depth,
    which has random_depth_seeds. grid_seeds: of a cell of the grid, and pretrained_seeds: of each fine-tuning; the profile's, but
    at most seeds, unless given. recipe: the name of one for every run but the spam and fine-tuning ones, which keep their own;
    epochs: instead of that recipe's. rows: of each data set at most; domain_rows: of the domain and the transfer
    data alone. max_length: tokens of a text at most. variant: fields of ModelConfig that change the recurrent encoder.
    Raises InputError for an unknown name or a value out of range.
    """
    if name not in PROFILES:
        raise InputError(f"There is no profile '{name}'; there are {', '.join(PROFILES)}.{nearest(name, PROFILES)}")
    profile = PROFILES[name]
    counts = {
        "seeds": seeds,
        "grid_seeds": grid_seeds,
        "pretrained_seeds": pretrained_seeds,
        "loop_seeds": loop_seeds,
        "random_depth_seeds": random_depth_seeds,
    }
    for setting, value in counts.items():
        if value is not None and value < 1:
            raise InputError(f"{setting} must be at least 1, not {value}.")

    if "block_sharing" in (variant or {}):
        raise InputError(
            "The recurrent encoder is trained with its block shared and unshared anyway; leave block_sharing out."
        )
    for sharing in ("shared", "unshared"):  # words that do not exist or contradict each other are refused here
        preset(profile.recurrent, **(variant or {}), block_sharing=sharing)

    profile = dataclasses.replace(
        profile,
        seeds=seeds or profile.seeds,
        arm_seeds=seeds or profile.arm_seeds,
        variant=dict(variant or {}),
        grid_seeds=grid_seeds or min(profile.grid_seeds, seeds or profile.grid_seeds),
        pretrained_seeds=pretrained_seeds or min(profile.pretrained_seeds, seeds or profile.pretrained_seeds),
        random_depth_seeds=random_depth_seeds or profile.random_depth_seeds,
        loops=tuple(dataclasses.replace(loop, seeds=loop_seeds or loop.seeds) for loop in profile.loops),
    )
    if recipe is not None or epochs is not None:
        changes = {} if epochs is None else {"epochs": epochs}

        def other(usual: Recipe) -> Recipe:
            return named_recipe(recipe or usual.name, **changes)

        loops = tuple(dataclasses.replace(loop, recipe=other(loop.recipe)) for loop in profile.loops)
        profile = dataclasses.replace(profile, recipe=other(profile.recipe), loops=loops)

    def resized(data: DataSpec, own_rows: int | None = None) -> DataSpec:
        sizes = {"rows": rows if own_rows is None else own_rows, "max_length": max_length}
        return dataclasses.replace(data, **{size: value for size, value in sizes.items() if value is not None})

    fields = ("data", "domains", "transfer_from", "transfer_to", "spam")
    own_rows = {"domains": domain_rows, "transfer_to": domain_rows}
    return dataclasses.replace(
        profile,
        loops=tuple(dataclasses.replace(loop, data=resized(loop.data)) for loop in profile.loops),
        **{field: resized(getattr(profile, field), own_rows.get(field)) for field in fields},
    )
