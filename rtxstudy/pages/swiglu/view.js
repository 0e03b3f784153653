// The SwiGLU page: sliders, four charts, a heat map and tables. Every change draws everything again from the state.

import * as core from "./core.js";
import { REACH, map, scale } from "./map.js";
import { NAMES, limits, readings } from "./words.js";
import { minus, plot, span } from "../shared/plot.js";
import { drawing, element, slider, toggle } from "../shared/ui.js";

const POINTS = 240; // of a curve
const NARROW = 240; // px; the least width, also of a chart that is not shown yet
const LABELS = { beta: "β", w1: "W₁", b1: "b₁", w2: "W₂", b2: "b₂", w3: "W₃", x: "x" };

/** Draws the page in `root`. rtxstudy/pages/__init__.py says what a host expects. */
export function mount(root, state, changed) {
  let now = core.patched(core.initial(), state);
  const page = build((patch) => {
    now = core.patched(now, patch);
    page.show(now);
    changed(Object.fromEntries(Object.keys(patch).map((name) => [name, now[name]])));
  });
  root.replaceChildren(page.root);
  page.show(now);
  let width = root.clientWidth;
  const watch = new ResizeObserver(() => {
    if (root.clientWidth === width) return;
    width = root.clientWidth;
    page.show(now);
  });
  watch.observe(root);
  return {
    set(whole) {
      now = core.patched(core.initial(), whole);
      page.show(now);
    },
    state: () => now,
    destroy() {
      watch.disconnect();
      root.replaceChildren();
    },
  };
}

// --------------------------------------------------------------------------------------------------------------- building

/** The page without its numbers. `show(state)` draws them; `change(patch)` is called at changes by the reader. */
function build(change) {
  const controls = settings(change);
  const charts = {
    curve: chart("The curve", { swiglu: NAMES.swiglu }),
    parts: chart("What it is made of", { gate: NAMES.gate, opened: NAMES.opened, value: NAMES.value, swiglu: NAMES.swiglu }),
    detail: chart("Swish, and its two limits", { opened: "Swish", half: "z/2 (β → 0)", relu: "ReLU (β → ∞)" }),
    slope: chart("The gradient", { swiglu: "slope of W₃ · SwiGLU", gate: "through the gate", value: "through the value" }),
    map: chart("Gate against value", {}),
  };
  const ends = element("div", { class: "limits" });
  const betas = [0, 1, core.NUMBERS.beta.most].map((beta) => button(`β to ${beta}`, () => change({ beta })));
  charts.detail.root.append(ends, element("p", { class: "buttons" }, ...betas));
  charts.map.root.append(scale());
  const drawMap = map(charts.map.svg);
  const table = readings();
  const figures = Object.values(charts).map(({ root }) => root);
  const columns = element("div", { class: "columns" }, controls.root, element("div", { class: "charts" }, ...figures, table.root));
  return {
    root: element("div", { class: "swiglu-page" }, introduction(), columns),
    show(state) {
      controls.show(state);
      drawCurve(charts.curve, state);
      drawParts(charts.parts, state);
      drawDetail(charts.detail, state);
      drawSlope(charts.slope, state);
      charts.map.said.textContent = drawMap(state, room(charts.map));
      ends.replaceChildren(...limits(state.beta, REACH));
      table.show(state);
    },
  };
}

function introduction() {
  const beta = () => element("sub", {}, "β");
  return element(
    "header",
    {},
    element("h1", {}, "SwiGLU: a gate that the input opens"),
    element(
      "p",
      { class: "formula" },
      ...["SwiGLU(x) = Swish", beta(), "(W₁x + b₁) · (W₂x + b₂)", element("br"), "Swish", beta(), "(z) = z · σ(βz)"],
      ...[element("br"), "output(x) = W₃ · SwiGLU(x)"],
    ),
    element(
      "p",
      {},
      "The unit has two halves. The gate decides how much of the value comes through. σ is the logistic function, which ",
      "runs from 0 (shut) to 1 (open); β says how abruptly. W₃ leads from the product back to the width of the model. In a ",
      "model W₁, W₂ and W₃ are matrices and β is 1. Here each is one number, so that the whole unit can be drawn.",
    ),
  );
}

function button(words, onclick) {
  return element("button", { type: "button", onclick }, words);
}

/** The sliders, the functions to compare with, and the button that resets them. */
function settings(change) {
  let compared = [];
  const sliders = Object.entries(core.NUMBERS).map(([name, { least, most, step, start }]) => {
    const input = (value) => change({ [name]: value });
    const show = (value) => minus(value, 2);
    return [name, slider({ label: LABELS[name], min: least, max: most, step, value: start, show, input })];
  });
  const toggles = Object.entries(core.COMPARED).map(([name, { label }]) => {
    const flip = (on) => change({ compare: on ? [...compared, name] : compared.filter((other) => other !== name) });
    const made = toggle({ label, value: false, change: flip });
    made.root.append(swatch(name));
    return [name, made];
  });
  const fields = toggles.map(([, made]) => made.root);
  return {
    root: element(
      "section",
      { class: "controls", "aria-label": "Settings" },
      ...sliders.map(([, made]) => made.root),
      element("fieldset", {}, element("legend", {}, "Compare with"), ...fields),
      button("Reset", () => change(core.initial())),
    ),
    show(state) {
      compared = state.compare;
      for (const [name, made] of sliders) made.set(state[name]);
      for (const [name, made] of toggles) made.set(compared.includes(name));
    },
  };
}

/** A sample of a line, for the key. */
function swatch(kind) {
  const line = drawing("path", { class: `curve ${kind}`, d: "M1 5L33 5" });
  return drawing("svg", { class: "swatch", width: 34, height: 10, "aria-hidden": "true" }, line);
}

/** A chart with its heading, a key of the lines that are always there (kind → words), and its description. */
function chart(title, key) {
  const entry = (kind, words) => element("span", {}, swatch(kind), ` ${words}`);
  const svg = drawing("svg", { role: "img", width: "100%" });
  const legend = element("p", { class: "key" }, ...Object.entries(key).map(([kind, words]) => entry(kind, words)));
  const own = legend.childNodes.length;
  const said = element("p", { class: "said" });
  return {
    svg,
    said,
    root: element("figure", {}, element("figcaption", {}, element("h2", {}, title), legend), svg, said),
    /** Puts the compared functions into the key, after the lines that are always there. */
    compare(names) {
      while (legend.childNodes.length > own) legend.lastChild.remove();
      for (const name of names) legend.append(entry(name, core.COMPARED[name].label));
    },
  };
}

// ---------------------------------------------------------------------------------------------------------------- drawing

const curve = (f) => core.sample(f, -REACH, REACH, POINTS);

const room = ({ svg }) => Math.max(NARROW, svg.parentNode.clientWidth);

function draw(made, what, words) {
  const width = room(made);
  plot(made.svg, { x: [-REACH, REACH], width, height: Math.min(300, Math.max(220, 0.6 * width)), words, ...what });
  made.said.textContent = words;
}

const at = (state) => `At x = ${minus(state.x, 2)}`;

function drawCurve(made, state) {
  const others = state.compare.map((name) => [name, curve((x) => core.COMPARED[name].at(state, x))]);
  const lines = [...others, ["swiglu", curve((x) => core.swiglu(state, x).out)]];
  const { out } = core.swiglu(state, state.x);
  const said =
    " ReLU, GELU and SiLU take W₁x + b₁ and have no value to multiply with; GeGLU has GELU instead of Swish. W₃ multiplies all.";
  made.compare(state.compare);
  draw(
    made,
    {
      y: span(lines.map(([, points]) => points)),
      xLabel: "x",
      yLabel: "output",
      lines,
      guides: [state.x],
      dots: [[state.x, out]],
    },
    `${at(state)} the output is ${minus(out, 3)}.${others.length ? said : ""}`,
  );
}

function drawParts(made, state) {
  const part = (name) => curve((x) => core.swiglu(state, x)[name]);
  const lines = [["gate", part("gate")], ["value", part("value")], ["opened", part("opened")], ["swiglu", part("out")]];
  const { opened, value, out } = core.swiglu(state, state.x);
  draw(
    made,
    {
      y: span(lines.slice(0, 3).map(([, points]) => points)), // the product may leave this chart; the first chart shows it
      xLabel: "x",
      yLabel: "the parts",
      lines,
      guides: [state.x],
      dots: [opened, value, out].map((height) => [state.x, height]),
    },
    `${at(state)}: Swish of the gate ${minus(opened, 3)} × value ${minus(value, 3)} × W₃ ${minus(state.w3, 2)} = ${minus(out, 3)}.`,
  );
}

function drawDetail(made, state) {
  const { gate, opened } = core.swiglu(state, state.x);
  const swish = curve((z) => core.swish(z, state.beta));
  const dip = core.dip(state.beta);
  const lowest =
    dip && dip.z >= -REACH
      ? `The minimum is ${minus(dip.value, 3)}, at z = ${minus(dip.z, 3)}, where the slope is zero. Left of it the curve falls.`
      : `Within ±${REACH} there is no minimum.`;
  draw(
    made,
    {
      y: [-3.3, 6.3],
      xLabel: "z, the input of the gate",
      yLabel: "Swish(z)",
      lines: [["half", curve((z) => z / 2)], ["relu", curve(core.relu)], ["opened", swish]],
      guides: [gate],
      dots: [[gate, opened]],
    },
    `At β = ${minus(state.beta, 2)}. ${lowest}`,
  );
}

function drawSlope(made, state) {
  const part = (name) => curve((x) => core.slopes(state, x)[name]);
  const others = state.compare.map((name) => [name, curve((x) => core.COMPARED[name].slope(state, x))]);
  const lines = [["gate", part("throughGate")], ["value", part("throughValue")], ...others, ["swiglu", part("x")]];
  const { x, throughGate, throughValue } = core.slopes(state, state.x);
  made.compare(state.compare);
  draw(
    made,
    {
      y: span(lines.map(([, points]) => points)),
      xLabel: "x",
      yLabel: "slope in x",
      lines,
      guides: [state.x],
      dots: [[state.x, x]],
    },
    `${at(state)} the slope is ${minus(x, 3)}: ${minus(throughGate, 3)} through the gate and ${minus(throughValue, 3)} through the value.`,
  );
}
