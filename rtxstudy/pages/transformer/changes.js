// What a change by the reader did: the numbers that are now others.

import { build, compute } from "./model.js";
import { complete } from "./state.js";

/** @typedef {import("./matrices.js").Matrix} Matrix */

export const SEEN = 0.005; // a number that changed by less looks the same to two decimals

/** Whether a cell changed enough to be marked. −∞, of a mask, may stay −∞. */
export function moved(now, before) {
  return !(now === before || Math.abs(now - before) < SEEN || (Number.isNaN(now) && Number.isNaN(before)));
}

/**
 * How many cells changed in each matrix that has the same shape in both runs. Matrices without a change are left out.
 * @param {Map<string, Matrix>} now @param {Map<string, Matrix>} before @returns {Map<string, number>}
 */
export function differences(now, before) {
  const found = new Map();
  for (const [name, matrix] of now) {
    const old = before.get(name);
    if (!old || old === matrix || old.rows !== matrix.rows || old.cols !== matrix.cols) continue;
    let count = 0;
    for (let at = 0; at < matrix.data.length; at++) if (moved(matrix.data[at], old.data[at])) count += 1;
    if (count) found.set(name, count);
  }
  return found;
}

/**
 * A function that compares the run of a page, as in view.js, with the run before the reader's change: with the fields of
 * `entry`, in which a step of the walk began, or without edited cells. It returns { state, values, words, changed, total }, or null
 * where there is no change. The run before is kept while the change goes on.
 */
export function comparison(page) {
  const same = (a, b) => a === b || JSON.stringify(a) === JSON.stringify(b);
  let known = { key: "", state: null, values: null, words: null };
  return (entry) => {
    const { edits, run, ...rest } = page.state;
    const old = entry ?? { edits: {} };
    if (Object.entries(old).every(([name, value]) => same(value, page.state[name]))) return null;
    const key = JSON.stringify({ ...rest, ...old });
    if (known.key !== key) {
      const before = complete({ ...page.state, ...old });
      const model = build(before);
      known = { key, state: before, values: compute(before, model).values, words: model.labels ?? model.words };
    }
    const changed = differences(page.result.values, known.values);
    const total = [...changed.values()].reduce((sum, count) => sum + count, 0);
    return { ...known, changed, total };
  };
}
