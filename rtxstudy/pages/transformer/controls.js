// All settings: the texts, the sizes, the kind of model, training, the seed.

import { choice, element, slider, stepper, toggle } from "../shared/ui.js";
import { MOST_TOKENS, PAPER, REAL, SENTENCE, STUDY, WHOLE, decode } from "./model.js";
import { tokenRow } from "./tokens.js";
import { pieces } from "./wordpiece.js";

/** The panels of texts and of settings. page: { state, change(patch) }; sync() sets all controls from page.state. */
export function controls(page) {
  const { state } = page;
  const parts = [];
  const kept = (part, read) => {
    parts.push(() => part.set(read(page.state)));
    return part.root;
  };
  const whole = (name, label, next) => {
    const [min, max] = WHOLE[name];
    return kept(
      stepper({ label, min, max, next, value: state[name], change: (value) => page.change({ [name]: value }) }),
      (now) => now[name],
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
  if (state.run) {
    const { name, words: vocabulary, lowercase, config } = state.run;
    const sentence = element("input", {
      type: "text",
      class: "sentence",
      dir: "auto",
      "aria-label": "Your sentence",
      placeholder: SENTENCE,
    });
    sentence.addEventListener("input", () => page.change({ tokens: pieces(sentence.value, vocabulary, lowercase) }));
    texts.append(
      element(
        "p",
        { class: "quiet" },
        `The weights of a trained run: ${name}, ${config.num_hidden_layers} layers of width ${config.hidden_size}.`,
      ),
      fieldset("Your sentence", sentence),
      fieldset("Its pieces in the vocabulary; an unknown piece counts as [UNK]", side("tokens", "pieces", false)),
    );
    if (config.block_sharing !== "unshared") settings.append(fieldset("Recurrence", ...loop));
    settings.append(training);
  } else {
    const grow = (most) => page.change({ target: decode(page.state, most) });
    texts.append(
      fieldset("Source", side("tokens", "source", false)),
      fieldset("Target so far", side("target", "target", true)),
      buttons(
        button("Decode the next word", () => grow(1)),
        button("Decode eight", () => grow(8)),
        button("Clear the target", () => page.change({ target: [] })),
      ),
    );
    settings.append(
      fieldset(
        "Size",
        whole("d_model", "dimension d", (value, sign) => value + 2 * sign),
        whole("heads", "heads", (value, sign) => fitting(page.state, value, sign)),
        whole("layers", "layers"),
        whole("d_ff", "inner width", (value, sign) => value + 4 * sign),
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
      training,
    );
  }
  settings.append(buttons(button("Put every edited cell back", () => page.change({ edits: {} }))));
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
