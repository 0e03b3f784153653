// The two hosts of a page: a document, and a widget in a notebook. Both gather the changes of the user.

const PAUSE = 200; // ms without a change before changes are passed on; a drag or an animation passes on its last state

/** @typedef {Record<string, any>} State */
/**
 * @typedef {(root: HTMLElement, state: State, changed: (patch: State) => void) => Page} Mount
 * @typedef {{set(state: State): void, destroy(): void, state?(): State, numbers?(): State}} Page
 */

/** Calls `send` with all patches since its last call, after a pause without patches. */
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

/** The state after the # of a link: name=JSON pairs. Pairs that cannot be read are left out. */
export function readLink(hash) {
  const state = {};
  for (const pair of hash.replace(/^#/, "").split("&")) {
    const [name, text] = pair.split("=");
    try {
      if (text !== undefined && name !== "__proto__")
        state[decodeURIComponent(name)] = JSON.parse(decodeURIComponent(text));
    } catch {
      // people may mistype or cut a link; its other pairs still count
    }
  }
  return state;
}

/** The link of a state: `#name=JSON&…`. */
export function writeLink(state) {
  const pairs = Object.entries(state).map(([name, value]) => `${name}=${encodeURIComponent(JSON.stringify(value))}`);
  return `#${pairs.join("&")}`;
}

/** Opens a page in this document. Its state comes from the script element `state` and from the link. */
export function openPage(/** @type {Mount} */ mount) {
  const given = JSON.parse(document.getElementById("state").textContent);
  const linked = location.protocol !== "about:"; // the document of a frame has no address to write to
  const read = () => {
    const { run, ...rest } = readLink(location.hash); // the weights of a run come only with the page
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
  const line = document.createElement("footer");
  line.className = "note";
  line.textContent = "The address of this page holds your changes. Send it to others, and they see the same.";
  return line;
}

/**
 * The `render` of an anywidget. The trait `state` of its model and the page follow each other. The trait `run` goes into
 * the page with the state and never comes back. The trait `numbers` receives the page's numbers(), with the state they
 * belong to under `of`.
 */
export function widget(/** @type {Mount} */ mount) {
  return ({ model, el }) => {
    const root = document.createElement("div");
    root.className = "rtx-page";
    root.dataset.lmSuppressShortcuts = "true"; // JupyterLab does not take keys typed here as commands
    const light = document.body.dataset.jpThemeLight;
    if (light) root.style.colorScheme = light === "true" ? "light" : "dark";
    el.append(root);
    const whole = () => ({ ...model.get("state"), run: model.get("run") });
    let mine = null; // the state sent last, which comes back as a change of the model
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
