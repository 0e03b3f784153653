"""An encoder made into a loop: with full rank it is the original, and each start takes the layers that it names."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from near import assert_near
from other_tokenizers import unigram_tokenizer
from tokenizers import Tokenizer, processors
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoModel, PreTrainedTokenizerFast

from rtx.vocabulary import with_vocabulary_of
from rtxlib.data.tokenization import encode, train
from rtxlib.errors import InputError
from rtxlib.models import EarlyExit, Encoder, EncoderForSequenceClassification, ModelConfig, build, preset
from rtxlib.models.convert import STARTS, to_loop
from rtxlib.models.size import forward_flops, parameters
from rtxstudy.questions.untrained_loop.window_passes import repeat_window

IDS = torch.randint(5, 90, (3, 11), generator=torch.Generator().manual_seed(0))
TINY = {"vocab_size": 90, "num_hidden_layers": 6, "hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 48}


@pytest.fixture(scope="module", params=["minilm-l6", "pre-norm and gated"])
def six(request: pytest.FixtureRequest) -> Encoder:
    """Six layers with weights far apart, so that a wrong layer shows."""
    torch.manual_seed(1)
    settings = TINY | {"initializer_range": 0.2, "pooling": "mean"}
    config = preset("minilm-l6", **settings) if request.param == "minilm-l6" else ModelConfig(**settings)
    encoder = Encoder(config).eval()
    for parameter in encoder.parameters():  # biases and norms too
        parameter.data += 0.1 * torch.randn_like(parameter)
    return encoder


def states(encoder: Encoder, **way: int) -> torch.Tensor:
    with torch.no_grad():
        return encoder(IDS, **way).last_hidden_state


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("layers, passes, edges", [(3, 2, False), (2, 3, False), (1, 6, False), (2, 2, True)])
def test_with_full_rank_a_loop_is_the_original(six: Encoder, start: str, layers: int, passes: int, edges: bool) -> None:
    loop = to_loop(six, layers, passes, start, rank=10**4, pass_norms=True, edges=edges)
    original = states(six)
    assert_near(states(loop), original)
    less = to_loop(six, layers, passes, start, rank=2, pass_norms=True, edges=edges)
    assert (states(less) - states(six)).abs().max() > 1e-2  # the rank is what makes it so


def test_each_start_takes_the_layers_that_it_names(six: Encoder) -> None:
    theirs = [layer.state_dict() for layer in six.stack.blocks[0]]
    taken = {"lower": [[0], [1], [2]], "spread": [[0], [2], [5]], "average": [[0, 3], [1, 4], [2, 5]]}
    for start, groups in taken.items():
        loop = to_loop(six, 3, 2, start)
        for layer, numbers in zip(loop.stack.blocks[0], groups, strict=True):
            for name, weight in layer.state_dict().items():
                assert torch.allclose(weight, sum(theirs[number][name] for number in numbers) / len(numbers)), (
                    start,
                    name,
                )
    once = to_loop(six, 3, 1)  # the control: the same layers, passed once
    twice = to_loop(six, 3, 2)
    assert parameters(once) == parameters(twice)
    assert_near(states(twice, recurrent_depth=1), states(once), 1e-6)
    assert not torch.allclose(states(twice), states(once), atol=1e-3)
    edged = to_loop(six, 4, 1, edges=True)
    assert_near(states(edged), states(six), 1e-6)


def test_a_window_is_repeated_or_passed_in_damped_steps(six: Encoder) -> None:
    """Layers three and four three times, by hand: h ← F(h), or h ← h + (F(h) − h) / 3."""
    assert_near(states(repeat_window(six, 2, 2, 1, damped=True)), states(six), 1e-6)
    for damped in (False, True):
        with torch.no_grad():
            h, view = six.embeddings(IDS), six.context(IDS.shape[1], None, IDS.device).full
            for number, layer in enumerate(six.stack.blocks[0]):
                if number == 2:
                    for _ in range(3):
                        after = six.stack.blocks[0][3](six.stack.blocks[0][2](h, view)[0], view)[0]
                        h = h + (after - h) / 3 if damped else after
                elif number != 3:
                    h = layer(h, view)[0]
            by_hand = six.final_norm(h)
        passed = states(repeat_window(six, 2, 2, 3, damped))
        assert torch.allclose(passed, by_hand, atol=1e-5 * by_hand.abs().max()), damped
        assert not torch.allclose(passed, states(six), atol=1e-3)
    with pytest.raises(InputError, match="layers 6 to 7 are not all among the 6"):
        repeat_window(six, 5, 2, 2, damped=True)


def test_a_pass_has_parts_of_its_own_in_every_way_of_running(six: Encoder, tmp_path: Path) -> None:
    """Saved and opened, with early exits, with passes beyond the last, for [CLS] alone, and packed."""
    loop = to_loop(six, 3, 2, rank=4, pass_norms=True)
    loop.save_pretrained(tmp_path)
    opened = AutoModel.from_pretrained(tmp_path)
    assert torch.equal(states(opened), states(loop))
    parts = loop.stack.of_pass
    assert not torch.equal(parts[0][0].attention_norm.weight, parts[1][0].attention_norm.weight)
    assert not torch.equal(states(loop, recurrent_depth=3), states(loop))
    torch.manual_seed(0)
    model = EncoderForSequenceClassification(ModelConfig(**TINY | vars_of_loop(pass_rank=4, pass_norms=True))).eval()
    for addition in model.encoder.stack.of_pass.parameters():
        addition.data += 0.1 * torch.randn_like(addition)
    with torch.no_grad():
        whole = model(IDS).logits
        early = model(IDS, early_exit=EarlyExit("confidence", 1.0))
        packed = model(IDS.flatten()[None], offsets=[0, 11, 22, 33]).logits
        assert_near(early.logits, whole)
        assert early.passes.tolist() == [2, 2, 2]
        assert_near(packed, whole)
    model.config._attn_implementation = "eager"  # whose scores torch counts on a CPU
    with FlopCounterMode(display=False) as counted, torch.no_grad():
        model(IDS[:1])
    assert counted.get_total_flops() == forward_flops(model.config, IDS.shape[1])


def vars_of_loop(**fields: object) -> dict[str, object]:
    return {"num_hidden_layers": 3, "recurrent_depth": 2, "residual": "none", **fields}


def test_a_new_addition_changes_nothing_and_learns() -> None:
    plain = build("recurrent-2x2x64", vocab_size=90)
    relaxed = build("recurrent-2x2x64", vocab_size=90, pass_rank=3)
    relaxed.load_state_dict(plain.state_dict(), strict=False)
    assert_near(relaxed.eval()(IDS).logits, plain.eval()(IDS).logits, 1e-6)
    relaxed(IDS, labels=torch.tensor([0, 1, 0])).loss.backward()
    assert all(part.b.grad.abs().sum() > 0 for layer in relaxed.encoder.stack.of_pass[1] for part in layer.children())


def test_a_loop_of_random_depth_trains_every_pass_and_runs_all_of_them_afterwards(six: Encoder, tmp_path: Path) -> None:
    drawn, plain = to_loop(six, 2, 4, depth_sampling="uniform"), to_loop(six, 2, 4)
    drawn.save_pretrained(tmp_path)
    opened = AutoModel.from_pretrained(tmp_path)
    assert torch.equal(states(opened), states(plain))
    by_depth = {depth: states(plain, recurrent_depth=depth) for depth in (1, 2, 3, 4)}
    torch.manual_seed(0)
    seen = []
    for part in opened.train().modules():
        part.training = part is opened  # passes are drawn, and nothing is dropped
    for _ in range(40):
        found = states(opened)
        seen += [depth for depth, state in by_depth.items() if (found - state).abs().max() < 1e-4 * state.abs().max()]
    assert len(seen) == 40 and set(seen) == {1, 2, 3, 4}


@pytest.fixture(scope="module")
def words() -> PreTrainedTokenizerFast:
    return train(["the film was wonderful and the actors were fine", "nothing of it was funny"] * 3, 120)


def test_a_vocabulary_is_cut_to_its_texts_and_can_still_write_all(words: PreTrainedTokenizerFast) -> None:
    torch.manual_seed(0)
    encoder = Encoder(preset("minilm-l6", **TINY | {"vocab_size": len(words)})).eval()
    texts = ["the film was fine", "nothing funny"]
    cut, smaller = with_vocabulary_of(encoder, words, texts)
    assert (
        cut.config.vocab_size == len(smaller) < len(words) and parameters(cut)["total"] < parameters(encoder)["total"]
    )
    for text in texts:
        before, after = (torch.tensor(encode([text], one, None)[0])[None].long() for one in (words, smaller))
        assert_near(cut(after).last_hidden_state, encoder(before).last_hidden_state, 1e-6)
    other = encode(["wonderful actors"], smaller, None)[0]
    assert (
        smaller.unk_token_id not in other
        and np.diff([len(other), len(encode(["wonderful actors"], words, None)[0])]) <= 0
    )
    ends = [(token, words.convert_tokens_to_ids(token)) for token in (words.sep_token, words.cls_token)]
    for processor in (processors.BertProcessing(*ends), None):
        state = json.loads(words.backend_tokenizer.to_str())
        state["post_processor"] = None
        other = Tokenizer.from_str(json.dumps(state))
        if processor is not None:
            other.post_processor = processor
        again = PreTrainedTokenizerFast(tokenizer_object=other, **words.special_tokens_map)
        _, small = with_vocabulary_of(encoder, again, texts)
        ids = small(texts[0])["input_ids"]
        assert ids[0] == small.cls_token_id and ids[-1] == small.sep_token_id and max(ids) < len(small)
    with pytest.raises(InputError, match="Only a vocabulary of WordPiece"):
        with_vocabulary_of(encoder, unigram_tokenizer(), texts)


def test_added_tokens_stay_in_a_cut_vocabulary() -> None:
    words = train(["the film was wonderful", "nothing of it was funny"] * 3, 120)
    words.add_tokens(["<url>"])
    encoder = Encoder(preset("minilm-l6", **TINY | {"vocab_size": len(words)})).eval()
    cut, smaller = with_vocabulary_of(encoder, words, ["the film was funny"])
    before, after = (torch.tensor(encode(["the film <url>"], one, None)[0])[None].long() for one in (words, smaller))
    assert cut.config.vocab_size == len(smaller) < len(words) and "<url>" in smaller.convert_ids_to_tokens(after[0])
    assert_near(cut(after).last_hidden_state, encoder(before).last_hidden_state, 1e-6)


def test_what_cannot_be_converted_is_said(six: Encoder) -> None:
    for wrong, sentence in (
        ({"layers": 7, "passes": 1}, "cannot be made from 6 layers"),
        ({"layers": 0, "passes": 1}, "cannot be made from 6 layers"),
        ({"layers": 3, "passes": 2, "start": "loer"}, "Did you mean 'lower'"),
        ({"layers": 4, "passes": 2, "start": "average"}, "cannot be averaged into 4"),
        ({"layers": 2, "passes": 2, "rank": 4}, "2 × 2 must be 6"),
        ({"layers": 3, "passes": 0}, "recurrent_depth must be from 1"),
        ({"layers": 3, "passes": 1, "depth_sampling": "uniform"}, "has none of them"),
    ):
        with pytest.raises(InputError, match=sentence):
            to_loop(six, **wrong)
    with pytest.raises(InputError, match="has a loop already"):
        to_loop(to_loop(six, 3, 2), 1, 3)
    kinds = Encoder(preset("modernbert-base", **TINY | {"pad_token_id": 0}))
    with pytest.raises(InputError, match="differ in kind"):
        to_loop(kinds, 3, 2, "average")
    assert states(to_loop(kinds, 3, 2)).isfinite().all()
