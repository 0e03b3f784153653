// What the page tells, in the order of the data: for each stage a sentence, its formula, and the matrices to show.

/**
 * A matrix to show. part: whose columns of which head are shown, for matrices that hold all heads side by side. rows, cols:
 * "source", "target", "words" or "labels" where they are such, else they are numbered. line: matrices of one line stand beside
 * each other.
 * @typedef {{name: string | ((head: number) => string), title: string, part?: boolean, rows?: string, cols?: string,
 *   line?: string}} Shown
 * @typedef {{id: string, title: string, formula: string, says: string, shown: Shown[], heads?: boolean,
 *   links?: {weights: (head: number) => string, from: string, to: string}, words?: string}} Stage
 * @typedef {{id: string, title: string, says: string, stages: Stage[]}} Chapter
 */

/** The whole way through a model. @returns {Chapter[]} */
export function chapters(config, training) {
  const list = [reading("encoder", config, training)];
  const passes = config.recurrent_depth;
  for (let pass = 0; pass < passes; pass++) {
    for (let layer = 0; layer < config.num_hidden_layers; layer++) {
      const block = config.block_sharing === "unshared" ? pass : 0;
      list.push({
        id: `encoder/${pass}/${layer}`,
        title: `Encoder, layer ${layer + 1}${passes > 1 ? `, pass ${pass + 1} of ${passes}` : ""}`,
        says: pass && !block ? "The same weights again, on the state that the pass before left." : "Every token looks at every other, then thinks by itself.",
        stages: layerStages(`encoder/${pass}/${layer}`, `encoder/${block}/${layer}`, "source", config, training, false),
      });
    }
  }
  if (passes > 1) list.push(loop(config));
  if (config.final_norm) list.push(finalNorm("encoder", "source"));
  if (config.num_decoder_layers) {
    list.push(reading("decoder", config, training));
    for (let layer = 0; layer < config.num_decoder_layers; layer++) {
      list.push({
        id: `decoder/0/${layer}`,
        title: `Decoder, layer ${layer + 1}`,
        says: "Each token of the target looks back at the target so far, then at the whole source, then thinks by itself.",
        stages: layerStages(`decoder/0/${layer}`, `decoder/0/${layer}`, "target", config, training, true),
      });
    }
    if (config.final_norm) list.push(finalNorm("decoder", "target"));
  }
  list.push(output(config));
  return list;
}

/** The matrices of a dropout: the mask, and what it leaves. */
function dropped(path, training, rows) {
  return training ? [{ name: `${path}/mask`, title: "dropout mask", rows }, { name: `${path}/dropped`, title: "after dropout", rows }] : [];
}

function reading(side, config, training) {
  const rows = side === "encoder" ? "source" : "target";
  const { position, embedding_scale: scaled } = config;
  const stages = [
    {
      id: `${side}/token`,
      title: "Words become vectors",
      formula: scaled ? "X = \\sqrt{d} · E_{token}" : "X = E_{token}",
      says: `Each token fetches its row of the table E${scaled ? ", times √d, so that what is added next does not drown it" : ""}.`,
      shown: [{ name: "weights/table", title: "E, one row a word", rows: "words" }, { name: `${side}/token`, title: "X", rows }],
    },
  ];
  if (config.type_vocab_size) {
    stages.push({ id: `${side}/type`, title: "The segment's vector", formula: "X ← X + t", says: "Every token of the text gets the same vector of its segment.", shown: [{ name: "weights/type", title: "t" }, { name: `${side}/typed`, title: "X + t", rows }] });
  }
  if (position === "sinusoidal") {
    stages.push({
      id: `${side}/position`,
      title: "Where each word stands",
      formula: "P_{m,2i} = sin(m / 10000^{2i/d}), \\quad P_{m,2i+1} = cos(m / 10000^{2i/d})",
      says: "Waves from fast to slow give every place m a pattern of its own; it is added to the word.",
      shown: [{ name: `${side}/position`, title: "P", rows }, { name: `${side}/sum`, title: "X + P", rows }],
    });
  } else if (position === "learned") {
    stages.push({ id: `${side}/position`, title: "Where each word stands", formula: "X ← X + P", says: "Every place has a learned vector, which is added to the word.", shown: [{ name: `${side}/position`, title: "P", rows }, { name: `${side}/sum`, title: "X + P", rows }] });
  } else if (position === "rotary") {
    stages.push({
      id: `${side}/angles`,
      title: "Where each word stands",
      formula: "α_{m,i} = m · θ_{i}, \\quad θ_{i} = 10000^{−2i/d_{k}}",
      says: "Nothing is added: in each attention the pairs of a query and of a key are turned by these angles, so that their product knows the distance between them.",
      shown: [{ name: `${side}/angles`, title: "angles α", rows }],
    });
  } else {
    stages.push({ id: `${side}/position`, title: "Where each word stands", formula: "", says: position === "alibi" ? "Nothing is added here: each token of distance will cost a score something." : "The model is not told: it sees a bag of words, save for what a mask hides.", shown: [] });
  }
  const shown = config.embedding_norm ? [{ name: "weights/embedding/norm/gain", title: "gain γ" }, { name: `${side}/normed`, title: "normed", rows }] : [];
  shown.push(...dropped(side, training, rows));
  if (shown.length) {
    stages.push({ id: `${side}/input`, title: config.embedding_norm ? "Norm and dropout" : "Dropout", formula: training ? "X ← mask ⊙ X" : "", says: "What the first layer reads.", shown });
  }
  const titles = { encoder: "The source is read", decoder: "The target so far is read" };
  return { id: side, title: titles[side], says: side === "encoder" ? "From words to vectors that know their place." : "The same table and the same places, for the words that are there already.", stages };
}

function normStage(path, part, config, rows, before) {
  const rms = config.norm === "rmsnorm";
  return {
    id: `${path}/normed`,
    title: rms ? "RMSNorm" : "LayerNorm",
    formula: rms ? "y = x / \\sqrt{mean(x^2) + ε} ⊙ γ" : "y = (x − μ) / \\sqrt{σ^2 + ε} ⊙ γ + β",
    says: `Each row is brought to size one${rms ? "" : " around zero"}${before ? " before the sub-layer reads it; the state itself stays as it is" : ""}.`,
    shown: [
      { name: `weights/${part}/norm/gain`, title: "gain γ" },
      ...(rms ? [] : [{ name: `weights/${part}/norm/bias`, title: "bias β" }]),
      { name: `${path}/normed`, title: "y", rows },
    ],
  };
}

/** The stages of one sub-layer, with its norm before or after. */
function sublayer(path, part, config, training, rows, stages, what) {
  const pre = config.norm_placement === "pre";
  const sum = {
    id: `${path}/sum`,
    title: "Residual",
    formula: pre ? `x ← x + ${what}(norm(x))` : `x + ${what}(x)`,
    says: pre ? "What the sub-layer made is added to the state, which flows past it untouched." : "What the sub-layer made is added to what it read; a norm follows.",
    shown: [...dropped(path, training, rows), { name: `${path}/sum`, title: "sum", rows }],
  };
  const norm = normStage(path, part, config, rows, pre);
  return pre ? [norm, ...stages, sum] : [...stages, sum, norm];
}

function layerStages(path, part, rows, config, training, decoder) {
  const attended = attention(`${path}/attention`, `${part}/attention`, rows, rows, config, decoder);
  const all = sublayer(`${path}/attention`, `${part}/attention`, config, training, rows, attended, "attention");
  if (decoder) {
    const crossed = attention(`${path}/cross`, `${part}/cross`, rows, "source", config, false);
    all.push(...sublayer(`${path}/cross`, `${part}/cross`, config, training, rows, crossed, "cross"));
  }
  const fed = feedForward(`${path}/feedforward`, `${part}/feedforward`, rows, config, training);
  all.push(...sublayer(`${path}/feedforward`, `${part}/feedforward`, config, training, rows, fed, "FFN"));
  return all;
}

function attention(path, part, rows, cols, config, past) {
  const cross = rows !== cols;
  const kind = cross ? "Cross-attention" : past ? "Masked self-attention" : "Self-attention";
  const made = (word, letter, side) => [
    { name: `weights/${part}/${word}`, title: `W^${letter}`, part: true, line: letter },
    { name: `weights/${part}/${word}/bias`, title: `b^${letter}`, part: true, line: letter },
    { name: `${path}/${word}`, title: letter, part: true, rows: side, line: letter },
  ];
  const stages = [
    {
      id: `${path}/query`,
      title: `${kind}: query, key and value`,
      formula: "Q_{h} = X W^Q_{h}, \\quad K_{h} = X W^K_{h}, \\quad V_{h} = X W^V_{h}",
      says: cross
        ? "Each token of the target asks with a query; keys and values come from the encoder’s last state."
        : "Each token asks with a query, offers itself with a key, and has a value to give.",
      heads: true,
      shown: [...made("query", "Q", rows), ...made("key", "K", cols), ...made("value", "V", cols)],
    },
  ];
  if (config.position === "rotary" && !cross) {
    stages.push({
      id: `${path}/turned`,
      title: "Queries and keys are turned",
      formula: "(q_{i}, q_{i+d_{k}/2}) ← (q_{i} cos α − q_{i+d_{k}/2} sin α , q_{i+d_{k}/2} cos α + q_{i} sin α)",
      says: "Each pair turns by its token’s angle; values stay as they are.",
      heads: true,
      shown: [
        { name: `${path}/query/turned`, title: "Q, turned", part: true, rows },
        { name: `${path}/key/turned`, title: "K, turned", part: true, rows: cols },
      ],
    });
  }
  const hidden = past || (config.position === "alibi" && !cross);
  stages.push(
    {
      id: `${path}/weights`,
      title: "Scores and weights",
      formula: past ? "A_{h} = softmax(Q_{h} K^T_{h} / \\sqrt{d_{k}} + M)" : "A_{h} = softmax(Q_{h} K^T_{h} / \\sqrt{d_{k}})",
      says: past
        ? "How well each query fits each key; what lies ahead is hidden by −∞, and softmax makes each row shares of one."
        : "How well each query fits each key; softmax makes each row shares of one.",
      heads: true,
      links: { weights: (head) => `${path}/weights/${head}`, from: rows, to: cols },
      shown: [
        { name: (head) => `${path}/scores/${head}`, title: "scores", rows, cols },
        ...(hidden ? [{ name: (head) => `${path}/masked/${head}`, title: past ? "with the mask" : "with the price of distance", rows, cols }] : []),
        { name: (head) => `${path}/weights/${head}`, title: "A, rows sum to one", rows, cols },
      ],
    },
    {
      id: `${path}/output`,
      title: "Heads, side by side",
      formula: "Z_{h} = A_{h} V_{h}, \\quad attention = [Z_{1} … Z_{H}] W^O + b^O",
      says: "Each head takes its shares of the values; one matrix mixes what the heads brought.",
      heads: true,
      shown: [
        { name: (head) => `${path}/head/${head}`, title: "Z of this head", rows },
        { name: `${path}/concat`, title: "all heads", rows },
        { name: `weights/${part}/output`, title: "W^O" },
        { name: `weights/${part}/output/bias`, title: "b^O" },
        { name: `${path}/output`, title: "output", rows },
      ],
    },
  );
  return stages;
}

function feedForward(path, part, rows, config, training) {
  const word = { relu: "ReLU", gelu: "GELU", swiglu: "Swish", geglu: "GELU" }[config.feedforward];
  const gated = config.feedforward.endsWith("glu");
  const masks = training ? [{ name: `${path}/inner/mask`, title: "dropout mask", rows }, { name: `${path}/inner/dropped`, title: "after dropout", rows }] : [];
  const dense = (name, letter) => [{ name: `weights/${part}/${name}`, title: `W_${letter}` }, { name: `weights/${part}/${name}/bias`, title: `b_${letter}` }];
  return [
    {
      id: `${path}/inner`,
      title: gated ? "Feed-forward: gate and value" : "Feed-forward: outwards",
      formula: gated ? `G = ${word}(x W_{1} + b_{1}) ⊙ (x W_{2} + b_{2})` : `F = ${word}(x W_{1} + b_{1})`,
      says: gated ? "Each token by itself: one projection opens or closes the other." : `Each token by itself, into a wider room, where ${word} ${config.feedforward === "relu" ? "keeps what is positive" : "damps what is negative"}.`,
      shown: gated
        ? [...dense("gate", 1), { name: `${path}/gate`, title: "x W₁ + b₁", rows }, { name: `${path}/activated`, title: `${word} of it`, rows }, ...dense("value", 2), { name: `${path}/value`, title: "x W₂ + b₂", rows }, { name: `${path}/gated`, title: "G", rows }, ...masks]
        : [...dense("inner", 1), { name: `${path}/inner`, title: "x W₁ + b₁", rows }, { name: `${path}/activated`, title: "F", rows }, ...masks],
    },
    {
      id: `${path}/output`,
      title: "Feed-forward: back",
      formula: gated ? "FFN = G W_{3} + b_{3}" : "FFN = F W_{2} + b_{2}",
      says: "Back to the width of the state.",
      shown: [...dense("output", gated ? 3 : 2), { name: `${path}/output`, title: "FFN(x)", rows }],
    },
  ];
}

function loop(config) {
  const words = {
    none: ["h_{r} = F(h_{r−1})", "The block’s own residuals carry the state from pass to pass."],
    every: ["h_{r} = F(h_{r−1}) + α h_{r−1}", "After every pass α times the state it began with is added."],
    from_second: ["h_{1} = F(h_{0}), \\quad h_{r} = F(h_{r−1}) + α h_{r−1}", "From the second pass on, α times the state that a pass began with is added."],
    learned: ["h_{r} = F(h_{r−1}) + α_{r} h_{r−1}", "After each pass its own learned share of the state it began with is added."],
    damped: ["h_{r} = h_{r−1} + α (F(h_{r−1}) − h_{r−1})", "Each pass goes the part α of the way."],
  };
  const [formula, says] = words[config.residual];
  const states = Array.from({ length: config.recurrent_depth + 1 }, (_, r) => ({ name: `iteration ${r}`, title: r ? `h after pass ${r}` : "h₀, what enters", rows: "source" }));
  return { id: "loop", title: "The state, pass by pass", says: "One block, used again and again.", stages: [{ id: "loop/states", title: "States of the loop", formula, says, shown: states }] };
}

function finalNorm(side, rows) {
  return {
    id: `${side}/norm`,
    title: side === "encoder" ? "The encoder’s last norm" : "The decoder’s last norm",
    says: "With norms before the sub-layers the state grows from layer to layer; one more norm ends it.",
    stages: [{ id: `${side}/final`, title: "Norm", formula: "y = norm(x)", says: "What is read from here on.", shown: [{ name: `weights/${side}/norm/gain`, title: "gain γ" }, { name: `${side}/final`, title: "y", rows }] }],
  };
}

function output(config) {
  if (!config.num_decoder_layers) {
    return {
      id: "output",
      title: "The answer",
      says: "One vector stands for the text, and is read as a label.",
      stages: [
        {
          id: "output/labels",
          title: "Logits and softmax",
          formula: "p = softmax(h W + b)",
          says: { cls: "The state of [CLS] alone is read.", mean: "The mean of all states is read.", pooler: "The state of [CLS] is read through a dense layer." }[config.pooling],
          shown: [{ name: "pooled", title: "h" }, { name: "weights/classifier", title: "W", cols: "labels" }, { name: "weights/classifier/bias", title: "b", cols: "labels" }, { name: "logits", title: "logits", cols: "labels" }, { name: "probabilities", title: "p", cols: "labels" }],
          words: "labels",
        },
      ],
    };
  }
  return {
    id: "output",
    title: "The next word",
    says: "Every state of the decoder is compared with every word of the table.",
    stages: [
      {
        id: "output/words",
        title: "Logits and softmax",
        formula: "p = softmax(h E^T)",
        says: "The table that words were looked up in is read the other way round; the last row says what follows.",
        shown: [{ name: "logits", title: "logits", rows: "target", cols: "words" }, { name: "probabilities", title: "p, rows sum to one", rows: "target", cols: "words" }],
        words: "words",
      },
    ],
  };
}
