"""The transformer page in a real browser: it computes what torch does, obeys every hand, and nothing typed can break it."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
import torch
from nbformat.v4 import new_code_cell, new_notebook, new_output

from rtxlib.models import EncoderDecoder, ModelConfig
from rtxstudy.pages import static, weights
from rtxstudy.report import html

WORDS = ["the", "cat", "sat"]
START_TOKENS = ["the", "cat", "sat", "on", "the", "mat"]  # what the page begins with where nothing says otherwise
SMALL = {"tokens": WORDS, "target": ["le"], "layers": 1}


class Shown:
    """A page that is open, and everything it asked for or complained about."""

    def __init__(self, browser: Any, address: str, clock: bool = False, **context: Any) -> None:
        """``clock``: time stands still in the page until the test lets it run."""
        self.page = browser.new_context(
            **({"viewport": {"width": 1280, "height": 900}, "offline": True} | context)
        ).new_page()
        if clock:
            self.page.clock.install()
        self.heard: list[str] = []
        self.page.on(
            "request", lambda asked: self.heard.append(asked.url) if asked.url != address.partition("#")[0] else None
        )
        self.page.on("console", lambda message: self.heard.append(message.text))
        self.page.on("pageerror", lambda error: self.heard.append(str(error)))
        self.page.goto(address)
        self.page.wait_for_selector(".answer")

    def open(self, *stages: str) -> None:
        """Open stages, or all of them, with the chapters that they are in."""
        for kind in ("chapter", "stage"):
            self.page.evaluate(
                "([kind, stages]) => document.querySelectorAll(`details.${kind}`).forEach((one) => {"
                "if (!stages.length || stages.some((stage) => stage.startsWith(one.dataset.id))) one.open = true })",
                [kind, stages],
            )
            self.settle()

    def settle(self) -> None:
        """Wait until what was asked for is drawn, in sight or not."""
        self.page.evaluate(
            "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))"
        )

    def grid(self, stage: str, title: str) -> Any:
        return self.page.locator(f'details[data-id="{stage}"] .box[aria-label$=": {title}"]')

    def cells(self, stage: str, title: str) -> list[list[str]]:
        """The words of a matrix' cells, once it is in sight."""
        box = self.grid(stage, title)
        box.scroll_into_view_if_needed()
        self.page.wait_for_timeout(50)
        return box.evaluate(
            "(box) => [...box.querySelectorAll('tbody tr')].map((tr) => [...tr.children].slice(1).map((td) => td.textContent))"
        )

    def numbers(self, stage: str, title: str) -> np.ndarray:
        return np.array([[float(cell.replace("−", "-")) for cell in row] for row in self.cells(stage, title)])

    def source(self) -> list[str]:
        return self.page.locator(".tokens").nth(0).locator("input").evaluate_all("(all) => all.map((one) => one.value)")

    def target(self) -> list[str]:
        return self.page.locator(".tokens").nth(1).locator("input").evaluate_all("(all) => all.map((one) => one.value)")


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Shown]]:
    """Opens the page as a file, beginning with these settings; at the end it must have asked for nothing, and not complained."""
    shown: list[Shown] = []

    def open_page(state: dict[str, Any] | None = None, link: str = "", **context: Any) -> Shown:
        file = tmp_path / "transformer.html"
        file.write_text(static.page("transformer", SMALL if state is None else state), encoding="utf-8")
        shown.append(Shown(browser, file.as_uri() + link, **context))
        return shown[-1]

    yield open_page
    for one in shown:
        one.page.wait_for_timeout(50)
        assert one.heard == []
        one.page.context.close()


def torch_says(node: str, state: dict[str, Any], edits: dict[str, float] | None = None) -> Any:
    """The output of rtxlib's encoder–decoder with the weights that the page draws for this state, some of them edited."""
    drawn = json.loads(subprocess.check_output([node, Path(__file__).parent / "js" / "drawn.mjs", json.dumps(state)]))
    config = ModelConfig(
        **drawn["config"], vocab_size=len(drawn["words"]), type_vocab_size=0, pad_token_id=None, attention_dropout=0.0
    )
    model = EncoderDecoder(config).double().eval()
    into = weights.tensors(model)
    assert into.keys() == drawn["weights"].keys()
    for name, x in drawn["weights"].items():
        into[name].copy_(torch.tensor(x["data"], dtype=torch.float64).view(x["rows"], x["cols"]))
    for key, value in (edits or {}).items():
        name, row, column = re.fullmatch(r"weights/(.*)\[(\d+),(\d+)\]", key).groups()
        into[name][int(row), int(column)] = value
    with torch.no_grad():
        output = model(torch.tensor([drawn["source"]]), torch.tensor([drawn["target"]]), output_attentions=True)
    output["words"] = drawn["words"]
    return output


def close(shown: np.ndarray, wanted: torch.Tensor) -> None:
    """Equal to the last digit on show: two after the point, or one digit of what is smaller than 0.005."""
    wanted = wanted.numpy()
    assert shown.shape == wanted.shape
    room = np.where(np.abs(wanted) < 0.005, 0.5 * 10.0 ** np.floor(np.log10(np.abs(wanted) + 1e-300)), 0.005)
    assert (np.abs(shown - wanted) <= 1.001 * room).all(), np.abs(shown - wanted).max()


def probabilities(shown: Shown) -> np.ndarray:
    return shown.numbers("output/words", "p, rows sum to one")


def attention(shown: Shown) -> np.ndarray:
    return shown.numbers("encoder/0/0/attention/weights", "A, rows sum to one")


# ------------------------------------------------------------------------------------------------------ what it computes


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {
            "norm_placement": "pre",
            "norm": "rmsnorm",
            "position": "rotary",
            "feedforward": "swiglu",
            "recurrent_depth": 2,
        },
    ],
    ids=["paper", "study"],
)
def test_what_it_shows_is_what_torch_says(opened: Any, node: str, settings: dict[str, Any]) -> None:
    shown, said = opened(SMALL | settings), torch_says(node, SMALL | settings)
    close(probabilities(shown), said.logits[0].softmax(-1))
    close(attention(shown), said.encoder_attentions[0][0, 0])
    shown.page.locator('details[data-id="encoder/0/0/attention/weights"] .tabs button').nth(1).click()
    shown.settle()
    close(attention(shown), said.encoder_attentions[0][0, 1])
    shown.open("decoder/0/0/cross/weights")
    close(shown.numbers("decoder/0/0/cross/weights", "A, rows sum to one"), said.cross_attentions[0][0, 1])


def test_tokens_are_added_removed_and_edited_and_everything_follows(opened: Any, node: str) -> None:
    shown = opened()
    row = shown.page.get_by_label("Texts").locator("fieldset").first
    row.get_by_role("button", name="+ token").click()
    shown.page.keyboard.type("down")
    assert shown.source() == [*WORDS, "down"]
    shown.settle()
    assert attention(shown).shape == (4, 4)
    row.get_by_role("button", name="remove token 2: cat").click()
    row.locator("input").first.fill("one")
    shown.settle()
    assert shown.source() == ["one", "sat", "down"]
    state = SMALL | {"tokens": ["one", "sat", "down"]}
    close(probabilities(shown), torch_says(node, state).logits[0].softmax(-1))
    seen = (
        shown.page.locator(".glance .links")
        .first.locator("text")
        .evaluate_all("(all) => all.map((one) => one.firstChild.data)")
    )
    assert seen == ["one", "sat", "down"] * 2


def test_a_slider_moves_a_number_and_what_depends_on_it(opened: Any, node: str) -> None:
    shown = opened()
    before = probabilities(shown)
    shown.open("encoder/token")
    shown.grid("encoder/token", "E, one row per word").locator("td").nth(2 * 8 + 3).click()  # row 2 is "the"
    slider = shown.page.get_by_label("Selected cell").get_by_role("slider")
    slider.fill("7.5")
    shown.settle()
    assert shown.page.locator(".editor .value").inner_text() == "+7.500"
    after = probabilities(shown)
    assert np.abs(after - before).max() > 0.01
    close(after, torch_says(node, SMALL, {"weights/table[2,3]": 7.5}).logits[0].softmax(-1))
    assert (
        shown.page.locator("input[type=range]:visible", has_not=shown.page.locator(".panel")).count() == 3
    )  # p, α and this
    shown.page.get_by_role("button", name="Put back").click()
    shown.settle()
    assert (probabilities(shown) == before).all()


def test_a_computed_number_can_be_held_too(opened: Any) -> None:
    shown = opened()
    attention(shown)
    shown.grid("encoder/0/0/attention/weights", "A, rows sum to one").locator("td").first.click()
    shown.page.get_by_label("value of the selected cell").fill("0.95")
    shown.page.keyboard.press("Enter")
    shown.settle()
    assert attention(shown)[0, 0] == 0.95
    shown.page.locator(".glance").scroll_into_view_if_needed()
    shown.settle()
    line = shown.page.locator(".glance .links").first.locator("path").first
    assert float(line.get_attribute("stroke-width")) > 8 and float(line.get_attribute("stroke-opacity")) > 0.95


def test_the_kind_of_model_is_switched(opened: Any, node: str) -> None:
    shown = opened()
    shown.page.get_by_role("button", name="As in this study").click()
    shown.settle()
    study = {
        "norm_placement": "pre",
        "norm": "rmsnorm",
        "position": "rotary",
        "feedforward": "swiglu",
        "recurrent_depth": 2,
    }
    close(probabilities(shown), torch_says(node, SMALL | study).logits[0].softmax(-1))
    shown.open("loop/states")
    titles = shown.page.locator('details[data-id="loop/states"] figcaption').all_inner_texts()
    assert [title.split("  ")[0][:12] for title in titles] == ["h₀, the inpu", "h after pass", "h after pass"]
    shown.page.get_by_label("positions").select_option("none")
    shown.settle()
    close(probabilities(shown), torch_says(node, SMALL | study | {"position": "none"}).logits[0].softmax(-1))


def test_the_dimension_changes_and_stays_even(opened: Any, node: str) -> None:
    shown = opened()
    shown.page.get_by_role("button", name="more: dimension d").click()
    shown.settle()
    field = shown.page.get_by_label("dimension d", exact=True)
    assert field.input_value() == "10"
    close(probabilities(shown), torch_says(node, SMALL | {"d_model": 10}).logits[0].softmax(-1))
    for typed, kept in (("13", "12"), ("1e9", "128"), ("-3", "2"), ("NaN", "2"), ("", "2")):
        field.fill(typed)
        field.press("Enter")
        field.blur()
        shown.settle()
        assert field.input_value() == kept
        assert np.isfinite(probabilities(shown)).all()
    assert shown.page.get_by_label("heads", exact=True).input_value() == "2"


def test_the_target_is_decoded_greedily(opened: Any, node: str) -> None:
    shown = opened(SMALL | {"target": [], "seed": 2})
    for _ in range(3):
        said = torch_says(node, SMALL | {"seed": 2, "target": shown.target()})
        likeliest = said.words[1 + int(said.logits[0, -1, 1:].argmax())]  # "<s>" is no word to go on with
        before = shown.target()
        shown.page.get_by_role("button", name="Decode the next word").click()
        shown.settle()
        assert shown.target() == before + ([] if likeliest == "</s>" else [likeliest])
    shown.page.get_by_role("button", name="Clear the target").click()
    shown.settle()
    assert shown.target() == [] and probabilities(shown).shape[0] == 1


def test_training_mode_shows_masks_that_are_scaled_and_drawn_anew(opened: Any) -> None:
    shown = opened(SMALL | {"dropout": 0.5})
    before = probabilities(shown)
    shown.page.get_by_label("dropout on").check()
    shown.settle()
    shown.open("encoder/input")
    mask = shown.cells("encoder/input", "dropout mask")
    assert {cell for row in mask for cell in row} == {"0", "+2.00"}
    assert (probabilities(shown) != before).any()
    shown.page.get_by_role("button", name="Redraw the masks").click()
    shown.settle()
    assert shown.cells("encoder/input", "dropout mask") != mask
    shown.page.get_by_label("dropout on").uncheck()
    shown.settle()
    assert (probabilities(shown) == before).all()


# ------------------------------------------------------------------------------------------------------ hands and eyes


def test_a_value_oscillates_and_comes_back(opened: Any) -> None:
    shown = opened()
    before = probabilities(shown)
    shown.open("encoder/token")
    shown.grid("encoder/token", "E, one row per word").locator("td").nth(2 * 8).click()
    shown.page.get_by_role("button", name="Oscillate").click()
    seen = set()
    for _ in range(10):
        shown.page.wait_for_timeout(60)
        seen.add(shown.page.locator(".editor .value").inner_text())
    assert len(seen) >= 5
    shown.page.get_by_role("button", name="Stop").click()
    shown.settle()
    assert (probabilities(shown) == before).all()
    shown.page.wait_for_timeout(400)  # longer than the host waits for further changes
    assert shown.page.evaluate("location.hash") in ("", "#edits=%7B%7D")


def test_another_cell_may_be_chosen_while_one_oscillates(opened: Any) -> None:
    shown = opened()
    before = probabilities(shown)
    shown.open("encoder/token")
    cells = shown.grid("encoder/token", "E, one row per word").locator("td")
    words = cells.all_inner_texts()
    for at in (16, 17):
        cells.nth(at).click()
        shown.page.get_by_role("button", name="Oscillate").click()
        shown.page.wait_for_timeout(150)
    shown.page.get_by_role("button", name="+ token").first.click()
    shown.page.keyboard.type("x")  # what oscillates is let go before its place moves
    for _ in range(2):
        shown.page.keyboard.press("Backspace")
    shown.settle()
    assert shown.page.locator(".editor").is_hidden()
    assert (probabilities(shown) == before).all()
    assert shown.cells("encoder/token", "E, one row per word") == [words[at : at + 8] for at in range(0, len(words), 8)]


def test_with_reduced_motion_nothing_moves_by_itself(opened: Any) -> None:
    shown = opened(reduced_motion="reduce")
    shown.open("encoder/token")
    shown.grid("encoder/token", "E, one row per word").locator("td").nth(2 * 8).click()
    value = shown.page.locator(".editor .value")
    resting = value.inner_text()
    step = shown.page.get_by_role("button", name="Oscillate: next step")
    step.click()
    shown.settle()
    moved = value.inner_text()
    assert moved != resting
    shown.page.wait_for_timeout(300)
    assert value.inner_text() == moved
    for _ in range(11):
        step.click()
    shown.settle()
    assert value.inner_text() == resting


def test_the_keyboard_alone_suffices(opened: Any) -> None:
    shown = opened()
    page = shown.page

    def tab_to(test: str) -> None:
        for _ in range(150):
            page.keyboard.press("Tab")
            if page.evaluate(test):
                return
        raise AssertionError(f"the keyboard never reached {test}")

    tab_to("document.activeElement.value === 'the'")
    page.keyboard.press("Enter")  # a token after this one
    page.keyboard.type("old")
    assert shown.source() == ["the", "old", "cat", "sat"]
    for _ in range(4):
        page.keyboard.press("Backspace")
    assert shown.source() == WORDS

    tab_to("document.activeElement.textContent === 'As in this study'")
    page.keyboard.press("Enter")
    shown.settle()
    assert page.get_by_label("positions").input_value() == "rotary"
    tab_to("document.activeElement.textContent.startsWith('Words become vectors')")
    page.keyboard.press("Enter")
    tab_to("document.activeElement.getAttribute('aria-label') === 'The source is read: E, one row per word'")
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    assert "the, column 1" in page.locator(".editor .what").inner_text()
    before = page.locator(".editor .value").inner_text()
    page.keyboard.press("ArrowRight")  # the slider has the focus
    shown.settle()
    assert page.locator(".editor .value").inner_text() != before
    page.keyboard.press("Escape")
    shown.settle()
    assert page.locator(".editor").is_hidden()
    assert page.evaluate("document.activeElement.getAttribute('role')") == "grid"


def test_matrices_larger_than_their_box_scroll_to_every_cell(opened: Any) -> None:
    shown = opened({"tokens": [f"w{i}" for i in range(30)], "d_model": 64, "heads": 1, "layers": 1})
    shown.open("encoder/token")
    box = shown.grid("encoder/token", "X")
    box.scroll_into_view_if_needed()
    assert box.locator("td").count() < 30 * 64
    box.focus()
    for key in ("End", *(["PageDown"] * 3), "Enter"):
        shown.page.keyboard.press(key)
    assert shown.page.locator(".editor .what").inner_text().endswith("w29, column 63")
    box.locator("td.selected").wait_for()
    table = shown.numbers("encoder/token", "X")
    assert table.shape[1] < 64 and np.isfinite(table).all()


@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_itself_never_scrolls_sideways(opened: Any, width: int) -> None:
    study = {"position": "rotary", "feedforward": "swiglu", "norm_placement": "pre", "training": True}
    long = SMALL | study | {"tokens": ["W" * 200, "x", "cat"], "d_model": 32, "d_ff": 64}
    shown = opened(long, viewport={"width": width, "height": 844})
    shown.open()
    shown.grid("encoder/token", "X").locator("td").first.click()
    shown.settle()
    assert shown.page.evaluate("[document.documentElement.scrollWidth, innerWidth]") == [width, width]


CONTRAST = """() => {
  const channels = (text) => {
    const numbers = text.match(/[\\d.]+/g).map(Number);
    const scale = text.startsWith("color(") ? 1 : 255;
    return [...numbers.slice(0, 3).map((x) => x / scale), numbers[3] ?? 1];
  };
  const light = ([r, g, b]) => [0.2126, 0.7152, 0.0722].reduce((sum, share, at) => {
    const x = [r, g, b][at];
    return sum + share * (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
  }, 0);
  const behind = (node) => {
    for (; node; node = node.parentElement) {
      const colour = channels(getComputedStyle(node).backgroundColor);
      if (colour[3] === 1) return colour;
    }
    return channels("rgb(255, 255, 255)");
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !node.checkVisibility() || node.closest("style, script, .underlines")) continue;
    const style = getComputedStyle(node);
    const [a, b] = [light(channels(node.closest("svg") ? style.fill : style.color)), light(behind(node))];
    found.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), node.className + " " + walker.currentNode.data.slice(0, 20)]);
  }
  return found;
}"""


@pytest.mark.parametrize("colours", ["soft", "pure"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_stands_out_from_what_is_behind_it(opened: Any, scheme: str, colours: str) -> None:
    table = {f"weights/table[{row},{column}]": value for (row, column), value in zip(
        itertools.product(range(5), range(8)), np.linspace(-12, 12, 40).tolist(), strict=True)}  # fmt: skip
    shown = opened(SMALL | {"edits": table, "training": True, "colours": colours}, color_scheme=scheme)
    shown.open()
    shown.grid("encoder/token", "E, one row per word").locator("td").first.click()
    shown.page.get_by_label("value of the selected cell").fill("x")
    shown.page.keyboard.press("Enter")
    shown.settle()
    found = shown.page.evaluate(CONTRAST)
    classes = set(shown.page.evaluate("[...document.querySelectorAll('td')].flatMap((td) => [...td.classList])"))
    assert {
        "p20",
        "n20",
        "zero",
        "masked",
        "pinned",
        "selected",
        "moved",
    } <= classes  # the deepest shades are among what was seen
    assert len(found) > 1000
    assert [words for contrast, words in found if contrast < 4.5] == []


def test_signs_are_read_without_colour_and_colour_is_deepest_at_ten(opened: Any) -> None:
    values = {0: 10.0, 1: 9.0, 2: 12.5, 3: -10.0, 4: 0.001, 5: -0.5, 6: 0.0, 7: -1234.0}
    shown = opened(SMALL | {"edits": {f"weights/table[0,{column}]": value for column, value in values.items()}})
    shown.open("encoder/token")
    cells = shown.cells("encoder/token", "E, one row per word")[0]
    assert cells == ["+10.0", "+9.00", "+12.5", "−10.0", "+0.001", "−0.50", "0", "−1234"]
    row = shown.grid("encoder/token", "E, one row per word").locator("tbody tr").first
    looks = row.locator("td").evaluate_all("(all) => all.map((td) => td.classList[0])")
    assert looks[0] == looks[2] == "p20" and looks[1] == "p19" and looks[3] == looks[7] == "n20" and looks[6] == "zero"


# ------------------------------------------------------------------------------------------------------ what cannot break it

STRANGE = ["", " ", "x" * 5000, "مرحبا", "שלום", "👩‍👩‍👧‍👦🎬", "\u202e", "__proto__", "[1,2]"]
STRANGE += ["<b>bold</b>", "<script>alert(1)</script>", "</script>", "&amp;"]


def test_strange_tokens_are_text_like_any_other(opened: Any, node: str) -> None:
    shown = opened(SMALL | {"tokens": ["a"]})
    elements = shown.page.evaluate("document.querySelectorAll('b, script').length")
    row = shown.page.get_by_label("Texts").locator("fieldset").first
    for empty in STRANGE[:2]:
        row.locator("input").fill(empty)
    for token in STRANGE[2:]:
        row.get_by_role("button", name="+ token").click()
        row.locator("input").last.fill(token)
    row.get_by_role("button", name="+ token").click()
    shown.settle()
    assert shown.source() == ["a", *(token[:200] for token in STRANGE[2:]), ""]
    shown.page.keyboard.press("Tab")  # the field that was left empty goes
    assert shown.source() == ["a", *(token[:200] for token in STRANGE[2:])]
    shown.open()
    assert shown.page.evaluate("document.querySelectorAll('b, script').length") == elements
    names = shown.grid("encoder/0/0/attention/weights", "A, rows sum to one").locator("tbody th").all_inner_texts()
    assert "<b>bold</b>" in names
    said = torch_says(node, SMALL | {"tokens": shown.source()})
    np.testing.assert_allclose(attention(shown).sum(axis=1), 1, atol=0.05)
    assert said.words[-1] == "le" and len(said.words) == len(set(STRANGE)) + 2


def test_what_is_typed_into_a_cell_must_be_a_number(opened: Any) -> None:
    shown = opened()
    shown.open("encoder/token")
    shown.grid("encoder/token", "E, one row per word").locator("td").first.click()
    field, value = shown.page.get_by_label("value of the selected cell"), shown.page.locator(".editor .value")
    before = value.inner_text()
    for typed in ("NaN", "", "abc", "Infinity", "1e999", "<b>"):
        field.fill(typed)
        field.press("Enter")
        shown.settle()
        assert value.inner_text() == before
        assert "is not a number" in shown.page.locator(".editor .said").inner_text()
    field.fill("1e300")  # a number, but one that is cut to what can be computed with
    field.press("Enter")
    shown.settle()
    assert value.inner_text() == "+1.000 × 10⁶"
    assert np.isfinite(probabilities(shown)).all()


def test_the_link_holds_what_was_changed(opened: Any, node: str) -> None:
    shown = opened()
    shown.page.get_by_label("seed", exact=True).fill("7")
    shown.page.get_by_label("seed", exact=True).press("Enter")
    shown.page.get_by_label("positions").select_option("none")
    shown.page.wait_for_timeout(400)  # longer than the host waits for further changes
    link = shown.page.evaluate("location.hash")
    other = opened(link=link)
    assert other.page.get_by_label("seed", exact=True).input_value() == "7"
    close(probabilities(other), torch_says(node, SMALL | {"seed": 7, "position": "none"}).logits[0].softmax(-1))
    other.page.evaluate("location.hash = '#seed=8'")
    other.page.wait_for_timeout(100)
    close(probabilities(other), torch_says(node, SMALL | {"seed": 8}).logits[0].softmax(-1))


@pytest.mark.parametrize(
    "link", ["#seed", "#seed=%", "#tokens={}&d_model=x&heads=null", "#edits=[1]&run=0", "#__proto__=1&a=b&&="]
)
def test_a_broken_link_opens_what_can_be_opened(opened: Any, link: str) -> None:
    shown = opened(link=link)
    assert np.isfinite(probabilities(shown)).all()
    assert shown.source() == (START_TOKENS if "tokens" in link else WORDS)


# ------------------------------------------------------------------------------------------------------ where it lives


def test_it_lives_in_a_report_as_it_does_by_itself(browser: Any, node: str, tmp_path: Path) -> None:
    output = new_output("display_data", data={"text/html": static.iframe("transformer", SMALL)})
    cell = new_code_cell("page", outputs=[output], execution_count=1)
    executed = tmp_path / "08_transformer_tour.ipynb"
    notebook = new_notebook(cells=[cell], metadata={"rtx": {"completed": True}})
    nbformat.write(notebook, executed)
    report = html.build([executed], tmp_path / "report.html", "A report")
    page = browser.new_context(offline=True).new_page()
    heard: list[str] = []
    page.on("request", lambda asked: heard.append(asked.url))
    page.on("console", lambda message: heard.append(message.text))
    page.on("pageerror", lambda error: heard.append(str(error)))
    page.goto(report.as_uri())
    frame = page.frame_locator("iframe")
    frame.locator(".answer").wait_for()
    rows = frame.locator('details[data-id="output/words"] .box[aria-label$="rows sum to one"] tbody tr')
    rows.first.scroll_into_view_if_needed()
    page.wait_for_timeout(100)
    shown = np.array(
        [[float(cell.replace("−", "-")) for cell in rows.nth(i).locator("td").all_inner_texts()] for i in range(2)]
    )
    said = torch_says(node, SMALL).logits[0].softmax(-1)
    close(shown, said[:, : shown.shape[1]])
    frame.get_by_role("button", name="more: dimension d").click()
    frame.locator(".add").first.click()
    page.wait_for_timeout(400)  # longer than the host waits before it would write to an address
    assert frame.locator(".tokens").first.locator("input").count() == len(WORDS) + 1
    assert heard == [report.as_uri()]
    page.context.close()


def test_the_pages_are_small() -> None:
    assert sum(len(static.page(name).encode()) for name in static.PAGES) < 285_000
    assert (static.HERE / "transformer" / "trained.js").stat().st_size < 60_000
