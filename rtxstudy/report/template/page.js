// The page works without this script, which draws charts, marks the present section in the contents, and closes the
// contents on a phone.

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
  return Plotly.newPlot(plot, data, layout, { responsive: true, displaylogo: false });
};
plots.forEach(draw);
addEventListener("beforeprint", () => plots.forEach((plot) => Plotly.relayout(plot, { width: 640, autosize: false })));
addEventListener("afterprint", () => plots.forEach((plot) => Plotly.relayout(plot, { width: null, autosize: true })));
