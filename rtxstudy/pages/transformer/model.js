// The model that a state of the page describes, and the numbers that it computes.

import { normal, uniform } from "../shared/random.js";
import { run } from "./core.js";
import { tabulate } from "./matrices.js";
import { MOST_TOKENS, changed, inner, packedOf, targetOf, wordsOf } from "./state.js";
import { unpack } from "./unpack.js";
import { numbersOf } from "./wordpiece.js";

/** @typedef {import("./matrices.js").Matrix} Matrix */
/** @typedef {import("./state.js").State} State */
/**
 * A model: its configuration, in the words of rtxlib.models.ModelConfig, its weights by name, and its vocabulary.
 * @typedef {{config: Record<string, any>, weights: Map<string, Matrix>, words: string[], labels: string[] | null}} Model
 */

/** The trained model of a state, or a model drawn from the seed. @param {State} state @returns {Model} */
export function build(state) {
  return packedOf(state) ? opened(state) : drawn(configuration(state), wordsOf(state), state.seed);
}

/** The configuration of a drawn model, with the names of rtxlib. @param {State} state */
export function configuration(state) {
  return {
    hidden_size: state.d_model,
    num_attention_heads: state.heads,
    num_hidden_layers: state.layers,
    num_decoder_layers: state.layers,
    intermediate_size: inner(state),
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
  const packed = packedOf(state);
  if (!openedRuns.has(packed)) openedRuns.set(packed, unpack(packed));
  const { config, ...rest } = openedRuns.get(packed);
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
 * The likeliest next word after the target so far. The begin token is not a candidate.
 * @param {State} state
 */
export function likeliest(state) {
  const model = build(state);
  const { rows, cols, data } = compute(state, model).values.get("probabilities");
  const begin = model.words.indexOf("<s>");
  let best = -1;
  for (let j = 0; j < cols; j++)
    if (j !== begin && (best < 0 || data[(rows - 1) * cols + j] > data[(rows - 1) * cols + best])) best = j;
  return model.words[best];
}
