// The state of the page, which any JSON can be completed to, and the model that a state describes.

import { normal, uniform } from "../shared/random.js";
import { cellOf, run } from "./core.js";
import { tabulate } from "./matrices.js";
import { unpack } from "./unpack.js";
import { numbersOf, pieces } from "./wordpiece.js";

/** @typedef {import("./matrices.js").Matrix} Matrix */
/**
 * A model: its configuration, in the words of rtxlib.models.ModelConfig, its weights by name, and its vocabulary.
 * @typedef {{config: Record<string, any>, weights: Map<string, Matrix>, words: string[], labels: string[] | null}} Model
 */

/** The state with which the page opens: a small model of the paper. */
export const START = {
  tokens: ["the", "cat", "sat", "on", "the", "mat"],
  target: ["le", "chat"],
  d_model: 8, // width of a token's vector
  heads: 2,
  layers: 2, // of the encoder's block and of the decoder
  d_ff: 16, // width inside the feed-forward
  seed: 1, // of the weights
  norm_placement: "post",
  norm: "layernorm",
  position: "sinusoidal",
  feedforward: "relu",
  recurrent_depth: 1, // R, passes through the encoder's block
  residual_scale: 0.5, // α
  training: false, // dropout on
  dropout: 0.1,
  draw: 1, // of the dropout masks
  /** @type {Record<string, number>} */
  edits: {}, // "name[row,column]": value
  /** @type {any} */
  run: null, // a trained run's model instead of a drawn one (rtxstudy.pages.weights)
};

export const PAPER = {
  norm_placement: "post",
  norm: "layernorm",
  position: "sinusoidal",
  feedforward: "relu",
  recurrent_depth: 1,
};
export const STUDY = {
  norm_placement: "pre",
  norm: "rmsnorm",
  position: "rotary",
  feedforward: "swiglu",
  recurrent_depth: 2,
};

export const CHOICES = {
  norm_placement: ["post", "pre"],
  norm: ["layernorm", "rmsnorm"],
  position: ["sinusoidal", "rotary", "none"],
  feedforward: ["relu", "gelu", "swiglu"],
};

/** The range of each whole number, and of each real number. */
export const WHOLE = {
  d_model: [2, 128],
  heads: [1, 8],
  layers: [1, 8],
  d_ff: [1, 512],
  seed: [0, 2 ** 32 - 1],
  recurrent_depth: [1, 12],
  draw: [0, 2 ** 32 - 1],
};
export const REAL = { residual_scale: [0, 2], dropout: [0, 0.9] };
export const MOST_TOKENS = 128;
const LONGEST_TOKEN = 200; // characters
const LARGEST = 1e6; // size of a value that a cell may be set to
// A change of one of these removes all edits, because their cells then mean something else.
const REDRAWN = ["d_model", "heads", "layers", "d_ff", "seed", "run"];

export const SENTENCE = "the film was not bad at all, it was a delight"; // the first sentence of a trained run

/** @typedef {typeof START} State */

/**
 * Any JSON as a state. Missing and unusable fields are as in START; values out of range are clipped.
 * @param {Record<string, any>} given @returns {State}
 */
export function complete(given) {
  const state = { ...START, run: given.run ?? null };
  if (state.run) {
    const { words, lowercase, config } = state.run;
    const { recurrent_depth, residual_scale } = config;
    Object.assign(state, { recurrent_depth, residual_scale, tokens: pieces(SENTENCE, words, lowercase), target: [] });
  }
  for (const [name, [least, most]] of Object.entries({ ...WHOLE, ...REAL })) {
    const value = typeof given[name] === "string" ? Number.NaN : Number(given[name] ?? Number.NaN);
    if (Number.isFinite(value))
      state[name] = Math.min(most, Math.max(least, name in WHOLE ? Math.round(value) : value));
  }
  for (const [name, words] of Object.entries(CHOICES)) if (words.includes(given[name])) state[name] = given[name];
  state.d_model -= state.d_model % 2;
  state.training = given.training === true;
  state.heads = largestFitting(state);
  for (const side of ["tokens", "target"]) {
    if (Array.isArray(given[side]))
      state[side] = given[side]
        .slice(0, Math.min(MOST_TOKENS, state.run?.config.max_position_embeddings ?? MOST_TOKENS))
        .map(shorten);
  }
  if (!state.tokens.length) state.tokens = [""];
  const edits = given.edits !== null && typeof given.edits === "object" ? given.edits : {};
  state.edits = Object.fromEntries(
    Object.entries(edits)
      .filter(([key, value]) => cellOf(key) && Number.isFinite(value))
      .map(([key, value]) => [key, Math.min(LARGEST, Math.max(-LARGEST, value))]),
  );
  return state;
}

function shorten(token) {
  return [...String(token ?? "")].slice(0, LONGEST_TOKEN).join("");
}

/** The number of heads, lowered until it divides d_model; with RoPE, also until the width of a head is even. */
function largestFitting({ heads, d_model: d, position }) {
  let fitting = Math.min(heads, d);
  while (d % fitting || (position === "rotary" && (d / fitting) % 2)) fitting -= 1;
  return fitting;
}

/**
 * A complete state after a change, without the edits of cells that now mean something else. New weights remove all edits.
 * A changed number of tokens removes those of computed numbers. Edits of a word's vector follow the word.
 * @param {State} state @param {Partial<State>} patch @returns {State}
 */
export function changed(state, patch) {
  const next = complete({ ...state, ...patch });
  if ("edits" in patch) return next;
  if (REDRAWN.some((name) => next[name] !== state[name])) return { ...next, edits: {} };
  const [before, after] = [wordsOf(state), wordsOf(next)];
  const moved = ["tokens", "target"].some((side) => next[side].length !== state[side].length);
  const kept = Object.entries(next.edits).flatMap(([key, value]) => {
    const { name, row, col } = cellOf(key);
    if (!name.startsWith("weights/")) return moved ? [] : [[key, value]];
    if (name !== "weights/table" || state.run) return [[key, value]];
    const there = after.indexOf(before[row]);
    return there < 0 ? [] : [[`${name}[${there},${col}]`, value]];
  });
  return { ...next, edits: Object.fromEntries(kept) };
}

/**
 * The vocabulary of a drawn model: the begin and end of a target, and each word of the page once.
 * @param {{tokens: string[], target: string[]}} state
 */
export function wordsOf({ tokens, target }) {
  return [...new Set(["<s>", "</s>", ...tokens, ...target])];
}

/** The input of the decoder: the begin token, then the target so far. @param {State} state @returns {string[]} */
export function targetOf(state) {
  return state.run ? [] : ["<s>", ...state.target];
}

/** The model of the run, or a model drawn from the seed. @param {State} state @returns {Model} */
export function build(state) {
  return state.run ? opened(state) : drawn(configuration(state), wordsOf(state), state.seed);
}

/** The configuration of a drawn model, with the names of rtxlib. @param {State} state */
export function configuration(state) {
  return {
    hidden_size: state.d_model,
    num_attention_heads: state.heads,
    num_hidden_layers: state.layers,
    num_decoder_layers: state.layers,
    intermediate_size: state.d_ff,
    position: state.position,
    rope_theta: 10000,
    norm: state.norm,
    norm_placement: state.norm_placement,
    norm_eps: state.norm === "rmsnorm" ? 1e-12 : 1e-5,
    feedforward: state.feedforward,
    embedding_scale: state.position === "sinusoidal", // otherwise the positions, of size 1, would outweigh the words
    embedding_norm: false,
    final_norm: state.norm_placement === "pre",
    recurrent_depth: state.recurrent_depth,
    block_sharing: "shared",
    residual: "from_second",
    residual_scale: state.residual_scale,
  };
}

/** [name, rows, columns] of every weight of a drawn model except its table of words. */
function shapes(config) {
  const {
    hidden_size: d,
    intermediate_size: inner,
    norm,
    num_hidden_layers: layers,
    num_decoder_layers: decoders,
  } = config;
  const normed = (part) => [[`${part}/gain`, 1, d], ...(norm === "layernorm" ? [[`${part}/bias`, 1, d]] : [])];
  const dense = (part, rows, cols) => [
    [part, rows, cols],
    [`${part}/bias`, 1, cols],
  ];
  const attention = (part) => [
    ...["query", "key", "value", "output"].flatMap((word) => dense(`${part}/${word}`, d, d)),
    ...normed(`${part}/norm`),
  ];
  const inputs = config.feedforward === "swiglu" ? ["gate", "value"] : ["inner"];
  const feedForward = (part) => [
    ...inputs.flatMap((word) => dense(`${part}/${word}`, d, inner)),
    ...dense(`${part}/output`, inner, d),
    ...normed(`${part}/norm`),
  ];
  const all = [];
  for (let l = 0; l < layers; l++)
    all.push(...attention(`encoder/0/${l}/attention`), ...feedForward(`encoder/0/${l}/feedforward`));
  for (let l = 0; l < decoders; l++) {
    const part = `decoder/0/${l}`;
    all.push(...attention(`${part}/attention`), ...attention(`${part}/cross`), ...feedForward(`${part}/feedforward`));
  }
  if (config.final_norm) all.push(...normed("encoder/norm"), ...normed("decoder/norm"));
  return all;
}

function drawn(config, words, seed) {
  const d = config.hidden_size;
  const weights = new Map();
  const streams = words.map((word) => normal(`${seed}/word/${word}`)); // a word has the same vector in every text
  const spread = config.embedding_scale ? 1 / Math.sqrt(d) : 1;
  weights.set(
    "table",
    tabulate(words.length, d, (i) => spread * streams[i]()),
  );
  for (const [name, rows, cols] of shapes(config)) {
    const draw = normal(`${seed}/${name}`);
    const start = name.endsWith("/bias") ? () => 0 : name.endsWith("/gain") ? () => 1 : () => draw() / Math.sqrt(rows);
    weights.set(name, tabulate(rows, cols, start));
  }
  return { config, weights, words, labels: null };
}

const openedRuns = new WeakMap(); // each run is decoded only once

function opened(state) {
  const { run } = state;
  if (!openedRuns.has(run)) openedRuns.set(run, unpack(run));
  const { config, ...rest } = openedRuns.get(run);
  if (config.block_sharing === "unshared") return { config, ...rest };
  return {
    config: { ...config, recurrent_depth: state.recurrent_depth, residual_scale: state.residual_scale },
    ...rest,
  };
}

/** The dropout masks of a state: a cell is 0 with probability p, else 1/(1−p). Null without training. @param {State} state */
export function masksOf(state) {
  if (!state.training || state.dropout === 0) return () => null;
  const kept = 1 / (1 - state.dropout);
  return (name, rows, cols) => {
    const draw = uniform(`${state.seed}/${state.draw}/${name}`);
    return tabulate(rows, cols, () => (draw() < state.dropout ? 0 : kept));
  };
}

/** All numbers of a complete state: the run of its model on its tokens. @param {State} state @param {Model} model */
export function compute(state, model = build(state)) {
  const numbers = (tokens) => numbersOf(tokens, model.words);
  return run(model, numbers(state.tokens), numbers(targetOf(state)), state.edits, masksOf(state));
}

/** The target, extended greedily by its likeliest next words until it ends, by at most `most` words. @param {State} state */
export function decode(state, most) {
  let grown = state;
  for (let count = 0; count < most && grown.target.length < MOST_TOKENS - 1; count++) {
    const word = likeliest(grown);
    if (word === "</s>") break;
    grown = changed(grown, { target: [...grown.target, word] });
  }
  return grown.target;
}

/**
 * The likeliest next word of a drawn model after the target so far. The begin token is not a candidate.
 * @param {State} state
 */
export function likeliest(state) {
  const { rows, cols, data } = compute(state).values.get("probabilities");
  const words = wordsOf(state);
  let best = 1;
  for (let j = 1; j < cols; j++) if (data[(rows - 1) * cols + j] > data[(rows - 1) * cols + best]) best = j;
  return words[best];
}
