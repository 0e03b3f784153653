// The result, which stays in sight at the top while the reader edits: the answer, after every pass, and what it was before.

import { element } from "../shared/ui.js";
import { named as unknown, silence } from "./reading.js";
import { packedOf } from "./state.js";

/** What each choice of weights is called. */
export const NAMES = {
  sentiment: "trained weights: the sentiment of a sentence",
  reversal: "trained weights: letters backwards",
  random: "random weights: nothing has been learned",
  run: "trained weights of a run",
};

/** A share in words, to a tenth of a percent. */
export const percent = (share) => `${(100 * share).toFixed(share > 0.9995 || share < 0.0005 ? 0 : 1)} %`;

/** The likeliest word of a row of probabilities, its place, its share, and both in words. @param {Float64Array} row @param {string[]} words */
export function likeliest(row, words) {
  let best = 0;
  for (let j = 1; j < row.length; j++) if (row[j] > row[best]) best = j;
  return { at: best, share: row[best], said: `${words[best] || "(empty)"}, ${percent(row[best])}` };
}

/** The answer of a run: its last row of probabilities. */
export function answerOf(values, words) {
  const { rows, cols, data } = values.get("probabilities");
  return likeliest(data.subarray((rows - 1) * cols), words);
}

/** Sentences on how a model was made, and how well it does. */
export function provenance(state) {
  if (state.weights === "random")
    return (
      `Every weight is a random number, drawn from seed ${state.seed}. This model has learned nothing, so its answer says ` +
      "nothing about the text."
    );
  const { made, config, name } = packedOf(state);
  if (!made) return `The weights of a trained run: ${name}, ${config.num_hidden_layers} layers of width ${config.hidden_size}.`;
  const number = (value) => value.toLocaleString("en");
  const right = made.accuracy.map(percent);
  if (state.weights === "reversal")
    return (
      `An encoder–decoder of ${number(made.parameters)} weights. It was trained on ${number(made.steps * made.batch)} random ` +
      `rows of ${made.fewest} to ${made.most} letters from a to h, and it writes ${right[0]} of ${number(made.held_out)} other ` +
      "rows backwards without a mistake."
    );
  const after = right.map((share, at) => `${share} after pass ${at + 1}`);
  const shares = [after.slice(0, -1).join(", "), after.at(-1)].filter(Boolean).join(" and ");
  return (
    `A classifier of ${number(made.parameters)} weights: one layer, passed ${right.length} times. It was trained on ` +
    `${number(made.train)} generated sentences about films. On ${number(made.held_out)} other sentences its label is right for ` +
    `${shares}.`
  );
}

/** The bar. page: { state, model, compared, matrix(name), answer(), silent(), change(patch) }; show() writes it. */
export function result(page) {
  const kind = element("p", { class: "kind" });
  const answer = element("p", { class: "answer" });
  const passes = element("ol", { class: "passes", "aria-label": "Label after each pass" });
  const strange = element("p", { class: "unread" });
  const was = element("p", { class: "was" });
  const count = element("p", { class: "how-many" });
  const back = element("button", { type: "button", onclick: () => page.change({ edits: {} }) }, "Put every edited cell back");
  const root = element("section", { class: "result", "aria-label": "Result" }, kind, answer, passes, strange, was, count, back);
  const write = (node, text) => {
    if (node.textContent !== text) node.textContent = text;
    node.hidden = !text;
  };

  function after() {
    const found = page.matrix("passes");
    const shown = found && found.rows > 1 && !page.silent() ? found.rows : 0;
    while (passes.children.length > shown) passes.lastChild.remove();
    while (passes.children.length < shown) passes.append(element("li"));
    passes.hidden = !shown;
    for (let r = 0; r < shown; r++) {
      const { said } = likeliest(found.data.subarray(r * found.cols, (r + 1) * found.cols), page.model.labels);
      write(passes.children[r], `pass ${r + 1}: ${said}`);
    }
  }

  return {
    root,
    show() {
      const { state, model, compared } = page;
      write(kind, NAMES[state.weights]);
      const subject = model.labels ? "Its answer" : "The likeliest next word";
      const named = element("span", { class: "subject" }, `${subject}: `);
      answer.replaceChildren(...(page.silent() ? [page.silent()] : [named, `${page.answer()}.`]));
      write(strange, page.silent() ? "" : unknown(state, "read as [UNK]"));
      after();
      const total = compared?.total ?? 0;
      write(count, total ? `${total.toLocaleString("en")} ${total === 1 ? "number" : "numbers"} changed, each marked by a corner.` : "");
      const old = compared && (silence(compared.state) || `Before your change: ${answerOf(compared.values, compared.words).said}.`);
      write(was, old ?? "");
      back.hidden = !Object.keys(state.edits).length;
      root.classList.toggle("untrained", state.weights === "random");
    },
  };
}
