// The page works without this script. It marks the present section in the contents, opens the appendix that a link leads
// to, folds, sorts and hands out tables, enlarges figures, and draws charts.

document.documentElement.classList.add("js");

const contents = document.querySelector("details.contents");
const wide = matchMedia("(min-width: 68rem)");
const fit = () => { contents.open = wide.matches; };
fit();
wide.addEventListener("change", fit);
contents.addEventListener("click", (event) => {
  if (event.target.closest("a") && !wide.matches) contents.open = false;
});

const links = new Map([...contents.querySelectorAll("a")].map((link) => [link.hash.slice(1), link]));
const marks = [...links.keys()].map((id) => document.getElementById(id)).filter(Boolean);
const follow = () => {
  const passed = marks.filter((mark) => mark.getBoundingClientRect().top < innerHeight / 3);
  const here = links.get((passed.at(-1) ?? marks[0])?.id);
  for (const link of links.values()) {
    link.setAttribute("aria-current", link === here ? "true" : "false");
    link.closest("ol > li").classList.toggle("current", link.closest("ol > li").contains(here ?? null));
  }
};
let waiting = false;
addEventListener("scroll", () => {
  if (!waiting) requestAnimationFrame(() => { waiting = false; follow(); });
  waiting = true;
}, { passive: true });
follow();

const plots = [...document.querySelectorAll(".plot")];
const draw = (plot) => {
  const { data, layout } = JSON.parse(plot.nextElementSibling.textContent);
  delete layout.width; // the chart takes the width of the page
  layout.autosize = true;
  for (const trace of data) if (trace.mode?.includes("text")) trace.cliponaxis = false; // a label may reach beyond the axes
  if (plot.clientWidth < 600) layout.margin = { t: 60, b: 50, ...layout.margin, l: 56, r: 16 }; // a phone has little room
  return Plotly.newPlot(plot, data, layout, {
    responsive: true, displaylogo: false, modeBarButtonsToRemove: ["sendDataToCloud", "sendChartToCloud"],
  });
};
const unpack = async () => { // the chart library stands compressed in the page
  const packed = Uint8Array.from(atob(document.getElementById("plotly").textContent), (letter) => letter.charCodeAt(0));
  const script = document.createElement("script");
  script.textContent = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  document.head.append(script);
};
if (plots.length) unpack().then(() => plots.forEach(draw));
const appendices = [...document.querySelectorAll(".appendices details")];
let folded = [];
addEventListener("beforeprint", () => { // on paper nothing can be opened
  folded = appendices.filter((part) => !part.open);
  for (const part of folded) part.open = true;
});
addEventListener("afterprint", () => { for (const part of folded) part.open = false; });
addEventListener("beforeprint", () => plots.forEach((plot) => globalThis.Plotly?.relayout(plot, { width: 640, autosize: false })));
addEventListener("afterprint", () => plots.forEach((plot) => globalThis.Plotly?.relayout(plot, { width: null, autosize: true })));

// an appendix opens where a link leads into it
const reveal = () => {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  for (let part = target; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
  const fold = target.querySelector(":scope > details");
  if (fold) fold.open = true;
  target.scrollIntoView();
};
addEventListener("hashchange", reveal);
if (location.hash) reveal();

// tables: the other columns and rows, the order, and CSV
const words = (cell) => cell.textContent.replace(/ [↑↓]$/, "").trim();
const value = (cell) => {
  const number = parseFloat(words(cell).replaceAll(",", "").replace("−", "-").replace(/^[<>≈±(]\s*/, ""));
  return Number.isNaN(number) ? words(cell).toLowerCase() : number;
};
const csv = (table) => [...table.rows].map((row) => [...row.cells].map((cell) => `"${words(cell).replaceAll('"', '""')}"`).join(",")).join("\r\n");
const button = (text, act) => {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = text;
  made.addEventListener("click", () => act(made));
  return made;
};
document.querySelectorAll(".tabled").forEach((box, place) => {
  const table = box.querySelector("table");
  const tools = document.createElement("p");
  tools.className = "tools";
  const fold = (name, selector, all, less) => {
    if (!box.querySelector(selector)) return;
    const made = button(all, () => {
      const open = box.classList.toggle(name);
      made.textContent = open ? less : all;
      made.setAttribute("aria-expanded", String(open));
    });
    made.setAttribute("aria-expanded", "false");
    tools.append(made);
  };
  const right = document.createElement("span"); // what a table that is wider than the page hides
  right.className = "right";
  right.textContent = "scroll for more columns →";
  tools.append(right);
  new ResizeObserver(() => {
    const frame = box.querySelector(".table");
    box.classList.toggle("scrolls", frame.scrollWidth > frame.clientWidth + 4);
  }).observe(table);
  box.append(tools);
  fold("wide", ".more", `All ${box.dataset.columns} columns`, "Fewer columns");
  fold("long-shown", ".later", `All ${box.dataset.rows} rows`, "Fewer rows");
  if (table.tBodies[0]?.rows.length > 2) {
    tools.append(button("CSV", () => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob(["\ufeff" + csv(table)], { type: "text/csv" }));
      link.download = `${box.closest("section")?.id ?? "table"}-${place + 1}.csv`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    }));
  }
  if (table.querySelector("[rowspan]:not([rowspan='1']), [colspan]:not([colspan='1'])")) return;
  [...(table.tHead?.rows[0]?.cells ?? [])].forEach((head, column) => {
    const made = button("", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const body = table.tBodies[0], rows = [...body.rows], shown = rows.findIndex((row) => row.classList.contains("later"));
      rows.sort((a, b) => {
        const [x, y] = [value(a.cells[column]), value(b.cells[column])];
        const order = typeof x === typeof y ? (x < y ? -1 : x > y ? 1 : 0) : typeof x === "number" ? -1 : 1;
        return down ? -order : order;
      });
      rows.forEach((row, i) => { row.classList.toggle("later", shown >= 0 && i >= shown); body.append(row); });
    });
    if (!words(head)) return;
    made.append(...head.childNodes);
    head.append(made);
  });
});

// a figure that is tapped or clicked is shown large
const large = document.querySelector("dialog.large");
for (const image of document.querySelectorAll("figure img")) {
  const made = button("", () => {
    const copy = image.cloneNode();
    copy.removeAttribute("width");
    large.replaceChildren(button("Close", () => large.close()), copy);
    large.showModal();
  });
  made.className = "enlarge";
  made.setAttribute("aria-label", `Enlarge: ${image.alt}`);
  image.replaceWith(made);
  made.append(image);
}
large.addEventListener("click", () => large.close());
