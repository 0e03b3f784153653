"""Minutes on two cores: generated texts."""

from __future__ import annotations

import dataclasses

from rtxlib.data.datasets import Generated
from rtxlib.training.recipe import RECIPES
from rtxlib.training.recipe import recipe as named_recipe
from rtxstudy.profiles.conversions import CONVERSIONS
from rtxstudy.profiles.profile import DepthTask, LoopStudy, Profile

_DEMO = Generated(rows=3000, depth=2, vocab_size=2000)
# Texts whose verdict is composed of up to four operators. One narrow layer cannot compose them, four layers can, and so can
# one layer that is passed four times: what the study is about, in minutes. The most tokens tell its label from that of _DEMO.
_COMPOSED = dataclasses.replace(_DEMO, rows=8000, depth=4, max_length=128)

DEMO = Profile(
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
    spam=dataclasses.replace(_DEMO, task="spam", rows=800, strip_urls=False),
    small="bert-tiny",
    small_recipe=RECIPES["demo"],
    pretrained="sentence-transformers/all-MiniLM-L6-v2",
    finetune=named_recipe("finetune", epochs=0.5),
    finetune_spam=RECIPES["finetune"],
    pretrained_seeds=1,
    searched_rows=200,
    loops=(
        LoopStudy(
            _DEMO,
            RECIPES["demo"],
            32,
            passes=3,
            layers=(1, 2, 3),
            shapes=((1, 2), (1, 3), (2, 2)),
            seeds=2,
        ),
    ),
    variant={},
    random_depth="recurrent-1x3x64",
    random_depth_seeds=3,
    depth_tasks=(
        DepthTask(_DEMO, made=named_recipe("finetune", epochs=0.5)),
        DepthTask(_COMPOSED, one_layer=RECIPES["demo"], narrow=(64, 4)),
    ),
    own_text=None,
    depth_seeds=3,
    conversions=CONVERSIONS[:2],
    exit_studies=(),
    least_steps=225,  # as many as three epochs of all rows
)
