// The whole network as a picture of its live numbers: words, vectors, the block of layers, the loop around it, the answers.

import { drawing, pressable, unique } from "../shared/ui.js";
import { answers } from "./answers.js";
import { arcs, cells, text, words } from "./marks.js";

const MOST = { words: 13, vector: 16, inner: 32 }; // rows and columns that are drawn of a longer text or a wider matrix
const FEWEST = 6; // rows for which there is room; so the picture of a short text has room for the answers
const WORDY = 170; // px of a column from which its second heading has room for a clause
const ROOMY = 520; // px from which headings have one line and a second one in small
const BESIDE = 1000; // px from which the answers stand at the right, and below that under the rest
// The parts of a pass: the arrow of the loop until LOOPED, then the block until READ, then the answer.
const LOOPED = 0.22;
const READ = 0.78;

/** The places of a picture of this width, in px: left edge and width of each column. */
function plan(width, translates) {
  const [roomy, beside] = [width >= ROOMY, width >= BESIDE];
  let [cell, unit, gap, word, air] = roomy ? [4.8, 3.2, 18, 92, 10] : [2.1, 1.3, 9, 56, 5];
  if (translates) [unit, word] = [beside ? unit : 0, roomy ? 64 : 48]; // there is no room for all
  const side = !beside ? 0 : translates ? 260 : 372; // for the answers
  const [vector, inner] = [MOST.vector * cell, MOST.inner * unit];
  const margin = beside ? 74 : roomy ? 24 : 14; // for the way from the state to the answers
  const fixed = word + air + 2 * vector + inner + 5 * gap + margin + side + (translates ? word + gap : 0);
  const free = (width - fixed) / (translates ? 2 : 1);
  const at = { roomy, beside, cell, unit, width, line: roomy ? 27 : 20, top: !roomy ? 38 : translates ? 36 : 52 };
  at.y = (row) => at.top + (row + 0.5) * at.line;
  at.words = [0, word];
  at.before = [word + air, vector];
  at.attention = [at.before[0] + vector + 1.5 * gap, free];
  at.inner = [at.attention[0] + free + 0.5 * gap, inner];
  at.after = [at.inner[0] + inner + 1.5 * gap, vector];
  at.block = [at.attention[0] - 0.75 * gap, free + inner + 2 * gap];
  at.out = at.after[0] + vector;
  if (translates) {
    at.cross = [at.out + 0.5 * gap, free];
    at.target = [at.cross[0] + free + air, word];
    at.out = at.target[0] + word;
  }
  at.answers = beside ? [width - side, side] : [4, width - (roomy ? 30 : 20)];
  return at;
}

/**
 * The picture. page as in view.js. act(part) is called when the reader chooses a part, choosePass(r) for a pass.
 * lay(width) draws it for a width. show(pass, phase, reached) shows a pass on its way, phase from 0 to 1, when the answers
 * of `reached` passes stand. draw() shows the numbers of now.
 */
export function network(page, act, choosePass) {
  const root = drawing("svg", { class: "network", role: "group", "aria-label": "The network, from the words to the answer" });
  let [at, made] = [null, null];
  let scene = [0, 1, 1];

  const config = () => page.model.config;
  const passes = () => config().recurrent_depth;
  const translates = () => config().num_decoder_layers > 0;
  const units = () => (config().feedforward.endsWith("glu") ? "gated" : "activated");
  const heads = (path) =>
    Array.from({ length: config().num_attention_heads }, (_, head) => page.matrix(`${path}/weights/${head}`));

  /** A column that can be chosen: a sensitive area, its heading, and what is drawn in it. */
  function column(id, [x, width], heading, aside, label, ...inside) {
    const middle = x + width / 2;
    const lines = at.roomy ? [heading] : heading.split(" ");
    const first = at.roomy ? 14 : at.top - 14 - 12 * (lines.length - 1);
    return pressable(
      { class: "part", "aria-label": label, "data-part": id },
      () => act(id),
      drawing("rect", { class: "area", x: x - 4, y: 2, width: width + 8, height: at.base - 2, rx: 6 }),
      ...lines.map((line, k) => text(line, middle, first + 12 * k, { class: "heading", "text-anchor": "middle" })),
      at.roomy && !translates() ? text(aside, middle, 34, { class: "aside", "text-anchor": "middle" }) : null,
      ...inside,
    );
  }

  /** The frame of the block, with a frame behind it for each further layer. */
  function block() {
    const [x, width] = at.block;
    const frames = Array.from({ length: Math.min(config().num_hidden_layers, 3) }, (_, k) => 4 * k).reverse();
    const height = at.base - at.top + 8;
    const frame = (shift) => drawing("rect", { x: x + shift, y: at.top - 6 - shift, width, height, rx: 10 });
    return drawing("g", { class: "block" }, ...frames.map(frame));
  }

  /** The arrow from behind the block to its front, with the number of passes. */
  function loop() {
    const [from, to] = [at.after[0] + at.after[1] / (at.roomy ? 2 : 3), at.before[0] + at.before[1] / 2];
    const [start, low] = [at.base + 4, at.base + (at.roomy ? 30 : 26)];
    const d = `M${from} ${start}V${low - 10}q0 10 -10 10H${to + 10}q-10 0 -10 -10V${start + 6}`;
    const said = text("", (from + to) / 2, low, { class: "heading", "text-anchor": "middle" });
    const dot = drawing("circle", { r: 4.5, class: "dot" });
    const path = drawing("path", { class: "way", d });
    const tip = drawing("path", { class: "tip", d: `M${to} ${start - 4}l-5 10h10z` });
    const label = `The loop: ${passes()} passes through the block`;
    const parts = [drawing("path", { class: "near", d }), path, tip, said, dot];
    const count = config().num_hidden_layers;
    return {
      root: pressable({ class: "part loop", "aria-label": label, "data-part": "loop" }, () => act("loop"), ...parts),
      show(pass, phase) {
        const going = phase < 1 || pass + 1 < passes();
        const layers = count === 1 ? "layer" : `${count} layers`;
        const shared = config().block_sharing !== "unshared";
        const often = shared ? `the same ${layers}, ${passes()} times` : `${passes()} blocks of ${layers}`;
        const whole = passes() === 1 ? "passed once" : often;
        said.textContent = going ? `pass ${pass + 1} of ${passes()}` : whole;
        const moving = pass > 0 && phase < LOOPED;
        dot.setAttribute("visibility", moving ? "visible" : "hidden");
        if (!moving) return;
        const { x, y } = path.getPointAtLength((phase / LOOPED) * path.getTotalLength());
        dot.setAttribute("cx", x);
        dot.setAttribute("cy", y);
      },
    };
  }

  /** The marks of all columns, for so many words. */
  function marks(source, target) {
    const { hidden_size: size, num_attention_heads: count } = config();
    const [rows, aim] = [source.length, target.length].map((length) => Math.min(MOST.words, length));
    const vector = Math.min(MOST.vector, size);
    const inner = Math.min(MOST.inner, page.matrix(`encoder/0/0/feedforward/${units()}`).cols);
    const look = (row) => made.attention.only(row);
    return {
      before: cells(at, at.before[0], at.cell, rows, vector),
      attention: arcs(at, at.attention, count, rows, rows, translates() ? -1 : 0),
      inner: cells(at, at.inner[0], at.unit, rows, inner),
      after: cells(at, at.after[0], at.cell, rows, vector),
      cross: translates() ? arcs(at, at.cross, count, rows, aim, -1) : null,
      source: words(at, at.words, source, rows, "end", page.unknown(), look),
      target: translates() ? words(at, at.target, target, aim, "start", [], () => {}) : [],
      loop: translates() && passes() === 1 ? null : loop(),
      answers: answers(page, at, act, choosePass),
      curtain: drawing("rect", { x: at.attention[0] - 2, y: 0, height: at.base + 8 }),
    };
  }

  /** The columns: id, place, heading, second heading, what they are called aloud, and their marks. */
  function columns(behind) {
    const { hidden_size: size, num_attention_heads: count, pooling } = config();
    const tokens = `${page.words("source").length} tokens`;
    const counted = `${count} ${count === 1 ? "head" : "heads"}`;
    const looks = at.attention[1] < WORDY ? counted : `who looks at whom · ${counted}`;
    const read = pooling === "mean" ? "their mean is read" : "[CLS] is read";
    const forward = at.roomy ? "feed-forward" : "feed- forward";
    return [
      ["words", at.words, "words", tokens, "The words", ...made.source],
      ["vectors", at.before, "vectors", `${size} numbers each`, "The vectors that enter the block", made.before.root],
      ["attention", at.attention, "attention", looks, "Attention: who looks at whom", behind(made.attention)],
      at.unit ? ["feedforward", at.inner, forward, "each word alone", "The feed-forward", behind(made.inner)] : null,
      ["state", at.after, "new vectors", read, "The vectors that leave the block", behind(made.after)],
      made.cross && ["decoder", at.cross, "decoder", "", "The decoder looks at the source", made.cross.root],
      made.cross && ["target", at.target, "so far", "", "The words so far", ...made.target],
    ].filter(Boolean);
  }

  function lay(width) {
    at = plan(width, translates());
    const [source, target] = [page.words("source"), translates() ? page.words("target") : []];
    const rows = Math.max(source.length, target.length);
    const last = (list) => Math.min(MOST.words, list.length) - 1;
    at.read = at.y(translates() ? last(target) : config().pooling === "mean" ? last(source) / 2 : 0);
    at.base = at.top + Math.max(FEWEST, Math.min(rows, MOST.words + 1)) * at.line + 6;
    at.low = at.base + (translates() && passes() === 1 ? 8 : at.roomy ? 44 : 40);
    made = marks(source, target);
    const clip = unique("curtain");
    const behind = (mark) => drawing("g", { "clip-path": `url(#${clip})` }, mark.root);
    root.replaceChildren(
      drawing("clipPath", { id: clip }, made.curtain),
      block(),
      ...columns(behind).map((one) => column(...one)),
      ...(made.loop ? [made.loop.root] : []),
      ...made.answers.parts,
    );
    root.classList.toggle("small", !at.roomy);
    const height = Math.max(at.low, made.answers.bottom);
    for (const [name, value] of Object.entries({ viewBox: `0 0 ${width} ${height}`, width, height }))
      root.setAttribute(name, value);
    show(...scene);
  }

  function show(pass, phase, reached) {
    scene = [Math.min(pass, passes() - 1), phase, Math.min(reached, passes())];
    const [now] = scene;
    if (made.pass !== now || made.result !== page.result) {
      const path = `encoder/${now}/${config().num_hidden_layers - 1}`;
      made.before.show(page.matrix(`iteration ${now}`));
      made.attention.show(heads(`${path}/attention`));
      made.inner.show(page.matrix(`${path}/feedforward/${units()}`));
      made.after.show(page.matrix(`iteration ${now + 1}`));
      made.cross?.show(heads(`decoder/0/${config().num_decoder_layers - 1}/cross`));
      Object.assign(made, { pass: now, result: page.result });
    }
    const start = now ? LOOPED : 0;
    const share = (from, to) => Math.min(1, Math.max(0, (phase - from) / (to - from)));
    made.curtain.setAttribute("width", ((at.after[0] + at.after[1] + 6 - at.attention[0]) * share(start, READ)).toFixed(1));
    made.loop?.show(now, phase);
    made.answers.show(now, share(READ, 1), scene[2]);
  }

  return { root, lay, show, draw: () => show(...scene) };
}
