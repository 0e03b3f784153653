// The mathematics of the SwiGLU page: pure functions of numbers, without DOM and without randomness. A change to
// something that is not a number leaves the old number.

import { erf } from "../shared/erf.js";

/** @typedef {{beta: number, w1: number, b1: number, w2: number, b2: number, w3: number, x: number, compare: string[]}} State */

/** The numbers that a reader may set, with their ranges. x is the place at which the curves are read. */
export const NUMBERS = {
  beta: { least: 0, most: 20, step: 0.05, start: 1 },
  w1: { least: -3, most: 3, step: 0.05, start: 1 },
  b1: { least: -3, most: 3, step: 0.05, start: 0 },
  w2: { least: -3, most: 3, step: 0.05, start: 0.5 },
  b2: { least: -3, most: 3, step: 0.05, start: 1 },
  w3: { least: -3, most: 3, step: 0.05, start: 1 },
  x: { least: -6, most: 6, step: 0.05, start: 1 },
};

/** Swish_β is least at z = −u/β with this u, for which u·σ(u) = 1. Its value there is −(u − 1)/β. */
export const DIP = 1.2784645427610738;

/** The state with which the page starts. @returns {State} */
export function initial() {
  const numbers = Object.entries(NUMBERS).map(([name, { start }]) => [name, start]);
  return { ...Object.fromEntries(numbers), compare: [] };
}

/**
 * The state after a patch. Numbers are clipped to their ranges. A value that is not a finite number, an unknown function
 * to compare with, and an unknown field change nothing.
 * @param {State} state @param {unknown} patch @returns {State}
 */
export function patched(state, patch) {
  const next = { ...state };
  if (patch === null || typeof patch !== "object") return next;
  for (const [name, { least, most }] of Object.entries(NUMBERS)) {
    if (Number.isFinite(patch[name])) next[name] = Math.min(most, Math.max(least, patch[name]));
  }
  if (Array.isArray(patch.compare)) next.compare = Object.keys(COMPARED).filter((name) => patch.compare.includes(name));
  return next;
}

// ------------------------------------------------------------------------------------------------ functions of one number

/** σ(z) = 1 / (1 + e^−z). */
export function sigmoid(z) {
  return z >= 0 ? 1 / (1 + Math.exp(-z)) : Math.exp(z) / (1 + Math.exp(z)); // the form that does not overflow
}

/** Swish_β(z) = z·σ(βz) (Ramachandran et al. 2017). */
export function swish(z, beta) {
  return z * sigmoid(beta * z);
}

/** The slope of Swish_β in z: σ(βz) + βz·σ(βz)·σ(−βz). */
export function swishSlope(z, beta) {
  return sigmoid(beta * z) + beta * z * sigmoid(beta * z) * sigmoid(-beta * z);
}

/** GELU(z) = z·Φ(z), with the exact Φ of the normal distribution (Hendrycks & Gimpel 2016). */
export function gelu(z) {
  return (z * (1 + erf(z / Math.SQRT2))) / 2;
}

/** The slope of GELU: Φ(z) + z·φ(z). */
export function geluSlope(z) {
  return (1 + erf(z / Math.SQRT2)) / 2 + (z * Math.exp((-z * z) / 2)) / Math.sqrt(2 * Math.PI);
}

/** max(0, z). */
export function relu(z) {
  return Math.max(0, z);
}

/** The slope of ReLU; 0 at z = 0, as in torch. */
export function reluSlope(z) {
  return z > 0 ? 1 : 0;
}

// --------------------------------------------------------------------------------------------------------- the gated unit

/**
 * SwiGLU(x) = Swish_β(W₁x + b₁)·(W₂x + b₂), its parts, and the output W₃·SwiGLU(x) (Shazeer 2020, where W₁, W₂ and W₃ are
 * matrices). @param {State} state @param {number} x
 */
export function swiglu({ beta, w1, b1, w2, b2, w3 }, x) {
  const gate = w1 * x + b1;
  const value = w2 * x + b2;
  const opened = swish(gate, beta);
  return { gate, opened, value, product: opened * value, out: w3 * opened * value };
}

/**
 * The slopes of the output at x: in every number of the state, and in x itself, as the sum of the slopes through the gate
 * and through the value. throughProduct: the slope in x before W₃. @param {State} state @param {number} x
 */
export function slopes(state, x) {
  const { beta, w1, w2, w3 } = state;
  const { gate, opened, value, product } = swiglu(state, x);
  const steep = w3 * swishSlope(gate, beta);
  const throughGate = steep * w1 * value;
  const throughValue = w3 * opened * w2;
  return {
    x: throughGate + throughValue,
    throughGate,
    throughValue,
    throughProduct: swishSlope(gate, beta) * w1 * value + opened * w2,
    beta: w3 * gate * gate * sigmoid(beta * gate) * sigmoid(-beta * gate) * value,
    w1: steep * value * x,
    b1: steep * value,
    w2: w3 * opened * x,
    b2: w3 * opened,
    w3: product,
  };
}

/** A unit without a value path: W₃·act(W₁x + b₁). */
function plain(label, act, slope) {
  return {
    label,
    at: ({ w1, b1, w3 }, x) => w3 * act(w1 * x + b1),
    slope: ({ w1, b1, w3 }, x) => w3 * slope(w1 * x + b1) * w1,
  };
}

/** The functions to compare SwiGLU with: `at` and `slope` take the state and x. */
export const COMPARED = {
  relu: plain("ReLU", relu, reluSlope),
  gelu: plain("GELU", gelu, geluSlope),
  silu: plain("SiLU", (z) => swish(z, 1), (z) => swishSlope(z, 1)),
  geglu: {
    label: "GeGLU",
    at: ({ w1, b1, w2, b2, w3 }, x) => w3 * gelu(w1 * x + b1) * (w2 * x + b2),
    slope: ({ w1, b1, w2, b2, w3 }, x) =>
      w3 * (geluSlope(w1 * x + b1) * w1 * (w2 * x + b2) + gelu(w1 * x + b1) * w2),
  },
};

// ---------------------------------------------------------------------------------------------------------------- limits

/**
 * The largest distances of Swish_β from its two limits for |z| ≤ reach. The distance from z/2 (β → 0) is
 * |z|/2·tanh(β|z|/2), which grows with |z|. The distance from ReLU (β → ∞) is |z|·σ(−β|z|), largest at |z| = DIP/β.
 */
export function distances(beta, reach) {
  const far = (z) => z * sigmoid(-beta * z);
  return {
    half: (reach / 2) * Math.tanh((beta * reach) / 2),
    relu: beta * reach > DIP ? (DIP - 1) / beta : far(reach),
  };
}

/** The minimum of Swish_β; null at β = 0, where Swish is a straight line. */
export function dip(beta) {
  return beta > 0 ? { z: -DIP / beta, value: (1 - DIP) / beta } : null;
}

// --------------------------------------------------------------------------------------------------------------- drawing

/** Swish_β(gate)·value on a grid of cells × cells over ±reach, row by row. Values fall by row; gates rise by column. */
export function heat(beta, cells, reach) {
  const middle = (i) => -reach + ((i + 0.5) * 2 * reach) / cells;
  const opened = Array.from({ length: cells }, (_, i) => swish(middle(i), beta));
  return Float64Array.from({ length: cells * cells }, (_, at) => {
    const row = Math.floor(at / cells);
    return opened[at % cells] * middle(cells - 1 - row);
  });
}

/** `count` + 1 points (x, f(x)) from `low` to `high`. */
export function sample(f, low, high, count) {
  return Array.from({ length: count + 1 }, (_, i) => {
    const x = low + ((high - low) * i) / count;
    return [x, f(x)];
  });
}
