// Rows as a table that is kept up to date: what comes is highlighted, what goes fades, and a row of which only some
// columns changed stays where it is.
import { element, write } from "./dom.js";
import { number, value } from "./format.js";

const NUMBERS = /^(byte|short|integer|long|float|double|decimal)/;
const NAMES_OF_NUMBERS = /(^|_)(id|timestamp|year)$/;
const FADES = 1200;
// Pairs of rows that are compared, at most.
const COMPARED = 20000;

export class Table {
  #root;
  #columns = [];
  #shown = new Map();
  #rows = [];
  #sorted = { name: null, descending: false };
  #limit;

  constructor(root, limit) {
    this.#root = root;
    this.#limit = limit;
  }

  /** [{name, type}] */
  set columns(columns) {
    if (JSON.stringify(columns) === JSON.stringify(this.#columns)) return;
    this.#columns = columns;
    const heads = columns.map(({ name, type }) => {
      const button = element("button", { type: "button", text: name });
      button.addEventListener("click", () => this.#sortBy(name));
      const isNumber = NUMBERS.test(type);
      return element("th", { scope: "col", classes: isNumber ? "number" : "", title: JSON.stringify(type).replaceAll('"', "") }, button);
    });
    this.#root.tHead.replaceChildren(element("tr", {}, ...heads, element("td", { classes: "times" })));
    this.#root.tBodies[0].replaceChildren();
    this.#shown.clear();
    this.#draw();
  }

  /** All of its rows anew. */
  show(rows) {
    this.#rows = rows;
    this.#draw();
  }

  /** The same, after a change. */
  follow({ rows, inserted, deleted }) {
    const came = new Set(inserted.map((row) => JSON.stringify(row)));
    const pairs = this.#pairs(inserted, deleted);
    for (const row of deleted) {
      const key = JSON.stringify(row), next = pairs.get(key);
      if (next) this.#become(key, next);
    }
    this.#rows = rows;
    this.#draw(came, new Set(deleted.map((row) => JSON.stringify(row))));
  }

  /** What each row that went has become, where it is plain: the one that most columns, and the first, agree with. */
  #pairs(inserted, deleted) {
    const found = new Map();
    if (inserted.length * deleted.length > COMPARED) return found;
    const left = new Set(inserted), first = this.#columns[0]?.name;
    for (const row of deleted) {
      let best = null, most = 0;
      for (const other of left) {
        const same = this.#columns.filter(({ name }) => value(row[name]) === value(other[name])).length;
        const agree = row[first] === other[first] && (same > most || best === null) && (same > 0 || this.#columns.length === 1);
        if (agree) [best, most] = [other, same];
      }
      // A single column that changes is the same row where there is only one.
      if (!best && inserted.length === 1 && deleted.length === 1 && this.#columns.length === 1) best = inserted[0];
      if (!best) continue;
      left.delete(best);
      found.set(JSON.stringify(row), best);
    }
    return found;
  }

  #become(key, row) {
    const line = this.#shown.get(key), next = JSON.stringify(row);
    if (!line || this.#shown.has(next)) return;
    this.#shown.delete(key);
    this.#shown.set(next, line);
    for (const [i, { name, type }] of this.#columns.entries()) {
      const before = line.cells[i].textContent;
      fill(line.cells[i], name, type, row[name]);
      if (before !== line.cells[i].textContent) replay(line.cells[i]);
    }
  }

  #draw(came = new Set(), went = new Set()) {
    const counts = new Map();
    for (const row of this.#rows) {
      const key = JSON.stringify(row), held = counts.get(key);
      if (held) held.count++;
      else counts.set(key, { row, count: 1 });
    }
    const wanted = this.#inOrder([...counts]).slice(0, this.#limit);
    const keys = new Set(wanted.map(([key]) => key)), body = this.#root.tBodies[0];
    for (const [key, line] of this.#shown) {
      if (keys.has(key)) continue;
      this.#shown.delete(key);
      if (went.has(key)) fade(line);
      else line.remove();
    }
    let next = standing(body.firstElementChild);
    for (const [key, { row, count }] of wanted) {
      let line = this.#shown.get(key);
      if (!line) {
        line = this.#line(row);
        this.#shown.set(key, line);
        if (came.has(key)) line.classList.add("came");
      }
      write(line.lastElementChild, count > 1 ? `\u00d7${number(count)}` : "");
      if (line === next) next = standing(next.nextElementSibling);
      else body.insertBefore(line, next);
    }
  }

  #line(row) {
    const cells = this.#columns.map(({ name, type }) => fill(document.createElement("td"), name, type, row[name]));
    return element("tr", {}, ...cells, element("td", { classes: "times" }));
  }

  #inOrder(rows) {
    const { name, descending } = this.#sorted;
    const names = [...(name ? [name] : []), ...this.#columns.map((column) => column.name)];
    const compare = ([, { row: one }], [, { row: other }]) => {
      for (const [i, column] of names.entries()) {
        const order = compared(one[column], other[column]);
        if (order) return i === 0 && name && descending ? -order : order;
      }
      return 0;
    };
    return rows.sort(compare);
  }

  #sortBy(name) {
    const { name: before, descending } = this.#sorted;
    const isNumber = NUMBERS.test(this.#columns.find((column) => column.name === name).type);
    this.#sorted = { name, descending: before === name ? !descending : isNumber };
    for (const [i, head] of [...this.#root.tHead.rows[0].cells].entries()) {
      const isIt = this.#columns[i]?.name === name;
      head.setAttribute("aria-sort", isIt ? (this.#sorted.descending ? "descending" : "ascending") : "none");
    }
    this.#draw();
  }
}

function fill(cell, name, type, one) {
  const isNumber = NUMBERS.test(type);
  cell.className = [isNumber ? "number" : "", one === null ? "null" : ""].join(" ").trim();
  const text = isNumber && NAMES_OF_NUMBERS.test(name) && one !== null ? String(one) : value(one);
  write(cell, text);
  cell.title = text.length > 30 ? text : "";
  return cell;
}

function replay(cell) {
  cell.classList.remove("came");
  void cell.offsetWidth;
  cell.classList.add("came");
}

function fade(line) {
  line.className = "going";
  line.setAttribute("aria-hidden", "true");
  setTimeout(() => line.remove(), FADES);
}

// The next line that is not on its way out.
function standing(line) {
  while (line?.classList.contains("going")) line = line.nextElementSibling;
  return line ?? null;
}

function compared(one, other) {
  if (one === other) return 0;
  if (one === null || one === undefined) return 1;
  if (other === null || other === undefined) return -1;
  if (typeof one === "number" && typeof other === "number") return one - other;
  return String(one).localeCompare(String(other), "en", { numeric: true });
}
