// What a model can read of a text: the words that it does not know, and whether there is anything to answer.

import { packedOf, translates } from "./state.js";
import { unknownOf } from "./wordpiece.js";

const MARKS = ["[CLS]", "[SEP]", "[PAD]"]; // they hold no word of a sentence
const NAMED = 4; // unknown words that a warning names

/** The words of a text that a trained classifier does not know. @param {import("./state.js").State} state */
export function unknown(state) {
  const packed = packedOf(state);
  return packed && !translates(state) ? unknownOf(state.tokens, packed.words) : [];
}

/** Why a trained classifier has no answer to a text, or "". @param {import("./state.js").State} state */
export function silence(state) {
  if (!packedOf(state) || translates(state)) return "";
  const strange = new Set(unknown(state));
  const words = state.tokens.filter((token) => !MARKS.includes(token) && (strange.has(token) || /[\p{L}\p{N}]/u.test(token)));
  if (!words.length) return "The sentence has no words, so there is no answer.";
  return words.every((word) => strange.has(word)) ? "The model knows none of these words, so there is no answer." : "";
}

/** "“a” and “b” are …" for the words that a model does not know, or "". @param {import("./state.js").State} state */
export function named(state, what) {
  const words = unknown(state);
  if (!words.length) return "";
  const list = words.slice(0, NAMED).map((word) => `“${word}”`);
  if (words.length > NAMED) list.push(`${words.length - NAMED} more`);
  const all = list.length > 1 ? `${list.slice(0, -1).join(", ")} and ${list.at(-1)}` : list[0];
  return `${all} ${words.length > 1 ? "are" : "is"} ${what}.`;
}

/** A warning that names the words that a model does not know, or "". @param {import("./state.js").State} state */
export function warning(state) {
  const count = packedOf(state)?.words.length.toLocaleString("en");
  const said = named(state, `not among the ${count} words that the model knows`);
  return said && `${said} It reads [UNK] instead.`;
}
