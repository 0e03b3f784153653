// The chapters and stages of the page, which open and close. A stage that was never open or is out of sight is not drawn.

import { formula } from "../shared/formula.js";
import { grid } from "../shared/grid.js";
import { element, still } from "../shared/ui.js";
import { links } from "./links.js";
import { overview } from "./overview.js";
import { chapters } from "./stages.js";

const LIKELIEST = 8; // words in the list of the last stage

/**
 * page: { state, model, result, head, selected, openStages, words(side), select(name, row, col, title), look(name) }.
 * draw() draws the parts in sight from page.result; destroy() ends all observers.
 */
export function book(page) {
  const parts = new Map(); // element → { root, draw(), stale, inSight }
  const badges = []; // functions that show or hide the word "changed"
  const watcher = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        const part = parts.get(target);
        if (part) part.inSight = isIntersecting;
        if (part?.stale && isIntersecting) refresh(part);
      }
    },
    { rootMargin: "150px" },
  );

  function refresh(part) {
    part.stale = false;
    part.draw();
  }

  function add(part) {
    Object.assign(part, { stale: false, inSight: false });
    part.draw(); // once in any case, so that no part changes its size when it comes into sight
    parts.set(part.root, part);
    watcher.observe(part.root);
    return part.root;
  }

  /** A matrix of a stage. */
  function shownMatrix(chapter, shown) {
    const width = () => page.model.config.hidden_size / page.model.config.num_attention_heads;
    const name = () => (typeof shown.name === "function" ? shown.name(page.head) : shown.name);
    const rows = shown.rows && page.words(shown.rows);
    const cols = shown.cols && page.words(shown.cols);
    const label = `${chapter.title}: ${shown.title.replace(/[\^_]/, " ")}`;
    const select = (row, col) =>
      page.select(
        page.nameOf(name()),
        row,
        col,
        `${label} · ${rows ? rows[row] || "(empty)" : `row ${row}`}, ${cols ? cols[col] || "(empty)" : `column ${col}`}`,
      );
    const { notation } = page.state;
    const keepFirst = rows?.[0] === "[CLS]"; // the vector that is read in the end
    const table = grid({ label, title: caption(shown.title), rowNames: rows, colNames: cols, select, notation, keepFirst });
    const draw = () => {
      const matrix = page.matrix(name());
      table.root.hidden = !matrix; // the model may have no such matrix, for example no bias
      if (matrix)
        table.show(
          matrix,
          shown.part ? page.head * width() : 0,
          shown.part ? width() : matrix.cols,
          page.look(page.nameOf(name())),
        );
    };
    return add({ root: table.root, draw, destroy: table.destroy });
  }

  /** The lines of attention of the head head(). */
  function shownLinks(stage, head, title) {
    const drawn = links({ title: title(), from: page.words(stage.links.from), to: page.words(stage.links.to) });
    return add({
      root: drawn.root,
      draw: () => {
        drawn.root.firstChild.textContent = title();
        drawn.show(page.matrix(stage.links.weights(head())));
      },
    });
  }

  function tabs() {
    const count = page.model.config.num_attention_heads;
    if (count === 1) return null;
    const buttons = Array.from({ length: count }, (_, head) =>
      element("button", { type: "button", onclick: () => page.turn(head) }, `head ${head + 1}`),
    );
    const draw = () => buttons.forEach((button, head) => button.setAttribute("aria-pressed", head === page.head));
    return add({ root: element("div", { class: "tabs", role: "group", "aria-label": "Head" }, ...buttons), draw });
  }

  /** The likeliest words of the last row, with their probabilities. */
  function likeliest(kind) {
    const list = element("ol", { class: "likeliest" });
    const silent = element("p", { class: "quiet" });
    const draw = () => {
      silent.textContent = kind === "labels" ? page.silent() : "";
      list.hidden = silent.textContent !== "";
      const { rows, cols, data } = page.matrix("probabilities");
      const words = page.words(kind);
      const last = [...data.subarray((rows - 1) * cols)]
        .map((p, j) => ({ p, word: words[j] }))
        .sort((a, b) => b.p - a.p);
      const items = last.slice(0, LIKELIEST).map(({ p, word }) => {
        const bar = element("span", { class: "bar" });
        bar.style.width = `${100 * Math.min(1, Math.max(0, p || 0))}%`;
        return element(
          "li",
          {},
          element("span", { class: "word", dir: "auto" }, word || "(empty)"),
          element("span", { class: "track" }, bar),
          element("span", { class: "share" }, `${(100 * p).toFixed(1)} %`),
        );
      });
      list.replaceChildren(...items);
    };
    return add({ root: element("div", {}, silent, list), draw });
  }

  function stageBody(chapter, stage) {
    const body = element(
      "div",
      { class: "body" },
      element("p", {}, stage.says),
      stage.formula ? element("div", { class: "wide" }, formula(stage.formula)) : null,
    );
    if (stage.heads) body.append(...[tabs()].filter(Boolean));
    const shelf = (...things) => element("div", { class: "shelf" }, ...things);
    if (stage.links)
      body.append(
        shelf(
          shownLinks(
            stage,
            () => page.head,
            () => `head ${page.head + 1}`,
          ),
        ),
      );
    for (const line of new Set(stage.shown.map((shown) => shown.line))) {
      body.append(
        shelf(...stage.shown.filter((shown) => shown.line === line).map((shown) => shownMatrix(chapter, shown))),
      );
    }
    if (stage.words) body.append(likeliest(stage.words));
    return body;
  }

  /** The names of all matrices of a stage. */
  function namesOf(stage) {
    const heads = Array.from({ length: page.model.config.num_attention_heads }, (_, head) => head);
    return stage.shown.flatMap(({ name }) => (typeof name === "function" ? heads.map(name) : [name]));
  }

  /** A word that appears when numbers of these stages have changed. */
  function badge(stages) {
    const made = element("span", { class: "changed", hidden: true }, "changed");
    badges.push(() => {
      const changed = page.compared?.changed;
      const hidden = !changed?.size || !stages.some((stage) => namesOf(stage).some((name) => changed.has(page.nameOf(name))));
      if (made.hidden !== hidden) made.hidden = hidden;
    });
    return made;
  }

  /** A details element whose content is made when it first opens. */
  function folded(id, level, title, aside, inside, stages) {
    const heading = element(level, {}, title, " ", badge(stages));
    const made = element(
      "details",
      { class: level === "h2" ? "chapter" : "stage", "data-id": id, open: page.openStages.has(id) },
      element("summary", {}, heading, aside),
    );
    const fill = () => {
      if (made.children.length === 1) made.append(inside());
    };
    if (page.openStages.has(id)) fill();
    made.addEventListener("toggle", () => {
      page.openStages[made.open ? "add" : "delete"](id);
      if (made.open) fill();
    });
    return made;
  }

  const told = chapters(page.model.config, page.state.training && page.state.dropout > 0);
  const root = element("div", { class: "book" });
  for (const chapter of told) {
    const inside = () =>
      element(
        "div",
        { class: "stages" },
        ...chapter.stages.map((stage) => {
          return folded(stage.id, "h3", stage.title, null, () => stageBody(chapter, stage), [stage]);
        }),
      );
    const aside = element("span", { class: "aside" }, chapter.says);
    root.append(folded(chapter.id, "h2", chapter.title, aside, inside, chapter.stages));
  }

  const attentions = told.flatMap((chapter) =>
    chapter.stages
      .filter((stage) => stage.links)
      .map(({ id, links }) => ({ id, links, title: `${chapter.title}${id.includes("/cross/") ? ", to the source" : ""}` })),
  );
  const stageOf = (id) => told.flatMap(({ stages }) => stages).find((one) => one.id === id);
  let small = null; // the overview

  return {
    root,
    /** A matrix, the lines of one head, or the choice of the head, for a place outside the chapters. */
    matrix: (title, shown) => shownMatrix({ title }, shown),
    lines: (id) => shownLinks(stageOf(id), () => page.head, () => `head ${page.head + 1}`),
    tabs,
    /** Opens a stage with its chapter, and brings it into sight. */
    reveal(id) {
      const chapter = told.find(({ stages }) => stages.some((stage) => stage.id === id));
      for (const one of [chapter.id, id]) {
        page.openStages.add(one);
        const found = [...root.querySelectorAll("details")].find((node) => node.dataset.id === one);
        found.open = true;
        if (found.children.length === 1) found.dispatchEvent(new Event("toggle")); // its content, now rather than a moment later
        if (one === id) found.scrollIntoView({ block: "center", behavior: still() ? "auto" : "smooth" });
      }
    },
    /** Every attention, small. choose(id, head) is called when one is chosen. */
    overview(choose) {
      small = overview(page, attentions, add, choose);
      return small.root;
    },
    /** The attention of one layer, all heads side by side. */
    glance(id) {
      const stage = stageOf(id);
      const heads = Array.from({ length: page.model.config.num_attention_heads }, (_, head) =>
        shownLinks(
          stage,
          () => head,
          () => `head ${head + 1}`,
        ),
      );
      return element("div", { class: "heads" }, ...heads);
    },
    /** [id, words] of every attention in the model. */
    places: attentions.map(({ id, title }) => [id, title]),
    draw() {
      for (const part of parts.values()) {
        part.stale = true;
        if (part.inSight) refresh(part);
      }
      for (const show of badges) show();
    },
    forget(node) {
      for (const root of parts.keys()) {
        if (!node.contains(root)) continue;
        watcher.unobserve(root);
        parts.delete(root);
      }
    },
    destroy() {
      watcher.disconnect();
      small?.destroy();
      for (const part of parts.values()) part.destroy?.();
      parts.clear();
    },
  };
}

/** The name of a matrix, with superscripts (^) and subscripts (_). */
function caption(title) {
  return /[\^_]/.test(title) ? formula(title) : element("span", {}, title);
}
