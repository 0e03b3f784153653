// Elements, numbers and small controls that the pages share. Strings are always set as text, never as markup.

/** An HTML element. Attributes `on…` are listeners; true is an empty attribute; false and null are left out. */
export function element(tag, attributes = {}, ...children) {
  return furnish(document.createElement(tag), attributes, children);
}

/** An SVG element, with the same attributes. */
export function drawing(tag, attributes = {}, ...children) {
  return furnish(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

/** An SVG group that acts as a button: act() is called at a click, Enter or space. */
export function pressable(attributes, act, ...children) {
  const keydown = (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    act();
  };
  return drawing("g", { role: "button", tabindex: 0, onclick: act, onkeydown: keydown, ...attributes }, ...children);
}

function furnish(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== false && value != null) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child != null));
  return node;
}

const RAISED = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

/** A number with its sign in scientific notation, "+1.235 × 10⁻¹", with `digits` decimals. */
export function scientific(value, digits = 3) {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "not a number" : value > 0 ? "+∞" : "−∞";
  const [mantissa, exponent] = Math.abs(value).toExponential(digits).split("e");
  const raised = [...String(Number(exponent))].map((sign) => RAISED[sign]).join("");
  return `${value < 0 ? "−" : "+"}${mantissa} × 10${raised}`;
}

/** A number with its sign and `digits` decimals; in scientific notation where these do not suffice. */
export function plain(value, digits = 3) {
  const size = Math.abs(value);
  if (value === 0) return "0";
  if (!(size >= 0.5 * 10 ** (1 - digits) && size < 1e5)) return scientific(value, digits);
  return `${value < 0 ? "−" : "+"}${size.toFixed(digits)}`;
}

/** Whether the reader asked for less motion. It is read each time, because it may change while the page is open. */
export function still() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

const own = Math.random().toString(36).slice(2, 8); // a notebook loads these modules once per widget
let named = 0;

/** An id that no other element has; it ties a label to its control. */
export function unique(stem) {
  named += 1;
  return `${stem}-${own}-${named}`;
}

/** A labelled slider with its value beside it. `input(value)` is called at every movement, but not by `set(value)`. */
export function slider({ label, min, max, step, value, input, show = (number) => String(number) }) {
  const id = unique("slider");
  const shown = element("output", { for: id });
  const range = element("input", { id, type: "range", min, max, step });
  const set = (number) => {
    range.value = number;
    shown.textContent = show(number);
    range.setAttribute("aria-valuetext", show(number));
  };
  range.addEventListener("input", () => {
    set(Number(range.value));
    input(Number(range.value));
  });
  set(value);
  return { root: element("div", { class: "slider" }, element("label", { for: id }, label), range, shown), set };
}

/** A labelled choice. options: [value, words] pairs. */
export function choice({ label, options, value, change }) {
  const id = unique("choice");
  const select = element("select", { id, onchange: () => change(select.value) });
  for (const [key, words] of options) select.append(element("option", { value: key }, words));
  select.value = value;
  const set = (key) => {
    select.value = key;
  };
  return { root: element("div", { class: "choice" }, element("label", { for: id }, label), select), set };
}

/** A labelled switch. */
export function toggle({ label, value, change }) {
  const id = unique("toggle");
  const box = element("input", { id, type: "checkbox", onchange: () => change(box.checked) });
  box.checked = value;
  const set = (on) => {
    box.checked = on;
  };
  return { root: element("div", { class: "toggle" }, box, element("label", { for: id }, label)), set };
}

/**
 * A labelled whole number with − and + beside it. `change(number)` is called with the number asked for. `next(value, sign)`
 * is the number one step up or down. `explain(typed)` is called before a
 * change by hand; what it returns is called after it, and says why another number was taken, or "".
 */
export function stepper({ label, value, min, max, change, next = (number, sign) => number + sign, explain = () => () => "" }) {
  const id = unique("number");
  const [field, said] = [
    element("input", { id, type: "text", inputmode: "numeric", size: 4, autocomplete: "off", "aria-describedby": `${id}-said` }),
    element("p", { class: "why", id: `${id}-said`, role: "status" }),
  ];
  let now = value;
  const ask = (number, typed = number) => {
    const why = explain(typed);
    change(Math.min(max, Math.max(min, number)));
    said.textContent = why();
  };
  const less = element(
    "button",
    { type: "button", "aria-label": `less: ${label}`, onclick: () => ask(next(now, -1)) },
    "−",
  );
  const more = element(
    "button",
    { type: "button", "aria-label": `more: ${label}`, onclick: () => ask(next(now, 1)) },
    "+",
  );
  const set = (number) => {
    now = number;
    field.value = number;
    less.disabled = number <= min;
    more.disabled = number >= max;
  };
  field.addEventListener("change", () => {
    const typed = field.value.trim() === "" ? Number.NaN : Number(field.value);
    ask(Number.isFinite(typed) ? Math.round(typed) : now, typed);
    set(now); // the number that `change` accepted, or the old one
  });
  set(value);
  return { root: element("div", { class: "stepper" }, element("label", { for: id }, label), less, field, more, said), set };
}
