// The first screen: a sentence, the network with the sentence on its way through it, and the answer after each pass.

import { element, still } from "../shared/ui.js";
import { sentenceField } from "./field.js";
import { network } from "./network.js";
import { packedOf, translates } from "./state.js";

const PASS = 2300; // ms of a pass in the animation
const BEGINS = 0.3; // the part of the picture that is in sight when the animation begins by itself

/** What a model is, in one sentence. */
export function definition(config) {
  if (config.num_decoder_layers)
    return "An encoder reads a text, and a decoder writes another one, a word at a time.";
  if (config.recurrent_depth === 1) return "An encoder passes a sentence through its layers, and a classifier reads the label.";
  if (config.block_sharing === "unshared")
    return "This encoder passes a sentence through several blocks, each with weights of its own. After each the answer can turn.";
  return "A recurrent encoder passes a sentence through the same layers several times, and each pass can turn the answer.";
}

/**
 * page as in view.js. act(part) is called when the reader chooses a part of the picture, start() for the walk. rebuild() draws
 * the picture anew, draw() its numbers; show(on) shows or hides the screen; destroy() ends what it observes.
 */
export function cover(page, act, start) {
  const picture = network(page, act, (pass) => rest(pass));
  const stage = element("div", { class: "stage-picture" }, picture.root);
  const place = element("div", {});
  const button = (attributes, words) => element("button", { type: "button", ...attributes }, words);
  const play = button({ class: "play", onclick: () => (frame ? rest(passes() - 1) : run()) }, "");
  const walk = button({ class: "next", onclick: start }, "Start the walk");
  walk.append(element("span", { class: "long" }, ", in ten steps"));
  const hint = element("p", { class: "hint" }, "Point at a word to see what it looks at. Choose a part to go there.");
  const buttons = element("div", { class: "buttons" }, walk, play, hint);
  const root = element("section", { class: "cover", "aria-label": "The network at work" }, place, stage, buttons);
  let frame = 0;
  let width = 0;
  let field = null;
  let of = null; // the weights for which there is a field
  let inView = false;

  const passes = () => page.model.config.recurrent_depth;
  const loops = () => !translates(page.state) && passes() > 1 && !page.silent();

  function label() {
    play.hidden = !loops() || still();
    play.textContent = frame ? "❚❚ Stop" : "▶ Watch the passes";
  }

  /** Shows a pass at its end, and ends the animation. */
  function rest(pass) {
    cancelAnimationFrame(frame);
    frame = 0;
    label();
    picture.show(pass, 1, passes());
  }

  function run() {
    let begun = null;
    const tick = (time) => {
      begun ??= time;
      const t = (time - begun) / PASS;
      if (t >= passes()) return rest(passes() - 1);
      picture.show(Math.floor(t), t % 1, Math.floor(t));
      frame = requestAnimationFrame(tick);
    };
    frame = requestAnimationFrame(tick);
    label();
  }

  /** Makes the field for the sentence of a classifier. */
  function furnish() {
    const { weights, run: packed } = page.state;
    if (of?.weights === weights && of.packed === packed) return;
    of = { weights, packed };
    const reads = packedOf(page.state) && !translates(page.state);
    field = reads ? sentenceField(page, "Your sentence") : null;
    const { labels } = page.model;
    const question = reads && `Is it ${labels.slice(0, -1).join(", ")} or ${labels.at(-1)}? Write your own.`;
    place.replaceChildren(...(field ? [element("p", { class: "question" }, question), field.root] : []));
    walk.hidden = weights !== "sentiment";
  }

  /** Draws the picture for the width that there is; hidden, the screen has none. */
  function lay() {
    width = stage.clientWidth;
    if (!width) return;
    picture.lay(width);
    if (!frame) rest(passes() - 1);
  }

  const sized = new ResizeObserver(() => {
    if (stage.clientWidth !== width) lay();
  });
  sized.observe(stage);
  // While the answers are in sight here, the bar below does not repeat them. At the first time the passes run by themselves.
  let fresh = true;
  const seen = new IntersectionObserver(
    ([{ isIntersecting, intersectionRatio }]) => {
      inView = isIntersecting;
      root.classList.toggle("in-view", inView);
      if (inView && width) picture.draw();
      if (!fresh || intersectionRatio < BEGINS) return;
      fresh = false;
      if (width && loops() && !still()) run();
    },
    { threshold: [0, BEGINS] },
  );
  seen.observe(stage);

  return {
    root,
    rebuild() {
      cancelAnimationFrame(frame);
      frame = 0;
      furnish();
      label();
      lay();
    },
    draw() {
      if (width && inView) picture.draw(); // otherwise when it comes into view
      field?.set();
    },
    show(on) {
      if (frame && !on) rest(passes() - 1);
      root.hidden = !on;
    },
    focus: () => walk.focus(),
    destroy() {
      cancelAnimationFrame(frame);
      sized.disconnect();
      seen.disconnect();
    },
  };
}
