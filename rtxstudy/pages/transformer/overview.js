// Every layer and head at a glance: one small picture for each attention, and for a chosen token what each head looks at.

import { element } from "../shared/ui.js";

const FADED = 0.12; // the strength of the rows that are not the chosen token's

/** Draws attention weights (looking × seen) as one pixel each; the alpha is the root of the weight. */
function paint(canvas, { rows, cols, data }, colour, only) {
  if (canvas.width !== cols || canvas.height !== rows) Object.assign(canvas, { width: cols, height: rows });
  const context = canvas.getContext("2d");
  const picture = context.createImageData(cols, rows);
  for (let at = 0; at < data.length; at++) {
    const weight = Math.min(1, Math.max(0, data[at])) || 0; // a weight may be edited to anything
    const strength = Math.sqrt(weight) * (only === null || Math.floor(at / cols) === only ? 1 : FADED);
    picture.data.set(colour, 4 * at);
    picture.data[4 * at + 3] = 255 * strength;
  }
  context.putImageData(picture, 0, 0);
}

/** The colour of an element's text as [red, green, blue]. */
const colourOf = (node) => getComputedStyle(node).color.match(/[\d.]+/g).slice(0, 3).map(Number);

/**
 * The overview. page: { model, matrix(name), words(side) }. places: { id, title, links } of every attention.
 * watch(part) keeps a part drawn while it is in sight. choose(id, head) is called when a picture is chosen.
 */
export function overview(page, places, watch, choose) {
  const heads = page.model.config.num_attention_heads;
  let chosen = null; // { side, at } of a token
  let colour = null;
  const parts = [];

  function picture({ id, title, links }, head) {
    const canvas = element("canvas", { "aria-hidden": "true" });
    const seen = element("span", { class: "seen" });
    const label = `${title}, head ${head + 1}`;
    const button = element("button", { type: "button", class: "thumb", title: label, "aria-label": label }, canvas, seen);
    const draw = () => {
      if (!canvas.isConnected) return; // it has no colour yet
      const matrix = page.matrix(links.weights(head));
      const only = chosen?.side === links.from && chosen.at < matrix.rows ? chosen.at : null;
      colour ??= colourOf(canvas);
      paint(canvas, matrix, colour, only);
      let words = "";
      if (only !== null) {
        const row = matrix.data.subarray(only * matrix.cols, (only + 1) * matrix.cols);
        const most = row.reduce((best, weight, j) => (weight > row[best] ? j : best), 0);
        words = `→ ${page.words(links.to)[most]} ${Math.round(100 * row[most])} %`;
      }
      if (seen.textContent !== words) seen.textContent = words;
    };
    button.addEventListener("click", () => choose(id, head));
    canvas.addEventListener("pointermove", (event) => {
      const { top, height } = canvas.getBoundingClientRect();
      look(links.from, Math.min(canvas.height - 1, Math.max(0, Math.floor(((event.clientY - top) / height) * canvas.height))));
    });
    canvas.addEventListener("pointerleave", () => look(held?.side, held?.at));
    parts.push({ root: button, draw });
    return watch(parts.at(-1));
  }

  let held = null; // the token that was clicked; it stays chosen
  function look(side, at) {
    const next = side === undefined ? null : { side, at };
    if (next?.side === chosen?.side && next?.at === chosen?.at) return;
    chosen = next;
    for (const part of parts) part.draw();
    tokens.forEach(({ button, side: own, at: place }) => {
      button.classList.toggle("looking", own === chosen?.side && place === chosen?.at);
      button.setAttribute("aria-pressed", own === held?.side && place === held?.at);
    });
  }

  const tokens = [];
  function row(side, label) {
    const buttons = page.words(side).map((word, at) => {
      const button = element("button", { type: "button", class: "look", dir: "auto", "aria-pressed": "false" }, word);
      const enter = () => look(side, at);
      const leave = () => look(held?.side, held?.at);
      button.addEventListener("pointerenter", enter);
      button.addEventListener("pointerleave", leave);
      button.addEventListener("focus", enter);
      button.addEventListener("blur", leave);
      button.addEventListener("click", () => {
        held = held?.side === side && held.at === at ? null : { side, at };
        chosen = null;
        look(side, at);
      });
      tokens.push({ button, side, at });
      return button;
    });
    return element("div", { class: "lookers", role: "group", "aria-label": label }, element("span", {}, label), ...buttons);
  }

  const sides = [...new Set(places.map(({ links }) => links.from))];
  const names = { source: sides.length > 1 ? "source:" : "what does it look at?", target: "target:" };
  const lines = places.map((place) =>
    element(
      "div",
      { class: "layer", style: `--heads: ${Math.min(heads, 4)}` },
      element("span", { class: "where" }, place.title),
      ...Array.from({ length: heads }, (_, head) => picture(place, head)),
    ),
  );
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const repaint = () => {
    colour = null;
    for (const part of parts) part.draw();
  };
  scheme.addEventListener("change", repaint);
  return {
    root: element(
      "div",
      { class: "overview" },
      ...sides.map((side) => row(side, names[side])),
      element("div", { class: "layers" }, ...lines),
    ),
    destroy: () => scheme.removeEventListener("change", repaint),
  };
}
