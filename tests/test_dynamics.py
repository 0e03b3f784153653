"""What the loop does, measured: shares that add up, states as their formulas say, and a φ that finds the one put in."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import torch
from test_recurrence import VARIANTS, logits, small

from rtxlib.errors import InputError
from rtxlib.models import EarlyExit
from rtxlib.models.masks import Views
from rtxstudy import words
from rtxstudy.evaluation import exits
from rtxstudy.evaluation import gradients as dynamics
from rtxstudy.evaluation.states import states_by_pass
from rtxstudy.evaluation.worth import without_one_model, worth_of_passes

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
    parts, loss = dynamics.pass_gradients(model, batches)
    rows = sum(len(batch["labels"]) for batch in batches)
    total = sum(model(**batch).loss * len(batch["labels"]) for batch in batches) / rows
    total.backward()
    assert loss == pytest.approx(total.item(), abs=1e-5)
    blocks = model.encoder.stack.blocks
    if len(blocks) == 1:
        for number, p in enumerate(blocks[0].parameters()):
            torch.testing.assert_close(sum(part[number] for part in parts), p.grad, atol=1e-5, rtol=1e-3)
    else:
        for part, block in zip(parts, blocks, strict=True):
            for own, p in zip(part, block.parameters(), strict=True):
                torch.testing.assert_close(own, p.grad, atol=1e-5, rtol=1e-3)


def test_shares_of_each_parameter_add_up_to_one_and_name_where_they_belong(batches: list) -> None:
    model = small("recurrent-2x3x64")
    table = dynamics.gradients_by_parameter(model, batches)
    shares = table.groupby(["layer", "parameter"])["share"].sum()
    np.testing.assert_allclose(shares, 1.0, atol=1e-6)
    assert len(shares) == len(list(model.encoder.stack.blocks[0].parameters()))
    assert sorted(set(table["depth"])) == [1, 2, 3, 4, 5, 6]
    assert (table["depth"] == (table["iteration"] - 1) * 2 + table["layer"]).all()
    by_pass = dynamics.gradients_by_pass(model, batches)
    squares = table.assign(square=table["norm"] ** 2).groupby("iteration")["square"].sum()
    np.testing.assert_allclose(squares**0.5, by_pass["norm"], rtol=1e-5)
    apart = dynamics.gradients_by_parameter(small("recurrent-2x3x64", block_sharing="unshared"), batches)
    assert (apart["share"] == 1).all()


def test_gradients_of_states_are_what_finite_differences_say(batches: list) -> None:
    """The gradient of the loss by the state after a pass, against the loss moved along one direction of that state."""
    model, batch = small("recurrent-1x3x64", residual="every").double(), batches[1]
    table = dynamics.gradients_of_states(model, [batch])
    assert table["ratio"].iloc[-1] == 1 and (table["least"] <= table["ratio"] + 1e-12).all()
    states = model.encoder(batch["input_ids"], output_hidden_states=True).pass_states

    def loss(h: torch.Tensor, start: int) -> float:
        stack, full = model.encoder.stack, model.encoder.views(3, None, h.device).full
        views = Views(full._replace(rotary=tuple(x.double() for x in full.rotary)))
        for iteration in range(start, 3):
            h = stack.finish(h, stack.begin(h, h, iteration, views), iteration, views)
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
    table = dynamics.gradients_of_states(small("recurrent-1x3x64", **words), batches)
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
    table = dynamics.gradients_of_states(model, batches)
    np.testing.assert_allclose(table["ratio"], table["gain"], rtol=1e-5)
    np.testing.assert_allclose(table["ratio"], 1.3 ** np.arange(3, -1, -1), rtol=1e-5)
    norms = states_by_pass(model, batches)["norm"]
    np.testing.assert_allclose(norms[1:].to_numpy() / norms[:-1].to_numpy(), 1.3, rtol=1e-5)


# ---------------------------------------- states


def test_states_by_pass_are_their_formulas(batches: list) -> None:
    model = small("recurrent-2x3x64", prelude_layers=1, coda_layers=1)
    table = states_by_pass(model, batches, depth=4)
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


# ---------------------------------------- exits


def test_every_pass_decoded_is_the_model_run_at_that_depth(batches: list) -> None:
    model = small("recurrent-2x3x64", coda_layers=1)
    decoded = exits.decode_passes(model, batches)
    for t in (1, 2, 3):
        alone = torch.cat([logits(model, batch, recurrent_depth=t) for batch in batches])
        np.testing.assert_allclose(decoded.logits[:, t - 1], alone, atol=1e-4)


@pytest.mark.parametrize("criterion", exits.CRITERIA)
def test_leaving_on_paper_is_leaving_in_the_model(criterion: str, batches: list) -> None:
    model = small("recurrent-2x3x64", residual="damped")
    decoded = exits.decode_passes(model, batches)
    for threshold in (0.0, 0.45, 0.6, 0.75, 0.9, 1.0):
        rule = EarlyExit(criterion, threshold)
        real = torch.cat([model(**batch, early_exit=rule).passes for batch in batches])
        assert exits.leave(decoded.scores[criterion], threshold).tolist() == real.tolist()


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
    one, many = exits.milliseconds(model, batches, [{"recurrent_depth": 1}, {"recurrent_depth": 12}], rounds=3)
    assert 0 < one < many
    assert not model.training


# ---------------------------------------- φ


DESIGN = [(1, 1), (2, 1), (4, 1), (8, 1), (1, 2), (1, 4), (1, 8), (2, 2), (2, 4), (4, 2)]


def errors(phi: float, noise: float, seed: int, seeds: int = 3) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    rows = [(n, r, 0.05 + 0.15 * (n * r**phi) ** -1.0 + noise * rng.normal()) for n, r in DESIGN for _ in range(seeds)]
    return pd.DataFrame(rows, columns=["layers", "iterations", "error"])


@pytest.mark.parametrize("phi", [-0.5, 0.0, 0.46, 1.0, 1.5])
def test_phi_is_found_again_without_noise(phi: float) -> None:
    found = worth_of_passes(errors(phi, 0.0, 0))
    assert found.phi == pytest.approx(phi, abs=0.021) and found.n == 30
    np.testing.assert_allclose((found.E, found.A), (0.05, 0.15), atol=0.003)
    assert found.low <= found.phi <= found.high


def test_the_interval_of_phi_covers_it_as_often_as_it_says() -> None:
    covered = [found.low <= 0.5 <= found.high for found in (worth_of_passes(errors(0.5, 0.006, s)) for s in range(200))]
    assert 0.90 <= np.mean(covered) <= 0.99  # 95 % within three standard errors of 200 draws


def test_a_fit_that_hangs_on_one_failed_model_shows_it() -> None:
    runs = errors(0.5, 0.002, 0)
    runs = runs.assign(model=runs["layers"].astype(str) + "x" + runs["iterations"].astype(str))
    steady = without_one_model(runs)
    assert steady[0] <= worth_of_passes(runs).phi <= steady[1] and steady[1] - steady[0] < 0.3
    failed = runs.assign(error=runs["error"] + 0.1 * (runs["model"] == "4x1"))
    assert np.ptp(without_one_model(failed)) > 0.5 or np.isnan(without_one_model(failed)).all()
    assert np.isnan(without_one_model(runs[runs["iterations"] == 1])).all()


def test_where_depth_is_worth_nothing_phi_is_not_bounded() -> None:
    for seed in range(8):
        noise = np.random.default_rng(seed).normal(size=30)
        found = worth_of_passes(errors(0.5, 0.0, 0).assign(error=0.2 + 0.01 * noise))
        assert not (np.isfinite(found.low) and np.isfinite(found.high))
        assert np.isnan(found.phi) or -2 < found.phi < 4  # never an end of what was tried


@pytest.mark.parametrize(
    ("runs", "says"),
    [
        (pd.DataFrame({"layers": [1], "iterations": [1]}), "no column 'error'"),
        (errors(0.5, 0, 0).query("iterations == 1"), "0 loops"),
        (errors(0.5, 0, 0).query("layers == 1"), "1 depths"),
    ],
)
def test_phi_is_refused_without_what_it_needs(runs: pd.DataFrame, says: str) -> None:
    with pytest.raises(InputError, match=says):
        worth_of_passes(runs)


# ---------------------------------------- what is said of it


@pytest.mark.parametrize(
    ("phi", "low", "high", "says"),
    [
        (1.4, 1.1, 2.0, "worth more than as many layers"),
        (0.5, 0.2, 0.8, "less than as many layers of their own"),
        (0.9, 0.4, 1.3, "a pass helps; whether as much as layers of their own is open."),
        (-0.5, -0.9, -0.1, "more passes harm"),
        (0.1, -0.3, 0.5, "no worth of a pass is shown"),
        (0.1, -math.inf, 0.5, "no worth of a pass is shown, and it is less than that of layers"),
        (1.5, 0.98, math.inf, "a pass helps; whether as much as layers of their own is open."),
    ],
)
def test_what_is_said_of_phi_follows_its_interval(phi: float, low: float, high: float, says: str) -> None:
    fit = {"data": "sst2", "phi": phi, "low": low, "high": high, "n": 24, "least": phi - 0.25, "largest": phi + 0.5}
    sentence = words.worth(fit)
    hangs = f"Without the runs of any one model φ lies between {phi - 0.25:.2f} and {phi + 0.5:.2f}."
    assert sentence.endswith(hangs.replace("-", "−"))
    assert words.worth(fit | {"least": math.nan}).endswith("one model or another φ is not determined.")
    assert says in sentence and f"φ = {phi:.2f}".replace("-", "−") in sentence and "n = 24" in sentence
    assert sentence.count("no bound") == sum(map(math.isinf, (low, high)))
    nothing = words.worth({"data": "sst2", "phi": math.nan, "low": -math.inf, "high": math.inf, "n": 6})
    assert "do not determine φ: its interval" in nothing and "nan" not in nothing
    at_least = words.worth({"data": "sst2", "phi": math.nan, "low": 0.4, "high": math.inf, "n": 6})
    assert "do not determine φ beyond that it is at least 0.40." in at_least


def test_what_is_said_of_leaving_early_names_gain_and_loss() -> None:
    row = {"criterion": "confidence", "model": "m", "data": "sst2", "throughput": 2.0, "throughput_least": 1.8, "passes": 1.4}
    row |= {"difference": -0.001, "low": -0.004, "high": 0.002, "n_seeds": 5}
    row |= {"fixed_passes": 2, "fixed_throughput": 1.9, "fixed_difference": 0.001}
    sentence = words.leaving_early(row)
    assert "2.00 times the throughput" in sentence and "1.80 in the slowest seed" in sentence and "5 seeds" in sentence
    assert "accuracy −0.1 points (95 % interval −0.4 to +0.2)" in sentence and "is reached" in sentence
    assert "not reached" in words.leaving_early(row | {"difference": -0.003})
    assert "not reached" in words.leaving_early(row | {"throughput": 1.4})
    assert sentence.endswith("as accurate on these same texts, 2, give 1.90 times and +0.1 points.")
    assert words.leaving_early(row | {"fixed_throughput": 2.1}).endswith("points: early exit is not needed.")
    assert words.leaving_early(row | {"fixed_passes": math.nan}).endswith("No fixed number of passes is as accurate.")


@pytest.mark.parametrize(
    ("first", "last", "says"),
    [
        ((0.80, 0.81, 0.82), (0.90, 0.92, 0.91), "the later passes help"),
        ((0.90, 0.92, 0.91), (0.80, 0.81, 0.82), "the later passes harm"),
        ((0.80, 0.81, 0.82), (0.81, 0.80, 0.82), "no use of the later passes is shown"),
        ((0.80,), (0.90,), "one seed, so no interval"),
    ],
)
def test_whether_a_loop_is_used_is_said_by_its_interval(first, last, says: str) -> None:
    assert says in words.loop_used(first, last, "m", 4)
