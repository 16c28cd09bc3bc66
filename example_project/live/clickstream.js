import { sql } from "./ask.js";
import { Bars } from "./bars.js";
import { at, element, showProblem, showState, worst, write, writeTime } from "./dom.js";
import { follow, literal } from "./follow.js";
import { number } from "./format.js";
import { Picker } from "./picker.js";

const DEVICES = 4;
const PAGES = 4;
const BUSIEST = `SELECT user_id, sum(visits) AS visits FROM clickstream.visits_by_user_url_device
  GROUP BY user_id ORDER BY visits DESC, user_id LIMIT 20`;

const chosen = new URLSearchParams(location.hash.slice(1));
const top = new Bars(at("top"), { count: 10, of: "pages" });
const urlDevices = new Bars(at("url-devices"), { count: DEVICES, of: "devices" });
const userDevices = new Bars(at("user-devices"), { count: DEVICES, of: "devices" });
const picker = new Picker(at("search"), at("list"), chooseUrl);

const states = {};
const following = {};
let urls = new Map();

// Each part of the page follows one thing at a time.
function show(part, name, options, onChange) {
  following[part]?.close();
  const onState = (told) => {
    if (told.state === "closed") return;
    states[part] = told;
    showState(at("state"), worst(Object.values(states).map(({ state }) => state)));
    const bad = Object.values(states).find(({ state }) => state === "failed");
    showProblem(at("problem"), bad?.error, bad?.remedy);
  };
  following[part] = follow(name, { ...options, onState }, onChange);
}

function remember(name, value) {
  chosen.set(name, value);
  history.replaceState(null, "", `#${chosen}`);
}

const sum = (rows, field) => rows.reduce((all, row) => all + row[field], 0);
const seconds = (ms) => (ms / 1000).toFixed(1);

function grouped(rows, field) {
  const found = new Map();
  for (const row of rows) found.set(row[field], (found.get(row[field]) ?? 0) + row.visits);
  const named = [...found].map(([name, amount]) => ({ name: name ?? "unknown", amount }));
  return named.sort((one, other) => other.amount - one.amount || (one.name < other.name ? -1 : 1));
}

function chooseUrl(url) {
  remember("url", url);
  picker.choose(url);
  write(at("url"), url);
  at("url").title = url;
  showUrl();
  const where = `url = ${literal(url)}`;
  show("url", "clickstream.visits_by_url_device", { where }, ({ rows }) => urlDevices.show(grouped(rows, "device")));
}

function showUrl() {
  const row = urls.get(chosen.get("url"));
  write(at("url-visits"), row ? number(row.visits) : "0");
  write(at("url-ms"), row ? seconds(row.ms / row.visits) : "\u2013");
}

function chooseUser(user) {
  remember("user", user);
  at("user").value = user;
  write(at("user-title"), `Visitor ${user}`);
  show("user", "clickstream.visits_by_user_url_device", { where: `user_id = ${literal(user)}` }, ({ rows }) => {
    write(at("user-visits"), number(sum(rows, "visits")));
    write(at("user-longest"), rows.length ? seconds(Math.max(...rows.map((row) => row.longest))) : "\u2013");
    userDevices.show(grouped(rows, "device"));
    const lines = grouped(rows, "url").slice(0, PAGES).map(({ name, amount }) =>
      element("tr", {}, element("td", { text: name, title: name }), element("td", { classes: "number", text: number(amount) })),
    );
    at("user-urls").replaceChildren(...lines);
  });
}

async function offerUsers() {
  try {
    const { rows } = await sql(BUSIEST);
    const offered = rows.map((row) => element("option", { value: row.user_id, text: `${row.visits} visits` }));
    at("users").replaceChildren(...offered);
    if (!chosen.has("user") && rows.length) chooseUser(rows[0].user_id);
  } catch {
    // Whoever comes knows a number, or waits until there is one.
    setTimeout(offerUsers, 5000);
  }
}

const onTime = (t) => writeTime(at("time"), t);
show("urls", "clickstream.visits_by_url", { onTime }, ({ rows }) => {
  urls = new Map(rows.map((row) => [row.url, row]));
  const sorted = grouped(rows, "url");
  top.show(sorted);
  picker.offer(sorted);
  write(at("pages"), number(rows.length));
  if (!chosen.has("url") && sorted.length) chooseUrl(sorted[0].name);
  showUrl();
});
at("choose-user").addEventListener("submit", (event) => {
  event.preventDefault();
  const user = at("user").value.trim();
  if (/^\d+$/.test(user)) chooseUser(Number(user));
});
if (chosen.has("url")) chooseUrl(chosen.get("url"));
if (/^\d+$/.test(chosen.get("user") ?? "")) chooseUser(Number(chosen.get("user")));
else chosen.delete("user");
offerUsers();
