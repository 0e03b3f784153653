// The two hosts of a page: a document of its own, and a widget in a notebook. Either gathers what the user changes.

const PAUSE = 200; // ms without a change before it is passed on; a drag or an animation passes on its last state

/** @typedef {Record<string, any>} State */
/**
 * @typedef {(root: HTMLElement, state: State, changed: (patch: State) => void) => Page} Mount
 * @typedef {{set(state: State): void, destroy(): void, state?(): State, numbers?(): State}} Page
 */

/** Calls `send` with all patches since the last call, once none has come for a while. */
function gather(send) {
  let waiting = {};
  let timer = 0;
  const flush = () => {
    const patch = waiting;
    waiting = {};
    send(patch);
  };
  return (patch) => {
    Object.assign(waiting, patch);
    clearTimeout(timer);
    timer = setTimeout(flush, PAUSE);
  };
}

/** What a link holds after its #: name=JSON pairs; those that cannot be read are left out. */
export function readLink(hash) {
  const state = {};
  for (const pair of hash.replace(/^#/, "").split("&")) {
    const [name, text] = pair.split("=");
    try {
      if (text !== undefined && name !== "__proto__")
        state[decodeURIComponent(name)] = JSON.parse(decodeURIComponent(text));
    } catch {
      // a link is typed and cut by people; the rest of it still counts
    }
  }
  return state;
}

/** The other way round: `#name=JSON&…`. */
export function writeLink(state) {
  const pairs = Object.entries(state).map(([name, value]) => `${name}=${encodeURIComponent(JSON.stringify(value))}`);
  return `#${pairs.join("&")}`;
}

/** Opens a page in this document: its state from the script element `state`, and from the link where there is one. */
export function openPage(/** @type {Mount} */ mount) {
  const given = JSON.parse(document.getElementById("state").textContent);
  const linked = location.protocol !== "about:"; // a frame's own document has no address to write to
  const read = () => {
    const { run, ...rest } = readLink(location.hash); // weights come with the page alone
    return rest;
  };
  let link = linked ? read() : {};
  const write = gather((patch) => {
    link = { ...link, ...patch };
    history.replaceState(null, "", writeLink(link));
  });
  const page = mount(document.getElementById("page"), { ...given, ...link }, linked ? write : () => {});
  addEventListener("hashchange", () => {
    link = read();
    page.set({ ...given, ...link });
  });
  if (linked) document.body.append(note());
}

function note() {
  const line = document.createElement("p");
  line.className = "note";
  line.textContent = "The address of this page holds what you changed: send it, and others see the same.";
  return line;
}

/**
 * The `render` of an anywidget. Its model's trait `state` follows the page and is followed by it; `run`, where there is one,
 * goes in with the state and never comes back; `numbers` takes what the page's own numbers() gives, beside the state `of` which
 * they are.
 */
export function widget(/** @type {Mount} */ mount) {
  return ({ model, el }) => {
    const root = document.createElement("div");
    root.className = "rtx-page";
    root.dataset.lmSuppressShortcuts = "true"; // keys typed here are no commands of JupyterLab
    const light = document.body.dataset.jpThemeLight;
    if (light) root.style.colorScheme = light === "true" ? "light" : "dark";
    el.append(root);
    const whole = () => ({ ...model.get("state"), run: model.get("run") });
    let mine = null; // the state that was sent last, which comes back as a change of the model
    const send = gather((patch) => {
      const { run, ...state } = page.state ? page.state() : { ...model.get("state"), ...patch };
      mine = state;
      model.set("state", state);
      if (page.numbers) model.set("numbers", { of: state, ...page.numbers() });
      model.save_changes();
    });
    const page = mount(root, whole(), send);
    const follow = () => {
      if (model.get("state") === mine) return;
      page.set(whole());
      send({});
    };
    model.on("change:state", follow);
    send({});
    return () => {
      model.off("change:state", follow);
      page.destroy();
    };
  };
}
