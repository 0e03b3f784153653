"""Every kernel gives the numbers of its plain formula, and whole models give the logits and gradients of plain ones."""

from __future__ import annotations

import dataclasses
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from near import assert_near
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from rtx import process
from rtxlib.data.batching import Tokens
from rtxlib.memory import release_freed_memory
from rtxlib.models import attention, build, kernels, layers
from rtxlib.models.attention import attend, attend_formula, rotary_angles
from rtxlib.models.kernels import (
    Dropout,
    Linear,
    dropout_mask,
    glu,
    glu_formula,
    prepacked,
    rms_norm,
    rms_norm_formula,
    rotate,
    rotate_formula,
)
from rtxlib.training import trainer
from rtxlib.training.device import DTYPES, autocast
from rtxlib.training.optimizer import make_optimizer
from rtxlib.training.recipe import Recipe
from rtxlib.training.trainer import Trainer

CPU = torch.device("cpu")
FLOAT32, BFLOAT16 = 1e-4, 2**-5  # of the largest number: several layers of rounding in these formats
NO_CHANCE = {"hidden_dropout": 0.0, "attention_dropout": 0.0, "classifier_dropout": 0.0}


@pytest.mark.parametrize(
    ("quiet", "given", "expected"),
    [
        (False, {}, {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "3000", "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "1536"}),
        (True, {}, {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "10000", "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "1536"}),
        (True, {"GOMP_SPINCOUNT": "7"}, {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "7"}),
        (True, {"OMP_WAIT_POLICY": "ACTIVE"}, {"OMP_WAIT_POLICY": "ACTIVE", "GOMP_SPINCOUNT": None}),
    ],
    ids=["busy", "quiet", "a count", "a policy"],
)
def test_what_the_user_has_set_stays_and_the_rest_is_set(
    quiet: bool, given: dict, expected: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "quiet", lambda: quiet)
    for name in process.SETTINGS:
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    process.tune()
    assert {name: os.environ.get(name) for name in expected} == expected


def test_a_machine_with_a_busy_process_is_not_quiet() -> None:
    if not os.path.exists("/proc/loadavg"):
        assert not process.quiet()
        return
    ready = "print(flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", ready], stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        assert not process.quiet()
        other.kill()


def rotate_in_format(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """The formula with angles in the format of x, as the kernel casts them."""
    return rotate_formula(x, cos.to(x.dtype), sin.to(x.dtype))


def make_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """The formulas and torch's own operations in place of the kernels."""
    monkeypatch.setattr(kernels, "_multiplies", lambda _: False)
    monkeypatch.setattr(layers, "glu", glu_formula)
    monkeypatch.setattr(attention, "rotate", rotate_in_format)
    monkeypatch.setattr(layers.RMSNorm, "forward", nn.RMSNorm.forward)
    monkeypatch.setattr(attention, "_plain_is_faster", lambda *_: False)
    monkeypatch.setattr(Dropout, "forward", nn.Dropout.forward)


def make_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernels everywhere, including where torch's fused attention is usually chosen."""
    monkeypatch.setattr(attention, "_plain_is_faster", lambda *_: True)


def batch(rows: int, length: int) -> dict[str, Tensor]:
    """Ids, and a mask that hides the ends of all rows except the first."""
    real = torch.arange(length) < torch.linspace(length, 2, rows).round()[:, None]
    return {"input_ids": torch.randint(5, 60, (rows, length)), "attention_mask": real.long()}


@pytest.mark.parametrize("length", [3, 15, 16, 40])
@pytest.mark.parametrize(
    "overrides",
    [
        {},
        {"position": "rotary", "norm_placement": "sandwich"},
        {"position": "alibi"},
        {"local_attention": 4, "global_attention_every": 2},
        {"norm": "layernorm", "norm_placement": "post"},
        {"feedforward": "geglu"},
    ],
    ids=["study", "rotary sandwich", "alibi", "local", "post", "geglu"],
)
def test_logits_and_gradients_are_those_of_the_plain_path(
    overrides: dict, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    model = build("recurrent-2x2x64", vocab_size=60, **NO_CHANCE, **overrides).train()
    model.classifier.weight.data.normal_()
    given = batch(4, length)
    results = []
    for path in (make_plain, make_fast):
        with monkeypatch.context() as patch:
            path(patch)
            model.zero_grad()
            logits = model(**given).logits
            F.cross_entropy(logits, torch.tensor([0, 1, 0, 1])).backward()
            results.append([logits.detach(), torch.cat([p.grad.flatten() for p in model.parameters()])])
    (plain, plain_gradient), (fast, fast_gradient) = results
    assert plain.abs().max() > 0.1
    assert_near(fast, plain, FLOAT32)
    assert_near(fast_gradient, plain_gradient, FLOAT32)


ANGLES = rotary_angles(7, 6, 100.0)
SIZES = torch.linspace(-1.0, 2.0, 24).double()
KERNELS: dict[str, tuple[Callable, Callable, tuple[int, ...]]] = {  # kernel, formula, shape of x
    "SwiGLU": (lambda x: glu(x, F.silu), lambda x: glu_formula(x, F.silu), (3, 7, 20)),
    "GeGLU": (lambda x: glu(x, F.gelu), lambda x: glu_formula(x, F.gelu), (3, 7, 20)),
    "rotation": (lambda x: rotate(x, *ANGLES), lambda x: rotate_in_format(x, *ANGLES), (3, 2, 7, 6)),
    "RMSNorm": (
        lambda x: rms_norm(x, SIZES.to(x.dtype), 1e-6),
        lambda x: rms_norm_formula(x, SIZES.to(x.dtype), 1e-6),
        (3, 5, 24),
    ),
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("name", KERNELS)
def test_each_kernel_and_its_gradient_are_those_of_the_formula(name: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    kernel, formula, shape = KERNELS[name]
    x = torch.randn(*shape[:-1], 2 * shape[-1], dtype=dtype)[..., ::2].requires_grad_()  # not contiguous
    found, wanted = kernel(x), formula(x)
    received = torch.randn(wanted.shape, dtype=dtype)
    gradients = [torch.autograd.grad(y, x, received)[0] for y in (found, wanted)]
    within = 1e-12 if dtype == torch.float64 else BFLOAT16
    assert_near(found, wanted, within)
    assert_near(*gradients, within)
    with torch.no_grad():
        assert_near(kernel(x), wanted, within)


@pytest.mark.parametrize("keys", [3, 15, 16, 40])
@pytest.mark.parametrize("hides", ["nothing", "padding", "distance"])
@pytest.mark.parametrize("way", ["fused", "plain", "eager"])
def test_attention_and_its_gradients_are_those_of_the_formula(
    way: str, hides: str, keys: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Masks as models make them: one row for all queries, or numbers for each head and a longer sequence."""
    monkeypatch.setattr(attention, "_plain_is_faster", lambda *_: way == "plain")
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 4, length, 8, dtype=torch.float64, requires_grad=True) for length in (5, keys, keys))
    given, mask = None, None
    if hides == "padding":
        given = mask = torch.arange(keys) < torch.tensor([keys, 2])[:, None, None, None]  # (B, 1, 1, S)
    elif hides == "distance":
        given = torch.randn(1, 4, 50, 50, dtype=torch.float64)
        mask = given[..., :5, :keys]
    found, weights = attend(q, k, v, given, eager=way == "eager")
    wanted, wanted_weights = attend_formula(q, k, v, mask)
    assert_near(found, wanted, 1e-10)
    received = torch.randn(wanted.shape, dtype=torch.float64)
    for mine, theirs in zip(*(torch.autograd.grad(y, (q, k, v), received) for y in (found, wanted)), strict=True):
        assert_near(mine, theirs, 1e-10)
    if way == "eager":
        assert_near(weights, wanted_weights, 1e-10)
    else:
        assert weights is None


@pytest.mark.parametrize("learns", [True, False])
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("keys", [40, 60, 300])
def test_attention_in_sixteen_bits_is_the_formula_whichever_way_is_taken(keys: int, batch: int, learns: bool) -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(batch, 4, keys, 8).bfloat16() for _ in range(3))
    seen = torch.arange(keys) < torch.tensor([keys, 2])[:batch, None, None, None]
    found, _ = attend(q.requires_grad_(learns), k, v, seen)
    assert found.dtype == torch.bfloat16
    assert_near(found.float(), attend_formula(q.float(), k.float(), v.float(), seen)[0], BFLOAT16)


def test_the_linear_map_and_its_gradients_are_torchs_under_autocast() -> None:
    torch.manual_seed(0)
    ours = Linear(24, 10)
    received, given = torch.randn(3, 5, 10).bfloat16(), torch.randn(3, 5, 24)
    results = []
    for way in (ours, lambda x: F.linear(x, ours.weight, ours.bias)):
        ours.zero_grad()
        x = given.clone().requires_grad_()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = way(x)
        y.backward(received)
        assert (y.dtype, x.grad.dtype, ours.weight.grad.dtype) == (torch.bfloat16, torch.float32, torch.float32)
        results.append((y, x.grad, ours.weight.grad, ours.bias.grad))
    for found, wanted in zip(*results, strict=True):
        assert_near(found, wanted, BFLOAT16)


def test_a_frozen_linear_map_passes_gradients_on() -> None:
    frozen = Linear(6, 4, bias=False).requires_grad_(False)
    x = torch.randn(2, 6, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = frozen(x)
    y.sum().backward()
    assert frozen.weight.grad is None
    assert_near(x.grad, frozen.weight.sum(0).expand(2, 6), BFLOAT16)


@pytest.mark.parametrize("name", ["standard-2x64", "recurrent-2x2x64", "bert-tiny"])
@pytest.mark.parametrize(("precision", "within"), [("fp32", FLOAT32), ("bf16", BFLOAT16)])
def test_prepacked_weights_give_the_same_logits_and_are_removed(name: str, precision: str, within: float) -> None:
    torch.manual_seed(0)
    model = build(name, vocab_size=60).eval()
    model.classifier.weight.data.normal_()
    given = batch(4, 17)
    before = {key: x.clone() for key, x in model.state_dict().items()}
    with torch.inference_mode(), autocast(precision, CPU):
        wanted = model(**given).logits
        with pytest.raises(KeyError), prepacked(model):
            layers = [layer for layer in model.modules() if isinstance(layer, Linear)]
            assert all((layer.prepacked is not None) == kernels._multiplies(DTYPES[precision]) for layer in layers)
            found = model(**given).logits
            raise KeyError
    assert all(layer.prepacked is None for layer in layers)
    assert all(torch.equal(x, before[key]) for key, x in model.state_dict().items())
    assert wanted.abs().max() > 0.1
    assert_near(found, wanted, within)


def test_gradients_come_from_the_weights_even_if_they_are_prepacked() -> None:
    layer, x = Linear(5, 3), torch.randn(2, 5)
    with prepacked(layer):
        layer(x).sum().backward()
    assert_near(layer.weight.grad, x.sum(0).expand(3, 5))


def test_a_torch_without_onednn_is_enough() -> None:
    """On a Mac oneDNN's operators do not exist, so importing the package must not look them up."""
    code = """
import torch
class Missing:
    def __getattr__(self, name):
        raise AttributeError(name)
torch.backends.mkldnn.is_available, torch.ops.mkldnn = lambda: False, Missing()
from rtxlib.models import build
from rtxlib.models.kernels import prepacked
model, ids = build("standard-2x64", vocab_size=60), torch.ones(2, 5, dtype=torch.long)
with torch.autocast("cpu", torch.bfloat16):
    model(ids).logits.sum().backward()
with torch.inference_mode(), prepacked(model):
    print(*model(ids).logits.shape)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "2 2\n", done.stderr


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_products_of_every_kernel_are_counted(precision: str) -> None:
    """2·in·out per row forward, and twice that backward if the input has a gradient too."""
    layer, x = Linear(8, 6), torch.randn(7, 8, requires_grad=True)
    counts = []
    for way in (nullcontext(), prepacked(layer)):
        with torch.inference_mode(), autocast(precision, CPU), way, FlopCounterMode(display=False) as counter:
            layer(x.detach())
        counts.append(counter.get_total_flops())
    with FlopCounterMode(display=False) as counter:
        with autocast(precision, CPU):
            y = layer(x)
        y.sum().backward()
    assert [*counts, counter.get_total_flops()] == [2 * 7 * 8 * 6] * 2 + [3 * 2 * 7 * 8 * 6]


def test_with_the_same_masks_dropout_is_torchs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The random draws differ from torch's; for the same dropped values the outputs and the gradients are the same."""
    x = torch.randn(50, 40, requires_grad=True)
    torch.manual_seed(3)
    dropped = Dropout(0.3).train()(x)
    torch.manual_seed(3)
    mask = dropout_mask(x.shape, 0.3, x.dtype)
    assert_near(dropped, x.masked_fill(mask == 0, 0.0) / 0.7, 1e-4)  # a share of draws is a multiple of 1/65,536
    dropped.sum().backward()
    assert_near(x.grad, mask)


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 0.999, 1.0])
def test_dropout_drops_its_share_and_keeps_the_mean(p: float) -> None:
    torch.manual_seed(0)
    n = 400_003  # not a multiple of the four values that share a draw
    dropped = Dropout(p).train()(torch.ones(n))
    share = (dropped == 0).float().mean().item()
    assert abs(share - p) <= 5 * (p * (1 - p) / n) ** 0.5 + 1 / 65_536
    if p < 1:
        assert abs(dropped.mean().item() - 1) <= 5 * (p / (1 - p) / n) ** 0.5 + 1e-6
        assert len(dropped.unique()) <= 2


def test_dropped_values_are_uncorrelated() -> None:
    """Values that share a draw, or follow each other in memory, are independent."""
    torch.manual_seed(0)
    mask = (dropout_mask(torch.Size((40_000, 8)), 0.3, torch.float32) == 0).float()
    correlation = torch.corrcoef(torch.cat((mask[:-1], mask[1:]), dim=1).T)
    assert (correlation - torch.eye(16)).abs().max() < 5 / 40_000**0.5


def test_dropout_follows_the_seed_and_leaves_evaluation_alone() -> None:
    x, layer = torch.randn(30, 7), Dropout(0.4)
    drawn = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        drawn.append(layer.train()(x))
    assert torch.equal(drawn[0], drawn[1]) and not torch.equal(drawn[0], drawn[2])
    assert layer.eval()(x) is x


def test_rms_norm_and_both_its_gradients_are_torchs() -> None:
    torch.manual_seed(0)
    x, weight = torch.randn(3, 5, 24, dtype=torch.float64), torch.randn(24, dtype=torch.float64)
    assert_near(rms_norm(x, weight, 1e-6), F.rms_norm(x, (24,), weight, 1e-6), 1e-12)
    given = x.requires_grad_(), weight.requires_grad_()
    assert torch.autograd.gradcheck(lambda x, weight: rms_norm(x, weight, 1e-6), given)


def test_rms_norm_is_computed_in_full_precision_under_autocast() -> None:
    torch.manual_seed(0)
    norm = layers.RMSNorm(32, eps=1e-6)
    x = torch.randn(4, 32).bfloat16().requires_grad_()
    gradient = torch.randn(4, 32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = norm(x)
        assert y.dtype == torch.float32
    y.backward(gradient)
    plain = x.detach().float().requires_grad_()
    F.rms_norm(plain, (32,), norm.weight, 1e-6).backward(gradient)
    assert_near(x.grad.float(), plain.grad, 2**-8)  # it was rounded to sixteen bits once


def texts_that_differ() -> Tokens:
    """320 short texts of two labels, each with words of its own and words of both."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 320)
    texts = [np.concatenate(([2], rng.integers(5 + 10 * y, 45 + 10 * y, rng.integers(3, 20)), [3])) for y in labels]
    return Tokens(np.concatenate(texts).astype(np.int32), np.cumsum([0, *map(len, texts)]), labels.astype(np.int64))


def test_the_update_clips_as_torch_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fused update clips inside; clip_grad_norm_ before a plain update gives the same weights."""

    def in_two_steps(model: nn.Module, plan: Recipe) -> torch.optim.Optimizer:
        optimizer = make_optimizer(model, plan)

        def step() -> None:
            optimizer.grad_scale = None
            nn.utils.clip_grad_norm_(model.parameters(), plan.clip_norm)
            torch.optim.AdamW.step(optimizer)

        optimizer.step = step
        return optimizer

    data, weights = texts_that_differ(), {}
    for name, clip, optimizer in (
        ("ours", 0.3, make_optimizer),
        ("torch's", 0.3, in_two_steps),
        ("none", 1e9, make_optimizer),
    ):
        monkeypatch.setattr(trainer, "make_optimizer", optimizer)
        torch.manual_seed(0)
        model = build("standard-1x32", vocab_size=60, **NO_CHANCE)
        plan = Recipe(name="clip", learning_rate=1e-3, epochs=1, batch_rows=32, clip_norm=clip, precision="fp32")
        went = Trainer(model, data, data, plan, 0, {"pad": 0, "unk": 1}, CPU).run()
        weights[name] = torch.cat([p.detach().flatten() for p in model.parameters()])
        norms_before = went.curve["grad_norm"]
    assert norms_before.min() > 0.3  # so that there was something to clip
    assert_near(weights["ours"], weights["torch's"], FLOAT32)
    assert (weights["ours"] - weights["none"]).abs().max() > 1e-4


def test_a_loss_curve_is_the_plain_ones_within_the_noise_of_sixteen_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """In sixteen bits, fast and plain training differ by no more than three times plain training's distance from 32 bits."""
    data = texts_that_differ()
    recipe = Recipe(name="curve", learning_rate=3e-3, epochs=3, batch_rows=32, evaluations_per_epoch=4)
    curves = {}
    for name, path, precision in (
        ("exact", make_plain, "fp32"),
        ("plain", make_plain, "bf16"),
        ("fast", make_fast, "bf16"),
    ):
        with monkeypatch.context() as patch:
            path(patch)
            model = build("recurrent-1x2x64", vocab_size=60, **NO_CHANCE)
            plan = dataclasses.replace(recipe, precision=precision)
            trained = Trainer(model, data, data, plan, 0, {"pad": 0, "unk": 1}, CPU).run()
            curves[name] = trained.curve[["train_loss", "val_loss"]].to_numpy()
    noise = np.abs(curves["plain"] - curves["exact"]).max()
    assert 0 < np.abs(curves["fast"] - curves["plain"]).max() <= 3 * noise
    assert curves["exact"][-1, 0] < 0.8 * curves["exact"][0, 0]  # something was learned on the way


def test_freed_memory_between_tensors_in_use_goes_back_to_the_system() -> None:
    if platform.libc_ver()[0] != "glibc":  # nothing to give back, and nothing that may break
        release_freed_memory()
        return
    code = (
        "from rtx.process import tune\n"
        "from rtxlib.memory import release_freed_memory\n"
        "tune()\n"
        "import torch\n"
        "def held(): return next(int(l.split()[1]) for l in open('/proc/self/status') if l.startswith('VmRSS')) / 1024\n"
        "blocks = [torch.ones(1 << 18) for _ in range(400)]\n"  # a megabyte each
        "del blocks[::2], blocks[::2]\n"
        "before = held(); release_freed_memory(); print(before - held())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(done.stdout) > 200
