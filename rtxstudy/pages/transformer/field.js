// A field for a whole sentence, in which the words that the model does not know are underlined by a copy of it behind the field.

import { element, unique } from "../shared/ui.js";
import { silence, warning } from "./reading.js";
import { packedOf } from "./state.js";
import { marked, pieces, sentenceOf } from "./wordpiece.js";

/** The field, for a page with the weights of a classifier. set() follows the page; it never changes what is being typed. */
export function sentenceField(page, label) {
  const id = unique("sentence");
  const said = element("p", { class: "unknown-words", id, role: "status" });
  const lines = element("div", { class: "underlines", dir: "auto", "aria-hidden": "true" });
  const input = element("textarea", {
    class: "sentence",
    rows: 1,
    dir: "auto",
    autocomplete: "off",
    spellcheck: "false",
    "aria-label": label,
    "aria-describedby": id,
    placeholder: "Write a sentence",
  });
  input.addEventListener("input", () => {
    const { words, lowercase } = packedOf(page.state);
    page.change({ tokens: pieces(input.value, words, lowercase), typed: input.value });
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") event.preventDefault(); // it is one sentence, over as many lines as it needs
  });

  let shown = null; // the text for which the lines and the warning are made

  function set() {
    const { state } = page;
    if (document.activeElement !== input) input.value = state.typed ?? sentenceOf(state.tokens);
    if (shown === input.value) return;
    shown = input.value;
    const { words, lowercase } = packedOf(state);
    const parts = marked(input.value, words, lowercase);
    const spans = parts.map(({ text, unknown }) => element("span", { class: unknown && "strange" }, text));
    lines.replaceChildren(...spans, "\u200b"); // an empty sentence has the height of a line, too
    const say = [silence(state), warning(state)].filter(Boolean).join(" ");
    if (said.textContent !== say) said.textContent = say;
    input.setAttribute("aria-invalid", say ? "true" : "false");
  }
  set();
  return { root: element("div", { class: "typed" }, element("div", { class: "over" }, lines, input), said), set };
}
