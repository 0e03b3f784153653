"""Our BERT, MiniLM and ModernBERT give the outputs of transformers' implementations with the same weights.

Random weights make every part matter: scores of about one, norm weights away from one, biases away from zero. A wrong sign, mask
or angle then changes the first digit.
"""

from __future__ import annotations

import itertools

import pytest
import torch
import torch.nn.functional as F
from near import assert_near
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertModel,
    ModernBertConfig,
    ModernBertModel,
    PreTrainedConfig,
)
from transformers.initialization import no_init_weights

from rtxlib.errors import InputError
from rtxlib.models import Encoder, EncoderForSequenceClassification, ModelConfig, build, preset
from rtxlib.models.attention import alibi_slopes, self_attention_view
from rtxlib.models.pretrained import assign
from rtxlib.models.references import our_config, their_config

EXACTLY = 1e-10  # of two formulas that are both computed in float64


def random_weights(model: torch.nn.Module, seed: int = 0) -> None:
    """Draw matrices that keep the size of their input, norm weights away from one, biases away from zero."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.normal_(0.0, p.shape[1] ** -0.5 if p.ndim == 2 else 0.2)
            if "orm" in name and name.endswith("weight"):
                p.add_(1.0)


def padded(vocab: int, lengths: tuple[int, ...], pad: int = 0) -> dict[str, torch.Tensor]:
    """A batch of random ids; each row is padded from its length on."""
    torch.manual_seed(1)
    ids = torch.randint(pad + 5, vocab, (len(lengths), max(lengths)))
    mask = torch.ones_like(ids)
    for row, length in enumerate(lengths):
        ids[row, length:], mask[row, length:] = pad, 0
    return {"input_ids": ids, "attention_mask": mask}


def both(theirs: PreTrainedConfig) -> tuple[torch.nn.Module, Encoder]:
    """The reference, and our encoder with the reference's weights, both in float64 and in evaluation mode."""
    reference = {"bert": BertModel, "modernbert": ModernBertModel}[theirs.model_type](theirs).eval()
    random_weights(reference)
    ours = Encoder(our_config(theirs)).eval()
    assign(ours, reference.state_dict(), theirs.model_type)  # in float32
    return reference.double(), ours.double()


def bert(**changes: object) -> BertConfig:
    sizes = {
        "vocab_size": 90,
        "hidden_size": 48,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "intermediate_size": 80,
    }
    return BertConfig(**(sizes | {"max_position_embeddings": 40} | changes))


def modern(**changes: object) -> ModernBertConfig:
    ids = {"pad_token_id": 0, "cls_token_id": 1, "bos_token_id": 1, "sep_token_id": 2, "eos_token_id": 2}
    sizes = {"vocab_size": 90, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 72}
    return ModernBertConfig(**({"num_hidden_layers": 7, "local_attention": 8} | ids | sizes | changes))


# ---------------------------------------- BERT and MiniLM

MINILM = {"hidden_size": 384, "num_attention_heads": 12, "intermediate_size": 1536}


@torch.inference_mode()
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"hidden_act": "relu"},
        {"layer_norm_eps": 1e-2},
        {"type_vocab_size": 3},
        MINILM | {"num_hidden_layers": 3},
        MINILM | {"num_hidden_layers": 12},
    ],
    ids=["bert", "relu", "epsilon", "three segments", "minilm-l3", "minilm-l12"],
)
def test_bert_gives_what_bert_model_gives(changes: dict) -> None:
    """The states and attention weights of every layer, and the pooler's output, on a padded batch with two segments."""
    reference, ours = both(bert(**changes, attn_implementation="eager"))
    batch = padded(90, (17, 1, 9, 16))
    segments = (torch.arange(17) > 5).long().expand(4, 17)
    asked = {"token_type_ids": segments, "output_attentions": True, "output_hidden_states": True}
    expected, got = reference(**batch, **asked), ours(**batch, **asked)
    real = batch["attention_mask"].bool()
    assert_near(got.last_hidden_state[real], expected.last_hidden_state[real], EXACTLY)
    assert_near(got.pooler_output, expected.pooler_output, EXACTLY)
    for a, b in zip(got.hidden_states, expected.hidden_states, strict=True):
        assert_near(a[real], b[real], EXACTLY)
    for a, b in zip(got.attentions, expected.attentions, strict=True):
        assert_near(a.transpose(1, 2)[real], b.transpose(1, 2)[real], EXACTLY)
    fused = ours(**batch, token_type_ids=segments)
    assert_near(fused.last_hidden_state[real], expected.last_hidden_state[real], EXACTLY)


@torch.inference_mode()
def test_bert_classifies_as_bert_for_sequence_classification() -> None:
    theirs = bert(num_labels=3)
    reference = BertForSequenceClassification(theirs).eval()
    random_weights(reference)
    ours = EncoderForSequenceClassification(our_config(theirs, num_labels=3)).eval()
    assign(ours.encoder, reference.state_dict(), "bert")
    ours.classifier.load_state_dict(reference.classifier.state_dict())
    batch = padded(90, (12, 5))
    assert_near(ours.double()(**batch).logits, reference.double()(**batch).logits, EXACTLY)


@torch.inference_mode()
def test_attention_is_the_sum_of_what_separate_heads_do() -> None:
    """The total of heads that have matrices of their own, as `bert_classifier.md` draws them."""
    layer = build("bert-tiny", vocab_size=50).encoder.stack.blocks[0][0].attention.double().eval()
    random_weights(layer)
    x = torch.randn(2, 7, 128, dtype=torch.float64)
    weight, bias = layer.qkv.weight.view(3, 2, 64, 128), layer.qkv.bias.view(3, 2, 64)  # (q k v, head, head_dim, …)
    output = layer.output.weight.view(128, 2, 64)  # (hidden, head, head_dim)
    total = layer.output.bias.expand(2, 7, 128)
    for head in range(2):
        q, k, v = (F.linear(x, weight[part, head], bias[part, head]) for part in range(3))
        weights = (torch.bmm(q, k.transpose(1, 2)) / 8).softmax(dim=-1)
        total = total + torch.bmm(weights, v) @ output[:, head].T
    assert_near(layer(x)[0], total, EXACTLY)


@torch.inference_mode()
def test_pre_norm_bert_follows_the_page() -> None:
    """The order of `bert_classifier.md`: x + attention(norm₁ x), then x + ffn(norm₂ x), and no norm at the end."""
    model = build(
        "bert-tiny", vocab_size=50, norm_placement="pre", num_hidden_layers=1, pooler=False, pooling="cls"
    )
    model.double().eval()
    random_weights(model)
    encoder = model.encoder
    layer = encoder.stack.blocks[0][0]
    ids = padded(50, (9,))["input_ids"]
    tables = encoder.embeddings
    x = tables.norm(tables.token(ids) + tables.position.weight[:9] + tables.token_type.weight[0])
    x = x + layer.attention(layer.attention_norm(x))[0]
    inner = F.gelu(F.linear(layer.feedforward_norm(x), layer.feedforward.input.weight, layer.feedforward.input.bias))
    x = x + F.linear(inner, layer.feedforward.output.weight, layer.feedforward.output.bias)
    assert_near(encoder(ids).last_hidden_state, x, EXACTLY)
    assert_near(model(ids).logits, model.classifier(x[:, 0]), EXACTLY)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("bert-base", 109_482_240),
        ("minilm-l3", 17_389_824),
        ("minilm-l6", 22_713_216),
        ("minilm-l12", 33_360_000),
        ("modernbert-base", 149_014_272),
        ("modernbert-large", 394_781_696),
    ],
)
def test_presets_have_the_parameters_of_the_released_models(name: str, parameters: int) -> None:
    with torch.device("meta"):
        assert sum(p.numel() for p in Encoder(preset(name)).parameters()) == parameters
        theirs = their_config(preset(name))
        model = {"bert": BertModel, "modernbert": ModernBertModel}[theirs.model_type](theirs)
    assert sum(p.numel() for p in model.parameters()) == parameters


# ---------------------------------------- ModernBERT


@torch.inference_mode()
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"local_attention": 4, "global_attn_every_n_layers": 2},
        {"local_attention": 64},
        {"hidden_activation": "silu"},
        {"norm_bias": True, "attention_bias": True, "mlp_bias": True},
        {"global_rope_theta": 500.0, "local_rope_theta": 20.0},
        {"num_hidden_layers": 1},
    ],
    ids=["every third", "every second", "wide window", "SiLU", "biases", "bases", "one layer"],
)
@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_modernbert_gives_what_modernbert_model_gives(changes: dict, implementation: str) -> None:
    """Padded batches with texts shorter and longer than the window, in float32: transformers' rotation and softmax are in it."""
    reference, ours = both(modern(**changes, attn_implementation=implementation))
    batch = padded(90, (33, 3, 5, 21, 1))
    expected = reference.float()(**batch).last_hidden_state
    real = batch["attention_mask"].bool()
    assert_near(ours.float()(**batch).last_hidden_state[real], expected[real])
    shown = ours(**batch, output_attentions=True).last_hidden_state
    assert_near(shown[real], expected[real])


def test_modernbert_of_the_hub_gives_what_modernbert_model_gives(hub: None) -> None:
    """The released configuration with seven of its 22 layers, of which three are global; texts shorter and longer than a window.

    Both compute in float64, but transformers rotates queries and keys in float32: its rounding is all that differs.
    """
    from transformers import AutoConfig

    from rtxlib.models.pretrained import find

    released = find("answerdotai/ModernBERT-base")
    whole = AutoConfig.from_pretrained(released)
    assert whole.num_hidden_layers == 22 and whole.local_attention == 128
    kinds = whole.layer_types[:7]
    assert kinds == ["full_attention", "sliding_attention", "sliding_attention"] * 2 + ["full_attention"]
    theirs = AutoConfig.from_pretrained(released, num_hidden_layers=7, layer_types=kinds)
    with no_init_weights():
        reference = ModernBertModel(theirs).eval()
    random_weights(reference)
    with torch.device("meta"):
        ours = Encoder(our_config(theirs)).eval()
    assign(ours, reference.state_dict(), "modernbert")
    batch = padded(50_000, (160, 70), pad=50_283 - 50_000)
    batch["input_ids"][batch["attention_mask"] == 0] = 50_283
    with torch.inference_mode():
        expected = reference.double()(**batch).last_hidden_state
        got = ours.double()(**batch).last_hidden_state
    real = batch["attention_mask"].bool()
    assert_near(got[real], expected[real])


@torch.inference_mode()
def test_modernbert_reads_at_most_8192_tokens() -> None:
    small = {"hidden_size": 32, "num_attention_heads": 1, "num_hidden_layers": 2, "intermediate_size": 16}
    model = Encoder(preset("modernbert-base", vocab_size=50, pad_token_id=0, **small)).eval()
    assert model(torch.ones(1, 8192, dtype=torch.long)).last_hidden_state.shape == (1, 8192, 32)
    with pytest.raises(InputError, match="8193 tokens is longer than the 8192"):
        model(torch.ones(1, 8193, dtype=torch.long))


@torch.inference_mode()
def test_a_local_layer_sees_exactly_half_its_window_on_each_side() -> None:
    config = preset("modernbert-base", hidden_size=32, num_attention_heads=1, intermediate_size=16, num_hidden_layers=2,
                    vocab_size=50, pad_token_id=0, local_attention=6)  # fmt: skip
    model = Encoder(config).eval()
    random_weights(model)
    weights = model(torch.arange(5, 25)[None], output_attentions=True).attentions[1][0, 0]
    seen = weights > 0
    distance = torch.arange(20) - torch.arange(20)[:, None]
    assert torch.equal(seen, distance.abs() <= 3)
    assert (model(torch.arange(5, 25)[None], output_attentions=True).attentions[0] > 0).all()  # the first is global


# ---------------------------------------- ALiBi


def test_alibi_slopes_are_those_of_the_paper() -> None:
    torch.testing.assert_close(alibi_slopes(8), 0.5 ** torch.arange(1, 9))  # 1/2, 1/4, …, 1/256
    torch.testing.assert_close(alibi_slopes(16)[:4], torch.tensor([0.7071068, 0.5, 0.3535534, 0.25]))
    # 12 heads: the slopes of 8 heads, then every second slope of 16 heads
    torch.testing.assert_close(alibi_slopes(12), torch.cat((alibi_slopes(8), alibi_slopes(16)[0:8:2])))
    assert alibi_slopes(1).tolist() == [2.0**-8]


@torch.inference_mode()
def test_alibi_subtracts_slope_times_distance_from_the_scores() -> None:
    model = build("standard-1x64", position="alibi", num_attention_heads=4, vocab_size=60).double().eval()
    random_weights(model)
    ids = padded(60, (9,))["input_ids"]
    shown = model(ids, output_attentions=True, output_hidden_states=True)
    layer = model.encoder.stack.blocks[0][0]
    q, k, _ = layer.attention.qkv(layer.attention_norm(shown.hidden_states[0])).chunk(3, dim=-1)
    q, k = (x.view(1, 9, 4, 16).transpose(1, 2) for x in (q, k))
    for head, slope in enumerate((1 / 4, 1 / 16, 1 / 64, 1 / 256)):
        scores = q[0, head] @ k[0, head].T / 4
        for m, n in itertools.product(range(9), range(9)):
            scores[m, n] -= slope * abs(m - n)
        assert_near(shown.attentions[0][0, head], scores.softmax(dim=-1), EXACTLY)


@torch.inference_mode()
def test_alibi_gives_a_reversed_text_the_reversed_states() -> None:
    """Distance has no direction, unlike rotary angles."""
    model = build("recurrent-2x2x64", position="alibi", vocab_size=60, pooling="mean").double().eval()
    random_weights(model)
    ids = padded(60, (12,))["input_ids"]
    forwards = model.encoder(ids).last_hidden_state
    backwards = model.encoder(ids.flip(1)).last_hidden_state.flip(1)
    assert_near(forwards, backwards, EXACTLY)
    rotary = build("recurrent-2x2x64", vocab_size=60).double().eval()
    random_weights(rotary)
    states = rotary.encoder(ids).last_hidden_state
    assert not torch.allclose(states, rotary.encoder(ids.flip(1)).last_hidden_state.flip(1), atol=1e-2)


SHAPES = {
    "standard": ("standard-3x64", {}),
    "recurrent": ("recurrent-2x3x64", {}),
    "unshared": ("recurrent-2x3x64", {"block_sharing": "unshared"}),
    "mean": ("recurrent-2x3x64", {"pooling": "mean"}),
    "learned": ("recurrent-2x3x64", {"position": "learned"}),
    "sinusoidal": ("recurrent-2x3x64", {"position": "sinusoidal"}),
    "alibi": ("recurrent-2x3x64", {"position": "alibi"}),
    "local": ("standard-3x64", {"local_attention": 6, "global_attention_every": 2}),
    "local alibi": ("standard-3x64", {"local_attention": 6, "global_attention_every": 2, "position": "alibi"}),
    "local recurrent": ("recurrent-2x3x64", {"local_attention": 6, "global_attention_every": 2}),
    "bert": ("bert-tiny", {}),
    "modernbert": ("modernbert-base", {"hidden_size": 64, "num_attention_heads": 2, "intermediate_size": 48,
                                       "num_hidden_layers": 4, "local_attention": 6, "pad_token_id": 0}),
}  # fmt: skip


@torch.inference_mode()
@pytest.mark.parametrize("shape", SHAPES)
def test_packed_equals_padded_equals_alone(shape: str) -> None:
    name, changes = SHAPES[shape]
    model = build(name, vocab_size=60, **changes).double().eval()
    random_weights(model)
    lengths = (11, 4, 17, 16, 13, 14, 1, 9, 9)  # neighbours of like length are padded to a group, others stand alone
    batch = padded(60, lengths)
    together = model(**batch).logits
    rows = [batch["input_ids"][i, :length] for i, length in enumerate(lengths)]
    offsets = list(itertools.accumulate(lengths, initial=0))
    packed = model(torch.cat(rows)[None], offsets=offsets).logits
    alone = torch.cat([model(row[None]).logits for row in rows])
    eager = model(**batch, output_attentions=True).logits
    for logits in (packed, alone, eager):
        assert_near(logits, together, EXACTLY)
    assert_near(
        model.encoder(torch.cat(rows)[None], offsets=offsets).last_hidden_state[0],
        model.encoder(**batch).last_hidden_state[batch["attention_mask"].bool()],
        EXACTLY,
    )


def test_a_packed_row_has_no_attention_weights_to_show() -> None:
    model = build("standard-1x32", vocab_size=60)
    with pytest.raises(InputError, match="packed row"):
        model(torch.ones(1, 6, dtype=torch.long), offsets=[0, 2, 6], output_attentions=True)


def test_padding_whose_window_holds_only_padding_gives_no_nan() -> None:
    """Every query sees at least one key, so no softmax is over nothing."""
    config = ModelConfig(local_attention=2, global_attention_every=2)
    view = self_attention_view(config, 9, torch.tensor([[1, 1] + [0] * 7]), torch.device("cpu"), local=True)
    assert view.mask.any(dim=-1).all()


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: our_config(bert(hidden_act="gelu_new")), "gelu_new"),
        (lambda: our_config(modern(attention_bias=True)), "attention_bias and mlp_bias"),
        (lambda: our_config(modern(layer_types=["sliding_attention"] * 7)), "start with a global layer"),
        (lambda: their_config(preset("recurrent-3x2x256")), "neither a bert nor a modernbert"),
        (lambda: their_config(preset("bert-mini", norm_placement="pre")), "neither a bert"),
        *(
            (lambda name=name, changes=changes: their_config(preset(name, **changes)), "neither a bert nor a modern")
            for name in ("bert-mini", "modernbert-base")
            for changes in (
                {"embedding_scale": True},
                {"residual": "every"},
                {"residual": "damped"},
                {"loop_norm": True},
                {"embedding_size": 16},
                {"embedding_norm": False},
                {"prelude_layers": 1},
            )
        ),
        (lambda: their_config(preset("bert-mini", local_attention=4)), "neither a bert"),
        (lambda: their_config(preset("bert-mini", norm_bias=False)), "neither a bert"),
        (lambda: their_config(preset("bert-mini", bias=False)), "neither a bert"),
        (lambda: preset("bert-mini", num_decoder_layers=1, norm_placement="sandwich"), "not for decoders"),
        (lambda: preset("bert-mini", pooler=False), "needs pooler=True"),
        (lambda: preset("modernbert-base", local_attention=7), "even number"),
        (lambda: preset("bert-mni"), "Did you mean 'bert-mini'"),
    ],
)
def test_what_these_models_lack_raises_an_error_that_explains_it(call, says: str) -> None:
    with pytest.raises(InputError, match=says):
        call()


@pytest.mark.parametrize("name", ["bert-mini", "minilm-l6", "modernbert-base", "modernbert-large"])
def test_configurations_translate_there_and_back(name: str) -> None:
    config = preset(name)
    back = our_config(
        their_config(config), pooling=config.pooling, normalize=config.normalize, max_seq_length=config.max_seq_length
    )
    differing = {k for k, v in config.to_dict().items() if back.to_dict().get(k) != v} - {"architectures"}
    assert differing == set()
