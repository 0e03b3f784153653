// The SwiGLU page: sliders, four charts, a heat map and what they say at one x. Everything is drawn anew from the state.

import * as core from "./core.js";
import { frame, minus, plot, span } from "../shared/plot.js";
import { drawing, element, slider, toggle } from "../shared/ui.js";

const REACH = 6; // charts and map reach from −6 to 6
const POINTS = 240; // of a curve
const CELLS = 24; // of the map, each way
const SIGNS = 3; // every so many cells one carries its sign, for readers who cannot tell the colours apart
const LABELS = { beta: "β", w1: "W₁", b1: "b₁", w2: "W₂", b2: "b₂", x: "x" };
const STEPS = { x: "x", w1: "W₁", b1: "b₁", w2: "W₂", b2: "b₂", beta: "β" };
const NARROW = 240; // px: a chart that is not shown yet has no width of its own

const fixed = (value, decimals = 5) => minus(value, decimals);

/** Draws the page in `root`; see rtxlib.pages for what is asked of it. */
export function mount(root, state, changed) {
  let now = core.patched(core.initial(), state);
  const page = build((patch) => {
    const next = core.patched(now, patch);
    const names = Object.keys(patch);
    now = next;
    page.show(now);
    changed(Object.fromEntries(names.map((name) => [name, now[name]])));
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

/** The page without its numbers; `show(state)` draws them, `change(patch)` hears the reader. */
function build(change) {
  const sliders = Object.entries(core.NUMBERS).map(([name, { least, most, step, start }]) => [
    name,
    slider({ label: LABELS[name], min: least, max: most, step, value: start, show: (value) => fixed(value, 2), input: (value) => change({ [name]: value }) }),
  ]);
  let compared = [];
  const toggles = Object.entries(core.COMPARED).map(([name, { label }]) => {
    const flip = (on) => change({ compare: on ? [...compared, name] : compared.filter((other) => other !== name) });
    const made = toggle({ label, value: false, change: flip });
    made.root.append(swatch(name));
    return [name, made];
  });
  const charts = {
    curve: chart("The curve", ["swiglu"]),
    parts: chart("What it is made of", ["gate", "opened", "value", "swiglu"]),
    detail: chart("Swish, and its two limits", ["opened", "half", "relu"], { opened: "Swish", half: "z/2 (β → 0)", relu: "ReLU (β → ∞)" }),
    slope: chart("The gradient", ["swiglu", "gate", "value"], { swiglu: "slope of SwiGLU", gate: "through the gate", value: "through the value" }),
    map: chart("Gate against value", []),
  };
  const limits = element("div", { class: "limits" });
  const button = (words, patch) => element("button", { type: "button", onclick: () => change(patch) }, words);
  charts.detail.root.append(limits, element("p", { class: "buttons" }, button("β to 0", { beta: 0 }), button("β to 1", { beta: 1 }), button("β to 20", { beta: core.NUMBERS.beta.most })));
  charts.map.root.append(scale());
  const table = readings();
  const controls = element(
    "section",
    { class: "controls", "aria-label": "Settings" },
    ...sliders.map(([, made]) => made.root),
    element("fieldset", {}, element("legend", {}, "Compare with"), ...toggles.map(([, made]) => made.root)),
    button("Reset", core.initial()),
  );
  return {
    root: element(
      "div",
      { class: "swiglu-page" },
      introduction(),
      element("div", { class: "columns" }, controls, element("div", { class: "charts" }, ...Object.values(charts).map(({ root }) => root), table.root)),
    ),
    show(state) {
      compared = state.compare;
      for (const [name, made] of sliders) made.set(state[name]);
      for (const [name, made] of toggles) made.set(compared.includes(name));
      drawCurve(charts.curve, state);
      drawParts(charts.parts, state);
      drawDetail(charts.detail, state);
      drawSlope(charts.slope, state);
      drawMap(charts.map, state);
      limits.replaceChildren(...sayLimits(state.beta));
      table.show(state);
    },
  };
}

function introduction() {
  return element(
    "header",
    {},
    element("h1", {}, "SwiGLU: a gate that the input opens"),
    element("p", { class: "formula" }, "SwiGLU(x) = Swish", element("sub", {}, "β"), "(W₁x + b₁) · (W₂x + b₂)", element("br"), "Swish", element("sub", {}, "β"), "(z) = z · σ(βz)"),
    element(
      "p",
      {},
      "One half of the unit, the gate, decides how much of the other half, the value, comes through. σ is the logistic function, which runs from 0 (shut) to 1 (open); ",
      "β says how abruptly. In a model W₁ and W₂ are matrices and β is 1; here each is one number, so that the whole unit can be drawn.",
    ),
  );
}

/** A line as it is drawn, to stand beside its name. */
function swatch(kind) {
  return drawing("svg", { class: "swatch", width: 34, height: 10, "aria-hidden": "true" }, drawing("path", { class: `curve ${kind}`, d: "M1 5L33 5" }));
}

const WORDS = { swiglu: "SwiGLU", gate: "gate, W₁x + b₁", opened: "Swish of the gate", value: "value, W₂x + b₂" };

/** A chart with its heading and its key; `key` of lines that are always there. */
function chart(title, key, words = WORDS) {
  const svg = drawing("svg", { role: "img", width: "100%" });
  const legend = element("p", { class: "key" }, ...key.map((kind) => entry(kind, words[kind])));
  const own = legend.childNodes.length;
  const note = element("p", { class: "said" });
  return {
    svg,
    note,
    root: element("figure", {}, element("figcaption", {}, element("h2", {}, title), legend), svg, note),
    /** What is compared comes and goes behind the lines that are always there. */
    compare(names) {
      while (legend.childNodes.length > own) legend.lastChild.remove();
      for (const name of names) legend.append(entry(name, core.COMPARED[name].label));
    },
  };
}

function entry(kind, words) {
  return element("span", {}, swatch(kind), ` ${words}`);
}

/** Colours of the map beside their numbers. */
function scale() {
  const step = (value) => {
    const patch = drawing("svg", { width: 16, height: 16, "aria-hidden": "true" }, drawing("rect", { class: "patch", width: 16, height: 16, style: `fill: ${shade(value)}` }));
    return element("span", {}, patch, ` ${minus(value)}`);
  };
  return element("p", { class: "key scale" }, ...[-36, -9, -1, 0, 1, 9, 36].map(step));
}

// ---------------------------------------------------------------------------------------------------------------- drawing

const curve = (f) => core.sample(f, -REACH, REACH, POINTS);

function draw({ svg, note }, settings, words) {
  const width = Math.max(NARROW, svg.parentNode.clientWidth);
  plot(svg, { x: [-REACH, REACH], width, height: Math.min(300, Math.max(220, 0.6 * width)), words, ...settings });
  note.textContent = words;
}

function drawCurve(made, state) {
  const own = curve((x) => core.swiglu(state, x).out);
  const others = state.compare.map((name) => [name, curve((x) => core.COMPARED[name].at(state, x))]);
  const out = core.swiglu(state, state.x).out;
  made.compare(state.compare);
  const lines = [...others, ["swiglu", own]];
  const said = lines.length > 1 ? " ReLU, GELU and SiLU take W₁x + b₁ and have no value to multiply with; GeGLU has GELU in Swish's place." : "";
  draw(
    made,
    { y: span(lines.map(([, points]) => points)), xLabel: "x", yLabel: "what comes out", lines, guides: [state.x], dots: [[state.x, out]] },
    `At x = ${fixed(state.x, 2)} SwiGLU gives ${fixed(out, 3)}.${said}`,
  );
}

function drawParts(made, state) {
  const part = (name) => curve((x) => core.swiglu(state, x)[name]);
  const lines = [["gate", part("gate")], ["value", part("value")], ["opened", part("opened")], ["swiglu", part("out")]];
  const { opened, value, out } = core.swiglu(state, state.x);
  const y = span(lines.slice(0, 3).map(([, points]) => points)); // the product may leave the chart, where the first shows it
  draw(
    made,
    { y, xLabel: "x", yLabel: "the parts", lines, guides: [state.x], dots: [[state.x, opened], [state.x, value], [state.x, out]] },
    `At x = ${fixed(state.x, 2)}: Swish of the gate ${fixed(opened, 3)} × value ${fixed(value, 3)} = ${fixed(out, 3)}.`,
  );
}

function drawDetail(made, state) {
  const lines = [["half", curve((z) => z / 2)], ["relu", curve(core.relu)], ["opened", curve((z) => core.swish(z, state.beta))]];
  const { gate, opened } = core.swiglu(state, state.x);
  const dip = core.dip(state.beta);
  const low = dip && dip.z >= -REACH ? `It is least at z = ${fixed(dip.z, 3)}, where it is ${fixed(dip.value, 3)} and its slope is nought; left of that it falls.` : `Within ±${REACH} it has no lowest point of its own.`;
  draw(
    made,
    { y: [-3.3, 6.3], xLabel: "z, what enters the gate", yLabel: "Swish(z)", lines, guides: [gate], dots: [[gate, opened]] },
    `At β = ${fixed(state.beta, 2)}. ${low}`,
  );
}

function drawSlope(made, state) {
  const part = (name) => curve((x) => core.slopes(state, x)[name]);
  const others = state.compare.map((name) => [name, curve((x) => core.COMPARED[name].slope(state, x))]);
  const lines = [["gate", part("throughGate")], ["value", part("throughValue")], ...others, ["swiglu", part("x")]];
  const at = core.slopes(state, state.x);
  made.compare(state.compare);
  draw(
    made,
    { y: span(lines.map(([, points]) => points)), xLabel: "x", yLabel: "slope in x", lines, guides: [state.x], dots: [[state.x, at.x]] },
    `At x = ${fixed(state.x, 2)} the slope is ${fixed(at.x, 3)}: ${fixed(at.throughGate, 3)} through the gate and ${fixed(at.throughValue, 3)} through the value.`,
  );
}

/** Blue above nought, red below, the stronger the larger: by the square root, so that the small negative values show. */
function shade(value) {
  const part = Math.min(100, Math.round(100 * Math.sqrt(Math.abs(value)) / REACH));
  return `color-mix(in srgb, var(--${value < 0 ? "negative" : "positive"}) ${part}%, var(--paper))`;
}

function drawMap(made, state) {
  const { svg } = made;
  const width = Math.min(420, Math.max(NARROW, svg.parentNode.clientWidth));
  const settings = { width, height: width, x: [-REACH, REACH], y: [-REACH, REACH] };
  const box = frame(settings);
  const [across, down] = [(box.right - box.left) / CELLS, (box.bottom - box.top) / CELLS];
  const cells = [...core.heat(state.beta, CELLS, REACH)].flatMap((value, at) => {
    const [column, row] = [at % CELLS, Math.floor(at / CELLS)];
    const [x, y] = [box.left + column * across, box.top + row * down];
    const cell = drawing("rect", { class: "cell", x, y, width: across + 0.3, height: down + 0.3, style: `fill: ${shade(value)}` });
    if (column % SIGNS !== 1 || row % SIGNS !== 1) return [cell];
    return [cell, drawing("text", { class: "sign", x: x + across / 2, y: y + down / 2 }, value < 0 ? "−" : "+")];
  });
  cells.sort((one, other) => (one.tagName === "text") - (other.tagName === "text")); // signs above all cells
  const { gate, value, out } = core.swiglu(state, state.x);
  const ends = [-REACH, REACH].map((x) => core.swiglu(state, x)).map((end) => [end.gate, end.value]);
  const outside = Math.max(Math.abs(gate), Math.abs(value)) > REACH ? ", outside this map" : "";
  const words =
    `Colour: Swish of the gate × value; blue with + is above nought, red with − below. As x runs from −${REACH} to ${REACH}, the unit walks ` +
    `along the line; the curve above is what it meets. At x = ${fixed(state.x, 2)} it stands at gate ${fixed(gate, 2)}, value ${fixed(value, 2)}${outside}: ${fixed(out, 3)}.`;
  plot(svg, { ...settings, xLabel: "gate, W₁x + b₁", yLabel: "value, W₂x + b₂", lines: [["halo", ends], ["walk", ends]], dots: [[gate, value]], under: cells, words });
  svg.setAttribute("width", width);
  made.note.textContent = words;
}

// ------------------------------------------------------------------------------------------------------------------ words

function sayLimits(beta) {
  const { half, relu } = core.distances(beta, REACH);
  const limit = (head, words) => element("p", {}, element("strong", {}, head), words);
  return [
    limit(
      "β → 0: ",
      `σ(0) = ½, so the gate neither opens nor shuts. Swish becomes z/2, and SwiGLU half the product of two straight lines (a bilinear unit). Now Swish is up to ${fixed(half, 3)} away from z/2 within ±${REACH}.`,
    ),
    limit(
      "β → ∞: ",
      `the gate is either open or shut. Swish becomes ReLU, and SwiGLU max(0, W₁x + b₁) · (W₂x + b₂). Now Swish is at most ${fixed(relu, 3)} away from ReLU.`,
    ),
  ];
}

/** Two tables: every value and slope at x, and the slope of SwiGLU in each of its numbers. */
function readings() {
  const values = element("tbody");
  const steps = element("tbody");
  const cell = (name, value) => element("td", { "data-number": name }, fixed(value));
  const row = (words, ...cells) => element("tr", {}, element("th", { scope: "row" }, words), ...cells);
  const head = (...words) => element("thead", {}, element("tr", {}, ...words.map((word) => element("th", { scope: "col" }, word))));
  const title = element("h2");
  return {
    root: element(
      "section",
      { class: "readings" },
      title,
      element("table", {}, head("", "value", "slope in x"), values),
      element("table", {}, element("caption", {}, "How SwiGLU answers to each of its numbers"), head("in", "slope"), steps),
    ),
    show(state) {
      const at = core.swiglu(state, state.x);
      const slope = core.slopes(state, state.x);
      title.textContent = `At x = ${fixed(state.x, 2)}`;
      values.replaceChildren(
        row(WORDS.gate, cell("gate", at.gate), cell("gate-slope", state.w1)),
        row(WORDS.opened, cell("opened", at.opened), cell("opened-slope", core.swishSlope(at.gate, state.beta) * state.w1)),
        row(WORDS.value, cell("value", at.value), cell("value-slope", state.w2)),
        row("SwiGLU", cell("out", at.out), cell("out-slope", slope.x)),
        ...state.compare.map((name) => row(core.COMPARED[name].label, cell(name, core.COMPARED[name].at(state, state.x)), cell(`${name}-slope`, core.COMPARED[name].slope(state, state.x)))),
      );
      steps.replaceChildren(...Object.entries(STEPS).map(([name, words]) => row(words, cell(`in-${name}`, slope[name]))));
    },
  };
}
