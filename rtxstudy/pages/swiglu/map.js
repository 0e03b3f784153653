// The heat map of gate × value, with the line of the unit's own gates and values.

import * as core from "./core.js";
import { frame, minus, plot } from "../shared/plot.js";
import { drawing, element } from "../shared/ui.js";

export const REACH = 6; // the map and all charts reach from −6 to 6
const CELLS = 24; // in each direction
const SIGNS = 3; // every third cell has its sign, for readers who cannot tell the colours apart
const LARGEST = 420; // px in each direction
const SHOWN = [-36, -9, -1, 0, 1, 9, 36]; // values in the key

/** Blue above zero, red below. The strength follows the square root, so that small negative values can be seen. */
function shade(value) {
  const part = Math.min(100, Math.round((100 * Math.sqrt(Math.abs(value))) / REACH));
  return `color-mix(in srgb, var(--${value < 0 ? "negative" : "positive"}) ${part}%, var(--paper))`;
}

/** The key: colours of the map beside their values. */
export function scale() {
  const step = (value) => {
    const rect = drawing("rect", { class: "patch", width: 16, height: 16, style: `fill: ${shade(value)}` });
    const patch = drawing("svg", { width: 16, height: 16, "aria-hidden": "true" }, rect);
    return element("span", {}, patch, ` ${minus(value)}`);
  };
  return element("p", { class: "key scale" }, ...SHOWN.map(step));
}

/** The cells of a map of this size, without colours, and the signs on some of them. */
function grid({ left, right, top, bottom }) {
  const [across, down] = [(right - left) / CELLS, (bottom - top) / CELLS];
  const cells = [];
  const signs = [];
  for (let at = 0; at < CELLS * CELLS; at += 1) {
    const [column, row] = [at % CELLS, Math.floor(at / CELLS)];
    const [x, y] = [left + column * across, top + row * down];
    cells.push(drawing("rect", { class: "cell", x, y, width: across + 0.3, height: down + 0.3 }));
    if (column % SIGNS !== 1 || row % SIGNS !== 1) continue;
    const positive = column >= CELLS / 2 === row < CELLS / 2;
    signs.push(drawing("text", { class: "sign", x: x + across / 2, y: y + down / 2 }, positive ? "+" : "−"));
  }
  return { cells, signs };
}

/** A function that draws the map into `svg`, `room` px wide, and returns its description. Cells are made once per size. */
export function map(svg) {
  let drawn = {};
  return (state, room) => {
    const width = Math.min(LARGEST, room);
    const settings = { width, height: width, x: [-REACH, REACH], y: [-REACH, REACH] };
    if (drawn.width !== width) drawn = { width, ...grid(frame(settings)) };
    if (drawn.beta !== state.beta) {
      drawn.beta = state.beta;
      core.heat(state.beta, CELLS, REACH).forEach((value, at) => {
        drawn.cells[at].style.fill = shade(value);
      });
    }
    const { gate, value, product } = core.swiglu(state, state.x);
    const ends = [-REACH, REACH].map((x) => core.swiglu(state, x)).map((end) => [end.gate, end.value]);
    const outside = Math.max(Math.abs(gate), Math.abs(value)) > REACH ? ", outside this map" : "";
    const words =
      "The colour is Swish of the gate × value: blue with + is above zero, red with − is below. The line shows the gate " +
      `and value of this unit as x goes from −${REACH} to ${REACH}; the first chart shows W₃ times the product along this line. ` +
      `At x = ${minus(state.x, 2)} the gate is ${minus(gate, 2)} and the value ${minus(value, 2)}${outside}: ${minus(product, 3)}.`;
    plot(svg, {
      ...settings,
      xLabel: "gate, W₁x + b₁",
      yLabel: "value, W₂x + b₂",
      lines: [["halo", ends], ["walk", ends]],
      dots: [[gate, value]],
      under: [...drawn.cells, ...drawn.signs],
      words,
    });
    svg.setAttribute("width", width);
    return words;
  };
}
