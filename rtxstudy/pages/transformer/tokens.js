// The tokens of a text as fields, which a reader can edit, add and remove.

import { element } from "../shared/ui.js";

/**
 * A row of tokens. change(tokens) is called with the new list. Enter adds a token after this one; Backspace removes an
 * empty one. The last token can be removed only if `none` is true.
 */
export function tokenRow({ label, tokens, none, most, change }) {
  const list = element("ol", { class: "tokens", "aria-label": label });
  const more = element("button", { type: "button", class: "add", onclick: () => insert(now.length) }, "+ token");
  let now = [];

  const field = (at) => list.children[at]?.querySelector("input");

  function insert(at) {
    if (now.length >= most) return;
    change(now.toSpliced(at, 0, ""));
    field(at)?.focus();
  }

  function remove(at) {
    if (now.length === 1 && !none) return;
    change(now.toSpliced(at, 1));
    (field(Math.max(0, at - 1)) ?? more).focus();
  }

  function chip() {
    const input = element("input", {
      type: "text",
      dir: "auto",
      spellcheck: "false",
      autocomplete: "off",
      autocapitalize: "off",
    });
    const cross = element("button", { type: "button", class: "remove" }, "×");
    const item = element("li", {}, input, cross);
    const at = () => [...list.children].indexOf(item);
    input.addEventListener("input", () => change(now.with(at(), input.value)));
    input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") insert(at() + 1);
      else if (event.key === "Backspace" && !input.value) remove(at());
      else return;
      event.preventDefault();
    });
    cross.addEventListener("click", () => remove(at()));
    return item;
  }

  function set(given) {
    now = given;
    while (list.children.length > now.length) list.lastElementChild.remove();
    while (list.children.length < now.length) list.append(chip());
    now.forEach((token, at) => {
      const input = field(at);
      if (input.value !== token) input.value = token; // unchanged, so that a field in use keeps its cursor
      input.size = Math.min(24, Math.max(2, [...token].length));
      input.setAttribute("aria-label", `${label}, token ${at + 1} of ${now.length}`);
      const cross = input.nextElementSibling;
      cross.setAttribute("aria-label", `remove token ${at + 1}: ${token || "empty"}`);
      cross.disabled = now.length === 1 && !none;
    });
    more.disabled = now.length >= most;
  }

  set(tokens);
  return { root: element("div", { class: "row" }, list, more), set };
}
