"""The transformer page as a student opens it: trained weights, a walk in steps, and the result in sight all the time."""

from __future__ import annotations

import re
from typing import Any

import pytest
from test_pages_browser import SMALL, Shown, opened  # noqa: F401  (a fixture)


def answer(shown: Shown) -> str:
    return shown.page.locator(".answer").inner_text()


def before(shown: Shown) -> str:
    line = shown.page.locator(".was")
    return line.inner_text() if line.is_visible() else ""


def tokens(shown: Shown) -> list[str]:
    return shown.source()


def change(shown: Shown, step: int) -> None:
    """What a student would do at a step."""
    control = shown.page.locator(".walk .change")
    if step == 1:
        control.get_by_role("textbox").fill("the film was not dull, it was a joy")
    elif step == 2:
        control.get_by_role("combobox").select_option("film")
    elif step == 3:
        control.get_by_role("button").first.click()
    elif control.get_by_role("checkbox").count():
        control.get_by_role("checkbox").check()
    else:
        slider = control.get_by_role("slider")
        slider.fill(slider.get_attribute("max" if step != 5 or float(slider.input_value()) < 0.5 else "min"))
    shown.settle()


def test_it_opens_on_trained_weights_and_names_every_kind(opened: Any) -> None:  # noqa: F811
    shown = opened({})
    bar, about = shown.page.locator(".result"), shown.page.get_by_label("Weights", exact=True).first
    assert "trained weights" in bar.inner_text() and "random" not in bar.inner_text()
    assert re.search(r"trained on [\d,]+ generated sentences.*\d %", about.inner_text(), re.S)
    assert shown.page.locator(".passes li").count() == 3
    about.get_by_role("button", name="Random weights").click()
    shown.settle()
    assert "random weights: nothing has been learned" in bar.inner_text() and "learned nothing" in about.inner_text()
    assert shown.page.get_by_label("Guided walk").is_hidden()
    about.get_by_role("button", name="Trained: letters backwards").click()
    shown.settle()
    assert "trained weights" in bar.inner_text()
    shown.page.get_by_role("button", name="Clear the target").click()
    shown.page.get_by_role("button", name="Decode eight").click()
    shown.settle()
    assert "".join(shown.target()) == "".join(shown.source())[::-1] == "decaf"
    shown.page.wait_for_timeout(400)  # longer than the host waits for further changes
    again = opened({}, link=shown.page.evaluate("location.hash"))
    assert "".join(again.target()) == "decaf" and "letters backwards" in again.page.locator(".kind").inner_text()


def test_the_walk_leads_from_token_to_label_and_each_change_is_put_back(opened: Any) -> None:  # noqa: F811
    shown = opened({})
    walk = shown.page.get_by_label("Guided walk")
    titles = []
    for step in range(1, 11):
        assert f"Step {step} of 10" in walk.inner_text()
        titles.append(walk.locator("h2").inner_text())
        at_first, sentence = answer(shown), tokens(shown)
        assert before(shown) == "" and not walk.locator("td.moved").count()
        change(shown, step)
        assert at_first.removeprefix("Its answer: ").removesuffix(".") in before(shown), step
        assert re.search(r"[\d,]+ numbers? changed", before(shown)) or step == 9, step  # fewer passes have other shapes
        if step == 1:
            assert shown.page.evaluate("document.activeElement.closest('.walk') !== null")  # typing goes on
            sentence, at_first = tokens(shown), answer(shown)
            assert "joy" in sentence
        if step < 10:
            walk.get_by_role("button", name="Next").click()
            shown.settle()
            assert (answer(shown), tokens(shown)) == (at_first, sentence), step
    assert len(set(titles)) == 10 and walk.get_by_role("button", name="Next").is_disabled()
    walk.get_by_role("button", name="See all its numbers below").click()
    assert shown.page.locator('details[data-id="output/labels"]').evaluate("(stage) => stage.open")
    walk.get_by_role("button", name="Leave the walk").click()
    shown.settle()
    assert answer(shown) == at_first and walk.get_by_role("button").count() == 1


@pytest.mark.parametrize("size", [(1280, 800), (390, 844)])
def test_the_result_stays_in_sight_and_what_changed_is_marked(opened: Any, size: tuple[int, int]) -> None:  # noqa: F811
    shown = opened({"weights": "sentiment", "step": 0}, viewport={"width": size[0], "height": size[1]})
    plain = answer(shown)
    shown.open("encoder/token", "output/labels")
    shown.grid("encoder/token", "X").locator("td").nth(3).click()
    shown.page.get_by_label("value of the selected cell").fill("9")
    shown.page.keyboard.press("Enter")
    shown.settle()
    shown.grid("output/labels", "logits").scroll_into_view_if_needed()
    shown.page.wait_for_timeout(100)
    result, bar = shown.page.locator(".result").bounding_box(), shown.page.locator(".editor").bounding_box()
    assert result["y"] >= 0 and result["y"] + result["height"] < bar["y"] < bar["y"] + bar["height"] <= size[1]
    assert bar["y"] - result["y"] - result["height"] > size[1] / 3  # and there is room between them
    assert plain.removeprefix("Its answer: ").removesuffix(".") in before(shown)
    assert shown.grid("output/labels", "logits").locator("td.moved").count() == 2
    badge = shown.page.locator('details[data-id="output/labels"] > summary .changed')
    assert badge.is_visible()
    shown.page.get_by_role("button", name="Put every edited cell back").click()
    shown.settle()
    assert answer(shown) == plain and before(shown) == "" and badge.is_hidden()
    assert not shown.grid("output/labels", "logits").locator("td.moved").count()


def test_a_pasted_sentence_becomes_tokens_and_an_empty_one_does_not_stay(opened: Any) -> None:  # noqa: F811
    shown = opened()
    row = shown.page.get_by_label("Texts").locator("fieldset").first
    row.locator("input").nth(1).focus()
    shown.page.keyboard.press("Control+a")
    shown.page.keyboard.insert_text("old cats, dogs")
    assert shown.source() == ["the", "old", "cats", ",", "dogs", "sat"]
    row.get_by_role("button", name="+ token").click()
    shown.page.keyboard.type("a b ")  # a space begins the next token
    assert shown.source()[-3:] == ["a", "b", ""]
    shown.page.keyboard.press("Tab")
    assert shown.source() == ["the", "old", "cats", ",", "dogs", "sat", "a", "b"]
    row.locator("input").nth(1).fill("")
    shown.page.locator("h1").click()
    assert shown.source() == ["the", "cats", ",", "dogs", "sat", "a", "b"]


def test_what_does_not_fit_is_explained_where_it_is_typed(opened: Any) -> None:  # noqa: F811
    shown = opened()
    field = shown.page.get_by_label("heads", exact=True)
    field.fill("3")
    field.press("Enter")
    words = shown.page.locator(f"#{field.get_attribute('aria-describedby')}")
    assert words.inner_text() == "3 heads do not divide 8 dimensions, so there are 2 heads of width 4."
    size, inner = (shown.page.get_by_label(label, exact=True) for label in ("dimension d", "inner width"))
    assert inner.input_value() == "32"
    size.fill("6")
    size.press("Enter")
    assert inner.input_value() == "24"
    inner.fill("20")
    inner.press("Enter")
    size.fill("8")
    size.press("Enter")
    assert inner.input_value() == "20"
    shown.page.get_by_role("button", name="Follow 4·d").click()
    assert inner.input_value() == "32"


def test_every_layer_and_head_is_shown_and_a_token_says_what_each_looks_at(opened: Any) -> None:  # noqa: F811
    shown = opened(SMALL | {"layers": 2, "heads": 4})
    thumbs = shown.page.locator(".thumb")
    assert thumbs.count() == 4 * (2 + 2 + 2)  # encoder, decoder to itself, decoder to the source
    shown.page.get_by_role("group", name="source:").get_by_role("button", name="cat").hover()
    seen = shown.page.locator(".thumb .seen").all_inner_texts()
    assert all(re.fullmatch(r"→ \w+ \d+ %", words) for words in seen[:8]) and not any(seen[8:])
    thumbs.nth(5).click()
    shown.settle()
    assert shown.page.get_by_label("Who looks at whom:").input_value() == "encoder/0/1/attention/weights"


def test_pure_colours_and_scientific_numbers_are_choices(opened: Any) -> None:  # noqa: F811
    edits = {"weights/table[0,0]": 10.0, "weights/table[0,1]": -10.0, "weights/table[0,2]": 0.125}
    shown = opened(SMALL | {"edits": edits}, color_scheme="light")
    shown.open("encoder/token")
    row = shown.grid("encoder/token", "E, one row per word").locator("tbody tr").first.locator("td")
    colour = "(td) => getComputedStyle(td).backgroundColor"
    assert row.nth(0).evaluate(colour) != "rgb(0, 0, 255)" and row.nth(2).inner_text() == "+0.13"
    shown.page.get_by_label("colours").select_option("pure")
    shown.page.get_by_label("notation").select_option("scientific")
    shown.settle()
    assert row.nth(0).evaluate(colour) == "rgb(0, 0, 255)" and row.nth(1).evaluate(colour) == "rgb(255, 0, 0)"
    assert [row.nth(at).inner_text() for at in range(3)] == ["+1.00e1", "−1.00e1", "+1.25e−1"]
    row.nth(2).click()
    assert shown.page.locator(".editor .value").inner_text() == "+1.250 × 10⁻¹"
