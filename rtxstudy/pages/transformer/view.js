// The page: one state, one run of the model, and the parts that show it.

import { choice, element } from "../shared/ui.js";
import { SHADES } from "../shared/grid.js";
import { book } from "./book.js";
import { controls } from "./controls.js";
import { editor } from "./editor.js";
import { build, changed as changedTo, complete, compute, targetOf } from "./model.js";

const REBUILDS = [
  "d_model",
  "heads",
  "layers",
  "d_ff",
  "norm_placement",
  "norm",
  "position",
  "feedforward",
  "recurrent_depth",
  "training",
  "run",
  "tokens",
  "target",
];
const MOVES = ["d_model", "heads", "layers", "d_ff", "seed", "tokens", "target"];
const REDRAWS = [...REBUILDS, "seed"]; // of the weights
const OPEN = [
  "encoder",
  "encoder/sum",
  "encoder/0/0",
  "encoder/0/0/attention/weights",
  "output",
  "output/words",
  "output/labels",
]; // at first

/**
 * Draws the page in `root`. `changed(patch)` is called with the changes of the reader; `set` takes a whole new state;
 * `state` and `numbers` return what the page shows now.
 */
export function mount(root, given, changed) {
  const page = {
    state: complete(given),
    model: null,
    result: null,
    head: 0,
    selected: null, // { name, row, col }
    openStages: new Set(OPEN),

    change(patch) {
      if (page.selected && MOVES.some((name) => name in patch)) unselect(); // the cell may mean something else afterwards
      const before = page.state;
      take(changedTo(before, patch));
      const names = new Set([...Object.keys(patch), "edits", "heads", "d_model"]);
      changed(
        Object.fromEntries(
          [...names]
            .filter((name) => page.state[name] !== before[name] && !same(page.state[name], before[name]))
            .map((name) => [name, page.state[name]]),
        ),
      );
    },
    turn(head) {
      page.head = head;
      request();
    },
    select(name, row, col, title) {
      bar.stop();
      page.selected = { name, row, col };
      bar.open(title, valueOf(page.selected), keyOf(page.selected) in page.state.edits);
      request();
    },
    /** The name under which a matrix can be edited. "iteration 2" is the state after pass 2, under the name of its matrix. */
    nameOf: (name) => (name.startsWith("iteration ") ? page.result.iterations[Number(name.slice(10))] : name),
    matrix: (name) => page.result.values.get(page.nameOf(name)),
    look(name) {
      const { selected } = page;
      const own = selected?.name === name ? selected : null;
      const pinned = pins.get(name);
      if (!own && !pinned) return undefined;
      return (row, col) =>
        (own && own.row === row && own.col === col ? " selected" : "") +
        (pinned?.has(`${row},${col}`) ? " pinned" : "");
    },
    words(side) {
      if (side === "source") return page.state.tokens;
      if (side === "target") return targetOf(page.state);
      return side === "labels" ? page.model.labels : page.model.words;
    },
  };

  let pins = new Map(); // matrix → "row,column" of its edited cells
  let pending = 0;
  let shown = null; // the book
  let place = null; // the attention at a glance

  const keyOf = ({ name, row, col }) => `${name}[${row},${col}]`;
  const valueOf = ({ name, row, col }) => {
    const matrix = page.result.values.get(name);
    return matrix && row < matrix.rows && col < matrix.cols ? matrix.data[row * matrix.cols + col] : undefined;
  };
  const bar = editor({
    pin: (value) => page.change({ edits: { ...page.state.edits, [keyOf(page.selected)]: value } }),
    release: () => {
      const { [keyOf(page.selected)]: gone, ...edits } = page.state.edits;
      page.change({ edits });
    },
    close: () => {
      page.selected = null;
      request();
      root.querySelector(`[role="gridcell"].selected`)?.closest(".box").focus({ preventScroll: true });
    },
  });
  const panel = controls(page);
  const glance = element("section", { class: "glance", "aria-label": "Attention at a glance" });
  const sheet = element("div", { class: "sheet" });
  const answer = element("p", { class: "answer" });

  /** Takes over a complete state. The next frame draws it. */
  function take(next) {
    const before = page.state;
    page.state = next;
    const differs = (name) => !same(before[name], next[name]);
    if (REDRAWS.some(differs) || differs("residual_scale")) page.model = build(next);
    if (REBUILDS.some(differs)) page.rebuild = true;
    if (differs("edits")) gatherPins();
    if (Object.keys(next).some((name) => name !== "edits" && differs(name))) panel.sync();
    request();
  }

  function unselect() {
    bar.hide();
    page.selected = null;
  }

  function gatherPins() {
    pins = new Map();
    for (const key of Object.keys(page.state.edits)) {
      const [, name, cell] = /^(.*)\[(.*)\]$/.exec(key);
      pins.set(name, (pins.get(name) ?? new Set()).add(cell));
    }
  }

  function request() {
    pending ||= requestAnimationFrame(frame);
  }

  function frame() {
    pending = 0;
    page.result = compute(page.state, page.model);
    page.head = Math.min(page.head, page.model.config.num_attention_heads - 1);
    if (page.rebuild) rebuild();
    if (page.selected) {
      const value = valueOf(page.selected);
      if (value === undefined) {
        unselect();
      } else bar.follow(value, keyOf(page.selected) in page.state.edits);
    }
    shown.draw();
    tell();
  }

  /** Writes the likeliest output of the model beside its texts. */
  function tell() {
    const { rows, cols, data } = page.matrix("probabilities");
    const last = data.subarray((rows - 1) * cols);
    let best = 0;
    for (let j = 1; j < cols; j++) if (last[j] > last[best]) best = j;
    const word = page.words(page.model.labels ? "labels" : "words")[best] || "(empty)";
    const words = `${page.model.labels ? "Its answer" : "The likeliest next word"}: ${word}, ${(100 * last[best]).toFixed(0)} %.`;
    if (answer.textContent !== words) answer.textContent = words;
  }

  /** Makes everything below the settings again, after a change of sizes, words or the kind of model. */
  function rebuild() {
    page.rebuild = false;
    shown?.destroy();
    shown = book(page);
    sheet.replaceChildren(shown.root);
    const ids = shown.places.map(([id]) => id);
    if (!ids.includes(place)) place = ids[0];
    let heads = shown.glance(place);
    const chosen = choice({
      label: "Who looks at whom:",
      options: shown.places,
      value: place,
      change: (id) => {
        place = id;
        shown.forget(heads);
        heads.replaceWith((heads = shown.glance(place)));
      },
    });
    glance.replaceChildren(chosen.root, heads);
  }

  const everything = element(
    "div",
    { class: "transformer" },
    element("style", {}, shades()),
    element(
      "header",
      {},
      element("h1", {}, "The transformer, by hand"),
      element("p", {}, "You can change every number below: choose a cell, move its slider, and watch what depends on it."),
    ),
    panel.texts,
    answer,
    glance,
    panel.settings,
    sheet,
    bar.root,
  );
  root.append(everything);
  page.model = build(page.state);
  page.rebuild = true;
  gatherPins();
  frame();

  return {
    set(next) {
      if (page.selected) unselect();
      take(complete(next));
    },
    state: () => page.state,
    numbers() {
      cancelAnimationFrame(pending);
      frame();
      const rows = ({ rows: n, cols, data }) =>
        Array.from({ length: n }, (_, i) => [...data.subarray(i * cols, (i + 1) * cols)]);
      const heads = (path) =>
        Array.from({ length: page.model.config.num_attention_heads }, (_, head) =>
          rows(page.result.values.get(`${path}/weights/${head}`)),
        );
      const ids = shown.places.map(([id]) => id.replace(/\/weights$/, ""));
      const of = (pattern) => ids.filter((id) => pattern.test(id)).map(heads);
      return {
        attention: of(/^encoder/),
        decoder_attention: of(/^decoder.*\/attention$/),
        cross_attention: of(/\/cross$/),
        probabilities: rows(page.result.values.get("probabilities")),
      };
    },
    destroy() {
      cancelAnimationFrame(pending);
      bar.stop();
      cancelAnimationFrame(pending);
      shown.destroy();
      everything.remove();
    },
  };
}

const same = (a, b) => a === b || JSON.stringify(a) === JSON.stringify(b);

/** Rules for the shades of blue and red, from the palest to the deepest. */
function shades() {
  const rule = (sign, hue) => (level) =>
    `.transformer td.${sign}${level} { background: color-mix(in srgb, var(--${hue}) ${(100 * level) / SHADES}%, var(--cell)) }`;
  const levels = Array.from({ length: SHADES }, (_, at) => at + 1);
  return [...levels.map(rule("p", "positive")), ...levels.map(rule("n", "negative"))].join("\n");
}
