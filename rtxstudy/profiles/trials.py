"""The trials of the recipe search on SST-2: fields of :class:`rtxlib.training.recipe.Recipe` that differ from `default`.

All arms have the same trials, so each gets the same effort. The phrases of one SST-2 sentence lie inside each other, so one epoch
reads each sentence about ten times. `default` already overfits in a second epoch (LOG.md), so a trial with more epochs hides or
averages more. Each trial but the first keeps the last weights: the rate has fallen to zero there, and the lowest validation loss
comes long before the highest accuracy. No trial has more than three epochs, since the runs that follow must be affordable.
"""

from __future__ import annotations

from typing import Any

TRIALS: tuple[dict[str, Any], ...] = (
    # the recipe of the study before the search
    {},
    # twice the epochs and twice the dropout, with the mean of the weights on the last third of the path (Izmailov et al. 2018)
    {"name": "averaged", "epochs": 2, "dropout": 0.2, "word_dropout": 0.2, "average": 1 / 3, "keep": "last"},
    # whole words are hidden, which helps bags of words on SST most at 30 % (Iyyer et al. 2015), beside three times the dropout
    {"name": "hidden words", "epochs": 3, "dropout": 0.3, "word_dropout": 0.3, "keep": "last"},
    # soft labels, because many short phrases have no clear one (Szegedy et al. 2016)
    {"name": "soft labels", "epochs": 2, "word_dropout": 0.2, "label_smoothing": 0.1, "average": 1 / 3, "keep": "last"},
    # four times the steps, with half of the rate: noisier gradients and the same data
    {
        "name": "small batches",
        "epochs": 2,
        "batch_rows": 32,
        "learning_rate": 2.5e-4,
        "word_dropout": 0.2,
        "keep": "last",
    },
    # Token vectors that start small turn fast under the norm behind the embedding matrix, so rare words lose their random start.
    # Output projections that start small keep each layer near the identity (Radford et al. 2019).
    {
        "name": "small start",
        "epochs": 2,
        "embedding_initializer_range": 1e-3,
        "output_initializer": "depth_scaled",
        "word_dropout": 0.2,
        "keep": "last",
    },
    # twice the rate, and the mean of a longer part of the path
    {
        "name": "fast",
        "epochs": 3,
        "learning_rate": 1e-3,
        "dropout": 0.2,
        "word_dropout": 0.3,
        "average": 0.5,
        "keep": "last",
    },
    # everything that should keep a model from learning its texts by heart, at a low rate
    {
        "name": "all together",
        "epochs": 3,
        "learning_rate": 3e-4,
        "dropout": 0.2,
        "word_dropout": 0.3,
        "embedding_initializer_range": 1e-3,
        "output_initializer": "depth_scaled",
        "label_smoothing": 0.1,
        "average": 1 / 3,
        "keep": "last",
    },
)
