// All settings: the weights, the texts, the sizes, the kind of model, training, the seed, how numbers look.

import { choice, element, slider, stepper, toggle } from "../shared/ui.js";
import { explain } from "./explain.js";
import { decode } from "./model.js";
import { provenance } from "./result.js";
import { MOST_TOKENS, PAPER, REAL, STUDY, WHOLE, beginning, inner, packedOf, tokensOf, translates } from "./state.js";
import { tokenRow } from "./tokens.js";

const WEIGHTS = [
  ["sentiment", "Trained: sentiment of a sentence"],
  ["reversal", "Trained: letters backwards"],
  ["random", "Random weights"],
];

/** The choice of the weights, and what they are. page: { state, change(patch) }. */
export function weights(page) {
  const { run } = page.state;
  const options = run ? [["run", `Trained run: ${run.name}`], ...WEIGHTS] : WEIGHTS;
  const take = (name) => page.change({ weights: name, ...beginning({ weights: name, run }), edits: {} });
  const buttons = options.map(([name, words]) => [name, element("button", { type: "button", onclick: () => take(name) }, words)]);
  const says = element("p", { class: "quiet" });
  const sync = () => {
    for (const [name, button] of buttons) button.setAttribute("aria-pressed", name === page.state.weights);
    says.textContent = provenance(page.state);
  };
  sync();
  const row = element("div", { class: "buttons", role: "group", "aria-label": "Weights" }, ...buttons.map(([, button]) => button));
  return { root: element("section", { class: "weights", "aria-label": "Weights" }, row, says), sync };
}

/** The panels of texts and of settings. page: { state, change(patch) }; sync() sets all controls from page.state. */
export function controls(page) {
  const { state } = page;
  const parts = [];
  const kept = (part, read) => {
    parts.push(() => part.set(read(page.state)));
    return part.root;
  };
  const whole = (name, label, next, read = (now) => now[name]) => {
    const [min, max] = WHOLE[name];
    return kept(
      stepper({
        label,
        min,
        max,
        next,
        value: read(state),
        change: (value) => page.change({ [name]: value }),
        explain: (typed) => {
          const before = page.state;
          return () => explain(name, typed, before, page.state);
        },
      }),
      read,
    );
  };
  const words = (name, label, options) =>
    kept(
      choice({ label, options, value: state[name], change: (value) => page.change({ [name]: value }) }),
      (now) => now[name],
    );
  const real = (name, label, step) => {
    const [min, max] = REAL[name];
    return kept(
      slider({
        label,
        min,
        max,
        step,
        value: state[name],
        show: (value) => value.toFixed(2),
        input: (value) => page.change({ [name]: value }),
      }),
      (now) => now[name],
    );
  };
  const button = (label, act) => element("button", { type: "button", onclick: act }, label);
  const side = (name, label, none) =>
    kept(
      tokenRow({
        label,
        none,
        tokens: state[name],
        most: MOST_TOKENS,
        change: (tokens) => page.change({ [name]: tokens }),
        split: (text) => tokensOf(text, page.state),
        strange: (token) => page.unknown().includes(token),
      }),
      (now) => now[name],
    );
  const fieldset = (legend, ...children) => element("fieldset", {}, element("legend", {}, legend), ...children);

  const buttons = (...all) => element("div", { class: "buttons" }, ...all);

  const training = fieldset(
    "Training mode",
    kept(
      toggle({ label: "dropout on", value: state.training, change: (on) => page.change({ training: on }) }),
      (now) => now.training,
    ),
    real("dropout", "rate p", 0.05),
    button("Redraw the masks", () => page.change({ draw: (page.state.draw + 1) % 2 ** 32, training: true })),
  );
  const loop = [whole("recurrent_depth", "passes R"), real("residual_scale", "α", 0.05)];
  const texts = element("section", { class: "panel", "aria-label": "Texts" });
  const settings = element("section", { class: "panel settings", "aria-label": "Settings" });
  const look = fieldset(
    "How numbers look",
    words("colours", "colours", [
      ["soft", "soft"],
      ["pure", "pure blue +10, red −10"],
    ]),
    words("notation", "notation", [
      ["plain", "decimals"],
      ["scientific", "scientific"],
    ]),
  );
  const packed = packedOf(state);
  if (packed && !translates(state)) {
    texts.append(fieldset("The tokens of the sentence", side("tokens", "tokens", false)));
  } else {
    const grow = (most) => page.change({ target: decode(page.state, most) });
    texts.append(
      fieldset(packed ? "Source: letters from a to h" : "Source", side("tokens", "source", false)),
      fieldset("Target so far", side("target", "target", true)),
      buttons(
        button("Decode the next word", () => grow(1)),
        button("Decode eight", () => grow(8)),
        button("Clear the target", () => page.change({ target: [] })),
      ),
    );
  }
  if (packed) {
    if (packed.config.block_sharing !== "unshared") settings.append(fieldset("Recurrence", ...loop));
  } else {
    const follow = button("Follow 4·d", () => page.change({ d_ff: null }));
    parts.push(() => {
      follow.disabled = page.state.d_ff === null;
    });
    follow.disabled = state.d_ff === null;
    settings.append(
      fieldset(
        "Size",
        whole("d_model", "dimension d", (value, sign) => value + 2 * sign),
        whole("heads", "heads", (value, sign) => fitting(page.state, value, sign)),
        whole("layers", "layers"),
        whole("d_ff", "inner width", (value, sign) => value + 4 * sign, inner),
        follow,
      ),
      fieldset(
        "Kind",
        words("norm_placement", "norms", [
          ["post", "after (post-norm)"],
          ["pre", "before (pre-norm)"],
        ]),
        words("norm", "norm", [
          ["layernorm", "LayerNorm"],
          ["rmsnorm", "RMSNorm"],
        ]),
        words("position", "positions", [
          ["sinusoidal", "sinusoidal"],
          ["rotary", "rotary (RoPE)"],
          ["none", "none"],
        ]),
        words("feedforward", "feed-forward", [
          ["relu", "ReLU"],
          ["gelu", "GELU"],
          ["swiglu", "SwiGLU"],
        ]),
        buttons(
          button("As in the paper", () => page.change(PAPER)),
          button("As in this study", () => page.change(STUDY)),
        ),
      ),
      element("div", {}, fieldset("Recurrence", ...loop), fieldset("Weights", whole("seed", "seed"))),
    );
  }
  settings.append(training, look);
  return { texts, settings, sync: () => parts.forEach((part) => part()) };
}

/** The next number of heads, up or down, that divides d_model, or the value itself if there is none. */
function fitting({ d_model: d, position }, value, sign) {
  const [least, most] = WHOLE.heads;
  for (let heads = value + sign; heads >= least && heads <= most; heads += sign) {
    if (d % heads === 0 && (position !== "rotary" || (d / heads) % 2 === 0)) return heads;
  }
  return value;
}
