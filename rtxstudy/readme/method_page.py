"""The generated part of docs/method.md: the recipes."""

from __future__ import annotations

from rtx.training import BY_ROWS
from rtxlib.training.recipe import RECIPES, Recipe
from rtxstudy.readme.blocks import lines

CHOSEN = {  # recipe → what it trains, and how it was chosen (LOG.md)
    "default": (
        "from random weights",
        "Of two learning rates, the one with the lower validation loss for the recurrent headline encoder; for the standard one "
        "both are alike. Two epochs were begun and stopped, because the validation loss rose.",
    ),
    "small": (
        "from random weights",
        "By validation accuracy on 3,017 reviews, beside `default` and twice the rate. The epochs were not searched.",
    ),
    "demo": (
        "the generated texts and very small encoders",
        "The epochs were doubled until the encoders of the demo learned. LOG.md has no search of the rate.",
    ),
    "finetune": (
        "from pretrained weights",
        "The rate of three by validation loss on 344 phrases; two of them were close. Layer decay and warm-up were not searched. "
        "The last weights were taken after a test result on spam had been seen.",
    ),
    "pretrain": (
        "masked words, from random weights",
        "Rows a step and rate by the loss on masked words on 400 held-out rows, after one epoch on a fifth of the texts.",
    ),
}
_KEPT = {"best": "lowest validation loss", "last": "the last"}


def recipes() -> str:
    """The recipes of :data:`CHOSEN`, with their settings as :data:`rtxlib.training.recipe.RECIPES` has them."""
    settings = ["learning rate", "schedule", "rows a step", "epochs", "dropout", "weights kept"]
    return lines(
        ["recipe", "trains", *settings, "how it was chosen"],
        (_row(RECIPES[name], *words) for name, words in CHOSEN.items()),
    )


def _row(recipe: Recipe, trains: str, how: str) -> list[str]:
    return [
        f"`{recipe.name}`",
        f"{trains}{_of_rows(recipe.name)}",
        f"{recipe.learning_rate:g}",
        f"{recipe.schedule}, {100 * recipe.warmup:.0f} % warm-up",
        f"{recipe.batch_rows:,}",
        f"{recipe.epochs:g}",
        _dropout(recipe),
        _KEPT[recipe.keep],
        how,
    ]


def _of_rows(name: str) -> str:
    """For how many training rows `rtx train` takes this recipe, if their number decides."""
    starts = dict(zip([*BY_ROWS.values(), "default"], [0, *BY_ROWS], strict=True))  # recipe → fewest rows
    ends = {recipe: limit for limit, recipe in BY_ROWS.items()}
    if name not in starts:
        return ""
    return f", {starts[name]:,} to {ends[name]:,} rows" if name in ends else f", {starts[name]:,} rows or more"


def _dropout(recipe: Recipe) -> str:
    dropout = "the encoder's own" if recipe.dropout is None else f"{recipe.dropout:g}"
    return f"{dropout}; {100 * recipe.word_dropout:.0f} % of the words" if recipe.word_dropout else dropout
