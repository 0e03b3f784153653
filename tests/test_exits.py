"""Early exit measured: decoded passes, calibrated thresholds, timings, and what is said of them."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import torch
from near import assert_near
from test_recurrence import logits, small

from rtxlib.errors import InputError
from rtxlib.models import EarlyExit
from rtxstudy.questions.early_exit import exits
from rtxstudy.questions.passes import what_passes_do


@pytest.fixture
def batches() -> list[dict[str, torch.Tensor | None]]:
    """Two batches, one padded and one not."""
    torch.manual_seed(3)
    ids = torch.randint(1, 60, (6, 11))
    mask = (torch.arange(11) < torch.tensor([11, 4, 7, 9, 5, 6])[:, None]).long()
    return [
        {"input_ids": ids * mask, "attention_mask": mask},
        {"input_ids": ids[:, :3], "attention_mask": None},
    ]


def test_every_pass_decoded_is_the_model_run_at_that_depth(batches: list) -> None:
    model = small("recurrent-2x3x64", coda_layers=1)
    decoded = exits.decode_passes(model, batches)
    grads = []
    model.register_forward_hook(lambda *_: grads.append(torch.is_grad_enabled()))
    labels, _ = exits.outcome(model, batches, exits.arguments("fixed", 2))
    assert labels.tolist() == decoded.logits[:, 1].argmax(-1).tolist() and grads == [False, False]
    for t in (1, 2, 3):
        alone = torch.cat([logits(model, batch, recurrent_depth=t) for batch in batches])
        assert_near(decoded.logits[:, t - 1], alone)


@pytest.mark.parametrize("criterion", exits.CRITERIA)
def test_leaving_on_paper_is_leaving_in_the_model(criterion: str, batches: list) -> None:
    model = small("recurrent-2x3x64", residual="damped")
    decoded = exits.decode_passes(model, batches)
    for threshold in (0.0, 0.45, 0.6, 0.75, 0.9, 1.0):
        rule = EarlyExit(criterion, threshold)
        real = torch.cat([model(**batch, early_exit=rule).passes for batch in batches])
        assert exits.leave(decoded.scores[criterion], threshold).tolist() == real.tolist()


@pytest.mark.parametrize("criterion", exits.CRITERIA)
def test_pairs_leave_a_model_that_reads_the_mean_as_on_paper(criterion: str, batches: list) -> None:
    model = small("recurrent-2x4x64", pooling="mean", residual="none", norm_placement="post")
    types = (torch.arange(11) > 1).long().expand(6, -1)
    pairs = [batch | {"token_type_ids": types[:, : batch["input_ids"].shape[1]]} for batch in batches]
    decoded, single = exits.decode_passes(model, pairs), exits.decode_passes(model, batches)
    assert not np.allclose(decoded.logits, single.logits, atol=1e-3)  # the segments are read
    for threshold in (0.3, 0.5, 0.7):
        left = [model(**batch, early_exit=EarlyExit(criterion, threshold)) for batch in pairs]
        taken = exits.leave(decoded.scores[criterion], threshold)
        assert torch.cat([one.passes for one in left]).tolist() == taken.tolist()
        on_paper = decoded.logits[np.arange(len(taken)), taken - 1]
        assert_near(torch.cat([one.logits for one in left]), on_paper)


def test_calibration_takes_the_lowest_threshold_that_keeps_its_promise() -> None:
    scores = np.array([[0.9, 1.0], [0.8, 1.0], [0.7, 1.0], [0.6, 1.0]])
    predictions = np.array([[0, 0], [1, 1], [0, 1], [1, 1]])  # leaving early changes the third text alone
    assert exits.calibrate(scores, predictions, 0.0) == 0.7  # above it 0.9 and 0.8 leave, the third stays
    assert exits.calibrate(scores, predictions, 0.25) == 0.0
    never = exits.calibrate(np.array([[1.0, 1.0]]), np.array([[0, 1]]), 0.0)
    assert never == 1.0
    rng = np.random.default_rng(0)
    scores, predictions = rng.random((500, 4)), rng.integers(0, 2, (500, 4))
    for tolerance in (0.0, 0.05, 0.2):
        threshold = exits.calibrate(scores, predictions, tolerance)
        changed = predictions[np.arange(500), exits.leave(scores, threshold) - 1] != predictions[:, -1]
        assert changed.mean() <= tolerance
    with pytest.raises(InputError, match="between 0 and 1"):
        exits.calibrate(scores, predictions, 1.5)


def test_timings_are_of_the_work_asked_for(batches: list) -> None:
    """Twelve passes take longer than one, in the same rounds; the model's mode is left alone."""
    model = small("recurrent-2x3x64")
    batches = [{"input_ids": torch.randint(1, 60, (64, 40)), "attention_mask": None}] * 2
    one, many = exits.milliseconds(model, batches, [{"recurrent_depth": 1}, {"recurrent_depth": 12}])
    assert 0 < one < many
    assert not model.training


def test_the_table_of_exits_names_the_fixed_passes_that_do_as_well() -> None:
    row = {"criterion": "confidence", "model": "m", "data": "sst2", "throughput": 2.0, "throughput_least": 1.8, "passes": 1.4}
    row["learned"] = True
    row |= {"difference": -0.001, "low": -0.004, "high": 0.002, "n_seeds": 5}
    row |= {"fixed_passes": 2, "fixed_throughput": 1.9, "fixed_difference": 0.001}
    none = {"fixed_passes": math.nan, "fixed_throughput": math.nan}
    shown = what_passes_do.readable_exits(pd.DataFrame([row, row | none | {"low": math.nan}]))
    assert shown.iloc[0].tolist()[2:6] == ["1.40", "2.00 (1.80)", "−0.1 (−0.4 to +0.2)", "2: 1.90 times, +0.1"]
    assert shown.iloc[1].tolist()[4:6] == ["−0.1", "none"]


