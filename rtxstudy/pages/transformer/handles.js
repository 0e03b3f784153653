// The controls of the guided walk: each lets the reader change one thing. A control is { root, set()? }.

import { minus } from "../shared/plot.js";
import { element, slider, toggle, unique } from "../shared/ui.js";
import { sentenceField } from "./field.js";

/** @typedef {{root: HTMLElement, set?: () => void}} Control set() is called when numbers have changed */

/** The controls, for a page as in view.js and followed(), the place of the token that the walk follows. */
export function handles(page, followed) {
  const token = () => page.state.tokens[followed()];
  const pin = (cells) => page.change({ edits: { ...page.state.edits, ...cells } });

  return {
    /** A slider for one cell, which is looked up anew each time: cell() is { name, row, col, label }. */
    cell(cell, min, max, step) {
      const root = element("div", {});
      let made = null;
      let of = "";
      const set = () => {
        const { name, row, col, label } = cell();
        const { cols, data } = page.matrix(name);
        const [key, value] = [`${name}[${row},${col}]`, data[row * cols + col]];
        if (of === key) return made.set(value);
        of = key;
        const show = (number) => minus(number, 2);
        made = slider({ label, min, max, step, value, show, input: (number) => pin({ [key]: number }) });
        root.replaceChildren(made.root);
      };
      set();
      return { root, set };
    },

    /** A switch that sets the first row of a matrix, that of [CLS], to zero. name() and label() may change. */
    nothing(name, label) {
      let keys = [];
      const without = () => Object.fromEntries(Object.entries(page.state.edits).filter(([key]) => !keys.includes(key)));
      const made = toggle({
        label: label(),
        value: false,
        change: (on) => {
          if (!on) return page.change({ edits: without() });
          keys = Array.from({ length: page.matrix(name()).cols }, (_, col) => `${name()}[0,${col}]`);
          pin(Object.fromEntries(keys.map((key) => [key, 0])));
        },
      });
      const words = made.root.querySelector("label");
      const set = () => {
        if (!keys.some((key) => key in page.state.edits)) keys = [];
        if (!keys.length && words.textContent !== label()) words.textContent = label();
        made.set(keys.length > 0);
      };
      return { root: made.root, set };
    },

    sentence: () => sentenceField(page, "The sentence of the walk"),

    /** A list of the words that could stand in the place of the followed one. */
    otherWord() {
      const id = unique("word");
      const known = page.model.words.filter((word) => /^[a-z]/.test(word)).sort();
      const change = () => page.change({ tokens: page.state.tokens.with(followed(), select.value) });
      const options = known.map((word) => element("option", { value: word }, word));
      const select = element("select", { id, onchange: change }, ...options);
      const set = () => {
        select.value = token();
      };
      return { root: element("div", { class: "choice" }, element("label", { for: id }, "instead of it"), select), set };
    },

    /** Two buttons that move the followed word. [CLS] and [SEP] stay at the ends. */
    move() {
      const by = (distance) => {
        const { tokens } = page.state;
        const [at, to] = [followed(), followed() + distance];
        if (to < 1 || to > tokens.length - 2) return;
        page.follow(to);
        page.change({ tokens: tokens.toSpliced(at, 1).toSpliced(to, 0, tokens[at]) });
      };
      const button = (label, distance) => element("button", { type: "button", onclick: () => by(distance) }, label);
      return { root: element("div", { class: "buttons" }, button("← earlier", -1), button("later →", 1)) };
    },

    passes() {
      const input = (recurrent_depth) => page.change({ recurrent_depth });
      const made = slider({ label: "passes R", min: 1, max: 8, step: 1, value: page.state.recurrent_depth, input });
      return { root: made.root, set: () => made.set(page.state.recurrent_depth) };
    },
  };
}
