// Why the page took another number than the one that was typed.

import { WHOLE, inner } from "./state.js";

/** @typedef {import("./state.js").State} State */

/** How many heads there are now, after this many did not fit. @param {number} asked @param {State} state */
function heads(asked, { heads: count, d_model: d }) {
  const now = `${count === 1 ? "is 1 head" : `are ${count} heads`} of width ${d / count}`;
  if (d % asked) return `${asked} heads do not divide ${d} dimensions, so there ${now}.`;
  return `Each of ${asked} heads would have an odd width, but RoPE turns pairs of numbers, so there ${now}.`;
}

/**
 * Why a whole number that was typed is not the one that the page took, or "". before: the state in which it was typed;
 * after: the state that it led to. @param {string} name @param {number} typed @param {State} before @param {State} after
 */
export function explain(name, typed, before, after) {
  const [least, most] = WHOLE[name];
  const now = name === "d_ff" ? inner(after) : after[name];
  if (!Number.isFinite(typed)) return `That is not a number; it stays ${now}.`;
  if (typed < least || typed > most) return `It goes from ${least} to ${most.toLocaleString("en")}.`;
  if (typed % 1) return `It is a whole number: ${now}.`;
  if (name === "heads" && now !== typed) return heads(typed, after);
  if (name !== "d_model") return "";
  const even = typed % 2 ? `${typed} is odd, but sine and cosine come in pairs, so d is ${now}. ` : "";
  return (even + (before.heads === after.heads ? "" : heads(before.heads, after))).trim();
}
