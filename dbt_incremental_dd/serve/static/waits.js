// What holds what back: each model, how far it is behind, and the input at the end of the chain that it waits for.
import { collectionPage, element, writeTime } from "./dom.js";
import { duration } from "./format.js";

const HEADS = ["Model", "Shows", "Behind the clock", "Waits for", "Last run"];

// From input to input, always the one that is furthest behind.
function chain(known, name) {
  const found = [];
  for (let one = known.get(name); one && !found.includes(one.name); ) {
    found.push(one.name);
    const inputs = (one.inputs ?? []).map((input) => known.get(input)).filter((input) => input?.at !== undefined);
    const slowest = inputs.reduce((least, input) => (least && least.at <= input.at ? least : input), null);
    // Only an input that is no further than the model itself keeps it where it is.
    one = slowest && slowest.at <= one.at ? slowest : null;
  }
  return found.slice(1);
}

function reason(run) {
  if (!run) return [element("span", { text: "\u2013" })];
  const isFailed = run.strategy === "failed";
  const said = isFailed ? run.error : [run.why, run.held_back_by && `held back by ${run.held_back_by}`, run.fallbacks].filter(Boolean).join("; ");
  const first = element("span", { text: `${run.strategy}, ${run.seconds.toFixed(2)} s`, classes: isFailed ? "failed" : "" });
  return [first, ...(said ? [element("small", { text: said })] : [])];
}

/** `known`: all collections by name; `last`: the latest run of each model. */
export function drawWaits(table, known, last) {
  const now = Date.now(), models = [...known.values()].filter((one) => one.kind === "model" && one.at !== undefined);
  const heads = element("tr", {}, ...HEADS.map((text) => element("th", { text, scope: "col" })));
  const rows = models.sort((one, other) => one.at - other.at || one.name.localeCompare(other.name)).map((one) => {
    const upTo = element("time"), waits = chain(known, one.name);
    writeTime(upTo, one.at);
    const links = waits.flatMap((name, i) => [i ? " \u2190 " : "", element("a", { text: name, href: collectionPage(name) })]);
    const cause = known.get(waits.at(-1));
    const told = cause ? [element("small", { text: `which is complete up to ${duration(now - cause.at)} ago` })] : [];
    const isLate = now - one.at > 60000;
    return element(
      "tr",
      { "data-model": one.name },
      element("td", {}, element("a", { text: one.name, href: collectionPage(one.name) })),
      element("td", {}, upTo),
      element("td", {}, element("span", { text: duration(now - one.at), classes: isLate ? "late" : "" })),
      element("td", {}, ...(links.length ? links : ["its next run"]), ...told),
      element("td", {}, ...reason(last.get(one.name))),
    );
  });
  table.replaceChildren(element("thead", {}, heads), element("tbody", {}, ...rows));
}
