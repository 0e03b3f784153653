// What a change by the reader did: the numbers that are now others.

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
