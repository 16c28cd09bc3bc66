// A run's operators: a flame graph, and a table of the same.
import { element } from "./dom.js";
import { bytes, number } from "./format.js";

const ROW = 26;
const HEADS = ["Operator", "Seconds", "Own", "Calls", "Rows in", "Rows out", "Rows read", "Bytes read"];

const seconds = (one) => one.toFixed(3);
const count = (one) => (one === null ? "?" : number(one));

// Below each operator those that it reads first; each as wide as its own seconds and theirs together.
function laidOut(operators) {
  const boxes = new Map(operators.map((one) => [one.number, { one, below: [], total: one.own_seconds }]));
  for (const one of operators) boxes.get(one.parent)?.below.push(boxes.get(one.number));
  // Those that are read come behind those that read them.
  for (const { number: own, parent } of [...operators].reverse())
    if (boxes.has(parent)) boxes.get(parent).total += boxes.get(own).total;
  const place = (box, depth, left) => {
    Object.assign(box, { depth, left });
    let at = left;
    for (const other of box.below) {
      place(other, depth + 1, at);
      at += other.total;
    }
  };
  const roots = [...boxes.values()].filter(({ one }) => one.parent === null);
  for (const root of roots) place(root, 0, 0);
  return [...boxes.values()];
}

/** Draws both; a box that is chosen marks its line. */
export function drawOperators(flame, table, operators) {
  const boxes = laidOut(operators), whole = Math.max(...boxes.map(({ total }) => total), 1e-9);
  const most = Math.max(...operators.map((one) => one.own_seconds), 1e-9);
  flame.style.height = `${(Math.max(-1, ...boxes.map(({ depth }) => depth)) + 1) * ROW}px`;
  const lines = new Map();
  const frames = boxes.map(({ one, depth, left, total }) => {
    const told = `${one.detail ?? one.operator}\n${seconds(one.seconds)} s, ${seconds(one.own_seconds)} s of it its own`;
    const frame = element("button", { type: "button", text: one.detail ?? one.operator, title: told, "aria-pressed": "false" });
    frame.style.left = `${(100 * left) / whole}%`;
    frame.style.width = `${(100 * total) / whole}%`;
    frame.style.top = `${depth * ROW}px`;
    frame.style.setProperty("--heat", `${Math.round((60 * one.own_seconds) / most)}%`);
    frame.addEventListener("click", () => {
      for (const other of frames) other.setAttribute("aria-pressed", String(other === frame));
      for (const [key, line] of lines) line.setAttribute("aria-selected", String(key === one.number));
    });
    return frame;
  });
  flame.replaceChildren(...frames);
  const head = element("tr", {}, ...HEADS.map((text, i) => element("th", { text, scope: "col", classes: i ? "number" : "" })));
  for (const { one, depth } of boxes) {
    const first = element("td", { text: one.detail ?? one.operator });
    first.style.paddingLeft = `${depth}rem`;
    const others = [seconds(one.seconds), seconds(one.own_seconds), ...[one.calls, one.rows_in, one.rows_out, one.rows_read].map(count), bytes(one.bytes_read)];
    lines.set(one.number, element("tr", {}, first, ...others.map((text) => element("td", { text, classes: "number" }))));
  }
  table.replaceChildren(element("thead", {}, head), element("tbody", {}, ...lines.values()));
}
