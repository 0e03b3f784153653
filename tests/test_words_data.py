"""What a notebook says of its data."""

from __future__ import annotations

from rtxlib.training.recipe import RECIPES
from rtxstudy import words

SOURCE = {"data": "SST-2", "validation rows": 344}


def test_the_validation_split_has_its_standard_error_and_the_choices_made_with_it() -> None:
    said = words.validation(SOURCE, 0.8, RECIPES["default"])
    assert "has 344 texts" in said and "= 2.2 points" in said  # the root of 0.8 × 0.2 / 344 is 0.0216
    assert "learning rates" in said and "the weights that each run keeps" in said and "best baseline" in said
    other = words.validation(SOURCE | {"validation rows": 34_400}, 0.8, RECIPES["few"])
    assert "has 34,400 texts" in other and "= 0.2 points" in other
    assert "learning rates" not in other and "weights that each run keeps" not in other  # it keeps the last ones
