// The start page: a number of each page, live.
import { at, showState, write } from "./dom.js";
import { follow } from "./follow.js";
import { number } from "./format.js";
import { frontiers } from "./frontiers.js";

const known = new Map();

frontiers({
  onState: (state) => showState(at("state"), state),
  onChange: (collections, gone, areAll) => {
    if (areAll) known.clear();
    for (const name of gone) known.delete(name);
    for (const one of collections) known.set(one.name, one);
    const urls = known.get("clickstream.visits_by_url")?.rows;
    write(at("urls"), urls === undefined || urls === null ? "\u2013" : number(urls));
    write(at("collections"), number(known.size));
  },
});
follow("wikirecent.counter", ({ rows }) => write(at("edits"), rows.length ? number(rows[0].edits) : "\u2013"));
