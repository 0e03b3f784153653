// The chapters of the page in the order of computation: for each stage a sentence, a formula, and the matrices to show.

import { dropped, layerStages } from "./layers.js";

/** @typedef {import("./layers.js").Stage} Stage */
/** @typedef {{id: string, title: string, says: string, stages: Stage[]}} Chapter */

/** The stage that holds the numbers of a part in the picture of the network. */
export function stageOf(part, { num_decoder_layers: decodes }) {
  if (part === "head") return decodes ? "output/words" : "output/labels";
  return {
    words: "encoder/token",
    vectors: "encoder/token",
    attention: "encoder/0/0/attention/weights",
    feedforward: "encoder/0/0/feedforward/inner",
    state: "encoder/0/0/feedforward/sum",
    loop: "loop/states",
    decoder: "decoder/0/0/cross/weights",
    target: "decoder/token",
  }[part];
}

/** All chapters of a model. @returns {Chapter[]} */
export function chapters(config, training) {
  const list = [reading("encoder", config, training)];
  const passes = config.recurrent_depth;
  for (let pass = 0; pass < passes; pass++) {
    for (let layer = 0; layer < config.num_hidden_layers; layer++) {
      const block = config.block_sharing === "unshared" ? pass : 0;
      list.push({
        id: `encoder/${pass}/${layer}`,
        title: `Encoder, layer ${layer + 1}${passes > 1 ? `, pass ${pass + 1} of ${passes}` : ""}`,
        says:
          pass && !block
            ? "The same weights again, on the state after the previous pass."
            : "Every token attends to every other; then each is processed separately.",
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
        says: "Each token attends to the target so far, then to the whole source; then each is processed separately.",
        stages: layerStages(`decoder/0/${layer}`, `decoder/0/${layer}`, "target", config, training, true),
      });
    }
    if (config.final_norm) list.push(finalNorm("decoder", "target"));
  }
  list.push(output(config));
  return list;
}

/** @returns {Chapter} */
function reading(side, config, training) {
  const rows = side === "encoder" ? "source" : "target";
  const { position, embedding_scale: scaled } = config;
  /** @type {Stage[]} */
  const stages = [
    {
      id: `${side}/token`,
      title: "Words become vectors",
      formula: scaled ? "X = \\sqrt{d} · E_{token}" : "X = E_{token}",
      says: `Each token takes its row of the table E${scaled ? ", times √d, so that the positions do not outweigh it" : ""}.`,
      shown: [
        { name: "weights/table", title: "E, one row per word", rows: "words" },
        { name: `${side}/token`, title: "X", rows },
      ],
    },
  ];
  if (config.type_vocab_size) {
    stages.push({
      id: `${side}/type`,
      title: "The segment's vector",
      formula: "X ← X + t",
      says: "The same vector is added to every token of the segment.",
      shown: [
        { name: "weights/type", title: "t" },
        { name: `${side}/typed`, title: "X + t", rows },
      ],
    });
  }
  if (position === "sinusoidal") {
    stages.push({
      id: `${side}/position`,
      title: "Where each word stands",
      formula: "P_{m,2i} = sin(m / 10000^{2i/d}), \\quad P_{m,2i+1} = cos(m / 10000^{2i/d})",
      says: "Waves from fast to slow give every position m its own pattern, which is added to the word.",
      shown: [
        { name: `${side}/position`, title: "P", rows },
        { name: `${side}/sum`, title: "X + P", rows },
      ],
    });
  } else if (position === "learned") {
    stages.push({
      id: `${side}/position`,
      title: "Where each word stands",
      formula: "X ← X + P",
      says: "Every position has a learned vector, which is added to the word.",
      shown: [
        { name: `${side}/position`, title: "P", rows },
        { name: `${side}/sum`, title: "X + P", rows },
      ],
    });
  } else if (position === "rotary") {
    stages.push({
      id: `${side}/angles`,
      title: "Where each word stands",
      formula: `α_{m,i} = m · θ_{i}, \\quad θ_{i} = ${config.rope_theta}^{−2i/d_{k}}`,
      says:
        "Nothing is added here. Each attention turns the pairs of queries and keys by these angles, so that their " +
        "products depend on the distance.",
      shown: [{ name: `${side}/angles`, title: "angles α", rows }],
    });
  } else {
    stages.push({
      id: `${side}/position`,
      title: "Where each word stands",
      formula: "",
      says:
        position === "alibi"
          ? "Nothing is added here. Attention lowers each score in proportion to the distance."
          : "Nothing is added. The model sees a bag of words, except that a mask may hide later tokens.",
      shown: [],
    });
  }
  /** @type {import("./layers.js").Shown[]} */
  const shown = config.embedding_norm
    ? [
        { name: "weights/embedding/norm/gain", title: "gain γ" },
        { name: `${side}/normed`, title: "normed", rows },
      ]
    : [];
  shown.push(...dropped(side, training, rows));
  if (shown.length) {
    stages.push({
      id: `${side}/input`,
      title: config.embedding_norm ? "Norm and dropout" : "Dropout",
      formula: training ? "X ← mask ⊙ X" : "",
      says: "This is the input of the first layer.",
      shown,
    });
  }
  const titles = { encoder: "The source is read", decoder: "The target so far is read" };
  return {
    id: side,
    title: titles[side],
    says:
      side === "encoder"
        ? "Words become vectors that hold their position."
        : "The words so far become vectors, with the same table and the same positions.",
    stages,
  };
}

/** @returns {Chapter} */
function loop(config) {
  const words = {
    none: ["h_{r} = F(h_{r−1})", "The block’s own residuals carry the state from pass to pass."],
    every: ["h_{r} = F(h_{r−1}) + α h_{r−1}", "Every pass adds α times the state it began with."],
    from_second: [
      "h_{1} = F(h_{0}), \\quad h_{r} = F(h_{r−1}) + α h_{r−1}",
      "From the second on, every pass adds α times the state it began with.",
    ],
    learned: [
      "h_{r} = F(h_{r−1}) + α_{r} h_{r−1}",
      "Every pass adds the state it began with, times a learned α_r of its own.",
    ],
    damped: ["h_{r} = h_{r−1} + α (F(h_{r−1}) − h_{r−1})", "Every pass moves the state by the part α of its change."],
  };
  const [formula, says] = words[config.residual];
  const states = Array.from({ length: config.recurrent_depth + 1 }, (_, r) => ({
    name: `iteration ${r}`,
    title: r ? `h after pass ${r}` : "h₀, the input",
    rows: "source",
  }));
  /** @type {Stage[]} */
  const labels = config.num_decoder_layers
    ? []
    : [
        {
          id: "loop/labels",
          title: "The label after each pass",
          formula: config.final_norm ? "p_{r} = softmax(norm(h_{r}) W + b)" : "p_{r} = softmax(h_{r} W + b)",
          says: "Each state is read out as the last one is, so the answer can be watched while it settles.",
          shown: [{ name: "passes", title: "p after each pass", rows: "passes", cols: "labels" }],
        },
      ];
  return {
    id: "loop",
    title: "The state, pass by pass",
    says: config.block_sharing === "unshared" ? "Blocks, one after the other." : "One block, used again and again.",
    stages: [{ id: "loop/states", title: "States of the loop", formula, says, shown: states }, ...labels],
  };
}

/** @returns {Chapter} */
function finalNorm(side, rows) {
  return {
    id: `${side}/norm`,
    title: side === "encoder" ? "The encoder’s last norm" : "The decoder’s last norm",
    says: "With norms before the sub-layers the state grows from layer to layer, so one more norm follows at the end.",
    stages: [
      {
        id: `${side}/final`,
        title: "Norm",
        formula: "y = norm(x)",
        says: "Everything that follows reads this state.",
        shown: [
          { name: `weights/${side}/norm/gain`, title: "gain γ" },
          { name: `${side}/final`, title: "y", rows },
        ],
      },
    ],
  };
}

/** @returns {Chapter} */
function output(config) {
  if (!config.num_decoder_layers) {
    return {
      id: "output",
      title: "The answer",
      says: "One vector stands for the text. It gives a probability for each label.",
      stages: [
        {
          id: "output/labels",
          title: "Logits and softmax",
          formula: "p = softmax(h W + b)",
          says: {
            cls: "h is the state of [CLS].",
            mean: "h is the mean of all states.",
            pooler: "h is the state of [CLS] after a dense layer.",
          }[config.pooling],
          shown: [
            { name: "pooled", title: "h" },
            { name: "weights/classifier", title: "W", cols: "labels" },
            { name: "weights/classifier/bias", title: "b", cols: "labels" },
            { name: "logits", title: "logits", cols: "labels" },
            { name: "probabilities", title: "p", cols: "labels" },
          ],
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
        says: "The table of the words, transposed, gives a score for each word. The last row is for the next word.",
        shown: [
          { name: "logits", title: "logits", rows: "target", cols: "words" },
          { name: "probabilities", title: "p, rows sum to one", rows: "target", cols: "words" },
        ],
        words: "words",
      },
    ],
  };
}
