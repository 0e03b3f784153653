// The marks in the picture of the network: words, cells of matrices, and lines of attention. place.y(row) is a row's height.

import { drawing } from "../shared/ui.js";

const HUES = 4; // colours of heads; a fifth head has the colour of the first
const FAINTEST = 0.04; // the line of a smaller weight is not drawn, unless many words share the whole
const SATURATED = 8; // the size of a number from which its cell has the full colour

/** A word or a phrase in the middle of a height. */
export function text(words, x, y, attributes = {}) {
  return drawing("text", { x, y, "dominant-baseline": "central", ...attributes }, words);
}

/** The first rows and columns of a matrix as cells, coloured by sign and size. show(matrix) colours them. */
export function cells({ y, line }, x, size, rows, cols) {
  const rects = [];
  for (let i = 0; i < rows; i++)
    for (let j = 0; j < cols; j++)
      rects.push(drawing("rect", { x: x + j * size, y: y(i) - line / 2 + 2.5, width: size + 0.15, height: line - 5 }));
  const drawn = new Float64Array(rects.length).fill(Number.NaN);
  return {
    root: drawing("g", { class: "cells" }, ...rects),
    show(matrix) {
      rects.forEach((rect, at) => {
        const value = matrix.data[Math.floor(at / cols) * matrix.cols + (at % cols)];
        if (value === drawn[at]) return;
        drawn[at] = value;
        rect.setAttribute("class", value < 0 ? "n" : "p");
        rect.setAttribute("fill-opacity", Math.sqrt(Math.min(1, Math.abs(value) / SATURATED) || 0).toFixed(2));
      });
    },
  };
}

/**
 * The lines of attention from what is seen (left) to what looks (right), for a number of heads. show(matrices) draws the
 * weights of the heads, each a matrix (looking × seen). `read` is the only row that is read later, and has the strongest
 * lines; −1: all rows are read.
 */
export function arcs({ y, roomy }, [x, width], heads, seen, looking, read) {
  const bend = width / 2.2;
  const thickest = roomy ? 6 : 4;
  const lines = Array.from({ length: heads * looking * seen }, (_, at) => {
    const [head, i, j] = [Math.floor(at / (looking * seen)), Math.floor(at / seen) % looking, at % seen];
    const d = `M${x} ${y(j)}C${x + bend} ${y(j)} ${x + width - bend} ${y(i)} ${x + width} ${y(i)}`;
    return { head, i, j, weight: 0, node: drawing("path", { d, class: `hue${head % HUES}`, "stroke-width": 0 }) };
  });
  const strength = (weight, i) => (read < 0 ? 0.1 + 0.5 * weight : i === read ? 0.35 + 0.6 * weight : 0.05 + 0.3 * weight);
  return {
    root: drawing("g", { class: "arcs" }, ...lines.map(({ node }) => node)),
    show(matrices) {
      const least = Math.min(FAINTEST, 0.6 / matrices[0].cols);
      for (const line of lines) {
        const { cols, data } = matrices[line.head];
        const value = Math.min(1, Math.max(0, data[line.i * cols + line.j])) || 0; // a weight may be edited to anything
        const weight = value < least ? 0 : value;
        if (weight === line.weight) continue;
        line.weight = weight;
        line.node.setAttribute("stroke-width", weight && (0.6 + thickest * weight).toFixed(1));
        line.node.setAttribute("stroke-opacity", strength(weight, line.i).toFixed(2));
      }
    },
    /** Shows only the lines of one row; null: all. */
    only(row) {
      for (const { node, i } of lines) node.classList.toggle("dim", row !== null && i !== row);
    },
  };
}

/**
 * The words of a text, one a row, cut where there is no room. strange: those that the model does not know. `rows` are shown
 * of more. look(row) is called when the reader points at one, and look(null) afterwards.
 */
export function words({ y, roomy }, [x, width], list, rows, anchor, strange, look) {
  const from = anchor === "end" ? x + width : x;
  const most = Math.floor(width / (roomy ? 8.2 : 7.4)); // letters
  const made = list.slice(0, rows).map((word, i) => {
    const letters = [...word];
    const kind = strange.includes(word) ? " strange" : /^\[.*\]$/.test(word) ? " mark" : "";
    const short = letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : word || "(empty)";
    const node = text(short, from, y(i), {
      class: `word${kind}`,
      "text-anchor": anchor,
      direction: "ltr",
      onpointerenter: () => look(i),
      onpointerleave: () => look(null),
    });
    node.append(drawing("title", {}, strange.includes(word) ? `${word}: not in the vocabulary, read as [UNK]` : word));
    return node;
  });
  const more = list.length - rows;
  if (more > 0) made.push(text(width > 80 ? `and ${more} more` : `+ ${more}`, from, y(rows), { class: "aside", "text-anchor": anchor }));
  return made;
}
