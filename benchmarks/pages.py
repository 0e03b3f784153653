"""The transformer page in headless Chromium: frames a second while a value oscillates, and milliseconds a recompute.

    python benchmarks/pages.py [--seconds 5] [--rounds 20]

Oscillating: 8 tokens × d_model 16 × 2 layers, with the stages that are open at first and with one more layer open whole; the
page aims at 60 frames a second, which is also the most a browser draws. Recomputing: 32 tokens × d_model 64 × 6 layers of
encoder and decoder, every number anew; the page aims at less than 100 ms. "computed" is the mathematics alone, "drawn" the
whole frame with what is in sight. Medians, and the slowest of all rounds.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

from rtxlib.pages import static

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

# The page asks for its frame while the event is handled, so it stands between the two asked for here.
FRAME = """(value) => new Promise((done) => {
  let started = 0;
  requestAnimationFrame(() => { started = performance.now(); });
  const range = document.querySelector(".editor input[type=range]");
  range.value = value;
  range.dispatchEvent(new Event("input"));
  requestAnimationFrame(() => { document.body.offsetHeight; done(performance.now() - started); });
})"""


def opened(browser: Any, folder: Path, state: dict[str, Any], stages: tuple[str, ...] = ()) -> Any:
    """A page at this state with more stages open, a cell of the first embedding selected and in sight of the attention."""
    file = folder / "page.html"
    file.write_text(static.page("transformer", state), encoding="utf-8")
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(file.as_uri())
    page.wait_for_selector(".answer")
    for stage in ("encoder/token", *stages):
        page.evaluate("(stage) => { document.querySelector(`[data-id='${stage}']`).open = true }", stage)
        page.wait_for_timeout(100)
    page.locator("details[data-id='encoder/token'] td").nth(3).click()
    page.evaluate("scrollTo(0, 0)")
    page.wait_for_timeout(300)
    return page


def rate(browser: Any, folder: Path, seconds: float, where: str, stages: tuple[str, ...] = ()) -> str:
    """Frames a second while the selected cell oscillates, with the part of the page ``where`` in sight."""
    page = opened(browser, folder, SMALL, stages)
    page.evaluate("(where) => document.querySelector(where).scrollIntoView()", where)
    page.get_by_role("button", name="Oscillate").click()
    page.wait_for_timeout(300)
    times = page.evaluate(FRAMES, seconds)
    gaps = [after - before for before, after in pairwise(times)]
    page.close()
    return f"{1000 / statistics.mean(gaps):5.1f} frames a second, slowest {max(gaps):4.0f} ms ({len(gaps)} frames)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=20)
    given = parser.parse_args()
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if not chromium:
        sys.exit("There is no Chromium here; install it, or name it in CHROMIUM.")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        print(f"Chromium {browser.version}, {os.cpu_count()} cores")
        layer = ("encoder/0/0/attention/query", "encoder/0/0/attention/output", "encoder/0/0/feedforward/inner")
        print("oscillating, as it opens    ", rate(browser, folder, given.seconds, ".transformer"))
        attention = "[data-id='encoder/0/0/attention/weights']"
        print("oscillating, at the scores   ", rate(browser, folder, given.seconds, attention))
        queries = "[data-id='encoder/0/0/attention/query']"
        print("oscillating, a layer open    ", rate(browser, folder, given.seconds, queries, layer))

        page = opened(browser, folder, LARGE)
        code = static.script("transformer/model.js")
        computed = page.evaluate(
            f"""([state, rounds]) => {{ {code}
            const whole = transformer_model.complete(state), model = transformer_model.build(whole);
            return Array.from({{ length: rounds + 3 }}, () => {{
              const started = performance.now();
              transformer_model.compute(whole, model);
              return performance.now() - started;
            }}).slice(3); }}""",
            [LARGE, given.rounds],
        )
        drawn = [page.evaluate(FRAME, 0.1 * round_) for round_ in range(given.rounds + 3)][3:]
        for what, times in (("computed", computed), ("drawn", drawn)):
            print(f"a recompute, {what:8}         {statistics.median(times):5.1f} ms, slowest {max(times):4.0f} ms")
        browser.close()


if __name__ == "__main__":
    main()
