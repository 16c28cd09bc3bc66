// The page of collections: lists what /collections answers, and shows one of them with its history.
import { drawLag } from "./chart.js";
import { bytes, duration, number, share, time } from "./format.js";

const REFRESH = 15000;
const FIRST = ["bytes", "lag", "rows", "share", "added"];

const state = { roots: [], sort: "name", descending: false, shown: null };
const at = (id) => document.getElementById(id);

function theme() {
  const chosen = localStorage.getItem("theme");
  const dark = chosen === "dark" || (chosen !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
}

async function answer(path) {
  const response = await fetch(path, { credentials: "same-origin" });
  if (response.status === 401) throw new Error("You are not logged in to Airflow, or no longer.");
  if (!response.ok) throw new Error(`${response.status}: ${(await response.json()).detail ?? response.statusText}`);
  return response.json();
}

function problem(text) {
  at("problem").textContent = text;
  at("problem").hidden = !text;
}

function rows() {
  const wanted = at("filter").value.trim().toLowerCase();
  const all = state.roots.flatMap((root) => root.collections.map((one) => ({ ...one, root: root.state_root })));
  for (const one of all) {
    one.share = one.updates ? one.reclaimable.updates / one.updates : 0;
    one.added = (one.change.rows_added ?? 0) + (one.change.rows_removed ?? 0);
  }
  const order = state.descending ? -1 : 1;
  return all
    .filter((one) => !wanted || `${one.name} ${one.kind}`.toLowerCase().includes(wanted))
    .sort((a, b) => order * (a[state.sort] > b[state.sort] ? 1 : a[state.sort] < b[state.sort] ? -1 : 0));
}

function element(tag, text, classes = "") {
  const made = document.createElement(tag);
  made.textContent = text;
  made.className = classes;
  return made;
}

function change(one) {
  const cell = element("td", "", "number");
  if (one.change.strategy === undefined) return cell;
  cell.append(element("span", `+${number(one.change.rows_added)}`, "added"), " ");
  cell.append(element("span", `\u2212${number(one.change.rows_removed)}`, "removed"));
  cell.append(element("span", ` ${one.change.strategy}, ${one.change.seconds.toFixed(1)} s`, "quiet"));
  if (one.fallbacks.length) {
    const badge = element("span", "recomputed", "badge");
    badge.title = one.fallbacks.join("\n");
    cell.append(badge);
  }
  return cell;
}

function row(one) {
  const made = document.createElement("tr");
  const name = element("td", "");
  name.append(element("button", one.name, "name"));
  name.title = one.root;
  made.append(
    name,
    element("td", one.kind),
    element("td", one.since ? time(one.since) : "the beginning"),
    element("td", time(one.at)),
    element("td", duration(one.lag), "number"),
    element("td", one.rows === null ? "?" : number(one.rows), "number"),
    element("td", bytes(one.bytes), "number"),
    element("td", share(one.share), "number"),
    change(one),
    element("td", one.held_back_by, "held"),
  );
  made.setAttribute("aria-selected", String(one.name === state.shown));
  made.addEventListener("click", () => (location.hash = encodeURIComponent(one.name)));
  return made;
}

function list() {
  const found = rows();
  at("collections").tBodies[0].replaceChildren(...found.map(row));
  for (const head of at("collections").tHead.rows[0].cells) {
    const sorted = head.dataset.key === state.sort;
    head.setAttribute("aria-sort", sorted ? (state.descending ? "descending" : "ascending") : "none");
  }
  const stored = found.reduce((sum, one) => sum + one.bytes, 0);
  const held = found.filter((one) => one.held_back_by).length;
  const lags = found.filter((one) => one.kind === "model").map((one) => one.lag);
  const worst = lags.length ? `, models lag by ${duration(Math.max(...lags))} at most` : "";
  at("summary").textContent = `${found.length} with ${bytes(stored)}${worst}${held ? `, ${held} held back` : ""}`;
}

function commit(entry) {
  const made = document.createElement("tr");
  made.append(
    element("td", time(entry.committed)),
    element("td", entry.upper ? time(entry.upper - 1) : ""),
    element("td", entry.since ? time(entry.since) : ""),
    element("td", number(entry.updates), "number"),
    element("td", bytes(entry.bytes), "number"),
    element("td", entry.files > 0 ? `+${entry.files}` : String(entry.files), "number"),
  );
  return made;
}

async function detail() {
  state.shown = decodeURIComponent(location.hash.slice(1));
  const one = rows().find((other) => other.name === state.shown);
  at("detail").hidden = !one;
  if (!one) return;
  at("detail").querySelector("h2").textContent = one.name;
  const inputs = one.inputs.length ? `reads ${one.inputs.join(", ")}; ` : "";
  const window = `keeps ${duration(one.retain)} of history; `;
  const stored = `${number(one.updates)} updates in ${number(one.files)} files`;
  const facts = at("detail").querySelector(".facts");
  facts.textContent = inputs + window + stored;
  facts.title = one.root;
  const query = new URLSearchParams({ state_root: one.root, collection: one.name });
  const entries = await answer(`history?${query}`);
  drawLag(at("lag"), entries, Date.now());
  at("commits").tBodies[0].replaceChildren(...entries.slice(-20).reverse().map(commit));
}

async function refresh() {
  try {
    state.roots = await answer("collections");
    const broken = state.roots.filter((root) => root.error).map((root) => `${root.state_root}: ${root.error}`);
    const none = "Airflow's settings name no state root. Set state_roots in section [differential].";
    problem(state.roots.length ? broken.join("\n") : none);
    await detail();
    list();
  } catch (error) {
    problem(error.message);
  }
}

for (const head of at("collections").tHead.rows[0].cells) {
  head.addEventListener("click", () => {
    const key = head.dataset.key;
    state.descending = state.sort === key ? !state.descending : FIRST.includes(key);
    state.sort = key;
    list();
  });
}
at("filter").addEventListener("input", list);
addEventListener("hashchange", refresh);
addEventListener("storage", theme);
theme();
refresh();
setInterval(refresh, REFRESH);
