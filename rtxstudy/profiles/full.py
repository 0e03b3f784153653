"""Exactly what is committed: people's texts, and hours on two cores."""

from __future__ import annotations

import dataclasses

from rtxlib.data.datasets import Composed, Generated, Hub, Pooled, data_spec
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
from rtxstudy.profiles.trials import TRIALS

_SST2 = Hub("sst2")
_DOMAINS = Pooled(task="domain", rows=6000)
_GENERATED = Generated(rows=8000, depth=4, vocab_size=2000)
# Yelp and Amazon have as many rows as the Hub or its mirror holds once the labels are balanced, at most
# rtxlib.data.sources.POOLED_ROWS of each.
_REVIEWS = tuple(Hub(name, tokenizer="bert") for name in ("sst2", "yelp_polarity", "amazon_polarity"))
_SHORT_YELP, _SHORT_AMAZON = (
    Hub(name, official_test=True, rows=8000, max_length=128) for name in ("yelp_polarity", "amazon_polarity")
)
_FIVE_STARS = data_spec("yelp_five_stars", official_test=True, rows=8000, max_length=128)
_INFERENCE, _SHORT_INFERENCE, _SPAM = data_spec("multi_nli"), data_spec("snli", rows=20_000), data_spec("sms_spam")
# Tasks on which no pretrained encoder of ours is judged. The pretraining leaves their evaluation texts out all the same. It was
# done before the official test texts of Yelp with five stars were chosen; it left out 800 texts of their training split.
_LEFT_OUT = (
    *(_INFERENCE, _SHORT_INFERENCE, _DOMAINS, _SPAM, _GENERATED, _SHORT_YELP, _SHORT_AMAZON),
    dataclasses.replace(_FIVE_STARS, official_test=False),
)
_UNLABELLED = tuple(Hub(name, rows=15_000) for name in ("yelp_polarity", "amazon_polarity"))  # to learn embeddings
_ONE_EPOCH, _TWO_EPOCHS = (named_recipe("finetune", epochs=epochs) for epochs in (1, 2))
_TAUGHT = named_recipe("finetune", distillation=0.5)
# After a pretraining of a few million words all layers have to learn more than those of MiniLM (trials in LOG.md).
_AFTER_OWN_TEXT = named_recipe("finetune", epochs=1, learning_rate=1e-3, layer_decay=1.0)
_SEARCH = Search(
    data=dataclasses.replace(_SST2, validation_share=0.2),
    arms=("standard-6x384", "recurrent-3x2x256", "standard-3x256", "standard-6x256"),
    recipe=RECIPES["default"],
    trials=TRIALS,
    share=0.5,
    finalists=2,
    seeds=5,
)

_DEPTH_TASKS = (
    DepthTask(_INFERENCE, made=_TWO_EPOCHS, lower=_TWO_EPOCHS),
    DepthTask(
        data_spec("cola"),
        RECIPES["small"],
        made=RECIPES["finetune"],
        lower=RECIPES["finetune"],
        taught=_TAUGHT,
        own_text=dataclasses.replace(_AFTER_OWN_TEXT, epochs=3),
    ),
    DepthTask(_SST2, RECIPES["default"], made=_ONE_EPOCH, own_text=_AFTER_OWN_TEXT),
    DepthTask(_SHORT_INFERENCE, made=_TWO_EPOCHS),
    DepthTask(_SHORT_YELP, made=_ONE_EPOCH),
    DepthTask(_SHORT_AMAZON, made=_ONE_EPOCH),
    DepthTask(_DOMAINS, made=_ONE_EPOCH),
    DepthTask(_SPAM, made=RECIPES["finetune"]),
    DepthTask(_GENERATED, named_recipe("demo", epochs=4), one_layer=named_recipe("demo", epochs=4)),
    DepthTask(_INFERENCE, scratch=RECIPES["medium"]),
    DepthTask(_FIVE_STARS, made=_TWO_EPOCHS),
    DepthTask(data_spec("inference_mix"), made=_ONE_EPOCH, lower=_ONE_EPOCH),  # four times the pairs of MultiNLI here
)

# Yelp and Amazon at the proposal's length, judged on the official test rows. All other rows are for training and validation.
_YELP, _AMAZON = (
    Hub(name, official_test=True, max_length=128) for name in ("yelp_polarity", "amazon_polarity")
)
_UNIFIED = Pooled(rows=67_000, max_length=128)
_LOOPS = (
    LoopStudy(
        _SST2,
        RECIPES["default"],
        128,
        passes=4,
        layers=(1, 2, 4, 8),
        shapes=((1, 2), (1, 4), (1, 8), (2, 2)),
        seeds=2,
        alphas=(0.25, 1.0),
    ),
    LoopStudy(
        _GENERATED,
        named_recipe("demo", epochs=4),
        64,
        passes=4,
        layers=(1, 2, 3, 4, 6, 8),
        shapes=((1, 2), (1, 3), (1, 4), (1, 6), (1, 8), (2, 2), (2, 4), (4, 2)),
        seeds=3,
        alphas=(0.25, 1.0),
    ),
)
_STARS = Hub("amazon_reviews_multi_en", max_length=128)

FULL = Profile(
    name="full",
    seeds=5,
    arm_seeds=3,
    recipe=RECIPES["default"],
    data=_SST2,
    domains=_DOMAINS,
    transfer_from=_SST2,
    transfer_to=Hub("yelp_polarity", rows=6000),
    standard="standard-6x384",
    recurrent="recurrent-3x2x256",
    wide="standard-6x512",
    deep="recurrent-3x2x384",
    grid_widths=(128, 256, 384),
    grid_layers=(2, 3, 6),
    grid_passes=(1, 2, 3),
    grid_data=dataclasses.replace(_SST2, train_fraction=1 / 3),
    grid_seeds=3,
    fractions=(1.0, 0.5, 0.1),
    least_steps=1000,
    spam=_SPAM,
    small="bert-mini",
    small_recipe=RECIPES["small"],
    pretrained="sentence-transformers/all-MiniLM-L6-v2",
    finetune=_ONE_EPOCH,
    finetune_spam=RECIPES["finetune"],
    pretrained_seeds=3,
    searched_rows=1000,
    loops=_LOOPS,
    variant={},
    random_depth="recurrent-3x4x256",
    random_depth_seeds=5,
    search=_SEARCH,
    published=Task(dataclasses.replace(_SST2, train_fraction=1 / 3), seeds=1),
    unified=tuple(Task(dataclasses.replace(_UNIFIED, task=one), seeds=3) for one in ("domain", "sentiment")),
    stars=Task(_STARS, seeds=3),
    elsewhere=(Task(_YELP, seeds=3), Task(_AMAZON, seeds=3)),
    cross_domain=True,
    component_seeds=5,
    plan_b_seeds=3,
    longer=LongerTexts(dataclasses.replace(_YELP, max_length=64), (64, 128, 256), seeds=3),
    depth_tasks=_DEPTH_TASKS,
    untrained=(_INFERENCE, _SHORT_INFERENCE, _SHORT_YELP, _SST2),
    own_text=OwnText(
        _REVIEWS,
        named_recipe("pretrain", epochs=4),
        loop_recipe=named_recipe("pretrain", epochs=4, learning_rate=5e-4),
        embedding_size=128,
        kept_out=_LEFT_OUT,
    ),
    depth_seeds=3,
    conversions=CONVERSIONS,
    exit_studies=(ExitStudy(_INFERENCE, _ONE_EPOCH, READ_EARLY, seeds=3),),
    embeddings=EmbeddingStudy((_SST2, *_UNLABELLED), RECIPES["distill"], 64),
    deployed="taught",
    composed=(
        ComposedTask(
            Composed(task="same", rows=50_000),
            named_recipe("finetune", epochs=1, learning_rate=1.5e-4),
            width=None,
            layers=3,
            passes=2,
            alone=(),
            loops=(),
            random_passes=None,
            seeds=3,
        ),
    ),
)
