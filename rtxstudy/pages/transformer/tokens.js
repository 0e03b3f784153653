// The tokens of a text as fields, which a reader can edit, add and remove.

import { element } from "../shared/ui.js";

/**
 * A row of tokens. change(tokens) is called with the new list, in which no token is empty. Enter adds a field after this
 * one; Backspace removes an empty one; a field that is left empty goes. split(text) gives the tokens of a text: a pasted
 * sentence, or what a field holds when the reader leaves it. strange(token): whether the model does not know it. The last
 * token can be removed only if `none` is true.
 */
export function tokenRow({ label, tokens, none, most, change, split, strange }) {
  const list = element("ol", { class: "tokens", "aria-label": label });
  const more = element("button", { type: "button", class: "add", onclick: () => open(list.children.length) }, "+ token");
  let now = [];
  let empty = null; // the place of a field that holds no token yet
  let busy = false; // the removal of a field takes its focus, which must not remove another
  let own = false; // whether the tokens that set() is called with come from this row

  const field = (at) => list.children[at]?.querySelector("input");
  const index = (at) => at - (empty !== null && at > empty ? 1 : 0); // of the token in the field at a place

  /** Puts `parts` in place of the token in the field at this place. */
  function put(at, parts) {
    const fresh = at === empty;
    const start = index(at);
    if (fresh) empty = null;
    tell(now.toSpliced(start, fresh ? 0 : 1, ...parts).slice(0, most));
  }

  function tell(next) {
    own = true;
    change(next);
    own = false;
  }

  function open(at) {
    if (now.length >= most) return;
    empty = null;
    lay();
    empty = Math.min(at, now.length);
    lay();
    field(empty).focus();
  }

  function remove(at) {
    if (at === empty) {
      empty = null;
      lay();
    } else if (now.length > 1 || none) put(at, []);
    (field(Math.max(0, at - 1)) ?? more).focus();
  }

  function typed(at, text) {
    const last = now.length === 1 && !none;
    if (text.trim()) {
      const parts = /\S\s+\S/.test(text) ? split(text) : [text.trim()];
      put(at, parts);
      if (/\s$/.test(text)) open(at + parts.length);
      else if (parts.length > 1) field(at + parts.length - 1)?.focus();
    } else if (at !== empty && !last) {
      const start = index(at);
      empty = at;
      tell(now.toSpliced(start, 1));
    }
  }

  /** The reader leaves a field: an empty one goes, and a word becomes the tokens that the model has for it. */
  function leave(at) {
    if (busy || at < 0) return;
    if (at === empty) {
      empty = null;
      return lay();
    }
    const token = now[index(at)];
    const parts = field(at).value.trim() ? split(token) : [token];
    if (parts.length !== 1 || parts[0] !== token) put(at, parts.length || none || now.length > 1 ? parts : [token]);
    else lay();
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
    input.addEventListener("input", () => typed(at(), input.value));
    input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") open(at() + 1);
      else if (event.key === "Backspace" && !input.value) remove(at());
      else return;
      event.preventDefault();
    });
    input.addEventListener("blur", () => leave(at()));
    cross.addEventListener("click", () => remove(at()));
    return item;
  }

  function set(given) {
    now = given;
    if (!own) empty = null; // its place may mean something else now
    lay();
  }

  function lay() {
    const shown = empty === null ? now : now.toSpliced(empty, 0, "");
    busy = true;
    while (list.children.length > shown.length) list.lastElementChild.remove();
    while (list.children.length < shown.length) list.append(chip());
    busy = false;
    shown.forEach((token, at) => {
      const input = field(at);
      const held = input === document.activeElement ? input.value.trim() : input.value;
      if (held !== token) input.value = token; // otherwise unchanged, so that a field in use keeps its cursor
      input.size = Math.min(24, Math.max(2, [...token].length));
      const unknown = strange(token);
      input.parentElement.classList.toggle("strange", unknown);
      input.title = unknown ? "not in the vocabulary, read as [UNK]" : "";
      input.setAttribute("aria-label", `${label}, token ${at + 1} of ${shown.length}`);
      const cross = input.nextElementSibling;
      cross.setAttribute("aria-label", `remove token ${at + 1}: ${token || "empty"}`);
      cross.disabled = now.length === 1 && !none && at !== empty;
    });
    more.disabled = now.length >= most;
  }

  set(tokens);
  return { root: element("div", { class: "row" }, list, more), set };
}
