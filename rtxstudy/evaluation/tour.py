"""What the parts of the encoder do, measured on the live parts: positions, norms, activations, and a shared block's gradient."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rtxlib.models.config import CHOICES, ModelConfig
from rtxlib.models.encoder import Encoder
from rtxlib.models.feedforward import FeedForward
from rtxlib.models.kernels.rotation import rotate
from rtxlib.models.layers import make_norm
from rtxlib.models.positions import alibi_slopes, rotary_angles
from rtxlib.models.presets import build
from rtxlib.runs.cost import Batch
from rtxstudy.evaluation import gradients as dynamics

SPREAD = "RoPE, over all pairs"
FAST, SLOW = "RoPE, fastest pair", "RoPE, slowest pair"


def _bare(width: int, **settings: str | int | None) -> ModelConfig:
    """Of a part that is looked at by itself, so that heads and positions are of no matter."""
    return ModelConfig(hidden_size=width, num_attention_heads=1, position="none", **settings)


# ---------------------------------------- positions


def frequencies(head_dim: int, theta: float) -> pd.DataFrame:
    """How fast RoPE turns each pair: ``pair`` (from 0), ``angle`` (radians a token) and ``period`` (tokens a full turn).

    Read off the tables that the models use; no pair turns by more than one radian a token, so the angle is unambiguous.
    """
    cos, sin = rotary_angles(2, head_dim, theta)
    angle = torch.atan2(sin[1], cos[1])[: head_dim // 2].double()
    return pd.DataFrame({"pair": range(len(angle)), "angle": angle.tolist(), "period": (2 * torch.pi / angle).tolist()})


def rotation(head_dim: int, theta: float, pairs: Sequence[int], length: int) -> pd.DataFrame:
    """Where RoPE turns the arrow (1, 0) of each of these pairs to: ``pair``, ``angle``, ``position`` (from 0), ``x``, ``y``."""
    cos, sin = rotary_angles(length, head_dim, theta)
    arrows = torch.zeros(1, 1, length, head_dim)
    arrows[..., : head_dim // 2] = 1.0
    turned = rotate(arrows, cos, sin)[0, 0].unflatten(
        -1, (2, head_dim // 2)
    )  # (length, 2, pairs): partners half a head apart
    angle = frequencies(head_dim, theta)["angle"]
    rows = [
        (pair, angle[pair], position, *turned[position, :, pair].tolist())
        for pair in pairs
        for position in range(length)
    ]
    return pd.DataFrame(rows, columns=["pair", "angle", "position", "x", "y"])


def shift_error(head_dim: int, theta: float, length: int, seed: int = 0) -> float:
    """How much a rotated score changes when query and key both move, at most, over its size; what depends on the distance
    between the two alone gives 0, up to rounding."""
    draw = torch.Generator().manual_seed(seed)
    q, k = (torch.randn(1, 1, 1, head_dim, generator=draw).expand(-1, -1, length, -1) for _ in range(2))
    cos, sin = rotary_angles(length, head_dim, theta)
    scores = (rotate(q, cos, sin) @ rotate(k, cos, sin).transpose(-1, -2))[0, 0].double()  # (length, length)
    changes = [(line := scores.diagonal(offset)).max() - line.min() for offset in range(1 - length, length)]
    return float(max(changes) / scores.abs().max())


def closest_positions(head_dim: int, theta: float, length: int) -> float:
    """How near two positions within ``length`` tokens come, as seen by all pairs: the least distance of their arrows.

    In units of the longest there can be: 0 would mean that two positions look alike, 1 that every pair points opposite.
    """
    angle = torch.tensor(frequencies(head_dim, theta)["angle"].to_numpy())
    lag = torch.arange(1, length, dtype=torch.float64)
    apart = (2 - 2 * torch.outer(lag, angle).cos()).mean(dim=1).sqrt() / 2  # the same for all positions so far apart
    return float(apart.min())


def near_and_far(
    head_dim: int, heads: int, theta: float, length: int, score: float = 5.0, directions: int = 400, seed: int = 0
) -> pd.DataFrame:
    """What is left of a score when the two tokens stand apart, under RoPE and under ALiBi: one row a line and distance.

    Query and key are alike and score ``score`` at distance 0; every other token scores 0. Under RoPE it matters which
    pairs carry their likeness: the fastest, the slowest, or all (random directions). Under ALiBi it matters which head
    looks: of ``heads`` the steepest, the middle and the gentlest. Columns: ``line``, ``scheme``, ``distance`` (from 0),
    ``score`` (for random directions the mean), ``low`` and ``high`` (of 90 % of the directions) and ``weight``, what
    attention gives the token among ``length``.
    """
    cos, sin = rotary_angles(length, head_dim, theta)
    distance = torch.arange(length, dtype=torch.float64)
    alone = torch.eye(head_dim)
    random = torch.randn(directions, head_dim, generator=torch.Generator().manual_seed(seed))
    parts = []
    for line, arrows in (
        (SPREAD, F.normalize(random, dim=-1)),
        (SLOW, alone[head_dim // 2 - 1][None]),
        (FAST, alone[:1]),
    ):
        keys = rotate(arrows[:, None, None].expand(-1, 1, length, -1), cos, sin)[
            :, 0
        ].double()  # (directions, length, d)
        left = score * (keys @ arrows.double()[..., None])[..., 0]  # the query stands at 0, where nothing turns
        parts.append(_line(line, "RoPE", left, torch.zeros(length, dtype=torch.float64)))
    slopes = alibi_slopes(heads).double()
    for number in sorted({0, heads // 2, heads - 1}):
        price = -slopes[number] * distance
        line = f"ALiBi, slope 1/{1 / slopes[number]:.4g}"
        parts.append(_line(line, "ALiBi", (score + price)[None], price))
    return pd.concat(parts, ignore_index=True)


def _line(line: str, scheme: str, left: Tensor, others: Tensor) -> pd.DataFrame:
    """left: (directions, length), the score at each distance; others: (length,), that of a token that scores 0 there."""
    rest = others.exp().sum() - others.exp()  # of all tokens but the one at this distance
    weight = left.exp() / (left.exp() + rest)
    low, high = left.quantile(torch.tensor([0.05, 0.95], dtype=left.dtype), dim=0)
    return pd.DataFrame(
        {
            "line": line,
            "scheme": scheme,
            "distance": range(left.shape[1]),
            "score": left.mean(dim=0).tolist(),
            "low": low.tolist(),
            "high": high.tolist(),
            "weight": weight.mean(dim=0).tolist(),
        }
    )


# ---------------------------------------- attention


def softmax_peaks(widths: Sequence[int], keys: int = 16, draws: int = 400, seed: int = 0) -> pd.DataFrame:
    """What dividing scores by √d_k keeps softmax from: a row a head width, raw and divided, for queries and keys of
    standard deviation one.

    ``head_dim``, ``divided``, ``spread`` (standard deviation of the scores), ``peak`` (the largest weight of ``keys``
    tokens) and ``slope`` (of a weight in its own score, w·(1 − w), mean over tokens), all means over ``draws`` queries.
    """
    draw, rows = torch.Generator().manual_seed(seed), []
    for width in widths:
        q, k = (torch.randn(draws, n, width, generator=draw, dtype=torch.float64) for n in (1, keys))
        raw = (q @ k.transpose(-1, -2))[:, 0]  # (draws, keys)
        for divided, scores in ((False, raw), (True, raw / width**0.5)):
            weights = scores.softmax(dim=-1)
            slope = (weights * (1 - weights)).mean()
            rows.append((width, divided, scores.std().item(), weights.amax(dim=-1).mean().item(), slope.item()))
    return pd.DataFrame(rows, columns=["head_dim", "divided", "spread", "peak", "slope"])


# ---------------------------------------- norms


def norm_outputs(width: int, shifts: Sequence[float], rows: int = 512, seed: int = 0) -> pd.DataFrame:
    """What the norms make of vectors whose entries are moved: ``norm``, ``shift`` (in standard deviations of the entries),
    ``mean`` and ``spread`` (standard deviation) of the entries that come out."""
    x = torch.randn(rows, width, generator=torch.Generator().manual_seed(seed))
    x = (x - x.mean(dim=-1, keepdim=True)) / x.std(dim=-1, keepdim=True, correction=0)
    rows_of = []
    for name in CHOICES["norm"]:
        norm = make_norm(_bare(width, norm=name))
        for shift in shifts:
            out = norm(x + shift).double()
            spread = out.std(dim=-1, correction=0)
            rows_of.append((type(norm).__name__, shift, out.mean().item(), spread.mean().item()))
    return pd.DataFrame(rows_of, columns=["norm", "shift", "mean", "spread"])


@torch.inference_mode()
def norm_inputs(encoder: Encoder, batches: Sequence[Batch]) -> pd.DataFrame:
    """What reaches the norms of an encoder: a row a norm, in the order in which a text meets them.

    ``norm``: its name; ``shift``: the mean of a token's entries over their standard deviation, in size; ``difference``:
    ‖RMSNorm(x) − LayerNorm(x)‖ / ‖LayerNorm(x)‖ with fresh weights. Both are means over tokens, padding left out; of a
    norm that is passed several times, over its passes.
    """
    met: dict[str, list[Tensor]] = {}
    names = {module: name for name, module in encoder.named_modules() if isinstance(module, nn.RMSNorm | nn.LayerNorm)}
    fresh = {name: make_norm(_bare(encoder.config.hidden_size, norm=name)) for name in CHOICES["norm"]}
    real: Tensor

    def note(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        x = inputs[0][real[:, : inputs[0].shape[1]]]  # (tokens, d)
        centred = fresh["layernorm"](x)
        shift = x.mean(dim=-1).abs() / x.std(dim=-1, correction=0)
        difference = (fresh["rmsnorm"](x) - centred).norm(dim=-1) / centred.norm(dim=-1)
        met.setdefault(names[module], []).append(torch.stack([shift, difference], dim=-1))

    hooks = [module.register_forward_pre_hook(note) for module in names]
    was_training = encoder.training
    encoder.eval()
    try:
        for batch in batches:
            ids, mask = batch["input_ids"], batch["attention_mask"]
            real = torch.ones_like(ids, dtype=torch.bool) if mask is None else mask.bool()
            encoder(ids, mask)
    finally:
        encoder.train(was_training)
        for hook in hooks:
            hook.remove()
    means = {name: torch.cat(seen).double().mean(dim=0).tolist() for name, seen in met.items()}
    return pd.DataFrame([(name, *both) for name, both in means.items()], columns=["norm", "shift", "difference"])


def norm_times(width: int, rows: int, rounds: int = 30) -> dict[str, float]:
    """Milliseconds that each norm takes forwards and backwards on (rows, width), the median of ``rounds`` taken in turns."""
    norms = {name: make_norm(_bare(width, norm=name)) for name in CHOICES["norm"]}
    x = torch.randn(rows, width, generator=torch.Generator().manual_seed(0), requires_grad=True)
    taken: dict[str, list[float]] = {name: [] for name in norms}
    for _ in range(rounds + 3):  # three to warm up
        for name, norm in norms.items():
            started = time.perf_counter()
            norm(x).sum().backward()
            taken[name].append(1000 * (time.perf_counter() - started))
    return {name: float(np.median(each[3:])) for name, each in taken.items()}


# ---------------------------------------- activations


def activation_curves(low: float, high: float, points: int = 241) -> pd.DataFrame:
    """Each feed-forward with matrices of a single 1 and no bias: ``feedforward``, ``x``, ``value`` and ``slope``."""
    rows = []
    for kind in CHOICES["feedforward"]:
        unit = FeedForward(_bare(1, intermediate_size=1, feedforward=kind))
        for name, parameter in unit.named_parameters():
            nn.init.constant_(parameter, 0.0 if name.endswith("bias") else 1.0)
        x = torch.linspace(low, high, points).requires_grad_()
        value = unit(x[:, None])[:, 0]
        slope = torch.autograd.grad(value.sum(), x)[0]
        rows += zip([kind] * points, x.tolist(), value.tolist(), slope.tolist(), strict=True)
    return pd.DataFrame(rows, columns=["feedforward", "x", "value", "slope"])


def feedforwards(width: int, rows: int = 512, seed: int = 0) -> pd.DataFrame:
    """Each feed-forward at its customary inner width, fresh, on vectors as a norm leaves them.

    ``feedforward``, ``matrices``, ``inner`` (4d, or ⌊8/3·d⌋ when gated), ``parameters``, and ``shut``: of all inner units
    and vectors the share through whose activation no gradient comes, exactly none. Weights are scaled so that the
    activation sees values of standard deviation one.
    """
    x = torch.randn(rows, width, generator=torch.Generator().manual_seed(seed))
    found = []
    for kind in CHOICES["feedforward"]:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            part = FeedForward(_bare(width, intermediate_size=None, feedforward=kind))
            for matrix in (part.input, part.output):
                nn.init.normal_(matrix.weight, std=width**-0.5)
                nn.init.zeros_(matrix.bias)
        inner: list[Tensor] = []
        part.input.register_forward_hook(
            lambda _module, _given, out, inner=inner: (out.retain_grad(), inner.append(out))[1]
        )
        part(x).square().sum().backward()
        through = inner[0].grad.chunk(2, dim=-1)[0] if part.gated else inner[0].grad  # the gate comes first
        counted = sum(parameter.numel() for parameter in part.parameters())
        matrices = 3 if part.gated else 2
        found.append((kind, matrices, through.shape[-1], counted, float((through == 0).double().mean())))
    return pd.DataFrame(found, columns=["feedforward", "matrices", "inner", "parameters", "shut"])


# ---------------------------------------- gradients


def gradient_signal(
    width: int, passes: Sequence[int], alphas: Sequence[float], seeds: int, batches: Sequence[Batch], **settings: int
) -> pd.DataFrame:
    """How much louder the gradient of a shared layer is for being passed several times: one row an α, depth and seed.

    The layer is fresh and passed R times with h ← F(h) + α·h from the second pass on. ``alpha``, ``passes``, ``seed``;
    ``signal``: the norm of its gradient over the mean norm of one pass' contribution, which is R where all contributions
    point one way and about √R where they have nothing to do with each other; ``first``: the norm of the first pass'
    contribution over that of the last. batches: as :func:`dynamics.pass_gradients` takes them; settings: of the model.
    """
    rows = []
    for alpha in alphas:
        for depth in passes:
            for seed in range(seeds):
                model = build(f"recurrent-1x{depth}x{width}", seed, residual_scale=alpha, **settings)
                parts, _ = dynamics.pass_gradients(model, batches)
                flat = torch.stack(
                    [torch.cat([g.flatten() for g in part]) for part in parts]
                ).double()  # (R, parameters)
                norms = flat.norm(dim=1)
                signal = flat.sum(dim=0).norm() / norms.mean()
                rows.append((alpha, depth, seed, float(signal), float(norms[0] / norms[-1])))
    return pd.DataFrame(rows, columns=["alpha", "passes", "seed", "signal", "first"])
