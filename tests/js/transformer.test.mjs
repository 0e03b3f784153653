// The page's own mathematics, against what torch gave for the same weights: RTX_FIXTURES names a file that
// tests/test_pages_core.py writes from rtxlib's models.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { run } from "../../rtxstudy/pages/transformer/core.js";
import { matrix } from "../../rtxstudy/pages/transformer/matrices.js";
import { brief, scientific } from "../../rtxstudy/pages/shared/grid.js";
import { differences } from "../../rtxstudy/pages/transformer/changes.js";
import { explain } from "../../rtxstudy/pages/transformer/explain.js";
import { build, compute, decode, likeliest, masksOf } from "../../rtxstudy/pages/transformer/model.js";
import { silence, unknown, warning } from "../../rtxstudy/pages/transformer/reading.js";
import { beginning, changed, complete, inner, tokensOf, wordsOf } from "../../rtxstudy/pages/transformer/state.js";
import { TRAINED } from "../../rtxstudy/pages/transformer/trained.js";
import { unpack } from "../../rtxstudy/pages/transformer/unpack.js";
import { marked, numbersOf, pieces, sentenceOf } from "../../rtxstudy/pages/transformer/wordpiece.js";

const fixtures = JSON.parse(readFileSync(process.env.RTX_FIXTURES, "utf8"));

/** The largest difference between a matrix and nested lists of numbers; of different shapes it is not a number. */
function difference(made, wanted) {
  const flat = wanted.flat(Infinity);
  if (made.data.length !== flat.length) return Number.NaN;
  return flat.reduce((most, value, at) => Math.max(most, Math.abs(value - made.data[at])), 0);
}

for (const { name, model: packed, source, target, masks, expected } of fixtures.models) {
  test(`${name}: every number on the way is torch's`, () => {
    const model = unpack(packed);
    const used = new Set();
    const given = (mask) => {
      if (!masks) return null;
      used.add(mask);
      return matrix(masks[mask].length, masks[mask][0].length, Float64Array.from(masks[mask].flat()));
    };
    const made = run(model, source, target, {}, given);
    assert.deepEqual([...used].sort(), Object.keys(masks ?? {}).sort());
    for (const [number, wanted] of Object.entries(expected)) {
      const kept = number.startsWith("iteration")
        ? made.values.get(made.iterations[Number(number.split(" ")[1])])
        : made.values.get(number);
      assert.ok(kept, number);
      assert.ok(difference(kept, wanted) <= 1e-5, `${number} is off by ${difference(kept, wanted)}`);
    }
  });
}

test("sixteen bits are read as numpy writes them", () => {
  const { weights } = unpack(fixtures.halves.packed);
  assert.equal(difference(weights.get("table"), fixtures.halves.values), 0);
});

test("a sentence falls into the pieces that the tokenizer makes of it", () => {
  const { words, lowercase, cases } = fixtures.pieces;
  for (const { sentence, tokens, ids } of cases) {
    const made = pieces(sentence, words, lowercase);
    // Where the tokenizer has [UNK], the page keeps the word, and gives it the number of [UNK].
    assert.deepEqual(made.map((token) => (words.includes(token) ? token : "[UNK]")), tokens, sentence);
    assert.deepEqual(numbersOf(made, words), ids);
    const parts = marked(sentence, words, lowercase);
    assert.equal(parts.map(({ text }) => text).join(""), sentence);
    assert.equal(parts.filter((part) => part.unknown).length, tokens.filter((token) => token === "[UNK]").length, sentence);
  }
});

test("an unknown word keeps its name, and the answer is that of [UNK]", () => {
  const [strange, same] = ["The film was ZXCV!", "the film was [UNK] !".split(" ")].map((tokens) =>
    complete({ tokens: typeof tokens === "string" ? tokens : ["[CLS]", ...tokens, "[SEP]"] }),
  );
  assert.deepEqual(strange.tokens, ["[CLS]", "the", "film", "was", "zxcv", "!", "[SEP]"]);
  const logits = (state) => [...compute(state).values.get("logits").data];
  assert.deepEqual(logits(strange), logits(same));
  assert.deepEqual(unknown(strange), ["zxcv"]);
  assert.match(warning(strange), /“zxcv” is not among the 318 words.*\[UNK\]/);
  assert.match(warning(complete({ tokens: "zxcv qwer" })), /“zxcv” and “qwer” are not/);
  assert.equal(warning(complete({})), "");
  assert.equal(warning(complete({ d_model: 8, tokens: ["zxcv"] })), ""); // drawn weights know every word
});

test("a sentence without a word that the model knows has no answer", () => {
  for (const tokens of ["", "   ", "!", ["[CLS]", "[SEP]"]]) assert.match(silence(complete({ tokens })), /no words/, String(tokens));
  assert.match(silence(complete({ tokens: "zxcv , qwer !" })), /none of these words/);
  for (const given of [{}, { tokens: "the zxcv" }, { weights: "reversal" }, { d_model: 8 }]) assert.equal(silence(complete(given)), "");
});

test("a sentence stays as it was typed until its tokens are others", () => {
  const typed = "  The  FILM was dull ";
  const state = complete({ tokens: typed });
  assert.equal(state.typed, typed);
  assert.equal(changed(state, { edits: { "logits[0,0]": 3 } }).typed, typed);
  const fewer = changed(state, { tokens: state.tokens.toSpliced(3, 1) });
  assert.deepEqual([fewer.typed, sentenceOf(fewer.tokens)], [null, "the film dull"]);
  assert.equal(complete({ tokens: ["[CLS]", "the", "[SEP]"], typed: "a film" }).typed, null);
  assert.equal(complete({ weights: "reversal", tokens: "abc", typed: "abc" }).typed, null);
  const long = complete({ tokens: "x ".repeat(1000) }).tokens;
  assert.deepEqual([long.length, long.at(0), long.at(-1)], [128, "[CLS]", "[SEP]"]); // it keeps its end, as in training
});

test("the same seed gives the same numbers, another seed others", () => {
  const logits = (seed) => [...compute(complete({ seed })).values.get("logits").data];
  assert.deepEqual(logits(3), logits(3));
  assert.notDeepEqual(logits(3), logits(4));
});

test("drawn weights have the spread they are drawn with", () => {
  const { data, rows } = build(complete({ d_model: 64, heads: 4 })).weights.get("encoder/0/0/attention/query");
  const spread = Math.sqrt(data.reduce((sum, x) => sum + x * x, 0) / data.length);
  assert.ok(Math.abs(spread * Math.sqrt(rows) - 1) < 0.05, `${spread}`); // 4,096 draws: a standard error of 0.011
});

test("any cell can be given a value, and only what follows from it changes", () => {
  const state = complete({ weights: "random" });
  const before = compute(state).values;
  const key = "encoder/0/1/attention/weights/1[2,3]";
  const after = compute({ ...state, edits: { [key]: 0.9 } }).values;
  assert.equal(after.get("encoder/0/1/attention/weights/1").data[2 * 6 + 3], 0.9);
  let passed = false;
  for (const [name, { data }] of before) {
    if (name === "encoder/0/1/attention/weights/1") passed = true;
    const same = data.every((x, at) => x === after.get(name).data[at]);
    if (!passed || name.startsWith("weights/")) assert.ok(same, name);
  }
  assert.ok(before.get("logits").data.some((x, at) => x !== after.get("logits").data[at]));
});

test("a word's vector keeps its edit while words come and go around it", () => {
  const state = complete({ tokens: ["a", "b", "c"], target: [] });
  const row = (from) => wordsOf(from).indexOf("c");
  const edited = changed(state, { edits: { [`weights/table[${row(state)},0]`]: 5, "encoder/token[0,0]": 1 } });
  const shorter = changed(edited, { tokens: ["b", "c"] });
  assert.deepEqual(shorter.edits, { [`weights/table[${row(shorter)},0]`]: 5 });
  assert.deepEqual(changed(edited, { tokens: ["b"] }).edits, {});
  assert.deepEqual(changed(edited, { d_model: 12 }).edits, {});
  assert.deepEqual(changed(edited, { norm_placement: "pre" }).edits, edited.edits);
});

test("a dropout mask holds 0 and 1/(1−p), in that proportion, and another draw is another mask", () => {
  const state = complete({ training: true, dropout: 0.25 });
  const { data } = masksOf(state)("encoder/mask", 100, 100);
  assert.deepEqual(new Set(data), new Set([0, 1 / 0.75]));
  const dropped = data.filter((x) => x === 0).length / data.length;
  assert.ok(Math.abs(dropped - 0.25) < 0.02, `${dropped}`); // a standard error of 0.0043
  assert.notDeepEqual([...masksOf({ ...state, draw: 2 })("encoder/mask", 100, 100).data], [...data]);
  assert.equal(masksOf(complete({ training: false }))("encoder/mask", 2, 2), null);
});

test("the target grows by the likeliest word at each step", () => {
  const state = complete({ target: [] });
  const grown = decode(state, 3);
  grown.forEach((word, at) => assert.equal(word, likeliest(complete({ target: grown.slice(0, at) }))));
  assert.ok(grown.length === 3 || likeliest(complete({ target: grown })) === "</s>");
});

const strange = [undefined, null, Number.NaN, Infinity, -1, 1e9, 2.5, "8", "", [], {}, true, () => 0];
test("whatever a state is given, it is complete and can be computed", () => {
  for (const name of Object.keys(complete({}))) {
    if (name === "run") continue;
    for (const value of strange) {
      const given = JSON.parse(JSON.stringify({ [name]: value }));
      const state = complete({ ...given, ...(name === "seed" || Array.isArray(value) ? { [name]: value } : {}) });
      assert.deepEqual(complete(state), state, `${name}=${String(value)}`);
      const small = state.d_model <= 16 && state.layers <= 4 && state.d_ff <= 64;
      if (small)
        assert.ok(compute(state).values.get("probabilities").data.every(Number.isFinite), `${name}=${String(value)}`);
    }
  }
});

test("at the limits of its sizes it still computes", () => {
  for (const sizes of [
    { d_model: 2, heads: 8, d_ff: 1, layers: 1 },
    { d_model: 128, heads: 8, d_ff: 512, layers: 1 },
  ]) {
    for (const position of ["sinusoidal", "rotary", "none"]) {
      const { data } = compute(complete({ ...sizes, position, tokens: ["x"], target: [] })).values.get("probabilities");
      assert.ok(data.every(Number.isFinite), JSON.stringify(sizes));
    }
  }
});

test("a cell cannot be set to what is no number", () => {
  const edits = {
    "weights/table[0,0]": Number.NaN,
    "weights/table[0,1]": Infinity,
    "weights/table[0,2]": 1e30,
    "no cell": 1,
    "a/__proto__[0,0]": 2,
  };
  assert.deepEqual(complete({ edits }).edits, { "weights/table[0,2]": 1e6 });
});

test("a page opens on trained weights, and a state that names a size or a kind has random ones", () => {
  assert.equal(complete({}).weights, "sentiment");
  assert.equal(complete({ tokens: ["film"], colours: "pure" }).weights, "sentiment");
  for (const given of [{ d_model: 8 }, { seed: 2 }, { norm: "rmsnorm" }, { target: [] }, { weights: "random" }])
    assert.equal(complete(given).weights, "random", JSON.stringify(given));
  assert.equal(complete({ weights: "reversal", d_model: 8 }).weights, "reversal");
  assert.equal(complete({ weights: "run" }).weights, "sentiment"); // there is no run
  const letters = changed(complete({ edits: { "logits[0,0]": 3 } }), { weights: "reversal", ...beginning({ weights: "reversal" }) });
  assert.deepEqual([letters.tokens, letters.edits], [["f", "a", "c", "e", "d"], {}]);
});

test("the trained model writes letters backwards", () => {
  for (const word of ["faced", "abc", "headbag"])
    assert.equal(decode(complete({ weights: "reversal", tokens: [...word], target: [] }), 12).join(""), [...word].reverse().join(""));
});

test("the label after the last pass is the answer, and an earlier one is that of fewer passes", () => {
  const state = complete({});
  const { rows, cols, data } = compute(state).values.get("passes");
  assert.equal(rows, TRAINED.sentiment.config.recurrent_depth);
  for (let r = 1; r <= rows; r++) {
    const found = compute({ ...state, recurrent_depth: r }).values.get("probabilities").data;
    found.forEach((p, j) => assert.ok(Math.abs(p - data[(r - 1) * cols + j]) < 1e-12));
  }
});

test("no token is empty, and the inner width is 4·d until it is given", () => {
  assert.deepEqual(complete({ weights: "random", tokens: ["a", "", " ", "b"], target: [""] }).tokens, ["a", "b"]);
  assert.deepEqual(complete({ weights: "random", tokens: [""] }).tokens, complete({ weights: "random" }).tokens);
  const state = complete({ d_model: 8 });
  assert.deepEqual([inner(state), inner(changed(state, { d_model: 12 }))], [32, 48]);
  const own = changed(state, { d_ff: 20 });
  assert.deepEqual([inner(changed(own, { d_model: 12 })), inner(changed(own, { d_ff: null }))], [20, 32]);
});

test("a number that was not taken is explained", () => {
  const why = (name, typed, given) => {
    const before = complete(given);
    return explain(name, typed, before, changed(before, { [name]: Math.round(typed) }));
  };
  assert.match(why("heads", 3, { d_model: 8 }), /3 heads do not divide 8 dimensions, so there are 2 heads of width 4/);
  assert.match(why("d_model", 10, { d_model: 8, heads: 4 }), /4 heads do not divide 10 dimensions, so there are 2 heads/);
  assert.match(why("heads", 4, { d_model: 12, position: "rotary" }), /odd width.*3 heads of width 4/);
  assert.match(why("d_model", 13, { d_model: 8 }), /13 is odd.*d is 12/);
  assert.match(why("layers", 99, { d_model: 8 }), /from 1 to 8/);
  assert.equal(why("d_model", 12, { d_model: 8 }), "");
});

test("numbers are plain decimals, with an exponent only where none can be read otherwise", () => {
  const shown = [0, 0.0004, 0.00123, -0.0512, 0.5, -9.999, 42.42, 1234.4, -99999, 1e5, NaN, -Infinity].map(brief);
  assert.deepEqual(shown, ["0", "+4e−4", "+0.001", "−0.051", "+0.50", "−10.0", "+42.4", "+1234", "−99999", "+1e5", "NaN", "−∞"]);
  assert.deepEqual([0.126, -10, 0].map(scientific), ["+1.26e−1", "−1.00e1", "0"]);
});

test("a pasted text becomes the tokens of the model that reads it", () => {
  assert.deepEqual(tokensOf("the big cat, it's", complete({ d_model: 8 })), ["the", "big", "cat", ",", "it's"]);
  assert.deepEqual(tokensOf("<b>x</b>", complete({ d_model: 8 })), ["<b>x</b>"]); // one word stays as it was typed
  assert.deepEqual(tokensOf("Fa ce", complete({ weights: "reversal" })), ["f", "a", "c", "e"]);
  assert.deepEqual(tokensOf("The film, qqq", complete({})), ["the", "film", ",", "qqq"]);
  assert.deepEqual(tokensOf("[UNK]", complete({})), ["[UNK]"]);
  assert.deepEqual(complete({ tokens: "The film!" }).tokens, ["[CLS]", "the", "film", "!", "[SEP]"]);
  assert.deepEqual(complete({ tokens: "the film", d_model: 8 }).tokens, ["the", "film"]);
});

test("what changed is counted by 0.005 and more, in matrices of one shape", () => {
  const one = (...data) => matrix(1, data.length, Float64Array.from(data));
  const before = new Map([["a", one(1, 2, -Infinity)], ["b", one(1)], ["c", one(1)]]);
  const now = new Map([["a", one(1.004, 2.006, -Infinity)], ["b", one(1, 2)], ["c", one(1.001)], ["d", one(1)]]);
  assert.deepEqual([...differences(now, before)], [["a", 1]]);
});
