// The guided walk: one sentence from token to label, in steps. Each step shows a few numbers and lets the reader change one.

import { element } from "../shared/ui.js";
import { map } from "./map.js";
import { compute } from "./model.js";
import { steps } from "./steps.js";

const ROW = 25; // px of a row in a matrix

/** The fields that a step can change, and that it puts back. */
const OWN = ["tokens", "edits", "recurrent_depth"];

/**
 * The token whose absence changes the answer most: each is replaced by [UNK] in turn. [CLS] and [SEP] are left out.
 * @param {import("./state.js").State} state @param {import("./model.js").Model} model
 */
export function decisive(state, model) {
  const answer = (tokens) => compute({ ...state, tokens, edits: {} }, model).values.get("logits").data;
  const whole = answer(state.tokens);
  let [best, furthest] = [Math.min(1, state.tokens.length - 1), -1];
  for (let at = 1; at < state.tokens.length - 1; at++) {
    const without = answer(state.tokens.with(at, "[UNK]"));
    const moved = without.reduce((sum, logit, j) => sum + Math.abs(logit - whole[j]), 0);
    if (moved > furthest) [best, furthest] = [at, moved];
  }
  return best;
}

/**
 * The panel and its map. page as in view.js. open(): whether the reader is on the walk. go(step) goes to a step; 0 leaves the
 * walk. reach(part) goes to the first step in a part of the network. rebuild(book) makes the present step anew; show() writes
 * its numbers; entry() is what the state was when the step began, or null without a walk.
 */
export function walk(page) {
  const root = element("section", { class: "walk", "aria-label": "Guided walk" });
  let entry = null;
  let place = null; // of the followed token
  let of = ""; // the sentence for which it was found
  let now = null; // { step, control }
  let book = null;
  let typed = null; // the sentence as it was typed when the step began
  let gone = false; // whether the reader has just gone to another step
  const count = element("span", { class: "count" });
  const title = element("h2", { "aria-live": "polite" });
  const button = (label, act) => element("button", { type: "button", onclick: act }, label);
  const back = button("Back", () => go(page.state.step - 1));
  const next = button("Next", () => go(page.state.step + 1));
  const leave = button("Leave the walk", () => go(0));
  const says = element("p", { class: "says" });
  const lower = element("div", { class: "lower" });
  const body = element("div", { class: "step" });
  const top = element("div", { class: "walk-head" }, count, title, element("div", { class: "buttons" }, back, next, leave));
  next.classList.add("next");

  const open = () => page.state.weights === "sentiment" && page.state.step > 0;

  function followed() {
    const sentence = JSON.stringify(page.state.tokens);
    if (of !== sentence) {
      of = sentence;
      if (place === null || !now?.step.words || place >= page.state.tokens.length) place = decisive(page.state, page.model);
    }
    return place;
  }
  page.follow = (at) => {
    place = at;
  };
  const list = steps(page, followed);
  const way = map(page, list, go);

  /** Puts back what the step changed, and goes to another one. A new sentence stays. */
  function go(step) {
    const { tokens, ...others } = entry ?? {};
    const restored = now?.step.words ? { ...others, tokens, typed } : others;
    entry = now = place = null;
    of = "";
    gone = true;
    page.again();
    page.change({ ...restored, step: Math.max(0, Math.min(list.length, step)) });
  }

  /** Makes the numbers of the step anew. Its control stays, so that a field in use keeps its cursor. */
  function lay(step) {
    const shelf = element("div", { class: "shelf" });
    if (step.links) shelf.append(book.lines(step.links));
    for (const shown of step.shown) shelf.append(book.matrix(step.title, shown));
    const tabs = step.heads ? book.tabs() : null;
    const more = element("p", { class: "more" }, button("See all its numbers below", () => book.reveal(step.stage)));
    lower.replaceChildren(...[tabs, shelf.children.length ? shelf : null, more].filter(Boolean));
  }

  function begin(step) {
    entry = Object.fromEntries(OWN.map((name) => [name, page.state[name]]));
    ({ typed } = page.state);
    now = { step, control: step.control() };
    title.textContent = step.title;
    const change = element("p", {}, element("strong", {}, "Change one thing. "), step.change());
    body.replaceChildren(says, element("div", { class: "change" }, change, now.control.root), lower);
  }

  return {
    root,
    map: way.root,
    open,
    go,
    reach: (part) => go(1 + list.findIndex((step) => step.part === part)),
    entry: () => (open() ? entry : null),
    rebuild(shown) {
      book = shown;
      root.hidden = !open();
      if (!open()) {
        entry = now = place = null;
        return;
      }
      way.rebuild();
      const step = list[page.state.step - 1];
      if (now?.step !== step) begin(step);
      lay(step);
      count.textContent = `Step ${page.state.step} of ${list.length}`;
      back.disabled = page.state.step === 1;
      next.disabled = page.state.step === list.length;
      if (!top.isConnected) root.replaceChildren(top, body);
      if (gone && root.getBoundingClientRect().top < 0) root.scrollIntoView({ block: "start" }); // the reader was further down
      gone = false;
      if (step.words) for (const box of lower.querySelectorAll(".box")) box.scrollTop = ROW * (followed() - 2);
    },
    show() {
      if (!open() || !now) return;
      const words = page.silent() ? `${page.silent()} Write one in step 1.` : now.step.says();
      if (says.textContent !== words) says.textContent = words;
      now.control.set?.();
      way.show(page.state.step);
    },
    focus: () => next.focus(),
    destroy: way.destroy,
  };
}
