// Lag over time: it grows with the clock, and falls when a commit moves the frontier.
import { duration, time } from "./format.js";

const SVG = "http://www.w3.org/2000/svg";
const LEFT = 64, RIGHT = 12, TOP = 10, BOTTOM = 24;

// Points (clock, lag): before and after each commit that moved the frontier, and now.
export function lagPoints(entries, now) {
  const points = [];
  let last = null;
  for (const { committed, upper } of entries) {
    if (!upper) continue;
    if (last !== null) points.push([committed, committed - last]);
    last = upper - 1;
    points.push([committed, committed - last]);
  }
  if (last !== null) points.push([now, now - last]);
  return points;
}

function shape(tag, attributes, text = "") {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.textContent = text;
  return made;
}

function spread(values) {
  const low = Math.min(...values), high = Math.max(...values);
  return high > low ? [low, high] : [low - 500, high + 500];
}

export function drawLag(svg, entries, now) {
  const width = svg.clientWidth || 800, height = svg.clientHeight || 220;
  const points = lagPoints(entries, now);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.replaceChildren();
  if (!points.length) return;
  const [first, last] = spread(points.map(([clock]) => clock));
  const [low, high] = spread([...points.map(([, lag]) => lag), 0]);
  const x = (clock) => LEFT + ((clock - first) / (last - first)) * (width - LEFT - RIGHT);
  const y = (lag) => height - BOTTOM - ((lag - low) / (high - low)) * (height - TOP - BOTTOM);
  for (let step = 0; step <= 4; step++) {
    const lag = low + ((high - low) * step) / 4;
    svg.append(shape("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(lag), y2: y(lag) }));
    svg.append(shape("text", { x: LEFT - 6, y: y(lag) + 4, "text-anchor": "end" }, duration(lag)));
  }
  svg.append(shape("text", { x: LEFT, y: height - 6 }, time(first)));
  svg.append(shape("text", { x: width - RIGHT, y: height - 6, "text-anchor": "end" }, time(last)));
  const line = points.map(([clock, lag]) => `${x(clock).toFixed(1)},${y(lag).toFixed(1)}`).join(" L");
  const ground = y(Math.max(low, 0)).toFixed(1);
  svg.append(shape("path", { class: "area", d: `M${x(points[0][0])},${ground} L${line} L${x(now)},${ground} Z` }));
  svg.append(shape("path", { class: "line", d: `M${line}` }));
}
