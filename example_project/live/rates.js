// How fast a number grows: from its values at times, as a line over the latest of them.
import { chart } from "./chart.js";

const HEIGHT = 88;
const STEP = 250;
const RECENT = 5000;
const GRID = 2000;
const STALE = 60000;

const SPEC = {
  height: HEIGHT,
  params: [
    { name: "begin", value: 0 },
    { name: "end", value: 1 },
  ],
  data: { name: "rates", values: [] },
  encoding: {
    x: { field: "t", type: "quantitative", axis: null, scale: { domain: [{ expr: "begin" }, { expr: "end" }], nice: false } },
    y: { field: "rate", type: "quantitative", axis: null, scale: { domainMin: 0, nice: false, range: [HEIGHT, 3] } },
  },
  layer: [
    { name: "area", mark: { type: "area", interpolate: "monotone", opacity: 0.12, clip: true } },
    { name: "line", mark: { type: "line", interpolate: "monotone", strokeWidth: 1.75, clip: true } },
  ],
};

export class Rates {
  #window;
  #view;
  #points = [];

  constructor(target, window) {
    this.#window = window;
    target.style.setProperty("--height", `${HEIGHT}px`);
    this.#view = chart(target, SPEC);
    setInterval(() => document.hidden || this.#draw(), STEP);
  }

  /** The number was `n` at `t` (ms); in any order. */
  add(t, n) {
    this.#points.push({ t, n });
    this.#points.sort((one, other) => one.t - other.t);
    const begin = Date.now() - this.#window * 1.5;
    while (this.#points.length > 2 && this.#points[1].t < begin) this.#points.shift();
  }

  /** By how much a second it has grown lately. */
  now() {
    const { t, rate } = this.#rates().at(-1) ?? {};
    return rate === undefined || Date.now() - t > STALE ? 0 : rate;
  }

  /** At even times and the last one, each over what is recent then. */
  #rates() {
    const first = this.#points[0]?.t, last = this.#points.at(-1)?.t, found = [];
    const rate = (t) => Math.max(this.#at(t) - this.#at(t - RECENT), 0) / (RECENT / 1000);
    for (let t = Math.ceil((first + RECENT) / GRID) * GRID; t < last; t += GRID) found.push({ t, rate: rate(t) });
    if (last - RECENT >= first) found.push({ t: last, rate: rate(last) });
    return found;
  }

  /** The number at a time between those that are known, as if it grew evenly. */
  #at(t) {
    const next = this.#points.findIndex((point) => point.t >= t), after = this.#points[next], before = this.#points[next - 1];
    return before ? before.n + ((after.n - before.n) * (t - before.t)) / (after.t - before.t) : after.n;
  }

  async #draw() {
    const view = await this.#view, end = Date.now();
    view.signal("begin", end - this.#window).signal("end", end).data("rates", this.#rates()).runAsync();
  }
}
