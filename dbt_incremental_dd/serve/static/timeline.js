// Runs over time: a lane for each model, a bar for each run, as SVG.
import { exactTime, time } from "./format.js";

const LANE = 26;
const NAMES = 190;
const AXIS = 22;
const NARROWEST = 4;
const TICKS = 5;
const BETWEEN = 130;

export const kindOf = ({ strategy }) => (strategy === "failed" || strategy === "delta" ? strategy : "built");

function shape(tag, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

const short = (name) => (name.length > 26 ? `\u2026${name.slice(-25)}` : name);

/** `onChoose` is called with the run that someone chooses; the arrow keys go from one to the next. */
export function drawTimeline(root, runs, chosen, onChoose) {
  const models = [...new Set(runs.map((run) => run.model))].sort();
  const width = Math.max(root.clientWidth, 320), names = Math.min(NAMES, width / 3), height = models.length * LANE + AXIS;
  const first = Math.min(...runs.map((run) => run.began)), last = Math.max(...runs.map((run) => run.ended));
  const x = (ms) => names + ((ms - first) / Math.max(last - first, 1)) * (width - names - NARROWEST - 4);
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "group", "aria-label": "Runs by model over time" });
  for (const [lane, model] of models.entries()) {
    const y = lane * LANE + LANE / 2;
    const text = shape("text", { x: 0, y: y + 4 }, short(model));
    text.append(shape("title", {}, model));
    svg.append(shape("line", { class: "lane", x1: names, x2: width, y1: y, y2: y }), text);
  }
  const ticks = Math.max(2, Math.min(TICKS, Math.floor((width - names) / BETWEEN)));
  for (let tick = 0; tick < ticks; tick++) {
    const share = tick / (ticks - 1), at = first + (last - first) * share;
    const anchor = share === 0 ? "start" : share === 1 ? "end" : "middle";
    svg.append(shape("text", { x: names + (width - names) * share, y: height - 4, "text-anchor": anchor }, time(Math.round(at))));
  }
  const bars = runs.map((run) => {
    const told = `${run.model}, ${run.strategy}, ${run.seconds.toFixed(3)} s, ${exactTime(run.began)}`;
    const bar = shape("rect", {
      x: x(run.began),
      y: models.indexOf(run.model) * LANE + 5,
      width: Math.max(x(run.ended) - x(run.began), NARROWEST),
      height: LANE - 10,
      rx: 2,
      role: "button",
      tabindex: run === chosen ? 0 : -1,
      "aria-label": told,
      "aria-pressed": run === chosen,
      "data-kind": kindOf(run),
    });
    bar.append(shape("title", {}, told));
    bar.addEventListener("click", () => onChoose(run));
    return bar;
  });
  svg.append(...bars);
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key], next = runs[runs.indexOf(chosen) + step];
    if (!step || !next) return;
    event.preventDefault();
    onChoose(next);
  });
  const hadFocus = root.contains(document.activeElement);
  root.replaceChildren(svg);
  if (hadFocus) root.querySelector('[tabindex="0"]')?.focus();
}
