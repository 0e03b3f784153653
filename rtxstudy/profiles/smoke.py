"""For tests: generated texts, a few seconds for each model, and encoders that learn next to nothing."""

from __future__ import annotations

import dataclasses

from rtxlib.data.datasets import Composed, Generated
from rtxlib.training.recipe import RECIPES
from rtxlib.training.recipe import recipe as named_recipe
from rtxstudy.profiles.conversions import CONVERSIONS, READ_EARLY
from rtxstudy.profiles.profile import (
    ComposedTask,
    DepthTask,
    EmbeddingStudy,
    ExitStudy,
    LongerTexts,
    LoopStudy,
    OwnText,
    Profile,
    Search,
    Task,
)

_HIDDEN_TOKENS = named_recipe("pretrain", epochs=1, batch_rows=8)
_SMOKE = Generated(rows=120, depth=1, vocab_size=400)

SMOKE = Profile(
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
    spam=dataclasses.replace(_SMOKE, task="spam", strip_urls=False),
    small="bert-tiny",
    small_recipe=RECIPES["smoke"],
    pretrained="sentence-transformers/all-MiniLM-L6-v2",
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
            alphas=(1.0,),
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
    untrained=(_SMOKE,),
    own_text=OwnText((_SMOKE,), _HIDDEN_TOKENS, loop_recipe=_HIDDEN_TOKENS, embedding_size=16, length=16),
    depth_seeds=1,
    conversions=CONVERSIONS[:2],
    embeddings=EmbeddingStudy((_SMOKE,), RECIPES["distill"], 32),
    exit_studies=(ExitStudy(_SMOKE, named_recipe("finetune", epochs=0.5), READ_EARLY | {"layers": 1}, seeds=1),),
    composed=(
        ComposedTask(
            Composed(task="pointer", rows=240, depth=2, items=4),
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
    search=Search(
        data=_SMOKE,
        arms=("standard-2x32", "recurrent-1x2x32"),
        recipe=RECIPES["smoke"],
        trials=({}, {"name": "averaged", "epochs": 2, "average": 0.5, "keep": "last", "evaluations_per_epoch": 2}),
        share=0.5,
        finalists=1,
        seeds=2,
    ),
    published=Task(dataclasses.replace(_SMOKE, train_fraction=0.5), seeds=1),
    elsewhere=tuple(Task(dataclasses.replace(_SMOKE, domain=one), 2) for one in ("local business", "online shopping")),
    cross_domain=True,
    unified=tuple(Task(dataclasses.replace(_SMOKE, task=one, max_length=64), 2) for one in ("domain", "sentiment")),
    stars=Task(dataclasses.replace(_SMOKE, domain="online shopping"), 2),
    component_seeds=1,
    plan_b_seeds=1,
    longer=LongerTexts(dataclasses.replace(_SMOKE, max_length=48), (48, 96), seeds=2),
    grid_data=dataclasses.replace(_SMOKE, train_fraction=0.5),
    least_steps=8,
    timing_rounds=1,
)
