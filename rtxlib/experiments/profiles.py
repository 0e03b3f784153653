"""How large a study is: smoke (seconds, for tests), demo (minutes on two cores), full (the real data)."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from rtxlib.data.spec import DataSpec, of_source
from rtxlib.errors import InputError, nearest
from rtxlib.training.recipe import RECIPES, Recipe
from rtxlib.training.recipe import recipe as named_recipe


@dataclass(frozen=True)
class Profile:
    """The sizes of every experiment; the notebooks read nothing else."""

    name: str
    seeds: int  # training seeds of each arm
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
    grid_depths: tuple[int, ...]
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
            grid_depths=(1, 2),
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
        ),
        Profile(
            name="demo",
            seeds=3,
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
            grid_depths=(1, 2),
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
        ),
        Profile(
            name="full",
            seeds=5,
            recipe=RECIPES["default"],
            data=_SST2,
            domains=DataSpec(source="domains", task="domain", rows=67_000),
            transfer_from=_SST2,
            transfer_to=DataSpec(source="yelp_polarity", rows=67_000),
            standard="standard-6x384",
            recurrent="recurrent-3x2x256",
            wide="standard-6x512",
            deep="recurrent-3x2x384",
            grid_widths=(128, 256, 384),
            grid_layers=(2, 3, 6),
            grid_depths=(1, 2, 3),
            grid_seeds=3,
            fractions=(1.0, 0.5, 0.1),
            spam=of_source("sms_spam"),
            small="bert-mini",
            small_recipe=RECIPES["small"],
            pretrained=_MINILM,
            finetune=named_recipe("finetune", epochs=1),
            finetune_spam=RECIPES["finetune"],
            pretrained_seeds=3,
            searched_rows=1000,
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
) -> Profile:
    """The profile of this name, with what a notebook's parameters change; None leaves the profile's own value.

    seeds: of every arm. recipe: the name of one for every run; epochs: instead of the recipe's. rows: of each data set at
    most; domain_rows: of the domain and the transfer data alone. max_length: tokens of a text at most. pretrained_seeds: of
    each fine-tuning, whatever seeds says.
    Raises InputError for an unknown name or a value out of range.
    """
    if name not in PROFILES:
        raise InputError(f"There is no profile '{name}'; there are {', '.join(PROFILES)}.{nearest(name, PROFILES)}")
    profile = PROFILES[name]
    for setting, value in (("seeds", seeds), ("pretrained_seeds", pretrained_seeds)):
        if value is not None and value < 1:
            raise InputError(f"{setting} must be at least 1, not {value}.")
    if seeds is not None:
        fewer = {name: min(seeds, getattr(profile, name)) for name in ("grid_seeds", "pretrained_seeds")}
        profile = dataclasses.replace(profile, seeds=seeds, **fewer)
    if pretrained_seeds is not None:
        profile = dataclasses.replace(profile, pretrained_seeds=pretrained_seeds)
    if recipe is not None or epochs is not None:
        changes = {} if epochs is None else {"epochs": epochs}
        profile = dataclasses.replace(profile, recipe=named_recipe(recipe or profile.recipe.name, **changes))
    for field in ("data", "domains", "transfer_from", "transfer_to", "spam"):
        own_rows = domain_rows if field in ("domains", "transfer_to") and domain_rows is not None else rows
        sizes = {"rows": own_rows, "max_length": max_length}
        changed = {size: value for size, value in sizes.items() if value is not None}
        profile = dataclasses.replace(profile, **{field: dataclasses.replace(getattr(profile, field), **changed)})
    return profile
