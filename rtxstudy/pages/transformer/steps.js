// The steps of the guided walk: what happens, which numbers show it, and the one thing that the reader can change.

import { handles } from "./handles.js";
import { likeliest } from "./result.js";
import { packedOf } from "./state.js";

/**
 * A step. name: what the map calls it. part: the part of the network where it is. stage: the stage of the page that holds all
 * its numbers. shown: its matrices. links: the attention whose lines are shown. heads: whether the reader chooses a head.
 * says(): sentences on the numbers of now. words: whether the change is one of the sentence, which is then put back.
 * @typedef {{title: string, name: string, part: string, stage: string, shown: import("./layers.js").Shown[], links?: string,
 *   heads?: boolean, says: () => string, change: () => string, control: () => import("./handles.js").Control,
 *   words?: boolean}} Step
 */

const LAYER = "encoder/0/0"; // the walk looks at the first pass
const OPEN = 0.5; // a unit of the feed-forward that gives more counts as open
const percent = (share) => `${Math.round(100 * share)} %`;

/** The place of the largest size in a row. */
function largest(row) {
  return row.reduce((best, value, j) => (Math.abs(value) > Math.abs(row[best]) ? j : best), 0);
}

/** The word whose row of the table has the largest cosine with that of this word. */
function nearest(page, word) {
  const { cols, data } = page.matrix("weights/table");
  const { words } = page.model;
  const row = (at) => data.subarray(at * cols, (at + 1) * cols);
  const dot = (a, b) => a.reduce((sum, value, j) => sum + value * b[j], 0);
  const own = row(words.indexOf(word));
  const cosine = (at) => dot(row(at), own) / Math.sqrt(dot(row(at), row(at)) * dot(own, own));
  const others = words.map((_, at) => at).filter((at) => words[at] !== word && !words[at].startsWith("["));
  return words[others.reduce((best, at) => (cosine(at) > cosine(best) ? at : best))];
}

/** The steps for a classifier. page as in view.js; followed(): the place of the token that the walk follows. @returns {Step[]} */
export function steps(page, followed) {
  const control = handles(page, followed);
  const token = () => page.state.tokens[followed()];
  const first = (name) => page.matrix(name).data.subarray(0, page.matrix(name).cols); // the row of [CLS]
  const config = () => page.model.config;
  const width = () => config().hidden_size / config().num_attention_heads;
  const shares = () => first(`${LAYER}/attention/weights/${page.head}`);
  const gates = () => first(`${LAYER}/feedforward/gated`);

  /** The largest number of the query of [CLS] in this head. */
  function asked() {
    const start = page.head * width();
    return start + largest(first(`${LAYER}/attention/query`).subarray(start, start + width()));
  }

  function labels() {
    const { rows, cols, data } = page.matrix("passes");
    const label = (r) => likeliest(data.subarray(r * cols, (r + 1) * cols), page.model.labels).said;
    return Array.from({ length: rows }, (_, r) => `after pass ${r + 1} ${label(r)}`).join("; ");
  }

  return [
    {
      title: "A sentence becomes tokens",
      name: "words",
      part: "words",
      stage: "encoder/token",
      shown: [],
      says: () =>
        `The model has a list of ${page.model.words.length} words. [CLS] is put before the sentence: its vector will stand for ` +
        "the whole sentence at the end. [SEP] ends it. A word that is not in the list becomes [UNK], unknown. " +
        `We follow “${token()}”: without this word, the answer would change most.`,
      change: () => "Write another sentence about a film. It stays for the whole walk.",
      control: control.sentence,
    },
    {
      title: "Each token becomes a vector",
      name: "vectors",
      part: "vectors",
      stage: "encoder/token",
      shown: [{ name: "encoder/token", title: "X, one row per token", rows: "source" }],
      says: () =>
        page.model.words.includes(token())
          ? `“${token()}” is one row of a table: ${config().hidden_size} numbers that training has found. No single one of them has ` +
            `a name. Of all ${page.model.words.length} rows, the one that points most nearly the same way is that of “${nearest(page, token())}”.`
          : `“${token()}” is not in the table of ${page.model.words.length} words, so it gets the row of [UNK], as every unknown word does.`,
      change: () => "Put another word in the place of this one.",
      control: control.otherWord,
      words: true,
    },
    {
      title: "Each token gets a place",
      name: "places",
      part: "vectors",
      stage: "encoder/angles",
      shown: [{ name: "encoder/angles", title: "angles α, in radians", rows: "source" }],
      says: () =>
        "So far nothing says which word comes first. This model turns the queries and keys of the next steps by these angles, " +
        "which grow from token to token. A score then depends on how far apart two tokens are.",
      change: () => `Move “${token()}” within the sentence.`,
      control: control.move,
      words: true,
    },
    {
      title: "Each token asks, and can be found",
      name: "query, key, value",
      part: "attention",
      stage: `${LAYER}/attention/query`,
      shown: [
        { name: `${LAYER}/attention/query`, title: "Q, what it asks for", part: true, rows: "source" },
        { name: `${LAYER}/attention/key`, title: "K, how it is found", part: true, rows: "source" },
        { name: `${LAYER}/attention/value`, title: "V, what it gives", part: true, rows: "source" },
      ],
      heads: true,
      says: () =>
        "Three matrices make a query, a key and a value from each token. " +
        `Each of the ${config().num_attention_heads} heads has its own ${width()} columns.`,
      change: () => "Change the largest number of what [CLS] asks for in this head.",
      control: () => {
        const cell = () => ({ name: `${LAYER}/attention/query`, row: 0, col: asked(), label: `column ${asked() % width()}` });
        return control.cell(cell, -10, 10, 0.1);
      },
    },
    {
      title: "Who looks at whom",
      name: "attention",
      part: "attention",
      stage: `${LAYER}/attention/weights`,
      shown: [{ name: (head) => `${LAYER}/attention/weights/${head}`, title: "A, rows sum to one", rows: "source", cols: "source" }],
      links: `${LAYER}/attention/weights`,
      heads: true,
      says: () => {
        const most = largest(shares());
        return (
          "Where a query fits a key, the score is high. Softmax makes each row of scores into shares of one. " +
          `[CLS] gives its largest share in this head, ${percent(shares()[most])}, to “${page.state.tokens[most]}”.`
        );
      },
      change: () => `Change how much [CLS] looks at “${token()}”.`,
      control: () => {
        const name = () => `${LAYER}/attention/weights/${page.head}`;
        return control.cell(() => ({ name: name(), row: 0, col: followed(), label: `[CLS] → ${token()}` }), 0, 1, 0.01);
      },
    },
    {
      title: "The heads, side by side",
      name: "heads",
      part: "attention",
      stage: `${LAYER}/attention/output`,
      shown: [
        { name: (head) => `${LAYER}/attention/head/${head}`, title: "what this head found", rows: "source" },
        { name: `${LAYER}/attention/output`, title: "all heads, mixed", rows: "source" },
      ],
      heads: true,
      says: () => "Each head adds up the values by its shares. One more matrix mixes what the heads have found.",
      change: () =>
        "Let [CLS] find nothing with this head. If the answer stays, the other head and the later passes make up for it.",
      control: () =>
        control.nothing(
          () => `${LAYER}/attention/head/${page.head}`,
          () => `switch off head ${page.head + 1} for [CLS]`,
        ),
    },
    {
      title: "Nothing is lost",
      name: "sum",
      part: "state",
      stage: `${LAYER}/attention/sum`,
      shown: [
        { name: `${LAYER}/attention/output`, title: "what attention found", rows: "source" },
        { name: `${LAYER}/attention/sum`, title: "the state, with that added", rows: "source" },
      ],
      says: () =>
        "What attention found is added to the vector that was there before (a residual). So [CLS], which began as the same vector " +
        "in every sentence, now holds something of the others.",
      change: () => "Add nothing to [CLS] in this pass. If the answer stays, the later passes make up for it.",
      control: () =>
        control.nothing(
          () => `${LAYER}/attention/output`,
          () => "attention adds nothing to [CLS]",
        ),
    },
    {
      title: "Each token by itself",
      name: "feed-forward",
      part: "feedforward",
      stage: `${LAYER}/feedforward/inner`,
      shown: [{ name: `${LAYER}/feedforward/gated`, title: "G, gate times value", rows: "source" }],
      says: () =>
        `The feed-forward works on each token alone. It has ${gates().length} units, each with a gate that the token opens or ` +
        `shuts (SwiGLU). At [CLS], ${gates().filter((value) => Math.abs(value) > OPEN).length} of them give more than ±${OPEN}. ` +
        `A last matrix leads back to ${config().hidden_size} numbers, which are added.`,
      change: () => "Change the unit that gives most at [CLS].",
      control: () => {
        const cell = () => ({ name: `${LAYER}/feedforward/gated`, row: 0, col: largest(gates()), label: `unit ${largest(gates())}` });
        return control.cell(cell, -10, 10, 0.1);
      },
    },
    {
      title: "The same layer, again",
      name: "loop",
      part: "loop",
      stage: "loop/labels",
      shown: [{ name: "passes", title: "probability after each pass", rows: "passes", cols: "labels" }],
      says: () =>
        "This is the loop: the state goes through the same weights again, and each time [CLS] can read what the other tokens " +
        `have found in each other. Here the label is: ${labels()}.`,
      change: () => `Change the number of passes R. The model was trained with ${packedOf(page.state).config.recurrent_depth}.`,
      control: control.passes,
    },
    {
      title: "From [CLS] to a label",
      name: "label",
      part: "head",
      stage: "output/labels",
      shown: [
        { name: "pooled", title: "h, the last state of [CLS]" },
        { name: "logits", title: "logits h W + b", cols: "labels" },
        { name: "probabilities", title: "p", cols: "labels" },
      ],
      says: () =>
        "Only [CLS] is read. One matrix makes its vector into a score for each label, and softmax makes the scores into " +
        "probabilities. That is the whole way.",
      change: () => "Change the offset b of “positive”, which is added to its score in every sentence.",
      control: () => {
        const cell = () => ({ name: "weights/classifier/bias", row: 0, col: 1, label: "b of positive" });
        return control.cell(cell, -10, 10, 0.1);
      },
    },
  ];
}
