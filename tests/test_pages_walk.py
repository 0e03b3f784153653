"""The transformer page as a student opens it: the network at work, a walk in steps, and the result in sight all the time."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from test_pages_browser import CONTRAST, SMALL, Shown, opened  # noqa: F401  (a fixture)


def answer(shown: Shown) -> str:
    return shown.page.locator(".answer").inner_text()


def before(shown: Shown) -> str:
    lines = [shown.page.locator(".was"), shown.page.locator(".how-many")]
    return " ".join(line.inner_text() for line in lines if line.is_visible())


def tokens(shown: Shown) -> list[str]:
    return shown.source()


PHONE = {"viewport": {"width": 390, "height": 844}}
STILL = {"reduced_motion": "reduce"}


def answers(shown: Shown) -> list[str]:
    """The answer after each pass, as the first screen names it."""
    return shown.page.locator(".network .pass .said").evaluate_all("(all) => all.map((one) => one.textContent)")


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
    shown.page.locator(".network .pass").first.click()  # which ends the animation
    assert answers(shown) == ["positive 80.6 %", "negative 58.8 %", "negative 78.9 %"]
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
    shown.page.get_by_role("button", name="Start the walk").click()
    assert shown.page.evaluate("document.activeElement.textContent") == "Next"
    titles = []
    for step in range(1, 11):
        assert f"Step {step} of 10" in walk.inner_text()
        here = shown.page.locator(".map [aria-current]")
        assert here.count() == 1 and here.get_attribute("aria-label") == f"Step {step}: {walk.locator('h2').inner_text()}"
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
    assert answer(shown) == at_first and walk.is_hidden()
    assert shown.page.evaluate("document.activeElement.textContent").startswith("Start the walk")


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


# ------------------------------------------------------------------------------------------------------ the first screen


def test_the_first_screen_shows_the_network_and_the_answers_turning(opened: Any) -> None:  # noqa: F811
    """Without motion it stands still at the last pass; each other pass can be chosen, and shows its own attention."""
    shown = opened({}, **STILL)
    assert "several times" in shown.page.locator("header p").inner_text()
    assert answers(shown) == ["positive 80.6 %", "negative 58.8 %", "negative 78.9 %"]
    assert shown.page.locator(".network .turns").text_content() == "Pass 2 turns the answer."
    assert shown.page.get_by_role("button", name="Watch the passes").is_hidden()
    rows = shown.page.locator(".network .pass")
    last = shown.page.locator(".network .arcs").inner_html()
    assert [rows.nth(k).get_attribute("aria-pressed") for k in range(3)] == ["false", "false", "true"]
    rows.first.press("Enter")
    assert [rows.nth(k).get_attribute("aria-pressed") for k in range(3)] == ["true", "false", "false"]
    assert shown.page.locator(".network .arcs").inner_html() != last
    words = shown.page.locator(".network .word").evaluate_all("(all) => all.map((one) => one.firstChild.data)")
    assert words == tokens(shown)
    shown.page.locator(".network .word").nth(8).hover()
    assert shown.page.locator(".network .arcs path:not(.dim)").count() == 2 * len(words)  # of one word, in two heads


def test_the_passes_run_once_by_themselves_and_can_be_stopped(opened: Any) -> None:  # noqa: F811
    shown = opened({}, clock=True)
    clock, button = shown.page.clock, shown.page.locator(".cover .play")
    button.get_by_text("Stop").wait_for()  # it began when it was seen
    seen = []
    for _ in range(4):
        clock.run_for(2300)
        seen.append(sum(map(bool, answers(shown))))
    assert seen == [1, 2, 3, 3] or seen == [0, 1, 2, 3]  # the first frame may have come before or after
    assert "Watch the passes" in button.inner_text()
    button.click()
    clock.run_for(1000)
    assert answers(shown) == ["", "", ""] and "Stop" in button.inner_text()
    shown.page.get_by_label("Your sentence").fill("the film was dull")  # a new sentence ends it
    clock.run_for(100)
    assert all(words.startswith("negative") for words in answers(shown))
    assert shown.page.locator(".network .turns").text_content() == "No pass turns the answer."


def test_a_part_of_the_network_leads_to_its_step_or_to_its_numbers(opened: Any) -> None:  # noqa: F811
    shown = opened({}, **STILL)
    for part, step in (("words", 1), ("attention", 4), ("loop", 9)):
        shown.page.locator(f'.network [data-part="{part}"]').press("Enter")
        shown.settle()
        assert f"Step {step} of 10" in shown.page.get_by_label("Guided walk").inner_text(), part
        shown.page.get_by_role("button", name="Leave the walk").click()
        shown.settle()
    shown.page.get_by_role("button", name="Start the walk").click()
    shown.page.get_by_role("button", name="Step 9: The same layer, again").click()
    shown.settle()
    assert "Step 9 of 10" in shown.page.get_by_label("Guided walk").inner_text()
    drawn = opened(SMALL | {"recurrent_depth": 2}, **STILL)
    parts = drawn.page.locator(".network [data-part]").evaluate_all("(all) => all.map((one) => one.dataset.part)")
    for part in parts:
        drawn.page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = false })")
        drawn.page.locator(f'.network [data-part="{part}"]').press("Enter")
        drawn.settle()
        assert drawn.page.locator("details.stage[open]").count() >= 1, part


def test_the_picture_is_made_from_the_configuration_of_the_model(opened: Any) -> None:  # noqa: F811
    shown = opened(SMALL | {"layers": 2, "recurrent_depth": 3}, **STILL)
    network = shown.page.locator(".network")
    assert network.locator(".block rect").count() == 2
    assert network.locator(".loop .heading").text_content() == "the same 2 layers, 3 times"
    likeliest = network.locator(".pass .name").first.text_content()
    assert answer(shown).startswith(f"The likeliest next word: {likeliest}, ")
    shown.page.get_by_role("button", name="less: passes R").click()
    shown.page.get_by_role("button", name="less: passes R").click()
    shown.settle()
    assert network.locator(".loop").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_of_the_first_screen_and_of_the_walk_stands_out(opened: Any, scheme: str) -> None:  # noqa: F811
    for state in ({"tokens": "the film was zxcv and dull"}, {"step": 9, "tokens": "zxcv"}):
        shown = opened(state, color_scheme=scheme, **STILL)
        found = shown.page.evaluate(CONTRAST)
        assert len(found) > 150 and [words for contrast, words in found if contrast < 4.5] == []


BEYOND = """() => [...document.querySelectorAll(".network, .map")].filter((svg) => svg.clientWidth).flatMap((svg) => {
  const frame = svg.getBoundingClientRect();
  const out = ({ left, right, bottom }) => left < frame.left - 1 || right > frame.right + 1 || bottom > frame.bottom + 1;
  const texts = [...svg.querySelectorAll("text")].filter((one) => one.textContent);
  return texts.filter((one) => out(one.getBoundingClientRect())).map((one) => one.textContent);
})"""


def test_no_state_of_the_first_screen_scrolls_sideways_or_is_cut(opened: Any) -> None:  # noqa: F811
    many = {"tokens": [f"word{i}" for i in range(30)], "target": ["x" * 30] * 20, "d_model": 64, "heads": 8, "layers": 4}
    long = " ".join(["the film was not dull and nobody can claim it"] * 4)
    shown = opened({}, **STILL)
    for state in ({}, {"tokens": long}, {"recurrent_depth": 12}, many, {"step": 5}):
        shown.page.evaluate("(link) => { location.hash = link; }", "&".join(f"{k}={json.dumps(v)}" for k, v in state.items()))
        for width in (390, 600, 760, 1280):
            shown.page.set_viewport_size({"width": width, "height": 844})
            shown.settle()
            assert shown.page.evaluate("[document.documentElement.scrollWidth, innerWidth]") == [width, width]
            assert shown.page.evaluate(BEYOND) == [], (state, width)


# ------------------------------------------------------------------------------------------------------ a sentence


def test_an_empty_sentence_says_so_and_has_no_answer(opened: Any) -> None:  # noqa: F811
    shown = opened({}, **STILL)
    for typed, why in (("", "has no words"), ("  ", "has no words"), ("zxcv qwer", "knows none of these words")):
        shown.page.get_by_label("Your sentence").fill(typed)
        shown.settle()
        assert why in answer(shown) and "%" not in answer(shown)
        assert answers(shown) == ["", "", ""] and why in shown.page.locator(".unknown-words").first.inner_text()
        shown.page.locator('details[data-id="output/labels"]').scroll_into_view_if_needed()
        shown.settle()
        assert why in shown.page.locator('details[data-id="output/labels"] .quiet').inner_text()
        assert shown.page.locator(".likeliest").is_hidden()
        shown.page.evaluate("scrollTo(0, 0)")
    shown.page.get_by_role("button", name="Start the walk").click()
    assert "knows none of these words" in shown.page.locator(".says").inner_text()
    for step in range(2, 11):  # no step fails for want of a sentence
        shown.page.get_by_role("button", name=f"Step {step}:").click()
        shown.settle()
        assert "Write one in step 1" in shown.page.locator(".says").inner_text()
    shown.page.get_by_role("button", name="Step 1:").click()
    shown.page.get_by_label("The sentence of the walk").fill("")
    shown.settle()
    assert "has no words" in shown.page.locator(".says").inner_text()
    shown.page.get_by_label("The sentence of the walk").fill("the film was dull")
    shown.settle()
    assert "negative" in answer(shown) and "We follow" in shown.page.locator(".says").inner_text()


def test_unknown_words_are_marked_and_the_field_keeps_what_was_typed(opened: Any) -> None:  # noqa: F811
    shown = opened({}, **STILL)
    typed = "The  FILM was mesmerising, not a blockbuster"
    field = shown.page.get_by_label("Your sentence")
    field.fill(typed)
    shown.settle()
    assert shown.page.locator(".underlines .strange").all_inner_texts() == ["mesmerising", "blockbuster"]
    assert "“mesmerising” and “blockbuster” are not among" in shown.page.locator(".unknown-words").inner_text()
    assert shown.page.locator(".network .word.strange").count() == 2
    assert tokens(shown) == ["[CLS]", "the", "film", "was", "mesmerising", ",", "not", "a", "blockbuster", "[SEP]"]
    assert shown.page.locator(".tokens .strange input").evaluate_all("(all) => all.map((one) => one.value)") == [
        "mesmerising",
        "blockbuster",
    ]
    field.blur()
    assert field.input_value() == typed
    shown.page.get_by_role("button", name="Start the walk").click()
    again = shown.page.get_by_label("The sentence of the walk")
    assert again.input_value() == typed and "read as [UNK]" in shown.page.locator(".unread").inner_text()
    shown.page.get_by_role("button", name="Step 2:").click()
    shown.settle()
    shown.page.get_by_role("button", name="Step 1:").click()
    shown.settle()
    assert again.input_value() == typed
    shown.page.get_by_role("button", name="Leave the walk").click()
    shown.settle()
    assert field.input_value() == typed
    shown.page.wait_for_timeout(400)  # longer than the host waits for further changes
    linked = opened({}, link=shown.page.evaluate("location.hash"), **STILL)
    assert linked.page.get_by_label("Your sentence").input_value() == typed
    linked.page.get_by_role("button", name="remove token 5: mesmerising").click()
    linked.settle()
    assert linked.page.get_by_label("Your sentence").input_value() == "the film was, not a blockbuster"


# ------------------------------------------------------------------------------------------------------ a phone, and scrolling


def test_on_a_phone_the_header_is_low(opened: Any) -> None:  # noqa: F811
    """At most 120 px stand above the first screen, and above a step, also when something was changed."""
    shown = opened({}, **PHONE, **STILL)
    assert shown.page.locator(".cover").bounding_box()["y"] <= 120
    for button in ("Start the walk", "Watch the passes"):
        box = shown.page.locator(".cover button", has_text=button).bounding_box()
        assert box is None or box["y"] + box["height"] < 844, button  # the second is hidden without motion
    for step in (1, 5, 9):
        shown = opened({"step": step, "tokens": "the film was zxcv and not dull"}, **PHONE, **STILL)
        change(shown, step)
        for part in (".in-sight", ".walk"):
            box = shown.page.locator(part).bounding_box()
            assert (box["y"] + box["height"] if part == ".in-sight" else box["y"] - 16) <= 120, (step, part)
        shown.page.mouse.wheel(0, 600)
        shown.settle()
        assert shown.page.locator(".in-sight").bounding_box()["y"] == 0


def test_row_and_column_names_stay_in_sight_when_a_matrix_is_scrolled(opened: Any) -> None:  # noqa: F811
    shown = opened({"step": 2}, **PHONE, **STILL)
    box = shown.page.locator(".walk .box")
    box.evaluate("(box) => { box.scrollLeft = 300; box.scrollTop = 120; }")
    shown.page.wait_for_timeout(100)
    places = box.evaluate(
        "(box) => { const at = box.getBoundingClientRect(); const place = (node) => { const one = node.getBoundingClientRect();"
        " return [one.left - at.left, one.top - at.top, node.textContent]; };"
        " return { heads: [...box.querySelectorAll('tbody th')].map(place), first: place(box.querySelector('tbody td')),"
        " column: place(box.querySelectorAll('thead th')[1]) }; }"
    )
    assert places["heads"][0] == [pytest.approx(1, abs=1), pytest.approx(26, abs=1), "[CLS]"]  # below the names of columns
    assert all(left == pytest.approx(1, abs=1) for left, _, _ in places["heads"])
    assert places["column"][1] == pytest.approx(1, abs=1) and int(places["column"][2]) >= 5
    assert places["first"][1] == pytest.approx(26, abs=1)  # the numbers of [CLS] stand beside their name
    names = [name for _, _, name in places["heads"]]
    assert names[1] != "nobody" and set(names) < set(tokens(shown))
    box.focus()
    for _ in range(12):  # the keyboard reaches every row, none hidden by the first
        shown.page.keyboard.press("ArrowUp")
        cell = box.evaluate(
            "(box) => { const id = box.getAttribute('aria-activedescendant'); const cell = document.getElementById(id);"
            " const one = cell.getBoundingClientRect(), at = box.getBoundingClientRect();"
            " return [Number(id.split('-').at(-2)), Math.round(one.top - at.top)]; }"
        )
        assert cell[1] >= (26 if cell[0] == 0 else 50), cell
    assert cell[0] == 0
