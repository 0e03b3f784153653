"""Windows of a fine-tuned encoder that are passed again with nothing trained: validation texts choose, test texts judge."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rtx import archive
from rtxlib import paths
from rtxlib.data.datasets import Generated
from rtxlib.data.prepare import prepare
from rtxlib.runs import train
from rtxlib.runs.spec import RunSpec
from rtxlib.training.recipe import RECIPES
from rtxstudy.claims import sentences
from rtxstudy.questions.untrained_loop import untrained_claims, untrained_figures
from rtxstudy.questions.untrained_loop.untrained_loop import TRAINED
from rtxstudy.questions.untrained_loop.window_passes import (
    DAMPED,
    REPEATED,
    on_test,
    on_validation,
    ways,
    window_passes,
)

SPEC = RunSpec(
    "standard-3x32",
    Generated(rows=240, depth=1, vocab_size=400),
    dataclasses.replace(RECIPES["smoke"], precision="fp32"),
    0,
)


def test_the_ways_are_every_window_damped_and_repeated() -> None:
    assert len(ways(6)) == len(set(ways(6))) == (6 + 5 + 4) * 3 * 2
    assert len(ways(2)) == (2 + 1) * 3 * 2  # no window of three layers


def test_validation_texts_choose_and_the_encoder_itself_gives_the_labels_of_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RTX_HOME", str(tmp_path))
    run = train.train_run(SPEC, paths.runs_dir())
    data = prepare(SPEC.data, paths.prepared_dir())
    table = window_passes(run, data)
    predictions = archive.part(run, "predictions").sort_values("row")
    itself = table[(table["split"] == "test") & (table["kind"] == "once")]["correct"].iloc[0]
    assert list(itself) == list(predictions["prediction"] == predictions["label"])
    right = table.assign(right=table["correct"].map(np.sum)).set_index(["kind", "first", "layers", "passes"])
    validation, test = (right[right["split"] == split] for split in ("validation", "test"))
    assert len(validation) == 1 + len(ways(3)) and len(test) == 3
    assert all(len(correct) == len(data.splits["validation"]) for correct in validation["correct"])
    for kind in (DAMPED, REPEATED):
        (chosen,) = test.loc[[kind]].index
        assert validation.loc[chosen, "right"] == validation.loc[[kind], "right"].max()
    again = window_passes(run, None)  # kept beside the run
    assert again["correct"].map(list).tolist() == table["correct"].map(list).tolist()


def made_up(gain: int) -> pd.DataFrame:
    """Three seeds of 100 texts, of which the encoder gets 50 right and the damped window ``gain`` more; repetition 20 fewer."""
    rows = []
    for seed in range(3):
        for kind, right in (("once", 50), (DAMPED, 50 + gain), (REPEATED, 30)):
            one = {"key": f"k{seed}", "seed": seed, "data": "sst2", "kind": kind, "first": 1, "layers": 2, "passes": 3}
            one["correct"] = [True] * right + [False] * (100 - right)
            rows += [one | {"split": split} for split in ("validation", "test")]
    return pd.DataFrame(rows)


@pytest.mark.parametrize(("gain", "gains"), [(0, False), (30, True)])
def test_sentences_follow_the_intervals(gain: int, gains: bool) -> None:
    table = made_up(gain)
    changes = on_test(table).set_index("kind")
    assert changes.loc[DAMPED, "difference"] == pytest.approx(gain / 100)
    assert changes.loc[REPEATED, ["difference", "worst", "best"]].tolist() == pytest.approx([-0.2] * 3)
    assert changes.loc[DAMPED, "chosen"] == "layers 2 to 3, 3 times" and changes.loc[DAMPED, "n_items"] == 100
    said = " ".join(sentences(untrained_claims.without_training(changes.reset_index())))
    assert ("a gain shown" in said) != gains and "loses 20.0 points" in said
    assert untrained_claims.title(changes.reset_index()).holds != gains


def test_every_row_of_the_figure_has_its_numbers() -> None:
    changes = on_test(made_up(0))
    loop = changes.head(1).assign(kind=TRAINED, difference=0.01, low=0.005, high=0.015)
    drawn = untrained_figures.untrained_loop(pd.concat([changes, loop]), on_validation(made_up(0)), "A title")
    words = [text.get_text() for text in drawn.axes[0].texts]
    assert len(words) == 3 and words[2] == "+1.0 (+0.5 to +1.5)"
    drawn.savefig("/dev/null", format="png")
