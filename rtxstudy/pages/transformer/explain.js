// Why the page took another number than the one that was typed.

import { WHOLE, inner } from "./state.js";

/** @typedef {import("./state.js").State} State */

/**
 * Why a whole number that was typed is not the one that the page took, or "". before: the state in which it was typed;
 * after: the state that it led to. @param {string} name @param {number} typed @param {State} before @param {State} after
 */
export function explain(name, typed, before, after) {
  const [least, most] = WHOLE[name];
  const fits = (heads) => `${heads} ${heads === 1 ? "head" : "heads"} of width ${after.d_model / heads}`;
  const pairs = after.position === "rotary" && (after.d_model / Math.round(typed)) % 2;
  if (!Number.isFinite(typed)) return `That is not a number; it stays ${after[name] ?? inner(after)}.`;
  if (typed < least || typed > most) return `It goes from ${least} to ${most.toLocaleString("en")}.`;
  if (typed % 1) return `It is a whole number: ${after[name]}.`;
  if (name === "heads" && after.heads !== typed) {
    const why = after.d_model % typed ? "do not divide" : pairs ? "leave an odd width, but RoPE turns pairs, in" : "exceed";
    return `${typed} heads ${why} ${after.d_model} dimensions, so there ${after.heads === 1 ? "is" : "are"} ${fits(after.heads)}.`;
  }
  const parts = [];
  if (name === "d_model" && typed % 2) parts.push(`${typed} is odd, but sine and cosine come in pairs, so d is ${after.d_model}.`);
  if (name === "d_model" && before.heads !== after.heads)
    parts.push(
      after.d_model % before.heads
        ? `${before.heads} heads do not divide ${after.d_model}, so there ${after.heads === 1 ? "is" : "are"} ${fits(after.heads)}.`
        : `${before.heads} heads would have an odd width, but RoPE turns pairs: there ${after.heads === 1 ? "is" : "are"} ${fits(after.heads)}.`,
    );
  return parts.join(" ");
}
