"""Early exit: thresholds 0 and 1 are the extremes, and a text that leaves early has the logits of a model with fewer passes."""

from __future__ import annotations

import pytest
import torch
from near import assert_near
from test_recurrence import EXACTLY, VARIANTS, logits, small

from rtxlib.errors import InputError
from rtxlib.models import EarlyExit
from rtxlib.models.early_exit import CRITERIA, Settling

LENGTHS = (11, 4, 11, 7, 2, 9, 3, 8, 5)
THRESHOLDS = (0.0, 0.5, 0.6, 0.7, 0.8, 1.0)


@pytest.fixture
def batch() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    ids = torch.randint(1, 60, (len(LENGTHS), max(LENGTHS)))
    mask = (torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]).long()
    return {"input_ids": ids * mask, "attention_mask": mask}


@pytest.mark.parametrize("pooling", ["cls", "mean"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_shrinking_batch_gives_the_logits_of_each_text_alone(variant: str, pooling: str, batch: dict) -> None:
    model = small(**VARIANTS[variant], pooling=pooling)
    texts = [{"input_ids": batch["input_ids"][row : row + 1, :length]} for row, length in enumerate(LENGTHS)]
    fixed = {passes: [logits(model, text, recurrent_depth=passes) for text in texts] for passes in (1, 2, 3)}
    left_after = set()
    for criterion in CRITERIA:
        for threshold in THRESHOLDS:
            leave = EarlyExit(criterion, threshold)
            with torch.inference_mode():
                out, alone = model(**batch, early_exit=leave), [model(**text, early_exit=leave) for text in texts]
            assert out.passes.tolist() == [int(one.passes) for one in alone]
            assert_near(out.logits, torch.cat([one.logits for one in alone]), EXACTLY)
            assert_near(out.logits, torch.cat([fixed[int(r)][row] for row, r in enumerate(out.passes)]), EXACTLY)
            left_after.update(out.passes.tolist())
    assert left_after == {1, 2, 3}  # texts left after each pass


@pytest.mark.parametrize("criterion", CRITERIA)
def test_threshold_0_takes_one_pass_and_threshold_1_takes_all(criterion: str, batch: dict) -> None:
    model = small()
    first, last = (model(**batch, early_exit=EarlyExit(criterion, threshold)) for threshold in (0, 1))
    assert first.passes.tolist() == [1] * len(LENGTHS) and last.passes.tolist() == [3] * len(LENGTHS)
    assert_near(first.logits, logits(model, batch, recurrent_depth=1), EXACTLY)
    assert_near(last.logits, logits(model, batch), EXACTLY)
    deeper = model(**batch, early_exit=EarlyExit(criterion, 1), recurrent_depth=5)
    assert_near(deeper.logits, logits(model, batch, recurrent_depth=5), EXACTLY)


def test_a_text_with_probability_one_stays_at_threshold_1(batch: dict) -> None:
    model = small()
    with torch.no_grad():
        model.classifier.bias.copy_(torch.tensor([1e4, 0.0]))  # a probability of exactly one
    assert model(**batch, early_exit=EarlyExit("confidence", 1.0)).passes.tolist() == [3] * len(LENGTHS)


def test_texts_that_left_are_no_longer_computed(batch: dict) -> None:
    """The rows and positions that the block's first layer sees in each pass."""
    model = small("recurrent-2x3x64", pooling="mean")
    seen: list[tuple[int, int]] = []
    model.encoder.stack.blocks[0][0].register_forward_pre_hook(lambda _, given: seen.append(tuple(given[0].shape[:2])))
    out = model(**batch, early_exit=EarlyExit("confidence", 0.9))
    staying = [[LENGTHS[row] for row in range(len(LENGTHS)) if out.passes[row] > passes] for passes in range(3)]
    assert len(staying[0]) > len(staying[1]) > 0
    assert seen == [(len(lengths), max(lengths)) for lengths in staying if lengths]


def test_leaving_after_the_first_pass_costs_what_a_model_of_one_pass_costs(batch: dict) -> None:
    """A model that reads [CLS] alone runs the block's last layer in full only for texts that stay."""
    from torch.utils.flop_counter import FlopCounterMode

    model = small()
    model.config._attn_implementation = "eager"  # torch does not count the products of fused attention on a CPU
    counts = []
    for given in ({"recurrent_depth": 1}, {"early_exit": EarlyExit("confidence", 0)}):
        with torch.inference_mode(), FlopCounterMode(display=False) as counter:
            model(input_ids=batch["input_ids"][:1], **given)
        counts.append(counter.get_total_flops())
    assert counts[0] == counts[1]


def test_each_score_follows_its_formula() -> None:
    entered = torch.tensor([[3.0, 4.0], [1.0, 0.0]])
    states = [torch.tensor([[6.0, 8.0], [-1.0, 0.0]]), torch.tensor([[6.0, 8.0], [0.0, 1.0]])]
    found = [torch.tensor([[0.0, 1.0], [2.0, 0.0]]), torch.tensor([[0.0, 2.0], [0.0, 3.0]])]
    expected = {
        "confidence": [[1 / (1 + torch.e**-1), 1 / (1 + torch.e**-2)], [1 / (1 + torch.e**-2), 1 / (1 + torch.e**-3)]],
        "agreement": [[1 / 4, 1 / 4], [2 / 4, 1 / 4]],
        "change": [[1 - 5 / 15, 0.0], [1.0, 1 - 2**0.5 / 2]],
    }
    for criterion, by_pass in expected.items():
        settling = Settling(criterion, 4, entered)
        for scores, logit, state in zip(by_pass, found, states, strict=True):
            torch.testing.assert_close(settling.score(logit, state), torch.tensor(scores))


def test_agreement_asks_for_the_same_label_in_a_row(batch: dict) -> None:
    model = small(residual="none")
    labels = torch.stack([logits(model, batch, recurrent_depth=r).argmax(dim=-1) for r in (1, 2, 3)], dim=1)
    out = model(**batch, early_exit=EarlyExit("agreement", 0.5))  # two of three
    assert out.passes.tolist() == [2 if row[0] == row[1] else 3 for row in labels.tolist()]


def test_the_loss_is_the_loss_of_the_logits_at_the_exit(batch: dict) -> None:
    labels = torch.arange(len(LENGTHS)) % 2
    out = small()(**batch, labels=labels, early_exit=EarlyExit("confidence", 0.8))
    assert_near(out.loss, torch.nn.functional.cross_entropy(out.logits, labels))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: EarlyExit("confidense", 0.5), "Did you mean 'confidence'"),
        (lambda: EarlyExit("confidence", 1.5), "between 0 and 1"),
        (
            lambda: small(max_position_embeddings=16)(torch.ones(1, 40).long(), early_exit=EarlyExit("change", 0.5)),
            "longer than the 16 positions",
        ),
        (lambda: EarlyExit("confidence", float("nan")), "between 0 and 1"),
        (lambda: small().train()(torch.ones(1, 3).long(), early_exit=EarlyExit("change", 0.5)), r"model.eval\(\)"),
        (
            lambda: small()(torch.ones(1, 3).long(), early_exit=EarlyExit("change", 0.5), output_hidden_states=True),
            "no states or attentions",
        ),
        (
            lambda: small()(torch.ones(1, 9).long(), early_exit=EarlyExit("change", 0.5), offsets=[0, 4, 9]),
            "takes no packed texts",
        ),
        (
            lambda: small(block_sharing="unshared")(
                torch.ones(1, 3).long(), early_exit=EarlyExit("change", 0.5), recurrent_depth=4
            ),
            "3 blocks that share no weights",
        ),
    ],
)  # fmt: skip
def test_what_makes_no_sense_raises_an_error_that_explains_it(call, says: str) -> None:
    with pytest.raises(InputError, match=says):
        call()
