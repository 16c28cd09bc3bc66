// All collections, live: what /frontiers tells, grouped by schema.
import { at, collectionPage, element, showProblem, showState, tick, write, writeTime } from "./dom.js";
import { added, bytes, duration, number, removed } from "./format.js";
import { frontiers } from "./frontiers.js";
import { tickLags, writeLag } from "./lag.js";

const HEADS = ["Collection", "Rows", "Last change", "Up to", "History", "Stored", "Followers"];
const NUMBERS = ["Rows", "Last change", "Stored", "Followers"];

const known = new Map();
const shown = new Map();
const bodies = new Map();

const schemaOf = (name) => (name.includes(".") ? name.slice(0, name.indexOf(".")) : "");
const lastOf = (name) => name.slice(name.indexOf(".") + 1);

function isWanted(one) {
  const words = at("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const text = [one.name, one.kind, ...(one.inputs ?? [])].join(" ").toLowerCase();
  return words.every((word) => text.includes(word));
}

function body(schema) {
  const found = bodies.get(schema);
  if (found) return found;
  const heads = HEADS.map((text) => element("th", { text, scope: "col", role: "columnheader", classes: NUMBERS.includes(text) ? "number" : "" }));
  const head = element("thead", { role: "rowgroup" }, element("tr", { role: "row" }, ...heads));
  const made = element("tbody", { role: "rowgroup" });
  const id = `schema-${bodies.size}`;
  const section = element(
    "section",
    { classes: "group", "aria-labelledby": id, "data-schema": schema },
    element("h2", { id, text: schema || "Without a schema" }),
    element("table", { role: "table" }, head, made),
  );
  const after = [...at("groups").children].find((other) => other.dataset.schema > schema);
  at("groups").insertBefore(section, after ?? null);
  bodies.set(schema, { section, rows: made });
  return bodies.get(schema);
}

function row(name) {
  const link = element("a", { text: lastOf(name), href: collectionPage(name), classes: "name", title: name });
  const badge = element("span", { classes: "badge" });
  const inputs = element("small"), held = element("small", { classes: "held", hidden: true });
  const first = element("td", { role: "cell" }, link, badge, inputs, held);
  const cells = HEADS.slice(1).map((text) => {
    const main = element(text === "Up to" ? "time" : "span"), small = element("small");
    const classes = NUMBERS.includes(text) ? "number" : "";
    return { main, small, cell: element("td", { role: "cell", classes, "data-label": text }, main, small) };
  });
  const lag = element("small", { classes: "lag", hidden: true });
  cells[HEADS.indexOf("Up to") - 1].cell.append(lag);
  const told = element("td", { role: "cell", classes: "told", colspan: HEADS.length - 1, hidden: true });
  const made = element("tr", { role: "row" }, first, ...cells.map(({ cell }) => cell), told);
  return { made, badge, inputs, held, cells, lag, told };
}

function fill(parts, one) {
  const isDamaged = one.error !== undefined;
  write(parts.badge, isDamaged ? "damaged" : one.kind);
  parts.badge.dataset.kind = isDamaged ? "damaged" : one.kind;
  parts.told.hidden = !isDamaged;
  for (const { cell } of parts.cells) cell.hidden = isDamaged;
  write(parts.inputs, one.inputs?.length ? `reads ${one.inputs.join(", ")}` : "");
  parts.held.hidden = !one.held_back_by;
  parts.inputs.hidden = !one.inputs?.length && !parts.held.hidden;
  write(parts.held, one.held_back_by ? `held back by ${one.held_back_by}` : "");
  if (isDamaged) {
    parts.told.replaceChildren(element("span", { text: one.error }), element("small", { text: one.remedy }));
    return;
  }
  const [rows, change, upTo, history, stored, followers] = parts.cells;
  write(rows.main, one.rows === null ? "?" : number(one.rows));
  changes(change, one.change);
  writeTime(upTo.main, one.at);
  upTo.small.dataset.ago = one.at;
  writeLag(parts.lag, one.freshness);
  write(history.main, duration(one.at - one.since));
  history.cell.title = `It can be read as of any time since ${new Date(one.since).toLocaleString()}; ${duration(one.retain)} are kept.`;
  write(history.small, `of ${duration(one.retain)}`);
  write(stored.main, bytes(one.bytes));
  write(stored.small, `${number(one.files)} ${one.files === 1 ? "file" : "files"}`);
  write(followers.main, one.followers ? number(one.followers) : "\u2013");
}

function changes({ main, small }, change) {
  if (change.strategy === undefined) return;
  main.replaceChildren(
    element("span", { classes: "added", text: added(change.rows_added) }),
    " ",
    element("span", { classes: "removed", text: removed(change.rows_removed) }),
  );
  write(small, `${change.strategy}, ${change.seconds.toFixed(1)} s`);
}

function draw(names) {
  for (const name of names) {
    const one = known.get(name);
    if (!one) {
      shown.get(name)?.made.remove();
      shown.delete(name);
      continue;
    }
    if (!shown.has(name)) place(name);
    fill(shown.get(name), one);
  }
  choose();
  tick();
}

// Sources first, as they are what models are made of; then by name.
function place(name) {
  const parts = row(name), { rows } = body(schemaOf(name));
  const rank = (other) => `${known.get(other)?.kind === "source" ? 0 : 1}${other}`;
  parts.made.dataset.rank = rank(name);
  const after = [...rows.children].find((other) => other.dataset.rank > parts.made.dataset.rank);
  rows.insertBefore(parts.made, after ?? null);
  shown.set(name, parts);
}

function choose() {
  let count = 0, size = 0;
  for (const [name, { made }] of shown) {
    made.hidden = !isWanted(known.get(name));
    if (made.hidden) continue;
    count++;
    size += known.get(name).bytes ?? 0;
  }
  for (const { section, rows } of bodies.values()) section.hidden = [...rows.children].every((one) => one.hidden);
  const damaged = [...known.values()].filter((one) => one.error !== undefined).length;
  write(at("summary"), `${number(count)} with ${bytes(size)}${damaged ? `, ${number(damaged)} damaged` : ""}`);
  at("empty").hidden = count > 0;
  write(at("empty"), known.size ? "No collection is like that." : "There are no collections yet. They appear here once `dbt run` has stored some.");
}

frontiers({
  onState: (state, error, remedy) => {
    showState(at("state"), state);
    showProblem(at("problem"), error, remedy);
  },
  onChange: (collections, gone, areAll) => {
    const told = new Set(collections.map((one) => one.name));
    const left = areAll ? [...known.keys()].filter((name) => !told.has(name)) : gone;
    for (const name of left) known.delete(name);
    for (const one of collections) known.set(one.name, one);
    draw([...left, ...told]);
  },
});
at("filter").addEventListener("input", choose);
setInterval(tick, 1000);
setInterval(tickLags, 1000);
