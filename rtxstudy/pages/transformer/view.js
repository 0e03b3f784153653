// The page: one state, one run of the model, and the parts that show it.

import { choice, element, plain, scientific } from "../shared/ui.js";
import { book } from "./book.js";
import { comparison, moved } from "./changes.js";
import { shades } from "./colours.js";
import { controls, weights } from "./controls.js";
import { cover, definition } from "./cover.js";
import { editor } from "./editor.js";
import { build, compute } from "./model.js";
import { silence, unknown } from "./reading.js";
import { answerOf, result } from "./result.js";
import { stageOf } from "./stages.js";
import { changed as changedTo, complete, targetOf } from "./state.js";
import { walk } from "./walk.js";

const REBUILDS = [
  ...["weights", "run", "step", "notation", "tokens", "target", "recurrent_depth", "training"],
  ...["d_model", "heads", "layers", "d_ff", "norm_placement", "norm", "position", "feedforward"],
];
const MOVES = ["weights", "d_model", "heads", "layers", "d_ff", "seed", "tokens", "target"];
const REDRAWS = [...REBUILDS, "seed"]; // of the weights
const PANELS = ["weights", "run"]; // each choice of weights has controls of its own
// The chapters and stages that are open at first.
const OPEN = ["encoder", "encoder/0/0", "encoder/0/0/attention/weights", "output", "output/words", "output/labels"];

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
    compared: null, // { values, words, changed, total }: the run before the reader's change, and what differs
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
    /** Makes everything below the settings again, at the next frame. */
    again() {
      page.rebuild = true;
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
      const changed = page.compared?.changed.has(name);
      if (!own && !pinned && !changed) return undefined;
      const now = changed && page.result.values.get(name);
      const before = changed && page.compared.values.get(name).data;
      return (row, col) =>
        (changed && moved(now.data[row * now.cols + col], before[row * now.cols + col]) ? " moved" : "") +
        (own && own.row === row && own.col === col ? " selected" : "") +
        (pinned?.has(`${row},${col}`) ? " pinned" : "");
    },
    /** Why there is no answer, or "". */
    silent: () => silence(page.state),
    /** The answer and its share, in words. */
    answer: () => answerOf(page.result.values, page.words(page.model.labels ? "labels" : "words")).said,
    /** The words that the model does not know. */
    unknown: () => unknown(page.state),
    words(side) {
      if (side === "source") return page.state.tokens;
      if (side === "target") return targetOf(page.state);
      if (side === "passes") return Array.from({ length: page.state.recurrent_depth }, (_, r) => `pass ${r + 1}`);
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
    write: (value) => (page.state.notation === "plain" ? plain : scientific)(value),
    close: () => {
      page.selected = null;
      request();
      root.querySelector(`[role="gridcell"].selected`)?.closest(".box").focus({ preventScroll: true });
    },
  });
  const choose = weights(page);
  const shownResult = result(page);
  const guided = walk(page);
  const reach = (part) => {
    if (page.state.weights === "sentiment") begin(() => guided.reach(part));
    else shown.reveal(stageOf(part, page.model.config));
  };
  const begin = (go) => {
    go();
    frame(); // the walk, now rather than at the next frame, so that it can have the focus
    everything.scrollIntoView({ block: "start" });
    guided.focus();
  };
  const opening = cover(page, reach, () => begin(() => guided.go(1)));
  const compare = comparison(page);
  const panels = element("div", { class: "panels" });
  const settings = element("div", {});
  let panel = null;
  const defined = element("p", {});
  const glance = element("section", { class: "glance", "aria-label": "Attention at a glance" });
  const sheet = element("div", { class: "sheet" });

  /** Takes over a complete state. The next frame draws it. */
  function take(next) {
    const before = page.state;
    page.state = next;
    const differs = (name) => !same(before[name], next[name]);
    if (REDRAWS.some(differs) || differs("residual_scale")) page.model = build(next);
    if (REBUILDS.some(differs)) page.rebuild = true;
    if (differs("edits")) gatherPins();
    if (PANELS.some(differs)) furnish();
    else if (Object.keys(next).some((name) => name !== "edits" && differs(name))) panel.sync();
    choose.sync();
    everything.classList.toggle("pure", next.colours === "pure");
    request();
  }

  /** Makes the controls that fit the weights. */
  function furnish() {
    panel = controls(page);
    panels.replaceChildren(panel.texts);
    settings.replaceChildren(panel.settings);
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
    cancelAnimationFrame(pending);
    pending = 0;
    page.result = compute(page.state, page.model);
    page.head = Math.min(page.head, page.model.config.num_attention_heads - 1);
    if (page.rebuild) rebuild();
    page.compared = compare(guided.entry());
    if (page.selected) {
      const value = valueOf(page.selected);
      if (value === undefined) {
        unselect();
      } else bar.follow(value, keyOf(page.selected) in page.state.edits);
    }
    shown.draw();
    shownResult.show();
    opening.draw();
    guided.show();
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
      change: (id) => turnTo(id),
    });
    const turnTo = (id) => {
      place = id;
      shown.forget(heads);
      heads.replaceWith((heads = shown.glance(place)));
    };
    const pick = (id, head) => {
      page.head = head;
      chosen.set(id);
      turnTo(id);
      request();
    };
    glance.replaceChildren(element("h2", {}, "Every layer and head at a glance"), shown.overview(pick), chosen.root, heads);
    const left = guided.root.contains(document.activeElement) && !guided.open();
    everything.classList.toggle("walking", guided.open());
    defined.textContent = definition(page.model.config);
    opening.show(!guided.open());
    opening.rebuild();
    guided.rebuild(shown);
    if (left) opening.focus();
  }

  const everything = element(
    "div",
    { class: "transformer" },
    element("style", {}, shades()),
    element("header", {}, element("h1", {}, "The transformer, by hand"), defined),
    opening.root,
    element("div", { class: "in-sight" }, guided.map, shownResult.root),
    guided.root,
    choose.root,
    panels,
    glance,
    settings,
    sheet,
    bar.root,
  );
  root.append(everything);
  furnish();
  everything.classList.toggle("pure", page.state.colours === "pure");
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
      opening.destroy();
      guided.destroy();
      everything.remove();
    },
  };
}

const same = (a, b) => a === b || JSON.stringify(a) === JSON.stringify(b);
