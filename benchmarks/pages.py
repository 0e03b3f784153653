"""The transformer page in headless Chromium: frames per second while a value oscillates, and milliseconds per recompute.

Oscillating: 8 tokens × d_model 16 × 2 layers, with the stages that are open at first, and with one more layer fully open. The
page aims at 60 frames per second, which is also the most that the browser draws.

Recomputing: 32 tokens × d_model 64 × 6 layers of encoder and decoder, where every number changes. The page aims at less than
100 ms. "computed" is the mathematics alone, "drawn" the whole frame with everything in sight.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.measure import Row, Taken, not_measured, row
from benchmarks.memory import of_commands
from rtxstudy.pages import static

SECONDS = 3.0  # of oscillation per round
FRAMES_PER_SECOND, RECOMPUTE_MS = 60.0, 100.0
WORD = 2  # row of the embedding matrix of the first source word, after <s> and </s>; encoder and decoder hang on it
AIM = 0.99  # a browser that draws every frame reports about 59.9
_LAYER = ("encoder/0/0/attention/query", "encoder/0/0/attention/output", "encoder/0/0/feedforward/inner")
PLACES = {  # what is in sight -> its selector, and the stages to open
    "as the page opens": (".transformer", ()),
    "at the scores": ("[data-id='encoder/0/0/attention/weights']", ()),
    "a layer open": ("[data-id='encoder/0/0/attention/query']", _LAYER),
}
SMALL = {
    "tokens": [f"word{i}" for i in range(8)],
    "target": [f"mot{i}" for i in range(7)],
    "d_model": 16,
    "layers": 2,
    "d_ff": 64,
}
LARGE = {"tokens": [f"word{i}" for i in range(32)], "target": [f"mot{i}" for i in range(31)], "d_model": 64, "heads": 8}
LARGE |= {"layers": 6, "d_ff": 256}

FRAMES = """(seconds) => new Promise((done) => {
  const times = [];
  const tick = (time) => {
    times.push(time);
    if (time - times[0] < 1000 * seconds) requestAnimationFrame(tick); else done(times);
  };
  requestAnimationFrame(tick);
})"""

# The page requests its frame while it handles the event, so its frame comes between the two requested here.
FRAME = """(value) => new Promise((done) => {
  let started = 0;
  requestAnimationFrame(() => { started = performance.now(); });
  const range = document.querySelector(".editor input[type=range]");
  range.value = value;
  range.dispatchEvent(new Event("input"));
  requestAnimationFrame(() => { document.body.offsetHeight; done(performance.now() - started); });
})"""


def opened(browser: Any, folder: Path, state: dict[str, Any], stages: tuple[str, ...] = ()) -> Any:
    """A page at this state with more stages open and a cell of the first embedding selected."""
    file = folder / "page.html"
    file.write_text(static.page("transformer", state), encoding="utf-8")
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(file.as_uri())
    page.wait_for_selector(".answer")
    for stage in ("encoder/token", *stages):
        page.evaluate("(stage) => { document.querySelector(`[data-id='${stage}']`).open = true }", stage)
        page.wait_for_timeout(100)
    cell = WORD * state["d_model"] + 3
    page.locator("details[data-id='encoder/token'] td").nth(cell).click()
    page.evaluate("scrollTo(0, 0)")
    page.wait_for_timeout(300)
    return page


def rates(browser: Any, folder: Path, rounds: int, where: str, stages: tuple[str, ...] = ()) -> list[float]:
    """Frames per second, once per round, while the selected cell oscillates and the part ``where`` of the page is in sight."""
    page = opened(browser, folder, SMALL, stages)
    page.evaluate("(where) => document.querySelector(where).scrollIntoView()", where)
    page.get_by_role("button", name="Oscillate").click()
    page.wait_for_timeout(300)
    measured = []
    for _ in range(rounds):
        times = page.evaluate(FRAMES, SECONDS)
        measured.append(1000 * (len(times) - 1) / (times[-1] - times[0]))
    page.close()
    return measured


def recomputes(browser: Any, folder: Path, rounds: int) -> dict[str, list[float]]:
    """Milliseconds per recompute, by "computed" and "drawn"."""
    page = opened(browser, folder, LARGE)
    code = static.script("transformer/state.js", "transformer/model.js")
    changed = page.evaluate(
        f"""([state, cell]) => {{ {code}
        const scores = (given) => {{
          const whole = transformer_state.complete(given);
          const found = transformer_model.compute(whole, transformer_model.build(whole));
          return [...found.values.get("encoder/0/0/attention/scores/0").data];
        }};
        const [before, after] = [scores(state), scores({{ ...state, edits: {{ [cell]: 2.5 }} }})];
        return before.some((value, i) => value !== after[i]); }}""",
        [LARGE, f"weights/table[{WORD},3]"],
    )
    assert changed, "the cell that is edited changes no score of the encoder"
    computed = page.evaluate(
        f"""([state, rounds]) => {{ {code}
        const whole = transformer_state.complete(state), model = transformer_model.build(whole);
        return Array.from({{ length: rounds + 3 }}, () => {{
          const started = performance.now();
          transformer_model.compute(whole, model);
          return performance.now() - started;
        }}).slice(3); }}""",
        [LARGE, rounds],
    )
    drawn = [page.evaluate(FRAME, 0.1 * number) for number in range(rounds + 3)][3:]
    page.close()
    return {"computed": computed, "drawn": drawn}


def rows(rounds: int, short: bool) -> Iterator[Row]:
    names = ("frames a second while a value oscillates", "a recompute of the transformer page")
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if not chromium:
        for name, unit in zip(names, ("frames/s", "ms"), strict=True):
            yield not_measured(name, unit, 1.0, "there is no Chromium here; install it, or name it in CHROMIUM")
        return
    from playwright.sync_api import sync_playwright  # only this benchmark needs it

    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        peaks: list[float] = []  # of Chromium
        where = f"Chromium {browser.version}, headless; the peer is the limit"
        for what, (place, stages) in PLACES.items():
            with of_commands(peaks):
                found = rates(browser, folder, rounds, place, stages)
            settings = f"8 tokens × 16 × 2 layers, {SECONDS} s a round; {where}"
            limits = [FRAMES_PER_SECOND] * rounds
            yield row(f"{names[0]}, {what}", Taken.of(found, peaks[-1]), limits, "frames/s", AIM, ("playwright",), settings)
        with of_commands(peaks):
            both = recomputes(browser, folder, 4 * rounds)
        for what, times in both.items():
            settings = f"32 tokens × 64 × 6 layers of encoder and decoder; {where}"
            limits = [RECOMPUTE_MS] * len(times)
            taken = Taken.of(times, peaks[-1])
            yield row(f"{names[1]}, {what}", taken, limits, "ms", 1.0, ("playwright",), settings, less_is_better=True)
        browser.close()
