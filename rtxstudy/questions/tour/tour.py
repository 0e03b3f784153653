"""What each part of the encoder does, measured on the modules that the models use.

Positions, attention scores, norms, feed-forwards, and the gradient of a shared block.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rtx.latency import Batch
from rtxlib.models.attention import alibi_slopes, rotary_angles
from rtxlib.models.config import CHOICES, ModelConfig
from rtxlib.models.encoder import Encoder
from rtxlib.models.kernels import rotate
from rtxlib.models.layers import FeedForward, make_norm
from rtxlib.models.presets import build
from rtxlib.training.device import evaluating
from rtxstudy.questions.gradients.gradients import pass_gradients

SPREAD = "RoPE, over all pairs"
FAST, SLOW = "RoPE, fastest pair", "RoPE, slowest pair"
KEYS, DRAWS = 16, 400  # tokens that a query attends to, and queries drawn, for the softmax
SCORE, DIRECTIONS = 5.0, 400  # score of a match at distance 0, and random directions drawn, for distances
VECTORS = 512  # drawn for norms and feed-forwards
POINTS = 241  # of each activation curve
ROUNDS = 30  # timed rounds of the norms, after three untimed ones


def _bare(width: int, **settings: str | int | None) -> ModelConfig:
    """A configuration for one part by itself: heads and positions do not matter."""
    return ModelConfig(hidden_size=width, num_attention_heads=1, position="none", **settings)


# ---------------------------------------- positions


def frequencies(head_dim: int, theta: float) -> pd.DataFrame:
    """How fast RoPE turns each pair: ``pair`` (from 0), ``angle`` (radians per token), ``period`` (tokens per full turn).

    The angles come from the tables that the models use. No pair turns by more than one radian per token, so each angle is
    unambiguous.
    """
    cos, sin = rotary_angles(2, head_dim, theta)
    angle = torch.atan2(sin[1], cos[1])[: head_dim // 2].double()
    return pd.DataFrame({"pair": range(len(angle)), "angle": angle.tolist(), "period": (2 * torch.pi / angle).tolist()})


def rotation(head_dim: int, theta: float, pairs: Sequence[int], length: int) -> pd.DataFrame:
    """Where RoPE turns the arrow (1, 0) of each given pair: ``pair``, ``angle``, ``position`` (from 0), ``x``, ``y``."""
    cos, sin = rotary_angles(length, head_dim, theta)
    arrows = torch.zeros(1, 1, length, head_dim)
    arrows[..., : head_dim // 2] = 1.0
    # The two numbers of a pair are half a head apart: (length, 2, pairs).
    turned = rotate(arrows, cos, sin)[0, 0].unflatten(-1, (2, head_dim // 2))
    angle = frequencies(head_dim, theta)["angle"]
    rows = [
        (pair, angle[pair], position, *turned[position, :, pair].tolist())
        for pair in pairs
        for position in range(length)
    ]
    return pd.DataFrame(rows, columns=["pair", "angle", "position", "x", "y"])


def shift_error(head_dim: int, theta: float, length: int) -> float:
    """The largest change of a rotated score when query and key move together, relative to the largest score.

    A score that depends on the distance alone does not change, so RoPE gives 0 up to rounding.
    """
    draw = torch.Generator().manual_seed(0)
    q, k = (torch.randn(1, 1, 1, head_dim, generator=draw).expand(-1, -1, length, -1) for _ in range(2))
    cos, sin = rotary_angles(length, head_dim, theta)
    scores = (rotate(q, cos, sin) @ rotate(k, cos, sin).transpose(-1, -2))[0, 0].double()  # (length, length)
    same_distance = [scores.diagonal(distance) for distance in range(1 - length, length)]
    return float(max(line.max() - line.min() for line in same_distance) / scores.abs().max())


def closest_positions(head_dim: int, theta: float, length: int) -> float:
    """The smallest distance between the arrows of any two positions within ``length`` tokens, over all pairs together.

    The unit is the largest possible distance: at 0 two positions look the same, at 1 every pair points the opposite way.
    """
    angle = torch.tensor(frequencies(head_dim, theta)["angle"].to_numpy())
    lag = torch.arange(1, length, dtype=torch.float64)
    apart = (2 - 2 * torch.outer(lag, angle).cos()).mean(dim=1).sqrt() / 2  # depends on the lag alone
    return float(apart.min())


def near_and_far(head_dim: int, heads: int, theta: float, length: int) -> pd.DataFrame:
    """How a score falls with the distance of two tokens, under RoPE and under ALiBi: one row per line and distance.

    Query and key are equal and score :data:`SCORE` at distance 0; every other token scores 0. Under RoPE the result depends on
    which pairs carry the similarity: the fastest, the slowest, or all of them (random directions). Under ALiBi it depends on the
    head: the steepest, the middle and the gentlest of ``heads``.

    Columns: ``line``, ``scheme``, ``distance`` (from 0), ``score`` (the mean over random directions), ``low`` and ``high``
    (90 % of the directions lie between), and ``weight``, the attention weight of the token among ``length`` tokens.
    """
    cos, sin = rotary_angles(length, head_dim, theta)
    distance = torch.arange(length, dtype=torch.float64)
    pairs = torch.eye(head_dim)  # row i is the arrow (1, 0) of pair i alone
    random = F.normalize(torch.randn(DIRECTIONS, head_dim, generator=torch.Generator().manual_seed(0)), dim=-1)
    parts = []
    for line, queries in ((SPREAD, random), (SLOW, pairs[head_dim // 2 - 1][None]), (FAST, pairs[:1])):
        keys = queries[:, None, None].expand(-1, 1, length, -1)
        turned = rotate(keys, cos, sin)[:, 0].double()  # (directions, length, d)
        scores = SCORE * (turned @ queries.double()[..., None])[..., 0]  # the query is at position 0, where nothing turns
        parts.append(_line(line, "RoPE", scores, torch.zeros(length, dtype=torch.float64)))
    slopes = alibi_slopes(heads).double()
    for number in sorted({0, heads // 2, heads - 1}):
        price = -slopes[number] * distance
        line = f"ALiBi, slope 1/{1 / slopes[number]:.4g}"
        parts.append(_line(line, "ALiBi", (SCORE + price)[None], price))
    return pd.concat(parts, ignore_index=True)


def _line(line: str, scheme: str, scores: Tensor, others: Tensor) -> pd.DataFrame:
    """The rows of one line. scores: (directions, length), the score at each distance; others: (length,), the score that
    any other token has at each distance."""
    rest = others.exp().sum() - others.exp()  # over all tokens except the one at this distance
    weight = scores.exp() / (scores.exp() + rest)
    low, high = scores.quantile(torch.tensor([0.05, 0.95], dtype=scores.dtype), dim=0)
    return pd.DataFrame(
        {
            "line": line,
            "scheme": scheme,
            "distance": range(scores.shape[1]),
            "score": scores.mean(dim=0).tolist(),
            "low": low.tolist(),
            "high": high.tolist(),
            "weight": weight.mean(dim=0).tolist(),
        }
    )


# ---------------------------------------- attention


def softmax_peaks(widths: Sequence[int]) -> pd.DataFrame:
    """Why attention divides scores by √d_k: softmax of raw and of divided scores, one row each per head width.

    Queries and keys have standard deviation one. Columns: ``head_dim``, ``divided``, ``spread`` (standard deviation of the
    scores), ``peak`` (the largest weight among :data:`KEYS` tokens) and ``slope`` (the derivative of a weight by its own score,
    w·(1 − w), mean over tokens), all means over :data:`DRAWS` queries.
    """
    draw, rows = torch.Generator().manual_seed(0), []
    for width in widths:
        q, k = (torch.randn(DRAWS, n, width, generator=draw, dtype=torch.float64) for n in (1, KEYS))
        raw = (q @ k.transpose(-1, -2))[:, 0]  # (DRAWS, KEYS)
        for divided, scores in ((False, raw), (True, raw / width**0.5)):
            weights = scores.softmax(dim=-1)
            slope = (weights * (1 - weights)).mean()
            rows.append((width, divided, scores.std().item(), weights.amax(dim=-1).mean().item(), slope.item()))
    return pd.DataFrame(rows, columns=["head_dim", "divided", "spread", "peak", "slope"])


# ---------------------------------------- norms


def norm_outputs(width: int, shifts: Sequence[float]) -> pd.DataFrame:
    """The output of each norm for vectors whose entries are shifted by a constant.

    Columns: ``norm``, ``shift`` (in standard deviations of the entries), ``mean`` and ``spread`` (standard deviation) of the
    output's entries.
    """
    x = torch.randn(VECTORS, width, generator=torch.Generator().manual_seed(0))
    x = (x - x.mean(dim=-1, keepdim=True)) / x.std(dim=-1, keepdim=True, correction=0)
    rows = []
    for name in CHOICES["norm"]:
        norm = make_norm(_bare(width, norm=name))
        for shift in shifts:
            out = norm(x + shift).double()
            spread = out.std(dim=-1, correction=0)
            rows.append((type(norm).__name__, shift, out.mean().item(), spread.mean().item()))
    return pd.DataFrame(rows, columns=["norm", "shift", "mean", "spread"])


@torch.inference_mode()
def norm_inputs(encoder: Encoder, batches: Sequence[Batch]) -> pd.DataFrame:
    """The inputs of an encoder's norms: one row per norm, in the order in which a text passes them.

    ``norm``: its name; ``shift``: |mean| / standard deviation of a token's entries; ``difference``: ‖RMSNorm(x) −
    LayerNorm(x)‖ / ‖LayerNorm(x)‖ with fresh weights. Both are means over real tokens, and over the passes of a norm inside the
    loop.
    """
    measured: dict[str, list[Tensor]] = {}  # name of a norm -> (tokens, 2) of each call
    names = {module: name for name, module in encoder.named_modules() if isinstance(module, nn.RMSNorm | nn.LayerNorm)}
    fresh = {name: make_norm(_bare(encoder.config.hidden_size, norm=name)) for name in CHOICES["norm"]}
    real: Tensor  # (batch, length) booleans of the batch that is running

    def note(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        x = inputs[0][real[:, : inputs[0].shape[1]]]  # (tokens, d)
        centred = fresh["layernorm"](x)
        shift = x.mean(dim=-1).abs() / x.std(dim=-1, correction=0)
        difference = (fresh["rmsnorm"](x) - centred).norm(dim=-1) / centred.norm(dim=-1)
        measured.setdefault(names[module], []).append(torch.stack([shift, difference], dim=-1))

    hooks = [module.register_forward_pre_hook(note) for module in names]
    try:
        with evaluating(encoder):
            for batch in batches:
                ids, mask = batch["input_ids"], batch["attention_mask"]
                real = torch.ones_like(ids, dtype=torch.bool) if mask is None else mask.bool()
                encoder(ids, mask)
    finally:
        for hook in hooks:
            hook.remove()
    rows = [(name, *torch.cat(calls).double().mean(dim=0).tolist()) for name, calls in measured.items()]
    return pd.DataFrame(rows, columns=["norm", "shift", "difference"])


def norm_times(width: int, rows: int) -> dict[str, float]:
    """Milliseconds of each norm's forward and backward pass on (rows, width).

    It is the median over :data:`ROUNDS` rounds in which the norms take turns.
    """
    norms = {name: make_norm(_bare(width, norm=name)) for name in CHOICES["norm"]}
    x = torch.randn(rows, width, generator=torch.Generator().manual_seed(0), requires_grad=True)
    milliseconds: dict[str, list[float]] = {name: [] for name in norms}
    for _ in range(3 + ROUNDS):
        for name, norm in norms.items():
            started = time.perf_counter()
            norm(x).sum().backward()
            milliseconds[name].append(1000 * (time.perf_counter() - started))
    return {name: float(np.median(times[3:])) for name, times in milliseconds.items()}


# ---------------------------------------- activations


def activation_curves(low: float, high: float) -> pd.DataFrame:
    """Each feed-forward as a function of one number, with weights 1 and biases 0: ``feedforward, x, value, slope``."""
    rows = []
    for kind in CHOICES["feedforward"]:
        unit = FeedForward(_bare(1, intermediate_size=1, feedforward=kind))
        for name, parameter in unit.named_parameters():
            nn.init.constant_(parameter, 0.0 if name.endswith("bias") else 1.0)
        x = torch.linspace(low, high, POINTS).requires_grad_()
        value = unit(x[:, None])[:, 0]
        slope = torch.autograd.grad(value.sum(), x)[0]
        rows += zip([kind] * POINTS, x.tolist(), value.tolist(), slope.tolist(), strict=True)
    return pd.DataFrame(rows, columns=["feedforward", "x", "value", "slope"])


def feedforwards(width: int) -> pd.DataFrame:
    """Each feed-forward at its customary inner width, with fresh weights, on vectors as a norm leaves them.

    ``feedforward``, ``matrices``, ``inner`` (4d, or ⌊8/3·d⌋ when gated), ``parameters``, and ``shut``: the share of inner units
    whose activation has a zero gradient, over all vectors. Weights are scaled so that the activation's inputs have standard
    deviation one.
    """
    x = torch.randn(VECTORS, width, generator=torch.Generator().manual_seed(0))
    rows = []
    for kind in CHOICES["feedforward"]:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            part = FeedForward(_bare(width, intermediate_size=None, feedforward=kind))
            for matrix in (part.input, part.output):
                nn.init.normal_(matrix.weight, std=width**-0.5)
                nn.init.zeros_(matrix.bias)
        gradient = _inner_gradient(part, x)
        parameters = sum(parameter.numel() for parameter in part.parameters())
        shut = float((gradient == 0).double().mean())
        rows.append((kind, 3 if part.gated else 2, gradient.shape[-1], parameters, shut))
    return pd.DataFrame(rows, columns=["feedforward", "matrices", "inner", "parameters", "shut"])


def _inner_gradient(part: FeedForward, x: Tensor) -> Tensor:
    """The gradient (rows, inner) that passes back through the activation, for the loss Σ output²."""
    inner: list[Tensor] = []

    def keep(_module: nn.Module, _inputs: tuple[Tensor, ...], output: Tensor) -> None:
        output.retain_grad()
        inner.append(output)

    part.input.register_forward_hook(keep)
    part(x).square().sum().backward()
    gradient = inner[0].grad
    return gradient.chunk(2, dim=-1)[0] if part.gated else gradient  # the gate, which has the activation, comes first


# ---------------------------------------- gradients


def gradient_signal(
    width: int, passes: Sequence[int], alphas: Sequence[float], seeds: int, batches: Sequence[Batch], **settings: int
) -> pd.DataFrame:
    """How the gradient of a shared layer grows with the number of passes: one row per α, number of passes and seed.

    The layer has fresh weights and is passed R times, with h ← F(h) + α·h from the second pass on. ``alpha``, ``passes``,
    ``seed``; ``signal``: the norm of the layer's gradient over the mean norm of one pass' contribution, which is R where all
    contributions point the same way and about √R where they are unrelated; ``first``: the norm of the first pass' contribution
    over that of the last. batches: see :func:`rtxstudy.questions.gradients.gradients.pass_gradients`; settings: of the model.
    """
    rows = []
    for alpha in alphas:
        for number in passes:
            for seed in range(seeds):
                model = build(f"recurrent-1x{number}x{width}", seed, residual_scale=alpha, **settings)
                parts, _ = pass_gradients(model, batches)
                flat = torch.stack([torch.cat([g.flatten() for g in part]) for part in parts]).double()  # (R, parameters)
                norms = flat.norm(dim=1)
                signal = flat.sum(dim=0).norm() / norms.mean()
                rows.append((alpha, number, seed, float(signal), float(norms[0] / norms[-1])))
    return pd.DataFrame(rows, columns=["alpha", "passes", "seed", "signal", "first"])
