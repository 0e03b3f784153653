// The Transformer of "Attention Is All You Need" and the variants of this study. Every intermediate number has a name.

import {
  ACTIVATIONS,
  add,
  beside,
  linear,
  map,
  matrix,
  mix,
  normalise,
  products,
  softmax,
  stack,
  tabulate,
  times,
  zip,
} from "./matrices.js";

/** @typedef {import("./matrices.js").Matrix} Matrix */
/** @typedef {import("./model.js").Model} Model */

/**
 * The result of a run.
 * values: every matrix by name, in the order of computation, weights included: "weights/encoder/0/0/attention/query",
 * "encoder/0/1/attention/scores/2" (pass 0, layer 1, head 2). iterations: the names of the encoder's state before the loop
 * and after each pass.
 * @typedef {{values: Map<string, Matrix>, iterations: string[]}} Run
 */

/** The parts of "name[row,column]", or null. @param {string} key */
export function cellOf(key) {
  const parts = /^([a-z]+(?:\/[a-z0-9]+)*)\[(\d+),(\d+)\]$/.exec(key);
  return parts && { name: parts[1], row: Number(parts[2]), col: Number(parts[3]) };
}

/**
 * Computes the model on a text.
 *
 * source, target: numbers of words in the model's vocabulary; only a decoder uses the target. edits: cells that hold a
 * given value instead of the computed one, {"name[row,column]": value}; cells that do not exist are ignored.
 * masks(name, rows, cols): the dropout mask of this name, 0 or 1/(1−p), or null without dropout.
 * @param {Model} model
 * @param {number[]} source
 * @param {number[]} target
 * @param {Record<string, number>} edits
 * @param {(name: string, rows: number, cols: number) => Matrix | null} masks
 * @returns {Run}
 */
export function run(model, source, target = [], edits = {}, masks = () => null) {
  const { config } = model;
  /** @type {Map<string, Matrix>} */
  const values = new Map();
  const pinned = new Map();
  for (const [key, value] of Object.entries(edits)) {
    const cell = cellOf(key);
    if (cell) pinned.set(cell.name, [...(pinned.get(cell.name) ?? []), { ...cell, value }]);
  }

  /** Keeps a matrix under its name, with its edited cells. */
  function note(name, made) {
    let kept = made;
    for (const { row, col, value } of pinned.get(name) ?? []) {
      if (row >= made.rows || col >= made.cols) continue;
      if (kept === made) kept = matrix(made.rows, made.cols, made.data.slice());
      kept.data[row * made.cols + col] = value;
    }
    values.set(name, kept);
    return kept;
  }

  /** The weight of this name, or null if the model has none. */
  function weight(name) {
    const full = `weights/${name}`;
    if (values.has(full)) return values.get(full);
    const drawn = model.weights.get(name);
    return drawn ? note(full, drawn) : null;
  }

  const project = (name, x, part) => note(name, linear(x, weight(part), weight(`${part}/bias`)));

  function norm(name, x, part) {
    const gain = weight(`${part}/gain`);
    return note(name, normalise(x, config.norm, gain, weight(`${part}/bias`), config.norm_eps));
  }

  function dropout(name, x) {
    const mask = masks(`${name}/mask`, x.rows, x.cols);
    return mask ? note(`${name}/dropped`, times(x, note(`${name}/mask`, mask))) : x;
  }

  function embed(side, ids) {
    const table = weight("table");
    const d = config.hidden_size;
    const scale = config.embedding_scale ? Math.sqrt(d) : 1;
    let x = note(
      `${side}/token`,
      tabulate(ids.length, d, (i, j) => table.data[ids[i] * d + j] * scale),
    );
    const type = weight("type");
    if (type) x = note(`${side}/typed`, add(x, type));
    let places = null;
    if (config.position === "sinusoidal") places = sinusoidal(ids.length, d);
    if (config.position === "learned") places = matrix(ids.length, d, weight("position").data.slice(0, ids.length * d));
    if (places) x = note(`${side}/sum`, add(x, note(`${side}/position`, places)));
    if (config.embedding_norm) x = norm(`${side}/normed`, x, "embedding/norm");
    return dropout(side, x);
  }

  /** The angles of RoPE (tokens × pairs of a head's dimensions) by which queries and keys turn; null without RoPE. */
  function angles(side, length) {
    if (config.position !== "rotary") return null;
    const width = config.hidden_size / config.num_attention_heads;
    return note(
      `${side}/angles`,
      tabulate(length, width / 2, (m, i) => m * config.rope_theta ** ((-2 * i) / width)),
    );
  }

  /** Attention of x to memory; with `past`, a token sees no later token. path names the numbers, part the weights. */
  function attention(path, part, x, memory, turn, past) {
    const heads = config.num_attention_heads;
    const width = config.hidden_size / heads;
    let q = project(`${path}/query`, x, `${part}/query`);
    let k = project(`${path}/key`, memory, `${part}/key`);
    const v = project(`${path}/value`, memory, `${part}/value`);
    if (turn) {
      q = note(`${path}/query/turned`, rotate(q, turn, width));
      k = note(`${path}/key/turned`, rotate(k, turn, width));
    }
    const outputs = [];
    for (let head = 0; head < heads; head++) {
      let scores = note(`${path}/scores/${head}`, products(q, k, head * width, width, 1 / Math.sqrt(width)));
      if (past) {
        scores = note(
          `${path}/masked/${head}`,
          tabulate(x.rows, memory.rows, (i, j) => (j > i ? -Infinity : scores.data[i * memory.rows + j])),
        );
      } else if (config.position === "alibi") {
        const slope = alibi(heads)[head];
        scores = note(
          `${path}/masked/${head}`,
          tabulate(x.rows, x.rows, (i, j) => scores.data[i * x.rows + j] - slope * Math.abs(i - j)),
        );
      }
      const weights = note(`${path}/weights/${head}`, softmax(scores));
      outputs.push(note(`${path}/head/${head}`, mix(weights, v, head * width, width)));
    }
    return project(`${path}/output`, note(`${path}/concat`, beside(outputs)), `${part}/output`);
  }

  function feedForward(path, part, x) {
    const act = ACTIVATIONS[config.feedforward];
    let inner;
    if (weight(`${part}/gate`)) {
      const gate = note(`${path}/activated`, map(project(`${path}/gate`, x, `${part}/gate`), act));
      inner = note(`${path}/gated`, times(gate, project(`${path}/value`, x, `${part}/value`)));
    } else {
      inner = note(`${path}/activated`, map(project(`${path}/inner`, x, `${part}/inner`), act));
    }
    return project(`${path}/output`, dropout(`${path}/inner`, inner), `${part}/output`);
  }

  /** x plus the output of a sub-layer, with the norm before or after. */
  function residual(path, part, x, sublayer) {
    if (config.norm_placement === "pre") {
      const made = dropout(path, sublayer(norm(`${path}/normed`, x, `${part}/norm`)));
      return note(`${path}/sum`, add(x, made));
    }
    const sum = note(`${path}/sum`, add(x, dropout(path, sublayer(x))));
    return norm(`${path}/normed`, sum, `${part}/norm`);
  }

  function layer(path, part, x, turn, past, memory) {
    let h = residual(`${path}/attention`, `${part}/attention`, x, (seen) => {
      return attention(`${path}/attention`, `${part}/attention`, seen, seen, turn, past);
    });
    if (memory) {
      h = residual(`${path}/cross`, `${part}/cross`, h, (seen) => {
        return attention(`${path}/cross`, `${part}/cross`, seen, memory, null, false);
      });
    }
    h = residual(`${path}/feedforward`, `${part}/feedforward`, h, (seen) => {
      return feedForward(`${path}/feedforward`, `${part}/feedforward`, seen);
    });
    return h;
  }

  const nameOf = (wanted) => [...values].findLast(([, kept]) => kept === wanted)[0];

  let h = embed("encoder", source);
  const turn = angles("encoder", source.length);
  const iterations = [nameOf(h)];
  for (let pass = 0; pass < config.recurrent_depth; pass++) {
    const before = h;
    const block = config.block_sharing === "unshared" ? pass : 0;
    for (let l = 0; l < config.num_hidden_layers; l++)
      h = layer(`encoder/${pass}/${l}`, `encoder/${block}/${l}`, h, turn, false, null);
    const joined = join(config, before, h, pass, weight("loop/alpha"));
    if (joined !== h) h = note(`encoder/${pass}/joined`, joined);
    iterations.push(nameOf(h));
  }
  if (config.final_norm) h = norm("encoder/final", h, "encoder/norm");

  if (config.num_decoder_layers) {
    let y = embed("decoder", target);
    const turned = angles("decoder", target.length);
    for (let l = 0; l < config.num_decoder_layers; l++)
      y = layer(`decoder/0/${l}`, `decoder/0/${l}`, y, turned, true, h);
    if (config.final_norm) y = norm("decoder/final", y, "decoder/norm");
    const table = weight("table");
    note("probabilities", softmax(note("logits", products(y, table, 0, table.cols, 1))));
  } else {
    const pooler = [weight("pooler"), weight("pooler/bias")];
    const pool = (x) => {
      if (config.pooling === "mean") return tabulate(1, x.cols, (_, j) => mean(x, j));
      const first = matrix(1, x.cols, x.data.slice(0, x.cols));
      return config.pooling === "pooler" ? map(linear(first, ...pooler), Math.tanh) : first;
    };
    note("pooled", pool(h));
    const last = note("probabilities", softmax(project("logits", values.get("pooled"), "classifier")));
    // The same read-out of the state after each pass. Its last row is the answer.
    const classifier = [weight("classifier"), weight("classifier/bias")];
    const gain = weight("encoder/norm/gain");
    const settled = (x) => (gain ? normalise(x, config.norm, gain, weight("encoder/norm/bias"), config.norm_eps) : x);
    const rows = iterations.slice(1, -1).map((name) => softmax(linear(pool(settled(values.get(name))), ...classifier)));
    note("passes", stack([...rows, last]));
  }
  return { values, iterations };
}

/** PE(m, 2i) = sin(m / 10000^(2i/d)), PE(m, 2i+1) = cos(m / 10000^(2i/d)). */
export function sinusoidal(length, d) {
  return tabulate(length, d, (m, j) => {
    const angle = m * 10000 ** (-(j - (j % 2)) / d);
    return j % 2 ? Math.cos(angle) : Math.sin(angle);
  });
}

/** Turns the pairs (i, i + width/2) of each head by the angles (n × width/2) of their token. */
function rotate(x, angles, width) {
  const half = width / 2;
  return tabulate(x.rows, x.cols, (m, j) => {
    const within = j % width;
    const angle = angles.data[m * half + (within % half)];
    const own = x.data[m * x.cols + j];
    const other = x.data[m * x.cols + (within < half ? j + half : j - half)];
    return own * Math.cos(angle) + (within < half ? -other : other) * Math.sin(angle);
  });
}

/** The slopes of ALiBi, one per head (Press et al. 2022). If heads is not a power of two, the next one fills up the list. */
function alibi(heads) {
  const slopes = (n) => Array.from({ length: n }, (_, i) => 2 ** ((-8 / n) * (i + 1)));
  const power = 2 ** Math.floor(Math.log2(heads));
  const more = slopes(2 * power).filter((_, i) => i % 2 === 0);
  return [...slopes(power), ...more.slice(0, heads - power)];
}

/**
 * The state after a pass, from the states before and after its layers (rtxlib.models.residual). `learned` is α per pass.
 * @param {Record<string, any>} config
 */
function join(config, before, after, pass, learned) {
  const { residual, residual_scale: alpha } = config;
  if (residual === "none" || (residual === "from_second" && pass === 0)) return after;
  if (residual === "damped") return zip(before, after, (h, f) => h + alpha * (f - h));
  const scale = residual === "learned" ? learned.data[Math.min(pass, learned.cols - 1)] : alpha;
  return zip(before, after, (h, f) => f + scale * h);
}

function mean(x, j) {
  let sum = 0;
  for (let i = 0; i < x.rows; i++) sum += x.data[i * x.cols + j];
  return sum / x.rows;
}
