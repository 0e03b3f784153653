// The weights of a trained run, as rtxstudy.pages.weights packs them.

import { matrix } from "./matrices.js";

/** @typedef {import("./model.js").Model} Model */

/** The model of a packed run, whose weights are little-endian numbers in base64, one after the other. @returns {Model} */
export function unpack(run) {
  const bytes = Uint8Array.from(atob(run.data), (letter) => letter.charCodeAt(0));
  const numbers =
    run.dtype === "float16"
      ? Float64Array.from(new Uint16Array(bytes.buffer), half)
      : Float64Array.from(new Float32Array(bytes.buffer));
  const weights = new Map();
  let at = 0;
  for (const [name, rows, cols] of run.weights) {
    weights.set(name, matrix(rows, cols, numbers.subarray(at, at + rows * cols)));
    at += rows * cols;
  }
  return { config: run.config, weights, words: run.words, labels: run.labels };
}

/** The number of sixteen bits (IEEE 754 half precision). */
function half(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction ? Number.NaN : sign * Infinity;
  return exponent ? sign * 2 ** (exponent - 15) * (1 + fraction / 1024) : sign * 2 ** -14 * (fraction / 1024);
}
