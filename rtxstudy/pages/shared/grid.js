// A matrix as a table in a box that scrolls. Only the cells in view exist, and only changed cells are written.

import { element, unique } from "./ui.js";

const WIDTH = { plain: 54, scientific: 70 }; // px of a cell
const HEIGHT = 25;
const LETTER = 6.5; // px, roughly, of a letter in the name of a row
const SIDE = [32, 96]; // px of the column of row names: least and most
const TALLEST = 12; // rows; a taller matrix scrolls
export const SATURATED = 10; // the size from which blue and red are deepest
export const SHADES = 20;

/** A number in at most six characters, always with its sign: a plain decimal, if one can be read to a digit. */
export function brief(value) {
  if (value === 0) return "0";
  if (Number.isNaN(value)) return "NaN";
  const size = Math.abs(value);
  const sign = value < 0 ? "−" : "+";
  if (size === Infinity) return `${sign}∞`;
  if (size < 0.00095 || size >= 99999.5) return sign + exponent(size, 0);
  return sign + size.toFixed(size < 0.0995 ? 3 : size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
}

/** A number with an exponent, in at most nine characters: "+1.23e−1". */
export function scientific(value) {
  if (value === 0 || !Number.isFinite(value)) return brief(value);
  return (value < 0 ? "−" : "+") + exponent(Math.abs(value), 2);
}

const exponent = (size, digits) => size.toExponential(digits).replace("+", "").replace("-", "−");

/** The CSS class of a value: n20 … n1, zero, p1 … p20. It follows the root of the size, so that small numbers differ too. */
export function shade(value) {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "bad" : "masked";
  if (value === 0) return "zero";
  return (value < 0 ? "n" : "p") + Math.ceil(SHADES * Math.sqrt(Math.min(1, Math.abs(value) / SATURATED)));
}

/**
 * A grid. label: its name. rowNames, colNames: names of the rows and columns, or null for numbers. select(row, column) is
 * called when a click, Enter or space chooses a cell. notation: "plain" or "scientific". keepFirst: whether the first row
 * stays in sight while the others scroll. show(matrix, from, width, look) draws the columns from..from+width; look(row, column) is the class of a cell besides its colour. All rows and columns are
 * counted in the whole matrix.
 */
export function grid({ label, title, rowNames, colNames, select, notation = "plain", keepFirst = false }) {
  const wide = WIDTH[notation];
  const write = notation === "plain" ? brief : scientific;
  const id = unique("grid");
  const head = element("thead", { "aria-hidden": "true" });
  const body = element("tbody");
  const table = element("table", { role: "presentation" }, head, body);
  const space = element("div", { class: "space" }, table);
  const box = element("div", { class: "box", role: "grid", tabindex: 0, "aria-label": label }, space);
  const size = element("span", { class: "size" });
  const root = element("figure", { class: "matrix" }, element("figcaption", {}, title, " ", size), box);
  const longest = Math.max(...(rowNames ?? []).map((words) => words.length), 0);
  const side = Math.round(Math.min(SIDE[1], Math.max(SIDE[0], LETTER * longest + 14)));
  let shown = null; // { data, cols, rows, from, width }
  /** @type {(row: number, col: number) => string} */
  let marks = () => "";
  let active = { row: 0, col: 0 }; // within what is shown
  let window = { top: 0, left: 0, rows: 0, cols: 0 };
  let cells = []; // in view, row after row: { td, text, value, look }

  /** Finds the cells in view. It reads the layout, so it is not called while the grid is drawn. */
  function measure() {
    if (!shown) return;
    const rows = Math.min(shown.rows, Math.ceil(box.clientHeight / HEIGHT) + 1);
    const cols = Math.min(shown.width, Math.ceil(Math.max(0, box.clientWidth - side) / wide) + 1);
    const top = Math.max(0, Math.min(Math.floor(box.scrollTop / HEIGHT), shown.rows - rows));
    const left = Math.max(0, Math.min(Math.floor(box.scrollLeft / wide), shown.width - cols));
    const same = top === window.top && left === window.left && rows === window.rows && cols === window.cols;
    if (same) return;
    const reshaped = rows !== window.rows || cols !== window.cols;
    window = { top, left, rows, cols };
    if (reshaped) lay();
    name();
    draw();
  }

  /** The row of the matrix in a line of the table. */
  const rowAt = (line) => (keepFirst && line === 0 ? 0 : window.top + line);

  /** Makes as many table cells as are in view. */
  function lay() {
    cells = [];
    head.replaceChildren(element("tr", {}, element("th"), ...Array.from({ length: window.cols }, () => element("th"))));
    const lines = Array.from({ length: window.rows }, (_, i) => {
      const tds = Array.from({ length: window.cols }, () => {
        const text = document.createTextNode("");
        const td = element("td", { role: "gridcell" }, text);
        cells.push({ td, text, value: undefined, look: undefined });
        return td;
      });
      return element("tr", { role: "row", class: keepFirst && i === 0 && "first" }, element("th", { role: "rowheader" }), ...tds);
    });
    body.replaceChildren(...lines);
  }

  /** Names the rows, columns and cells in view. */
  function name() {
    const { top, left } = window;
    table.style.top = `${top * HEIGHT}px`;
    table.style.left = `${left * wide}px`;
    [...head.rows[0].cells].slice(1).forEach((th, j) => {
      th.textContent = colNames ? colNames[shown.from + left + j] : shown.from + left + j;
    });
    [...body.rows].forEach((line, i) => {
      line.setAttribute("aria-rowindex", rowAt(i) + 1);
      line.cells[0].textContent = rowNames ? rowNames[rowAt(i)] : rowAt(i);
      line.cells[0].title = rowNames ? rowNames[rowAt(i)] : "";
    });
    cells.forEach((cell, at) => {
      const row = rowAt(Math.floor(at / window.cols));
      const col = left + (at % window.cols);
      cell.td.id = `${id}-${row}-${col}`;
      cell.td.setAttribute("aria-colindex", col + 1);
      cell.value = undefined;
    });
  }

  /** Writes the cells whose number or class has changed. */
  function draw() {
    const { left, rows, cols } = window;
    for (let i = 0, at = 0; i < rows; i++) {
      const row = rowAt(i);
      const start = row * shown.cols + shown.from + left;
      for (let j = 0; j < cols; j++, at++) {
        const cell = cells[at];
        const value = shown.data[start + j];
        if (!Object.is(cell.value, value)) {
          cell.value = value;
          const words = write(value);
          if (cell.text.data !== words) cell.text.data = words;
        }
        let look = shade(value) + marks(row, shown.from + left + j);
        if (row === active.row && left + j === active.col) look += " active";
        if (cell.look !== look) cell.td.className = cell.look = look;
      }
    }
  }

  function move(row, col) {
    active = { row: Math.max(0, Math.min(shown.rows - 1, row)), col: Math.max(0, Math.min(shown.width - 1, col)) };
    const [x, y] = [active.col * wide, active.row * HEIGHT];
    const [across, down] = [box.clientWidth - side - wide, box.clientHeight - 2 * HEIGHT];
    box.scrollLeft = Math.min(x, Math.max(box.scrollLeft, x - across));
    const covered = keepFirst ? HEIGHT : 0; // by the first row; it needs no scrolling itself
    if (!covered || active.row) box.scrollTop = Math.min(y - covered, Math.max(box.scrollTop, y - down));
    measure();
    draw();
    point();
  }

  /** Says which cell the keyboard is at. It does not scroll, because a click on another cell may be giving the focus. */
  const point = () => box.setAttribute("aria-activedescendant", `${id}-${active.row}-${active.col}`);

  const choose = () => select(active.row, shown.from + active.col);
  const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  steps.PageUp = [-10, 0];
  steps.PageDown = [10, 0];
  steps.Home = [0, -Infinity];
  steps.End = [0, Infinity];
  box.addEventListener("keydown", (event) => {
    const step = steps[event.key];
    if (step) move(active.row + step[0], active.col + step[1]);
    else if (event.key === "Enter" || event.key === " ") choose();
    else return;
    event.preventDefault();
  });
  box.addEventListener("click", (event) => {
    const at = cells.findIndex(({ td }) => td === event.target);
    if (at < 0) return;
    move(rowAt(Math.floor(at / window.cols)), window.left + (at % window.cols));
    choose();
  });
  box.addEventListener("focus", point);
  box.addEventListener("scroll", measure, { passive: true });
  const resized = new ResizeObserver(measure);
  resized.observe(box);

  return {
    root,
    show(matrix, from = 0, width = matrix.cols, look = () => "") {
      const fresh = !shown || shown.rows !== matrix.rows || shown.width !== width || shown.from !== from;
      shown = { data: matrix.data, rows: matrix.rows, cols: matrix.cols, from, width };
      marks = look;
      if (fresh) {
        size.textContent = `${matrix.rows} × ${width}`;
        box.setAttribute("aria-rowcount", matrix.rows);
        box.setAttribute("aria-colcount", width);
        space.style.width = `${side + width * wide}px`;
        space.style.height = `${(matrix.rows + 1) * HEIGHT}px`;
        box.style.maxHeight = `${(TALLEST + 1) * HEIGHT + 2}px`;
        active = { row: Math.min(active.row, matrix.rows - 1), col: Math.min(active.col, width - 1) };
        window = { ...window, rows: 0 };
        table.style.setProperty("--side", `${side}px`);
        table.style.setProperty("--wide", `${wide}px`);
        measure();
      } else draw();
    },
    focus(row, col) {
      box.focus();
      move(row, col - shown.from);
    },
    destroy: () => resized.disconnect(),
  };
}
