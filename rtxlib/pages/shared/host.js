// The two hosts of a page: a document of its own, and a widget in a notebook. Either gathers what the user changes.

const PAUSE = 200; // ms without a change before it is passed on; a drag or an animation passes on its last state

/** @typedef {Record<string, any>} State */
/** @typedef {(root: HTMLElement, state: State, changed: (patch: State) => void) => {set(patch: State): void, destroy(): void}} Mount */

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
      if (text !== undefined && name !== "__proto__") state[decodeURIComponent(name)] = JSON.parse(decodeURIComponent(text));
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
  let link = linked ? readLink(location.hash) : {};
  const write = gather((patch) => {
    link = { ...link, ...patch };
    history.replaceState(null, "", writeLink(link));
  });
  const page = mount(document.getElementById("page"), { ...given, ...link }, linked ? write : () => {});
  addEventListener("hashchange", () => {
    link = readLink(location.hash);
    page.set(link);
  });
}

/** The `render` of an anywidget whose model has one trait, `state`, set from either side. */
export function widget(/** @type {Mount} */ mount) {
  return ({ model, el }) => {
    const root = document.createElement("div");
    root.className = "rtx-page";
    el.append(root);
    let mine = null; // the state that was sent last, which comes back as a change of the model
    const send = gather((patch) => {
      mine = { ...model.get("state"), ...patch };
      model.set("state", mine);
      model.save_changes();
    });
    const page = mount(root, model.get("state"), send);
    const follow = () => {
      if (model.get("state") !== mine) page.set(model.get("state"));
    };
    model.on("change:state", follow);
    return () => {
      model.off("change:state", follow);
      page.destroy();
    };
  };
}
