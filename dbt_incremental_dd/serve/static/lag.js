// How far a model is behind its sources, and whether that is what its target lag promises; told anew as time passes.
import { write } from "./dom.js";
import { duration, exactTime, time } from "./format.js";

const told = new Map();

// `freshness` is null for a collection that has no target lag.
export function writeLag(target, freshness) {
  target.hidden = !freshness;
  if (freshness) told.set(target, freshness);
  else told.delete(target);
  draw(target, freshness, Date.now());
}

export function tickLags() {
  const now = Date.now();
  for (const [target, freshness] of told) {
    if (target.isConnected) draw(target, freshness, now);
    else told.delete(target);
  }
}

function draw(target, freshness, now) {
  if (!freshness) return write(target, "");
  const { target_lag: promised, behind_since: behind, kept_since: kept } = freshness;
  const lag = behind === null ? 0 : Math.max(0, now - behind);
  const present = `lag ${lag < 1000 ? "0 s" : duration(lag)}`;
  const isPromise = typeof promised === "number", isMissed = isPromise && lag > promised;
  target.classList.toggle("missed", isMissed);
  target.title = isMissed ? `missed since ${exactTime(behind + promised)}` : kept === null ? "" : `kept since ${exactTime(kept)}`;
  if (!isPromise) return write(target, `${present}, ${promised}`);
  write(target, `${present} of ${duration(promised)}${isMissed ? `, missed since ${time(behind + promised)}` : ""}`);
}
