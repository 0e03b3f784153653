import { START } from "./core.js";

/** Draws the page in `root`. */
export function mount(root, state, changed) {
  let now = { ...START, ...state };
  const draw = () => {
    root.textContent = now.tokens.join(" ");
  };
  draw();
  return {
    set(patch) {
      now = { ...now, ...patch };
      draw();
    },
    destroy() {
      root.textContent = "";
    },
  };
}
