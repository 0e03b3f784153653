// Attention as lines between tokens. A larger weight has a thicker and stronger line.

import { drawing, element } from "../shared/ui.js";

const LINE = 24; // px from token to token
const SIDE = 84; // px for the words on each side
const GAP = 118; // px between the sides
const FAINTEST = 0.004; // the line of a smaller weight could not be seen

/** A word, shortened to the space it has. */
function fit(word) {
  const letters = [...word];
  if (!letters.length) return "(empty)";
  return letters.length > 10 ? `${letters.slice(0, 9).join("")}…` : word;
}

/**
 * One head: the tokens that look (left) and the tokens they see (right). Pointing at a token on the left shows only its
 * lines. show(weights) draws the matrix (looking × seen).
 */
export function links({ title, from, to }) {
  const height = LINE * Math.max(from.length, to.length) + 8;
  const width = 2 * SIDE + GAP;
  const middle = (count, at) => (height - count * LINE) / 2 + (at + 0.5) * LINE;
  const lines = [];
  const lookers = from.map((word, i) => {
    const y = middle(from.length, i);
    const group = drawing("g", { class: "looker" });
    group.append(drawing("rect", { x: 0, y: y - LINE / 2, width: SIDE, height: LINE, class: "target" }));
    to.forEach((_, j) => {
      const end = middle(to.length, j);
      const bend = GAP / 2.4;
      const path = `M${SIDE} ${y}C${SIDE + bend} ${y} ${SIDE + GAP - bend} ${end} ${SIDE + GAP} ${end}`;
      const line = drawing("path", { d: path, visibility: "hidden" });
      lines.push({ line, weight: 0 });
      group.append(line);
    });
    group.append(words(word, SIDE - 7, y, "end"));
    return group;
  });
  const seen = to.map((word, j) => words(word, SIDE + GAP + 7, middle(to.length, j), "start"));
  const label = `${title}: lines from each token to those it looks at`;
  const picture = drawing(
    "svg",
    { class: "links", role: "img", "aria-label": label, viewBox: `0 0 ${width} ${height}`, width, height },
    ...lookers,
    ...seen,
  );
  return {
    root: element("figure", { class: "head" }, element("figcaption", {}, title), picture),
    show({ data }) {
      lines.forEach((drawn, at) => {
        const weight = Math.min(1, Math.max(0, data[at])) || 0; // a weight may be edited to anything
        if (weight === drawn.weight) return;
        const { line } = drawn;
        if (weight < FAINTEST !== drawn.weight < FAINTEST)
          line.setAttribute("visibility", weight < FAINTEST ? "hidden" : "visible");
        drawn.weight = weight;
        line.setAttribute("stroke-width", (0.5 + 8 * weight).toFixed(2));
        line.setAttribute("stroke-opacity", (0.1 + 0.9 * Math.sqrt(weight)).toFixed(3));
      });
    },
  };
}

function words(word, x, y, anchor) {
  const text = drawing(
    "text",
    { x, y, "text-anchor": anchor, "dominant-baseline": "central", direction: "ltr" },
    fit(word),
  );
  text.append(drawing("title", {}, word));
  return text;
}
