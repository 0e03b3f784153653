// Formulas as MathML, from a line of text: X^T, W_{1}, \sqrt{d}, \quad; names of several letters stand upright.

import { element } from "./ui.js";

const MATHML = "http://www.w3.org/1998/Math/MathML";
const TOKEN = /\\[a-z]+|[A-Za-zα-ωΑ-Ω]+[′']*|[\d.]+|[_^{}]|\S/gu;

/** A formula as an element of the page. */
export function formula(text) {
  const tokens = text.match(TOKEN) ?? [];
  const math = node("math", row(tokens, null));
  return element("span", { class: "formula" }, math);
}

function node(tag, children) {
  const made = document.createElementNS(MATHML, tag);
  made.append(...children);
  return made;
}

/** Items up to the closing brace, or to the end. */
function row(tokens, closing) {
  const items = [];
  while (tokens.length && tokens[0] !== closing) {
    const name = /^\p{L}{2,}$/u.test(tokens[0]);
    if (name && items.length && !["mo", "mspace"].includes(items.at(-1).localName)) items.push(space("0.17em"));
    items.push(item(tokens));
    if (name && /^[\p{L}\d]/u.test(tokens[0] ?? "")) items.push(space("0.17em")); // cos α, not cosα
  }
  tokens.shift();
  return items;
}

function space(width) {
  const made = node("mspace", []);
  made.setAttribute("width", width);
  return made;
}

/** One thing with what is raised and lowered at it. */
function item(tokens) {
  const base = atom(tokens);
  const at = {};
  while (tokens[0] === "_" || tokens[0] === "^") {
    const sign = tokens.shift();
    at[sign] = atom(tokens);
  }
  if (at._ && at["^"]) return node("msubsup", [base, at._, at["^"]]);
  if (at._) return node("msub", [base, at._]);
  return at["^"] ? node("msup", [base, at["^"]]) : base;
}

function atom(tokens) {
  const token = tokens.shift() ?? "";
  if (token === "{") return node("mrow", row(tokens, "}"));
  if (token === "\\sqrt") return node("msqrt", [atom(tokens)]);
  if (token === "\\quad") return space("1em");
  if (/^[\d.]/.test(token)) return node("mn", [token]);
  return node(/^[\p{L}∞]/u.test(token) ? "mi" : "mo", [token]);
}
