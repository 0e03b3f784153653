"""Every variant of the loop follows its formula, and the identities between variants hold."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from near import assert_near
from torch.utils.flop_counter import FlopCounterMode

from rtxlib.errors import InputError
from rtxlib.models import build, preset, size
from rtxlib.models.attention import SEES_ALL, View, rotary_angles
from rtxlib.models.layers import NO_TRACE, Context, Trace

SMALL = {"vocab_size": 60, "hidden_dropout": 0.0, "attention_dropout": 0.0, "classifier_dropout": 0.0}
EXACTLY = 1e-10  # of two ways to compute one number in float64


def small(name: str = "recurrent-2x3x64", **overrides: object):
    """A model in which every part matters: matrices keep the size of their input, and nothing is exactly zero or one.

    It computes in float64, so that two ways to one number agree on every processor.
    """
    model = build(name, seed=1, **(SMALL | overrides)).double().eval()
    torch.manual_seed(2)
    with torch.no_grad():
        for key, p in model.named_parameters():
            p.normal_(0.0, p.shape[1] ** -0.5 if p.ndim == 2 else 0.2)
            if "norm" in key and key.endswith("weight"):
                p.add_(1.0)
    return model


@pytest.fixture
def batch() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    ids = torch.randint(1, 60, (3, 11))
    mask = torch.ones_like(ids)
    mask[1, 4:] = 0
    return {"input_ids": ids * mask, "attention_mask": mask}


def view(batch: dict[str, torch.Tensor], head_dim: int = 32) -> View:
    return View(batch["attention_mask"].bool()[:, None, None, :], rotary_angles(11, head_dim, 10000.0))


def logits(model, batch: dict[str, torch.Tensor], **more: object) -> torch.Tensor:
    with torch.inference_mode():
        return model(**batch, **more).logits


def by_hand(model, batch: dict[str, torch.Tensor], depth: int) -> list[torch.Tensor]:
    """The state that enters the loop and the state after each pass, from the formulas."""
    config, stack, seen = model.config, model.encoder.stack, view(batch)
    h = model.encoder.embeddings(batch["input_ids"])
    for layer in stack.prelude:
        h, _ = layer(h, seen)
    entered, states = h, [h]
    for t in range(depth):
        before = h
        if config.input_injection and t > 0:
            h = h + entered
        if config.iteration_embedding:
            h = h + stack.iteration.weight[min(t, config.recurrent_depth - 1)]
        if config.conditioning_size is not None and t > 0:
            h, _ = stack.conditioning[min(t - 1, config.recurrent_depth - 2)](h, seen)
        for layer in stack.blocks[t % len(stack.blocks)]:
            h, _ = layer(h, seen)
        alpha = config.residual_scale
        match config.residual:
            case "every":
                h = h + alpha * before
            case "from_second":
                h = h + alpha * before if t else h
            case "learned":
                h = h + before / (1 + torch.exp(-stack.residual.logit[min(t, config.recurrent_depth - 1)]))
            case "damped":
                h = before + alpha * (h - before)
            case "gated":
                gate = stack.residual.gate
                g = 1 / (1 + torch.exp(-F.linear(torch.cat((before, h), -1), gate.weight, gate.bias)))
                h = g * h + (1 - g) * before
        if config.loop_norm:
            h = stack.loop_norm(h)
        states.append(h)
    return states


VARIANTS: dict[str, dict] = {
    "none": {"residual": "none"},
    "every": {"residual": "every"},
    "from the second": {},
    "learned": {"residual": "learned", "residual_scale": 0.3},
    "damped": {"residual": "damped"},
    "gated": {"residual": "gated"},
    "injection": {"input_injection": True},
    "loop norm": {"loop_norm": True},
    "sandwich": {"norm_placement": "sandwich"},
    "iteration embedding": {"iteration_embedding": True},
    "plan B": {"conditioning_size": 16},
    "prelude and coda": {"prelude_layers": 1, "coda_layers": 2},
    "factorised": {"embedding_size": 24},
    "unshared gated": {"block_sharing": "unshared", "residual": "gated"},
    "all of it": {
        "residual": "gated", "input_injection": True, "loop_norm": True, "iteration_embedding": True, "coda_layers": 1,
        "conditioning_size": 8, "prelude_layers": 1, "embedding_size": 16, "norm_placement": "sandwich",
    },
}  # fmt: skip


@torch.inference_mode()
@pytest.mark.parametrize("variant", VARIANTS)
def test_each_variant_follows_its_formula(variant: str, batch: dict) -> None:
    model = small(**VARIANTS[variant])
    shown = model.encoder(**batch, output_hidden_states=True)
    for got, expected in zip(shown.pass_states, by_hand(model, batch, 3), strict=True):
        assert_near(got, expected, EXACTLY)
    assert len(shown.hidden_states) == 1 + model.config.effective_depth
    plain = logits(model, batch)
    assert_near(plain, logits(model, batch, output_attentions=True), EXACTLY)
    for row, length in enumerate((11, 4, 11)):  # padding changes nothing
        alone = logits(model, {"input_ids": batch["input_ids"][row : row + 1, :length]})
        assert_near(plain[row : row + 1], alone, EXACTLY)


@pytest.mark.parametrize("variant", VARIANTS)
def test_each_variant_trains_every_parameter_it_has(variant: str, batch: dict) -> None:
    model = small(**VARIANTS[variant]).train()
    model(**batch, labels=torch.tensor([0, 1, 0])).loss.backward()
    assert [name for name, p in model.named_parameters() if p.grad is None or not p.grad.abs().any()] == []


@pytest.mark.parametrize("variant", VARIANTS)
def test_each_variant_trains_in_sixteen_bits_too(variant: str, batch: dict) -> None:
    model = small(**VARIANTS[variant]).float().train()
    with torch.autocast("cpu", torch.bfloat16):
        found = model(**batch).logits
    F.cross_entropy(found.float(), torch.tensor([0, 1, 0])).backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())
    plain = logits(model.eval(), batch)
    assert (found.float() - plain).abs().max() < 0.1 * plain.abs().max()


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_flops_of_each_variant_are_those_that_torch_counts(variant: str, pooling: str) -> None:
    model = small(**VARIANTS[variant], pooling=pooling)
    model.config._attn_implementation = "eager"  # torch does not count the products of fused attention on a CPU
    for depth in (None, 2):
        if depth and model.config.block_sharing == "unshared":
            continue
        with torch.inference_mode(), FlopCounterMode(display=False) as counter:
            model(input_ids=torch.ones(1, 9, dtype=torch.long), recurrent_depth=depth)
        assert size.forward_flops(model.config, 9, recurrent_depth=depth) == counter.get_total_flops()


# ---------------------------------------- identities


def test_one_pass_without_a_residual_across_it_is_the_standard_encoder(batch: dict) -> None:
    standard = small("standard-2x64")
    for residual in ("none", "from_second"):
        looped = small("recurrent-2x1x64", residual=residual)
        looped.load_state_dict(standard.state_dict())
        assert_near(logits(looped, batch), logits(standard, batch), EXACTLY)


@pytest.mark.parametrize("form", ["every", "from_second"])
def test_alpha_zero_is_no_residual(form: str, batch: dict) -> None:
    model, bare = small(residual=form, residual_scale=0.0), small(residual="none")
    bare.load_state_dict(model.state_dict())
    assert_near(logits(model, batch), logits(bare, batch), EXACTLY)


def test_an_open_gate_takes_the_blocks_output_and_a_closed_gate_keeps_the_state(batch: dict) -> None:
    model = small(residual="gated")
    bare = small(residual="none")
    kept = {name: x for name, x in model.state_dict().items() if "gate" not in name}
    bare.load_state_dict(kept)
    with torch.no_grad():
        model.encoder.stack.residual.gate.weight.zero_()
        model.encoder.stack.residual.gate.bias.fill_(60.0)
    assert_near(logits(model, batch), logits(bare, batch), EXACTLY)
    with torch.no_grad():
        model.encoder.stack.residual.gate.bias.fill_(-60.0)
    embedded = model.encoder.embeddings(batch["input_ids"])
    assert_near(logits(model, batch), model.classify(embedded), EXACTLY)


def test_learned_alphas_start_at_alpha_and_never_leave_their_bounds(batch: dict) -> None:
    learned = build("recurrent-2x3x64", seed=1, residual="learned", residual_scale=0.3, **SMALL).double().eval()
    fixed = build("recurrent-2x3x64", seed=1, residual="every", residual_scale=0.3, **SMALL).double().eval()
    fixed.load_state_dict({name: x for name, x in learned.state_dict().items() if "logit" not in name})
    assert_near(logits(learned, batch), logits(fixed, batch))  # a float32 logit holds α to seven digits
    with torch.no_grad():
        learned.encoder.stack.residual.logit.copy_(torch.tensor([-1e4, 1e4, 0.0]))
    states = learned.encoder(**batch, output_hidden_states=True).pass_states
    assert all(torch.isfinite(state).all() for state in states)


def test_damped_with_half_a_step_is_the_mean_of_state_and_output(batch: dict) -> None:
    model = small(residual="damped", residual_scale=0.5)
    states = model.encoder(**batch, output_hidden_states=True).pass_states
    h = states[0]
    for layer in model.encoder.stack.blocks[0]:
        h, _ = layer(h, view(batch))
    assert_near(states[1], (states[0] + h) / 2, EXACTLY)


def test_without_sharing_and_residual_it_is_a_deeper_standard_encoder_also_with_prelude_and_coda(batch: dict) -> None:
    looped = small("recurrent-2x2x64", block_sharing="unshared", residual="none", prelude_layers=1, coda_layers=1)
    deep = small("standard-6x64")
    stack = looped.encoder.stack
    layers = [*stack.prelude, *(layer for block in stack.blocks for layer in block), *stack.coda]
    for target, source in zip(deep.encoder.stack.blocks[0], layers, strict=True):
        target.load_state_dict(source.state_dict())
    deep.encoder.embeddings.load_state_dict(looped.encoder.embeddings.state_dict())
    deep.classifier.load_state_dict(looped.classifier.state_dict())
    assert_near(logits(looped, batch), logits(deep, batch), EXACTLY)


def test_a_trace_records_what_was_asked_for_and_nothing_else() -> None:
    stack, h = small("recurrent-2x3x64", prelude_layers=1).encoder.stack, torch.randn(2, 5, 64, dtype=torch.float64)
    states, attentions = Trace(states=True), Trace(attentions=True)
    last = stack(h, Context(SEES_ALL, trace=states))
    assert_near(stack(h, Context(SEES_ALL, trace=attentions)), last, EXACTLY)
    assert len(states.states) == 7 and len(states.pass_states) == 4 and states.attentions is None
    assert states.states[-1] is states.pass_states[-1] is last
    assert len(attentions.attentions) == 7 and attentions.states is attentions.pass_states is None
    assert NO_TRACE.states is NO_TRACE.attentions is None


# ---------------------------------------- other numbers of passes than trained


@torch.inference_mode()
@pytest.mark.parametrize("variant", [name for name in VARIANTS if "unshared" not in name])
def test_one_checkpoint_runs_with_any_number_of_passes(variant: str, batch: dict) -> None:
    model = small(**VARIANTS[variant])
    for depth in (1, 2, 3, 5):
        shown = model.encoder(**batch, output_hidden_states=True, recurrent_depth=depth)
        expected = by_hand(model, batch, depth)
        assert len(shown.pass_states) == depth + 1
        assert_near(shown.pass_states[-1], expected[-1], EXACTLY)
    assert_near(logits(model, batch, recurrent_depth=3), logits(model, batch), EXACTLY)


def test_one_pass_of_a_loop_is_the_standard_encoder_of_its_block(batch: dict) -> None:
    looped, standard = small("recurrent-2x4x64"), small("standard-2x64")
    standard.load_state_dict(looped.state_dict())
    assert_near(logits(looped, batch, recurrent_depth=1), logits(standard, batch), EXACTLY)


def test_random_depth_trains_every_number_of_passes_and_evaluation_uses_all_passes(batch: dict) -> None:
    """Every number from 1 to R is drawn, about equally often, and each loss is the loss of the drawn number."""
    model = small("recurrent-1x4x64", depth_sampling="uniform").train()
    labels = torch.tensor([0, 1, 0])
    losses = [model(**batch, labels=labels, recurrent_depth=r).loss.item() for r in (1, 2, 3, 4)]
    torch.manual_seed(0)
    drawn = [model(**batch, labels=labels).loss.item() for _ in range(200)]
    counts = [sum(abs(loss - own) < 1e-6 for loss in drawn) for own in losses]
    assert sum(counts) == 200 and min(counts) > 30
    model.eval()
    assert_near(logits(model, batch), logits(model, batch, recurrent_depth=4), EXACTLY)


def test_a_variant_is_saved_and_opened_again(tmp_path, batch: dict) -> None:
    from transformers import AutoModelForSequenceClassification

    model = small(**VARIANTS["all of it"]).float()
    model.save_pretrained(tmp_path)
    opened = AutoModelForSequenceClassification.from_pretrained(tmp_path).eval()
    torch.testing.assert_close(logits(opened, batch), logits(model, batch), atol=0, rtol=0)
    learned = small(residual="learned", residual_scale=0.3).float()
    learned.save_pretrained(tmp_path / "learned")
    opened = AutoModelForSequenceClassification.from_pretrained(tmp_path / "learned").eval()
    torch.testing.assert_close(logits(opened, batch), logits(learned, batch), atol=0, rtol=0)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: preset("recurrent-3x2x256", residual="gatd"), "Did you mean 'gated'"),
        (lambda: preset("recurrent-3x2x256", residual="damped", residual_scale=1.5), "between 0 and 1"),
        (lambda: preset("recurrent-3x2x256", residual="learned", residual_scale=0.0), "starts there"),
        (lambda: preset("standard-6x384", input_injection=True), "recurrent_depth=1 has none"),
        (lambda: preset("standard-6x384", conditioning_size=64), "recurrent_depth=1 has none"),
        (
            lambda: preset("recurrent-3x2x256", depth_sampling="uniform", block_sharing="unshared"),
            "one block for every",
        ),
        (lambda: preset("recurrent-3x2x256", prelude_layers=-1), "from 0 to 10,000"),
        (lambda: preset("recurrent-3x2x256", embedding_size=0), "from 1 to 1,000,000"),
        (lambda: small()(torch.ones(1, 3, dtype=torch.long), recurrent_depth=0), "at least 1"),
        (
            lambda: small(block_sharing="unshared")(torch.ones(1, 3, dtype=torch.long), recurrent_depth=4),
            "3 blocks that share no weights",
        ),
    ],
)
def test_contradictory_fields_raise_an_error_that_explains_it(call, says: str) -> None:
    with pytest.raises(InputError, match=says):
        call()
