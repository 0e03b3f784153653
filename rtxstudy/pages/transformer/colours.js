// The colours of cells: two soft hues, or pure blue and pure red. Text on them is black or white, whichever is read better.

import { SHADES } from "../shared/grid.js";

const PURE = { p: [0, 0, 255], n: [255, 0, 0] };
const PAPER = { light: [255, 255, 255], dark: [26, 31, 35] };
const levels = Array.from({ length: SHADES }, (_, at) => at + 1);

/** The luminance of a colour, as WCAG 2.2 defines it. */
function luminance(colour) {
  const [r, g, b] = colour.map((part) => {
    const x = part / 255;
    return x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** A pure colour mixed into the paper, and black or white for the text on it, as two CSS colours. */
function pure(sign, level, scheme) {
  const mixed = PAPER[scheme].map((part, at) => Math.round(part + ((PURE[sign][at] - part) * level) / SHADES));
  return [`rgb(${mixed.join(" ")})`, luminance(mixed) > 0.179 ? "#000" : "#fff"];
}

/** Rules for the shades of blue and red, from the palest to the deepest. */
export function shades() {
  const soft = (sign, hue) => (level) => {
    const colour = `color-mix(in srgb, var(--${hue}) ${(100 * level) / SHADES}%, var(--cell))`;
    return `.transformer td.${sign}${level} { background-color: ${colour} }`;
  };
  const deep = (sign) => (level) => {
    const [[light, onLight], [dark, onDark]] = [pure(sign, level, "light"), pure(sign, level, "dark")];
    const look = `background-color: light-dark(${light}, ${dark}); color: light-dark(${onLight}, ${onDark})`;
    return `.transformer.pure td.${sign}${level} { ${look} }`;
  };
  const rules = [soft("p", "positive"), soft("n", "negative"), deep("p"), deep("n")];
  return rules.flatMap((rule) => levels.map(rule)).join("\n");
}
