// The stages of one layer: attention and feed-forward, each with its residual and its norm.

/**
 * A matrix to show. part: whether it holds all heads side by side, so that only the columns of one head are shown. rows,
 * cols: "source", "target", "words", "labels" or "passes"; without them rows and columns are numbered. line: matrices with the same
 * line stand side by side.
 * @typedef {{name: string | ((head: number) => string), title: string, part?: boolean, rows?: string, cols?: string,
 *   line?: string}} Shown
 * @typedef {{id: string, title: string, formula: string, says: string, shown: Shown[], heads?: boolean,
 *   links?: {weights: (head: number) => string, from: string, to: string}, words?: string}} Stage
 */

/** The matrices of a dropout: the mask, and the state after it. @returns {Shown[]} */
export function dropped(path, training, rows) {
  return training
    ? [
        { name: `${path}/mask`, title: "dropout mask", rows },
        { name: `${path}/dropped`, title: "after dropout", rows },
      ]
    : [];
}

/** @returns {Stage} */
function normStage(path, part, config, rows, before) {
  const rms = config.norm === "rmsnorm";
  return {
    id: `${path}/normed`,
    title: rms ? "RMSNorm" : "LayerNorm",
    formula: rms ? "y = x / \\sqrt{mean(x^2) + ε} ⊙ γ" : "y = (x − μ) / \\sqrt{σ^2 + ε} ⊙ γ + β",
    says:
      (rms ? "Each row is divided by its root mean square" : "Each row gets mean zero and variance one") +
      (before ? " for the sub-layer. The state itself does not change." : "."),
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
    says: pre
      ? "The output of the sub-layer is added to the state, which is not changed otherwise."
      : "The output of the sub-layer is added to its input; a norm follows.",
    shown: [...dropped(path, training, rows), { name: `${path}/sum`, title: "sum", rows }],
  };
  const norm = normStage(path, part, config, rows, pre);
  return pre ? [norm, ...stages, sum] : [...stages, sum, norm];
}

/**
 * All stages of a layer. path names its numbers, part its weights; rows are "source" or "target". The layer of a decoder
 * also attends to the source. @returns {Stage[]}
 */
export function layerStages(path, part, rows, config, training, decoder) {
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

/** @returns {Stage[]} */
function attention(path, part, rows, cols, config, past) {
  const cross = rows !== cols;
  const kind = cross ? "Cross-attention" : past ? "Masked self-attention" : "Self-attention";
  /** @returns {Shown[]} */
  const made = (word, letter, side) => [
    { name: `weights/${part}/${word}`, title: `W^${letter}`, part: true, line: letter },
    { name: `weights/${part}/${word}/bias`, title: `b^${letter}`, part: true, line: letter },
    { name: `${path}/${word}`, title: letter, part: true, rows: side, line: letter },
  ];
  /** @type {Stage[]} */
  const stages = [
    {
      id: `${path}/query`,
      title: `${kind}: query, key and value`,
      formula: "Q_{h} = X W^Q_{h} + b^Q_{h}, \\quad K_{h} = X W^K_{h} + b^K_{h}, \\quad V_{h} = X W^V_{h} + b^V_{h}",
      says: cross
        ? "Each token of the target has a query. Keys and values come from the encoder’s last state."
        : "Each token has a query, to ask; a key, to be found; and a value, to give.",
      heads: true,
      shown: [...made("query", "Q", rows), ...made("key", "K", cols), ...made("value", "V", cols)],
    },
  ];
  if (config.position === "rotary" && !cross) {
    stages.push({
      id: `${path}/turned`,
      title: "Queries and keys are turned",
      formula: "(q_{i}, q_{i+d_{k}/2}) ← (q_{i} cos α − q_{i+d_{k}/2} sin α , q_{i+d_{k}/2} cos α + q_{i} sin α)",
      says: "Each pair turns by the angle of its token. Values do not turn.",
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
      formula: hidden
        ? "A_{h} = softmax(Q_{h} K^T_{h} / \\sqrt{d_{k}} + M)"
        : "A_{h} = softmax(Q_{h} K^T_{h} / \\sqrt{d_{k}})",
      says: past
        ? "The score says how well a query fits a key. A score of −∞ hides later tokens. Softmax turns each row into " +
          "shares of one."
        : "The score says how well a query fits a key. Softmax turns each row into shares of one." +
          (hidden ? " M is a price for the distance of the two tokens." : ""),
      heads: true,
      links: { weights: (head) => `${path}/weights/${head}`, from: rows, to: cols },
      shown: [
        { name: (head) => `${path}/scores/${head}`, title: "scores", rows, cols },
        ...(hidden
          ? [
              {
                name: (head) => `${path}/masked/${head}`,
                title: past ? "with the mask" : "with the price of distance",
                rows,
                cols,
              },
            ]
          : []),
        { name: (head) => `${path}/weights/${head}`, title: "A, rows sum to one", rows, cols },
      ],
    },
    {
      id: `${path}/output`,
      title: "Heads, side by side",
      formula: "Z_{h} = A_{h} V_{h}, \\quad attention = [Z_{1} … Z_{H}] W^O + b^O",
      says: "Each head adds up the values by its shares. One matrix mixes the outputs of the heads.",
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

/** @returns {Stage[]} */
function feedForward(path, part, rows, config, training) {
  const word = { relu: "ReLU", gelu: "GELU", swiglu: "Swish", geglu: "GELU" }[config.feedforward];
  const gated = config.feedforward.endsWith("glu");
  const masks = training
    ? [
        { name: `${path}/inner/mask`, title: "dropout mask", rows },
        { name: `${path}/inner/dropped`, title: "after dropout", rows },
      ]
    : [];
  const dense = (name, letter) => [
    { name: `weights/${part}/${name}`, title: `W_${letter}` },
    { name: `weights/${part}/${name}/bias`, title: `b_${letter}` },
  ];
  return [
    {
      id: `${path}/inner`,
      title: gated ? "Feed-forward: gate and value" : "Feed-forward: outwards",
      formula: gated ? `G = ${word}(x W_{1} + b_{1}) ⊙ (x W_{2} + b_{2})` : `F = ${word}(x W_{1} + b_{1})`,
      says: gated
        ? "This works on each token separately: one projection opens or closes the other."
        : "This works on each token separately, in a wider space, where " +
          `${word} ${config.feedforward === "relu" ? "keeps the positive numbers" : "damps the negative numbers"}.`,
      shown: gated
        ? [
            ...dense("gate", 1),
            { name: `${path}/gate`, title: "x W₁ + b₁", rows },
            { name: `${path}/activated`, title: `${word} of it`, rows },
            ...dense("value", 2),
            { name: `${path}/value`, title: "x W₂ + b₂", rows },
            { name: `${path}/gated`, title: "G", rows },
            ...masks,
          ]
        : [
            ...dense("inner", 1),
            { name: `${path}/inner`, title: "x W₁ + b₁", rows },
            { name: `${path}/activated`, title: "F", rows },
            ...masks,
          ],
    },
    {
      id: `${path}/output`,
      title: "Feed-forward: back",
      formula: gated ? "FFN = G W_{3} + b_{3}" : "FFN = F W_{2} + b_{2}",
      says: "A last matrix leads back to the width of the state.",
      shown: [...dense("output", gated ? 3 : 2), { name: `${path}/output`, title: "FFN(x)", rows }],
    },
  ];
}
