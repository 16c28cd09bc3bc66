import { about, rowsOf } from "./ask.js";
import { Bars } from "./bars.js";
import { Counter } from "./counter.js";
import { at, showProblem, showState, worst, write, writeTime } from "./dom.js";
import { follow } from "./follow.js";
import { added, number } from "./format.js";
import { Rates } from "./rates.js";

const COUNTER = "wikirecent.counter";
const WINDOW = 120000;
const POINTS = 25;

const counter = new Counter(at("edits"), at("edits-said"), (n) => `${number(n)} edits`);
const rates = new Rates(at("rates"), WINDOW);
const top = new Bars(at("top"), { count: 10, of: "editors" });

const states = {};
const onState = (name) => (told) => {
  states[name] = told;
  const bad = Object.values(states).find(({ state }) => state === "failed");
  showState(at("state"), worst(Object.values(states).map(({ state }) => state)));
  showProblem(at("problem"), bad?.error, bad?.remedy);
};

let hasHistory = false;
follow(
  COUNTER,
  { onState: onState(COUNTER), onTime: (t) => writeTime(at("time"), t) },
  ({ rows, deleted, timestamp }) => {
    if (!rows.length) return;
    counter.show(rows[0].edits);
    if (deleted.length) write(at("latest"), `${added(rows[0].edits - deleted[0].edits)} with the latest change`);
    rates.add(timestamp, rows[0].edits);
    if (!hasHistory) history(timestamp);
    hasHistory = true;
  },
);
follow("wikirecent.top10", { onState: onState("top10") }, ({ rows }) => {
  const order = (one, other) => other.edits - one.edits || (one.user < other.user ? -1 : 1);
  top.show([...rows].sort(order).map(({ user, edits }) => ({ name: user, amount: edits })));
});
setInterval(() => write(at("rate"), rates.now().toFixed(1)), 500);

// How many there were before the page was opened, as far as the history goes.
async function history(until) {
  const times = Array.from({ length: POINTS }, (_, i) => Math.round(until - ((i + 1) * WINDOW) / (POINTS - 1)));
  try {
    const { since } = await about(COUNTER);
    for (const t of [...times.filter((one) => one > since), since]) {
      const { rows } = await rowsOf(COUNTER, { as_of: t });
      if (rows.length) rates.add(t, rows[0].edits);
    }
  } catch {
    // The line begins later.
  }
}
