// Elements, made of texts: data is never read as HTML.
import { ago, exactTime, time, utc } from "./format.js";

export const at = (id) => document.getElementById(id);

export function element(tag, { text, classes = "", ...attributes } = {}, ...children) {
  const made = document.createElement(tag);
  if (classes) made.className = classes;
  for (const [name, value] of Object.entries(attributes))
    if (value !== undefined && value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  if (text !== undefined) made.textContent = text;
  made.append(...children);
  return made;
}

// Writes only what is other than before, so that selections and screen readers are left alone.
export function write(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

// Shows a time in a <time>, UTC on hover.
export function writeTime(target, ms) {
  target.dateTime = new Date(ms).toISOString();
  target.title = `${exactTime(ms)} here\n${utc(ms)}`;
  write(target, time(ms));
}

// Elements with `data-ago` tell how long ago that was.
export function tick() {
  const now = Date.now();
  for (const one of document.querySelectorAll("[data-ago]")) write(one, ago(Number(one.dataset.ago), now));
}

export const collectionPage = (name) => `collection.html?name=${encodeURIComponent(name)}`;

// What is wrong, and what can be done about it; nothing where nothing is.
export function showProblem(target, error, remedy) {
  target.hidden = !error;
  target.replaceChildren();
  if (error) target.append(element("strong", { text: error }), ...(remedy ? [element("span", { text: remedy })] : []));
}

const STATES = { connecting: "connecting\u2026", live: "live", reconnecting: "reconnecting\u2026", failed: "not available" };

// The quiet mark that tells whether a page is live.
export function showState(target, state) {
  target.dataset.state = state;
  write(target, STATES[state] ?? state);
}

// The worst of several states.
export function worst(states) {
  return ["failed", "reconnecting", "connecting"].find((state) => states.includes(state)) ?? "live";
}
