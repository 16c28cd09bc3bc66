// One collection: its rows as they are now, or as of a time, and what changes.
import { about, rowsOf } from "./ask.js";
import { at, collectionPage, element, showProblem, showState, tick, write, writeTime } from "./dom.js";
import { follow } from "./follow.js";
import { added, bytes, duration, number, removed } from "./format.js";
import { tickLags, writeLag } from "./lag.js";
import { ChangeLog } from "./log.js";
import { Table } from "./table.js";

// Up to so many rows are followed; of more, some are shown, and read again after a change.
const FOLLOWED = 1000;
const SHOWN = 200;
const READ_AGAIN = 1500;
const FACTS = 5000;
const ASKED_AGAIN = 2000;

const query = new URLSearchParams(location.search);
const name = query.get("name") ?? "";
const table = new Table(at("rows").querySelector("table"), FOLLOWED);
const log = new ChangeLog(at("log"), (t) => choose({ asOf: t }));
const chosen = { where: query.get("where") ?? "", asOf: Number(query.get("as_of")) || null };
let facts = null;
let followed = null;
// Which choice an answer belongs to: one that comes late is of no use.
let turn = 0;

document.title = name || "Collection";
if (!name) showProblem(at("problem"), "No collection is named.", "Choose one among all collections.");
write(at("name"), name || "No collection");
at("where").value = chosen.where;

async function lookUp() {
  facts = await about(name);
  showProblem(at("problem"), "");
  at("main").hidden = false;
  table.columns = facts.columns;
  write(at("name"), facts.name);
  at("kind").hidden = false;
  at("kind").dataset.kind = facts.kind;
  write(at("kind"), facts.kind);
  inputs(facts.inputs);
  write(at("rows-held"), facts.rows === null ? "?" : number(facts.rows));
  const { rows_added: came, rows_removed: went, seconds } = facts.change;
  write(at("last-change"), came === undefined ? "" : `${added(came)} ${removed(went)} in ${seconds.toFixed(1)} s`);
  upTo(facts.at);
  writeLag(at("target-lag"), facts.freshness);
  writeTime(at("since"), facts.since);
  write(at("retain"), `${duration(facts.retain)} of history kept`);
  write(at("stored"), bytes(facts.bytes));
  write(at("files"), `${number(facts.files)} ${facts.files === 1 ? "file" : "files"}, ${number(facts.updates)} updates`);
  write(at("followers"), number(facts.followers));
  write(at("held-by"), facts.held_back_by ? `held back by ${facts.held_back_by}` : "");
}

function inputs(names) {
  const target = at("inputs");
  if (target.dataset.told === names.join()) return;
  target.dataset.told = names.join();
  const links = names.flatMap((one, i) => [i ? ", " : " ", element("a", { text: one, href: collectionPage(one) })]);
  target.replaceChildren(...(names.length ? ["Reads", ...links] : ["Comes from outside"]));
}

function upTo(t) {
  facts.at = Math.max(t, facts.at);
  writeTime(at("upper"), facts.at);
  at("lag").dataset.ago = facts.at;
  tick();
  drawMoment();
}

// The slider's place and the time beside it.
function drawMoment() {
  const { asOf } = chosen, span = Math.max(facts.at - facts.since, 1);
  const t = asOf ?? facts.at;
  if (document.activeElement !== at("slider") || asOf === null)
    at("slider").value = asOf === null ? 1000 : Math.round(((t - facts.since) / span) * 1000);
  at("slider").setAttribute("aria-valuetext", asOf === null ? "now" : new Date(t).toLocaleString());
  if (document.activeElement !== at("moment")) at("moment").value = local(t);
  at("live").disabled = asOf === null;
  at("rows").classList.toggle("still", asOf !== null);
}

function local(ms) {
  const moment = new Date(ms);
  return new Date(ms - moment.getTimezoneOffset() * 60000).toISOString().slice(0, 23);
}

function choose(wanted) {
  Object.assign(chosen, wanted);
  const told = new URLSearchParams({ name });
  if (chosen.where) told.set("where", chosen.where);
  if (chosen.asOf !== null) told.set("as_of", chosen.asOf);
  history.replaceState(null, "", `?${told}`);
  if (facts) drawMoment();
  load();
}

async function load() {
  const before = turn, mine = ++turn, wanted = { ...chosen };
  const isMine = () => mine === turn;
  try {
    if (!facts) await lookUp();
    if (!isMine()) return;
    const count = await counted(wanted);
    if (!isMine()) return;
    whereProblem("");
    followed?.close();
    followed = null;
    if (wanted.asOf !== null) await readAsOf(wanted, count, isMine);
    else if (count <= FOLLOWED) followAll(wanted, isMine);
    else await followSome(wanted, isMine);
  } catch (error) {
    if (!isMine()) return;
    if (!error.isAway && facts && wanted.where) {
      // What was shown before goes on.
      if (followed) turn = before;
      else showState(at("state"), "failed");
      whereProblem(error.message, error.remedy);
      return;
    }
    showState(at("state"), error.isAway ? "reconnecting" : "failed");
    if (!error.isAway) showProblem(at("problem"), error.message, error.remedy);
    setTimeout(() => isMine() && load(), ASKED_AGAIN);
  }
}

function whereProblem(error, remedy) {
  showProblem(at("where-problem"), error, remedy);
  at("where").setAttribute("aria-invalid", String(Boolean(error)));
}

async function counted({ where, asOf }) {
  const { rows } = await rowsOf(name, { select: "count(*) AS n", where, as_of: asOf });
  return rows[0].n;
}

function tell(shown, of) {
  const isAll = shown >= of;
  const some = isAll ? number(of) : `${number(shown)} of ${number(of)}`;
  write(at("count"), `${some} ${of === 1 ? "row" : "rows"}${isAll ? "" : ": narrow them with WHERE"}`);
}

async function readAsOf({ where, asOf }, count, isMine) {
  const { rows } = await rowsOf(name, { where, as_of: asOf, limit: FOLLOWED });
  if (!isMine()) return;
  table.show(rows);
  tell(rows.length, count);
  showState(at("state"), "still");
  write(at("state"), "as of then");
}

function following(isMine, options, onChange) {
  log.clear();
  followed = follow(name, { ...options, onState, onTime: upTo }, (change) => {
    if (isMine()) onChange(change);
    lookUpSoon();
  });
}

function onState({ state, error, remedy }) {
  if (state === "closed") return;
  showState(at("state"), state);
  showProblem(at("problem"), error, remedy);
}

function followAll({ where }, isMine) {
  let hasBegun = false;
  following(isMine, { where }, (change) => {
    const { rows, inserted, deleted } = change;
    if (hasBegun) table.follow(change);
    else table.show(rows);
    if (hasBegun && inserted.length + deleted.length) log.add(change);
    hasBegun = true;
    tell(Math.min(rows.length, FOLLOWED), rows.length);
  });
}

async function followSome({ where }, isMine) {
  let timer = 0;
  const read = async () => {
    timer = 0;
    const [count, { rows }] = await Promise.all([counted({ where }), rowsOf(name, { where, limit: SHOWN })]);
    if (!isMine()) return;
    table.show(rows);
    tell(rows.length, count);
  };
  following(isMine, { where, snapshot: false }, (change) => {
    log.add(change);
    timer ||= setTimeout(() => read().catch(() => {}), READ_AGAIN);
  });
  await read();
}

let waiting = 0;
function lookUpSoon() {
  waiting ||= setTimeout(() => {
    waiting = 0;
    lookUp().catch(() => {});
  }, 300);
}

at("controls").addEventListener("submit", (event) => {
  event.preventDefault();
  choose({ where: at("where").value.trim() });
});
let sliding = 0;
at("slider").addEventListener("input", () => {
  if (!facts) return;
  const part = Number(at("slider").value) / 1000;
  chosen.asOf = part === 1 ? null : Math.round(facts.since + (facts.at - facts.since) * part);
  drawMoment();
  clearTimeout(sliding);
  sliding = setTimeout(() => choose({}), 120);
});
at("moment").addEventListener("change", () => {
  const t = new Date(at("moment").value).getTime();
  if (facts && Number.isFinite(t)) choose({ asOf: Math.min(Math.max(t, facts.since), facts.at) });
});
at("live").addEventListener("click", () => choose({ asOf: null }));
setInterval(tick, 1000);
setInterval(tickLags, 1000);
setInterval(() => facts && !document.hidden && lookUp().catch(() => {}), FACTS);
if (name) load();
else showState(at("state"), "failed");
