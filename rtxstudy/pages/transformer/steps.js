// The steps of the guided walk: what happens, which numbers show it, and the one thing that the reader can change.

import { minus } from "../shared/plot.js";
import { element, slider, toggle, unique } from "../shared/ui.js";
import { likeliest } from "./result.js";
import { packedOf } from "./state.js";
import { pieces, sentenceOf } from "./wordpiece.js";

/**
 * A step. stage: the stage of the page that holds all its numbers. shown: matrices; links: the attention whose lines are
 * shown; heads: whether the reader chooses a head. says(): sentences on the numbers of now. control(): { root, set()? };
 * set() is called when numbers have changed. words: whether it changes the sentence, which is then put back.
 * @typedef {{title: string, stage: string, shown: import("./layers.js").Shown[], links?: string, heads?: boolean,
 *   says: () => string, change: () => string, control: () => {root: HTMLElement, set?: () => void}, words?: boolean}} Step
 */

const LAYER = "encoder/0/0"; // the walk looks at the first pass
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
  const own = Math.max(0, words.indexOf(word));
  const cosine = (at) => dot(row(at), row(own)) / Math.sqrt(dot(row(at), row(at)) * dot(row(own), row(own)));
  const others = words.map((_, at) => at).filter((at) => at !== own && !words[at].startsWith("["));
  return words[others.reduce((best, at) => (cosine(at) > cosine(best) ? at : best))];
}

/** The steps for a classifier. page as in view.js; followed(): the place of the token that the walk follows. @returns {Step[]} */
export function steps(page, followed) {
  const token = () => page.state.tokens[followed()];
  const rowOf = (name, row) => {
    const { cols, data } = page.matrix(name);
    return data.subarray(row * cols, (row + 1) * cols);
  };
  const pin = (cells) => page.change({ edits: { ...page.state.edits, ...cells } });
  const unpin = (keys) => page.change({ edits: Object.fromEntries(Object.entries(page.state.edits).filter(([key]) => !keys.includes(key))) });

  /** A slider for one cell, which is looked up anew each time: cell() is { name, row, col, label }. */
  function cellSlider(cell, min, max, step) {
    const root = element("div", {});
    let made = null;
    let of = "";
    const set = () => {
      const { name, row, col, label } = cell();
      const key = `${name}[${row},${col}]`;
      const value = page.matrix(name).data[row * page.matrix(name).cols + col];
      if (of !== key) {
        of = key;
        made = slider({ label, min, max, step, value, show: (number) => minus(number, 2), input: (number) => pin({ [key]: number }) });
        root.replaceChildren(made.root);
      } else made.set(value);
    };
    set();
    return { root, set };
  }

  /** A switch that sets cells to zero: cells() are their keys. */
  function zeroes(label, cells) {
    let keys = [];
    const made = toggle({
      label: label(),
      value: false,
      change: (on) => {
        if (!on) return unpin(keys);
        keys = cells();
        pin(Object.fromEntries(keys.map((key) => [key, 0])));
      },
    });
    const words = made.root.querySelector("label");
    return {
      root: made.root,
      set: () => {
        if (words.textContent !== label()) words.textContent = label();
        made.set(keys.some((key) => key in page.state.edits));
      },
    };
  }
  const rowKeys = (name, row) => Array.from(rowOf(name, row), (_, col) => `${name}[${row},${col}]`);

  function sentence() {
    const { words, lowercase } = packedOf(page.state);
    const field = element("input", { type: "text", class: "sentence", dir: "auto", "aria-label": "The sentence of the walk", value: sentenceOf(page.state.tokens) });
    field.addEventListener("input", () => page.change({ tokens: pieces(field.value, words, lowercase) }));
    return { root: field };
  }

  function otherWord() {
    const id = unique("word");
    const known = page.model.words.filter((word) => /^[a-z]/.test(word)).sort();
    const select = element(
      "select",
      { id, onchange: () => page.change({ tokens: page.state.tokens.with(followed(), select.value) }) },
      ...known.map((word) => element("option", { value: word }, word)),
    );
    return {
      root: element("div", { class: "choice" }, element("label", { for: id }, "instead of it"), select),
      set: () => {
        select.value = token();
      },
    };
  }

  function move() {
    const by = (distance) => {
      const at = followed();
      const to = at + distance;
      const { tokens } = page.state;
      if (to < 1 || to > tokens.length - 2) return; // [CLS] and [SEP] stay at the ends
      page.follow(to);
      page.change({ tokens: tokens.toSpliced(at, 1).toSpliced(to, 0, tokens[at]) });
    };
    const button = (label, distance) => element("button", { type: "button", onclick: () => by(distance) }, label);
    return { root: element("div", { class: "buttons" }, button("← earlier", -1), button("later →", 1)) };
  }

  const cls = (name) => rowOf(name, 0);
  const weights = () => cls(`${LAYER}/attention/weights/${page.head}`);
  const most = () => {
    const row = weights();
    const at = row.reduce((best, share, j) => (share > row[best] ? j : best), 0);
    return `Most of it, ${percent(row[at])}, goes to “${page.state.tokens[at]}”.`;
  };
  const widest = () => largest(cls(`${LAYER}/feedforward/gated`));
  const asked = () => {
    const width = page.model.config.hidden_size / page.model.config.num_attention_heads;
    const own = rowOf(`${LAYER}/attention/query`, 0).subarray(page.head * width, (page.head + 1) * width);
    return page.head * width + largest(own);
  };
  const label = (r) => likeliest(rowOf("passes", r), page.model.labels).said;

  return [
    {
      title: "A sentence becomes tokens",
      stage: "encoder/token",
      shown: [],
      says: () =>
        `The model has a list of ${page.model.words.length} words. [CLS] is put before the sentence: its vector will stand for the whole ` +
        "sentence at the end. [SEP] ends it. A word that is not in the list becomes [UNK], unknown. " +
        `We follow “${token()}”: without this word, the answer would change most.`,
      change: () => "Write another sentence about a film. It stays for the whole walk.",
      control: sentence,
    },
    {
      title: "Each token becomes a vector",
      stage: "encoder/token",
      shown: [{ name: "encoder/token", title: "X, one row per token", rows: "source" }],
      says: () =>
        `“${token()}” is one row of a table: ${page.model.config.hidden_size} numbers that training has found. No single one of them has a name. ` +
        `Of all ${page.model.words.length} rows, the one that points most nearly the same way is that of “${nearest(page, token())}”.`,
      change: () => `Put another word in the place of this one.`,
      control: otherWord,
      words: true,
    },
    {
      title: "Each token gets a place",
      stage: "encoder/angles",
      shown: [{ name: "encoder/angles", title: "angles α, in radians", rows: "source" }],
      says: () =>
        "So far nothing says which word comes first. This model turns the queries and keys of the next steps by these angles, which grow " +
        "from token to token. A score then depends on how far apart two tokens are.",
      change: () => `Move “${token()}” within the sentence.`,
      control: move,
      words: true,
    },
    {
      title: "Each token asks, and can be found",
      stage: `${LAYER}/attention/query`,
      shown: [
        { name: `${LAYER}/attention/query`, title: "Q, what it asks for", part: true, rows: "source", line: "a" },
        { name: `${LAYER}/attention/key`, title: "K, how it is found", part: true, rows: "source", line: "b" },
        { name: `${LAYER}/attention/value`, title: "V, what it gives", part: true, rows: "source", line: "c" },
      ],
      heads: true,
      says: () =>
        `Three matrices make a query, a key and a value from each token. Each of the ${page.model.config.num_attention_heads} heads has its own ` +
        `${page.model.config.hidden_size / page.model.config.num_attention_heads} columns.`,
      change: () => "Change the largest number of what [CLS] asks for in this head.",
      control: () => cellSlider(() => ({ name: `${LAYER}/attention/query`, row: 0, col: asked(), label: `column ${asked()}` }), -10, 10, 0.1),
    },
    {
      title: "Who looks at whom",
      stage: `${LAYER}/attention/weights`,
      shown: [{ name: (head) => `${LAYER}/attention/weights/${head}`, title: "A, rows sum to one", rows: "source", cols: "source" }],
      links: `${LAYER}/attention/weights`,
      heads: true,
      says: () => `Where a query fits a key, the score is high. Softmax makes each row of scores into shares of one. This is what [CLS] looks at: ${most()}`,
      change: () => `Change how much [CLS] looks at “${token()}”.`,
      control: () =>
        cellSlider(() => ({ name: `${LAYER}/attention/weights/${page.head}`, row: 0, col: followed(), label: `[CLS] → ${token()}` }), 0, 1, 0.01),
    },
    {
      title: "The heads, side by side",
      stage: `${LAYER}/attention/output`,
      shown: [
        { name: (head) => `${LAYER}/attention/head/${head}`, title: "what this head found", rows: "source", line: "a" },
        { name: `${LAYER}/attention/output`, title: "all heads, mixed", rows: "source", line: "b" },
      ],
      heads: true,
      says: () => "Each head adds up the values by its shares. One more matrix mixes what the heads have found.",
      change: () => "Let [CLS] find nothing with this head. If the answer stays, the other head and the later passes make up for it.",
      control: () => zeroes(() => `switch off head ${page.head + 1} for [CLS]`, () => rowKeys(`${LAYER}/attention/head/${page.head}`, 0)),
    },
    {
      title: "Nothing is lost",
      stage: `${LAYER}/attention/sum`,
      shown: [
        { name: `${LAYER}/attention/output`, title: "what attention found", rows: "source", line: "a" },
        { name: `${LAYER}/attention/sum`, title: "the state, with that added", rows: "source", line: "b" },
      ],
      says: () => "What attention found is added to the vector that was there before (a residual). So [CLS], which began as the same vector in every sentence, now knows of others.",
      change: () => "Add nothing to [CLS] in this pass. If the answer stays, the later passes make up for it.",
      control: () => zeroes(() => "attention adds nothing to [CLS]", () => rowKeys(`${LAYER}/attention/output`, 0)),
    },
    {
      title: "Each token thinks for itself",
      stage: `${LAYER}/feedforward/inner`,
      shown: [{ name: `${LAYER}/feedforward/gated`, title: "G, gate times value", rows: "source" }],
      says: () => {
        const row = cls(`${LAYER}/feedforward/gated`);
        const open = row.filter((value) => Math.abs(value) > 0.5).length;
        return (
          `The feed-forward works on each token alone. It has ${row.length} units, each with a gate that the token opens or shuts (SwiGLU). ` +
          `At [CLS], ${open} of them give more than ±0.5. A last matrix leads back to ${page.model.config.hidden_size} numbers, which are added.`
        );
      },
      change: () => "Change the unit that gives most at [CLS].",
      control: () => cellSlider(() => ({ name: `${LAYER}/feedforward/gated`, row: 0, col: widest(), label: `unit ${widest()}` }), -10, 10, 0.1),
    },
    {
      title: "The same layer, again",
      stage: "loop/labels",
      shown: [{ name: "passes", title: "probability after each pass", rows: "passes", cols: "labels" }],
      says: () => {
        const passes = page.state.recurrent_depth;
        const all = Array.from({ length: passes }, (_, r) => `after pass ${r + 1} ${label(r)}`).join("; ");
        return (
          "This is the loop: the state goes through the same weights again, and each time [CLS] can read what the other tokens " +
          `have learned from each other. Here the label is: ${all}.`
        );
      },
      change: () => "Change the number of passes R. The model was trained with 3.",
      control: () => {
        const made = slider({ label: "passes R", min: 1, max: 8, step: 1, value: page.state.recurrent_depth, input: (recurrent_depth) => page.change({ recurrent_depth }) });
        return { root: made.root, set: () => made.set(page.state.recurrent_depth) };
      },
    },
    {
      title: "From [CLS] to a label",
      stage: "output/labels",
      shown: [
        { name: "pooled", title: "h, the last state of [CLS]", line: "a" },
        { name: "logits", title: "logits h W + b", cols: "labels", line: "b" },
        { name: "probabilities", title: "p", cols: "labels", line: "b" },
      ],
      says: () => "Only [CLS] is read. One matrix makes its vector into a score for each label, and softmax makes the scores into probabilities. That is the whole way.",
      change: () => "Change the offset b of “positive”: what the model says before it has read a word.",
      control: () => cellSlider(() => ({ name: "weights/classifier/bias", row: 0, col: 1, label: "b of positive" }), -10, 10, 0.1),
    },
  ];
}
