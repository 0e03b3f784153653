// The answers in the picture of the network: after each pass of a classifier the label and its share, as a bar to its side.

import { drawing, pressable } from "../shared/ui.js";
import { text } from "./marks.js";
import { likeliest, percent } from "./result.js";

const MOST = 6; // next words of a decoder
const TITLE = 54; // px for "pass 1"

/**
 * page as in view.js; at: the places of the picture. act("head") is called when the reader chooses the head, choosePass(r)
 * for a pass. Returns parts of the picture, their lower edge, and show(pass, come, reached): the way to the answer of this
 * pass has come so far, from 0 to 1, and the answers of `reached` passes stand.
 */
export function answers(page, at, act, choosePass) {
  const [x, width] = at.answers;
  const { labels } = page.model;
  const rows = labels ? page.model.config.recurrent_depth : MOST;
  const line = Math.max(25, Math.min(at.beside ? (labels ? 68 : 38) : 31, (at.base - at.top - 30) / rows));
  const top = at.beside ? at.top : at.low + 26;
  const thick = Math.min(at.beside ? 34 : 22, line - 9);
  const sides = labels?.length === 2; // a bar to the left, or to the right
  const [left, room] = [x + TITLE, width - TITLE];
  const zero = sides ? left + room / 2 : left;
  const middle = (k) => top + (k + 0.5) * line;
  const many = labels !== null && rows > 1;

  const way = drawing("path", { class: "way", pathLength: 1 });
  const axis = drawing("path", { class: "axis", d: `M${zero} ${top}V${top + rows * line}` });
  const list = Array.from({ length: rows }, (_, k) => {
    const bar = drawing("rect", { y: middle(k) - thick / 2, height: thick, rx: 3 });
    const title = text(many ? `pass ${k + 1}` : "", x + 6, middle(k), { class: "name" });
    const said = text("", zero, middle(k), { class: "said" });
    const back = drawing("rect", { class: "area", x, y: middle(k) - line / 2 + 1.5, width, height: line - 3, rx: 6 });
    const row = [back, bar, title, said];
    const root = many ? pressable({ class: "pass" }, () => choosePass(k), ...row) : drawing("g", { class: "pass" }, ...row);
    return { root, bar, title, said };
  });
  const high = at.beside ? 14 : at.low + 8;
  const heading = many ? "the answer after each pass" : labels ? "the answer" : "the next word";
  const anchor = at.beside ? "middle" : "start";
  const turns = text("", at.beside ? zero : x + 6, top + rows * line + (at.beside ? 16 : 12), { class: "turns", "text-anchor": anchor });
  const headings = [text(heading, at.beside ? x + width / 2 : x + 6, high, { class: "heading", "text-anchor": anchor })];
  if (sides && at.beside) {
    headings.push(text(`← ${labels[0]}`, zero - 10, 34, { class: "aside", "text-anchor": "end" }));
    headings.push(text(`${labels[1]} →`, zero + 10, 34, { class: "aside" }));
  }

  /** The head, on the way from the state that is read to the answers. */
  function head() {
    const [across, height] = [44, 22];
    const [from, up] = at.beside ? [(at.out + x - 16) / 2 - across / 2, at.read] : [x + width - across + 14, at.low + 8];
    return pressable(
      { class: "part head", "aria-label": "The head: from the vector that is read to the answer", "data-part": "head" },
      () => act("head"),
      drawing("rect", { class: "pill", x: from, y: up - height / 2, width: across, height, rx: 11 }),
      text("head", from + across / 2, up, { class: "heading", "text-anchor": "middle" }),
    );
  }

  /** The share and the words of a row, and whether its bar goes to the left. */
  function rowOf(k) {
    if (page.silent()) return { share: 0, said: "", negative: false };
    if (!labels) {
      const { rows: count, cols, data } = page.matrix("probabilities");
      const last = data.subarray((count - 1) * cols);
      const order = [...last.keys()].sort((a, b) => last[b] - last[a]);
      if (k >= order.length) return { share: 0, said: "", negative: false };
      return { share: last[order[k]], said: percent(last[order[k]]), word: page.model.words[order[k]], negative: false };
    }
    const { cols, data } = page.matrix("passes");
    const row = data.subarray(k * cols, (k + 1) * cols);
    const { said, share, at: best } = likeliest(row, labels);
    return { share: sides ? 2 * share - 1 : share, said: said.replace(",", ""), negative: sides && best === 0 };
  }

  /** Which passes turned the answer. */
  function turned() {
    if (!many || page.silent()) return "";
    const { cols, data } = page.matrix("passes");
    const label = (k) => likeliest(data.subarray(k * cols, (k + 1) * cols), labels).at;
    const others = list.map((_, k) => k).filter((k) => k && label(k) !== label(k - 1));
    if (!others.length) return "No pass turns the answer.";
    const numbers = others.map((k) => k + 1).join(" and ");
    return `Pass${others.length > 1 ? "es" : ""} ${numbers} turn${others.length > 1 ? "" : "s"} the answer.`;
  }

  return {
    parts: [way, head(), ...headings, turns, ...list.map(({ root }) => root), axis],
    bottom: top + rows * line + (many ? (at.beside ? 28 : 22) : 4),
    show(pass, come, reached) {
      const target = middle(labels ? pass : 0);
      const turn = at.beside ? x - 16 : x + width + 10;
      way.setAttribute("d", `M${at.out + 3} ${at.read}H${turn}V${target}H${at.beside ? x - 3 : x + width + 3}`);
      way.setAttribute("stroke-dasharray", `${come} 1`);
      way.setAttribute("visibility", come > 0 ? "visible" : "hidden");
      turns.textContent = reached === rows ? turned() : "";
      list.forEach(({ root, bar, title, said }, k) => {
        const { share, said: words, word, negative } = rowOf(k);
        const amount = !labels || k < reached ? 1 : k === pass ? come : 0;
        const long = Math.max(share > 0 ? 1.5 : 0, share * (sides ? room / 2 : room - 60)) * amount;
        bar.setAttribute("class", negative ? "n" : "p");
        bar.setAttribute("x", negative ? zero - long : zero);
        bar.setAttribute("width", long);
        if (word !== undefined) title.textContent = word || "(empty)";
        said.textContent = amount > 0.6 ? words : "";
        said.setAttribute("x", zero + (sides ? (negative ? 10 : -10) : long + 6));
        said.setAttribute("text-anchor", sides && !negative ? "end" : "start");
        if (!many) return;
        root.setAttribute("aria-pressed", k === pass);
        root.setAttribute("aria-label", `pass ${k + 1}: ${words || "no answer"}`);
      });
    },
  };
}
