"""The gradients and states of a loop: shares that add up, gradients as finite differences say, states as their formulas say."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from near import assert_near
from test_recurrence import VARIANTS, small

from rtxlib.models.layers import Context
from rtxstudy.questions.gradients.gradients import (
    gradients_by_parameter,
    gradients_by_pass,
    gradients_of_states,
    pass_gradients,
)
from rtxstudy.questions.passes.states import states_by_pass

LENGTHS = (11, 4, 7, 9, 5, 6)


@pytest.fixture
def batches() -> list[dict[str, torch.Tensor | None]]:
    """Two batches of six texts, one padded and one not."""
    torch.manual_seed(3)
    ids = torch.randint(1, 60, (len(LENGTHS), max(LENGTHS)))
    mask = (torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]).long()
    return [
        {"input_ids": ids * mask, "attention_mask": mask, "labels": torch.tensor([0, 1, 1, 0, 1, 0])},
        {"input_ids": ids[:, :3], "attention_mask": None, "labels": torch.tensor([1, 0, 0, 1, 0, 0])},
    ]


# ---------------------------------------- gradients


@pytest.mark.parametrize("variant", VARIANTS)
def test_what_the_passes_contribute_adds_up_to_the_full_gradient(variant: str, batches: list) -> None:
    model = small(**VARIANTS[variant])
    parts, loss = pass_gradients(model, batches)
    rows = sum(len(batch["labels"]) for batch in batches)
    total = sum(model(**batch).loss * len(batch["labels"]) for batch in batches) / rows
    total.backward()
    assert loss == pytest.approx(total.item(), rel=1e-5)
    blocks = model.encoder.stack.blocks
    if len(blocks) == 1:
        for number, p in enumerate(blocks[0].parameters()):
            assert_near(sum(part[number] for part in parts), p.grad)
    else:
        for part, block in zip(parts, blocks, strict=True):
            for own, p in zip(part, block.parameters(), strict=True):
                assert_near(own, p.grad)


def test_shares_of_each_parameter_add_up_to_one_and_name_where_they_belong(batches: list) -> None:
    model = small("recurrent-2x3x64")
    table = gradients_by_parameter(model, batches)
    shares = table.groupby(["layer", "parameter"])["share"].sum()
    np.testing.assert_allclose(shares, 1.0, atol=1e-6)
    assert len(shares) == len(list(model.encoder.stack.blocks[0].parameters()))
    assert sorted(set(table["depth"])) == [1, 2, 3, 4, 5, 6]
    assert (table["depth"] == (table["iteration"] - 1) * 2 + table["layer"]).all()
    by_pass = gradients_by_pass(model, batches)
    squares = table.assign(square=table["norm"] ** 2).groupby("iteration")["square"].sum()
    np.testing.assert_allclose(squares**0.5, by_pass["norm"], rtol=1e-5)
    apart = gradients_by_parameter(small("recurrent-2x3x64", block_sharing="unshared"), batches)
    assert (apart["share"] == 1).all()


def test_gradients_of_states_are_what_finite_differences_say(batches: list) -> None:
    """The gradient of the loss by the state after a pass, against the loss moved along one direction of that state."""
    model, batch = small("recurrent-1x3x64", residual="every").double(), batches[1]
    table = gradients_of_states(model, [batch])
    assert table["ratio"].iloc[-1] == 1 and (table["least"] <= table["ratio"] + 1e-12).all()
    states = model.encoder(batch["input_ids"], output_hidden_states=True).pass_states

    def loss(h: torch.Tensor, start: int) -> float:
        stack, full = model.encoder.stack, model.encoder.context(3, None, h.device).full
        context = Context(full._replace(rotary=tuple(x.double() for x in full.rotary)))
        for number in range(start, 3):
            h = stack.finish(h, stack.begin(h, h, number, context), number, context)
        return torch.nn.functional.cross_entropy(model.classify(h), batch["labels"], reduction="none")

    step, norms = 1e-6, []
    for start, state in enumerate(states):
        gradient = torch.zeros_like(state)
        for i in range(state.shape[1]):
            for j in range(state.shape[2]):
                moved = torch.zeros_like(state)
                moved[:, i, j] = step
                with torch.inference_mode():
                    gradient[:, i, j] = (loss(state + moved, start) - loss(state - moved, start)) / (2 * step)
        norms.append(gradient.flatten(1).norm(dim=1))
    expected = torch.stack(norms) / norms[-1]
    np.testing.assert_allclose(table["ratio"], expected.mean(dim=1), rtol=1e-4)
    np.testing.assert_allclose(table["least"], expected.amin(dim=1), rtol=1e-4)


@pytest.mark.parametrize(
    ("words", "bound", "gain"),
    [
        ({"residual": "none"}, [0, 0, 0, 1], [1, 1, 1, 1]),
        ({"residual": "every"}, [0.125, 0.25, 0.5, 1], [3.375, 2.25, 1.5, 1]),
        ({"residual": "from_second"}, [0, 0.25, 0.5, 1], [2.25, 2.25, 1.5, 1]),
        ({"residual": "damped", "residual_scale": 0.25}, [0.421875, 0.5625, 0.75, 1], [1, 1, 1, 1]),
    ],
)
def test_bound_and_gain_are_the_products_of_what_each_pass_carries(words, bound, gain, batches: list) -> None:
    table = gradients_of_states(small("recurrent-1x3x64", **words), batches)
    np.testing.assert_allclose(table["bound"], bound)
    np.testing.assert_allclose(table["gain"], gain)


def test_an_identity_block_passes_exactly_the_gain_on(batches: list) -> None:
    """With its output projections at zero F is the identity, and the gradient grows by 1 + α a pass."""
    model = small("recurrent-2x3x64", residual="every", residual_scale=0.3)
    with torch.no_grad():
        for layer in model.encoder.stack.blocks[0]:
            for part in (layer.attention.output, layer.feedforward.output):
                part.weight.zero_()
                part.bias.zero_()
    table = gradients_of_states(model, batches)
    np.testing.assert_allclose(table["ratio"], table["gain"], rtol=1e-5)
    np.testing.assert_allclose(table["ratio"], 1.3 ** np.arange(3, -1, -1), rtol=1e-5)
    norms = states_by_pass(model, batches)["norm"]
    np.testing.assert_allclose(norms[1:].to_numpy() / norms[:-1].to_numpy(), 1.3, rtol=1e-5)


# ---------------------------------------- states


def test_states_by_pass_are_their_formulas(batches: list) -> None:
    model = small("recurrent-2x3x64", prelude_layers=1, coda_layers=1)
    table = states_by_pass(model, batches, passes=4)
    rows: list[list[float]] = [[] for _ in range(5)]
    with torch.inference_mode():
        for batch in batches:
            lengths = LENGTHS if batch["attention_mask"] is not None else (3,) * 6
            for row, length in enumerate(lengths):  # each text alone
                ids = batch["input_ids"][row : row + 1, :length]
                out = model.encoder(ids, output_hidden_states=True, output_attentions=True, recurrent_depth=4)
                found = [model(ids, recurrent_depth=t).logits[0] for t in (1, 2, 3, 4)]
                for t in range(5):
                    h = out.pass_states[t][0]  # (T, d)
                    correlations = np.corrcoef(h.numpy())
                    values = [float(h.norm(dim=-1).mean()) / 8, correlations[~np.eye(length, dtype=bool)].mean()]
                    if t:
                        before = out.pass_states[t - 1][0]
                        weights = torch.stack(out.attentions[1 + 2 * (t - 1) : 1 + 2 * t])
                        label = batch["labels"][row]
                        values += [
                            float(torch.cosine_similarity(h, before, dim=-1).mean()),
                            float(((h - before).norm(dim=-1) / before.norm(dim=-1)).mean()),
                            float(found[t - 1].argmax() == label),
                            float(-found[t - 1].log_softmax(-1)[label]),
                            float(found[t - 1].argmax() != found[2].argmax()),
                            float(-(weights * weights.log()).sum(-1).mean() / math.log(length)),
                        ]
                    rows[t].append(values)
    names = ["norm", "token_correlation", "cosine", "distance", "accuracy", "loss", "changed", "entropy"]
    assert table["iteration"].tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_allclose(table.loc[1:, names], [np.mean(of_pass, axis=0) for of_pass in rows[1:]], rtol=1e-4)
    np.testing.assert_allclose(table.loc[0, names[:2]].astype(float), np.mean(rows[0], axis=0), rtol=1e-4)
    assert table.loc[0, names[2:]].isna().all()


def test_tokens_that_have_become_one_correlate_fully(batches: list) -> None:
    model = small("recurrent-1x2x64", loop_norm=True)
    with torch.no_grad():
        model.encoder.stack.loop_norm.weight.zero_()
        model.encoder.stack.loop_norm.weight[0] = 1e3  # every state is a multiple of the first axis, on either side of it
    table = states_by_pass(model, batches)
    assert table["token_correlation"].iloc[-1] < 1 + 1e-9
    with torch.no_grad():
        model.encoder.stack.blocks[0][0].feedforward.output.bias[0] = 1e6  # and now on the same side
    assert states_by_pass(model, batches)["token_correlation"].iloc[-1] == pytest.approx(1)
