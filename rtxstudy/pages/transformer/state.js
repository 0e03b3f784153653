// The state of the page, which any JSON can be completed to.

import { cellOf } from "./core.js";
import { TRAINED } from "./trained.js";
import { pieces } from "./wordpiece.js";

/** The state that any other is completed from. With random weights it is a small model of the paper. */
export const START = {
  weights: "sentiment", // "sentiment" or "reversal", which are trained; "random"; or "run", the trained run of the page
  step: 0, // of the guided walk; 0: none
  /** Given as a string, a sentence becomes its tokens. */
  tokens: ["the", "cat", "sat", "on", "the", "mat"],
  /** @type {string | null} */
  typed: null, // the sentence as the reader typed it, if `tokens` are its tokens
  target: ["le", "chat"],
  d_model: 8, // width of a token's vector
  heads: 2,
  layers: 2, // of the encoder's block and of the decoder
  /** @type {number | null} */
  d_ff: null, // width inside the feed-forward; null: 4·d_model
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
  colours: "soft", // "pure": blue at +10 and red at −10 without any white in them
  notation: "plain", // "scientific": every number with an exponent
  /** @type {any} */
  run: null, // a trained run's model (rtxstudy.pages.weights)
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
  weights: ["sentiment", "reversal", "random", "run"],
  colours: ["soft", "pure"],
  notation: ["plain", "scientific"],
  norm_placement: ["post", "pre"],
  norm: ["layernorm", "rmsnorm"],
  position: ["sinusoidal", "rotary", "none"],
  feedforward: ["relu", "gelu", "swiglu"],
};

/** The range of each whole number, and of each real number. */
export const WHOLE = {
  step: [0, 10],
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
const REDRAWN = ["weights", "d_model", "heads", "layers", "d_ff", "seed", "run"];
// A state that names one of these, and no weights, has random ones: only they can have any size and kind.
const DRAWN = ["d_model", "heads", "layers", "d_ff", "seed", "norm_placement", "norm", "position", "feedforward", "target"];

export const SENTENCE = "nobody can claim that the film was not dull"; // the first sentence of a classifier

/** @typedef {typeof START} State */

/**
 * Any JSON as a state. Missing and unusable fields are as in START; values out of range are clipped.
 * @param {Record<string, any>} given @returns {State}
 */
export function complete(given) {
  const run = given.run ?? null;
  const implied = run ? "run" : DRAWN.some((name) => name in given) ? "random" : START.weights;
  const known = CHOICES.weights.includes(given.weights) && (run || given.weights !== "run");
  const weights = known ? given.weights : implied;
  const state = { ...START, run, weights, ...beginning({ weights, run }) };
  for (const [name, [least, most]] of Object.entries({ ...WHOLE, ...REAL })) {
    const value = typeof given[name] === "string" ? Number.NaN : Number(given[name] ?? Number.NaN);
    if (Number.isFinite(value))
      state[name] = Math.min(most, Math.max(least, name in WHOLE ? Math.round(value) : value));
  }
  for (const [name, words] of Object.entries(CHOICES))
    if (name !== "weights" && words.includes(given[name])) state[name] = given[name];
  state.d_model -= state.d_model % 2;
  state.training = given.training === true;
  state.heads = largestFitting(state);
  const most = Math.min(MOST_TOKENS, packedOf(state)?.config.max_position_embeddings ?? MOST_TOKENS);
  const reads = packedOf(state) && !translates(state); // a sentence, as one text, which keeps its end as in training
  const fitting = (list, limit) => {
    const kept = list.map(shorten).filter((token) => token.trim());
    return reads && kept.length > limit ? [...kept.slice(0, limit - 1), kept.at(-1)] : kept.slice(0, limit);
  };
  const typed = typeof given.tokens === "string" ? given.tokens : given.typed;
  const spoken = typeof typed === "string" && (reads || typed.trim()) ? fitting(sentenceTokens(typed, state), most) : [];
  const tokens = Array.isArray(given.tokens) ? fitting(given.tokens, most) : spoken;
  if (tokens.length) state.tokens = tokens;
  if (Array.isArray(given.target)) state.target = fitting(given.target, most - 1);
  if (reads && spoken.length && same(spoken, state.tokens)) state.typed = typed;
  const edits = given.edits !== null && typeof given.edits === "object" ? given.edits : {};
  state.edits = Object.fromEntries(
    Object.entries(edits)
      .filter(([key, value]) => cellOf(key) && Number.isFinite(value))
      .map(([key, value]) => [key, Math.min(LARGEST, Math.max(-LARGEST, value))]),
  );
  return state;
}

/** The trained model of a state, packed, or null where its weights are random. @param {{weights: string, run?: any}} state */
export function packedOf({ weights, run }) {
  return weights === "run" ? run : weights === "random" ? null : TRAINED[weights];
}

/** The texts and the loop with which a choice of weights begins. @param {{weights: string, run?: any}} state */
export function beginning(state) {
  const packed = packedOf(state);
  if (!packed) {
    const { tokens, target, recurrent_depth, residual_scale } = START;
    return { tokens, target, recurrent_depth, residual_scale };
  }
  const { words, lowercase, config } = packed;
  const { recurrent_depth, residual_scale } = config;
  if (config.num_decoder_layers) return { tokens: [..."faced"], target: [..."de"], recurrent_depth, residual_scale };
  return { tokens: pieces(SENTENCE, words, lowercase), target: [], recurrent_depth, residual_scale };
}

const same = (some, others) => some.length === others.length && some.every((one, at) => one === others[at]);

function shorten(token) {
  return [...String(token ?? "")].slice(0, LONGEST_TOKEN).join("");
}

/** The number of heads, lowered until it divides d_model; with RoPE, also until the width of a head is even. */
function largestFitting({ heads, d_model: d, position }) {
  let fitting = Math.min(heads, d);
  while (d % fitting || (position === "rotary" && (d / fitting) % 2)) fitting -= 1;
  return fitting;
}

/** The tokens of a sentence, for a classifier between [CLS] and [SEP]. @param {string} text @param {State} state */
function sentenceTokens(text, state) {
  const found = tokensOf(text, state);
  return packedOf(state) && !translates(state) ? ["[CLS]", ...found, "[SEP]"] : found;
}

/**
 * The tokens of a text for the weights of a state: pieces of a vocabulary, letters, or words and signs. A word that is not in
 * the vocabulary stays as it is.
 */
export function tokensOf(text, state) {
  const packed = packedOf(state);
  if (!packed && !/\s/.test(text)) return [text];
  if (!packed) return text.match(/[\p{L}\p{M}\p{N}'’]+|[^\s\p{L}\p{M}\p{N}]+/gu) ?? [];
  if (translates(state)) return [...text.toLowerCase().replace(/\s/gu, "")];
  const known = packed.words.includes(text);
  return known ? [text] : pieces(text, packed.words, packed.lowercase).slice(1, -1);
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
    if (name !== "weights/table" || packedOf(state)) return [[key, value]];
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

/** Whether the model of a state has a decoder, and so a target. @param {State} state */
export function translates(state) {
  return (packedOf(state)?.config.num_decoder_layers ?? 1) > 0;
}

/** The input of the decoder: the begin token, then the target so far. @param {State} state @returns {string[]} */
export function targetOf(state) {
  return translates(state) ? ["<s>", ...state.target] : [];
}

/** The width inside the feed-forward. @param {State} state */
export function inner({ d_ff, d_model }) {
  return d_ff ?? 4 * d_model;
}
