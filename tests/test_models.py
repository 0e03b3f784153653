"""The encoders satisfy identities, and agree with torch's and transformers' own parts."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from near import assert_near
from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification

from rtxlib.errors import InputError
from rtxlib.models import Encoder, ModelConfig, build, preset
from rtxlib.models.attention import View, rotary_angles, sinusoidal_table
from rtxlib.models.kernels import rotate
from rtxlib.models.layers import FeedForward

SMALL = {"vocab_size": 60, "hidden_dropout": 0.0, "attention_dropout": 0.0, "classifier_dropout": 0.0}
EXACTLY = 1e-10  # of two ways to compute one number in float64


def small(name: str = "recurrent-2x3x64", **overrides: object):
    """A small model that computes in float64, so that two ways to one number agree on every processor."""
    return build(name, seed=1, **(SMALL | overrides)).double().eval()


@pytest.fixture
def batch() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    ids = torch.randint(1, 60, (5, 11))
    mask = torch.ones_like(ids)
    for row, length in enumerate((11, 4, 7, 1, 9)):
        mask[row, length:] = 0
    return {"input_ids": ids * mask, "attention_mask": mask}


def count(model: torch.nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


def test_defaults_are_bert_base_and_intermediate_size_resolves() -> None:
    config = ModelConfig()
    sizes = config.hidden_size, config.num_hidden_layers, config.num_attention_heads, config.resolved_intermediate_size
    assert sizes == (768, 12, 12, 3072)
    assert (config.vocab_size, config.max_position_embeddings) == (30522, 512)
    assert ModelConfig(intermediate_size=None, feedforward="gelu").resolved_intermediate_size == 3072
    gated = ModelConfig(intermediate_size=None, feedforward="swiglu", hidden_size=100, num_attention_heads=5)
    assert gated.resolved_intermediate_size == 266


def test_rotation_equals_the_interleaved_formula_up_to_a_permutation() -> None:
    head, length = 8, 6
    x = torch.randn(2, 3, length, head, dtype=torch.float64)
    cos, sin = rotary_angles(length, head, 10000.0)
    rotated = rotate(x, cos, sin)
    interleave = torch.arange(head).view(2, head // 2).T.flatten()  # 0, 4, 1, 5, …: the members of a pair side by side
    even, odd = x[..., interleave][..., 0::2], x[..., interleave][..., 1::2]
    for m in range(length):
        for i in range(head // 2):
            angle = torch.tensor(m * 10000.0 ** (-2 * i / head))
            expected_even = even[..., m, i] * angle.cos() - odd[..., m, i] * angle.sin()
            expected_odd = even[..., m, i] * angle.sin() + odd[..., m, i] * angle.cos()
            # the angles themselves are float32
            assert_near(rotated[..., interleave][..., m, 2 * i], expected_even)
            assert_near(rotated[..., interleave][..., m, 2 * i + 1], expected_odd)


def test_rotated_scores_depend_on_distance_alone() -> None:
    torch.manual_seed(0)
    q, k = torch.randn(1, 1, 1, 16), torch.randn(1, 1, 1, 16)
    cos, sin = rotary_angles(40, 16, 10000.0)

    def score(m: int, n: int) -> float:
        return float((rotate(q, cos[m : m + 1], sin[m : m + 1]) * rotate(k, cos[n : n + 1], sin[n : n + 1])).sum())

    assert score(3, 7) == pytest.approx(score(30, 34), abs=1e-4)
    assert score(3, 7) != pytest.approx(score(7, 3), abs=1e-3)


def test_sinusoids_follow_the_paper() -> None:
    table = sinusoidal_table(50, 12)
    assert table[7, 4].item() == pytest.approx(torch.tensor(7 / 10000 ** (4 / 12)).sin().item(), abs=1e-6)
    assert table[7, 5].item() == pytest.approx(torch.tensor(7 / 10000 ** (4 / 12)).cos().item(), abs=1e-6)


def test_swiglu_is_the_three_matrix_formula() -> None:
    config = ModelConfig(hidden_size=8, num_attention_heads=2, intermediate_size=12)
    part = FeedForward(config).double()
    x = torch.randn(3, 8, dtype=torch.float64)
    gate, value = part.input.weight.split(12)
    gate_bias, value_bias = part.input.bias.split(12)
    expected = F.linear(
        F.silu(F.linear(x, gate, gate_bias)) * F.linear(x, value, value_bias), part.output.weight, part.output.bias
    )
    assert_near(part(x), expected, EXACTLY)


@pytest.mark.parametrize(
    "overrides",
    [
        {},
        {"position": "learned"},
        {"position": "sinusoidal"},
        {"position": "none"},
        {"norm": "layernorm"},
        {"norm_placement": "post"},
        {"feedforward": "gelu"},
        {"feedforward": "relu"},
        {"feedforward": "geglu"},
        {"pooling": "mean"},
        {"final_norm": True},
        {"bias": False},
        {"embedding_norm": False},
        {"block_sharing": "unshared"},
        {"residual": "every"},
        {"residual": "learned", "residual_scale": 0.3},
        {"residual": "damped"},
        {"residual": "gated"},
        {"norm_placement": "sandwich"},
        {"input_injection": True},
        {"loop_norm": True},
        {"iteration_embedding": True},
        {"embedding_size": 16},
        {"residual": "none"},
    ],
)
def test_every_switch_changes_the_function_and_eager_agrees_with_fused(overrides: dict, batch: dict) -> None:
    model = small(**overrides)
    fused = model(**batch)
    eager = model(**batch, output_attentions=True, output_hidden_states=True)
    assert_near(fused.logits, eager.logits, EXACTLY)
    assert len(eager.attentions) == 6 and len(eager.hidden_states) == 7
    for weights in eager.attentions:
        assert_near(weights.sum(-1), torch.ones(weights.shape[:-1]), EXACTLY)
        assert (weights * (1 - batch["attention_mask"])[:, None, None, :]).abs().max().item() == 0
    if overrides:
        assert not torch.allclose(fused.logits, small()(**batch).logits)


def test_padding_changes_nothing(batch: dict) -> None:
    model = small()
    together = model(**batch).logits
    for row, length in enumerate(batch["attention_mask"].sum(1).tolist()):
        alone = model(batch["input_ids"][row : row + 1, :length]).logits
        assert_near(together[row : row + 1], alone, EXACTLY)


def test_unshared_without_residual_is_a_deeper_standard_encoder(batch: dict) -> None:
    looped = small(block_sharing="unshared", residual="none")
    deep = small("standard-6x64")
    blocks = [layer for block in looped.encoder.stack.blocks for layer in block]
    for target, source in zip(deep.encoder.stack.blocks[0], blocks, strict=True):
        target.load_state_dict(source.state_dict())
    deep.encoder.embeddings.load_state_dict(looped.encoder.embeddings.state_dict())
    deep.classifier.load_state_dict(looped.classifier.state_dict())
    assert_near(looped(**batch).logits, deep(**batch).logits, EXACTLY)


def test_alpha_counts_from_the_second_pass_on(batch: dict) -> None:
    """The state after each pass, computed by hand from the block."""
    model = small(residual_scale=0.5)
    states = model.encoder(**batch, output_hidden_states=True).hidden_states
    rotary = rotary_angles(11, 32, 10000.0)
    mask = batch["attention_mask"].bool()[:, None, None, :]

    def block(h: torch.Tensor) -> torch.Tensor:
        for layer in model.encoder.stack.blocks[0]:
            h, _ = layer(h, View(mask, rotary))
        return h

    first = block(states[0])
    second = block(first) + 0.5 * first
    third = block(second) + 0.5 * second
    for got, expected in zip(states[2::2], (first, second, third), strict=True):
        assert_near(got, expected, EXACTLY)


def test_sharing_saves_parameters_and_keeps_the_layers(batch: dict) -> None:
    shared, unshared = small(), small(block_sharing="unshared")
    block = count(shared.encoder.stack)
    assert count(unshared.encoder.stack) == 3 * block
    twin = small(block_sharing="unshared")
    for target in twin.encoder.stack.blocks:
        target.load_state_dict(shared.encoder.stack.blocks[0].state_dict())
    twin.encoder.embeddings.load_state_dict(shared.encoder.embeddings.state_dict())
    twin.classifier.load_state_dict(shared.classifier.state_dict())
    assert_near(twin(**batch).logits, shared(**batch).logits, EXACTLY)


def test_layer_equals_torchs_own_encoder_layer(batch: dict) -> None:
    """LayerNorm, ReLU, no positions: our layer equals torch.nn.TransformerEncoderLayer with the same weights."""
    for placement in ("pre", "post"):
        form = {"norm": "layernorm", "feedforward": "relu", "position": "none", "norm_eps": 1e-5}
        ours = small("standard-1x64", norm_placement=placement, **form)
        layer = ours.encoder.stack.blocks[0][0]
        theirs = torch.nn.TransformerEncoderLayer(
            64, 2, 256, dropout=0.0, batch_first=True, norm_first=placement == "pre"
        )
        theirs.double().eval()
        theirs.self_attn.in_proj_weight.data.copy_(layer.attention.qkv.weight)
        theirs.self_attn.in_proj_bias.data.copy_(layer.attention.qkv.bias)
        theirs.self_attn.out_proj.load_state_dict(layer.attention.output.state_dict())
        theirs.linear1.load_state_dict(layer.feedforward.input.state_dict())
        theirs.linear2.load_state_dict(layer.feedforward.output.state_dict())
        theirs.norm1.load_state_dict(layer.attention_norm.state_dict())
        theirs.norm2.load_state_dict(layer.feedforward_norm.state_dict())
        x = torch.randn(5, 11, 64, dtype=torch.float64)
        real = batch["attention_mask"].bool()
        expected = theirs(x, src_key_padding_mask=~real)
        got, _ = layer(x, View(real[:, None, None, :]))
        assert_near(got[real], expected[real], EXACTLY)


def test_cls_read_out_skips_work_and_changes_nothing(batch: dict) -> None:
    model = small()
    full = model.classify(model.encoder(**batch).last_hidden_state)
    assert_near(model(**batch).logits, full, EXACTLY)
    assert model.encoder(**batch, queries=1).last_hidden_state.shape[1] == 1


def test_saved_and_opened_by_transformers_gives_the_same_logits(tmp_path, batch: dict) -> None:
    model = small(num_labels=3, block_sharing="unshared").float()
    model.save_pretrained(tmp_path)
    assert {path.suffix for path in tmp_path.iterdir()} == {".json", ".safetensors"}
    opened = AutoModelForSequenceClassification.from_pretrained(tmp_path).eval()
    torch.testing.assert_close(opened(**batch).logits, model(**batch).logits, atol=0, rtol=0)
    assert isinstance(AutoConfig.from_pretrained(tmp_path), ModelConfig)
    assert isinstance(AutoModel.from_pretrained(tmp_path), Encoder)


def test_the_same_seed_gives_the_same_weights_and_keeps_the_callers_random_state() -> None:
    torch.manual_seed(5)
    state = torch.get_rng_state()
    a, b, c = small(), small(), build("recurrent-2x3x64", seed=2, **SMALL)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(x, y) for x, y in zip(a.parameters(), b.parameters(), strict=True))
    assert not torch.equal(a.encoder.embeddings.token.weight, c.encoder.embeddings.token.weight)


def test_depth_scaled_start_shrinks_output_projections_only() -> None:
    plain, scaled = small(), small(output_initializer="depth_scaled")
    layer, scaled_layer = plain.encoder.stack.blocks[0][0], scaled.encoder.stack.blocks[0][0]
    assert scaled_layer.feedforward.output.weight.std().item() == pytest.approx(0.02 / 12**0.5, rel=0.1)
    assert layer.feedforward.output.weight.std().item() == pytest.approx(0.02, rel=0.1)
    assert scaled_layer.feedforward.input.weight.std().item() == pytest.approx(0.02, rel=0.1)


def test_gradients_reach_every_parameter(batch: dict) -> None:
    model = copy.deepcopy(small()).train()
    model(**batch, labels=torch.tensor([0, 1, 0, 1, 1])).loss.backward()
    untouched = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.abs().any()]
    assert untouched == []


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: build("standrad-6x384"), "Did you mean 'standard-6x384'"),
        (lambda: build("recurrent-3x256"), "recurrent-<layers>x<passes>x<width>"),
        (lambda: preset("standard-2x100"), "multiple of 32"),
        (lambda: preset("standard-2x64", residul_scale=1), "Did you mean 'residual_scale'"),
        (lambda: ModelConfig(norm="rmsnrm"), "Did you mean 'rmsnorm'"),
        (lambda: ModelConfig(hidden_size=100, num_attention_heads=3), "cannot be divided"),
        (lambda: ModelConfig(hidden_dropout=1.5), "probability"),
        (lambda: small(max_position_embeddings=8)(torch.ones(1, 9, dtype=torch.long)), "longer than the 8 positions"),
    ],
)
def test_bad_input_raises_an_error_that_explains_it(call, says: str) -> None:
    with pytest.raises(InputError, match=says):
        call()
