"""The SwiGLU page computes what torch and rtxlib's own feed-forward compute, in Node and in front of a reader."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from rtxlib.models.config import ModelConfig
from rtxlib.models.feedforward import FeedForward

JS = Path(__file__).parent / "js"
NUMBERS = ("beta", "w1", "b1", "w2", "b2", "x")


def scalar(value: float) -> torch.Tensor:
    return torch.tensor(value, dtype=torch.float64, requires_grad=True)


def unit(feedforward: str, w1: float, b1: float, w2: float, b2: float, out: float = 1.0) -> FeedForward:
    """rtxlib's feed-forward with matrices of one number each, its gate first; ``out`` is the output matrix."""
    config = ModelConfig(
        hidden_size=1, num_attention_heads=1, position="none", intermediate_size=1, feedforward=feedforward
    )
    made = FeedForward(config).double()
    with torch.no_grad():
        made.input.weight.copy_(torch.tensor([[w1], [w2]] if made.gated else [[w1]], dtype=torch.float64))
        made.input.bias.copy_(torch.tensor([b1, b2] if made.gated else [b1], dtype=torch.float64))
        made.output.weight.fill_(out)
        made.output.bias.zero_()
    return made


def at(made: FeedForward, x: float) -> tuple[float, float]:
    """Its value and its slope in x."""
    of = torch.tensor([x], dtype=torch.float64, requires_grad=True)
    value = made(of)
    value.backward()
    return value.item(), of.grad.item()


def swiglu(state: dict[str, float]) -> dict[str, Any]:
    """SwiGLU with its parts and, by autograd, its slopes in every number of the state."""
    numbers = {name: scalar(state[name]) for name in NUMBERS}
    beta, w1, b1, w2, b2, x = numbers.values()
    gate, value = w1 * x + b1, w2 * x + b2
    opened = gate * torch.sigmoid(beta * gate)
    (opened * value).backward()
    parts = {"gate": gate, "opened": opened, "value": value, "out": opened * value}
    return {
        "parts": {name: part.item() for name, part in parts.items()},
        "slopes": {name: number.grad.item() for name, number in numbers.items()},
    }


def compared(state: dict[str, float]) -> dict[str, tuple[float, float]]:
    given = {name: state[name] for name in ("w1", "b1", "w2", "b2")}
    x = state["x"]
    silu_x = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    silu = F.silu(state["w1"] * silu_x + state["b1"])
    silu.backward()
    return {
        **{name: at(unit(name, **given), x) for name in ("relu", "gelu", "geglu")},
        "silu": (silu.item(), silu_x.grad.item()),
    }


def states() -> list[dict[str, float]]:
    """A hundred and more states, corners included; the page's ranges hold them all."""
    corners = [
        dict(zip(NUMBERS, numbers, strict=True))
        for numbers in itertools.product(
            (0.0, 1.0, 20.0), (-3.0, 1.0), (-0.5,), (3.0, 0.0), (0.0, 2.0), (-6.0, 0.3, 6.0)
        )
    ]
    draw = torch.Generator().manual_seed(0)
    drawn = torch.rand(60, len(NUMBERS), generator=draw, dtype=torch.float64)
    spread = torch.tensor([20.0, 6, 6, 6, 6, 12])
    low = torch.tensor([0.0, -3, -3, -3, -3, -6])
    return corners + [dict(zip(NUMBERS, row, strict=True)) for row in (low + drawn * spread).tolist()]


def activations() -> list[dict[str, float]]:
    rows = []
    for z in torch.linspace(-9, 9, 181, dtype=torch.float64):
        row = {"z": z.item(), "sigmoid": torch.sigmoid(z).item(), "erf": torch.erf(z).item()}
        for name, act in (("relu", F.relu), ("gelu", F.gelu), ("silu", F.silu)):
            of = z.clone().requires_grad_()
            value = act(of)
            value.backward()
            row |= {name: value.item(), f"{name}Slope": of.grad.item()}
        rows.append(row)
    return rows


def distances() -> list[dict[str, float]]:
    z = torch.linspace(-6, 6, 600_001, dtype=torch.float64)
    rows = []
    for beta in (0.0, 0.1, 0.2, 1.0, 4.0, 20.0):
        swish = z * torch.sigmoid(beta * z)
        half, relu = (swish - z / 2).abs().max().item(), (swish - F.relu(z)).abs().max().item()
        rows.append({"beta": beta, "reach": 6, "half": half, "relu": relu})
    return rows


def heat(beta: float = 1.0, cells: int = 12, reach: float = 6.0) -> dict[str, Any]:
    middle = torch.arange(cells, dtype=torch.float64).add(0.5).mul(2 * reach / cells) - reach
    rows = torch.outer(middle.flip(0), F.silu(middle))
    return {"beta": beta, "cells": cells, "reach": reach, "rows": rows.tolist()}


def test_the_mathematics_is_torchs(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.fail("These tests need Node: install nodejs 20 or newer.")
    units = [{"state": state, **swiglu(state), "compared": compared(state)} for state in states()]
    fixture = tmp_path / "torch.json"
    fixture.write_text(
        json.dumps({"activations": activations(), "units": units, "heat": heat(), "distances": distances()})
    )
    done = subprocess.run(
        [node, "--test", str(JS / "swiglu.test.mjs")],
        env={**os.environ, "RTX_FIXTURE": str(fixture)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "# tests 7\n" in done.stdout and "# skipped 0\n" in done.stdout


@pytest.mark.parametrize("beta", [0.3, 1.0, 5.0])
def test_the_page_s_formula_is_rtxlib_s_feed_forward(beta: float) -> None:
    """Swish_β(g) = SiLU(βg)/β, so the feed-forward with βW₁, βb₁ and an output of 1/β is the page's unit."""
    for state in states()[::7]:
        made = unit("swiglu", beta * state["w1"], beta * state["b1"], state["w2"], state["b2"], out=1 / beta)
        page = swiglu(state | {"beta": beta})
        assert at(made, state["x"]) == pytest.approx((page["parts"]["out"], page["slopes"]["x"]), abs=1e-9)
