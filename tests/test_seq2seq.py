"""The encoder–decoder equals torch's Transformer with the same weights, learns, decodes, and can be saved."""

from __future__ import annotations

import copy
import itertools

import pytest
import torch
import torch.nn.functional as F
from near import assert_near
from torch import Tensor, nn
from transformers import AutoModel, AutoModelForSeq2SeqLM

from rtx.beam_search import Hypothesis, decode, penalty
from rtxlib.errors import InputError
from rtxlib.models import Encoder, EncoderDecoder, ModelConfig, preset
from rtxlib.models.attention import sinusoidal_table
from rtxlib.models.kernels import Dropout
from rtxlib.models.layers import Trace

EXACTLY = 1e-10  # of two ways to compute one number in float64
PAD, BOS, EOS = 0, 1, 2
TINY = {
    "vocab_size": 30,
    "hidden_size": 32,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_decoder_layers": 2,
    "max_position_embeddings": 20,
}


def tiny(seed: int = 0, **overrides: object) -> EncoderDecoder:
    """A small transformer-base in float64. Every parameter is moved away from its start, so that none is exactly 0 or 1."""
    torch.manual_seed(seed)
    model = EncoderDecoder(preset("transformer-base", **(TINY | overrides))).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model


def padded(lengths: tuple[int, ...], seed: int) -> tuple[Tensor, Tensor]:
    """Random ids (rows, longest) padded on the right, and their mask."""
    generator = torch.Generator().manual_seed(seed)
    mask = (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]).long()
    return torch.randint(3, 30, mask.shape, generator=generator) * mask, mask


@pytest.fixture
def batch() -> dict[str, Tensor]:
    source, source_mask = padded((9, 4, 6, 1), seed=1)
    target, target_mask = padded((5, 7, 2, 3), seed=2)
    return {
        "input_ids": source,
        "attention_mask": source_mask,
        "decoder_input_ids": target,
        "decoder_attention_mask": target_mask,
    }


# ---------------------------------------- torch's Transformer, and the places of dropout

# Our names of a layer's parts -> torch's. Both hold the projections of Q, K and V as one matrix, in this order.
NAMES = {
    "attention.qkv.": "self_attn.in_proj_",
    "attention.output.": "self_attn.out_proj.",
    "cross_attention.qkv.": "multihead_attn.in_proj_",
    "cross_attention.output.": "multihead_attn.out_proj.",
    "feedforward.input.": "linear1.",
    "feedforward.output.": "linear2.",
}
ENCODER_NAMES = NAMES | {"attention_norm.": "norm1.", "feedforward_norm.": "norm2."}
DECODER_NAMES = NAMES | {"attention_norm.": "norm1.", "cross_attention_norm.": "norm2.", "feedforward_norm.": "norm3."}


def copy_weights(ours: nn.Module, theirs: nn.Module, names: dict[str, str]) -> None:
    """Copy strictly: each of their weights comes from one of ours, and none of ours is left over."""

    def renamed(key: str) -> str:
        (prefix,) = (prefix for prefix in names if key.startswith(prefix))
        return names[prefix] + key.removeprefix(prefix)

    theirs.load_state_dict({renamed(key): value for key, value in ours.state_dict().items()})


def torchs(model: EncoderDecoder) -> nn.Transformer:
    """torch.nn.Transformer with the weights of ours.

    torch's has three things that the paper lacks: a LayerNorm after each stack, dropout on the attention weights, and
    dropout after the ReLU. transformer-base leaves out the first two (final_norm=False, attention_dropout=0) and keeps the
    third, which the project's description asks for. Here ``final_norm`` decides whether torch's final norms are there.
    """
    config = model.config
    settings = {
        "d_model": config.hidden_size,
        "nhead": config.num_attention_heads,
        "dim_feedforward": config.intermediate_size,
        "norm_first": config.norm_placement == "pre",
        "batch_first": True,
    }
    norms = [nn.LayerNorm(config.hidden_size) if config.final_norm else None for _ in range(2)]
    theirs = nn.Transformer(
        config.hidden_size,
        config.num_attention_heads,
        batch_first=True,
        custom_encoder=nn.TransformerEncoder(
            nn.TransformerEncoderLayer(**settings), config.num_hidden_layers, norms[0], enable_nested_tensor=False
        ),
        custom_decoder=nn.TransformerDecoder(
            nn.TransformerDecoderLayer(**settings), config.num_decoder_layers, norms[1]
        ),
    )
    theirs.double()
    for ours, layer in zip(model.encoder.stack.blocks[0], theirs.encoder.layers, strict=True):
        copy_weights(ours, layer, ENCODER_NAMES)
    for ours, layer in zip(model.decoder, theirs.decoder.layers, strict=True):
        copy_weights(ours, layer, DECODER_NAMES)
    if config.final_norm:
        theirs.encoder.norm.load_state_dict(model.encoder.final_norm.state_dict())
        theirs.decoder.norm.load_state_dict(model.final_norm.state_dict())
    return theirs.eval()


@pytest.mark.parametrize("final_norm", [False, True])
@pytest.mark.parametrize("placement", ["post", "pre"])
def test_equals_torchs_transformer_with_the_same_weights(placement: str, final_norm: bool, batch: dict) -> None:
    model = tiny(norm_placement=placement, final_norm=final_norm)
    theirs = torchs(model)
    embed = model.encoder.embeddings
    batch["decoder_attention_mask"][1, 3] = 0  # inside the text: the causal mask hides padding at the end anyway
    source_padding, target_padding = batch["attention_mask"] == 0, batch["decoder_attention_mask"] == 0
    length = target_padding.shape[1]
    with torch.no_grad():
        memory = theirs.encoder(embed(batch["input_ids"]), src_key_padding_mask=source_padding)
        states = theirs(
            embed(batch["input_ids"]),
            embed(batch["decoder_input_ids"]),
            tgt_mask=torch.ones(length, length, dtype=torch.bool).triu(1),  # torch's masks say what is hidden
            src_key_padding_mask=source_padding,
            tgt_key_padding_mask=target_padding,
            memory_key_padding_mask=source_padding,
        )
        ours = model(**batch)
    assert_near(ours.encoder_last_hidden_state[~source_padding], memory[~source_padding], EXACTLY)
    assert_near(ours.logits[~target_padding], (states @ embed.token.weight.T)[~target_padding], EXACTLY)


def ramp(x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """A deterministic stand-in for dropout: x times (1 − p) times a ramp from −1 to 1.

    A test with real dropout would not notice if dropout and ReLU changed places. This one would: half of the factors are
    negative, and no two features have the same factor.
    """
    return x * torch.linspace(-1, 1, x.shape[-1]) * (1 - p) if training and p else x


def drop_by_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace torch's dropout and ours by :func:`ramp`."""
    monkeypatch.setattr(F, "dropout", ramp)
    monkeypatch.setattr(Dropout, "forward", lambda self, x: ramp(x, self.p, self.training))


@pytest.mark.parametrize("placement", ["post", "pre"])
def test_dropout_falls_on_each_sublayers_output_before_the_residual_and_after_the_relu(
    placement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny(norm_placement=placement, hidden_dropout=0.2, activation_dropout=0.6).train()
    theirs = torchs(model).train()
    for layer in (*theirs.encoder.layers, *theirs.decoder.layers):
        layer.self_attn.dropout = 0.0  # the paper applies dropout to the output of attention, not to its weights
        layer.dropout1.p = layer.dropout2.p = 0.2
        layer.dropout.p = 0.6
    for layer in theirs.decoder.layers:
        layer.multihead_attn.dropout = 0.0
        layer.dropout3.p = 0.2
    drop_by_place(monkeypatch)
    x = torch.randn(2, 5, 32, dtype=torch.float64)
    dropped = model.encoder.stack(x)
    assert_near(dropped, theirs.encoder(x), EXACTLY)
    assert not torch.allclose(dropped, model.eval().encoder.stack(x), atol=0.1)

    trace = Trace(states=True)
    last = model.train().read(torch.full((2, 4), 7), memory=x, trace=trace)
    expected = theirs.decoder(trace.states[0], x, tgt_mask=torch.ones(4, 4, dtype=torch.bool).triu(1))
    assert_near(last, expected, EXACTLY)


def test_input_is_scaled_embedding_plus_position_then_dropout(monkeypatch: pytest.MonkeyPatch) -> None:
    """√d·E + PE exactly, on both sides; dropout on the sum (Vaswani et al. 2017, §3.4, §3.5 and §5.4)."""
    model = tiny(hidden_dropout=0.2)
    ids = torch.tensor([[7, 3, 3, 12]])
    expected = 32**0.5 * model.encoder.embeddings.token.weight[ids] + sinusoidal_table(4, 32)
    output = model(ids, ids, output_hidden_states=True)
    assert torch.equal(output.encoder_hidden_states[0], expected)
    assert torch.equal(output.decoder_hidden_states[0], expected)
    drop_by_place(monkeypatch)
    assert torch.equal(model.train().encoder.embeddings(ids), ramp(expected, 0.2))


# ---------------------------------------- masks


def test_a_later_target_token_changes_no_earlier_logits(batch: dict) -> None:
    model = tiny()
    before = model(**batch).logits
    changed = batch["decoder_input_ids"].clone()
    changed[1, 4] = 3 + (changed[1, 4] - 2) % 27  # another token
    after = model(**batch | {"decoder_input_ids": changed}).logits
    assert_near(after[1, :4], before[1, :4], EXACTLY)
    assert ((after - before)[1, 4:].abs().amax(-1) > 1e-3).all()  # all later positions change
    assert_near(after[[0, 2, 3]], before[[0, 2, 3]], EXACTLY)  # other rows do not change


def test_padding_changes_nothing(batch: dict) -> None:
    model = tiny()
    together = model(**batch).logits
    junk = torch.where(batch["attention_mask"].bool(), batch["input_ids"], 17)
    assert_near(model(**batch | {"input_ids": junk}).logits, together, EXACTLY)
    assert not torch.allclose(model(**batch | {"attention_mask": None}).logits, together)
    sizes = zip(batch["attention_mask"].sum(1).tolist(), batch["decoder_attention_mask"].sum(1).tolist(), strict=True)
    for row, (source, target) in enumerate(sizes):
        alone = model(batch["input_ids"][[row], :source], batch["decoder_input_ids"][[row], :target]).logits
        assert_near(together[[row], :target], alone, EXACTLY)


def test_a_hidden_target_token_changes_no_other_logits(batch: dict) -> None:
    model = tiny()
    batch["decoder_attention_mask"][1, 3] = 0
    before = model(**batch).logits
    batch["decoder_input_ids"][1, 3] = 3 + (batch["decoder_input_ids"][1, 3] - 2) % 27
    after = model(**batch).logits
    others = [0, 1, 2, 4, 5, 6]
    assert_near(after[1, others], before[1, others], EXACTLY)
    assert not torch.allclose(after[1, 3], before[1, 3])


@pytest.mark.parametrize("placement", ["post", "pre"])
def test_eager_agrees_with_fused_and_its_weights_respect_the_masks(placement: str, batch: dict) -> None:
    model = tiny(norm_placement=placement, final_norm=placement == "pre")
    fused = model(**batch, output_hidden_states=True)
    eager = model(**batch, output_hidden_states=True, output_attentions=True)
    assert fused.cross_attentions is fused.decoder_attentions is fused.encoder_attentions is None
    assert_near(eager.logits, fused.logits, EXACTLY)
    for name, layers in (("encoder_hidden_states", 3), ("decoder_hidden_states", 2)):
        assert len(fused[name]) == layers + 1
        for a, b in zip(eager[name], fused[name], strict=True):
            assert_near(a, b, EXACTLY)
    shapes = {
        "encoder_attentions": (3, (4, 4, 9, 9)),  # layers; batch, heads, queries, keys
        "decoder_attentions": (2, (4, 4, 7, 7)),
        "cross_attentions": (2, (4, 4, 7, 9)),
    }
    for name, (layers, shape) in shapes.items():
        assert [weights.shape for weights in eager[name]] == [shape] * layers
        for weights in eager[name]:
            assert_near(weights.sum(-1), torch.ones(shape[:-1]), EXACTLY)
    padding = batch["attention_mask"][:, None, None] == 0  # (batch, 1, 1, source length)
    for weights in eager.cross_attentions:
        assert weights.masked_select(padding).eq(0).all() and weights.masked_select(~padding).gt(0).all()
    for weights in eager.decoder_attentions:
        future = torch.ones(7, 7, dtype=torch.bool).triu(1)
        assert weights[..., future].eq(0).all() and weights[1][..., ~future].gt(0).all()  # row 1 is full


# ---------------------------------------- one matrix, used three times


def test_loss_is_the_mean_negative_log_probability_of_the_labels_that_count(batch: dict) -> None:
    model = tiny()
    labels = batch["decoder_input_ids"].roll(-1, 1)
    labels[batch["decoder_attention_mask"] == 0] = -100
    output = model(**batch, labels=labels)
    kept = [(row, place) for row in range(4) for place in range(7) if labels[row, place] != -100]
    surprise = [-output.logits[row, place].log_softmax(-1)[labels[row, place]] for row, place in kept]
    assert_near(output.loss, torch.stack(surprise).mean())  # a loss is float32
    as_tuple = model(**batch, labels=labels, return_dict=False)
    assert torch.equal(as_tuple[0], output.loss) and torch.equal(as_tuple[1], output.logits)


def test_output_projection_is_the_embedding_and_the_gradients_of_both_uses_add_up(batch: dict) -> None:
    model = tiny()
    table = model.encoder.embeddings.token.weight
    labels = batch["decoder_input_ids"].roll(-1, 1)
    output = model(**batch, labels=labels, output_hidden_states=True)
    assert_near(output.logits, output.decoder_hidden_states[-1] @ table.T, EXACTLY)
    output.loss.backward()

    read, written = (table.detach().clone().requires_grad_() for _ in range(2))  # the same numbers, untied
    states = torch.func.functional_call(
        model, {"encoder.embeddings.token.weight": read}, kwargs=batch | {"output_hidden_states": True}
    ).decoder_hidden_states[-1]
    F.cross_entropy((states @ written.T).flatten(0, 1), labels.flatten()).backward()
    assert read.grad.abs().max() > 1e-3 and written.grad.abs().max() > 1e-3
    assert_near(table.grad, read.grad + written.grad)


def test_gradients_reach_every_parameter(batch: dict) -> None:
    model = tiny(final_norm=True)
    model(**batch, labels=batch["decoder_input_ids"]).loss.backward()
    assert [name for name, p in model.named_parameters() if p.grad is None or not p.grad.abs().any()] == []


def test_transformer_base_has_the_parameters_of_the_paper() -> None:
    """63 million; the paper's Table 3 says 65 with a vocabulary that it gives as "about 37000"."""
    with torch.device("meta"):
        model = EncoderDecoder(preset("transformer-base"))
    d, inner, vocabulary = 512, 2048, 37_000
    attention = 4 * (d * d + d)  # Q, K, V and output, with biases
    feedforward = d * inner + inner + inner * d + d
    norm = 2 * d
    encoder_layer = attention + feedforward + 2 * norm
    decoder_layer = 2 * attention + feedforward + 3 * norm
    expected = vocabulary * d + 6 * encoder_layer + 6 * decoder_layer
    assert sum(p.numel() for p in model.parameters()) == expected == 63_082_496


def test_saved_and_opened_by_transformers_gives_the_same_logits(tmp_path, batch: dict) -> None:
    model = tiny().float()
    model.save_pretrained(tmp_path)
    assert {path.suffix for path in tmp_path.iterdir()} == {".json", ".safetensors"}
    opened = AutoModelForSeq2SeqLM.from_pretrained(tmp_path).eval()
    assert isinstance(opened, EncoderDecoder)
    assert torch.equal(opened(**batch).logits, model(**batch).logits)
    encoder = AutoModel.from_pretrained(tmp_path).eval()  # the encoder without the decoder
    assert isinstance(encoder, Encoder)
    source = {"input_ids": batch["input_ids"], "attention_mask": batch["attention_mask"]}
    assert torch.equal(encoder(**source).last_hidden_state, model(**batch).encoder_last_hidden_state)


# ---------------------------------------- training


def reversals(rows: int, held_out: bool, generator: torch.Generator) -> dict[str, Tensor]:
    """Random sources of 3 to 7 tokens; a target is its source reversed. Sources whose ids sum to a multiple of 5 are held out."""
    longest = 7
    lengths = torch.randint(3, longest + 1, (8 * rows,), generator=generator)
    place = torch.arange(longest)
    real = place < lengths[:, None]
    source = torch.randint(3, 12, real.shape, generator=generator) * real
    chosen = ((source.sum(1) % 5 == 0) == held_out).nonzero().flatten()[:rows]
    source, real, lengths = source[chosen], real[chosen], lengths[chosen]
    backwards = source.gather(1, (lengths[:, None] - 1 - place).clamp(min=0)) * real
    labels = F.pad(backwards, (0, 1)).scatter(1, lengths[:, None], EOS)  # eos after the last token
    return {
        "input_ids": source,
        "attention_mask": real.long(),
        "decoder_input_ids": F.pad(backwards, (1, 0), value=BOS),
        "labels": labels.masked_fill(labels == PAD, -100),
    }


@pytest.fixture(scope="module")
def learners() -> tuple[EncoderDecoder, EncoderDecoder]:
    """A model trained to reverse sequences, and a copy from the middle of its training, which is less certain."""
    torch.manual_seed(0)
    settings = {"vocab_size": 12, "hidden_size": 64, "num_attention_heads": 2, "intermediate_size": 128}
    settings |= {"num_hidden_layers": 2, "num_decoder_layers": 2, "hidden_dropout": 0.0, "activation_dropout": 0.0}
    model = EncoderDecoder(preset("transformer-base", **settings)).train()
    steps, warm_up, middle = 400, 100, 120
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / warm_up, (steps - step) / (steps - warm_up))
    )
    generator = torch.Generator().manual_seed(0)
    for step in range(steps):
        if step == middle:
            unsure = copy.deepcopy(model)
        model(**reversals(64, held_out=False, generator=generator)).loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    return model.eval(), unsure.eval()


@pytest.mark.parametrize("beams", [1, 4])
def test_learns_to_reverse_a_sequence(beams: int, learners: tuple) -> None:
    unseen = reversals(200, held_out=True, generator=torch.Generator().manual_seed(1))
    found = decode(
        learners[0],
        unseen["input_ids"],
        unseen["attention_mask"],
        bos_id=BOS,
        eos_id=EOS,
        beams=beams,
        max_new_tokens=12,
    )
    wanted = [[token for token in row if token > EOS] for row in unseen["labels"].tolist()]
    exact = sum(hypothesis.ids == ids for hypothesis, ids in zip(found, wanted, strict=True)) / len(wanted)
    assert exact >= 0.95


# ---------------------------------------- decoding


def log_probability(model: EncoderDecoder, source: Tensor, tokens: list[int]) -> float:
    """log p(tokens | source), where each token is given the true tokens before it."""
    logits = model(source[None], torch.tensor([[BOS, *tokens[:-1]]])).logits[0]
    return logits.log_softmax(-1)[torch.arange(len(tokens)), tokens].sum().item()


def test_length_penalty_is_that_of_wu_et_al() -> None:
    assert penalty(1, 0.6) == 1 and penalty(7, 1.0) == 2 and penalty(19, 0.5) == 2 and penalty(30, 0.0) == 1


def test_one_beam_takes_the_likeliest_token_at_every_step(learners: tuple) -> None:
    model = learners[1]
    unseen = reversals(12, held_out=True, generator=torch.Generator().manual_seed(2))
    sources, mask = unseen["input_ids"], unseen["attention_mask"]
    cut_off = 0
    for found, row, length in zip(
        decode(model, sources, mask, bos_id=BOS, eos_id=EOS, max_new_tokens=6), sources, mask.sum(1), strict=True
    ):
        source, tokens = row[:length], []
        while len(tokens) < 6 and EOS not in tokens:
            tokens.append(model(source[None], torch.tensor([[BOS, *tokens]])).logits[0, -1].argmax().item())
        assert found.ids == [token for token in tokens if token != EOS]
        assert found.score == pytest.approx(
            log_probability(model, source, tokens) / penalty(len(tokens), 0.6), abs=1e-4
        )
        cut_off += EOS not in tokens
    assert 0 < cut_off < 12


@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
def test_enough_beams_find_what_trying_every_sequence_finds(alpha: float) -> None:
    """A vocabulary of four and at most four tokens allow 1 + 3 + 9 + 27 targets that end in eos."""
    greedy_missed = 0
    for seed in range(6):
        model = tiny(seed, vocab_size=4, hidden_size=16, num_hidden_layers=1, num_decoder_layers=1)
        source = torch.tensor([3, 0, 1, 3, 2])
        targets = [[*t, EOS] for n in range(4) for t in itertools.product((0, 1, 3), repeat=n)]
        score, target = max((log_probability(model, source, t) / penalty(len(t), alpha), t) for t in targets)
        settings = {"bos_id": BOS, "eos_id": EOS, "max_new_tokens": 4, "length_penalty": alpha}
        (found,) = decode(model, source[None], beams=27 * 4, **settings)
        assert found.ids == target[:-1]
        assert found.score == pytest.approx(score, abs=1e-4)
        greedy_missed += decode(model, source[None], **settings)[0].ids != found.ids
    assert greedy_missed  # otherwise greedy search would pass this test too


def plain_search(model: EncoderDecoder, source: Tensor, beams: int, longest: int) -> Hypothesis:
    """Beam search in its plainest form: one source, one hypothesis at a time, without stopping early."""
    alive, ended = [(0.0, [])], []
    for _ in range(longest):
        grown = []
        for logp, tokens in alive:
            following = model(source[None], torch.tensor([[BOS, *tokens]])).logits[0, -1].log_softmax(-1)
            grown += [(logp + p, [*tokens, token]) for token, p in enumerate(following.tolist())]
        kept = sorted(grown, reverse=True)[:beams]
        ended += [(logp / penalty(len(tokens), 0.6), tokens[:-1]) for logp, tokens in kept if tokens[-1] == EOS]
        alive = [(logp, tokens) for logp, tokens in kept if tokens[-1] != EOS]
    score, tokens = max(ended) if ended else (alive[0][0] / penalty(longest, 0.6), alive[0][1])
    return Hypothesis(tokens, score)


@pytest.mark.parametrize("beams", [2, 3])
def test_a_batch_decodes_as_the_plain_search_decodes_each_source(beams: int, learners: tuple) -> None:
    """Sources that are done early leave the batch. Neither they nor padding change the others."""
    model = learners[1]
    unseen = reversals(24, held_out=True, generator=torch.Generator().manual_seed(3))
    sources, mask = unseen["input_ids"], unseen["attention_mask"]
    settings = {"bos_id": BOS, "eos_id": EOS, "max_new_tokens": 7}
    together = decode(model, sources, mask, beams=beams, **settings)
    for found, row, length in zip(together, sources, mask.sum(1), strict=True):
        expected = plain_search(model, row[:length], beams, 7)
        assert found.ids == expected.ids
        assert found.score == pytest.approx(expected.score, abs=1e-4)
        (alone,) = decode(model, row[None, :length], beams=beams, **settings)
        assert alone.ids == found.ids and alone.score == pytest.approx(found.score, abs=1e-4)
    assert len({len(found.ids) for found in together}) > 2
    greedy = decode(model, sources, mask, **settings)
    assert any(a.ids != b.ids for a, b in zip(together, greedy, strict=True))  # otherwise beams would not be tested


def test_when_nothing_ends_in_time_the_likeliest_beginning_is_returned(learners: tuple) -> None:
    unseen = reversals(6, held_out=True, generator=torch.Generator().manual_seed(4))
    for row, length in zip(unseen["input_ids"], unseen["attention_mask"].sum(1), strict=True):
        settings = {"bos_id": BOS, "eos_id": EOS, "beams": 3, "max_new_tokens": 2}
        (found,) = decode(learners[0], row[None, :length], **settings)
        expected = plain_search(learners[0], row[:length], 3, 2)
        assert found.ids == expected.ids == row[:length].flip(0)[:2].tolist()
        assert found.score == pytest.approx(expected.score, abs=1e-4)


def test_search_stops_when_no_beam_can_overtake(monkeypatch: pytest.MonkeyPatch) -> None:
    """eos has p = 0.9 after any text, so the empty target wins: log(0.1/29) divided by any penalty here is far lower."""
    model = tiny()
    reads = []
    read = model.read
    monkeypatch.setattr(model, "read", lambda *args: reads.append(1) or read(*args))
    favour = torch.full((30,), 0.1 / 29).index_fill(0, torch.tensor(EOS), 0.9).log()
    monkeypatch.setattr(model, "project", lambda states: favour.expand(*states.shape[:-1], 30))
    settings = {"bos_id": BOS, "eos_id": EOS, "beams": 3, "max_new_tokens": 15}
    assert decode(model, torch.full((2, 4), 5), **settings)[1].ids == [] and len(reads) == 1
    with pytest.raises(InputError, match="21 tokens"):  # raised before the search, which would stop earlier
        decode(model, torch.full((2, 4), 5), **settings | {"max_new_tokens": 21})
    # With a penalty this steep fourteen tokens of p = 0.1/29 score above log 0.9, so the search must go on.
    reads.clear()
    assert len(decode(model, torch.full((2, 4), 5), length_penalty=6.0, **settings)[1].ids) > 0 and len(reads) > 1


def test_decoding_uses_no_dropout_and_restores_the_mode_of_every_module(batch: dict) -> None:
    model = tiny(hidden_dropout=0.5)
    settings = {"bos_id": BOS, "eos_id": EOS, "beams": 2, "max_new_tokens": 6}
    sources = batch["input_ids"], batch["attention_mask"]
    expected = decode(model, *sources, **settings)
    model.train()
    model.encoder.eval()  # a frozen part
    modes = [module.training for module in model.modules()]
    assert decode(model, *sources, **settings) == expected
    with pytest.raises(InputError):
        decode(model, torch.ones(1, 21, dtype=torch.long), **settings)
    assert [module.training for module in model.modules()] == modes


# ---------------------------------------- errors


def ask(model: EncoderDecoder, source_length: int = 3, **overrides: object) -> list[Hypothesis]:
    settings = {"bos_id": BOS, "eos_id": EOS, "max_new_tokens": 4} | overrides
    return decode(model, torch.full((1, source_length), 5), **settings)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda model: EncoderDecoder(ModelConfig()), "needs num_decoder_layers of at least 1"),
        (lambda model: ask(model, beams=0), "beams must be at least 1, not 0"),
        (lambda model: ask(model, max_new_tokens=0), "max_new_tokens must be at least 1, not 0"),
        (lambda model: ask(model, length_penalty=-1), "must not be negative"),
        (lambda model: ask(model, source_length=21), "21 tokens is longer than the 20 positions"),
        (lambda model: ask(model, max_new_tokens=21), "21 tokens is longer than the 20 positions"),
        (lambda model: model(*torch.ones(2, 1, 21, dtype=torch.long)), "21 tokens is longer than the 20 positions"),
        (
            lambda model: model(torch.ones(1, 3, dtype=torch.long), torch.ones(1, 21, dtype=torch.long)),
            "21 tokens is longer than the 20 positions",
        ),
    ],
)
def test_bad_input_raises_an_error_that_explains_it(call, says: str) -> None:
    with pytest.raises(InputError, match=says):
        call(tiny())
