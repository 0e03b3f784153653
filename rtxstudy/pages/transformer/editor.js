// The slider of the selected cell. It can also swing the value, to show what depends on it.

import { brief } from "../shared/grid.js";
import { element, still, unique } from "../shared/ui.js";

const REACH = 10; // the slider goes from −10 to 10
const PERIOD = 4000; // ms of a swing
const STEPS = 12; // of a swing, for readers who asked for less motion

/**
 * The bar below the page. It calls pin(value) to give the selected cell a value, release() to remove it, and close() when
 * the reader is done; write(value) gives the words for a number. open(title, value, pinned) shows a cell, follow(value,
 * pinned) updates its number, stop() ends a swing, hide() ends a swing and hides the bar. The end of a swing restores the
 * value from before it, so the cell that pin changes must still be the same.
 */
export function editor({ pin, release, close, write }) {
  const id = unique("cell");
  const title = element("p", { class: "what", id });
  const number = element("output", { class: "value" });
  const range = element("input", { type: "range", min: -REACH, max: REACH, step: 0.01, "aria-labelledby": id });
  const typed = element("input", {
    type: "text",
    inputmode: "decimal",
    size: 9,
    "aria-label": "value of the selected cell",
    autocomplete: "off",
  });
  const swing = element("button", { type: "button", class: "swing" });
  const back = element(
    "button",
    {
      type: "button",
      onclick: () => {
        stop();
        release();
      },
    },
    "Put back",
  );
  const done = element("button", { type: "button", "aria-label": "close the slider", onclick: () => leave() }, "×");
  const said = element("p", { class: "said", role: "status" });
  const root = element(
    "section",
    { class: "editor", "aria-label": "Selected cell", hidden: true },
    title,
    number,
    range,
    typed,
    swing,
    back,
    done,
    said,
  );
  let now = 0;
  let frame = 0;
  let typing = false; // while the reader types a number, nothing overwrites it
  let origin = null; // { value, pinned, start, step } of a swing

  const name = () => {
    swing.textContent = still() ? "Oscillate: next step" : origin ? "Stop" : "Oscillate";
    swing.setAttribute("aria-pressed", origin !== null);
  };

  const at = (phase) => origin.value + Math.max(1, Math.abs(origin.value) / 2) * Math.sin(2 * Math.PI * phase);

  function stop() {
    cancelAnimationFrame(frame);
    if (!origin) return;
    const { value, pinned } = origin;
    origin = null;
    name();
    if (pinned) pin(value);
    else release();
  }

  function tick(time) {
    origin.start ??= time;
    pin(at((time - origin.start) / PERIOD));
    frame = requestAnimationFrame(tick);
  }

  function oscillate() {
    if (origin && !still()) return stop();
    origin ??= { value: now, pinned: root.classList.contains("pinned"), start: null, step: 0 };
    if (still()) {
      cancelAnimationFrame(frame);
      origin.step += 1;
      if (origin.step >= STEPS) return stop();
      name();
      return pin(at(origin.step / STEPS));
    }
    name();
    frame = requestAnimationFrame(tick);
  }

  /** Ends a swing and keeps this value. */
  function hold(value) {
    cancelAnimationFrame(frame);
    origin = null;
    name();
    pin(value);
  }

  function follow(value, pinned) {
    now = value;
    number.textContent = write(value);
    range.value = Number.isFinite(value) ? value : 0;
    range.setAttribute("aria-valuetext", write(value));
    if (!typing) typed.value = Number.isFinite(value) ? String(Number(value.toPrecision(6))) : brief(value);
    root.classList.toggle("pinned", pinned);
    back.disabled = !pinned;
  }

  function hide() {
    stop();
    root.hidden = true;
  }

  function leave() {
    hide();
    close();
  }

  swing.addEventListener("click", oscillate);
  range.addEventListener("input", () => hold(Number(range.value)));
  typed.addEventListener("input", () => {
    typing = true;
  });
  typed.addEventListener("change", () => {
    const value = Number(typed.value.trim().replace("−", "-").replace(",", "."));
    const good = typed.value.trim() !== "" && Number.isFinite(value);
    said.textContent = good ? "" : `“${typed.value}” is not a number; the cell keeps its value.`;
    typing = false;
    if (good) hold(value);
    else follow(now, root.classList.contains("pinned"));
  });
  root.addEventListener("keydown", (event) => {
    if (event.key === "Escape") leave();
  });

  return {
    root,
    follow,
    stop,
    hide,
    open(words, value, pinned) {
      typing = false;
      title.textContent = words;
      said.textContent = "";
      root.hidden = false;
      follow(value, pinned);
      name();
      range.focus({ preventScroll: true });
    },
  };
}
