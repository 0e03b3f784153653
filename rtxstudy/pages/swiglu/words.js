// The words and numbers of the page: names, the two limits, and the tables at one x.

import * as core from "./core.js";
import { minus } from "../shared/plot.js";
import { element } from "../shared/ui.js";

export const NAMES = {
  swiglu: "W₃ · SwiGLU",
  gate: "gate, W₁x + b₁",
  opened: "Swish of the gate",
  value: "value, W₂x + b₂",
  product: "SwiGLU, their product",
};
const PARTS = { x: "x", w1: "W₁", b1: "b₁", w2: "W₂", b2: "b₂", w3: "W₃", beta: "β" };

/** The limits of Swish for small and large β, and its present distances from them for |z| ≤ reach. */
export function limits(beta, reach) {
  const { half, relu } = core.distances(beta, reach);
  const limit = (head, words) => element("p", {}, element("strong", {}, head), words);
  return [
    limit(
      "β → 0: ",
      "σ(0) = ½, so the gate is always half open. Swish becomes z/2, and SwiGLU becomes half the product of two straight " +
        `lines (a bilinear unit). At this β, Swish is at most ${minus(half, 3)} away from z/2 within ±${reach}.`,
    ),
    limit(
      "β → ∞: ",
      "the gate is either open or shut. Swish becomes ReLU, and SwiGLU becomes max(0, W₁x + b₁) · (W₂x + b₂). " +
        `At this β, Swish is at most ${minus(relu, 3)} away from ReLU.`,
    ),
  ];
}

/** Two tables: the value and slope of each part at x, and the slope of the output in each of its numbers. */
export function readings() {
  const values = element("tbody");
  const answers = element("tbody");
  const title = element("h2");
  const cell = (name, value) => element("td", { "data-number": name }, minus(value, 5));
  const row = (words, ...cells) => element("tr", {}, element("th", { scope: "row" }, words), ...cells);
  const both = (name, words, value, slope) => row(words, cell(name, value), cell(`${name}-slope`, slope));
  const heads = (words) => words.map((word) => element("th", { scope: "col" }, word));
  const head = (...words) => element("thead", {}, element("tr", {}, ...heads(words)));
  const caption = element("caption", {}, "The slope of W₃ · SwiGLU in each of its numbers");
  return {
    root: element(
      "section",
      { class: "readings" },
      title,
      element("table", {}, head("part", "value", "slope in x"), values),
      element("table", {}, caption, head("in", "slope"), answers),
    ),
    show(state) {
      const { x } = state;
      const at = core.swiglu(state, x);
      const slope = core.slopes(state, x);
      title.textContent = `At x = ${minus(x, 2)}`;
      values.replaceChildren(
        both("gate", NAMES.gate, at.gate, state.w1),
        both("opened", NAMES.opened, at.opened, core.swishSlope(at.gate, state.beta) * state.w1),
        both("value", NAMES.value, at.value, state.w2),
        both("product", NAMES.product, at.product, slope.throughProduct),
        both("out", NAMES.swiglu, at.out, slope.x),
        ...state.compare.map((name) => {
          const other = core.COMPARED[name];
          return both(name, other.label, other.at(state, x), other.slope(state, x));
        }),
      );
      answers.replaceChildren(...Object.entries(PARTS).map(([name, words]) => row(words, cell(`in-${name}`, slope[name]))));
    },
  };
}
