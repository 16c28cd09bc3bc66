// Runs of models as dd_runs and dd_run_operators have them: when, by which operators, and what waits for what.
import { about, ask, sql } from "./ask.js";
import { at, element, showProblem, showState, write } from "./dom.js";
import { drawOperators } from "./flame.js";
import { bytes, duration, exactTime, number } from "./format.js";
import { drawTimeline, kindOf } from "./timeline.js";
import { drawWaits } from "./waits.js";

const MOST = 1000;
const ASKED_AGAIN = 2000;
const PHASES = ["inputs", "plan", "compute", "write", "commit", "relations", "table", "compaction"];

const query = new URLSearchParams(location.search);
const chosen = { model: query.get("model"), began: Number(query.get("began")) || null };
let runs = [];
let collections = new Map();
let upper = null;
// Which run an answer is of: one that comes late is of no use.
let shown = null;

const many = (n, what) => `${number(n)} ${what}${n === 1 ? "" : "s"}`;
const isChosen = (run) => run.model === chosen.model && run.began === chosen.began;
const text = (value) => `'${value.replaceAll("'", "''")}'`;

async function look() {
  if (document.hidden) return;
  try {
    const facts = await about("dd_runs"), isNew = facts.upper !== upper;
    if (isNew) {
      const found = await sql(`SELECT * FROM dd_runs ORDER BY began DESC, model LIMIT ${MOST}`);
      runs = found.rows.reverse();
      upper = facts.upper;
    }
    collections = new Map((await ask("collections")).map((one) => [one.name, one]));
    showState(at("state"), "live");
    showProblem(at("problem"), "");
    if (isNew) draw();
    drawWaits(at("waits"), collections, new Map(runs.map((run) => [run.model, run])));
  } catch (error) {
    if (error.isAway) showState(at("state"), "reconnecting");
    else if (!runs.length && error.message.includes("no collection")) none();
    else showProblem(at("problem"), error.message, error.remedy);
  }
}

function none() {
  showState(at("state"), "live");
  at("empty").hidden = false;
  write(at("empty"), "No run is noted yet. A run that changes something is noted, unless the profile says `keep_runs: false`.");
}

function wanted() {
  const words = at("filter").value.toLowerCase().split(/\s+/).filter(Boolean), span = Number(at("span").value);
  const found = runs.filter((run) => words.every((word) => run.model.toLowerCase().includes(word)));
  if (!span) return found;
  if (span < 1000) return found.slice(-span);
  return found.filter((run) => run.ended >= Date.now() - span);
}

function draw() {
  const found = wanted(), failed = found.filter((run) => run.strategy === "failed").length;
  const models = new Set(found.map((run) => run.model)).size;
  at("main").hidden = !runs.length;
  at("empty").hidden = found.length > 0;
  write(at("empty"), "No run is like that.");
  write(at("summary"), `${many(found.length, "run")} of ${many(models, "model")}${failed ? `, ${number(failed)} failed` : ""}`);
  const one = found.find(isChosen) ?? found.at(-1);
  if (found.length) drawTimeline(at("timeline"), found, one, choose);
  else at("timeline").replaceChildren();
  showRun(one);
}

function choose(run) {
  Object.assign(chosen, { model: run.model, began: run.began });
  history.replaceState(null, "", `?${new URLSearchParams({ model: run.model, began: run.began })}`);
  draw();
}

async function showRun(run) {
  at("run").hidden = !run;
  if (!run || run === shown) return;
  shown = run;
  write(at("run-head"), `${run.model}, ${run.strategy}, ${exactTime(run.began)}`);
  write(at("why"), run.error ?? [run.why, run.fallbacks].filter(Boolean).join("; "));
  facts(run);
  const phases = PHASES.map((name) => [name, run[`${name}_seconds`]]).filter(([, seconds]) => seconds);
  const whole = phases.reduce((sum, [, seconds]) => sum + seconds, 0);
  at("phases").replaceChildren(...phases.map(([name, seconds]) => {
    const made = element("span", { text: `${name} ${duration(seconds * 1000)}`, title: `${name}: ${seconds.toFixed(3)} s` });
    made.style.flexGrow = String((100 * seconds) / whole);
    made.style.flexBasis = "0";
    return made;
  }));
  const key = `model = ${text(run.model)} AND invocation = ${text(run.invocation)} AND began = ${run.began}`;
  try {
    const { rows } = await sql(`SELECT * FROM dd_run_operators WHERE ${key} ORDER BY number`);
    if (run === shown) drawOperators(at("flame"), at("operators"), rows);
  } catch (error) {
    if (run === shown) showProblem(at("problem"), error.message, error.remedy);
  }
}

function facts(run) {
  const told = [["Took", `${run.seconds.toFixed(3)} s`, `${many(run.unchanged, "other model")} unchanged`]];
  if (kindOf(run) !== "failed") {
    const held = run.held_back_by ? `, held back by ${run.held_back_by}` : "";
    told.push(
      ["Behind the clock", duration(run.lag), `${duration(run.input_lag)} behind its inputs${held}`],
      ["Updates", `${number(run.updates_in)} in`, `${number(run.updates_out)} out`],
      ["Read", bytes(run.bytes_read), `${number(run.rows_read)} rows, ${number(run.rows_found)} of them sought`],
      ["Written", bytes(run.bytes_written), `${number(run.rows_written)} updates, states included`],
    );
  }
  const entries = told.map(([name, main, more]) =>
    element("div", {}, element("dt", { text: name }), element("dd", {}, element("span", { text: main }), element("small", { text: more }))),
  );
  at("run-facts").replaceChildren(...entries);
}

at("filter").addEventListener("input", draw);
at("span").addEventListener("change", draw);
addEventListener("resize", () => runs.length && draw());
document.addEventListener("visibilitychange", look);
look();
setInterval(look, ASKED_AGAIN);
