// A small line chart in SVG: axes with round numbers, lines clipped to the axes, guides and dots.

import { drawing } from "./ui.js";

const MARGIN = { left: 46, right: 12, top: 10, bottom: 40 }; // px for numbers and labels

/** At most `most` + 1 round numbers within low..high, with steps of 1, 2 or 5 times a power of ten. */
export function ticks(low, high, most) {
  const raw = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((lead) => lead * power).find((candidate) => candidate >= raw * (1 - 1e-9));
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

/** A number with a real minus sign, and with a given number of decimals if there is one. */
export function minus(value, decimals) {
  const words = decimals === undefined ? String(value) : value.toFixed(decimals);
  return Number(words) === 0 ? words.replace("-", "") : words.replace("-", "−");
}

/** The least and greatest y of all points and zero, with a margin. The span is never empty. */
export function span(lines) {
  const heights = lines.flat().map(([, y]) => y);
  const low = Math.min(0, ...heights);
  const high = Math.max(0, ...heights);
  const air = 0.04 * (high - low) || 1;
  return [low - air, high + air];
}

/** The edges of the axes in a chart of this size, and the functions that map x and y to px. */
export function frame({ width, height, x, y }) {
  const [left, right, top, bottom] = [MARGIN.left, width - MARGIN.right, MARGIN.top, height - MARGIN.bottom];
  return {
    left,
    right,
    top,
    bottom,
    across: (at) => left + ((at - x[0]) / (x[1] - x[0])) * (right - left),
    up: (at) => bottom - ((at - y[0]) / (y[1] - y[0])) * (bottom - top),
  };
}

/**
 * Draws a chart into `svg`, in px, so that its words keep their size on a phone.
 * x, y: [least, greatest]. lines: [class, points]. guides: x of vertical hairlines. dots: [x, y]. under: elements beneath
 * the lines. words: the description for a reader who cannot see the chart.
 */
export function plot(svg, { width, height, x, y, xLabel, yLabel, lines, guides = [], dots = [], under = [], words }) {
  const box = frame({ width, height, x, y });
  const { left, right, top, bottom, across, up } = box;
  const line = (kind, x1, y1, x2, y2) => drawing("line", { class: kind, x1, y1, x2, y2 });
  const text = (kind, at, down, say, more = {}) => drawing("text", { class: kind, x: at, y: down, ...more }, say);
  const upright = ticks(...x, Math.min(12, (right - left) / 44));
  const level = ticks(...y, Math.min(8, (bottom - top) / 30));
  const [wide, tall] = [right - left, bottom - top];
  const inside = drawing("svg", { x: left, y: top, width: wide, height: tall, viewBox: `${left} ${top} ${wide} ${tall}` }, ...under);
  for (const [kind, points] of lines) inside.append(path(kind, points, box));
  const shown = dots.filter(([at, high]) => at >= x[0] && at <= x[1] && high >= y[0] && high <= y[1]);
  svg.replaceChildren(
    ...level.map((at) => line(at === 0 ? "zero" : "grid", left, up(at), right, up(at))),
    ...upright.map((at) => line(at === 0 ? "zero" : "grid", across(at), top, across(at), bottom)),
    inside,
    ...guides.filter((at) => at >= x[0] && at <= x[1]).map((at) => line("guide", across(at), top, across(at), bottom)),
    ...shown.map(([at, high]) => drawing("circle", { class: "dot", cx: across(at), cy: up(high), r: 5 })),
    ...level.map((at) => text("tick end", left - 6, up(at) + 4, minus(at))),
    ...upright.map((at) => text("tick middle", across(at), bottom + 16, minus(at))),
    text("name middle", (left + right) / 2, height - 6, xLabel),
    text("name middle", 0, 0, yLabel, { transform: `translate(12 ${(top + bottom) / 2}) rotate(-90)` }),
  );
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("height", height);
  svg.setAttribute("aria-label", words);
}

function path(kind, points, { across, up }) {
  const far = (at) => Math.max(-1e5, Math.min(1e5, at)).toFixed(2); // outside the axes, and still a number that SVG can read
  return drawing("path", { class: `curve ${kind}`, d: `M${points.map(([x, y]) => `${far(across(x))} ${far(up(y))}`).join("L")}` });
}
