"""The SwiGLU page computes what torch and rtxlib's own feed-forward compute, in Node and in front of a reader."""

from __future__ import annotations

import itertools
import json
import math
import os
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
import torch
import torch.nn.functional as F
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from rtxlib.errors import InputError
from rtxlib.models.config import ModelConfig
from rtxlib.models.layers import FeedForward
from rtxstudy.figures import looks
from rtxstudy.pages import static
from rtxstudy.pages.widget import SWIGLU_SETTINGS, SwigluExplorer
from rtxstudy.report import html

JS = Path(__file__).parent / "js"
NUMBERS = ("beta", "w1", "b1", "w2", "b2", "w3", "x")


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
    beta, w1, b1, w2, b2, w3, x = numbers.values()
    gate, value = w1 * x + b1, w2 * x + b2
    opened = gate * torch.sigmoid(beta * gate)
    (w3 * opened * value).backward()
    parts = {"gate": gate, "opened": opened, "value": value, "product": opened * value, "out": w3 * opened * value}
    return {
        "parts": {name: part.item() for name, part in parts.items()},
        "slopes": {name: number.grad.item() for name, number in numbers.items()},
    }


def compared(state: dict[str, float]) -> dict[str, tuple[float, float]]:
    given = {name: state[name] for name in ("w1", "b1", "w2", "b2")} | {"out": state["w3"]}
    x = state["x"]
    silu_x = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    silu = state["w3"] * F.silu(state["w1"] * silu_x + state["b1"])
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
            (0.0, 1.0, 20.0), (-3.0, 1.0), (-0.5,), (3.0, 0.0), (0.0, 2.0), (1.0, -2.5), (-6.0, 0.3, 6.0)
        )
    ]
    draw = torch.Generator().manual_seed(0)
    drawn = torch.rand(60, len(NUMBERS), generator=draw, dtype=torch.float64)
    spread = torch.tensor([20.0, 6, 6, 6, 6, 6, 12])
    low = torch.tensor([0.0, -3, -3, -3, -3, -3, -6])
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


def distances(beta: float) -> dict[str, float]:
    """How far Swish is from its limits within ±6, on a fine grid."""
    z = torch.linspace(-6, 6, 600_001, dtype=torch.float64)
    swish = z * torch.sigmoid(beta * z)
    half, relu = (swish - z / 2).abs().max().item(), (swish - F.relu(z)).abs().max().item()
    return {"beta": beta, "reach": 6, "half": half, "relu": relu}


def heat(beta: float = 1.0, cells: int = 12, reach: float = 6.0) -> dict[str, Any]:
    middle = torch.arange(cells, dtype=torch.float64).add(0.5).mul(2 * reach / cells) - reach
    rows = torch.outer(middle.flip(0), F.silu(middle))
    return {"beta": beta, "cells": cells, "reach": reach, "rows": rows.tolist()}


def test_the_mathematics_is_torchs(node: str, tmp_path: Path) -> None:
    units = [{"state": state, **swiglu(state), "compared": compared(state)} for state in states()]
    fixture = tmp_path / "torch.json"
    fixture.write_text(
        json.dumps(
            {
                "activations": activations(),
                "units": units,
                "heat": heat(),
                "distances": [distances(beta) for beta in (0.0, 0.1, 0.2, 1.0, 4.0, 20.0)],
            }
        )
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
    """Swish_β(g) = SiLU(βg)/β, so the feed-forward with βW₁, βb₁ and an output of W₃/β is the page's unit."""
    for state in states()[::7]:
        made = unit("swiglu", beta * state["w1"], beta * state["b1"], state["w2"], state["b2"], out=state["w3"] / beta)
        page = swiglu(state | {"beta": beta})
        assert at(made, state["x"]) == pytest.approx((page["parts"]["out"], page["slopes"]["x"]), abs=1e-9)


# ---------------------------------------- in front of a reader

START = {"beta": 1.0, "w1": 1.0, "b1": 0.0, "w2": 0.5, "b2": 1.0, "w3": 1.0, "x": 1.0}
LABELS = dict(zip(NUMBERS, ("β", "W₁", "b₁", "W₂", "b₂", "W₃", "x"), strict=True))


class Opened:
    """The page in a tab of its own, with what it asked of the network and what it complained of."""

    def __init__(self, browser: Any, folder: Path, link: str = "", **context: Any) -> None:
        file = folder / "swiglu.html"
        file.write_text(static.page("swiglu"), encoding="utf-8")
        self.tab = browser.new_context(offline=True, **context).new_page()
        self.asked, self.complaints = [], []
        self.tab.on("request", lambda request: self.asked.append(request.url))
        self.tab.on("console", lambda message: self.complaints.append(message.text))
        self.tab.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.tab.goto(file.as_uri() + link)

    def slider(self, name: str) -> Any:
        return self.tab.get_by_label(LABELS[name], exact=True)

    def numbers(self) -> dict[str, float]:
        """Every number of the two tables."""
        cells = self.tab.locator("[data-number]").evaluate_all(
            "all => all.map(one => [one.dataset.number, one.textContent])"
        )
        return {name: float(text.replace("−", "-")) for name, text in cells}


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Opened]:
    page = Opened(browser, tmp_path, viewport={"width": 1280, "height": 900})
    yield page
    assert [url for url in page.asked if not url.startswith(("file:", "data:"))] == []
    assert page.complaints == []


def shown(state: dict[str, float], names: Iterable[str] = ()) -> dict[str, float]:
    """What the tables must say, from torch."""
    says = swiglu(state)
    parts, slopes, others = says["parts"], says["slopes"], compared(state)
    steep = at(
        unit("swiglu", state["beta"] * state["w1"], state["beta"] * state["b1"], 0.0, 1.0, 1 / state["beta"]),
        state["x"],
    )[1]
    return {
        **parts,
        "gate-slope": state["w1"],
        "opened-slope": steep,
        "value-slope": state["w2"],
        "product-slope": swiglu(state | {"w3": 1.0})["slopes"]["x"],
        "out-slope": slopes["x"],
        **{f"in-{name}": slope for name, slope in slopes.items()},
        **{name: others[name][0] for name in names},
        **{f"{name}-slope": others[name][1] for name in names},
    }


def test_each_slider_moves_the_numbers_to_what_torch_says(opened: Opened) -> None:
    state = dict(START)
    assert opened.numbers() == pytest.approx(shown(state), abs=6e-6)
    for name, value in {"beta": 3.5, "w1": -1.25, "b1": 0.4, "w2": 2.0, "b2": -1.5, "w3": -0.5, "x": -0.7}.items():
        drawn = opened.tab.locator("figure").first.locator("svg[role=img] path.swiglu")
        before, curve = opened.numbers(), drawn.get_attribute("d")
        opened.slider(name).fill(str(value))
        state[name] = value
        assert opened.numbers() == pytest.approx(shown(state), abs=6e-6), name
        assert opened.numbers() != before
        assert (drawn.get_attribute("d") == curve) == (name == "x")
        assert opened.tab.locator("output").nth(NUMBERS.index(name)).inner_text() == f"{value:.2f}".replace("-", "−")


def test_what_is_compared_is_drawn_told_apart_without_colour_and_counted(opened: Opened) -> None:
    names = ("relu", "gelu", "silu", "geglu")
    curves = opened.tab.locator("figure").first.locator("svg[role=img] path.curve")
    assert curves.count() == 1
    for label in ("ReLU", "GELU", "SiLU", "GeGLU"):
        opened.tab.get_by_label(label, exact=True).check()
    assert opened.numbers() == pytest.approx(shown(START, names), abs=6e-6)
    drawn_as = curves.evaluate_all(
        "all => all.map(one => { const s = getComputedStyle(one); return s.strokeDasharray + ' ' + s.strokeWidth })"
    )
    assert len(drawn_as) == 5 and len(set(drawn_as)) == 5
    opened.tab.get_by_label("GELU", exact=True).uncheck()
    assert curves.count() == 4 and "gelu" not in opened.numbers()


def test_reset_brings_back_the_beginning(opened: Opened) -> None:
    for name in NUMBERS:
        opened.slider(name).fill("0.5")
    opened.tab.get_by_label("ReLU", exact=True).check()
    assert opened.numbers() != pytest.approx(shown(START), abs=6e-6)
    opened.tab.get_by_role("button", name="Reset").click()
    assert opened.numbers() == pytest.approx(shown(START), abs=6e-6)
    assert not opened.tab.get_by_label("ReLU", exact=True).is_checked()


def test_the_limits_are_reached_and_said(opened: Opened) -> None:
    opened.slider("x").fill("-2")
    for button, beta in (("β to 0", 0.0), ("β to 20", 20.0)):
        opened.tab.get_by_role("button", name=button, exact=True).click()
        far = distances(beta)
        words = opened.tab.locator(".limits").inner_text()
        assert (
            f"at most {far['half']:.3f} away from z/2" in words and f"at most {far['relu']:.3f} away from ReLU" in words
        )
        assert opened.numbers()["out"] == pytest.approx(
            swiglu(START | {"x": -2.0, "beta": beta})["parts"]["out"], abs=6e-6
        )
    opened.tab.get_by_role("button", name="β to 0", exact=True).click()
    now = opened.numbers()
    assert now["out"] == pytest.approx(now["gate"] * now["value"] / 2, abs=1e-5)


def test_the_heat_map_says_the_sign_and_follows_beta(opened: Opened) -> None:
    cells = opened.tab.locator(".cell")
    assert cells.count() == 24 * 24
    signs = opened.tab.locator(".sign").evaluate_all(
        "all => all.map(one => [+one.getAttribute('x'), +one.getAttribute('y'), one.textContent])"
    )
    middle = [sum(axis) / len(axis) for axis in list(zip(*signs, strict=True))[:2]]
    assert {(x > middle[0], y < middle[1], sign) for x, y, sign in signs} == {
        (True, True, "+"), (True, False, "−"), (False, True, "−"), (False, False, "+"),
    }  # fmt: skip
    colours = "all => all.map(one => getComputedStyle(one).fill)"
    gated = cells.evaluate_all(colours)
    opened.slider("beta").fill("0")
    bilinear = cells.evaluate_all(colours)
    assert gated != bilinear and bilinear[0] == bilinear[-1] != bilinear[23]  # half a product: opposite corners alike
    line = opened.tab.locator("path.walk")
    before = line.get_attribute("d")
    opened.slider("w2").fill("-2")
    assert line.get_attribute("d") != before


def test_the_keyboard_alone_suffices(opened: Opened) -> None:
    keys = opened.tab.keyboard
    keys.press("Tab")
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "ArrowRight"):
        keys.press(key)
    assert opened.slider("beta").input_value() == "1.1"
    assert opened.numbers() == pytest.approx(shown(START | {"beta": 1.1}), abs=6e-6)
    keys.press("End")
    assert opened.slider("beta").input_value() == "20"
    for _ in range(7):
        keys.press("Tab")
    keys.press("Space")
    assert opened.tab.get_by_label("ReLU", exact=True).is_checked() and "relu" in opened.numbers()
    for _ in range(4):
        keys.press("Tab")
    outline = "getComputedStyle(document.activeElement).outlineWidth"
    assert (
        opened.tab.evaluate("document.activeElement.textContent") == "Reset" and opened.tab.evaluate(outline) == "2px"
    )
    keys.press("Enter")
    assert opened.numbers() == pytest.approx(shown(START), abs=6e-6)


NONSENSE = (
    '#beta=NaN&w1="<img src=x onerror=alert(1)>"&x=1e999&compare=[["relu"],"<b>",3]',
    "#beta=-5&w1=99999&x=null&compare=7&constructor=1&__proto__=%7B%7D",
    "#%E0%A4%A&=&beta",
)


@pytest.mark.parametrize("link", NONSENSE)
def test_nothing_typed_into_the_link_breaks_it(browser: Any, tmp_path: Path, link: str) -> None:
    page = Opened(browser, tmp_path, link)
    numbers = page.numbers()
    assert len(numbers) == 17 and all(math.isfinite(number) for number in numbers.values())
    page.slider("beta").fill("2")
    assert page.tab.locator("img").count() == 0 and page.complaints == []
    assert "NaN" not in page.tab.locator("#page").inner_html()


def test_it_lives_inside_a_report(browser: Any, tmp_path: Path) -> None:
    shown = new_output("display_data", {"text/html": f"<div>{static.iframe('swiglu', {'beta': 2})}</div>"})
    book = new_notebook(cells=[new_markdown_cell("# A page"), new_code_cell("1", outputs=[shown], execution_count=1)])
    nbformat.write(book, tmp_path / "08_a.ipynb")
    file = html.build([tmp_path / "08_a.ipynb"], tmp_path / "report.html", "Report")
    tab = browser.new_context(offline=True, viewport={"width": 390, "height": 844}).new_page()
    asked, complaints = [], []
    tab.on("request", lambda request: asked.append(request.url))
    tab.on("console", lambda message: complaints.append(message.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.goto(file.as_uri())
    page = tab.frame_locator("iframe")
    page.get_by_label("x", exact=True).fill("-2")
    out = float(page.locator("[data-number=out]").inner_text().replace("−", "-"))
    assert out == pytest.approx(swiglu(START | {"beta": 2.0, "x": -2.0})["parts"]["out"], abs=6e-6)
    assert [url for url in asked if not url.startswith(("file:", "data:", "about:"))] == [] and complaints == []


def test_a_shorter_link_takes_back_what_it_no_longer_says(opened: Opened) -> None:
    opened.tab.evaluate("location.hash = '#beta=2&x=3'")
    opened.tab.wait_for_function("document.querySelector('[data-number=gate]').textContent === '3.00000'")
    assert opened.numbers() == pytest.approx(shown(START | {"beta": 2.0, "x": 3.0}), abs=6e-6)
    opened.tab.evaluate("location.hash = '#beta=2'")
    opened.tab.wait_for_function("document.querySelector('[data-number=gate]').textContent === '1.00000'")
    assert opened.numbers() == pytest.approx(shown(START | {"beta": 2.0}), abs=6e-6)


def test_the_widget_has_the_page_s_settings_and_no_others() -> None:
    page = SwigluExplorer(beta=2, compare=["relu"])
    page.set(x=1.5)
    assert page.state == {"beta": 2, "compare": ["relu"], "x": 1.5} and {*SWIGLU_SETTINGS} == {*NUMBERS, "compare"}
    shown, _ = page._repr_mimebundle_()
    assert shown["text/html"] == static.iframe("swiglu", page.state)  # where there is no kernel
    with pytest.raises(InputError, match=r"no setting 'betta'\. Did you mean 'beta'"):
        SwigluExplorer(betta=1)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_it_fits_and_reads_on_desk_and_phone_by_day_and_night(
    browser: Any, tmp_path: Path, width: int, scheme: str
) -> None:
    link = '#compare=["relu","gelu","silu","geglu"]&w1=-3&w2=3&b2=3'
    page = Opened(
        browser, tmp_path, link, viewport={"width": width, "height": 844}, color_scheme=scheme, reduced_motion="reduce"
    )
    assert page.tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    texts = page.tab.evaluate(TEXTS)
    assert len(texts) > 100
    for words, colour, behind, size, left, right in texts:
        assert looks.contrast(colour, behind) >= 4.5, (words, colour, behind)
        assert size >= 12 and left >= 0 and right <= width, (words, size, left, right)
    assert page.tab.evaluate("document.getAnimations().length") == 0
    assert page.complaints == []


# Every piece of text: its words, colour, the colour behind it, size in px, left and right edge. Signs stand on cells of the map.
TEXTS = """() => {
  const rgb = (text) => {
    const found = text.match(/[\\d.]+/g).map(Number);
    return (text.startsWith("color(") ? found.slice(0, 3) : found.slice(0, 3).map((part) => part / 255));
  };
  const behind = (node, x, y) => {
    for (const under of document.elementsFromPoint(x, y)) {
      const look = getComputedStyle(under);
      if (under.classList.contains("cell")) return look.fill;
      if (under.contains(node) && look.backgroundColor !== "rgba(0, 0, 0, 0)") return look.backgroundColor;
    }
    return getComputedStyle(document.getElementById("page")).backgroundColor;
  };
  const walker = document.createTreeWalker(document.getElementById("page"), NodeFilter.SHOW_TEXT);
  const all = [];
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim()) continue;
    node.scrollIntoView({ block: "center" });
    const range = document.createRange();
    range.selectNodeContents(walker.currentNode);
    const box = range.getBoundingClientRect();
    const look = getComputedStyle(node);
    const colour = node instanceof SVGElement ? look.fill : look.color;
    const under = behind(node, (box.left + box.right) / 2, (box.top + box.bottom) / 2);
    all.push([walker.currentNode.textContent, rgb(colour), rgb(under), parseFloat(look.fontSize), box.left, box.right]);
  }
  return all;
}"""
