// Formulas as MathML, from a string such as X^T, W_{1}, \sqrt{d}, \quad. Names of several letters are upright.

import { element } from "./ui.js";

const MATHML = "http://www.w3.org/1998/Math/MathML";
const TOKEN = /\\[a-z]+|[A-Za-zα-ωΑ-Ω]+[′']*|[\d.]+|[_^{}]|\S/gu;

/** The formula as an element of the page. */
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

/** The items up to the closing token, or to the end of the formula. */
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

/** One atom with its superscript and subscript. */
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
