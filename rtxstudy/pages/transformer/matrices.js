// Small dense matrices, and the functions that a Transformer applies to them. No function changes its arguments.

import { erf } from "../shared/erf.js";

/** @typedef {{rows: number, cols: number, data: Float64Array}} Matrix row after row */

/** @param {number} rows @param {number} cols @returns {Matrix} */
export function matrix(rows, cols, data = new Float64Array(rows * cols)) {
  return { rows, cols, data };
}

/** A matrix whose cells are f(row, column). @param {(row: number, col: number) => number} f @returns {Matrix} */
export function tabulate(rows, cols, f) {
  const out = matrix(rows, cols);
  for (let i = 0, at = 0; i < rows; i++) for (let j = 0; j < cols; j++, at++) out.data[at] = f(i, j);
  return out;
}

/** f of each cell. @param {Matrix} a @param {(x: number) => number} f */
export function map(a, f) {
  return matrix(a.rows, a.cols, a.data.map(f));
}

/**
 * f of each pair of cells of two matrices of one shape.
 * @param {Matrix} a @param {Matrix} b @param {(x: number, y: number) => number} f
 */
export function zip(a, b, f) {
  const out = matrix(a.rows, a.cols);
  for (let at = 0; at < out.data.length; at++) out.data[at] = f(a.data[at], b.data[at]);
  return out;
}

/** a + b; a matrix of one row is added to every row. @param {Matrix} a @param {Matrix} b */
export function add(a, b) {
  if (b.rows === a.rows) return zip(a, b, (x, y) => x + y);
  return tabulate(a.rows, a.cols, (i, j) => a.data[i * a.cols + j] + b.data[j]);
}

/** a ⊙ b. @param {Matrix} a @param {Matrix} b */
export function times(a, b) {
  return zip(a, b, (x, y) => x * y);
}

// The three products below take most of the time, so they use plain arrays and go along rows where possible.

/**
 * x·W + b: (n × k)·(k × m) → (n × m); b (1 × m) or null.
 * @param {Matrix} x @param {Matrix} weight @param {Matrix | null} bias
 */
export function linear(x, weight, bias) {
  const { rows: n, cols: inner, data: from } = x;
  const { cols: m, data: w } = weight;
  const made = new Float64Array(n * m);
  for (let i = 0; i < n; i++) {
    const row = made.subarray(i * m, (i + 1) * m);
    if (bias) row.set(bias.data);
    let k = 0;
    for (; k + 1 < inner; k += 2) {
      // two at a time halves the reads and writes of the row
      const first = from[i * inner + k];
      const second = from[i * inner + k + 1];
      const start = k * m;
      for (let j = 0; j < m; j++) row[j] += first * w[start + j] + second * w[start + m + j];
    }
    if (k < inner) for (let j = 0; j < m; j++) row[j] += from[i * inner + k] * w[k * m + j];
  }
  return matrix(n, m, made);
}

/** a·bᵀ·scale over the columns from..from+width of both: (n × ·), (m × ·) → (n × m). */
export function products(a, b, from, width, scale) {
  const { data: left, cols: across } = a;
  const { data: right, cols: down, rows: m } = b;
  const made = new Float64Array(a.rows * m);
  for (let i = 0; i < a.rows; i++) {
    for (let j = 0; j < m; j++) {
      let sum = 0;
      for (let k = 0; k < width; k++) sum += left[i * across + from + k] * right[j * down + from + k];
      made[i * m + j] = sum * scale;
    }
  }
  return matrix(a.rows, m, made);
}

/** weights·v over the columns from..from+width of v: (n × m), (m × ·) → (n × width). */
export function mix(weights, v, from, width) {
  const { data: share, rows: n, cols: m } = weights;
  const { data: value, cols } = v;
  const made = new Float64Array(n * width);
  for (let i = 0; i < n; i++) {
    for (let k = 0; k < m; k++) {
      const part = share[i * m + k];
      for (let j = 0; j < width; j++) made[i * width + j] += part * value[k * cols + from + j];
    }
  }
  return matrix(n, width, made);
}

/** Matrices with the same number of rows, side by side. @param {Matrix[]} parts */
export function beside(parts) {
  const width = parts[0].cols;
  return tabulate(
    parts[0].rows,
    width * parts.length,
    (i, j) => parts[Math.floor(j / width)].data[i * width + (j % width)],
  );
}

/** Matrices with the same number of columns, one below the other. @param {Matrix[]} parts */
export function stack(parts) {
  const data = Float64Array.from(parts.flatMap((part) => [...part.data]));
  return matrix(data.length / parts[0].cols, parts[0].cols, data);
}

/** e^x over its sum, along each row. The largest x of the row is subtracted first, so that e^x does not overflow. */
export function softmax(a) {
  const { rows, cols, data } = a;
  const made = new Float64Array(rows * cols);
  for (let i = 0, start = 0; i < rows; i++, start += cols) {
    let largest = -Infinity;
    for (let at = start; at < start + cols; at++) if (data[at] > largest) largest = data[at];
    let sum = 0;
    for (let at = start; at < start + cols; at++) sum += made[at] = Math.exp(data[at] - largest);
    for (let at = start; at < start + cols; at++) made[at] /= sum;
  }
  return matrix(rows, cols, made);
}

/** LayerNorm or RMSNorm along each row, with a gain and a bias, which may be null. */
export function normalise(x, kind, gain, bias, eps) {
  const out = matrix(x.rows, x.cols);
  for (let i = 0; i < x.rows; i++) {
    const row = x.data.subarray(i * x.cols, (i + 1) * x.cols);
    const mean = kind === "layernorm" ? row.reduce((a, b) => a + b, 0) / x.cols : 0;
    const spread = row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / x.cols;
    const scale = 1 / Math.sqrt(spread + eps);
    for (let j = 0; j < x.cols; j++) {
      out.data[i * x.cols + j] = (row[j] - mean) * scale * gain.data[j] + (bias ? bias.data[j] : 0);
    }
  }
  return out;
}

const silu = (x) => x / (1 + Math.exp(-x));
const gelu = (x) => (x / 2) * (1 + erf(x / Math.SQRT2));
export const ACTIVATIONS = { relu: (x) => (x > 0 ? x : 0 * x), gelu, swiglu: silu, geglu: gelu }; // 0·x keeps NaN a NaN
