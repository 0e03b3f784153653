"""Training learns, keeps the best weights, and resumes after a kill to the same result."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
import torch
from near import assert_near

from rtxlib.data.batching import Tokens, batches
from rtxlib.errors import InputError
from rtxlib.models import build
from rtxlib.training import checkpoint, trainer
from rtxlib.training.device import pick_precision
from rtxlib.training.optimizer import make_optimizer, rate_at, rate_scales
from rtxlib.training.predict import cross_entropy, predict_logits
from rtxlib.training.recipe import RECIPES, Recipe, recipe
from rtxlib.training.step_rows import StepRows
from rtxlib.training.trainer import Trained, Trainer

CPU = torch.device("cpu")
SPECIAL = {"pad": 0, "unk": 1, "cls": 2, "sep": 3, "mask": 4}
QUICK = Recipe(name="quick", learning_rate=3e-3, epochs=3, batch_rows=16, evaluations_per_epoch=2, precision="fp32")


def order_task(rows: int, seed: int) -> Tokens:
    """Texts whose label is the order of two words among fillers, so that word counts do not tell it."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, rows)
    texts = []
    for label in labels:
        filler = rng.integers(7, 30, rng.integers(2, 8))
        pair = (5, 6) if label else (6, 5)
        cut = sorted(rng.integers(0, len(filler) + 1, 2))
        texts.append(
            np.concatenate(
                [[2], filler[: cut[0]], [pair[0]], filler[cut[0] : cut[1]], [pair[1]], filler[cut[1] :], [3]]
            )
        )
    return Tokens(np.concatenate(texts).astype(np.int32), np.cumsum([0, *map(len, texts)]), labels.astype(np.int64))


def tiny(dropout: float = 0.1):
    return build("recurrent-1x2x64", vocab_size=30, hidden_dropout=dropout, attention_dropout=dropout)


def train(*given) -> Trained:
    return Trainer(*given).run()


def weights(model) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_a_task_of_order_is_learned() -> None:
    model = tiny()
    result = train(
        model, order_task(1200, 0), order_task(200, 1), dataclasses.replace(QUICK, epochs=8), 0, SPECIAL, CPU
    )
    test = order_task(300, 2)
    accuracy = (predict_logits(model, test, 0, CPU).argmax(1) == test.labels).mean()
    assert accuracy > 0.95
    assert result.curve["val_loss"].iloc[-1] < result.curve["val_loss"].iloc[0]
    assert result.padding_share < 0.3 and result.rows_per_second > 0


def test_the_weights_left_are_those_with_the_lowest_validation_loss() -> None:
    model, validation = tiny(), order_task(60, 1)
    # The model overfits forty texts that it sees thirty times, so the validation loss rises again.
    result = train(
        model, order_task(40, 0), validation, dataclasses.replace(QUICK, epochs=30, schedule="plateau"), 0, SPECIAL, CPU
    )
    best = result.curve.loc[result.curve["val_loss"].idxmin()]
    assert best["val_loss"] < result.curve["val_loss"].iloc[-1]
    assert cross_entropy(predict_logits(model, validation, 0, CPU), validation.labels) == pytest.approx(
        best["val_loss"], rel=1e-4
    )
    assert result.best_epoch == best["epoch"]


def test_same_seed_same_weights_other_seed_other_weights() -> None:
    results = []
    for seed in (0, 0, 1):
        model = tiny()
        train(model, order_task(100, 0), order_task(40, 1), dataclasses.replace(QUICK, epochs=1), seed, SPECIAL, CPU)
        results.append(weights(model))
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])


def test_averaged_weights_are_the_mean_of_the_last_steps() -> None:
    path: list[torch.Tensor] = []

    class Watched(Trainer):
        def step(self, pieces: list[np.ndarray]) -> None:
            super().step(pieces)
            path.append(weights(self.model))

    plan, model = dataclasses.replace(QUICK, average=1 / 3, keep="last"), tiny()
    data = order_task(100, 0), order_task(40, 1)
    found = Watched(model, *data, plan, 0, SPECIAL, CPU).run()
    last = path[-(len(path) // 3) :]
    assert_near(weights(model), torch.stack(last).mean(dim=0))
    assert len(last) > 2
    loss = cross_entropy(predict_logits(model, data[1], 0, CPU), data[1].labels)
    assert found.curve["val_loss"].iloc[-1] == pytest.approx(loss, rel=1e-4)  # validated as they are used


@pytest.mark.parametrize(("schedule", "average"), [("cosine", 0.5), ("plateau", 0.0)])
def test_a_killed_training_goes_on_to_the_same_result(tmp_path, monkeypatch, schedule: str, average: float) -> None:
    plan = dataclasses.replace(
        QUICK, schedule=schedule, average=average, word_dropout=0.1, patience=20, batch_tokens=96
    )
    data = order_task(200, 0), order_task(60, 1)
    whole = tiny()
    unbroken = train(whole, *data, plan, 3, SPECIAL, CPU)

    monkeypatch.setattr(trainer, "CHECKPOINT_SECONDS", 0.0)  # a checkpoint after every step
    file = tmp_path / "checkpoint.safetensors"
    saves = 0
    save = checkpoint.save

    def killed(*args) -> None:
        nonlocal saves
        save(*args)
        saves += 1
        if saves in (9, 14):
            raise KeyboardInterrupt

    monkeypatch.setattr(checkpoint, "save", killed)
    broken = tiny()
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            train(broken, *data, plan, 3, SPECIAL, CPU, file)
        broken = tiny()  # a new process knows nothing but the file
        with torch.no_grad():
            for p in broken.parameters():
                p.fill_(7.0)
    resumed = train(broken, *data, plan, 3, SPECIAL, CPU, file)
    assert torch.equal(weights(broken), weights(whole))
    timing = ["seconds"]
    assert resumed.curve.drop(columns=timing).equals(unbroken.curve.drop(columns=timing))


def test_accumulated_batches_give_the_gradient_of_the_whole_batch() -> None:
    data = order_task(64, 0), order_task(20, 1)
    plain, pieces = tiny(dropout=0.0), tiny(dropout=0.0)
    one_step = dataclasses.replace(QUICK, batch_rows=64, epochs=1, dropout=None, evaluations_per_epoch=1)
    for model in (plain, pieces):
        model.dropout.p = 0.0
    a = train(plain, *data, one_step, 0, SPECIAL, CPU)
    b = train(pieces, *data, dataclasses.replace(one_step, batch_tokens=64), 0, SPECIAL, CPU)
    assert a.curve["grad_norm"].iloc[0] == pytest.approx(b.curve["grad_norm"].iloc[0], rel=1e-4)
    assert_near(weights(plain), weights(pieces), 1e-3)  # Adam divides by what may be almost zero


def told_by_length(short: int, long: int) -> Tokens:
    """Rows of 5 tokens with one label, then rows of 20 with the other: length tells the label."""
    lengths = [5] * short + [20] * long
    rng = np.random.default_rng(0)
    return Tokens(
        rng.integers(6, 30, sum(lengths)).astype(np.int32), np.cumsum([0, *lengths]), np.repeat([0, 1], [short, long])
    )


@pytest.mark.parametrize("device", [CPU, torch.device("cuda")])
@pytest.mark.parametrize("batch_tokens", [None, 100])
def test_where_length_tells_the_label_a_step_holds_several_lengths(batch_tokens: int | None, device: torch.device) -> None:
    """A step of one length would hold one label. A mixed step has about the labels of all rows, and each row comes once."""
    plan = dataclasses.replace(QUICK, batch_rows=32, batch_tokens=batch_tokens)
    for data in (told_by_length(205, 200), order_task(400, 0)):
        steps = StepRows(data, plan, 0, device)
        epoch = list(itertools.islice(steps, steps.per_epoch))
        assert sorted(np.concatenate([rows for step in epoch for rows in step])) == list(range(len(data)))
        assert batch_tokens or max(map(len, epoch)) == 1
        sizes = [steps.computed(rows) for step in epoch for rows in step]
        assert not batch_tokens or max(sizes) <= batch_tokens
        shares = [data.labels[np.concatenate(step)].mean() for step in epoch if sum(map(len, step)) > 16]
        assert np.mean(np.abs(np.array(shares) - data.labels.mean())) < 0.25


def test_mixed_steps_have_the_gradient_of_all_rows_on_average() -> None:
    """The steps of an epoch, whether cut by length or mixed, add up to the gradient of the loss over all rows."""
    data, model = told_by_length(40, 24), tiny(dropout=0.0).double()
    model.dropout.p = 0.0
    plan = dataclasses.replace(QUICK, batch_rows=16, dropout=None, precision="fp32")

    def gradient(rows: list[np.ndarray], packed: bool) -> torch.Tensor:
        trainer = Trainer(model, data, data, plan, 0, SPECIAL, CPU)
        trainer.step_rows.packed = packed
        for index in rows:
            (trainer.loss(index) / len(data)).backward()
        found = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
        model.zero_grad()
        return found

    whole = gradient([np.arange(len(data))], packed=False)  # one padded batch
    for device, packed in ((CPU, True), (torch.device("cuda"), False)):
        mixing = StepRows(data, plan, 0, device)
        steps = [rows for step in itertools.islice(mixing, mixing.per_epoch) for rows in step]
        assert mixing.mixed and mixing.packed is packed
        torch.testing.assert_close(gradient(steps, packed), whole, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("classes", [2, 3, 6])
@pytest.mark.parametrize("batch", [16, 32])
def test_chance_alone_mixes_no_lengths(classes: int, batch: int) -> None:
    """The label shares of a small batch differ from those of all rows by chance, more so with more classes."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        lengths = rng.integers(4, 40, 1500)
        data = Tokens(np.full(lengths.sum(), 7, np.int32), np.cumsum([0, *lengths]), rng.integers(0, classes, 1500))
        plan = dataclasses.replace(QUICK, batch_rows=batch)
        assert not StepRows(data, plan, seed, CPU).mixed


def test_a_text_that_is_longer_than_a_micro_batch_is_refused() -> None:
    with pytest.raises(InputError, match="longest text has 20 tokens and batch_tokens is 19"):
        next(iter(StepRows(told_by_length(100, 100), dataclasses.replace(QUICK, batch_tokens=19), 0, CPU)))


@pytest.mark.parametrize("lengths", [[256] * 64, [5] * 64 + [300] * 64])
def test_without_a_limit_a_cpu_takes_a_step_in_pieces_and_a_gpu_takes_it_whole(lengths: list[int]) -> None:
    data = Tokens(np.full(sum(lengths), 7, np.int32), np.cumsum([0, *lengths]), np.arange(len(lengths)) % 2)
    plan = dataclasses.replace(QUICK, batch_rows=16)
    for device, most in ((CPU, 2048), (torch.device("cuda"), max(lengths) * 16)):
        steps = StepRows(data, plan, 0, device)
        epoch = list(itertools.islice(steps, steps.per_epoch))
        assert sorted(np.concatenate([rows for step in epoch for rows in step])) == list(range(len(data)))
        assert all(data.lengths[rows].sum() <= most for step in epoch for rows in step)
        assert (max(map(len, epoch)) > 1) is (device is CPU)
    long = Tokens(np.full(6000, 7, np.int32), np.array([0, 3000, 6000]), np.array([0, 1]))  # texts longer than a micro-batch
    assert [len(step) for step in itertools.islice(StepRows(long, plan, 0, CPU), 1)] == [2]


def test_the_padding_told_is_that_of_the_steps() -> None:
    """On a CPU a step of mixed lengths is one packed row, so nothing is padded."""
    told, plan = told_by_length(100, 100), dataclasses.replace(QUICK, epochs=2)
    assert train(tiny(), told, order_task(20, 1), plan, 0, SPECIAL, CPU).padding_share == 0
    plain, whole = order_task(40, 0), dataclasses.replace(QUICK, epochs=1)
    padded = train(tiny(), plain, order_task(20, 1), whole, 0, SPECIAL, CPU).padding_share
    epoch = len(batches(plain.lengths, None, whole.batch_rows, seed=0, epoch=0))
    made = [rows for step in itertools.islice(StepRows(plain, whole, 0, CPU), epoch) for rows in step]
    computed = sum(len(rows) * plain.lengths[rows].max() for rows in made)
    assert padded == pytest.approx(1 - sum(plain.lengths[rows].sum() for rows in made) / computed) and padded > 0


def test_early_stopping_stops_when_the_loss_does_not_fall() -> None:
    hopeless = dataclasses.replace(
        QUICK, learning_rate=1e-12, epochs=50, evaluations_per_epoch=1, patience=3, schedule="plateau"
    )
    result = train(
        tiny(), order_task(40, 0), order_task(20, 1), dataclasses.replace(hopeless, min_delta=1e-3), 0, SPECIAL, CPU
    )
    assert len(result.curve) == 4  # the first counts as better, the next three do not


def test_cosine_warms_up_and_ends_at_zero_and_plateau_halves() -> None:
    rates = [rate_at(QUICK, step, 100, 1.0) for step in range(100)]
    assert rates[0] == pytest.approx(QUICK.learning_rate / 6)
    assert max(rates) == pytest.approx(QUICK.learning_rate) and rates.index(max(rates)) in (5, 6)
    assert rates[-1] < 0.01 * QUICK.learning_rate
    assert rate_at(RECIPES["published"], 50, 100, 0.5) == pytest.approx(1.5e-5)


def test_linear_schedule_warms_up_and_falls_by_equal_steps_to_zero() -> None:
    linear = dataclasses.replace(QUICK, schedule="linear", warmup=0.1)
    rates = [rate_at(linear, step, 100, 1.0) for step in range(101)]
    assert rates[9] == rates[10] == max(rates) == QUICK.learning_rate and rates[100] == 0
    assert np.allclose(np.diff(rates[10:]), -QUICK.learning_rate / 90)


def test_head_layers_and_embeddings_learn_at_rates_of_their_own() -> None:
    model = build("standard-3x32", vocab_size=40)
    scales = rate_scales(model, dataclasses.replace(QUICK, head_rate=5.0, layer_decay=0.5))
    assert scales["classifier.weight"] == 5.0
    assert [scales[f"encoder.stack.blocks.0.{i}.attention.qkv.weight"] for i in range(3)] == [0.25, 0.5, 1.0]
    assert scales["encoder.embeddings.token.weight"] == 0.125
    assert scales.keys() == dict(model.named_parameters()).keys()
    unshared = build("recurrent-1x3x32", vocab_size=40, block_sharing="unshared")
    scales = rate_scales(unshared, dataclasses.replace(QUICK, layer_decay=0.5))
    assert [scales[f"encoder.stack.blocks.{i}.0.attention.qkv.weight"] for i in range(3)] == [0.25, 0.5, 1.0]
    around = build("recurrent-2x2x32", vocab_size=40, prelude_layers=1, coda_layers=1)
    scales = rate_scales(around, dataclasses.replace(QUICK, layer_decay=0.5))
    upwards = ("prelude.0", "blocks.0.0", "blocks.0.1", "coda.0")
    assert [scales[f"encoder.stack.{layer}.attention.qkv.weight"] for layer in upwards] == [0.125, 0.25, 0.5, 1.0]
    assert scales["encoder.embeddings.token.weight"] == 0.0625
    groups = make_optimizer(unshared, dataclasses.replace(QUICK, weight_decay=0.3)).param_groups
    assert [group["weight_decay"] for group in groups] == [0.3, 0.0]
    assert {p.ndim for p in groups[0]["params"]} == {2} and {p.ndim for p in groups[1]["params"]} == {1}


def test_each_group_moves_at_its_own_rate() -> None:
    """Adam's first step has the size of the learning rate, for any gradient."""
    one = dataclasses.replace(QUICK, schedule="plateau", head_rate=5.0, layer_decay=0.5, epochs=0.01, weight_decay=0.0)
    model = tiny()
    before = {name: x.clone() for name, x in model.state_dict().items()}
    train(model, order_task(100, 0), order_task(20, 1), one, 0, SPECIAL, CPU)
    moved = {name: (x - before[name]).abs().max().item() for name, x in model.state_dict().items()}
    assert moved["classifier.bias"] == pytest.approx(5 * one.learning_rate, rel=1e-3)
    layers = model.config.num_hidden_layers
    for i in range(layers):
        expected = one.learning_rate * 0.5 ** (layers - 1 - i)
        assert moved[f"encoder.stack.blocks.0.{i}.feedforward.output.weight"] == pytest.approx(expected, rel=1e-2)


def test_keep_says_whether_the_best_or_the_last_weights_are_left(monkeypatch) -> None:
    """Six scripted validation losses; the second is the lowest."""
    for keep, place in (("best", 1), ("last", 5)):
        model, seen = tiny(), []

        def scripted(*_: np.ndarray | None, model=model, seen=seen) -> float:
            seen.append(weights(model).clone())
            return (3.0, 1.0, 2.0, 4.0, 5.0, 6.0)[len(seen) - 1]

        monkeypatch.setattr(trainer, "cross_entropy", scripted)
        went = train(
            model, order_task(60, 0), order_task(20, 1), dataclasses.replace(QUICK, keep=keep), 0, SPECIAL, CPU
        )
        assert len(seen) == 6 and torch.equal(weights(model), seen[place])
        assert went.best_epoch == went.curve["epoch"][place]


def test_with_balance_the_loss_of_a_rare_class_counts_as_much_as_that_of_a_frequent_one() -> None:
    labels = np.array([0] * 8 + [1] * 2)
    assert trainer.class_weights(labels, 3, 1.0) == pytest.approx([0.625, 2.5, 0])
    half = trainer.class_weights(labels, 2, 0.5)
    assert half[1] == pytest.approx(2 * half[0]) and half[labels].mean() == pytest.approx(1)
    data = order_task(40, 0)
    data.labels[:] = np.arange(40) % 10 == 0
    balanced = Trainer(tiny(dropout=0.0).eval(), data, data, recipe("smoke", balance=1.0), 0, SPECIAL, CPU)
    logits = predict_logits(balanced.model, data, 0, CPU, "fp32")
    of_class = [cross_entropy(logits[data.labels == label], data.labels[data.labels == label]) for label in (0, 1)]
    assert balanced.validate()[0] == pytest.approx(np.mean(of_class), abs=5e-3)
    balanced.model.eval()
    assert float(balanced.loss(np.arange(40)) / 40) == pytest.approx(np.mean(of_class), abs=1e-2)


def test_a_frozen_encoder_stays_as_it_was_and_the_head_learns() -> None:
    frozen = dataclasses.replace(QUICK, freeze_encoder=True, epochs=1)
    model = tiny()
    before = {name: x.clone() for name, x in model.state_dict().items()}
    went = train(model, order_task(100, 0), order_task(20, 1), frozen, 0, SPECIAL, CPU)
    changed = {name for name, x in model.state_dict().items() if not torch.equal(x, before[name])}
    assert changed == {"classifier.weight", "classifier.bias"}
    assert len(went.curve) == 2  # the evaluation in the middle did not switch the encoder's dropout on


def test_word_dropout_spares_special_tokens_and_hits_its_share() -> None:
    ids = torch.randint(5, 30, (400, 50))
    ids[:, 0], ids[:, -1] = 2, 3
    hidden = trainer.word_dropout(ids, 0.2, 4, torch.tensor(list(SPECIAL.values())))
    assert torch.equal(hidden[:, [0, -1]], ids[:, [0, -1]])
    assert (hidden == 4).float()[:, 1:-1].mean().item() == pytest.approx(0.2, abs=0.01)


def test_a_diverged_loss_stops_the_run_with_a_sentence(monkeypatch) -> None:
    advice = rf"diverged\. Lower the learning rate \(it is {QUICK.learning_rate:g}\)"
    standard = build("standard-2x64", vocab_size=30)  # it has no residual_scale to lower
    for model, end in ((tiny(), ", use a smaller residual_scale"), (standard, "")):
        with torch.no_grad():
            model.classifier.weight.fill_(float("inf"))
        with pytest.raises(InputError, match=rf"{advice}{end}, or set back what you changed in the model, such as .*\.$"):
            train(model, order_task(40, 0), order_task(20, 1), QUICK, 0, SPECIAL, CPU)


@pytest.mark.parametrize("keep", ["best", "last"])
def test_weights_that_the_last_step_ruined_are_not_kept(keep: str) -> None:
    """The loss of a step is computed before its update, so only validation sees the last update."""
    ruin = dataclasses.replace(QUICK, learning_rate=1e38, schedule="plateau", epochs=0.01, keep=keep)
    with pytest.raises(InputError, match=r"validation loss is .* the run has diverged"):
        train(tiny(), order_task(40, 0), order_task(20, 1), ruin, 0, SPECIAL, CPU)


def test_logits_keep_the_order_of_the_rows() -> None:
    model, data = tiny().eval(), order_task(50, 3)
    logits = predict_logits(model, data, 0, CPU)
    for row in (0, 17, 49):
        alone = model(torch.from_numpy(data.row(row).astype(np.int64))[None]).logits
        assert_near(logits[row], alone.detach().numpy()[0])


def test_published_is_the_protocol_of_the_study_to_surpass() -> None:
    p = RECIPES["published"]
    assert (
        p.learning_rate,
        p.batch_rows,
        p.clip_norm,
        p.epochs,
        p.patience,
        p.min_delta,
        p.plateau_patience,
        p.precision,
    ) == (3e-5, 16, 1.0, 5, 3, 1e-3, 2, "fp32")


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: recipe("defualt"), "Did you mean 'default'"),
        (lambda: recipe("default", epoch=3), "Did you mean 'epochs'"),
        (lambda: recipe("default", learning_rate=-1.0), "learning_rate must be above zero"),
        (lambda: pick_precision("fp8", CPU), "not one of"),
        (
            lambda: train(
                tiny(),
                Tokens(np.empty(0, np.int32), np.zeros(1, np.int64), np.empty(0, np.int64)),
                order_task(5, 1),
                QUICK,
                0,
                SPECIAL,
                CPU,
            ),
            "at least one training row",
        ),
    ],
)
def test_bad_input_is_told_in_a_sentence(call, says: str) -> None:
    with pytest.raises(InputError, match=says):
        call()
