// Prints the model that the page draws for a state (JSON in the first argument), for torch to be given the same weights.

import { build } from "../../rtxstudy/pages/transformer/model.js";
import { complete, targetOf } from "../../rtxstudy/pages/transformer/state.js";
import { numbersOf } from "../../rtxstudy/pages/transformer/wordpiece.js";

const state = complete(JSON.parse(process.argv[2]));
const { config, weights, words } = build(state);
const lists = [...weights].map(([name, { rows, cols, data }]) => [name, { rows, cols, data: [...data] }]);
console.log(
  JSON.stringify({
    config,
    words,
    weights: Object.fromEntries(lists),
    source: numbersOf(state.tokens, words),
    target: numbersOf(targetOf(state), words),
  }),
);
