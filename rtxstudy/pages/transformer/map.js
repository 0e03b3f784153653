// The whole network in small, with a numbered place for each step of the walk, so that the reader sees where the walk is.

import { drawing, element, pressable } from "../shared/ui.js";
import { text } from "./marks.js";

const WIDE = 700; // px from which the places have names, and the answer stands at the end
const MOST = 3; // frames of a block; more layers have no frame of their own
// The parts of the network that have a frame, and the words above it for a configuration.
const GROUPS = [
  [["vectors"], () => "embeddings"],
  [["attention", "state", "feedforward"], ({ num_hidden_layers: n }) => (n === 1 ? "block of 1 layer" : `block of ${n} layers`)],
  [["head"], () => "head"],
];

/**
 * The map. page as in view.js; steps: [{ title, name, part }], where part is where the step is; go(number) goes to a step.
 * show(number) marks the present step and writes the answer; rebuild() draws the map for the model of now; destroy() ends
 * what it observes.
 */
export function map(page, steps, go) {
  const picture = drawing("svg", { class: "map", role: "group", "aria-label": "The whole network, and the steps through it" });
  const root = element("div", { class: "map-box" }, picture);
  const answer = [text("", 0, 0, { class: "answer-name" }), text("", 0, 0, { class: "answer-name" })];
  let [width, now, places] = [0, 0, []];

  function lay() {
    const wide = width >= WIDE;
    const { num_hidden_layers: layers, recurrent_depth: passes } = page.model.config;
    const line = steps.filter(({ part }) => part !== "loop"); // one after the other; the loop leads back
    const gap = width / (line.length + (wide ? 1 : 0));
    const [radius, y, foot, low] = wide ? [12, 33, 67, 80] : [11, 27, 43, 52];
    const x = (step) => (line.indexOf(step) + 0.5) * gap;
    const end = wide ? width - gap / 2 - 36 : x(line.at(-1));

    const frames = GROUPS.flatMap(([parts, words]) => {
      const inside = line.filter(({ part }) => parts.includes(part));
      const [from, to] = [x(inside[0]) - gap / 2 + 3, x(inside.at(-1)) + gap / 2 - 3];
      const more = parts.includes("state") ? Math.min(layers, MOST) - 1 : 0;
      const size = { width: to - from, height: foot - 14, rx: 9 };
      const rect = (k) => drawing("rect", { class: "frame", x: from + 3 * k, y: 14 - 2 * k, ...size });
      const name = text(words(page.model.config), (from + to) / 2, 6, { class: "name", "text-anchor": "middle" });
      return [...Array.from({ length: more + 1 }, (_, k) => rect(more - k)), name];
    });
    const block = line.filter(({ part }) => GROUPS[1][0].includes(part));
    const [front, behind] = [x(block[0]) - gap / 2 + 20, x(block.at(-1)) + gap / 2 - 20];
    const back = `M${behind} ${foot}V${low - 7}q0 7 -7 7H${front + 7}q-7 0 -7 -7V${foot + 6}`;

    places = steps.map((step, at) => {
      const looped = step.part === "loop";
      const [across, high] = looped ? [(front + behind) / 2, low] : [x(step), y];
      const reach = Math.min(gap, 60);
      const name = looped ? `${passes} ${passes === 1 ? "pass" : "passes"}` : step.name;
      const label = looped
        ? text(name, across + radius + 6, high, { class: "name over-line" })
        : text(name, across, y + 23, { class: "name", "text-anchor": "middle" });
      return pressable(
        { class: "place", "aria-label": `Step ${at + 1}: ${step.title}` },
        () => go(at + 1),
        drawing("title", {}, step.title),
        drawing("rect", { class: "area", x: across - reach / 2, y: high - 13, width: reach, height: 26 }),
        drawing("circle", { cx: across, cy: high, r: radius }),
        text(String(at + 1), across, high, { "text-anchor": "middle", class: "number" }),
        wide || looped ? label : null,
      );
    });
    answer.forEach((node, k) => {
      node.setAttribute("x", width - gap / 2 - 26);
      node.setAttribute("y", y - 9 + 18 * k);
    });
    picture.replaceChildren(
      ...frames,
      drawing("path", { class: "way", d: `M${x(line[0])} ${y}H${end}` }),
      drawing("path", { class: "way", d: back }),
      drawing("path", { class: "tip", d: `M${front} ${foot + 1}l-5 8h10z` }),
      ...places,
      ...(wide ? [drawing("path", { class: "tip", d: `M${end + 6} ${y}l-8 -5v10z` }), ...answer] : []),
    );
    const height = low + radius + 2;
    for (const [name, value] of Object.entries({ viewBox: `0 0 ${width} ${height}`, width, height }))
      picture.setAttribute(name, value);
    show(now);
  }

  function show(number) {
    now = number;
    places.forEach((place, at) => {
      place.classList.toggle("here", at + 1 === now);
      place.classList.toggle("past", at + 1 < now);
      if (at + 1 === now) place.setAttribute("aria-current", "step");
      else place.removeAttribute("aria-current");
    });
    const said = page.silent() ? ["no", "answer"] : page.answer().split(", ");
    answer.forEach((node, k) => {
      node.textContent = said[k];
    });
  }

  const sized = new ResizeObserver(() => {
    if (root.clientWidth === width || !root.clientWidth) return;
    width = root.clientWidth;
    lay();
  });
  sized.observe(root);
  return {
    root,
    show,
    rebuild() {
      if (width) lay();
    },
    destroy: () => sized.disconnect(),
  };
}
